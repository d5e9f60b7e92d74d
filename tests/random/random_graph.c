// random_graph.c: valid random modules. The same seed gives the same module.
//
// The module has params, buffers, a flag, inputs, `init` (writes the params) and `step`. Ops are
// added one move at a time to values at hand (random_ops.c, random_networks.c). Each
// value carries bounds of its size and rounding noise, so that f32 kernels and the double
// interpreter agree; ops with jumps get values that f32 holds exactly, ops with kinks get
// values without ties.
#include "tests/random/random_parts.h"

#include <math.h>

enum { MAX_ELEMENTS = 4096, INT_INPUT_LIMIT = 11 };

// --- numbers ---------------------------------------------------------------------------------
static uint64_t rand_u64(uint64_t *state) { // splitmix64
  uint64_t z = *state += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

int rand_below(rand_gen *g, int n) {
  return (int)(rand_u64(&g->state) % (uint64_t)n);
}

bool rand_chance(rand_gen *g, int percent) {
  return rand_below(g, 100) < percent;
}

static double rand_real(uint64_t *state, double lo, double hi) {
  return lo + (hi - lo) * ldexp((double)(rand_u64(state) >> 11), -53);
}

int64_t rand_dim(rand_gen *g) {
  static const int64_t sizes[] = {1, 1, 2, 3, 3, 4, 5, 5, 7, 8, 16, 17, 33};
  return sizes[rand_below(g, sizeof sizes / sizeof *sizes)];
}

// --- values at hand ------------------------------------------------------------------------------
// Half of the picks are among the last few, so that graphs grow deep as well as wide.
static size_t pick(rand_gen *g, size_t num) {
  size_t near = num < 8 || rand_chance(g, 50) ? num : 8;
  return num - 1 - (size_t)rand_below(g, (int)near);
}

rand_val rand_float(rand_gen *g) {
  return g->floats.at[pick(g, g->floats.num)];
}

rand_val rand_int(rand_gen *g) {
  return g->ints.at[pick(g, g->ints.num)];
}

static rand_val fresh_uniform(rand_gen *g) {
  int64_t dims[] = {rand_dim(g), rand_dim(g)};
  ir_node *n = ir_uniform(&g->b, ir_tensor(IR_F32, 2, dims), g->seed, g->step, g->stream++);
  return rand_push(g, n, 1, 0, true, false);
}

rand_val rand_exact(rand_gen *g) {
  for (int tries = 0; tries < 12; tries++) {
    rand_val v = rand_float(g);
    if (v.exact)
      return v;
  }
  return fresh_uniform(g);
}

rand_val rand_distinct(rand_gen *g) {
  for (int tries = 0; tries < 12; tries++) {
    rand_val v = rand_float(g);
    if (v.distinct)
      return v;
  }
  return g->floats.at[0]; // the first input
}

rand_val rand_scaled(rand_gen *g, rand_val v, double by) {
  ir_node *n = ir_binary_const(&g->b, IR_MUL, v.n, by);
  return (rand_val){n, v.mag * by, v.noise * by + v.mag * by, false, v.distinct};
}

rand_val rand_push(rand_gen *g, ir_node *n, double mag, double noise, bool exact, bool distinct) {
  rand_val v = {n, mag, noise + (exact ? 0 : mag), exact, distinct};
  if (mag > 6 || v.noise > 200) {
    double by = fmin(2 / mag, 50 / (v.noise + 1));
    v = rand_scaled(g, v, ldexp(1, ilogb(by)));
  }
  IR_PUSH(g->arena, g->floats, v);
  return v;
}

rand_val rand_like(rand_gen *g, rand_val v, ir_node *n) {
  return rand_push(g, n, v.mag, v.noise, v.exact, v.distinct);
}

void rand_push_int(rand_gen *g, ir_node *n, double mag) {
  if (mag > 1000) {
    n = ir_binary_const(&g->b, IR_MOD, n, 13);
    mag = 13;
  }
  rand_val v = {.n = n, .mag = mag, .exact = true};
  IR_PUSH(g->arena, g->ints, v);
}

rand_val rand_param(rand_gen *g, const char *name, int rank, const int64_t *dims) {
  ir_type t = ir_tensor(IR_F32, rank, dims);
  ir_state *s = ir_state_new(g->m, name, t, IR_ROLE_PARAM, (ir_loc){0});
  // init draws from a normal distribution cut at 4 deviations of 1/4.
  return rand_push(g, ir_read(&g->b, s), 1, 1, false, true);
}

// --- bringing a value to a shape -----------------------------------------------------------------
static bool can_broadcast(const ir_type *t, int rank, const int64_t *dims) {
  for (int i = 0; i < t->rank; i++) {
    int at = rank - t->rank + i;
    if (at < 0 || (t->dims[i] != 1 && t->dims[i] != dims[at]))
      return false;
  }
  return true;
}

// The mean over everything.
static rand_val fit_by_mean(rand_gen *g, rand_val v) {
  int64_t axes[IR_MAX_RANK];
  int num = 0;
  for (int i = 0; i < v.n->type.rank; i++)
    axes[num++] = i;
  double count = (double)ir_elements(&v.n->type);
  rand_val sum = v;
  sum.n = ir_reduce(&g->b, IR_SUM, v.n, axes, num);
  sum.exact = sum.distinct = false;
  sum.mag *= count;
  sum.noise = sum.noise * count + sum.mag;
  sum = rand_scaled(g, sum, 1 / count);
  sum.n = ir_reshape(&g->b, sum.n, 0, NULL);
  return sum;
}

// As one row of elements, cut or padded to the number that is wanted.
static rand_val fit_by_row(rand_gen *g, rand_val v, int64_t want) {
  int64_t have = ir_elements(&v.n->type), zero = 0, one = 1;
  v.n = ir_reshape(&g->b, v.n, 1, &have);
  if (have > want)
    v.n = ir_slice(&g->b, v.n, &zero, &want, &one);
  if (have < want) {
    int64_t more = want - have;
    double value = ir_is_float(v.n->type.dtype) ? 0.5 : 1;
    v.n = ir_pad(&g->b, v.n, &zero, &more, value);
    v.distinct = false;
    v.mag = fmax(v.mag, value);
  }
  return v;
}

rand_val rand_fit(rand_gen *g, rand_val v, int rank, const int64_t *dims) {
  ir_type want = ir_tensor(v.n->type.dtype, rank, dims);
  if (ir_same_shape(&v.n->type, &want))
    return v;
  if (!can_broadcast(&v.n->type, rank, dims)) {
    bool mean = rand_chance(g, 25) && ir_is_float(v.n->type.dtype) && !v.exact;
    v = mean ? fit_by_mean(g, v) : fit_by_row(g, v, ir_elements(&want));
  }
  if (ir_elements(&v.n->type) == ir_elements(&want))
    v.n = ir_reshape(&g->b, v.n, rank, dims);
  else
    v.distinct = false;
  v.n = ir_broadcast_to(&g->b, v.n, rank, dims);
  return v;
}

rand_val rand_positive(rand_gen *g, rand_val v) {
  ir_node *n = ir_binary(&g->b, IR_MUL, v.n, v.n);
  n = ir_binary_const(&g->b, IR_ADD, n, 0.5);
  double mag = v.mag * v.mag + 0.5;
  return (rand_val){n, mag, 2 * v.mag * v.noise + 2 * mag, false, false};
}

// --- the module ----------------------------------------------------------------------------------
static ir_type random_shape(rand_gen *g, ir_dtype t) {
  int64_t dims[4];
  int rank = 1 + rand_below(g, 4);
  int64_t n = 1;
  for (int i = 0; i < rank; i++) {
    dims[i] = rand_dim(g);
    if (n * dims[i] > MAX_ELEMENTS / 4)
      dims[i] = 1;
    n *= dims[i];
  }
  return ir_tensor(t, rank, dims);
}

static void start_module(rand_gen *g) {
  const ir_loc none = {0};
  ir_state *seed = ir_state_new(g->m, "seed", ir_scalar(IR_I64), IR_ROLE_SEED, none);
  ir_state *step = ir_state_new(g->m, "step", ir_scalar(IR_I64), IR_ROLE_COUNTER, none);
  ir_state_new(g->m, "lr", ir_scalar(IR_F32), IR_ROLE_FLAG, none)->value = 0.125;
  seed->value = 42;
  g->b = ir_build_at_end(ir_func_new(g->m, "step"));
  rand_push(g, ir_input(&g->b, "x", random_shape(g, IR_F32)), 2, 0, true, true);
  rand_push(g, ir_input(&g->b, "y", random_shape(g, IR_F32)), 2, 0, true, true);
  rand_push_int(g, ir_input(&g->b, "label", random_shape(g, IR_I32)), INT_INPUT_LIMIT);
  ir_node *bytes = ir_input(&g->b, "bytes", random_shape(g, IR_U8));
  rand_push_int(g, ir_cast(&g->b, bytes, IR_I32), INT_INPUT_LIMIT);
  g->seed = ir_read(&g->b, seed);
  g->step = ir_read(&g->b, step);
  for (int i = 0; i < 3; i++) {
    ir_type t = random_shape(g, IR_F32);
    rand_param(g, ir_format(g->arena, "p%d", i), t.rank, t.dims);
  }
  ir_type t = random_shape(g, IR_F32);
  ir_state *average = ir_state_new(g->m, "average", t, IR_ROLE_BUFFER, none);
  rand_push(g, ir_read(&g->b, average), 6, 6, false, false);
}

static void add_moves(rand_gen *g, const rand_choice *moves, size_t until) {
  int total = 0;
  for (const rand_choice *c = moves; c->move; c++)
    total += c->weight;
  while (g->b.func->nodes.num < until) {
    int at = rand_below(g, total);
    const rand_choice *c = moves;
    for (; at >= c->weight; c++)
      at -= c->weight;
    c->move(g);
  }
}

// --- results -------------------------------------------------------------------------------------
static ir_node *mean_square(rand_gen *g, ir_node *x) {
  int64_t axes[IR_MAX_RANK];
  for (int i = 0; i < x->type.rank; i++)
    axes[i] = i;
  ir_node *sum = ir_reduce(&g->b, IR_SUM, ir_binary(&g->b, IR_MUL, x, x), axes, x->type.rank);
  sum = ir_binary_const(&g->b, IR_MUL, sum, 1 / (double)ir_elements(&x->type));
  return ir_reshape(&g->b, sum, 0, NULL);
}

// The loss depends on every float value that nothing else uses, so that no op is dead.
static ir_node *add_loss(rand_gen *g) {
  const ir_func *f = g->b.func;
  bool *used = IR_NEW_ARRAY(g->arena, bool, f->next_id);
  for (size_t i = 0; i < f->nodes.num; i++)
    for (int k = 0; k < f->nodes.at[i]->num_in; k++)
      used[f->nodes.at[i]->in[k]->id] = true;
  ir_node *loss = NULL;
  for (size_t i = 0; i < g->floats.num; i++) {
    ir_node *n = g->floats.at[i].n;
    if (used[n->id] || n->op == IR_INPUT)
      continue;
    ir_node *term = mean_square(g, n);
    loss = loss ? ir_binary(&g->b, IR_ADD, loss, term) : term;
  }
  loss = loss ? loss : mean_square(g, g->floats.at[0].n);
  return ir_binary_const(&g->b, IR_MUL, loss, 0.125);
}

static void add_outputs(rand_gen *g) {
  for (int i = 0; i < 3; i++)
    ir_result_add(g->b.func, ir_format(g->arena, "out%d", i), IR_RESULT_OUTPUT, rand_float(g).n);
  ir_result_add(g->b.func, "whole", IR_RESULT_OUTPUT, rand_int(g).n);
  ir_state *average = ir_find_state(g->m, "average");
  rand_val v = rand_fit(g, rand_float(g), average->type.rank, average->type.dims);
  ir_node *old = ir_read(&g->b, average);
  ir_node *new = ir_binary(&g->b, IR_ADD, ir_binary_const(&g->b, IR_MUL, old, 0.75),
                           ir_binary_const(&g->b, IR_MUL, v.n, 0.25));
  ir_write(&g->b, average, new);
}

// The first read of each state, by state id; NULL where there is none.
static ir_node **find_reads(const rand_gen *g) {
  const ir_func *f = g->b.func;
  ir_node **reads = IR_NEW_ARRAY(g->arena, ir_node *, g->m->states.num);
  for (size_t i = 0; i < f->nodes.num; i++) {
    ir_node *n = f->nodes.at[i];
    if (n->op == IR_READ && !reads[n->state->id])
      reads[n->state->id] = n;
  }
  return reads;
}

// loss + mean(d loss / d p ** 2) / 4: gradients of gradients, of all that is between p and the loss.
static ir_node *add_penalty(rand_gen *g, ir_node *loss) {
  ir_node **reads = find_reads(g), *p = NULL;
  for (size_t i = 0; i < g->m->states.num && !p; i++)
    if (g->m->states.at[i]->role == IR_ROLE_PARAM)
      p = reads[i];
  if (!p)
    return loss;
  ir_node *slope = mean_square(g, ir_grad(&g->b, loss, p));
  return ir_binary(&g->b, IR_ADD, loss, ir_binary_const(&g->b, IR_MUL, slope, 0.25));
}

static void add_sgd(rand_gen *g, ir_node *loss) {
  ir_node **reads = find_reads(g);
  ir_node *lr = ir_read(&g->b, ir_find_state(g->m, "lr"));
  for (size_t i = 0; i < g->m->states.num; i++) {
    ir_state *s = g->m->states.at[i];
    if (s->role != IR_ROLE_PARAM)
      continue;
    ir_node *p = reads[s->id], *d = ir_grad(&g->b, loss, p);
    ir_node *rate = ir_broadcast_to(&g->b, lr, s->type.rank, s->type.dims);
    ir_write(&g->b, s, ir_binary(&g->b, IR_SUB, p, ir_binary(&g->b, IR_MUL, rate, d)));
  }
}

static void add_init(rand_gen *g) {
  ir_builder b = ir_build_at_end(ir_func_new(g->m, "init"));
  ir_node *seed = ir_read(&b, ir_find_state(g->m, "seed"));
  ir_node *zero = ir_const(&b, ir_scalar(IR_I64), 0);
  for (size_t i = 0; i < g->m->states.num; i++) {
    ir_state *s = g->m->states.at[i];
    if (s->role != IR_ROLE_PARAM)
      continue;
    ir_node *x = ir_normal(&b, s->type, seed, zero, (int64_t)i);
    x = ir_binary_const(&b, IR_MUL, x, 0.25);
    x = ir_binary_const(&b, IR_MIN, ir_binary_const(&b, IR_MAX, x, -1), 1);
    ir_write(&b, s, x);
  }
}

ir_module *ir_random_module(ir_arena *a, ir_random_options o) {
  rand_gen g = {.arena = a, .m = ir_module_new(a, "random"), .o = o, .state = o.seed * 2 + 1};
  start_module(&g);
  size_t until = g.b.func->nodes.num + (size_t)(o.num_nodes > 0 ? o.num_nodes : 1);
  add_moves(&g, o.networks ? rand_network_moves : rand_plain_moves, until);
  add_outputs(&g);
  ir_node *loss = add_loss(&g);
  loss = o.penalised ? add_penalty(&g, loss) : loss;
  ir_result_add(g.b.func, "loss", IR_RESULT_LOSS, loss);
  if (o.differentiable)
    add_sgd(&g, loss);
  ir_state *step = ir_find_state(g.m, "step");
  ir_write(&g.b, step, ir_binary_const(&g.b, IR_ADD, g.step, 1));
  add_init(&g);
  return g.m;
}

// --- inputs --------------------------------------------------------------------------------------
// Floats are such that f32 holds them, never 0; integers mostly fit as indices of small tables.
static double input_value(ir_dtype t, uint64_t *state) {
  if (ir_is_float(t)) {
    double v = (double)(float)rand_real(state, 0.0625, 2);
    return rand_u64(state) % 2 ? v : -v;
  }
  int limit = t == IR_BOOL ? 2 : INT_INPUT_LIMIT;
  return (double)(rand_u64(state) % (uint64_t)limit);
}

ir_tensor_value *ir_random_inputs(ir_arena *a, const ir_func *f, uint64_t seed) {
  IR_VEC(ir_tensor_value) list = {0};
  uint64_t state = seed ^ 0x5851F42D4C957F2Du;
  for (size_t i = 0; i < f->nodes.num; i++) {
    const ir_node *n = f->nodes.at[i];
    if (n->op != IR_INPUT)
      continue;
    int64_t num = ir_elements(&n->type);
    ir_tensor_value v = {n->type, IR_NEW_ARRAY(a, double, num)};
    for (int64_t k = 0; k < num; k++)
      v.at[k] = input_value(n->type.dtype, &state);
    IR_PUSH(a, list, v);
  }
  return list.at;
}
