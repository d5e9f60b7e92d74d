// cuda_loop_keep.c: what threads of a LOOP kernel keep in registers from one sweep over a row to
// the next, so that a row is read once.
//
//   softmax of 8192 floats, 256 threads       sweep 0   x from memory, kept; m = max x
//   (8 vectors each, 32 registers)            sweep 1   x kept; e = exp(x - m), kept; s = sum e
//                                             sweep 2   e kept; y = e / s to memory
//
// One rule by bytes: while what is kept at a time takes at most MOST_REGISTERS of a thread, with up
// to 512 threads to a row (16,384 floats of one row), rows are kept in registers. Longer rows are
// swept again, with a maximum and its sum of exponentials in one sweep (online_rows.h), from the L2
// cache, with several turns under way (cuda_loop.c). Shared memory has no place in between: an SM has
// 256 KiB of registers and at most 228 KiB of shared memory, and what is swept again takes little more
// than the time of its bytes to and from memory.
#include "codegen/cuda_loop.h"

#include <string.h>

enum { WORD = 4 };

// --- who needs which load when ---------------------------------------------------------------
typedef struct keep_walk {
  loop_plan *p;
  const cg_kernel *k;
  int phase;
  bool *seen;    // by member, in this phase
  int *last_use; // by member: the last phase that takes it from its scratch row
} keep_walk;

static bool same_elements(const dom_load *a, const dom_load *b) {
  return a->buffer == b->buffer && memcmp(&a->access, &b->access, sizeof a->access) == 0;
}

// The first load of those that read the same elements.
static size_t first_like(const domain *d, size_t load) {
  for (size_t i = 0; i < load; i++)
    if (same_elements(&d->loads.at[i], &d->loads.at[load]))
      return i;
  return load;
}

static bool runs_along_rows(const domain *d, const dom_load *l) {
  bool memory = dom_is_in_memory(l);
  bool table = l->user->op == IR_GATHER && l->operand == 0;
  for (int i = 0; memory && !table && i < d->num_axes; i++)
    if (d->axis[i].reduced && l->access.stride[i] != 0)
      return true;
  return false;
}

static void need_load(keep_walk *w, const dom_load *l) {
  const domain *d = w->k->dom;
  if (!runs_along_rows(d, l))
    return;
  struct loop_kept *kept = &w->p->kept[first_like(d, (size_t)(l - d->loads.at))];
  if (kept->from < 0)
    kept->from = w->phase;
  kept->to = w->phase;
}

static void need_operands(keep_walk *w, size_t i);

static void need_member(keep_walk *w, size_t i) {
  const loop_member *m = &w->p->member[i];
  if (m->level != LEVEL_INNER || m->reduces)
    return;
  if (m->cached && m->depth < w->phase) {
    w->last_use[i] = w->phase;
    return;
  }
  if (w->seen[i])
    return;
  w->seen[i] = true;
  need_operands(w, i);
}

static void need_operands(keep_walk *w, size_t i) {
  const ir_node *n = w->k->k->nodes.at[i];
  for (int j = 0; j < n->num_in; j++) {
    const dom_load *l = dom_find_load(w->k->dom, n, j);
    int member = l ? -1 : cpu_member(w->k, dom_base(n->in[j]));
    if (l)
      need_load(w, l);
    else if (member >= 0)
      need_member(w, (size_t)member);
  }
}

static void walk_phase(keep_walk *w) {
  const cg_kernel *k = w->k;
  memset(w->seen, 0, k->k->nodes.num * sizeof *w->seen);
  for (size_t i = 0; i < k->k->nodes.num; i++) {
    const loop_member *m = &w->p->member[i];
    if (m->depth != w->phase)
      continue;
    if (m->reduces)
      need_operands(w, i);
    else if (m->level == LEVEL_INNER && (m->cached || loop_is_stored(k, k->k->nodes.at[i])))
      need_member(w, i);
  }
}

// --- registers -------------------------------------------------------------------------------
static int registers_of(ir_dtype t, int lanes) {
  return lanes * (ir_dtypes[t].bytes == 8 ? 8 : 4) / WORD;
}

// Of one vector of each value that lives from an earlier phase into `phase` or beyond it.
static int kept_into(const keep_walk *w, int phase) {
  const domain *d = w->k->dom;
  int registers = 0;
  for (size_t i = 0; i < w->k->k->nodes.num; i++)
    if (w->p->member[i].cached && w->p->member[i].depth < phase && w->last_use[i] >= phase)
      registers += registers_of(w->k->k->nodes.at[i]->type.dtype, w->p->lanes);
  for (size_t i = 0; i < d->loads.num; i++)
    if (w->p->kept[i].from >= 0 && w->p->kept[i].from < phase && w->p->kept[i].to >= phase)
      registers += registers_of(d->loads.at[i].buffer->type.dtype, w->p->lanes);
  return registers;
}

