// split_reductions.c: long reductions with few results become two stages.
//
//   before:  %s = sum %x {axes=[0, 1]} : f32[1,1]            # %x : f32[784,128]
//   after:   %r = reshape %x : f32[196,4,128]
//            %t = sum %r {axes=[1, 2]} : f32[196,1,1]         # 196 tasks that run in parallel
//            %u = sum %t {axes=[0]} : f32[1,1,1]
//            %s = reshape %u : f32[1,1]
//
// A task owns its outputs, so a reduction to few elements cannot use a team of threads; and threads
// that share the columns of a matrix read it in pieces of lines, which others have just written.
// The first stage has `chunks` times as many outputs; both stages have a fixed order of sums, which
// does not depend on the number of threads. The cut goes through the leading reduced axes, so that
// a chunk is contiguous, and along existing axes where it can, so that the reshape stays a view for
// what computes %x.
//
// For processors (split_strips), sums of more columns, too, where reading them as strips is slow (split_strips.c).
//
// For GPUs (split_columns), sums of columns, too, where there are fewer columns than threads:
//
//   before:  %d = sum %y {axes=[0, 1]} : f32[1,1,768]        # %y : f32[8,1024,768]
//   after:   %t = sum %y {axes=[1]} : f32[8,1,768]
//            %d = sum %t {axes=[0]} : f32[1,1,768]
//
// A kernel of 24 blocks, which is what the columns of a bias are, leaves most of the chip empty, and the
// few loads that it has under way wait for memory one after the other. So does one of 29, which is all that
// the first stage finds in a gradient [50257,768]: it is cut once more.
//
// Where no number divides well, some lines are left over (split_uneven.c). Sums over windows are cut so that what they
// read stays near (split_windows.c).
//
// Needs: no later algebra (it would merge the stages again). argmax and argmin stay.
#include "ir/builder.h"
#include "passes/pass.h"
#include "passes/split_strips.h"
#include "passes/split_uneven.h"
#include "passes/split_windows.h"

#include <math.h>

enum {
  MAX_RESULTS = 64, // that are few
  LONG = 8192,      // elements of each
  MANY = 64 * 1024, // elements in all: columns of a matrix, which would be read by all threads,
  FAIRLY_LONG = 1024,
  MIN_CHUNKS = 16,
  MAX_CHUNKS = 256,
  WIDE = 16 * 1024,   // columns that fill a GPU when 32 threads share each four of them
  TALL = 256,         // rows that are worth 32 threads
  LARGE = 256 * 1024, // elements of a matrix that is worth a second stage
  LEAST_COLUMN_CHUNKS = 4,
  ROWS = 1024, // that fill a GPU when each has a block
  MAX_ROW_CHUNKS = 4096,
  LOOK = 12, // operations up to what is reshaped
  MOST_SEEN = 64,
  FEW = 3, // times fewer chunks than are wanted: rather some of them with lines left over
};

// The outer stage reduces axes[0..at) and the leading `part` of axes[at].
typedef struct cut {
  int at;
  int64_t part;
  int64_t chunks;
} cut;

static int64_t extent_of(const ir_node *n) {
  return ir_elements(&n->in[0]->type) / ir_elements(&n->type);
}

static bool is_splittable(const ir_node *n) {
  int64_t out = ir_elements(&n->type), all = ir_elements(&n->in[0]->type);
  if (out > MAX_RESULTS)
    return false;
  return extent_of(n) > LONG || (all > MANY && extent_of(n) >= FAIRLY_LONG);
}

static double distance(int64_t chunks, double wanted) {
  return fabs(log((double)chunks / wanted));
}

// How well runs of so many elements go with what is summed:
typedef enum cut_fit {
  CUT_COPIES, // Something has been transposed or repeated before it was reshaped, and cannot be read so: phases of windows,
              // [31,2] taken for 62, are not 2 times 31. A copy would be made.
  CUT_STORES, // All can be read as it lies, but not what is computed of it, in another shape: that would be stored to be summed.
  CUT_FITS,
} cut_fit;

// Which chunks: within limits as near as can be to the number that is wanted.
typedef struct chunking {
  double wanted;
  int64_t least, most;
  cut_fit fit; // at least
} chunking;

