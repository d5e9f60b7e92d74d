// cpu_matmul.h: what the parts of the CPU matmul generator share.
//
//   cpu_matmul.c       glue: dom_matmul + epilogue -> mm_problem; the family's two functions
//   cpu_matmul_plan.c  decisions: register tile, task grid, what is packed, splits of K
//   cpu_matmul_cost.c  what they are compared by: cycles
//   cpu_matmul_pairs.c products of bf16 as products of pairs, half as long
//   cpu_matmul_amx.c   products of bf16 on a matrix unit (cpu_matmul_amx.h)
//   cpu_matmul_pack.c  text: copying panels of a and b into the order in which tiles read them
//   cpu_matmul_tile.c  text: the register tile, the only hot loop, and which one a place has
//   cpu_matmul_core.c  text: tasks and phases around the tile
//   cpu_matmul_band.c  which steps of k a tile needs, by the bands of its operands and a border of zeros
//   cpu_matmul_list.c  which it needs by the zeros that a step's data hold: known when it runs
//   cpu_matmul_single.c products of samples full of zeros, where rows have such steps of their own
//   cpu_matmul_outer.c  and the other way about: steps have such rows
//   cpu_matmul_winograd.c products of 3 x 3 windows with fewer multiplications
//   cpu_matmul_winograd_weights.c the gradients of their filters (cpu_matmul_patch.h: what both need)
//
// A problem is  c[batch,m,n] = sum over k of a[batch,m,k] * b[batch,k,n].  Lanes of a vector run
// along n. Tiles of `mr` rows and `nv` vectors are held in registers; each tile is summed over
// all of k in one fixed order (or in fixed pieces), so that results do not depend on tasks.
#ifndef CODEGEN_CPU_MATMUL_H
#define CODEGEN_CPU_MATMUL_H

#include "codegen/codegen.h"
#include "passes/band.h"
#include "passes/zeros.h"

// One logical axis (m, n, k or batch) of an operand, as it lies in memory: row-major list of
// parts with element strides. num == 0: size 1.
typedef struct mm_axes {
  int num;
  int64_t size[DOM_MAX_AXES], stride[DOM_MAX_AXES];
} mm_axes;

typedef struct mm_operand {
  int arg;             // index in args
  const char *ctype;   // of its elements in memory: that of the problem, or "uint16_t"
  int elem_bytes;      // there
  const char *convert; // "bf16", "tf32", "u8", ...: what makes them numbers of the problem; NULL
  // To be put together to pairs, along the last part of k: from an element to its other half; 0: no pairs.
  int64_t apart;
  bool odd;               // the last pair of that part is half a pair
  int64_t offset;         // elements
  int64_t begin;          // of those, what begin_text adds (cg_kernel.begin)
  const char *begin_text; // NULL: a problem that is no kernel's
  mm_axes batch;
  mm_axes x; // m of operand a, n of operand b
  mm_axes k;
} mm_operand;

// Rows of a are windows of a padded image. Row m begins at line  m / below % lines * step, step k of the
// product looks  k / run * apart  lines further on, and only lines [low, high) are not the pad's zeros.
typedef struct mm_border {
  bool limited; // or else all of that counts
  int64_t below, lines, step;
  int64_t run, apart;
  int64_t low, high;
} mm_border;

typedef struct mm_problem mm_problem;
struct mm_problem {
  const cg_target *target;
  ir_arena *arena;
  const char *ctype; // "float"
  int elem_bytes;
  int64_t batch, m, n, k;
  mm_operand a, b;
  bool pairs; // an element of a and b is two bf16, a step of k two of theirs (cpu_matmul_pairs.c)
  // When the kernel stores just the product, in rows of unit stride, tiles write it themselves.
  bool plain;
  mm_operand c; // plain: x is m; k is unused
  // The epilogue reads a parameter where it stores: the next step reads there what this one has written.
  bool updates;
  band_product bands; // not limited: all of a, b and c counts
  mm_border border;   // of a; GPUs do not look at it
  zeros_kind zeros;   // that a is likely to hold; GPUs do not look at it
  int workspace_arg;
  int want_mr, want_nv; // a register tile to try; 0: the model chooses
  // Otherwise: prints the function
  //   static void NAME_finish(char *const *args, const T *tile, int64_t pitch, int64_t batch,
  //                           int64_t m, int64_t rows, int64_t n, int64_t cols)
  // that consumes rows x cols finished sums. A row of `tile` may be read to a full vector.
  void (*emit_finish)(const mm_problem *p, void *data, const char *name, ir_buf *out);
  // Optional. Prints, for tiles of `cols` columns,
  //   static void NAME_fetch(char *const *args, int64_t batch, int64_t m, int64_t rows, int64_t n)
  // that asks for the memory which the finish will touch: called before the tile's sums, which take
  // longer than the memory needs. False: there is nothing to ask for.
  bool (*emit_fetch)(const mm_problem *p, void *data, const char *name, int64_t cols, ir_buf *out);
  void *data;
};

