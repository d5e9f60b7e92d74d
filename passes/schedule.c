// schedule.c: see schedule.h.
//
//   step 0: kernel 0 matmul { %p }            p   [0, 1]
//   step 1: kernel 1 loop   { %h }            h   [1, 3]   in place of p: h[i] needs p[i] only
//   step 2: kernel 2 matmul { %dw }
//   step 3: kernel 3 loop   { %w.new }        no life: computed in @w, which no later step reads
#include "passes/schedule.h"

#include <string.h>

#include "passes/plan_parts.h"
#include "passes/schedule_parts.h"

// --- the function --------------------------------------------------------------------------------
static void add_values(sched *s, int k, const dom_io *io) {
  sched_kernel *x = &s->kernels[k];
  x->first_value = s->num_values;
  x->num_values = (int)io->out.num;
  for (size_t i = 0; i < io->out.num; i++) {
    ir_node *n = io->out.at[i];
    s->value_of[n->id] = s->num_values;
    s->values[s->num_values++] = (sched_value){.node = n,
                                               .kernel = k,
                                               .bytes = ir_bytes(&n->type),
                                               .host = x->k->family == IR_FAMILY_SEND};
  }
}

static void add_operands(sched *s, int k, const dom_io *io, sched_in *in) {
  sched_kernel *x = &s->kernels[k];
  for (size_t i = 0; i < io->in.num; i++) {
    const ir_node *owner = dom_owner(io->in.at[i]);
    in[i] = (sched_in){.node = io->in.at[i],
                       .value = owner->kernel ? s->value_of[owner->id] : -1,
                       .state = owner->op == IR_READ ? (int)owner->state->id : -1,
                       .stretch = io->in.at[i]->stretch_of != NULL};
    BUG_IF(owner->kernel && in[i].value < 0, "%s reads %s, which has no memory", x->k->name,
           owner->name);
  }
  x->in = in;
  x->num_in = (int)io->in.num;
  s->has_transfers |= ir_is_transfer(x->k);
  s->most_in = x->num_in > s->most_in ? x->num_in : s->most_in;
}

static bool writes_own_elements(sched *s, const ir_node *write, int value) {
  const sched_kernel *k = &s->kernels[s->values[value].kernel];
  for (int i = 0; i < k->num_in; i++)
    if (k->in[i].state == (int)write->state->id)
      return sched_find_all_under(s, s->values[value].kernel)->own[i];
  return true;
}

static void add_writes(sched *s) {
  size_t states = s->f->module->states.num + 1;
  s->written_to = IR_NEW_ARRAY(s->arena, int, states);
  memset(s->written_to, -1, sizeof(int) * states);
  for (size_t i = 0; i < s->f->nodes.num; i++) {
    const ir_node *n = s->f->nodes.at[i];
    if (n->op != IR_WRITE)
      continue;
    int v = s->value_of[n->in[0]->id];
    BUG_IF(v < 0, "write @%s of a value without memory: %s (pass_own_outputs)", n->state->name,
           n->in[0]->name);
    s->values[v].written = true;
    s->written_to[n->state->id] = v;
    sched_write w = {.node = n, .value = v};
    IR_PUSH(s->arena, s->writes, w);
  }
}

// [state id] the kernels that read it.
typedef IR_VEC(int) readers;

static readers *find_readers(const sched *s) {
  readers *of = IR_NEW_ARRAY(s->arena, readers, s->f->module->states.num + 1);
  for (int k = 0; k < s->num_kernels; k++)
    for (int i = 0; i < s->kernels[k].num_in; i++)
      if (s->kernels[k].in[i].state >= 0)
        IR_PUSH(s->arena, of[s->kernels[k].in[i].state], k);
  return of;
}

static void add_uses_at_end(sched *s) {
  const readers *of = find_readers(s);
  for (size_t i = 0; i < s->writes.num; i++) {
    sched_write *w = &s->writes.at[i];
    const readers *r = &of[w->node->state->id];
    w->over_own = writes_own_elements(s, w->node, w->value);
    w->readers = r->at;
    w->num_readers = (int)r->num;
  }
  for (size_t i = 0; i < s->f->results.num; i++) {
    const ir_node *n = s->f->results.at[i].node;
    int v = s->value_of[n->id];
    BUG_IF(v < 0, "result %s has no memory (pass_own_outputs)", n->name);
    s->values[v].result = true;
  }
}

