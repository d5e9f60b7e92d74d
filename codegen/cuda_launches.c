// cuda_launches.c: see cuda_launches.h.
//
// Kernels are taken in their order. Each joins a launch that it has nothing to do with, if
//
//   it has nothing to do with those that follow     a   b(a)   c         c goes up, beside a
//   or they have nothing to do with that launch     a   b   c(b)         a goes down, beside c
//
// and gets a launch of its own otherwise, the last so far. It goes up as far as can be, so that of
// many chains a, b(a) the first kernels meet, and the second.
//
// Bytes of the plan decide what has to do with what, so that results are those of one kernel after
// the other, whatever the plan is. But plans give memory to one value after the other, for which
// kernels then have to wait that need not. So launches are found twice: before there is a plan,
// from values alone, to tell the planner which lives should be longer, and from what it then did.
//
// A launch has the registers of its widest kernel. That costs the others nothing while all of its
// blocks are on the chip at a time anyhow, or while there are few: with up to PLENTY (estimated;
// ptxas takes four fifths of it at most) an SM holds 24 warps, which is enough for the traffic of
// its share of memory.
#include "codegen/cuda_launches.h"

#include <string.h>

enum {
  PLENTY = 80,     // registers of a thread
  MOST_BACK = 64,  // launches that are looked at: time of compiling, in long functions
  MOST_WIDTH = 24, // arguments of a call: all rows of a table are as wide as the widest
};

typedef struct finder {
  const cg_program *p;
  const plan *plan; // NULL: each value and each state has a byte of its own
  size_t func;
  const ir_func *f;
  const int64_t *workspace; // with a plan: by kernel id
  const ir_node **write;    // without one: by id, the first write of a value
  const ir_node **next;     // [write] the next one of that value
  int *number;              // [kernel] of a transfer: how many stand before it
  cuda_launches all;
} finder;

// --- what touches what -----------------------------------------------------------------------
static bool meet(const cuda_launch *a, const cuda_launch *b) {
  return cg_spans_overlap(&a->writes, &b->reads) || cg_spans_overlap(&a->reads, &b->writes) ||
         cg_spans_overlap(&a->writes, &b->writes);
}

// Without a plan: the value's own byte, or the state's.
static void add_value(finder *f, cg_spans *s, int64_t id) {
  cg_bytes x = {id, id + 1};
  IR_PUSH(f->p->arena, *s, x);
}

static int64_t id_of(const finder *f, const ir_state *s) {
  return f->f->next_id + (int64_t)s->id;
}

static void add_read(finder *f, cg_spans *s, const ir_node *n) {
  if (n->op != IR_INPUT)
    add_value(f, s, n->op == IR_READ ? id_of(f, n->state) : dom_owner(n)->id);
}

// The plan has a value that is written to states computed there, if it can be.
static void add_written(finder *f, cg_spans *s, const ir_node *value) {
  add_value(f, s, value->id);
  for (const ir_node *w = f->write[value->id]; w; w = f->next[w->id])
    add_value(f, s, id_of(f, w->state));
}

static void add_spans(finder *f, cuda_launch *x, const cg_kernel *c) {
  if (f->plan) {
    cg_kernel_spans(f->p->arena, f->plan, f->workspace, c, &x->reads, &x->writes);
    return;
  }
  for (size_t i = 0; i < c->in.num; i++)
    add_read(f, &x->reads, c->in.at[i]);
  for (size_t i = 0; i < c->out.num; i++)
    add_written(f, &x->writes, c->out.at[i]);
}

// A row of a table has 31 bits for the place of a buffer, in units of PLAN_ALIGN: what lies beyond 128 GiB
// needs a launch with arguments of its own.
static bool in_reach(const cg_spans *s) {
  for (size_t i = 0; i < s->num; i++)
    if (s->at[i].to > (INT64_C(1) << 31) * PLAN_ALIGN)
      return false;
  return true;
}