typedef enum mm_access {
  MM_DIRECT, // tiles read the operand where it lies
  MM_LOCAL,  // each task packs what it needs, just before it needs it
  MM_SHARED, // phase 0 packs everything once into the workspace
  MM_PIECES, // each task packs a piece of k for all its rows of a, or a tile's columns of b, takes it, and packs the next
  MM_LISTED, // of a: each row of tiles packs the steps on its list
} mm_access;

typedef struct mm_plan {
  int lanes;    // elements per vector
  int mr, nv;   // register tile: rows, vectors
  int64_t nr;   // nv * lanes
  double share; // of all steps: mm_band_share, mm_border_share, mm_list_share of the tile
  int64_t row_tiles, col_tiles;
  int tail_rows;                  // rows of the last row tile, 0: full
  int64_t tail_cols;              // columns of the last column tile, 0: full
  int tail_nv;                    // its vectors
  bool masks;                     // the target has loads of part of a vector
  int64_t group_rows, group_cols; // task grid over the tiles of one batch item
  // Tasks go down a column of groups, then down the next: threads have columns of their own.
  bool by_columns;
  int64_t block_rows, block_cols; // tiles that a task visits before it moves on
  mm_access a, b;
  bool a_stays, b_stays; // all of it in a thread's caches, from its first task on
  int64_t b_offset;      // of b's panels in the workspace, elements
  bool amx;              // a matrix unit multiplies (cpu_matmul_amx.h): from panels of its own
  int64_t amx_steps;     // of k, which it packs at a time
  int64_t k_block;       // length of a piece of k; k when it is in one piece
  int64_t k_blocks;
  bool walks;         // rows of a are read from end to end, a few at a time: pieces of k
  bool walks_b;       // so are steps of b, a block of columns at a time
  bool by_pieces;     // a is MM_PIECES
  int64_t piece;      // of those: steps packed at a time; a task of split_k may take several
  bool lists;         // tiles go through lists of the steps at which their rows of a are not all 0
  int64_t list_tiles; // rows of tiles whose lists are made together
  int64_t kept_lists; // rows of tiles whose lists a thread keeps for its next columns; 0: none
  bool single; // each row goes through a list of its own (cpu_matmul_single.c); `lists` is not set
  bool
      outer; // a few steps of k at a time go through a list of rows (cpu_matmul_outer.c); nor is it here
  int together; // of outer: steps
  bool
      winograd; // 3 x 3 windows of images (cpu_matmul_winograd.c): a row tile is a block of patches
  int64_t patches, patch_lines,
      patch_wide;    // of winograd, and of a block: how many, in how many lines of how many
  bool patch_within; // blocks end where their images do, so that not all have as many rows
  int patch_rows;    // of its register tile
  bool split_k;      // pieces of k are tasks of their own, summed by a last phase
  int64_t a_pitch;   // packed a is rows of k, this far apart; 0: steps of k, mr elements each
  int64_t a_pack_tasks, b_pack_tasks; // of phase 0, per batch item
  int64_t a_panel, b_panel;           // elements of one packed panel
  int64_t partial_offset;             // split_k: bytes into the workspace
  int64_t workspace;                  // bytes
  int num_phases;
  int64_t tasks[CG_MAX_PHASES];
} mm_plan;

// Drops parts of size 1 and merges parts that are walked as one.
mm_axes mm_simplify(const mm_axes *axes);
// One stride reaches all of it; `*stride` is that stride (0 for size 1).
bool mm_is_flat(const mm_axes *axes, int64_t *stride);
// The strides of its first `num` parts are all multiples of that.
bool mm_all_multiples(const mm_axes *axes, int num, int64_t of);
// C expression: element offset of flat position `index`.
const char *mm_offset(ir_arena *arena, const mm_axes *axes, const char *index);

