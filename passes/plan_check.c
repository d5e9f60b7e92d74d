// plan_check.c: does the plan hold? Knows nothing of how it was made.
//
// Each function is run on paper: memory is a map from addresses to the value that was stored
// there last. Each kernel must find every operand whole where the plan says, and may store over
// an operand only where plan_may_overwrite allows; at the end results and states must be there.
// This finds overlaps, wrong live intervals, wrong in-place writes and wrong order alike. States, inputs
// and stretches must be where what they are, or are cut from, is. The intervals that the plan reports are then swept once more.
//
// A transfer changes memory from where it begins to where it is done: in between its target belongs to
// the transfer, and its operand must still be whole at the end.
#include <string.h>

#include "passes/plan_parts.h"
#include "passes/plan_sort.h"

typedef struct checker {
  const plan *p;
  const ir_module *m;
  ir_arena *arena;
  ir_buf *out;
  int errors;
  const ir_func *f;
  plan_regions *mem, *host;
  const char **node_name;          // [node id] of f
  const ir_node **write_of;        // [node id] of f: the WRITE of that value
  const plan_buffer **workspace;   // [kernel] of f
  const plan_buffer **host_buffer; // [node id] of f: its place in memory of the host
  ir_begins begins;                // of f
} checker;

#define FAIL(c, ...) ((c)->errors++, ir_buf_printf((c)->out, __VA_ARGS__))

// --- owners: 0 nobody, then states, then nodes, then workspaces ----------------------------------
static int owner_of_state(const ir_state *s) {
  return 1 + (int)s->id;
}

static int owner_of_node(const checker *c, const ir_node *n) {
  n = dom_owner(n);
  return n->op == IR_READ ? owner_of_state(n->state) : 1 + (int)c->m->states.num + (int)n->id;
}

static int owner_of_workspace(const checker *c, const ir_kernel *k) {
  return 1 + (int)c->m->states.num + (int)c->f->next_id + (int)k->id;
}

static int owner_of_flight(const checker *c, const ir_node *n) {
  return owner_of_node(c, n) + (int)c->f->next_id + (int)c->f->kernels.num;
}

static const char *owner_name(const checker *c, int owner) {
  int states = (int)c->m->states.num, nodes = (int)c->f->next_id;
  if (owner <= 0)
    return owner == 0 ? "nothing" : "parts of several values";
  if (owner <= states)
    return ir_format(c->arena, "@%s", c->m->states.at[owner - 1]->name);
  if (owner <= states + nodes)
    return ir_format(c->arena, "%%%s", c->node_name[owner - 1 - states]);
  return owner <= states + nodes + (int)c->f->kernels.num ? "a workspace" : "what is on its way";
}

static int64_t offset_of(const checker *c, const ir_node *n) {
  return plan_offset(c->p, c->f, n);
}

// Where a value lies; and in which memory.
static int64_t place_of(const checker *c, const ir_node *n, plan_regions **mem) {
  const plan_buffer *host = c->host_buffer[n->id];
  *mem = host ? c->host : c->mem;
  return host ? host->offset : offset_of(c, n);
}

static void must_hold(checker *c, const ir_node *n, const char *who) {
  plan_regions *mem;
  int64_t at = place_of(c, n, &mem);
  if (at < 0) {
    FAIL(c, "%s: %s needs %%%s, which has no place\n", c->f->name, who, n->name);
    return;
  }
  int owner = plan_regions_get(mem, at, at + dom_bytes(n));
  if (owner != owner_of_node(c, n))
    FAIL(c, "%s: %s needs %%%s at %lld, where there is %s\n", c->f->name, who, n->name,
         (long long)at, owner_name(c, owner));
}

// --- one kernel ----------------------------------------------------------------------------------
// Temporaries, or exactly the state that a write gives the value to.
static void check_target(checker *c, const ir_node *n) {
  int64_t at = offset_of(c, n), low = c->p->state_bytes + c->p->staging_bytes;
  if (at >= low && at + ir_bytes(&n->type) <= c->p->arena_bytes)
    return;
  const ir_node *w = c->write_of[n->id];
  if (w && at == c->p->buffers.at[w->state->id].offset &&
      ir_bytes(&n->type) == ir_bytes(&w->state->type))
    return;
  FAIL(c, "%s: %%%s is stored at %lld, outside the temporaries\n", c->f->name, n->name,
       (long long)at);
}

