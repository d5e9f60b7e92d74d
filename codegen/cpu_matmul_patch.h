// cpu_matmul_patch.h: what products of 3 x 3 windows by Winograd's algorithm (cpu_matmul_winograd.c) and the gradients of their
// filters (cpu_matmul_winograd_weights.c) share.
//
//   cpu_matmul_patch_plan.c  which windows; patches and blocks of them; cycles
//   cpu_matmul_patch.c       text: the 16 numbers of patches, and register tiles
#ifndef CODEGEN_CPU_MATMUL_PATCH_H
#define CODEGEN_CPU_MATMUL_PATCH_H

#include "codegen/cpu_matmul.h"

// Numbers of a patch; channels whose filters a task of phase 0 takes, and whose sums one of the last phase.
enum { MM_PLANES = 16, MM_FILTER_CHANNELS = 16, MM_SUM_CHANNELS = 8 };

// Windows of 3 x 3 places, one at each place of images.
typedef struct mm_windows {
  int64_t images, height, width; // of the results
  int64_t channels;
  int64_t image, line, place; // from one to the next, elements of a
} mm_windows;
// False: x are no such windows' places, or k is not what a window holds.
bool mm_find_windows(const mm_axes *x, const mm_axes *k, mm_windows *w);

// Of the gradient of filters: steps of k are places, rows of a what their windows hold.
typedef struct mm_places {
  mm_windows windows;
  int64_t image, line, place; // of their gradients: elements of b
} mm_places;
bool mm_find_places(const mm_problem *p, mm_places *x);

// --- patches
// Lines of patches in an image, and patches in a line.
int64_t mm_patch_lines(const mm_windows *w);
int64_t mm_patches_of_line(const mm_windows *w);
// Blocks of equally many patches, of all.
typedef struct mm_patch_kind {
  int64_t patches, num;
} mm_patch_kind;
// Whole blocks first, and some of them. Gives how many kinds there are, at most MM_PATCH_KINDS.
enum { MM_PATCH_KINDS = 4 };
int mm_patch_kinds(const mm_windows *w, const mm_plan *g, mm_patch_kind *kinds);
// Elements from one of the numbers to the next, where each patch has so many of each.
int64_t mm_patch_pitch(const mm_plan *g, int64_t of);
// Bytes on a task's stack for the numbers of a block, on both sides of a product.
int64_t mm_patch_bytes(const mm_windows *w, const mm_plan *g);
// And how many there may be, of all buffers: about half of a second cache, which filters pass through.
int64_t mm_patch_room(const mm_problem *p);

// --- plans
// Of a tile's beginning, of a filter's vector, and of a task.
#define MM_PATCH_ENTER_CYCLES  8.0
#define MM_PATCH_FILTER_CYCLES 60.0
#define MM_PATCH_TASK_CYCLES   60.0
// So much faster it must be, as estimated.
#define MM_PATCH_GAIN 1.1
// Floats as they lie in memory, and at least a vector of channels and of columns.
bool mm_takes_patches(const mm_problem *p, const mm_windows *w);
// Cycles of one step of k for so many rows (patches, or channels) in register tiles; and the rows of the best one.
double mm_rows_cycles(int64_t all, int rows, int vectors);
int mm_best_rows(const mm_problem *p, int64_t all, int vectors);
// Of a block: the numbers of its patches, and so many tiles of columns, which take these cycles, full and as the last one.
double mm_patch_cycles(const mm_problem *p, const mm_windows *w, const mm_plan *g, double patches,
                       int64_t cols, double full, double last);

// The best plan so far.
typedef struct mm_patch_choice {
  const mm_problem *p;
  const mm_windows *w;
  mm_plan *plan;
  double cycles; // -1: there is none yet
} mm_patch_choice;
void mm_patch_take(mm_patch_choice *c, const mm_plan *g, double cycles);
typedef void (*mm_patch_try_fn)(mm_patch_choice *c, mm_plan *g);
// Tries blocks of some lines of patches, or of parts of a line, for each width of tiles and each number of groups of columns.
void mm_try_patches(mm_patch_choice *c, mm_plan *g, mm_patch_try_fn try_block);

// --- text
// Prints NAME_patches: the numbers of patches of some lines.
void mm_emit_patches(const mm_text *t, const mm_windows *w);
// A register tile whose columns are rows of NR elements of b and c, and its elements of a so far apart, from row to row
// and from step to step.
typedef struct mm_patch_tile {
  int rows, vectors;
  int64_t a_row, a_step;
} mm_patch_tile;
// Prints its sums, which are 0; a step, `k`; and how sums are loaded or stored.
void mm_emit_patch_sums(const mm_text *t, const mm_patch_tile *x, const char *in);
void mm_emit_patch_step(const mm_text *t, const mm_patch_tile *x, const char *in);
void mm_emit_patch_moves(const mm_text *t, const mm_patch_tile *x, bool load, const char *in);
// All products of a block: elements from plane to plane, and what prints register tiles so wide, and the calls of these for a
// plane, `a`, `b` and `c`.
typedef struct mm_patch_products {
  int64_t channels, b_plane, c_plane;
  const char *more; // parameters
  void (*put_tiles)(const void *data, int vectors);
  void (*put_calls)(const void *data, int vectors, const char *in);
  const void *data;
} mm_patch_products;
// Prints NAME_products. `full`: a tile of columns that is as wide as it may be.
void mm_emit_patch_products(const mm_text *t, const mm_patch_products *x);

#endif