// The square root of the extent: both stages are then about as long.
static chunking chunks_of(const ir_node *n) {
  double wanted = fmin(fmax(sqrt((double)extent_of(n)), MIN_CHUNKS), MAX_CHUNKS);
  return (chunking){.wanted = wanted, .least = MIN_CHUNKS, .most = MAX_CHUNKS};
}

static bool repeats(const ir_node *broadcast, int axis) {
  const ir_type *from = &broadcast->in[0]->type;
  int at = axis - (broadcast->type.rank - from->rank);
  return at < 0 || from->dims[at] == 1;
}

// Whether runs of so many elements, one after the other, are whole axes at the end and a part of one more. Neighbouring
// axes of a broadcast are one where both repeat, or neither.
static bool cuts_one_axis(const ir_node *x, int64_t elems) {
  int64_t behind = 1;
  for (int i = x->type.rank - 1; i >= 0 && behind < elems; i--) {
    int64_t size = x->type.dims[i];
    while (x->op == IR_BROADCAST && i > 0 && repeats(x, i) == repeats(x, i - 1))
      size *= x->type.dims[--i];
    if (elems < behind * size)
      return elems % behind == 0 && size % (elems / behind) == 0;
    behind *= size;
  }
  return behind == elems;
}

// What a reduction's operand is computed from, element by element: views other than reshapes, and what is computed in another
// shape on the way, once for each shape.
typedef struct seen_nodes {
  int num;
  const ir_node *at[MOST_SEEN];
} seen_nodes;
typedef struct seen {
  seen_nodes views, computed;
} seen;

static void see(seen_nodes *s, const ir_node *n) {
  if (s->num < MOST_SEEN)
    s->at[s->num++] = n;
}

static void see_shape(seen_nodes *s, const ir_node *n) {
  for (int i = 0; i < s->num; i++)
    if (ir_same_shape(&s->at[i]->type, &n->type))
      return;
  see(s, n);
}

static void look_at(const ir_node *x, int depth, bool reshaped, seen *s) {
  bool view = ir_ops[x->op].cls == IR_CLASS_VIEW,
       pointwise = ir_ops[x->op].cls == IR_CLASS_POINTWISE;
  if (x->op == IR_RESHAPE)
    look_at(x->in[0], depth, true, s);
  else if (view)
    see(&s->views, x);
  else if (pointwise && reshaped)
    see_shape(&s->computed, x);
  for (int i = 0; pointwise && depth > 0 && i < x->num_in; i++)
    look_at(x->in[i], depth - 1, reshaped, s);
}

static bool all_cut_one_axis(const seen_nodes *s, int64_t elems) {
  for (int i = 0; i < s->num; i++)
    if (!cuts_one_axis(s->at[i], elems))
      return false;
  return s->num < MOST_SEEN; // or else there may be others
}

static cut_fit fit_of(const seen *s, int64_t elems) {
  if (!all_cut_one_axis(&s->views, elems))
    return CUT_COPIES;
  return all_cut_one_axis(&s->computed, elems) ? CUT_FITS : CUT_STORES;
}

// chunks == 0 when nothing divides well.
static cut find_cut(const ir_node *n, const int64_t *axes, int num, chunking x) {
  const int64_t *dims = n->in[0]->type.dims;
  int64_t before = 1;
  cut best = {0};
  cut_fit best_fit = x.fit;
  seen s = {0};
  look_at(n->in[0], LOOK, false, &s);
  int64_t stride[IR_MAX_RANK];
  ir_row_major(&n->in[0]->type, stride);
  for (int at = 0; at < num && before <= x.most; before *= dims[axes[at++]]) {
    int64_t behind = stride[axes[at]];
    for (int64_t part = 1; part <= dims[axes[at]] && before * part <= x.most; part++) {
      int64_t chunks = before * part;
      bool whole_axes = part == 1 || part == dims[axes[at]];
      if (dims[axes[at]] % part || chunks < x.least || (!whole_axes && n->type.rank == IR_MAX_RANK))
        continue;
      cut_fit fit = whole_axes ? CUT_FITS : fit_of(&s, behind * (dims[axes[at]] / part));
      if (fit > best_fit || (fit == best_fit && fit > CUT_COPIES &&
                             distance(chunks, x.wanted) < distance(best.chunks, x.wanted))) {
        best = (cut){at, part, chunks};
        best_fit = fit;
      }
    }
  }
  return best;
}