static bool overlap(int64_t a, int64_t a_bytes, int64_t b, int64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

static void check_over_inputs(checker *c, const ir_kernel *k, const dom_io *io,
                              const ir_node *out) {
  int64_t at = offset_of(c, out), bytes = ir_bytes(&out->type);
  for (size_t i = 0; i < io->in.num; i++) {
    const ir_node *in = io->in.at[i];
    int64_t in_at = offset_of(c, in);
    if (in_at < 0 || !overlap(at, bytes, in_at, dom_bytes(in)))
      continue;
    if (at != in_at || !plan_may_overwrite(c->arena, k, in, out))
      FAIL(c, "%s: kernel %s stores %%%s over its input %%%s\n", c->f->name, k->name, out->name,
           in->name);
  }
}

static void check_apart(checker *c, const ir_kernel *k, const dom_io *io, size_t which) {
  const ir_node *out = io->out.at[which];
  for (size_t i = 0; i < which; i++)
    if (overlap(offset_of(c, out), ir_bytes(&out->type), offset_of(c, io->out.at[i]),
                ir_bytes(&io->out.at[i]->type)))
      FAIL(c, "%s: kernel %s stores %%%s and %%%s in one place\n", c->f->name, k->name, out->name,
           io->out.at[i]->name);
}

// Scratch lies over no operand and no output.
static void check_workspace(checker *c, const ir_kernel *k, const dom_io *io) {
  const plan_buffer *b = c->workspace[k->id];
  if (k->workspace > 0 && (!b || b->bytes < k->workspace))
    FAIL(c, "%s: kernel %s lacks its workspace\n", c->f->name, k->name);
  if (!b)
    return;
  for (size_t i = 0; i < io->in.num + io->out.num; i++) {
    const ir_node *n = i < io->in.num ? io->in.at[i] : io->out.at[i - io->in.num];
    if (overlap(b->offset, b->bytes, offset_of(c, n), dom_bytes(n)))
      FAIL(c, "%s: the workspace of kernel %s lies over %%%s\n", c->f->name, k->name, n->name);
  }
  plan_regions_set(c->mem, b->offset, b->offset + b->bytes, owner_of_workspace(c, k));
}

// --- transfers -----------------------------------------------------------------------------------
static void begin_transfer(checker *c, const ir_kernel *k) {
  const ir_node *out = k->nodes.at[0];
  plan_regions *mem;
  int64_t at = place_of(c, out, &mem);
  if (k->family == IR_FAMILY_FETCH)
    check_target(c, out);
  must_hold(c, out->in[0], ir_format(c->arena, "%s, which begins,", k->name));
  if (at >= 0)
    plan_regions_set(mem, at, at + ir_bytes(&out->type), owner_of_flight(c, out));
}

static void end_transfer(checker *c, const ir_kernel *k) {
  const ir_node *out = k->nodes.at[0];
  plan_regions *mem;
  int64_t at = place_of(c, out, &mem), end = at + ir_bytes(&out->type);
  must_hold(c, out->in[0], ir_format(c->arena, "%s, which is done,", k->name));
  if (at < 0 || plan_regions_get(mem, at, end) != owner_of_flight(c, out))
    FAIL(c, "%s: the place of %%%s is used while %s is under way\n", c->f->name, out->name,
         k->name);
  if (at >= 0)
    plan_regions_set(mem, at, end, owner_of_node(c, out));
}

static void begin_transfers(checker *c, const ir_kernel *before) {
  for (const ir_kernel *k = c->begins.first[before->id]; k; k = c->begins.next[k->id])
    begin_transfer(c, k);
}

// --- any kernel ----------------------------------------------------------------------------------
static void check_kernel(checker *c, const ir_kernel *k) {
  begin_transfers(c, k);
  if (ir_is_transfer(k)) {
    end_transfer(c, k);
    return;
  }
  dom_io io = dom_kernel_io(c->arena, k);
  for (size_t i = 0; i < io.in.num; i++)
    must_hold(c, io.in.at[i], ir_format(c->arena, "kernel %s", k->name));
  for (size_t i = 0; i < io.out.num; i++) {
    check_target(c, io.out.at[i]);
    check_over_inputs(c, k, &io, io.out.at[i]);
    check_apart(c, k, &io, i);
  }
  check_workspace(c, k, &io);
  for (size_t i = 0; i < io.out.num; i++) {
    const ir_node *n = io.out.at[i];
    int64_t at = offset_of(c, n);
    if (at >= 0)
      plan_regions_set(c->mem, at, at + ir_bytes(&n->type), owner_of_node(c, n));
  }
}

// --- where states, inputs and stretches are -------------------------------------------------------
static void must_be_at(checker *c, const ir_node *n, int64_t at) {
  if (offset_of(c, n) != at)
    FAIL(c, "%s: %%%s is at %lld, and its memory at %lld\n", c->f->name, n->name,
         (long long)offset_of(c, n), (long long)at);
}

// Both slots of an input, one so far behind the other as the program takes it to be.
static void check_input(checker *c, const ir_node *n) {
  int slots = 0;
  for (size_t i = 0; i < c->p->buffers.num; i++) {
    const plan_buffer *b = &c->p->buffers.at[i];
    if (b->kind != PLAN_STAGING || strcmp(b->node->name, n->name) != 0)
      continue;
    must_be_at(c, n, b->offset - slots++ * c->p->staging_slot_bytes);
    if (b->bytes < ir_bytes(&n->type))
      FAIL(c, "%s: %s has no room for %%%s\n", c->f->name, b->name, n->name);
  }
  if (slots != 2)
    FAIL(c, "%s: %d slots for %%%s\n", c->f->name, slots, n->name);
}

static void check_given_places(checker *c) {
  for (size_t i = 0; i < c->f->nodes.num; i++) {
    const ir_node *n = c->f->nodes.at[i];
    if (n->op == IR_INPUT)
      check_input(c, n);
    else if (n->op == IR_READ || n->op == IR_WRITE)
      must_be_at(c, n, c->p->buffers.at[n->state->id].offset);
    else if (n->stretch_of && offset_of(c, n->stretch_of) >= 0)
      must_be_at(c, n, offset_of(c, n->stretch_of) + n->stretch_at);
  }
}

// --- one function --------------------------------------------------------------------------------
static plan_regions *regions_of_host(const checker *c) {
  IR_VEC(int64_t) v = {0};
  for (size_t i = 0; i < c->p->buffers.num; i++) {
    const plan_buffer *b = &c->p->buffers.at[i];
    if (b->kind != PLAN_HOST || b->func != c->f)
      continue;
    IR_PUSH(c->arena, v, b->offset);
    IR_PUSH(c->arena, v, b->offset + b->bytes);
  }
  return plan_regions_new(c->arena, v.at, v.num);
}

static void add_bounds(checker *c, int64_t **bounds, size_t *num) {
  IR_VEC(int64_t) v = {0};
  for (size_t i = 0; i < c->p->buffers.num; i++) {
    const plan_buffer *b = &c->p->buffers.at[i];
    IR_PUSH(c->arena, v, b->offset);
    IR_PUSH(c->arena, v, b->offset + b->bytes);
  }
  for (size_t i = 0; i < c->f->nodes.num; i++) {
    const ir_node *n = c->f->nodes.at[i];
    int64_t at = offset_of(c, n);
    if (at < 0)
      continue;
    IR_PUSH(c->arena, v, at);
    IR_PUSH(c->arena, v, at + dom_bytes(n));
  }
  *bounds = v.at;
  *num = v.num;
}

static void index_function(checker *c) {
  c->node_name = IR_NEW_ARRAY(c->arena, const char *, c->f->next_id + 1);
  c->write_of = IR_NEW_ARRAY(c->arena, const ir_node *, c->f->next_id + 1);
  c->workspace = IR_NEW_ARRAY(c->arena, const plan_buffer *, c->f->kernels.num + 1);
  c->host_buffer = IR_NEW_ARRAY(c->arena, const plan_buffer *, c->f->next_id + 1);
  c->begins = ir_find_begins(c->arena, c->f);
  for (size_t i = 0; i < c->f->nodes.num; i++) {
    const ir_node *n = c->f->nodes.at[i];
    c->node_name[n->id] = n->name;
    if (n->op == IR_WRITE)
      c->write_of[n->in[0]->id] = n;
  }
  for (size_t i = 0; i < c->p->buffers.num; i++) {
    const plan_buffer *b = &c->p->buffers.at[i];
    if (b->kind == PLAN_WORKSPACE && b->func == c->f)
      c->workspace[b->kernel->id] = b;
    else if (b->kind == PLAN_HOST && b->func == c->f)
      c->host_buffer[b->node->id] = b;
  }
}

static void enter_function(checker *c) {
  int64_t *bounds;
  size_t num;
  add_bounds(c, &bounds, &num);
  c->mem = plan_regions_new(c->arena, bounds, num);
  c->host = regions_of_host(c);
  index_function(c);
  check_given_places(c);
  for (size_t i = 0; i < c->m->states.num; i++) {
    const plan_buffer *b = &c->p->buffers.at[i];
    plan_regions_set(c->mem, b->offset, b->offset + b->bytes, owner_of_state(b->state));
  }
  for (size_t i = 0; i < c->f->nodes.num; i++) {
    const ir_node *n = c->f->nodes.at[i];
    if (n->op == IR_INPUT)
      plan_regions_set(c->mem, offset_of(c, n), offset_of(c, n) + ir_bytes(&n->type),
                       owner_of_node(c, n));
  }
}

static const plan_copy *find_copy(const checker *c, const ir_node *write) {
  for (size_t i = 0; i < c->p->copies.num; i++) {
    const plan_copy *y = &c->p->copies.at[i];
    if (y->func == c->f && y->state == write->state)
      return y;
  }
  return NULL;
}

// Returns how many copies it has.
static size_t check_write(checker *c, const ir_node *w, bool *written) {
  written[w->state->id] = true;
  must_hold(c, w->in[0], ir_format(c->arena, "write @%s", w->state->name));
  if (plan_is_in_place(c->p, c->f, w))
    return 0;
  const plan_copy *y = find_copy(c, w);
  if (!y || y->from != offset_of(c, w->in[0]) || y->to != c->p->buffers.at[w->state->id].offset ||
      y->bytes != ir_bytes(&w->state->type))
    FAIL(c, "%s: nothing takes %%%s to @%s\n", c->f->name, w->in[0]->name, w->state->name);
  return 1;
}

static size_t count_copies(const checker *c) {
  size_t num = 0;
  for (size_t i = 0; i < c->p->copies.num; i++)
    num += c->p->copies.at[i].func == c->f;
  return num;
}

static void leave_function(checker *c) {
  bool *written = IR_NEW_ARRAY(c->arena, bool, c->m->states.num + 1);
  size_t copies = 0;
  for (size_t i = 0; i < c->f->nodes.num; i++)
    if (c->f->nodes.at[i]->op == IR_WRITE)
      copies += check_write(c, c->f->nodes.at[i], written);
  if (count_copies(c) != copies)
    FAIL(c, "%s: %zu copies for %zu writes\n", c->f->name, count_copies(c), copies);
  for (size_t i = 0; i < c->f->results.num; i++)
    must_hold(c, c->f->results.at[i].node, "the result");
  for (size_t i = 0; i < c->m->states.num; i++) {
    const plan_buffer *b = &c->p->buffers.at[i];
    int owner = plan_regions_get(c->mem, b->offset, b->offset + b->bytes);
    if (!written[i] && owner != owner_of_state(b->state))
      FAIL(c, "%s: @%s is overwritten by %s\n", c->f->name, b->name, owner_name(c, owner));
  }
}

// --- the buffers as reported ---------------------------------------------------------------------
static bool is_whole_run(const plan_buffer *b) {
  return b->kind == PLAN_STATE || b->kind == PLAN_STAGING;
}

static void check_places(checker *c) {
  int64_t fixed = c->p->state_bytes + c->p->staging_bytes;
  if (fixed + c->p->temp_bytes != c->p->arena_bytes)
    FAIL(c, "the parts of the arena do not add up\n");
  for (size_t i = 0; i < c->p->buffers.num; i++) {
    const plan_buffer *b = &c->p->buffers.at[i];
    int64_t low = is_whole_run(b) ? 0 : fixed, high = is_whole_run(b) ? fixed : c->p->arena_bytes;
    if (b->kind == PLAN_HOST)
      low = 0, high = c->p->host_bytes;
    if (b->offset < low || b->offset + b->bytes > high || b->offset % PLAN_ALIGN != 0)
      FAIL(c, "buffer %s at %lld is out of place\n", b->name, (long long)b->offset);
  }
}

// A buffer that is taken over lives up to the middle of the kernel, its heir from there on.
static void add_interval(const checker *c, size_t i, plan_interval *iv) {
  const plan_buffer *b = &c->p->buffers.at[i];
  iv[i] = (plan_interval){2 * (int64_t)b->first, 2 * (int64_t)b->last + 2, b->bytes, b->offset};
  if (b->reuses >= 0) {
    iv[i].lower++;
    iv[b->reuses].upper--;
  }
}

static void check_host_intervals(checker *c, const ir_func *f) {
  IR_VEC(plan_interval) mine = {0};
  for (size_t i = 0; i < c->p->buffers.num; i++) {
    const plan_buffer *b = &c->p->buffers.at[i];
    plan_interval iv = {b->first, (int64_t)b->last + 1, b->bytes, b->offset};
    if (b->kind == PLAN_HOST && b->func == f)
      IR_PUSH(c->arena, mine, iv);
  }
  size_t bad = plan_pack_check(c->arena, mine.at, mine.num);
  if (bad)
    FAIL(c, "%s: %zu buffers overlap with others that are live on the host\n", f->name, bad);
}

static void check_intervals(checker *c, const ir_func *f) {
  plan_interval *iv = IR_NEW_ARRAY(c->arena, plan_interval, c->p->buffers.num + 1);
  IR_VEC(plan_interval) mine = {0};
  for (size_t i = 0; i < c->p->buffers.num; i++)
    add_interval(c, i, iv);
  for (size_t i = 0; i < c->p->buffers.num; i++)
    if (is_whole_run(&c->p->buffers.at[i]) ||
        (c->p->buffers.at[i].func == f && c->p->buffers.at[i].kind != PLAN_HOST))
      IR_PUSH(c->arena, mine, iv[i]);
  size_t bad = plan_pack_check(c->arena, mine.at, mine.num);
  if (bad)
    FAIL(c, "%s: %zu buffers overlap with others that are live\n", f->name, bad);
}

size_t plan_pack_check(ir_arena *a, const plan_interval *iv, size_t n) {
  plan_events e = plan_sort_events(a, iv, n);
  int64_t *bounds = IR_NEW_ARRAY(a, int64_t, 2 * n + 1);
  for (size_t i = 0; i < n; i++) {
    bounds[2 * i] = iv[i].offset;
    bounds[2 * i + 1] = iv[i].offset + iv[i].size;
  }
  plan_regions *mem = plan_regions_new(a, bounds, 2 * n);
  size_t bad = 0;
  for (size_t i = 0; i < e.num; i++) {
    int32_t k = e.at[i].interval;
    int64_t begin = iv[k].offset, end = begin + iv[k].size;
    if (e.at[i].start && plan_regions_get(mem, begin, end) != 0)
      bad++;
    plan_regions_set(mem, begin, end, e.at[i].start ? k + 1 : 0);
  }
  return bad;
}

int plan_check(const plan *p, const ir_module *m, ir_buf *out) {
  checker c = {.p = p, .m = m, .arena = ir_arena_new(), .out = out};
  check_places(&c);
  for (size_t i = 0; i < m->funcs.num && !c.errors; i++) {
    c.f = m->funcs.at[i];
    check_intervals(&c, c.f);
    check_host_intervals(&c, c.f);
    enter_function(&c);
    for (size_t k = 0; k < c.f->kernels.num; k++)
      check_kernel(&c, c.f->kernels.at[k]);
    leave_function(&c);
  }
  ir_arena_free(c.arena);
  return c.errors;
}
