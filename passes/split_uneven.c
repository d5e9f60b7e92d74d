// split_uneven.c: long reductions whose lines no number divides well.
//
//   before:  %s = sum %x {axes=[0]} : f32[1,512]             # %x : f32[65537,512]
//   after:   %y = slice %x : f32[65536,512]                  two stages of equal chunks,
//            %r = reshape %y : f32[32,2048,512]
//            %t = sum %r {axes=[1]} : f32[32,1,512]
//            %u = sum %t {axes=[0]} : f32[1,1,512]
//            %z = slice %x : f32[1,512]                      and what they leave over
//            %s = add %u, %z : f32[1,512]
//
// Lines are the elements of the leading reduced axes, of so many of them that there can be enough chunks: of
// [16,127,127,64] the 2,032 of the first two. Of the numbers of chunks near the one that is wanted one is taken that leaves
// little over, best nothing or one line, which is added where the second stage ends.
//
// Loops read slices of memory, not of what they compute, which would have to be stored:
//   - A pointwise value is cut where it is computed, operand by operand, down to what lies in memory anyway, such as
//     operands of products. What others use, too, is computed once more; what is drawn at random stays whole, and with it the reduction.
//   - Where lines are long, each is summed by itself, and their sums are cut: %x is read as it is computed.
#include "passes/split_uneven.h"

#include "passes/pass.h"

#include <math.h>
#include <string.h>

enum {
  LEAST_LINES = 2,   // of a chunk
  MANY_LINES = 8192, // whose sums are worth two stages
  LONG_LINE = 64,    // elements that are worth a group of threads
  MAX_DEPTH = 12,    // of what is computed once more,
  MAX_SEEN = 64,     // and values
};
// What lines left over cost, in chunks e times as many as wanted: a stage more, as long as they are in chunks; one
// alone has often nothing to be summed.
static const double REST = 0.4, REST_LINES = 0.5, ONE_LINE = 0.2;

// Operand i of n is one that came before.
static bool is_again(const ir_node *n, int i) {
  for (int j = 0; j < i; j++)
    if (n->in[j] == n->in[i])
      return true;
  return false;
}

// In bf16, products read narrow copies, of what is moved for them, too.
static bool reads_memory(const ir_node *n, bool narrow) {
  switch (ir_ops[n->op].cls) {
  case IR_CLASS_POINTWISE:
  case IR_CLASS_REDUCE:
  case IR_CLASS_VIEW:
    return false;
  case IR_CLASS_CONTRACT:
  case IR_CLASS_MOVE:
    return !narrow;
  default:
    return true;
  }
}

// What a product's kernel computes of it and of other matrices, and several use. (With a bias alone, it is the product
// that is stored, and added to where it is used.) In bf16 that is so of two products: one of them would be stored more.
static void find_epilogues(ir_arena *a, const ir_func *f, const uint32_t *num, bool narrow,
                           bool *is_stored) {
  bool *in_product = IR_NEW_ARRAY(a, bool, f->next_id); // and nothing else uses it
  for (size_t i = 0; i < f->nodes.num; i++) {
    const ir_node *n = f->nodes.at[i];
    int joined = ir_ops[n->op].cls == IR_CLASS_CONTRACT, others = 0;
    for (int j = 0; ir_ops[n->op].cls == IR_CLASS_POINTWISE && j < n->num_in; j++) {
      const ir_node *x = n->in[j];
      joined += in_product[x->id];
      others += !in_product[x->id] && x->op != IR_BROADCAST && x->op != IR_CONST;
    }
    in_product[n->id] = joined && num[n->id] == 1;
    is_stored[n->id] |= num[n->id] > 1 && (joined > 1 || (joined && others && !narrow));
  }
}

