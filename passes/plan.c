// plan.c: gives every state, staged input, temporary and result its place in the one arena.
//
//   0            state_bytes          + staging_bytes            + temp_bytes = arena_bytes
//   | w | m | v | ... | batch 0 | batch 1 | temporaries of init, step, eval, ... over each other |
//
// Functions never run at the same time and keep nothing between calls but states, so that their
// temporaries share one region. Needs: pass_order, and the workspaces of all kernels.
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "passes/plan_parts.h"

enum {
  WISH_STEPS = 10000000 // of the packer, for each share of the peak that is tried
};

typedef struct planner {
  ir_arena *arena;
  ir_module *m;
  plan *p;
  const plan_wishes *wishes;
  const plan_edit *edit;
  ir_diags *diags; // of the edit
} planner;

int plan_func_index(const ir_func *f) {
  for (size_t i = 0; i < f->module->funcs.num; i++)
    if (f->module->funcs.at[i] == f)
      return (int)i;
  BUG("function %s is not in its module", f->name);
}

static plan_buffer whole_run(const char *name, plan_kind kind, int64_t bytes, int64_t offset) {
  return (plan_buffer){.name = name,
                       .kind = kind,
                       .bytes = bytes,
                       .offset = offset,
                       .first = 0,
                       .last = INT_MAX,
                       .reuses = -1};
}

// State `id` is buffer `id`.
static void place_states(planner *x) {
  int64_t at = 0;
  for (size_t i = 0; i < x->m->states.num; i++) {
    const ir_state *s = x->m->states.at[i];
    plan_buffer b = whole_run(s->name, PLAN_STATE, ir_bytes(&s->type), at);
    b.state = s;
    IR_PUSH(x->arena, x->p->buffers, b);
    at += plan_align(b.bytes);
  }
  x->p->state_bytes = at;
}

// --- staging ------------------------------------------------------------------------------------
// Inputs of one name are one input, whichever functions have it.
static void collect_inputs(planner *x, ir_map *inputs) {
  for (size_t i = 0; i < x->m->funcs.num; i++) {
    ir_func *f = x->m->funcs.at[i];
    for (size_t j = 0; j < f->nodes.num; j++) {
      ir_node *n = f->nodes.at[j];
      plan_buffer *b = n->op == IR_INPUT ? ir_map_get(inputs, n->name) : NULL;
      if (n->op == IR_INPUT && !b) {
        b = IR_NEW(x->arena, plan_buffer);
        *b = whole_run(n->name, PLAN_STAGING, 0, 0);
        b->func = f;
        b->node = n;
        ir_map_put(inputs, n->name, b);
      }
      if (b && ir_bytes(&n->type) > b->bytes)
        b->bytes = ir_bytes(&n->type);
    }
  }
}

static int64_t place_in_slot(ir_map *inputs) {
  int64_t at = 0;
  for (size_t i = 0; i < ir_map_count(inputs); i++) {
    plan_buffer *b = ir_map_value(inputs, i);
    b->offset = at;
    at += plan_align(b->bytes);
  }
  return at;
}

static void place_staging(planner *x, ir_map *inputs) {
  collect_inputs(x, inputs);
  int64_t slot_bytes = place_in_slot(inputs);
  for (int slot = 0; slot < 2; slot++)
    for (size_t i = 0; i < ir_map_count(inputs); i++) {
      plan_buffer b = *(plan_buffer *)ir_map_value(inputs, i);
      b.name = ir_format(x->arena, "%s[%d]", b.name, slot);
      b.offset += x->p->state_bytes + slot * slot_bytes;
      IR_PUSH(x->arena, x->p->buffers, b);
    }
  x->p->staging_slot_bytes = slot_bytes;
  x->p->staging_bytes = 2 * slot_bytes;
}

// --- temporaries ---------------------------------------------------------------------------------
// What a budget leaves beside states and batches; 0: there is none.
static int64_t enough_bytes(const planner *x) {
  int64_t budget = ir_config_count(x->m, "memory_budget");
  int64_t left = budget - x->p->state_bytes - x->p->staging_bytes;
  return budget && left > 0 ? left : 0;
}

