// order_lists.c: orders made in one go: of the kernels that may run, the best by a rule.
//
// (Greedy list scheduling by the change of live bytes: Sethi and Ullman's idea on a graph.) A heap
// holds the kernels that may run, by key; where a key changes while a kernel waits, it is put in
// again, and what is found with an old key is passed over.
#include <string.h>

#include "passes/order_parts.h"

// Bytes set free that are worth leaving source order for: small kernels of one kind that lie side
// by side become one launch (the sums of all gradients' squares).
enum {
  WORTHWHILE = 4096,
  WORTH_MORE = 65536, // of a value that kernels set free together, or behind others,
  MOST_ENDING = 16,   // no more than so many
};

typedef struct entry {
  int64_t key, then; // least first
  int kernel;
} entry;

typedef struct heap {
  IR_VEC(entry) at;
  ir_arena *arena;
} heap;

static bool goes_before(const entry *a, const entry *b) {
  return a->key != b->key     ? a->key < b->key
         : a->then != b->then ? a->then < b->then
                              : a->kernel < b->kernel;
}

static void swap(heap *h, size_t i, size_t j) {
  entry t = h->at.at[i];
  h->at.at[i] = h->at.at[j];
  h->at.at[j] = t;
}

static void push(heap *h, entry e) {
  size_t i = h->at.num;
  IR_PUSH(h->arena, h->at, e);
  for (; i > 0 && goes_before(&h->at.at[i], &h->at.at[(i - 1) / 2]); i = (i - 1) / 2)
    swap(h, i, (i - 1) / 2);
}

static entry pop(heap *h) {
  entry top = h->at.at[0];
  h->at.at[0] = h->at.at[--h->at.num];
  for (size_t i = 0;;) {
    size_t least = i;
    for (size_t c = 2 * i + 1; c <= 2 * i + 2; c++)
      if (c < h->at.num && goes_before(&h->at.at[c], &h->at.at[least]))
        least = c;
    if (least == i)
      return top;
    swap(h, i, least);
    i = least;
  }
}

typedef struct lister {
  const order_graph *g;
  order_rule rule;
  order_walk w;
  heap h;
  entry *now;       // [kernel] its key
  bool *done;       // [kernel]
  bool *ending;     // [kernel] with others, it sets a large value free
  int64_t *enabled; // [kernel] when it became possible
  int64_t time;
} lister;

static lister lister_new(const order_graph *g, order_rule rule, ir_arena *a) {
  lister l = {.g = g, .rule = rule, .h.arena = a};
  l.w = order_walk_new(a, g);
  l.now = IR_NEW_ARRAY(a, entry, g->n + 1);
  l.done = IR_NEW_ARRAY(a, bool, g->n + 1);
  l.ending = IR_NEW_ARRAY(a, bool, g->n + 1);
  l.enabled = IR_NEW_ARRAY(a, int64_t, g->n + 1);
  return l;
}

static void queue(lister *l, int k, int64_t key, int64_t then) {
  l->now[k] = (entry){key, then, k};
  push(&l->h, l->now[k]);
}

// The next kernel whose entry is as it stands now; -1: there is none.
static int take(lister *l) {
  while (l->h.at.num) {
    entry e = pop(&l->h);
    if (!l->done[e.kernel] && e.key == l->now[e.kernel].key)
      return e.kernel;
  }
  return -1;
}

// --- forwards ------------------------------------------------------------------------------------
// Computed in states, outputs take no memory.
static bool takes_memory(const order_graph *g, int k) {
  const sched_kernel *x = &g->s->kernels[k];
  for (int v = x->first_value; v < x->first_value + x->num_values; v++)
    if (g->bytes[v] > 0)
      return true;
  return false;
}

static int64_t key_of(const lister *l, int k) {
  if (l->rule == ORDER_SOURCE)
    return 0;
  if (l->ending[k])
    return 0;
  int64_t after = order_cost_of(&l->w, k).after;
  if (l->rule == ORDER_NET)
    return after;
  if (l->rule == ORDER_DEPTH)
    return after > 0;
  return -after < (takes_memory(l->g, k) ? WORTHWHILE : 0);
}

static void queue_forwards(lister *l, int k) {
  queue(l, k, key_of(l, k), l->rule == ORDER_DEPTH ? -l->enabled[k] : 0);
}

// Whoever is now the last to read an operand of `k` will set it free.
static void pass_on(lister *l, int k) {
  for (int i = l->g->reads.at[k]; i < l->g->reads.at[k + 1]; i++) {
    int v = l->g->reads.of[i];
    if (l->w.left[v] != 1 || l->g->bytes[v] == 0)
      continue;
    for (int j = l->g->readers.at[v]; j < l->g->readers.at[v + 1]; j++) {
      int last = l->g->readers.of[j];
      if (!l->done[last] && l->w.waits[last] == 0 && key_of(l, last) != l->now[last].key)
        queue_forwards(l, last);
    }
  }
}

// --- values that several kernels set free, or one behind others
//
//   d: 200 KB, of which b.new and g.new sum up rows         d  .. all of the backward pass ..  b.m  b.new  g.m  g.new
//   b.m, g.m: kernels of a few bytes that these wait for    d  b.m  b.new  g.m  g.new  ..
//
// None of them sets anything free, or may run, when its turn in this rule comes.
static int64_t bytes_made(const order_graph *g, int k) {
  const sched_kernel *x = &g->s->kernels[k];
  int64_t made = 0;
  for (int v = x->first_value; v < x->first_value + x->num_values; v++)
    made += g->bytes[v];
  return made;
}