static cuda_launch launch_of(finder *f, const cg_kernel *c) {
  cuda_launch x = {.only = f->plan ? f->p->shared[f->func][c->k->id] : NULL,
                   .at = c->k->id,
                   .blocks = c->tasks[0],
                   .threads = c->threads[0],
                   .registers = c->registers,
                   .any_threads = c->any_threads,
                   .shared = c->num_phases == 1 && c->shared[0] == 0 && !c->own &&
                             c->in.num + c->out.num <= MOST_WIDTH &&
                             !cg_runs_once(f->f)}; // not worth an entry more to compile
  IR_PUSH(f->p->arena, x.calls, c);
  add_spans(f, &x, c);
  x.shared &= !f->plan || (in_reach(&x.reads) && in_reach(&x.writes));
  for (size_t i = 0; i < c->numbers.num; i++)
    x.shared &= c->numbers.at[i] >= 0 && c->numbers.at[i] <= UINT32_MAX; // a word of a row
  return x;
}

// --- what suits what -------------------------------------------------------------------------
static int widest(int a, int b) {
  return a > b ? a : b;
}

bool cuda_has_room(const cg_cuda *chip, int threads, int registers, int64_t blocks) {
  int resident = cg_resident_blocks(chip, threads, registers, 0);
  return registers <= PLENTY || blocks <= (int64_t)chip->sms * resident;
}

static bool has_room(const finder *f, const cuda_launch *a, const cuda_launch *b) {
  return cuda_has_room(f->p->target->cuda, widest(a->threads, b->threads),
                       widest(a->registers, b->registers), a->blocks + b->blocks);
}

static bool suit(const finder *f, const cuda_launch *a, const cuda_launch *b) {
  if (!a->shared || !b->shared)
    return false;
  if (a->only && a->only == b->only)
    return true;
  bool same_blocks = a->threads == b->threads || a->any_threads || b->any_threads;
  return a->registers && b->registers && same_blocks && has_room(f, a, b);
}

// --- joining ---------------------------------------------------------------------------------
static void join(finder *f, cuda_launch *to, const cuda_launch *x) {
  ir_arena *a = f->p->arena;
  IR_PUSH(a, to->calls, x->calls.at[0]);
  for (size_t i = 0; i < x->reads.num; i++)
    IR_PUSH(a, to->reads, x->reads.at[i]);
  for (size_t i = 0; i < x->writes.num; i++)
    IR_PUSH(a, to->writes, x->writes.at[i]);
  to->only = to->only == x->only ? to->only : NULL;
  to->threads = to->any_threads ? x->threads : x->any_threads ? to->threads : x->threads;
  to->any_threads &= x->any_threads;
  to->registers = widest(to->registers, x->registers);
  to->blocks += x->blocks;
}

static void move_to_end(finder *f, size_t i) {
  cuda_launch x = f->all.at[i];
  for (; i + 1 < f->all.num; i++)
    f->all.at[i] = f->all.at[i + 1];
  f->all.at[i] = x;
}

// The first launch that x may join by going up to it; NULL: none. *met: how many launches there are
// up to the last one that x has to do with, beyond which it does not go.
static cuda_launch *first_above(finder *f, const cuda_launch *x, size_t begin, size_t *met) {
  cuda_launch *best = NULL;
  for (*met = f->all.num; *met > begin; --*met) {
    cuda_launch *l = &f->all.at[*met - 1];
    if (meet(l, x))
      break;
    best = suit(f, l, x) ? l : best;
  }
  return best;
}

// The last launch that x may join if that goes down to the end; NULL: none.
static cuda_launch *last_to_sink(finder *f, const cuda_launch *x, size_t begin, size_t end) {
  for (size_t i = end; i-- > begin;) {
    cuda_launch *l = &f->all.at[i];
    if (l->pinned || !suit(f, l, x) || meet(l, x))
      continue;
    l->at = x->at;
    move_to_end(f, i);
    return &f->all.at[f->all.num - 1];
  }
  return NULL;
}

// Launches before it are neither joined nor moved any more.
static size_t first_in_reach(const finder *f) {
  return f->all.num > MOST_BACK ? f->all.num - MOST_BACK : 0;
}

static cuda_launch *find_place(finder *f, const cuda_launch *x) {
  size_t begin = first_in_reach(f), met;
  cuda_launch *above = first_above(f, x, begin, &met);
  return above ? above : last_to_sink(f, x, begin, met);
}

static void pin(finder *f, const cuda_launch *x, const cuda_launch *place) {
  for (size_t i = first_in_reach(f); i < f->all.num; i++) {
    cuda_launch *l = &f->all.at[i];
    if (l == place)
      return;
    l->pinned = l->pinned || meet(l, x);
  }
}