// Packs the intervals, widened by what is wished if that makes them no higher. Where it does,
// nothing is granted so near the peak.
static int64_t pack(planner *x, plan_live *l, const plan_joined *j) {
  static const int sixteenths[] = {16, 15, 14, 12, 8}; // of the peak
  int64_t bytes = plan_pack_for(j->at, j->num, enough_bytes(x)),
          peak = plan_pack_bound(x->arena, j->at, j->num);
  plan_joined wide = {IR_NEW_ARRAY(x->arena, plan_interval, j->num + 1), j->num, j->of};
  plan_pack_limits no_higher = {.capacity = bytes, .steps = WISH_STEPS};
  for (size_t i = 0; x->wishes && i < sizeof sixteenths / sizeof *sixteenths; i++) {
    int64_t most = peak / 16 * sixteenths[i];
    memcpy(wide.at, j->at, j->num * sizeof *j->at);
    plan_live granted = plan_grant_wishes(x->arena, l, x->wishes, most, &wide);
    int64_t wide_bytes = plan_pack_within(wide.at, wide.num, &no_higher).height;
    if (wide_bytes > bytes)
      continue;
    memcpy(j->at, wide.at, j->num * sizeof *j->at);
    *l = granted;
    return wide_bytes;
  }
  return bytes;
}

typedef struct packing {
  plan_live l;
  plan_joined joined;
  int64_t bytes, bound;
} packing;

static packing pack_lives(planner *x, const plan_live *l) {
  packing p = {.l = *l, .joined = plan_join_reused(x->arena, l)};
  p.bytes = pack(x, &p.l, &p.joined);
  p.bound = plan_pack_bound(x->arena, p.joined.at, p.joined.num);
  return p;
}

// What wishes name does not share memory, unless that packs worse.
static packing pack_wished(planner *x, const plan_live *l) {
  plan_live parted = plan_part_wished(x->arena, l, x->wishes);
  packing p = pack_lives(x, &parted);
  if (p.bytes == p.bound)
    return p;
  packing together = pack_lives(x, l);
  return together.bytes < p.bytes ? together : p;
}

// --- places by hand ------------------------------------------------------------------------------
// False, after an error, when no buffer can be there.
static bool may_be_at(planner *x, const plan_buffer *b, int64_t base, int64_t offset) {
  const char *why = offset % PLAN_ALIGN         ? "is no multiple of 64"
                    : offset < base             ? "lies in states and batches"
                    : offset > (int64_t)1 << 50 ? "is out of reach"
                                                : NULL;
  if (why)
    diag_error(x->diags, (ir_loc){0}, "E0508",
               "%s: function %s, buffer '%s': offset %" PRId64 " %s (temporaries begin at %" PRId64
               ")",
               x->edit->path, b->func->name, b->name, offset, why, base);
  return !why;
}

// By name. Errors for places that no buffer from `first` on has, or that are there twice.
static ir_map *places_of(planner *x, const plan_edit_func *e, size_t first) {
  ir_map *places = ir_map_new(x->arena), *buffers = ir_map_new(x->arena);
  for (size_t i = first; i < x->p->buffers.num; i++)
    ir_map_put(buffers, x->p->buffers.at[i].name, &x->p->buffers.at[i]);
  for (size_t i = 0; e && i < e->places.num; i++) {
    const char *name = e->places.at[i].buffer;
    const char *what = !ir_map_get(buffers, name) ? "no buffer"
                       : ir_map_get(places, name) ? "a second buffer"
                                                  : NULL;
    if (what)
      diag_error(x->diags, (ir_loc){0}, "E0508", "%s: function %s has %s '%s'", x->edit->path,
                 e->name, what, name);
    ir_map_put(places, name, &e->places.at[i]);
  }
  return places;
}

