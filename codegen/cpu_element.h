// cpu_element.h: single elements of a tensor seen through views, for COPY and SCATTER kernels,
// which have no domain. A leaf below the views is regenerated.
#ifndef CODEGEN_CPU_ELEMENT_H
#define CODEGEN_CPU_ELEMENT_H

#include "codegen/cpu_expr.h"

typedef struct cpu_element {
  const ir_node *seen; // the tensor; its shape is what indices mean
  ir_node *base;       // argument, CONST or IOTA
  int64_t offset, stride[IR_MAX_RANK];
} cpu_element;

cpu_element cpu_element_of(const ir_node *n);
// C expression of the element at the given indices (one text per dimension; NULL: 0).
const char *cpu_element_text(const cg_kernel *k, const cpu_element *x, const char *const *index);
// "i0 * 128 + i1": an affine form; "0" when nothing is left.
const char *cpu_affine(ir_arena *a, int rank, const char *const *index, const int64_t *stride,
                       int64_t offset);
// Whether dimensions [first, end) of x are walked as one; then *step from one element to the next.
bool cpu_is_as_one(const cpu_element *x, int first, int end, int64_t *step);
// Index texts of dimensions [0, end) of x where "at" counts through all of them. Strides change where they are one.
void cpu_element_at(ir_arena *a, cpu_element *x, int end, const char **index);
// "begin * 10 / 4" for which = "begin": the first of the units of a task, of `units` in `tasks`.
const char *cpu_share(ir_arena *a, const char *which, int64_t units, int64_t tasks);
// Tasks for a kernel that moves so many elements in at most `units` independent parts.
int64_t cpu_move_tasks(int64_t elements, int64_t units);

// Rows of a table that tasks of a kernel own, in turn: what is named most often, as words are, comes first in many
// tables, and would be all of the first of ranges.
typedef struct cpu_rows {
  int64_t rows, columns;
  int shift; // 1 << shift rows together are one task's: what its processor fetches ahead is its own
  int64_t tasks; // a power of two
} cpu_rows;
cpu_rows cpu_rows_of(const ir_type *table, int64_t most_tasks);
// The task that owns "row".
const char *cpu_rows_task(ir_arena *a, const cpu_rows *r);
// Opens loops in which "i" goes through all elements of the rows of tasks begin .. end - 1, for one statement. Returns its
// indentation.
int cpu_rows_open(ir_buf *out, int indent, const cpu_rows *r);

#endif