sched *sched_new(ir_arena *a, ir_func *f) {
  sched *s = IR_NEW(a, sched);
  *s = (sched){.arena = a, .f = f, .num_kernels = (int)f->kernels.num};
  s->kernels = IR_NEW_ARRAY(a, sched_kernel, f->kernels.num + 1);
  s->value_of = IR_NEW_ARRAY(a, int, f->next_id + 1);
  memset(s->value_of, -1, sizeof(int) * (f->next_id + 1));
  size_t num_values = 0, num_in = 0;
  dom_io *io = IR_NEW_ARRAY(a, dom_io, f->kernels.num + 1);
  for (size_t k = 0; k < f->kernels.num; k++) {
    s->kernels[k].k = f->kernels.at[k];
    io[k] = dom_kernel_io(a, f->kernels.at[k]);
    num_values += io[k].out.num;
    num_in += io[k].in.num;
  }
  s->values = IR_NEW_ARRAY(a, sched_value, num_values + 1);
  for (int k = 0; k < s->num_kernels; k++)
    add_values(s, k, &io[k]);
  sched_in *in = IR_NEW_ARRAY(a, sched_in, num_in + 1);
  for (int k = 0; k < s->num_kernels; k++) {
    add_operands(s, k, &io[k], in);
    in += io[k].in.num;
  }
  add_writes(s);
  add_uses_at_end(s);
  return s;
}

// --- writes --------------------------------------------------------------------------------------
typedef struct liver {
  sched *s;
  ir_arena *arena;
  const int *steps;
  size_t num;
  sched_lives out;
  int *current; // [value] its latest life, -1: of out.at, of a value on the host of out.host
  bool *ran;    // [kernel]
  int *first;   // [value] its first one: what a state or a result is, -1
  ir_begins begins;
} liver;

sched_when sched_when_new(const sched *s, ir_arena *a) {
  return (sched_when){IR_NEW_ARRAY(a, int, s->num_kernels + 1),
                      IR_NEW_ARRAY(a, int, s->num_kernels + 1)};
}

void sched_when_set(sched_when *w, const int *steps, size_t num) {
  for (size_t t = 0; t < num; t++)
    w->last[steps[t]] = (int)t;
  for (size_t t = num; t-- > 0;)
    w->first[steps[t]] = (int)t;
}

bool sched_is_in_place(const sched *s, const sched_when *when, const sched_write *w) {
  int kernel = s->values[w->value].kernel;
  bool may = w->over_own && !ir_is_transfer(s->kernels[kernel].k);
  for (int i = 0; may && i < w->num_readers; i++)
    may = when->last[w->readers[i]] <= when->first[kernel];
  return may;
}

static void decide_writes(liver *v) {
  sched_when when = sched_when_new(v->s, v->arena);
  sched_when_set(&when, v->steps, v->num);
  for (size_t i = 0; i < v->s->writes.num; i++) {
    const sched_write *w = &v->s->writes.at[i];
    if (!v->out.in_place[w->value] && sched_is_in_place(v->s, &when, w))
      v->out.in_place[w->value] = w->node->state;
    else
      IR_PUSH(v->arena, v->out.copied, w->node);
  }
}

// --- lives ---------------------------------------------------------------------------------------
// Nothing has made it again, and it was computed into a state.
static bool is_in_state(const liver *v, int value) {
  return v->out.in_place[value] && v->current[value] < 0;
}

static sched_life *life_of(liver *v, int value) {
  sched_life *lives = v->s->values[value].host ? v->out.host.at : v->out.at.at;
  return &lives[v->current[value]];
}