// Moves the buffers from `first` on to where the file says. One that is moved away from the memory that
// it would have taken over has memory of its own. Returns where the last one ends.
static int64_t move_by_hand(planner *x, const ir_func *f, size_t first, int64_t base) {
  ir_map *places = places_of(x, plan_edit_find(x->edit, f), first);
  int64_t end = base;
  for (size_t i = first; i < x->p->buffers.num; i++) {
    plan_buffer *b = &x->p->buffers.at[i];
    const plan_edit_place *place = ir_map_get(places, b->name);
    if (place && may_be_at(x, b, base, place->offset))
      b->offset = place->offset;
    if (b->reuses >= 0 && x->p->buffers.at[b->reuses].offset != b->offset)
      b->reuses = -1;
    int64_t last = b->offset + plan_align(b->bytes);
    end = last > end ? last : end;
  }
  return end;
}

// Each buffer is where the file says, as far as it does.
static bool is_as_placed(const planner *x, const packing *p, int64_t base) {
  const plan_edit_func *e = plan_edit_find(x->edit, p->l.f);
  ir_map *places = ir_map_new(x->arena);
  for (size_t i = 0; i < p->l.buffers.num; i++)
    ir_map_put(places, p->l.buffers.at[i].name,
               (void *)(intptr_t)(base + p->joined.at[p->joined.of[i]].offset));
  for (size_t i = 0; e && i < e->places.num; i++)
    if ((intptr_t)ir_map_get(places, e->places.at[i].buffer) != e->places.at[i].offset)
      return false;
  return true;
}

// What is placed by hand lives no longer than it must.
static packing pack_temps(planner *x, const plan_live *l, int64_t base) {
  planner without = *x;
  without.wishes = NULL;
  if (!x->wishes)
    return pack_lives(x, l);
  packing p = pack_wished(x, l);
  return !x->edit || is_as_placed(x, &p, base) ? p : pack_lives(&without, l);
}

static void add_temps(planner *x, plan_live *l) {
  int64_t base = x->p->state_bytes + x->p->staging_bytes;
  int before = (int)x->p->buffers.num;
  packing p = pack_temps(x, l, base);
  int64_t bytes = p.bytes, bound = p.bound;
  *l = p.l;
  for (size_t i = 0; i < l->buffers.num; i++) {
    plan_buffer b = l->buffers.at[i];
    b.offset = base + p.joined.at[p.joined.of[i]].offset;
    if (b.reuses >= 0)
      b.reuses += before;
    IR_PUSH(x->arena, x->p->buffers, b);
  }
  if (x->edit)
    bytes = move_by_hand(x, l->f, (size_t)before, base) - base;
  if (bytes > x->p->temp_bytes)
    x->p->temp_bytes = bytes;
  if (bound > x->p->bound_bytes) // of temporaries; plan_build_for adds the rest
    x->p->bound_bytes = bound;
}

// --- memory of the host --------------------------------------------------------------------------
static void add_host(planner *x, const plan_live *l) {
  plan_interval *iv = IR_NEW_ARRAY(x->arena, plan_interval, l->host.num + 1);
  for (size_t i = 0; i < l->host.num; i++) {
    const plan_buffer *b = &l->host.at[i];
    iv[i] = (plan_interval){b->first, (int64_t)b->last + 1, plan_align(b->bytes), 0};
  }
  int64_t bytes = plan_pack(iv, l->host.num);
  for (size_t i = 0; i < l->host.num; i++) {
    plan_buffer b = l->host.at[i];
    b.offset = iv[i].offset;
    IR_PUSH(x->arena, x->p->buffers, b);
  }
  if (bytes > x->p->host_bytes)
    x->p->host_bytes = bytes;
}

// --- names ---------------------------------------------------------------------------------------
// Plan files know buffers by their names, and a value of the user's may be called what would be a workspace's: h.workspace
// is a variable of a block that is used `as h`, too.
static void name_workspaces(const planner *x, const plan_live *l) {
  ir_map *names = ir_map_new(x->arena);
  for (size_t i = 0; i < l->buffers.num; i++)
    if (!l->buffers.at[i].kernel)
      ir_map_put(names, l->buffers.at[i].name, &l->buffers.at[i]);
  for (size_t i = 0; i < l->buffers.num; i++) {
    plan_buffer *b = &l->buffers.at[i];
    if (b->kernel)
      b->name = ir_map_new_name(names, x->arena,
                                ir_format(x->arena, "%s.workspace", b->kernel->name), '.');
  }
}

