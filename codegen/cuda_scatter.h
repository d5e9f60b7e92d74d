// cuda_scatter.h: what the parts of the SCATTER generator for GPUs share.
//
//   cuda_scatter_plan.c   decisions: which of two ways, pieces, the workspace, what it costs
//   cuda_scatter.c        text: the frame, clearing the table, the way by walking
//   cuda_scatter_sort.c   text: the way by sorting
//   cuda_sort_prelude.h   what sorting kernels call
//
// Two ways to table[index[i]] += update[i] (scatter_max: to the larger of both; in what follows and in the
// text it is a "sum", too), with the same results run after run:
//
//   walk   The first occurrence of a row owns it, and walks all indices: n * n comparisons, a row's
//          updates one after the other. One launch and no workspace.
//   sort   Positions are sorted by row, stably. The sorted list is cut into pieces of a fixed
//          length, whose rows are summed side by side; rows that lie in several pieces are joined
//          at the end. n additions wherever they fall; several launches and a workspace.
//
// Estimates of both (microseconds, for the chips that are compiled for) decide.
#ifndef CODEGEN_CUDA_SCATTER_H
#define CODEGEN_CUDA_SCATTER_H

#include "codegen/cuda_element.h"
#include "codegen/row_update.h"

enum {
  SCATTER_CLEAR_THREADS = 256,
  SCATTER_SORT_THREADS = SCATTER_CLEAR_THREADS, // they may share a launch
  SCATTER_JOIN_THREADS = 256,
  SCATTER_LANES = 4, // elements of a vector
};

typedef struct cuda_scatter {
  int64_t table_rows, columns, indices;
  int64_t stored_rows; // at most so many are written
  int element_bytes;
  bool wide; // a row's columns go by vectors
  bool sort;
  double walk_us, sort_us;

  int walk_threads;
  int64_t walk_parts; // blocks side by side that share the columns of a row

  int passes, bits;  // of sorting: passes by so many bits, lowest first
  const char *place; // C type of positions and rows: "int32_t"
  int place_bytes;
  int64_t chunk, chunks; // positions that a block sorts
  bool alone;        // it is one block, which makes all passes beside those that clear the table
  int sort_launches; // of its own
  int64_t piece, pieces;              // sorted positions that are summed by one group of threads
  int64_t units;                      // of a row: vectors when wide, elements otherwise
  int group, sum_threads;             // threads of a piece, of a block
  int64_t sum_parts;                  // groups side by side that share the units of a row
  int join_side;                      // of joining: vectors of a row side by side in a block
  int64_t join_parts;                 // blocks side by side that share the vectors of a row
  int64_t pitch;                      // elements of a row of partial sums
  int64_t sorted[2], counts, partial; // places in the workspace, in bytes
  int64_t workspace;
} cuda_scatter;

// From sizes to decisions.
void cuda_scatter_plan(cuda_scatter *p, const cg_cuda *chip);

// "const auto row_at = [&](int64_t at) -> int64_t { ... };": the row that index `at` names.
void cuda_scatter_put_row_at(cuda_text *t);
// "const auto update_at = [&](int64_t at, int64_t column) { ... };": an element of an update, or
// the vector that begins there.
void cuda_scatter_put_update_at(cuda_text *t);
// "K_KERNEL(name_1, threads, width) {", and the arguments.
void cuda_scatter_open(cuda_text *t, const char *name, int phase, int threads);
// What the sum of no elements is, and what it becomes by one more: "sum + x", "k_max(sum, x)".
const char *cuda_scatter_start(const cg_kernel *k, bool vectors);
const char *cuda_scatter_step(const cg_kernel *k, bool vectors, const char *sum, const char *x);
// Statements that store "sum" to columns "column".. of the table's row "row", or what a row update
// makes of it. With `vectors`, it is a vector of which `lanes` exist (NULL: all).
void cuda_scatter_put_row(cuda_text *t, bool vectors, const char *lanes);
// All passes by the threads of this block (cuda_scatter.alone).
void cuda_scatter_put_sort(cuda_text *t);
// The kernels of all phases behind the first.
void cuda_scatter_emit_sorted(cuda_text *t, const char *name);

#endif