static void read_operands(liver *v, int t) {
  const sched_kernel *k = &v->s->kernels[v->steps[t]];
  for (int i = 0; i < k->num_in; i++) {
    int value = k->in[i].value;
    if (value < 0 || is_in_state(v, value))
      continue;
    BUG_IF(v->current[value] < 0, "%s reads %s before it is computed", k->k->name,
           v->s->values[value].node->name);
    life_of(v, value)->last = t;
  }
}

static sched_life life_at(int t, int kernel) {
  return (sched_life){.value = -1, .kernel = kernel, .first = t, .last = t, .reuses = -1};
}

// --- transfers -----------------------------------------------------------------------------------
// What it makes has memory from here to where it is done, at least.
static void begin_transfer(liver *v, int t, int kernel) {
  int value = v->s->kernels[kernel].first_value;
  sched_life l = life_at(t, kernel);
  l.value = value;
  l.kind = v->s->values[value].host ? PLAN_HOST : PLAN_TEMP;
  l.bytes = v->s->values[value].bytes;
  if (l.kind == PLAN_HOST) {
    v->current[value] = (int)v->out.host.num;
    IR_PUSH(v->arena, v->out.host, l);
  } else {
    v->current[value] = v->first[value] = (int)v->out.at.num;
    IR_PUSH(v->arena, v->out.at, l);
  }
}

// Before the first run of the kernel at this step.
static void begin_transfers(liver *v, int t) {
  int kernel = v->steps[t];
  if (v->ran[kernel])
    return;
  for (const ir_kernel *k = v->begins.first[kernel]; k; k = v->begins.next[k->id])
    begin_transfer(v, t, (int)k->id);
}

// --- values --------------------------------------------------------------------------------------
static void make_values(liver *v, int t) {
  int kernel = v->steps[t];
  const sched_kernel *k = &v->s->kernels[kernel];
  bool again = v->ran[kernel];
  v->ran[kernel] = true;
  if (ir_is_transfer(k->k)) { // it has memory since it began
    life_of(v, k->first_value)->last = t;
    return;
  }
  for (int i = 0; i < k->num_values; i++) {
    int value = k->first_value + i;
    if (v->out.in_place[value] && !again)
      continue;
    sched_life l = life_at(t, kernel);
    l.value = value;
    l.kind = PLAN_TEMP;
    l.bytes = v->s->values[value].bytes;
    v->current[value] = (int)v->out.at.num;
    v->first[value] = again ? v->first[value] : v->current[value];
    IR_PUSH(v->arena, v->out.at, l);
  }
  if (k->k->workspace > 0) {
    sched_life l = life_at(t, kernel);
    l.kind = PLAN_WORKSPACE;
    l.bytes = k->k->workspace;
    IR_PUSH(v->arena, v->out.at, l);
  }
}

// Results, and values that are copied to states when the function ends.
static void extend_to_end(liver *v) {
  for (int i = 0; i < v->s->num_values; i++) {
    const sched_value *x = &v->s->values[i];
    if (v->first[i] < 0 || (!x->result && !x->written))
      continue;
    sched_life *l = &v->out.at.at[v->first[i]];
    l->last = (int)v->num - 1;
    if (x->result)
      l->kind = PLAN_RESULT;
  }
}

// --- in-place reuse ------------------------------------------------------------------------------
// The life of operand `in`, a whole value, when the step at hand is the last to need it.
static int dying(const liver *v, const sched_kernel *k, int t, int in) {
  int value = k->in[in].value;
  if (is_in_state(v, value) || v->s->values[value].host)
    return -1;
  int life = v->current[value];
  const sched_value *of = &v->s->values[value];
  if (life == v->first[value] && (of->result || of->written))
    return -1; // needed at the end
  const sched_life *x = &v->out.at.at[life];
  return x->last == t ? life : -1;
}

// The life of output `out`, among those that begin in a step.
static size_t find_output(const liver *v, size_t first, const sched_kernel *k, int out) {
  while (v->out.at.at[first].value != k->first_value + out)
    first++;
  return first;
}

static void take_over(liver *v, const sched_match *m, int t, size_t first) {
  const sched_kernel *k = &v->s->kernels[v->steps[t]];
  for (int i = 0; i < k->num_in; i++) {
    int value = k->in[i].value, out = m->dying[i] ? m->taken_by[value] : -1;
    if (out < 0)
      continue;
    size_t life = find_output(v, first, k, out);
    v->out.at.at[life].reuses = v->current[value];
  }
}