// --- offsets of nodes ----------------------------------------------------------------------------
int64_t plan_state_offset(const plan *p, const ir_state *s) {
  return p->buffers.at[s->id].offset;
}

static int64_t offset_of_node(planner *x, const plan_live *l, ir_map *inputs, const ir_node *n,
                              size_t temps) {
  if (n->op == IR_INPUT)
    return x->p->state_bytes + ((plan_buffer *)ir_map_get(inputs, n->name))->offset;
  if (n->op == IR_READ || n->op == IR_WRITE)
    return plan_state_offset(x->p, n->state);
  if (n->stretch_of) {
    int64_t at = offset_of_node(x, l, inputs, n->stretch_of, temps);
    return at < 0 ? -1 : at + n->stretch_at;
  }
  if (l->in_place[n->id])
    return plan_state_offset(x->p, l->in_place[n->id]);
  int b = l->buffer_of[n->id];
  return b < 0 ? -1 : x->p->buffers.at[temps + (size_t)b].offset;
}

static void add_copies(planner *x, const plan_live *l, const int64_t *offset) {
  for (size_t i = 0; i < l->copied.num; i++) {
    const ir_node *w = l->copied.at[i];
    plan_copy c = {.func = l->f,
                   .state = w->state,
                   .node = w->in[0],
                   .from = offset[w->in[0]->id],
                   .to = plan_state_offset(x->p, w->state),
                   .bytes = ir_bytes(&w->state->type)};
    IR_PUSH(x->arena, x->p->copies, c);
  }
}

static void plan_func(planner *x, ir_map *inputs, size_t index) {
  ir_func *f = x->m->funcs.at[index];
  plan_live l = plan_live_func(x->arena, f);
  name_workspaces(x, &l);
  size_t temps = x->p->buffers.num;
  add_temps(x, &l);
  int64_t *offset = IR_NEW_ARRAY(x->arena, int64_t, f->next_id + 1);
  memset(offset, -1, sizeof(int64_t) * (f->next_id + 1));
  for (size_t i = 0; i < f->nodes.num; i++)
    offset[f->nodes.at[i]->id] = offset_of_node(x, &l, inputs, f->nodes.at[i], temps);
  x->p->node_offset[index] = offset;
  add_copies(x, &l, offset);
  add_host(x, &l);
}

int64_t plan_whole_run_bytes(ir_module *m) {
  planner x = {.arena = m->arena, .m = m, .p = IR_NEW(m->arena, plan)};
  place_states(&x);
  place_staging(&x, ir_map_new(m->arena));
  return x.p->state_bytes + x.p->staging_bytes;
}

static plan *build(planner x) {
  ir_module *m = x.m;
  x.arena = m->arena;
  x.p = IR_NEW(m->arena, plan);
  ir_map *inputs = ir_map_new(m->arena);
  place_states(&x);
  place_staging(&x, inputs);
  for (size_t i = 0; i < m->funcs.num; i++)
    plan_func(&x, inputs, i);
  int64_t whole_run_bytes = x.p->state_bytes + x.p->staging_bytes;
  x.p->arena_bytes = whole_run_bytes + x.p->temp_bytes;
  x.p->bound_bytes += whole_run_bytes;
  return x.p;
}

plan *plan_build_for(ir_module *m, const plan_wishes *wishes, const plan_edit *e, ir_diags *d) {
  return build((planner){.m = m, .wishes = wishes, .edit = e, .diags = d});
}

int64_t plan_offset(const plan *p, const ir_func *f, const ir_node *n) {
  return p->node_offset[plan_func_index(f)][n->id];
}

int64_t plan_host_offset(const plan *p, const ir_func *f, const ir_node *n) {
  for (size_t i = 0; i < p->buffers.num; i++)
    if (p->buffers.at[i].kind == PLAN_HOST && p->buffers.at[i].func == f &&
        p->buffers.at[i].node == n)
      return p->buffers.at[i].offset;
  BUG("%s has no place in memory of the host", n->name);
}

bool plan_is_in_place(const plan *p, const ir_func *f, const ir_node *write) {
  return plan_offset(p, f, write->in[0]) == plan_offset(p, f, write);
}