// --- matmul_problem.c: what both targets do with a kernel of the family
// Which sides of the product are rows and columns, and where they lie. Lanes run along n: where
// results lie side by side along m instead, a and b have changed places (c^T = b^T a^T).
typedef struct mm_sides {
  const dom_matmul *mm;
  int first_row, num_rows; // domain axes of the problem's rows (m; n when swapped)
  int first_col, num_cols; // and of its columns
} mm_sides;
// The product of a kernel: sizes, operands, bands; no callbacks.
mm_problem mm_describe(const cg_kernel *k, mm_sides *sides);
// Where the kernel begins in its arguments (cg_kernel.begin), once k->workspace is known.
void mm_set_begins(cg_kernel *k, mm_problem *p);
// What leads from the argument to the operand's first element: " + (int64_t)args[3] + 12", or "".
const char *mm_offset_text(ir_arena *a, const mm_operand *o);

// --- matmul_border.c
// What is known of `a`, which lies in `buffer`, in a product of k steps.
mm_border mm_border_of(const ir_node *buffer, const mm_operand *a, int64_t k);
// Narrows the steps [*first, *stop) to those that rows [m0, m1] need; *first >= *stop: none.
void mm_border_steps(const mm_border *b, int64_t m0, int64_t m1, int64_t *first, int64_t *stop);
// Part of all steps that tiles of `mr` rows have left to do, 0 to 1.
double mm_border_share(const mm_border *b, int64_t k, int64_t mr);

// --- matmul_problem.c again
// A text that is equal for equal problems, wherever their operands lie: which arguments they are, and where
// in them they begin, is not in it. What a plan was made from, for cg_memo.
const char *mm_key(const mm_problem *p);
// How an access walks some of the domain's axes.
mm_axes mm_axes_between(const domain *d, const dom_access *at, int first, int num);

// An epilogue's view of the domain: the indices that have been declared, and the product, which is
// a variable of this name.
typedef struct mm_scope {
  const cg_kernel *kernel;
  const mm_sides *sides;
  const char *index[DOM_MAX_AXES];
} mm_scope;
// An emitter for members and stores; identifiers `taken` and i0, i1, ... are in use.
cg_expr mm_expr(mm_scope *x, ir_buf *out, int indent, const char *const *taken, size_t num);
// The index of a domain axis: "i1"; "0" where it goes on in the next one's, as all that is loaded and stored walks the
// two as one. So a product that is seen as [8, 1024, ...] by all is the function of one that is seen as [8192, ...].
const char *mm_index(const mm_scope *x, int axis);
// Neighbours along the last index of columns: all of them, or a part that memory has apart from the next; 1: no columns.
int64_t mm_run_of_columns(const mm_scope *x);
// Declares the indices of these domain axes from their flat position, and tells the scope.
void mm_emit_indices(const cg_expr *e, int first, int num, const char *flat);
// band_steps (passes/band.h) as text, with the bands as constants: narrows the steps [FIRST, stop) of the tile of rows
// [m0, m1] and columns [n0, n1].
void mm_emit_bands(const mm_problem *p, const char *first, ir_buf *out);

// Packed by slices of k (all panels at once) rather than panel by panel: unit stride along x.
bool mm_packs_slices(const mm_operand *o);
// Rows that a task packs lie side by side in each step of k, and are read like that: not tile by tile.
bool mm_packs_side_by_side(const mm_problem *p, const mm_plan *g);

// cpu_matmul_pairs.c: a product of bf16 becomes one of pairs, where the target multiplies those.
void mm_consider_pairs(mm_problem *p);
// k as bands count it: steps, or the numbers in steps of pairs.
int64_t mm_numbers_of_k(const mm_problem *p);

// Of sums on a task's stack that wait for the next piece of k.
enum { MM_SUMS_BYTES = 131072 };

void mm_make_plan(const mm_problem *p, mm_plan *plan);

// --- cpu_matmul_cost.c: estimated cycles
enum { MM_BARRIER_CYCLES = 3000 };
// Of a tile, per step of k.
double mm_tile_cycles(int rows, int vectors);
// Of the whole problem in tiles of rows x vectors which take this share of all steps, per step of k.
double mm_tiling_cycles(const mm_problem *p, int lanes, int rows, int vectors, double share);
// What reading an operand where it lies costs a step: steps of k that are no neighbours.
double mm_apart_a_cycles(const mm_problem *p, const mm_plan *g);
double mm_apart_b_cycles(const mm_problem *p, const mm_plan *g);
// What plans of any kind are compared by, of the cycles that teams of one, two and eight threads take for one.
double mm_weigh_teams(const mm_problem *p, const mm_plan *g, double one, double two, double eight);
// Of the whole kernel, on teams of several sizes.
double mm_plan_cycles(const mm_problem *p, const mm_plan *g);
// Part of all steps on the lists of tiles of so many rows, 0 to 1.
double mm_list_share(const mm_problem *p, int rows);
// Places at which some of so many samples are not 0, of data that are full of zeros.
double mm_samples_share(int samples);
// Both operands fit the second cache.
bool mm_fits_cache(const mm_problem *p);
// Neighbours along k lie in runs worth a copy: heads that are merged by a view.
bool mm_k_in_runs(const mm_operand *o);

