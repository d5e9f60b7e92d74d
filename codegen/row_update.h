// row_update.h: the text of what a row update (ir/row_update.h) does with a row's sum, for all
// targets:
//
//   const vf t = k_load_f32(p2_t + row * 16 + column);
//   const vf s = (lr * sum);
//   const vf t_new = (t - s);
//   k_store_f32(p4_t_new + row * 16 + column, t_new);
//
// Outputs lie over the states that they replace wherever the plan can have it so. Where it cannot,
// pointers differ, and the rows that no index names are copied first.
#ifndef CODEGEN_ROW_UPDATE_H
#define CODEGEN_ROW_UPDATE_H

#include "codegen/cpu_expr.h"
#include "ir/row_update.h"

// The argument that holds, before the kernel, what output `out` has in rows that no index names.
int row_update_base(const cg_kernel *k, size_t out);
// Statements that compute the members of one row from `sum` and store the outputs. The text before
// declares "row" and "column". With `vectors`, `sum` is a vector of the row's elements from
// `column` on, of which `lanes` exist (NULL: all); otherwise the splat of one element.
void row_update_emit(const cg_kernel *k, ir_buf *out, int indent, const char *sum, bool vectors,
                     const char *lanes);

#endif
