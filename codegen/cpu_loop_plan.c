// cpu_loop_plan.c: where and when each member of a LOOP kernel is computed.
//
//   softmax      m = max x       depth 0, phase 0: over R
//                e = exp(x - m)  depth 1, phase 1: over R; cached (exp is dear), read in phase 2
//                s = sum e       depth 1
//                y = e / s       depth 2, phase 2
// Cheap members (x - mean) are computed again in each phase that needs them.
#include "codegen/cpu_loop.h"
#include "codegen/online_rows.h"

enum {
  CHEAP_FLOPS = 8,               // up to here computing again beats a scratch row
  CACHE_BYTES = 64 * 1024,       // one scratch row
  ALL_CACHES_BYTES = 128 * 1024, // all of them: they are on the stack of a thread
  BLOCK = 4,                     // accumulators that hide the latency of an add
  BLOCK_FLOPS = 64,              // of one step: more would spill registers
};

static bool is_reduction(const ir_node *n) {
  return ir_ops[n->op].cls == IR_CLASS_REDUCE;
}

static const loop_member *operand_member(const loop_plan *p, const cg_kernel *k, const ir_node *n,
                                         int i) {
  if (dom_find_load(k->dom, n, i))
    return NULL;
  int at = cpu_member(k, dom_base(n->in[i]));
  return at < 0 ? NULL : &p->member[at];
}

static bool varies_reduced(const cg_kernel *k, size_t member) {
  for (int a = 0; a < k->dom->num_axes; a++)
    if (k->dom->axis[a].reduced && k->dom->varies[member * DOM_MAX_AXES + (size_t)a])
      return true;
  return false;
}

static loop_level level_of(const loop_plan *p, const cg_kernel *k, size_t member, int depth) {
  const bool *varies = k->dom->varies + member * DOM_MAX_AXES;
  if (varies_reduced(k, member))
    return LEVEL_INNER;
  if (!p->across && p->vector_axis >= 0 && (varies[p->vector_axis] || depth > 0))
    return LEVEL_LANES;
  if (p->turned_axis >= 0 && varies[p->turned_axis])
    return LEVEL_LANES;
  for (int a = 0; a < k->dom->num_axes; a++)
    if (varies[a])
      return LEVEL_ROW;
  return depth > 0 ? LEVEL_ROW : LEVEL_FUNC;
}

// The first sum that shares a maximum has it for itself.
static const ir_node *max_taken_with(const loop_plan *p, const cg_kernel *k, size_t sum) {
  const ir_node *max = p->online ? online_rows_find(k->dom, k->k->nodes.at[sum]) : NULL;
  for (size_t i = 0; max && i < sum; i++)
    if (p->member[i].max == max)
      return NULL;
  return max;
}

static void describe(loop_plan *p, const cg_kernel *k, size_t i) {
  const ir_node *n = k->k->nodes.at[i];
  loop_member *m = &p->member[i];
  m->reduces = is_reduction(n);
  m->cost = ir_ops[n->op].flops + (n->op == IR_GATHER ? CHEAP_FLOPS : 0);
  for (int j = 0; j < n->num_in; j++) {
    const loop_member *o = operand_member(p, k, n, j);
    if (!o)
      continue;
    int depth = o->depth + o->reduces;
    m->depth = depth > m->depth ? depth : m->depth;
    if (o->level == LEVEL_INNER)
      m->cost += o->cost;
  }
  m->cost = m->cost > 1000 ? 1000 : m->cost;
  m->max = max_taken_with(p, k, i);
  if (m->max)
    m->depth = p->member[cpu_member(k, m->max)].depth;
  // A reduction's own loop is inside the level of its result.
  m->level = level_of(p, k, i, m->depth + m->reduces);
  p->has_reduce |= m->reduces;
}

bool loop_is_stored(const cg_kernel *k, const ir_node *n) {
  for (size_t i = 0; i < k->dom->stores.num; i++)
    if (k->dom->stores.at[i].node == n)
      return true;
  return false;
}

static int count_phases(const loop_plan *p, const cg_kernel *k) {
  int phases = 1;
  for (size_t i = 0; i < k->k->nodes.num; i++) {
    const loop_member *m = &p->member[i];
    bool loops = m->reduces || (m->level == LEVEL_INNER && loop_is_stored(k, k->k->nodes.at[i]));
    if (loops && m->depth + 1 > phases)
      phases = m->depth + 1;
  }
  return phases;
}