void mm_emit(const mm_problem *p, const mm_plan *plan, const char *name, ir_buf *out);

// --- cpu_matmul_amx_plan.c
// Whether a matrix unit can multiply. And a plan for that; gives its cycles (mm_plan_cycles).
bool mm_suits_amx(const mm_problem *p);
double mm_plan_amx(const mm_problem *p, mm_plan *plan);

// --- cpu_matmul_single_plan.c
// Whether rows may go through lists of their own. And a plan for that; gives its cycles (mm_plan_cycles).
bool mm_suits_single(const mm_problem *p);
double mm_plan_single(const mm_problem *p, mm_plan *plan);
// Tasks of the same columns that follow each other are taken as one: each piece of b is packed once for all of them.
bool mm_joins_tasks(const mm_plan *plan);

// --- cpu_matmul_outer_plan.c
// Whether steps may go through lists of rows. And a plan for that; gives its cycles (mm_plan_cycles).
bool mm_suits_outer(const mm_problem *p);
double mm_plan_outer(const mm_problem *p, mm_plan *plan);

// --- cpu_matmul_winograd_plan.c, cpu_matmul_winograd_weights_plan.c
// Whether windows of 3 x 3 places may be multiplied by Winograd's algorithm, or gradients of their filters made by it. And a
// plan for that; gives its cycles (mm_plan_cycles); -1: no block of patches has room on a task's stack, or no sums have.
bool mm_suits_winograd(const mm_problem *p);
double mm_plan_winograd(const mm_problem *p, mm_plan *plan);
bool mm_suits_winograd_weights(const mm_problem *p);
double mm_plan_winograd_weights(const mm_problem *p, mm_plan *plan);

// The text of a kernel while it is printed.
typedef struct mm_text {
  const mm_problem *p;
  const mm_plan *plan;
  const char *name; // prefix of every function
  ir_buf *out;
  bool fetches; // there is a NAME_fetch
} mm_text;
// NAME_group and what it needs, for a matrix unit.
void mm_emit_amx(const mm_text *t);
// The same, for rows that go through lists of their own.
void mm_emit_single(const mm_text *t);
// Prints NAME_piece: whether so many steps of a tile's columns of b are finite; and, of MM_PIECES, a copy of them.
void mm_emit_piece(const mm_text *t);
// From a step of b to the next.
int64_t mm_b_step(const mm_text *t);
// The same, for steps that go through lists of rows.
void mm_emit_outer(const mm_text *t);
// Prints the phase that brings filters into another form; and NAME_group, and what it needs, for patches.
void mm_emit_filters(const mm_text *t, int phase);
void mm_emit_winograd(const mm_text *t);
// NAME_group, and what it needs, for the gradients of filters; and the phase that makes these of its sums.
void mm_emit_winograd_weights(const mm_text *t);
void mm_emit_winograd_sums(const mm_text *t, int phase);
// The first lines of NAME_group, and what it has been printed for; `more` parameters.
void mm_emit_group_begin(const mm_text *t, const char *what, const char *more);
// Constants and operands of a task, for whoever prints one; and all of these, where operands are read as they lie.
void mm_emit_constants(const mm_text *t);
void mm_emit_operands(const mm_text *t);
void mm_emit_operand(const mm_text *t, const char *name, const mm_operand *o, const char *cv);
// Strides with which a tile of full or tail width walks its operands.
int64_t mm_a_row_stride(const mm_text *t);
// A last panel of b that ends inside a vector and is otherwise read in place: by masked loads, or
// packed by each task.
bool mm_packs_tail(const mm_plan *plan);
// True when a tile of this width writes its sums straight to the output.
bool mm_stores_plain(const mm_text *t, bool tail_cols);
// Tiles whose operands are new to a thread's caches ask for what they need some steps later: their own
// lines, and then those that the next ones begin with (next_a, next_b).
bool mm_looks_ahead(const mm_text *t);
// Sums wait in memory between pieces of k, which a task takes one after the other.
bool mm_pieces_wait(const mm_plan *plan);
// Tiles are told which steps of k to take: pieces of k, or bands, or a border, or a list.
bool mm_counts_steps(const mm_text *t);
// The last part of a's k is longer than pieces of k: tiles take what of a run is in a piece.
bool mm_cuts_runs(const mm_problem *p, const mm_plan *plan);
// Some tiles need not take all steps.
bool mm_limits_steps(const mm_problem *p);
// Inside the loop over tiles: goes on with the next one where nobody needs what this one would store.
void mm_emit_skip(const mm_text *t, const char *indent);
// The bands of the transposed problem, c^T = b^T a^T.
band_product mm_turn_bands(const band_product *b);
// Part of all steps of all tiles of this shape that bands leave to do, 0 to 1.
double mm_band_share(const mm_problem *p, int64_t mr, int64_t nr);
// Prints NAME_span: the part of [*k, *k + steps) that a tile needs.
void mm_emit_span(const mm_text *t);
// Works out which steps a visited tile takes; gives the arguments that tell it so: ", from, count".
const char *mm_emit_steps(const mm_text *t, const char *indent);
// Prints the tiles, and NAME_tile, which calls the one for a place.
void mm_emit_tiles(const mm_text *t);
void mm_emit_packing(const mm_text *t);
// Declares `b`, where the tile of column `col` reads it.
void mm_emit_b_pointer(const mm_text *t);
// Strides with which a tile of full or tail width goes along k.
int64_t mm_a_k_stride(const mm_text *t);
int64_t mm_b_k_stride(const mm_text *t, bool tail_cols);