// Cut between two axes: no reshape is needed.
static ir_node *split_between(ir_builder *b, ir_node *n, const int64_t *axes, int num, int outer) {
  ir_node *inner = ir_reduce(b, n->op, n->in[0], axes + outer, num - outer);
  return ir_reduce(b, n->op, inner, axes, outer);
}

// Cut through axes[c.at]: it becomes two axes, `part` and the rest.
static ir_node *split_through(ir_builder *b, ir_node *n, const int64_t *axes, int num, cut c) {
  const ir_type *x = &n->in[0]->type;
  int64_t dims[IR_MAX_RANK], inner_axes[IR_MAX_RANK], split = axes[c.at];
  for (int i = 0; i < x->rank; i++)
    dims[i + (i > split)] = x->dims[i];
  dims[split] = c.part;
  dims[split + 1] = x->dims[split] / c.part;
  for (int i = c.at; i < num; i++)
    inner_axes[i - c.at] = axes[i] + 1;
  ir_node *wide = ir_reshape(b, n->in[0], x->rank + 1, dims);
  ir_node *inner = ir_reduce(b, n->op, wide, inner_axes, num - c.at);
  ir_node *outer = ir_reduce(b, n->op, inner, axes, c.at + 1);
  return ir_reshape(b, outer, n->type.rank, n->type.dims);
}

static ir_node *split_at(ir_builder *b, ir_node *n, const int64_t *axes, int num, cut c) {
  if (!c.chunks)
    return NULL;
  b->scope = n->name;
  if (c.part == 1)
    return split_between(b, n, axes, num, c.at);
  if (c.part == n->in[0]->type.dims[axes[c.at]])
    return c.at + 1 < num ? split_between(b, n, axes, num, c.at + 1) : NULL;
  return split_through(b, n, axes, num, c);
}

// NULL when n is fine as it is.
static ir_node *split(ir_builder *b, const split_uses *uses, ir_node *n) {
  if (!ir_is_fold(n))
    return NULL;
  int num;
  const int64_t *axes = ir_attr_ints(n, IR_ATTR_AXES, &num);
  if (!is_splittable(n)) {
    int at = split_windows_at(n);
    return split_at(b, n, axes, num, (cut){.at = at, .part = 1, .chunks = at});
  }
  chunking x = chunks_of(n);
  cut c = find_cut(n, axes, num, x);
  return c.chunks ? split_at(b, n, axes, num, c) : split_unevenly(b, uses, n, x.wanted);
}

// --- strips of a processor ----------------------------------------------------------------------
static bool is_computed_and_reshaped(const ir_node *x) {
  seen s = {0};
  look_at(x, LOOK, false, &s);
  return s.computed.num > 0;
}

// Not where all that is summed would be stored for it: that takes longer than strips.
static ir_node *split_strip(ir_builder *b, const split_uses *uses, ir_node *n) {
  if (!ir_is_fold(n) || !split_is_strip(n, uses->spread[n->id]))
    return NULL;
  int num;
  const int64_t *axes = ir_attr_ints(n, IR_ATTR_AXES, &num);
  chunking x = chunks_of(n);
  x.fit = CUT_FITS;
  cut c = find_cut(n, axes, num, x);
  if (!c.chunks && is_computed_and_reshaped(n->in[0]))
    return NULL;
  return c.chunks ? split_at(b, n, axes, num, c) : split_unevenly(b, uses, n, x.wanted);
}

// On a GPU a few chunks are as bad as none.
static ir_node *split_well(ir_builder *b, const split_uses *uses, ir_node *n, cut c,
                           double wanted) {
  int num;
  const int64_t *axes = ir_attr_ints(n, IR_ATTR_AXES, &num);
  ir_node *r = (double)c.chunks * FEW < wanted ? split_unevenly(b, uses, n, wanted) : NULL;
  return r ? r : split_at(b, n, axes, num, c);
}

// --- columns ----------------------------------------------------------------------------------
// Between two axes if that makes about as many chunks: what computes the matrix keeps its shape.
static cut find_column_cut(const ir_node *n, const int64_t *axes, int num, double wanted) {
  int64_t before = 1;
  for (int at = 0; at + 1 < num; at++) {
    before *= n->in[0]->type.dims[axes[at]];
    if ((double)before * 2 >= wanted && (double)before <= 2 * wanted)
      return (cut){at + 1, 1, before};
  }
  return find_cut(n, axes, num,
                  (chunking){.wanted = wanted, .least = LEAST_COLUMN_CHUNKS, .most = MAX_CHUNKS});
}

