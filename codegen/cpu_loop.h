// cpu_loop.h: what the parts of the LOOP generator share.
//
//   cpu_loop.c         the family's two functions; the frame of the emitted function
//   cpu_loop_axes.c    decisions on axes: merging, the vector axis, units of work, tasks
//   cpu_loop_groups.c  decisions on axes: two as one, where the inner one is short
//   cpu_loop_plan.c    decisions on members: depth, level, what is cached between phases
//   cpu_loop_band.c    rows of which a mask has left a band: what is not walked
//   cpu_loop_beside.c  text: the loop over a band, and what is done for the rest of the row
//   cpu_loop_body.c    text: vector loops, phases
//   cpu_loop_reduce.c  text: accumulators
//   loop_members.c     text: the frame, levels, scratch rows, stores
//   online_rows.c      a maximum and a sum of exponentials in one sweep
//   cuda_loop*.c       the family on a GPU: cpu_loop_axes.c, _plan.c, _reduce.c and loop_members.c are shared
//
// A kernel has parallel axes P and reduced axes R. One iteration of P makes one phase (a loop nest
// over R) per depth of reductions: softmax has three (maximum; sum; result).
//
//   across  the vector axis is in R: lanes are elements of a row, summed up at the end of a phase
//   along   it is in P: lanes are independent results; R is a plain loop inside
//
// A kernel with a single axis is flat: the size of the axis is an argument (cg_kernel.numbers), so
// that the updates of all parameters are one function. Its tasks are blocks of elements.
#ifndef CODEGEN_CPU_LOOP_H
#define CODEGEN_CPU_LOOP_H

#include "codegen/cpu_expr.h"

// Where a member is computed, outermost first.
typedef enum loop_level {
  LEVEL_FUNC,  // varies along nothing and needs no reduction: once per call
  LEVEL_ROW,   // once per iteration of the parallel axes but the vector axis
  LEVEL_LANES, // along: varies along the vector axis, not along R
  LEVEL_INNER, // varies along R
} loop_level;

typedef struct loop_member {
  loop_level level;
  int depth;    // reductions on the longest way to it
  bool reduces; // its value exists after the phase `depth`
  int cost;     // flops to compute it again inside the R loops
  bool cached;  // INNER: kept in a scratch row from phase `depth` on
  // A sum of exponentials that is taken together with the maximum that they are of
  // (online_rows.h), in its phase. NULL: an ordinary member.
  const ir_node *max;
} loop_member;

// What a value is in all columns of a row beside the band.
typedef enum loop_beside {
  BESIDE_ANY,  // whatever it may be
  BESIDE_SAME, // one number
  BESIDE_ZERO,
} loop_beside;

// Of a matrix whose rows lie along the vector axis, the diagonals that are walked (cpu_loop_band.c).
typedef struct loop_band {
  unsigned phases;  // those that leave the rest out, a bit each; 0: there is no band
  unsigned widened; // of them, those that walk all of a row where the rest turns out to count
  int row_axis;     // its index modulo `rows` is the row
  int64_t rows;
  ir_band diagonals;
  unsigned char *beside; // by member: loop_beside
} loop_band;

typedef struct loop_plan {
  int lanes;       // per vector
  int vector_axis; // -1: the kernel has no axes
  int lane_step;   // along it from lane to lane; 0: 1
  int64_t extent;  // size of the vector axis
  int fold; // along: so many neighbouring lanes are summed up, too (cpu_loop_groups.c); 0: none
  bool across;
  bool has_reduce;
  loop_band band;
  bool flat;       // one axis, whose size is a number of the kernel: no text depends on it
  int turned_axis; // -1, or a parallel axis that is looped over inside the vector axis
  bool online;     // GPU, rows too long to be kept: no scratch rows; sums with their maxima
  int phases;      // loop nests over R, at least 1
  int block;       // vectors per step of the vector loop
  int num_rows, row_axis[DOM_MAX_AXES]; // P but the vector axis
  int num_red, red_axis[DOM_MAX_AXES];  // R but the vector axis (and the turned axis)
  int64_t rows, red_rows;               // products of their sizes
  int64_t chunk, chunks;                // pieces of the vector axis (along); across: 1
  int64_t units, tasks;                 // rows * chunks, split into tasks
  int64_t task_elements;                // flat, along: elements per task, the same for all sizes
  loop_member *member;
  // GPU: from which phase on a load lies in registers, and to which one; by load of the domain, at
  // the first of those that read the same elements. from < 0: it does not. NULL: none does.
  struct loop_kept {
    int from, to;
  } * kept;
} loop_plan;