int cuda_loop_loaded(const loop_plan *p, const cg_kernel *k) {
  const domain *d = k->dom;
  int registers = 0;
  for (size_t i = 0; i < d->loads.num; i++)
    if (runs_along_rows(d, &d->loads.at[i]) && first_like(d, i) == i)
      registers += registers_of(d->loads.at[i].buffer->type.dtype, p->lanes);
  return registers;
}

int cuda_loop_busy(const loop_plan *p, const cg_kernel *k) {
  enum { ADDRESSES = 24, WORKING = 3 };
  int registers = ADDRESSES + cuda_loop_loaded(p, k), widest = 0;
  for (size_t i = 0; i < k->k->nodes.num; i++) {
    int own = registers_of(k->k->nodes.at[i]->type.dtype, p->lanes);
    registers += p->member[i].reduces ? own : 0;
    widest = own > widest ? own : widest;
  }
  return registers + WORKING * widest;
}

int cuda_loop_takes(const loop_plan *p, const cg_kernel *k) {
  const domain *d = k->dom;
  int registers = cuda_loop_busy(p, k);
  for (size_t i = 0; i < d->loads.num; i++) {
    const dom_load *l = &d->loads.at[i];
    if (!dom_is_in_memory(l) || runs_along_rows(d, l) || first_like(d, i) != i)
      continue;
    bool varies = p->vector_axis >= 0 && l->access.stride[p->vector_axis] != 0;
    registers += registers_of(l->buffer->type.dtype, varies ? p->lanes : 1);
  }
  return registers;
}

int cuda_loop_keep(loop_plan *p, const cg_kernel *k) {
  const domain *d = k->dom;
  keep_walk w = {.p = p, .k = k};
  w.seen = IR_NEW_ARRAY(k->arena, bool, k->k->nodes.num + 1);
  w.last_use = IR_NEW_ARRAY(k->arena, int, k->k->nodes.num + 1);
  p->kept = IR_NEW_ARRAY(k->arena, struct loop_kept, d->loads.num + 1);
  for (size_t i = 0; i < d->loads.num; i++)
    p->kept[i].from = -1;
  for (w.phase = 0; w.phase < p->phases; w.phase++)
    walk_phase(&w);
  int most = 0;
  for (int phase = 1; phase < p->phases; phase++) {
    int registers = kept_into(&w, phase);
    most = registers > most ? registers : most;
  }
  for (size_t i = 0; i < d->loads.num; i++)
    if (p->kept[i].from == p->kept[i].to) // one sweep: nothing to keep
      p->kept[i].from = -1;
  return most;
}

void cuda_loop_keep_nothing(loop_plan *p, const cg_kernel *k) {
  p->kept = NULL;
  p->online = p->phases > 1;
  loop_plan_members(p, k);
}

// --- text ------------------------------------------------------------------------------------
static const char *kept_key(const loop_emit *m, size_t load) {
  return ir_format(m->k->arena, "~load %zu", load);
}

static bool is_kept(const loop_emit *m, size_t load) {
  return m->p->kept && m->p->kept[load].from >= 0;
}

void cuda_loop_declare_kept(loop_emit *m, int turns) {
  const domain *d = m->k->dom;
  for (size_t i = 0; i < d->loads.num; i++) {
    if (!is_kept(m, i))
      continue;
    const ir_node *buffer = d->loads.at[i].buffer;
    const char *base = cg_local_name(m->k->arena, ir_map_new(m->k->arena), buffer);
    const char *name =
        cg_scope_name(m->k->arena, m->e.names, ir_format(m->k->arena, "%s_row", base));
    ir_map_put(m->e.names, kept_key(m, i), (void *)(uintptr_t)name);
    cpu_line(&m->e, "%s %s[%d];", cpu_register(buffer->type.dtype), name, turns);
  }
}

static const char *kept_text(const loop_emit *m, size_t load) {
  const char *row = ir_map_get(m->e.names, kept_key(m, load));
  return ir_format(m->k->arena, "%s[%s]", row, m->turn);
}

void cuda_loop_bind_kept(loop_emit *m) {
  for (size_t i = 0; i < m->k->dom->loads.num; i++)
    if (is_kept(m, i) && m->p->kept[i].from < m->phase && m->phase <= m->p->kept[i].to)
      cpu_bind_load(&m->e, &m->k->dom->loads.at[i], kept_text(m, i));
}

// Before any store of this phase: an output may lie in the memory of an input.
void cuda_loop_fill_kept(loop_emit *m) {
  for (size_t i = 0; i < m->k->dom->loads.num; i++)
    if (is_kept(m, i) && m->p->kept[i].from == m->phase) {
      const char *x = cpu_emit_load(&m->e, &m->k->dom->loads.at[i]);
      cpu_line(&m->e, "%s = %s;", kept_text(m, i), x);
    }
}