// Lives [first, end) begin in step t.
static void reuse_at(liver *v, sched_match *m, int t, size_t first, size_t end) {
  int kernel = v->steps[t];
  const sched_kernel *k = &v->s->kernels[kernel];
  bool any = false;
  for (int i = 0; i < k->num_in; i++) {
    m->dying[i] = k->in[i].value >= 0 && dying(v, k, t, i) >= 0;
    any |= m->dying[i];
  }
  if (!any)
    return;
  for (size_t i = first; i < end; i++)
    if (v->out.at.at[i].value >= 0 && v->out.at.at[i].kernel == kernel)
      sched_match_output(m, kernel, v->out.at.at[i].value - k->first_value);
  take_over(v, m, t, first);
  sched_match_end(m, kernel);
}

static void reuse_operands(liver *v) {
  sched_match m = sched_match_new(v->s, v->arena);
  memset(v->current, -1, sizeof(int) * ((size_t)v->s->num_values + 1));
  for (size_t first = 0; first < v->out.at.num;) {
    int t = v->out.at.at[first].first;
    size_t end = first;
    while (end < v->out.at.num && v->out.at.at[end].first == t)
      end++;
    reuse_at(v, &m, t, first, end);
    for (size_t i = first; i < end; i++)
      if (v->out.at.at[i].value >= 0)
        v->current[v->out.at.at[i].value] = (int)i;
    first = end;
  }
}

int64_t sched_bytes_made(const sched *s, int k) {
  const sched_kernel *x = &s->kernels[k];
  int64_t bytes = 0;
  for (int v = x->first_value; v < x->first_value + x->num_values; v++)
    bytes += s->values[v].bytes;
  return bytes;
}

int *sched_order_as_it_is(const sched *s, ir_arena *a) {
  int *steps = IR_NEW_ARRAY(a, int, s->num_kernels + 1);
  for (int k = 0; k < s->num_kernels; k++)
    steps[k] = k;
  return steps;
}

sched_lives sched_find_lives(sched *s, ir_arena *a, const int *steps, size_t num) {
  liver v = {.s = s, .arena = a, .steps = steps, .num = num};
  size_t values = (size_t)s->num_values + 1;
  v.current = IR_NEW_ARRAY(a, int, values);
  v.first = IR_NEW_ARRAY(a, int, values);
  v.ran = IR_NEW_ARRAY(a, bool, s->num_kernels + 1);
  v.out.in_place = IR_NEW_ARRAY(a, const ir_state *, values);
  memset(v.current, -1, sizeof(int) * values);
  memset(v.first, -1, sizeof(int) * values);
  v.begins = ir_find_begins(a, s->f);
  decide_writes(&v);
  for (size_t t = 0; t < num; t++) {
    begin_transfers(&v, (int)t);
    read_operands(&v, (int)t);
    make_values(&v, (int)t);
  }
  extend_to_end(&v);
  reuse_operands(&v);
  return v.out;
}

// A life that takes over another's memory adds nothing at its first step.
int64_t sched_live_bytes(const sched_lives *l, size_t num, int64_t *live) {
  memset(live, 0, sizeof(int64_t) * num);
  int64_t at = 0, most = 0;
  for (size_t i = 0; i < l->at.num; i++) {
    const sched_life *x = &l->at.at[i];
    size_t from = (size_t)x->first + (x->reuses >= 0);
    if (from > (size_t)x->last)
      continue;
    live[from] += plan_align(x->bytes);
    if ((size_t)x->last + 1 < num)
      live[x->last + 1] -= plan_align(x->bytes);
  }
  for (size_t t = 0; t < num; t++) {
    live[t] = at += live[t];
    most = at > most ? at : most;
  }
  return most;
}

size_t sched_find_peak(const int64_t *live, int64_t most) {
  size_t t = 0;
  while (live[t] != most)
    t++;
  return t;
}
