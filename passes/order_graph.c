// order_graph.c: what must come before what.
//
// Besides data order, every kernel that reads a state comes before the kernel that computes the
// state's next value, so that the value can be computed in place:
//
//   before                                   after
//     kernel k1 { w.new = w - lr*dw }          kernel k2 { dx = dy @ w }      reads @w
//     kernel k2 { dx = dy @ w }                kernel k1 { w.new = w - lr*dw }
//     write @w, w.new                          write @w, w.new                in place
//
// A wish like that which would make a cycle (a reader needs the new value) is dropped, and the
// planner then gives the value a temporary.
#include <string.h>

#include "passes/order_parts.h"

enum { NO_WISH = -1 };

typedef struct edge {
  int from, to; // `to` waits for `from`
  int wish;     // the write that wants it; NO_WISH: data
} edge;

typedef IR_VEC(edge) edges;
typedef IR_VEC(int) numbers;

typedef struct builder {
  order_graph *g;
  edges all;
  order_sets out; // [kernel] indices into `all`
  bool *wished;   // [write]
  bool *dropped;  // [write]
  int *waits;     // [kernel]
  int *ready, num_ready, num_done;
  bool *done;
} builder;

// --- lists ---------------------------------------------------------------------------------------
typedef struct pair {
  int key, of;
} pair;
typedef IR_VEC(pair) pairs;

static order_sets collect(ir_arena *a, const pairs *p, int num_keys) {
  order_sets s = {IR_NEW_ARRAY(a, int, num_keys + 2), IR_NEW_ARRAY(a, int, p->num + 1)};
  for (size_t i = 0; i < p->num; i++)
    s.at[p->at[i].key + 2]++;
  for (int k = 0; k < num_keys; k++)
    s.at[k + 2] += s.at[k + 1];
  for (size_t i = 0; i < p->num; i++)
    s.of[s.at[p->at[i].key + 1]++] = p->at[i].of;
  return s;
}

// --- edges ---------------------------------------------------------------------------------------
static void add_edge(builder *b, int from, int to, int wish) {
  edge e = {from, to, wish};
  IR_PUSH(b->g->arena, b->all, e);
}

// What kernels read.
typedef struct operands {
  numbers *state_readers; // [state id] kernels
  pairs reads, readers;   // kernel and value, value and kernel
  int *seen_by;           // [value] the last kernel that reads it so far, -1
} operands;

// Data edges and values of each kernel, and who reads which state.
static void add_operands(builder *b, int k, operands *o) {
  ir_arena *a = b->g->arena;
  const sched *s = b->g->s;
  const sched_kernel *x = &s->kernels[k];
  for (int i = 0; i < x->num_in; i++) {
    const ir_node *n = x->in[i].node;
    int v = x->in[i].value;
    if (v < 0) {
      numbers *r = n->op == IR_READ ? &o->state_readers[n->state->id] : NULL;
      if (r && (!r->num || r->at[r->num - 1] != k))
        IR_PUSH(a, *r, k);
    } else if (o->seen_by[v] != k) {
      o->seen_by[v] = k;
      pair read = {k, v}, reader = {v, k};
      IR_PUSH(a, o->reads, read);
      IR_PUSH(a, o->readers, reader);
      add_edge(b, s->values[v].kernel, k, NO_WISH);
    }
  }
}

// All readers of the state first. None when the writer itself reads the state at other places than
// it writes, or its value goes to another state already: it has a temporary anyway.
static void add_wishes(builder *b, const numbers *state_readers) {
  const sched *s = b->g->s;
  bool *taken = IR_NEW_ARRAY(b->g->arena, bool, s->num_values + 1);
  for (size_t w = 0; w < s->writes.num; w++) {
    int v = s->writes.at[w].value, writer = s->values[v].kernel;
    const numbers *r = &state_readers[s->writes.at[w].node->state->id];
    if (!s->writes.at[w].over_own || taken[v])
      continue;
    taken[v] = b->wished[w] = true;
    for (size_t i = 0; i < r->num; i++)
      if (r->at[i] != writer)
        add_edge(b, r->at[i], writer, (int)w);
  }
}

static void add_edges(builder *b) {
  ir_arena *a = b->g->arena;
  const sched *s = b->g->s;
  operands o = {.state_readers = IR_NEW_ARRAY(a, numbers, s->f->module->states.num + 1),
                .seen_by = IR_NEW_ARRAY(a, int, s->num_values + 1)};
  memset(o.seen_by, -1, sizeof(int) * ((size_t)s->num_values + 1));
  for (int k = 0; k < b->g->n; k++)
    add_operands(b, k, &o);
  b->g->reads = collect(a, &o.reads, b->g->n);
  b->g->readers = collect(a, &o.readers, s->num_values);
  add_wishes(b, o.state_readers);
}

// --- wishes that close cycles --------------------------------------------------------------------
static bool counts(const builder *b, const edge *e) {
  return e->wish == NO_WISH || !b->dropped[e->wish];
}

static void push_if_ready(builder *b, int k) {
  if (!b->done[k] && b->waits[k] == 0)
    b->ready[b->num_ready++] = k;
}

static void run_ready(builder *b) {
  while (b->num_ready) {
    int k = b->ready[--b->num_ready];
    b->done[k] = true;
    b->num_done++;
    for (int i = b->out.at[k]; i < b->out.at[k + 1]; i++) {
      const edge *e = &b->all.at[b->out.of[i]];
      if (counts(b, e) && --b->waits[e->to] == 0)
        push_if_ready(b, e->to);
    }
  }
}

// For each waiting kernel an edge that it waits for.
static void find_blockers(const builder *b, int *via) {
  memset(via, -1, sizeof(int) * (size_t)b->g->n);
  for (size_t i = 0; i < b->all.num; i++)
    if (!b->done[b->all.at[i].from] && counts(b, &b->all.at[i]))
      via[b->all.at[i].to] = (int)i;
}