static void add_call(finder *f, const cg_kernel *c) {
  cuda_launch x = launch_of(f, c);
  cuda_launch *place = find_place(f, &x);
  pin(f, &x, place);
  if (place)
    join(f, place, &x);
  else
    IR_PUSH(f->p->arena, f->all, x);
}

// --- transfers -------------------------------------------------------------------------------
// Copies run beside launches, from one place of the list to another. What is in the device's memory
// is theirs between the two: the spans of both keep launches apart that touch it.
static void add_transfer(finder *f, const ir_kernel *k, bool done) {
  bool sends = k->family == IR_FAMILY_SEND;
  const ir_node *there = sends ? k->nodes.at[0]->in[0] : k->nodes.at[0];
  cuda_launch x = {
      .transfer = k, .done = done, .number = f->number[k->id], .at = k->id, .pinned = true};
  cg_spans *spans = sends ? &x.reads : &x.writes;
  if (f->plan) {
    int64_t at = plan_offset(f->plan, f->f, there);
    cg_bytes bytes = {at, at + ir_bytes(&there->type)};
    IR_PUSH(f->p->arena, *spans, bytes);
  } else {
    add_value(f, spans, there->id);
  }
  pin(f, &x, NULL);
  IR_PUSH(f->p->arena, f->all, x);
}

static void number_transfers(finder *f) {
  int num = 0;
  f->number = IR_NEW_ARRAY(f->p->arena, int, f->f->kernels.num + 1);
  for (size_t i = 0; i < f->f->kernels.num; i++) {
    f->number[i] = num;
    num += ir_is_transfer(f->f->kernels.at[i]);
  }
}

static cuda_launches find(finder *f) {
  number_transfers(f);
  ir_begins begins = ir_find_begins(f->p->arena, f->f);
  for (size_t i = 0; i < f->f->kernels.num; i++) {
    const ir_kernel *k = f->f->kernels.at[i];
    for (const ir_kernel *t = begins.first[i]; t; t = begins.next[t->id])
      add_transfer(f, t, false);
    if (ir_is_transfer(k))
      add_transfer(f, k, true);
    else
      add_call(f, f->p->kernels[f->func][i]);
  }
  return f->all;
}

cuda_launches cuda_find_launches(const cg_program *p, const plan *plan, size_t func) {
  finder f = {.p = p, .plan = plan, .func = func, .f = p->module->funcs.at[func]};
  f.workspace = cg_workspaces(p->arena, plan, f.f);
  return find(&f);
}

// --- lives -----------------------------------------------------------------------------------
static void wish(const finder *f, plan_wishes *w, const ir_node *n, uint32_t from, uint32_t to) {
  plan_wish x = {f->f, dom_owner(n), (int)from, (int)to};
  if (x.node->kernel)
    IR_PUSH(f->p->arena, *w, x);
}

// A call that runs earlier than in the order of kernels writes earlier; one that runs later reads
// and writes later.
static void wish_for(const finder *f, plan_wishes *w, const cuda_launch *x) {
  for (size_t i = 0; i < x->calls.num; i++) {
    const cg_kernel *c = x->calls.at[i];
    uint32_t id = c->k->id, from = x->at < id ? x->at : id, to = x->at > id ? x->at : id;
    for (size_t j = 0; j < c->in.num && to > id; j++)
      wish(f, w, c->in.at[j], id, to);
    for (size_t j = 0; j < c->out.num && from < to; j++)
      wish(f, w, c->out.at[j], from, to);
  }
}

static void find_writes(finder *f) {
  f->write = IR_NEW_ARRAY(f->p->arena, const ir_node *, f->f->next_id);
  f->next = IR_NEW_ARRAY(f->p->arena, const ir_node *, f->f->next_id);
  for (size_t i = f->f->nodes.num; i-- > 0;) {
    const ir_node *w = f->f->nodes.at[i];
    if (w->op != IR_WRITE)
      continue;
    f->next[w->id] = f->write[w->in[0]->id];
    f->write[w->in[0]->id] = w;
  }
}

plan_wishes cuda_wish_lives(const cg_program *p) {
  plan_wishes w = {0};
  for (size_t i = 0; i < p->module->funcs.num; i++) {
    finder f = {.p = p, .func = i, .f = p->module->funcs.at[i]};
    find_writes(&f);
    cuda_launches all = find(&f);
    for (size_t j = 0; j < all.num; j++)
      wish_for(&f, &w, &all.at[j]);
  }
  return w;
}