split_uses split_find_uses(ir_arena *a, const ir_func *f) {
  uint32_t *num = IR_NEW_ARRAY(a, uint32_t, f->next_id);
  bool *is_stage = IR_NEW_ARRAY(a, bool, f->next_id),
       *is_stored = IR_NEW_ARRAY(a, bool, f->next_id);
  bool narrow = strcmp(pass_precision_of(f->module), "bf16") == 0;
  for (size_t i = 0; i < f->results.num; i++)
    num[f->results.at[i].node->id]++;
  for (size_t i = f->nodes.num; i-- > 0;) {
    const ir_node *n = f->nodes.at[i];
    bool is_reduce = ir_ops[n->op].cls == IR_CLASS_REDUCE;
    bool is_view = ir_ops[n->op].cls == IR_CLASS_VIEW && n->op != IR_BROADCAST;
    for (int j = 0; j < n->num_in; j++) {
      const ir_node *x = n->in[j];
      num[x->id] += !is_again(n, j);
      is_stage[x->id] |= is_reduce && x->op == n->op;
      is_stored[x->id] |= reads_memory(n, narrow) || (is_view && is_stored[n->id]);
    }
  }
  find_epilogues(a, f, num, narrow, is_stored);
  return (split_uses){num, is_stage, is_stored, NULL, f->next_id};
}

// Axes [first, first + num) of a type are `lines` lines. Of these, `chunks` chunks of `each` from line `from` on.
typedef struct pieces {
  int first, num;
  int64_t lines, from, chunks, each;
} pieces;

// What of `dims` is before and after the lines, with other axes between.
static int put_dims(const ir_type *x, const pieces *p, int num, const int64_t *between,
                    int64_t *dims) {
  int rank = 0, end = p->first + p->num;
  for (int i = 0; i < p->first; i++)
    dims[rank++] = x->dims[i];
  for (int i = 0; i < num; i++)
    dims[rank++] = between[i];
  for (int i = end; i < x->rank; i++)
    dims[rank++] = x->dims[i];
  return rank;
}

// Of one axis of lines, those of the chunks.
static ir_node *slice_lines(ir_builder *b, ir_node *x, const pieces *p) {
  int64_t start[IR_MAX_RANK] = {0}, stop[IR_MAX_RANK], step[IR_MAX_RANK];
  for (int i = 0; i < x->type.rank; i++) {
    stop[i] = x->type.dims[i];
    step[i] = 1;
  }
  start[p->first] = p->from;
  stop[p->first] = p->from + p->chunks * p->each;
  return ir_slice(b, x, start, stop, step);
}

static ir_node *take_stored(ir_builder *b, ir_node *x, const pieces *p) {
  int64_t dims[IR_MAX_RANK], between[] = {p->chunks, p->each};
  int rank = put_dims(&x->type, p, 1, &p->lines, dims);
  ir_node *taken = slice_lines(b, ir_reshape(b, x, rank, dims), p);
  rank = put_dims(&x->type, p, 2, between, dims);
  return ir_reshape(b, taken, rank, dims);
}

// The same for all lines.
static bool repeats_lines(const ir_node *x, const pieces *p) {
  if (x->op != IR_BROADCAST)
    return false;
  for (int i = 0; i < p->num; i++)
    if (x->in[0]->type.dims[p->first + i] != 1)
      return false;
  return true;
}

static ir_node *take_repeated(ir_builder *b, ir_node *x, const pieces *p) {
  int64_t dims[IR_MAX_RANK], one[] = {1, 1}, between[] = {p->chunks, p->each};
  int rank = put_dims(&x->in[0]->type, p, 2, one, dims);
  ir_node *line = ir_reshape(b, x->in[0], rank, dims);
  put_dims(&x->type, p, 2, between, dims);
  return ir_broadcast(b, line, rank, dims);
}

// Lines are cut, and several axes of them are one, only where they lie in memory as they are counted: a reshape of
// anything else would be a copy.
static bool may_cut_lines(const ir_node *x, const pieces *p) {
  bool reshaped = false;
  for (; x->op == IR_RESHAPE; x = x->in[0])
    reshaped = true;
  return ir_ops[x->op].cls != IR_CLASS_VIEW || (p->num == 1 && !reshaped);
}

static ir_node *take_const(ir_builder *b, ir_node *x, const pieces *p) {
  int64_t between[] = {p->chunks, p->each};
  ir_type type = {.dtype = x->type.dtype};
  type.rank = put_dims(&x->type, p, 2, between, type.dims);
  return ir_const(b, type, ir_attr_num(x, IR_ATTR_VALUE));
}