// --- caches ----------------------------------------------------------------------------------
int64_t loop_cache_vectors(const loop_plan *p) {
  int64_t per_row = p->across ? (p->extent + p->lanes - 1) / p->lanes : 1;
  return p->red_rows * per_row;
}

typedef struct cache_walk {
  loop_plan *p;
  const cg_kernel *k;
  int phase;
  int *seen; // by member: phase + 1 of the last visit
  int64_t bytes;
} cache_walk;

static bool worth_caching(cache_walk *w, size_t i) {
  const loop_member *m = &w->p->member[i];
  int64_t element = ir_dtypes[w->k->k->nodes.at[i]->type.dtype].bytes == 8 ? 8 : 4;
  int64_t bytes = loop_cache_vectors(w->p) * w->p->lanes * element;
  bool room = bytes <= CACHE_BYTES && w->bytes + bytes <= ALL_CACHES_BYTES;
  if (w->k->target->cuda) // registers: the generator looks what fits (cuda_loop_keep.c)
    room = !w->p->online;
  if (m->depth >= w->phase || m->cost < CHEAP_FLOPS || !room)
    return false;
  w->bytes += bytes;
  return true;
}

static void need_in_phase(cache_walk *w, size_t i) {
  loop_member *m = &w->p->member[i];
  if (m->level != LEVEL_INNER || m->reduces || m->cached || w->seen[i] == w->phase + 1)
    return;
  w->seen[i] = w->phase + 1;
  if (worth_caching(w, i)) {
    m->cached = true;
    return;
  }
  const ir_node *n = w->k->k->nodes.at[i];
  for (int j = 0; j < n->num_in; j++) {
    const loop_member *o = operand_member(w->p, w->k, n, j);
    if (o)
      need_in_phase(w, (size_t)(o - w->p->member));
  }
}

static void walk_operands(cache_walk *w, size_t i) {
  const ir_node *n = w->k->k->nodes.at[i];
  for (int j = 0; j < n->num_in; j++) {
    const loop_member *o = operand_member(w->p, w->k, n, j);
    if (o)
      need_in_phase(w, (size_t)(o - w->p->member));
  }
}

// From the last phase down: what a phase takes from an earlier one is computed there.
static void plan_caches(loop_plan *p, const cg_kernel *k) {
  cache_walk w = {.p = p, .k = k, .seen = IR_NEW_ARRAY(k->arena, int, k->k->nodes.num)};
  for (w.phase = p->phases - 1; w.phase > 0; w.phase--)
    for (size_t i = 0; i < k->k->nodes.num; i++) {
      const loop_member *m = &p->member[i];
      bool target = m->reduces || m->cached || loop_is_stored(k, k->k->nodes.at[i]);
      if (m->depth == w.phase && target && (m->reduces || m->level == LEVEL_INNER))
        walk_operands(&w, i);
    }
}

// A scratch row has a constant size; without any, nothing but loop bounds depends on the extent.
static bool is_flat(const loop_plan *p, const cg_kernel *k) {
  for (size_t i = 0; i < k->k->nodes.num; i++)
    if (p->member[i].cached)
      return false;
  return k->dom->num_axes == 1;
}

// More vectors per step: for the latency of accumulators (across), or to read wide rows of memory
// in column sums (along; only with one phase, whose results are then held in arrays).
static int choose_block(const loop_plan *p, const cg_kernel *k) {
  int64_t vectors = p->extent / p->lanes;
  int flops = 0, block = BLOCK;
  for (size_t i = 0; i < k->k->nodes.num; i++)
    if (p->member[i].level == LEVEL_INNER || p->member[i].reduces)
      flops += ir_ops[k->k->nodes.at[i]->op].flops;
  if (k->target->cuda || !p->has_reduce || (!p->across && p->phases > 1))
    return 1;
  while (block > 1 && ((vectors < block && !p->flat) || flops * block > 4 * BLOCK_FLOPS))
    block /= 2;
  return block;
}

void loop_plan_members(loop_plan *p, const cg_kernel *k) {
  p->member = IR_NEW_ARRAY(k->arena, loop_member, k->k->nodes.num);
  for (size_t i = 0; i < k->k->nodes.num; i++)
    describe(p, k, i);
  p->phases = count_phases(p, k);
  plan_caches(p, k);
  p->flat = is_flat(p, k);
  p->block = choose_block(p, k);
}