// Drops axes of size 1 and joins neighbours that every access walks as one.
domain *loop_simplify(ir_arena *a, const ir_kernel *k, const domain *d);
domain *loop_copy_domain(ir_arena *a, const domain *d, size_t members);
void loop_remove_axis(domain *d, size_t members, int axis);
// The axis whose lanes cost least; -1: there are no axes. *cost: vectors loaded and stored per element.
int loop_choose_vector_axis(const cg_kernel *k, const domain *d, int lanes, double *cost);
void loop_group_lanes(loop_plan *p, cg_kernel *k);        // may join two axes
void loop_plan_axes(loop_plan *p, const cg_kernel *k);    // vector axis, rows, reduced rows
void loop_plan_members(loop_plan *p, const cg_kernel *k); // levels, phases, caches, block
void loop_plan_tasks(loop_plan *p, const cg_kernel *k);
void loop_plan_band(loop_plan *p, const cg_kernel *k); // last
// Of an operand, by what its members are; of a store, whether anybody needs what lies beside the band.
loop_beside loop_operand_beside(const loop_plan *p, const cg_kernel *k, const ir_node *n, int i);
bool loop_needs_beside(const loop_plan *p, const cg_kernel *k, const dom_store *s);
// Vectors in a scratch row; the index of the current one.
int64_t loop_cache_vectors(const loop_plan *p);

// --- emission --------------------------------------------------------------------------------
typedef struct loop_emit {
  const cg_kernel *k;
  const loop_plan *p;
  cg_expr e;
  const char *index[DOM_MAX_AXES];
  int phase; // members of lower depth that are cached come from their scratch row
  // GPU: which of the threads that work on a unit stores a result ("lane == 0"; NULL: whoever has
  // it); the present vector of a scratch row; how a sum of this thread becomes one of all threads.
  const char *only, *turn;
  const char *(*gather)(struct loop_emit *m, const ir_node *n, const char *sum, const char *at);
} loop_emit;

// The frame that both targets give a kernel: names taken (identifiers of its own, then i0, i1, ...
// for the axes); numbers of the kernel and their variables; scratch rows of so many vectors;
// indices of axes from their row-major number `from`.
void loop_begin(loop_emit *m, const cg_kernel *k, const loop_plan *p, ir_buf *out);
void loop_reserve(loop_emit *m, const char *const *used, size_t num);
void loop_push_numbers(const loop_plan *p, cg_kernel *k);
void loop_declare_numbers(loop_emit *m);
void loop_declare_caches(loop_emit *m, int64_t vectors);
void loop_decode(loop_emit *m, const char *from, const int *axes, int num);
void loop_emit_unit(loop_emit *m);                         // everything inside one unit of work
bool loop_stores_at(const loop_emit *m, loop_level level); // whether any store has its place there
void loop_emit_flat_bounds(loop_emit *m);
// The vector loop: steps of `block` vectors; lanes that are too few for one, from `from` on.
typedef void (*loop_step)(loop_emit *m, int block);
void loop_steps(loop_emit *m, int block, const char *from, const char *to, loop_step body);
void loop_partial_step(loop_emit *m, int64_t from, const char *open, loop_step body);
// With a band: the variables of a row; the present phase's loop; before that, whether the rest of the row counts;
// behind it, what the rest does to maxima; what is stored there.
bool loop_in_band(const loop_emit *m); // the present phase leaves the rest out
void loop_emit_band(loop_emit *m);
void loop_band_steps(loop_emit *m, loop_step body);
void loop_widen_band(loop_emit *m);
void loop_take_beside(loop_emit *m);
void loop_store_beside(loop_emit *m);
const char *loop_accumulator(loop_emit *m, const ir_node *n); // of a sum, a maximum or a minimum
// Loads and members of this level, and of no later phase, not yet emitted.
void loop_emit_level(loop_emit *m, loop_level level);
ir_map *loop_open(loop_emit *m); // "{": a C scope inside the present one; gives the outer names
void loop_close(loop_emit *m, ir_map *outer);
// What the innermost loop does with the present vector: sums, scratch rows, stores.
void loop_inner_work(loop_emit *m, const char *slot);
// Stores of members at `level` (INNER: of the present phase), values first.
void loop_emit_stores(loop_emit *m, loop_level level);
// Reductions of the present phase.
void loop_declare_sums(loop_emit *m, int block);
// Takes the present vector into accumulator `slot` ("", "[u]", "[0]").
void loop_take_sums(loop_emit *m, const char *slot);
// across: one value from all accumulators and lanes; along: accumulator `slot` is the value.
void loop_finish_sums(loop_emit *m, const char *slot, int block);
const char *loop_number(const loop_emit *m, int64_t v); // "12"
// Whether member `n` goes to memory.
bool loop_is_stored(const cg_kernel *k, const ir_node *n);
const char *loop_red_index(const loop_emit *m, bool with_vector_axis);

#endif