static bool is_computed(const split_uses *uses, const ir_node *x) {
  return ir_ops[x->op].cls == IR_CLASS_POINTWISE && !(x->id < uses->ids && uses->is_stored[x->id]);
}

static bool is_used_once(const split_uses *uses, const ir_node *x) {
  return x->id < uses->ids && uses->num[x->id] == 1;
}

// Rows of a table, named line by line.
static bool is_cut_by_index(const split_uses *uses, const ir_node *x, const pieces *p) {
  return x->op == IR_GATHER && is_used_once(uses, x) && p->first + p->num <= x->in[1]->type.rank;
}

// What is taken of one operand: several nodes may read a value, which is cut once.
typedef struct taken {
  const ir_node *from;
  ir_node *to;
  int depth; // that it was looked at from
} taken;
typedef struct cutter {
  ir_builder *b;
  const split_uses *uses;
  const pieces *p;
  IR_VEC(taken) seen;
} cutter;

static cutter cutter_for(ir_builder *b, const split_uses *uses, const pieces *p) {
  return (cutter){.b = b, .uses = uses, .p = p};
}

static taken *find_seen(cutter *c, const ir_node *x) {
  for (size_t i = 0; i < c->seen.num; i++)
    if (c->seen.at[i].from == x)
      return &c->seen.at[i];
  IR_PUSH(c->b->func->module->arena, c->seen, ((taken){x, NULL, MAX_DEPTH}));
  return &c->seen.at[c->seen.num - 1];
}

// Whether take() needs nothing stored that is not.
static bool can_take(cutter *c, const ir_node *x, int depth) {
  if ((ir_is_random(x) && is_computed(c->uses, x)) || depth == MAX_DEPTH || c->seen.num > MAX_SEEN)
    return false;
  taken *t = find_seen(c, x);
  if (t->depth <= depth)
    return true; // or the answer is no already
  t->depth = depth;
  if (is_cut_by_index(c->uses, x, c->p))
    return can_take(c, x->in[1], depth + 1);
  if (x->op == IR_CONST || repeats_lines(x, c->p))
    return true;
  for (int i = 0; is_computed(c->uses, x) && i < x->num_in; i++)
    if (!can_take(c, x->in[i], depth + 1))
      return false;
  return is_computed(c->uses, x) || may_cut_lines(x, c->p);
}

static ir_node *take(cutter *c, ir_node *x);

static ir_node *take_pointwise(cutter *c, ir_node *x) {
  ir_node **in = IR_NEW_ARRAY(c->b->func->module->arena, ir_node *, (size_t)x->num_in);
  for (int i = 0; i < x->num_in; i++)
    in[i] = take(c, x->in[i]);
  int64_t between[] = {c->p->chunks, c->p->each};
  ir_type type = {.dtype = x->type.dtype};
  type.rank = put_dims(&x->type, c->p, 2, between, type.dims);
  return ir_build(c->b, x->op, NULL, x->num_in, in, x->num_attrs, x->attrs, &type);
}

static ir_node *cut_node(cutter *c, ir_node *x) {
  if (x->op == IR_CONST)
    return take_const(c->b, x, c->p);
  if (repeats_lines(x, c->p))
    return take_repeated(c->b, x, c->p);
  if (is_cut_by_index(c->uses, x, c->p))
    return ir_gather(c->b, x->in[0], take(c, x->in[1]));
  return is_computed(c->uses, x) ? take_pointwise(c, x) : take_stored(c->b, x, c->p);
}

// The chunks of x, as two axes in place of the lines.
static ir_node *take(cutter *c, ir_node *x) {
  ir_node *done = find_seen(c, x)->to;
  if (done)
    return done;
  done = cut_node(c, x);
  find_seen(c, x)->to = done; // where it is now
  return done;
}

// Reduced axes side by side, up to as many lines as can be cut well.
static pieces find_lines(const ir_node *n, const int64_t *axes, int num, double wanted) {
  const int64_t *dims = n->in[0]->type.dims;
  pieces p = {.first = (int)axes[0], .num = 1, .lines = dims[axes[0]]};
  while (p.num < num && axes[p.num] == axes[p.num - 1] + 1 &&
         (double)p.lines < LEAST_LINES * wanted)
    p.lines *= dims[axes[p.num++]];
  return p;
}