// Every kernel left waits for another: there is a cycle, and only wishes can close it. Walks
// back from kernel to blocker until the walk meets itself, then once around for a wish.
static int find_wish_on_cycle(const builder *b) {
  const order_graph *g = b->g;
  int *via = IR_NEW_ARRAY(g->arena, int, g->n);
  bool *seen = IR_NEW_ARRAY(g->arena, bool, g->n);
  find_blockers(b, via);
  int k = 0;
  while (b->done[k])
    k++;
  for (; !seen[k]; k = b->all.at[via[k]].from) {
    BUG_IF(via[k] < 0, "kernel %s waits for nothing", g->s->kernels[k].k->name);
    seen[k] = true;
  }
  int at = k;
  while (b->all.at[via[at]].wish == NO_WISH) {
    at = b->all.at[via[at]].from;
    BUG_IF(at == k, "kernels of %s need each other: %s", g->s->f->name, g->s->kernels[k].k->name);
  }
  return b->all.at[via[at]].wish;
}

// Drops all edges of one wish: one missing edge already rules out in-place.
static void drop_wish(builder *b) {
  int wish = find_wish_on_cycle(b);
  for (size_t i = 0; i < b->all.num; i++) {
    const edge *e = &b->all.at[i];
    if (e->wish == wish && !b->done[e->from] && --b->waits[e->to] == 0)
      push_if_ready(b, e->to);
  }
  b->dropped[wish] = true;
}

static void drop_cycles(builder *b) {
  ir_arena *a = b->g->arena;
  int n = b->g->n;
  pairs out = {0};
  for (size_t i = 0; i < b->all.num; i++) {
    pair p = {b->all.at[i].from, (int)i};
    IR_PUSH(a, out, p);
  }
  b->out = collect(a, &out, n);
  b->waits = IR_NEW_ARRAY(a, int, n);
  b->ready = IR_NEW_ARRAY(a, int, n);
  b->done = IR_NEW_ARRAY(a, bool, n);
  for (size_t i = 0; i < b->all.num; i++)
    b->waits[b->all.at[i].to]++;
  for (int k = 0; k < n; k++)
    push_if_ready(b, k);
  for (run_ready(b); b->num_done < n; run_ready(b))
    drop_wish(b);
}

// --- the graph -----------------------------------------------------------------------------------
// Each pair of kernels once.
static void put_edges(builder *b) {
  ir_arena *a = b->g->arena;
  int *seen_by = IR_NEW_ARRAY(a, int, b->g->n + 1);
  pairs after = {0}, before = {0};
  memset(seen_by, -1, sizeof(int) * ((size_t)b->g->n + 1));
  for (int k = 0; k < b->g->n; k++)
    for (int i = b->out.at[k]; i < b->out.at[k + 1]; i++) {
      const edge *e = &b->all.at[b->out.of[i]];
      pair x = {k, e->to}, y = {e->to, k};
      if (!counts(b, e) || seen_by[e->to] == k)
        continue;
      seen_by[e->to] = k;
      IR_PUSH(a, after, x);
      IR_PUSH(a, before, y);
    }
  b->g->after = collect(a, &after, b->g->n);
  b->g->before = collect(a, &before, b->g->n);
}

static void put_bytes(builder *b) {
  const sched *s = b->g->s;
  b->g->bytes = IR_NEW_ARRAY(b->g->arena, int64_t, s->num_values + 1);
  b->g->kept = IR_NEW_ARRAY(b->g->arena, bool, s->num_values + 1);
  for (int v = 0; v < s->num_values; v++) {
    b->g->bytes[v] = plan_align(s->values[v].bytes);
    b->g->kept[v] = s->values[v].result || s->values[v].written;
  }
  for (size_t w = 0; w < s->writes.num; w++)
    if (b->wished[w] && !b->dropped[w])
      b->g->bytes[s->writes.at[w].value] = 0;
}

// An output of kernel `k` may take over one of its operands, if that dies there.
static bool may_take_over(const order_graph *g, int k, int out) {
  sched_ins under = sched_find_under(g->s, k, out);
  for (int i = 0; i < under.num; i++)
    if (order_may_take_over(g, g->s->kernels[k].in[under.at[i]].value))
      return true;
  return false;
}

// What a kernel needs at once, even if nothing else is live. (Not the bound of plan_facts.c: see there.)
static int64_t least_of(const order_graph *g, int k) {
  const sched_kernel *x = &g->s->kernels[k];
  int64_t bytes = plan_align(x->k->workspace);
  for (int i = g->reads.at[k]; i < g->reads.at[k + 1]; i++)
    bytes += g->bytes[g->reads.of[i]];
  for (int i = 0; i < x->num_values; i++)
    bytes += may_take_over(g, k, i) ? 0 : g->bytes[x->first_value + i];
  return bytes;
}

order_graph *order_graph_new(ir_arena *a, sched *s) {
  order_graph *g = IR_NEW(a, order_graph);
  *g = (order_graph){.arena = a, .scratch = ir_arena_new(), .s = s, .n = s->num_kernels};
  builder b = {.g = g};
  b.wished = IR_NEW_ARRAY(a, bool, s->writes.num + 1);
  b.dropped = IR_NEW_ARRAY(a, bool, s->writes.num + 1);
  add_edges(&b);
  drop_cycles(&b);
  put_edges(&b);
  put_bytes(&b);
  for (int k = 0; k < g->n; k++) {
    int64_t least = least_of(g, k);
    g->least = least > g->least ? least : g->least;
  }
  return g;
}

void order_graph_free(order_graph *g) {
  ir_arena_free(g->scratch);
}