typedef struct ending {
  int at[MOST_ENDING], num;
  int64_t made; // bytes
} ending;

// `k`, and before it what it still waits for. False: that is too much.
static bool add_ending(const lister *l, int k, ending *e) {
  for (int i = 0; i < e->num; i++)
    if (e->at[i] == k)
      return true;
  e->made += bytes_made(l->g, k);
  if (e->num == MOST_ENDING || e->made >= WORTHWHILE)
    return false;
  e->at[e->num++] = k;
  for (int i = l->g->before.at[k]; l->w.waits[k] && i < l->g->before.at[k + 1]; i++) {
    int first = l->g->before.of[i];
    if (!l->done[first] && !add_ending(l, first, e))
      return false;
  }
  return true;
}

// Where all that still reads `v` makes next to nothing, it may run now.
static void end_value(lister *l, int v) {
  const order_graph *g = l->g;
  ending e = {0};
  if (g->bytes[v] < WORTH_MORE || g->kept[v] || l->w.left[v] < 1 || l->w.left[v] > MOST_ENDING)
    return;
  for (int i = g->readers.at[v]; i < g->readers.at[v + 1]; i++)
    if (!l->done[g->readers.of[i]] && !add_ending(l, g->readers.of[i], &e))
      return;
  for (int i = 0; i < e.num; i++) {
    bool was = l->ending[e.at[i]];
    l->ending[e.at[i]] = true;
    if (!was && l->w.waits[e.at[i]] == 0)
      queue_forwards(l, e.at[i]);
  }
}

// A value may be one now that `k` has made, has read, or that a kernel reads which has waited for it.
static void end_values(lister *l, int k) {
  const order_graph *g = l->g;
  const sched_kernel *x = &g->s->kernels[k];
  for (int v = x->first_value; v < x->first_value + x->num_values; v++)
    end_value(l, v);
  for (int i = g->reads.at[k]; i < g->reads.at[k + 1]; i++)
    end_value(l, g->reads.of[i]);
  for (int i = g->after.at[k]; i < g->after.at[k + 1]; i++) {
    int next = g->after.of[i];
    for (int j = g->reads.at[next]; j < g->reads.at[next + 1]; j++)
      end_value(l, g->reads.of[j]);
  }
}

static void run(lister *l, int k) {
  l->done[k] = true;
  l->time++;
  order_walk_step(&l->w, k);
  pass_on(l, k);
  for (int i = l->g->after.at[k]; i < l->g->after.at[k + 1]; i++) {
    int next = l->g->after.of[i];
    if (l->w.waits[next] == 0) {
      l->enabled[next] = l->time;
      queue_forwards(l, next);
    }
  }
  if (l->rule == ORDER_EARLY)
    end_values(l, k);
}

void order_forwards(const order_graph *g, order_rule rule, int *steps) {
  ir_arena *a = ir_arena_new();
  lister l = lister_new(g, rule, a);
  for (int k = 0; k < g->n; k++)
    if (l.w.waits[k] == 0)
      queue_forwards(&l, k);
  for (int t = 0; t < g->n; t++) {
    steps[t] = take(&l);
    BUG_IF(steps[t] < 0, "%s: a kernel that no order reaches", g->s->f->name);
    run(&l, steps[t]);
  }
  ir_arena_free(a);
}

// --- backwards -----------------------------------------------------------------------------------
// Seen from the end, a kernel ends the lives of its outputs and begins those of its operands, as
// far as no later kernel has begun them. left: readers that are not placed yet.
static int64_t net_backwards(const lister *l, int k) {
  const order_graph *g = l->g;
  const sched_kernel *x = &g->s->kernels[k];
  int64_t net = 0;
  for (int v = x->first_value; v < x->first_value + x->num_values; v++)
    net -= g->bytes[v];
  for (int i = g->reads.at[k]; i < g->reads.at[k + 1]; i++) {
    int v = g->reads.of[i];
    if (l->w.left[v] == order_count(&g->readers, v) && !g->kept[v])
      net += g->bytes[v];
  }
  return net;
}

static void queue_backwards(lister *l, int k) {
  queue(l, k, net_backwards(l, k), -k);
}

static void run_backwards(lister *l, int k) {
  const order_graph *g = l->g;
  l->done[k] = true;
  for (int i = g->reads.at[k]; i < g->reads.at[k + 1]; i++) {
    int v = g->reads.of[i];
    if (l->w.left[v]-- != order_count(&g->readers, v))
      continue;
    for (int j = g->readers.at[v]; j < g->readers.at[v + 1]; j++)
      if (!l->done[g->readers.of[j]] && l->w.waits[g->readers.of[j]] == 0)
        queue_backwards(l, g->readers.of[j]);
  }
  for (int i = g->before.at[k]; i < g->before.at[k + 1]; i++)
    if (--l->w.waits[g->before.of[i]] == 0)
      queue_backwards(l, g->before.of[i]);
}

void order_backwards(const order_graph *g, int *steps) {
  ir_arena *a = ir_arena_new();
  lister l = lister_new(g, ORDER_NET, a);
  for (int k = 0; k < g->n; k++)
    if ((l.w.waits[k] = order_count(&g->after, k)) == 0)
      queue_backwards(&l, k);
  for (int t = g->n - 1; t >= 0; t--) {
    steps[t] = take(&l);
    BUG_IF(steps[t] < 0, "%s: a kernel that no order reaches from its end", g->s->f->name);
    run_backwards(&l, steps[t]);
  }
  ir_arena_free(a);
}