static double cost_of(int64_t chunks, int64_t lines, double wanted) {
  double cost = fabs(log((double)chunks / wanted));
  int64_t rest = lines % chunks;
  if (rest > 1)
    return cost + REST + REST_LINES * (double)rest / (double)(lines / chunks);
  return rest ? cost + ONE_LINE : cost;
}

// How many chunks: from half to twice as many as wanted; 0: there are not so many lines.
static int64_t choose_chunks(int64_t lines, double wanted) {
  int64_t best = 0, first = wanted > 4 ? (int64_t)ceil(wanted / 2) : 2;
  for (int64_t c = first; (double)c <= 2 * wanted && c * LEAST_LINES <= lines; c++)
    if (!best || cost_of(c, lines, wanted) < cost_of(best, lines, wanted))
      best = c;
  return best;
}

// Behind the chunks, the lines that are left over as one.
static pieces rest_of(const pieces *p) {
  int64_t end = p->chunks * p->each;
  return (pieces){p->first, p->num, p->lines, end, 1, p->lines - end};
}

// Each chunk by itself: x as take() has left it.
static ir_node *reduce(ir_builder *b, const ir_node *n, ir_node *x, const pieces *p,
                       const int64_t *axes, int num) {
  int64_t reduced[IR_MAX_RANK];
  int count = 0;
  if (p->each > 1)
    reduced[count++] = p->first + 1;
  for (int i = p->num; i < num; i++)
    reduced[count++] = axes[i] - p->num + 2;
  return count ? ir_reduce(b, n->op, x, reduced, count) : x;
}

static ir_op combination(ir_op op) {
  return op == IR_SUM ? IR_ADD : op == IR_REDUCE_MAX ? IR_MAX : IR_MIN;
}

// Each line by itself, then their sums; NULL: they are short.
static ir_node *split_lines(ir_builder *b, const split_uses *uses, ir_node *n, const pieces *p,
                            const int64_t *axes, int num, double wanted) {
  const ir_type *x = &n->in[0]->type;
  if (num == p->num || ir_elements(x) / ir_elements(&n->type) < LONG_LINE * p->lines)
    return NULL;
  ir_node *lines = ir_reduce(b, n->op, n->in[0], axes + p->num, num - p->num);
  ir_node *all = ir_reduce(b, n->op, lines, axes, p->num), *cut = NULL;
  if (p->lines > MANY_LINES)
    cut = split_unevenly(b, uses, all, fmin(wanted, sqrt((double)p->lines)));
  return cut ? cut : all;
}

ir_node *split_unevenly(ir_builder *b, const split_uses *uses, ir_node *n, double wanted) {
  int num;
  const int64_t *axes = ir_attr_ints(n, IR_ATTR_AXES, &num);
  pieces p = find_lines(n, axes, num, wanted);
  p.chunks = choose_chunks(p.lines, wanted);
  if (p.chunks == 0 || n->type.rank - p.num + 2 > IR_MAX_RANK)
    return NULL;
  p.each = p.lines / p.chunks;
  b->scope = n->name;
  ir_node *by_lines = split_lines(b, uses, n, &p, axes, num, wanted);
  if (by_lines)
    return by_lines;
  cutter chunks = cutter_for(b, uses, &p);
  if (!can_take(&chunks, n->in[0], 0))
    return NULL;
  int64_t outer = p.first;
  ir_node *parts = reduce(b, n, take(&chunks, n->in[0]), &p, axes, num);
  ir_node *all = ir_reduce(b, n->op, parts, &outer, 1);
  if (p.chunks * p.each < p.lines) {
    pieces left = rest_of(&p);
    cutter ends = cutter_for(b, uses, &left);
    ir_node *rest = reduce(b, n, take(&ends, n->in[0]), &left, axes, num);
    all = ir_binary(b, combination(n->op), all, rest);
  }
  return ir_reshape(b, all, n->type.rank, n->type.dims);
}