// --- cpu_matmul_list.c
// Of a step on a list: its number, which fits, since the list does so on a task's stack. And elements behind a list's end
// which are written, as a vector of steps is put on it.
enum { MM_LIST_BYTES = 2, MM_LIST_ROOM = 16 };
// Whether tiles of this problem may go through lists.
bool mm_may_list(const mm_problem *p);
// How many rows of tiles of this size should have their lists made together.
int64_t mm_list_tiles(const mm_problem *p, const mm_plan *plan);
// Blocks of columns that a task takes one after the other, at most.
int64_t mm_task_blocks(const mm_plan *plan);
// How many lists a thread should keep, in this grid with these blocks.
int64_t mm_kept_lists(const mm_problem *p, const mm_plan *plan);
// How often a thread makes the lists of a task's rows, and looks at a task's columns, in `n` tasks that follow each
// other: less than once in each where it keeps what it has found.
int64_t mm_list_rounds(const mm_problem *p, const mm_plan *plan, int64_t n);
int64_t mm_column_rounds(const mm_plan *plan, int64_t n);
// "(bits " MM_FINITE_BITS: has the highest bit if they are of no finite number, as an exponent of ones carries into the
// sign when another one is added.
#define MM_FINITE_BITS "& 0x7fffffffu) + 0x00800000u"
// Prints the types that text of lists needs; and NAME_list, which makes the list of so many rows of a, in the last tile
// of `last_rows` if that is not 0.
void mm_emit_list_types(const mm_text *t);
void mm_emit_list_of(const mm_text *t, int rows, int last_rows);
// C expression: the element of a at this offset, converted.
const char *mm_one_of_a(const mm_text *t, const char *at);
// The same, NAME_list, of a few steps: the rows at which some of them is not 0.
void mm_emit_list_across(const mm_text *t);
// Prints NAME_list, which makes the list of a row of tiles, NAME_finite, which tells whether steps of b may be left
// out, and the type of what a thread remembers from task to task.
void mm_emit_lists(const mm_text *t);
// A thread remembers what it has found out of operands for its next task: ", NAME_seen *seen" of a task.
bool mm_remembers(const mm_plan *plan);
// Declares `seen`, which knows nothing yet; and tells it the next task's groups: `batch`, `row`, `col`.
void mm_emit_seen(const mm_text *t);
void mm_emit_look(const mm_text *t, const char *indent);
// Steps from asking for a line of b to its use; the list goes on by as many. 0: nothing is asked for.
int64_t mm_list_ahead(const mm_text *t);
// The lists on a task's stack; forgets kept ones of other rows.
void mm_emit_list_buffer(const mm_text *t);
// Looks whether a block's columns of b let lists leave something out, if the thread does not know.
void mm_emit_may_leave_out(const mm_text *t);
// Makes the list of this row of tiles, `live` steps in `list`, and declares where its `a` lies.
void mm_emit_list(const mm_text *t, const char *indent);

#endif