static ir_node *split_column(ir_builder *b, const split_uses *uses, ir_node *n, const int64_t *axes,
                             int num) {
  double wanted = fmin((double)WIDE / (double)ir_elements(&n->type), (double)(extent_of(n) / TALL));
  if (wanted < LEAST_COLUMN_CHUNKS || ir_elements(&n->in[0]->type) < LARGE)
    return NULL;
  return split_well(b, uses, n, find_column_cut(n, axes, num, wanted), wanted);
}

// --- rows of a GPU ------------------------------------------------------------------------------
// First stages of some dozens of results, between two axes: what computes the matrix keeps its shape.
static ir_node *split_stage(ir_builder *b, ir_node *n, const int64_t *axes, int num,
                            double wanted) {
  const int64_t *dims = n->in[0]->type.dims;
  int64_t chunks = 1;
  int at = 0;
  while (at < num && (double)chunks * 2 < wanted)
    chunks *= dims[axes[at++]];
  cut c = {at, 1, at < num && chunks <= MAX_ROW_CHUNKS ? chunks : 0};
  return split_at(b, n, axes, num, c);
}

// The first stage of a long reduction has some dozens of results if its axes divide no better. (More results, as of a
// softmax of 100 long rows, have blocks enough, and stay in the kernel of what uses them; but for a first stage's.)
static ir_node *split_row(ir_builder *b, const split_uses *uses, ir_node *n, const int64_t *axes,
                          int num) {
  double wanted = (double)ROWS / (double)ir_elements(&n->type);
  bool is_stage = n->id < uses->ids && uses->is_stage[n->id];
  if (wanted < FEW || extent_of(n) < MANY)
    return NULL;
  if (ir_elements(&n->type) > MAX_RESULTS)
    return is_stage ? split_stage(b, n, axes, num, wanted) : NULL;
  chunking x = {.wanted = wanted, .least = LEAST_COLUMN_CHUNKS, .most = MAX_ROW_CHUNKS};
  return split_well(b, uses, n, find_cut(n, axes, num, x), wanted);
}

static ir_node *split_for_gpu(ir_builder *b, const split_uses *uses, ir_node *n) {
  int num = 0;
  const int64_t *axes = ir_is_fold(n) ? ir_attr_ints(n, IR_ATTR_AXES, &num) : NULL;
  if (num == 0 || n->type.rank == 0)
    return NULL;
  return axes[num - 1] < n->in[0]->type.rank - 1 ? split_column(b, uses, n, axes, num)
                                                 : split_row(b, uses, n, axes, num);
}

// --- both -------------------------------------------------------------------------------------
typedef ir_node *split_fn(ir_builder *b, const split_uses *uses, ir_node *n);

static bool split_each(ir_func *f, const split_uses *uses, split_fn *split_one) {
  ir_rewrite rw = ir_rewrite_begin(f);
  for (size_t i = 0; i < rw.num_old; i++) {
    ir_node *n = ir_rewrite_next(&rw, i), *r = split_one(&rw.b, uses, n);
    ir_rewrite_done(&rw, i, r ? r : n);
  }
  return ir_rewrite_end(&rw);
}

static bool split_func(ir_func *f) {
  split_uses uses = split_find_uses(f->module->arena, f);
  return split_each(f, &uses, split);
}

static bool split_strips_func(ir_func *f) {
  split_uses uses = split_find_uses(f->module->arena, f);
  uses.spread = split_find_spread(f->module->arena, f);
  return split_each(f, &uses, split_strip);
}

static bool split_columns_func(ir_func *f) {
  split_uses uses = split_find_uses(f->module->arena, f);
  return split_each(f, &uses, split_for_gpu);
}

bool pass_split_reductions(ir_module *m, ir_diags *d) {
  (void)d;
  return pass_each_func(m, split_func);
}

bool pass_split_strips(ir_module *m, ir_diags *d) {
  (void)d;
  return pass_each_func(m, split_strips_func);
}

bool pass_split_columns(ir_module *m, ir_diags *d) {
  (void)d;
  return pass_each_func(m, split_columns_func);
}
