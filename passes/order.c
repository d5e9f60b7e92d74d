// order.c: puts kernels in the order in which they run.
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
//
// Of the kernels that may run, one that sets free more memory than it takes goes first: the last
// reader of large values, like a weight's gradient right after the gradient that it is
// computed from. That ends lives early and finds operands in the caches. (Greedy list scheduling
// by the change of live bytes: Sethi and Ullman's idea on a graph.) Otherwise source order
// stands.
//
// Needs: pass_fuse. Keeps: kernels and their members; nodes are listed anew in the order of
// kernels. Near-linear: a heap, and lists of edges.
#include <string.h>

#include "passes/domain.h"
#include "passes/fuse.h"
#include "passes/plan.h"

// Bytes set free that are worth leaving source order for: small kernels of one kind that lie side
// by side become one launch (the sums of all gradients' squares).
enum { NO_WISH = -1, WORTHWHILE = 4096 };

typedef struct edge {
  int to;   // this kernel waits
  int wish; // index of the state write that wants it; NO_WISH: data
  int next; // next edge from the same kernel
} edge;

// A kernel that may run. One whose gain grows while it waits is queued again as early.
typedef struct ready {
  bool early; // sets free more than it takes
  int kernel;
} ready;

typedef struct order {
  ir_arena *arena;
  ir_func *f;
  size_t n;        // kernels
  int *first;      // [kernel] first edge out, -1
  int *data;       // [kernel] data edges that it still waits for
  int *wishes;     // [kernel] wish edges that it still waits for
  dom_io *io;      // [kernel]
  int64_t *gain;   // [kernel] bytes of values that it alone still reads, less those that it takes
  int *takes;      // [kernel] values of it that need memory of their own
  int *readers;    // [node] kernels that still read it
  uint32_t *xored; // [node] the ids of those kernels, xored: of the last one, its id
  bool *kept;      // [node] needed after the last kernel
  bool *done;      // [kernel]
  bool *dropped;   // [wish]
  IR_VEC(edge) edges;
  ready *heap; // least first
  size_t heap_num;
  IR_VEC(ir_kernel *) out;
} order;

// --- the heap of ready kernels -----------------------------------------------------------------
static bool goes_before(ready a, ready b) {
  return a.early != b.early ? a.early : a.kernel < b.kernel;
}

static void heap_swap(order *o, size_t i, size_t j) {
  ready t = o->heap[i];
  o->heap[i] = o->heap[j];
  o->heap[j] = t;
}

static bool is_early(const order *o, int k) {
  return o->gain[k] >= (o->takes[k] ? WORTHWHILE : 0);
}

static void heap_push(order *o, int k) {
  size_t i = o->heap_num++;
  o->heap[i] = (ready){is_early(o, k), k};
  for (; i > 0 && goes_before(o->heap[i], o->heap[(i - 1) / 2]); i = (i - 1) / 2)
    heap_swap(o, i, (i - 1) / 2);
}

static int heap_pop(order *o) {
  int top = o->heap[0].kernel;
  o->heap[0] = o->heap[--o->heap_num];
  for (size_t i = 0;;) {
    size_t least = i;
    for (size_t c = 2 * i + 1; c <= 2 * i + 2; c++)
      if (c < o->heap_num && goes_before(o->heap[c], o->heap[least]))
        least = c;
    if (least == i)
      return top;
    heap_swap(o, i, least);
    i = least;
  }
}

// --- edges ---------------------------------------------------------------------------------------
static void add_edge(order *o, const ir_kernel *from, const ir_kernel *to, int wish) {
  edge e = {.to = (int)to->id, .wish = wish, .next = o->first[from->id]};
  o->first[from->id] = (int)o->edges.num;
  IR_PUSH(o->arena, o->edges, e);
  if (wish == NO_WISH)
    o->data[to->id]++;
  else
    o->wishes[to->id]++;
}

typedef IR_VEC(ir_kernel *) kernel_list;

// Data edges of `k`, and which states it reads.
static void add_operands(order *o, ir_kernel *k, kernel_list *readers) {
  const dom_io *io = &o->io[k->id];
  for (size_t i = 0; i < io->in.num; i++) {
    const ir_node *from = io->in.at[i];
    if (from->op == IR_READ) {
      kernel_list *r = &readers[from->state->id];
      if (!r->num || r->at[r->num - 1] != k)
        IR_PUSH(o->arena, *r, k);
    } else if (from->kernel) {
      add_edge(o, from->kernel, k, NO_WISH);
      o->readers[from->id]++;
      o->xored[from->id] ^= k->id;
    }
  }
}

static const ir_node *find_read(const dom_io *io, const ir_state *s) {
  for (size_t i = 0; i < io->in.num; i++)
    if (io->in.at[i]->op == IR_READ && io->in.at[i]->state == s)
      return io->in.at[i];
  return NULL;
}

// Wishes of one write: all readers first. None when the writer itself reads the state at other
// places than it writes: the value has a temporary anyway. A value in place takes no memory.
static void add_wishes(order *o, const ir_node *write, int wish, const kernel_list *readers) {
  const ir_node *value = write->in[0];
  const ir_kernel *writer = value->kernel;
  if (!writer)
    return;
  bool first_write = !o->kept[value->id];
  o->kept[value->id] = true;
  const ir_node *own = find_read(&o->io[writer->id], write->state);
  if (own && !plan_may_overwrite(o->arena, writer, own, value))
    return;
  if (first_write) {
    o->gain[writer->id] += ir_bytes(&value->type);
    o->takes[writer->id]--;
  }
  for (size_t i = 0; i < readers->num; i++)
    if (readers->at[i] != writer)
      add_edge(o, readers->at[i], writer, wish);
}

static void add_edges(order *o) {
  kernel_list *readers = IR_NEW_ARRAY(o->arena, kernel_list, o->f->module->states.num + 1);
  for (size_t i = 0; i < o->n; i++)
    add_operands(o, o->f->kernels.at[i], readers);
  int wish = 0;
  for (size_t i = 0; i < o->f->nodes.num; i++) {
    const ir_node *n = o->f->nodes.at[i];
    if (n->op == IR_WRITE)
      add_wishes(o, n, wish++, &readers[n->state->id]);
  }
  o->dropped = IR_NEW_ARRAY(o->arena, bool, wish + 1);
}

// --- bytes that a kernel sets free ---------------------------------------------------------------
static bool ends_with(const order *o, const ir_node *n) {
  return n->kernel && !o->kept[n->id] && o->readers[n->id] == 1;
}

static void find_gains(order *o) {
  for (size_t i = 0; i < o->f->results.num; i++)
    o->kept[plan_base(o->f->results.at[i].node)->id] = true;
  for (size_t k = 0; k < o->n; k++)
    for (size_t i = 0; i < o->io[k].out.num; i++, o->takes[k]++)
      o->gain[k] -= ir_bytes(&o->io[k].out.at[i]->type);
  for (size_t k = 0; k < o->n; k++)
    for (size_t i = 0; i < o->io[k].in.num; i++)
      if (ends_with(o, o->io[k].in.at[i]))
        o->gain[k] += ir_bytes(&o->io[k].in.at[i]->type);
}

static bool is_ready(const order *o, int k) {
  return !o->done[k] && !o->data[k] && !o->wishes[k];
}

// `k` has read its operands: whoever is now the last to read one will set it free.
static void pass_gains_on(order *o, int k) {
  for (size_t i = 0; i < o->io[k].in.num; i++) {
    const ir_node *n = o->io[k].in.at[i];
    o->readers[n->id]--;
    o->xored[n->id] ^= (uint32_t)k;
    if (!ends_with(o, n))
      continue;
    int last = (int)o->xored[n->id];
    bool was_early = is_early(o, last);
    o->gain[last] += ir_bytes(&n->type);
    if (!was_early && is_early(o, last) && is_ready(o, last))
      heap_push(o, last);
  }
}

// --- Kahn ----------------------------------------------------------------------------------------
static void push_if_ready(order *o, int k) {
  if (is_ready(o, k))
    heap_push(o, k);
}

static void run_kernel(order *o, int k) {
  o->done[k] = true;
  IR_PUSH(o->arena, o->out, o->f->kernels.at[k]);
  pass_gains_on(o, k);
  for (int e = o->first[k]; e >= 0; e = o->edges.at[e].next) {
    const edge *x = &o->edges.at[e];
    if (x->wish != NO_WISH && o->dropped[x->wish])
      continue;
    if (x->wish == NO_WISH)
      o->data[x->to]--;
    else
      o->wishes[x->to]--;
    push_if_ready(o, x->to);
  }
}

// For each waiting kernel one kernel that it waits for (`from`) and by which edge (`via`).
static void find_blockers(const order *o, int *from, int *via) {
  memset(from, -1, sizeof(int) * o->n);
  for (size_t k = 0; k < o->n; k++)
    for (int e = o->done[k] ? -1 : o->first[k]; e >= 0; e = o->edges.at[e].next)
      if (o->edges.at[e].wish == NO_WISH || !o->dropped[o->edges.at[e].wish]) {
        from[o->edges.at[e].to] = (int)k;
        via[o->edges.at[e].to] = e;
      }
}

// Every kernel left waits for another: there is a cycle, and only wishes can close it. Walks
// back from kernel to blocker until the walk meets itself, then once around for a wish.
static int find_wish_on_cycle(const order *o) {
  int *from = IR_NEW_ARRAY(o->arena, int, o->n);
  int *via = IR_NEW_ARRAY(o->arena, int, o->n);
  bool *seen = IR_NEW_ARRAY(o->arena, bool, o->n);
  find_blockers(o, from, via);
  int k = 0;
  while (o->done[k])
    k++;
  for (; !seen[k]; k = from[k]) {
    BUG_IF(from[k] < 0, "kernel %s waits for nothing", o->f->kernels.at[k]->name);
    seen[k] = true;
  }
  int at = k;
  while (o->edges.at[via[at]].wish == NO_WISH) {
    at = from[at];
    BUG_IF(at == k, "kernels of %s need each other: %s", o->f->name, o->f->kernels.at[k]->name);
  }
  return o->edges.at[via[at]].wish;
}

// Drops one wish of a cycle: all its edges, since one missing edge already rules out in-place.
static void drop_wish(order *o) {
  int wish = find_wish_on_cycle(o);
  o->dropped[wish] = true;
  for (size_t k = 0; k < o->n; k++)
    for (int e = o->first[k]; e >= 0 && !o->done[k]; e = o->edges.at[e].next)
      if (o->edges.at[e].wish == wish) {
        o->wishes[o->edges.at[e].to]--;
        push_if_ready(o, o->edges.at[e].to);
      }
}

static void sort_kernels(order *o) {
  for (size_t k = 0; k < o->n; k++)
    push_if_ready(o, (int)k);
  while (o->out.num < o->n) {
    int k = o->heap_num ? heap_pop(o) : -1;
    if (k < 0)
      drop_wish(o);
    else if (!o->done[k])
      run_kernel(o, k);
  }
}

static bool order_func(ir_func *f, ir_arena *a) {
  size_t n = f->kernels.num;
  if (!n || ir_has_clones(f)) // where kernels run again has been planned
    return false;
  order o = {.arena = a, .f = f, .n = n};
  o.first = IR_NEW_ARRAY(a, int, n);
  memset(o.first, -1, sizeof(int) * n);
  o.data = IR_NEW_ARRAY(a, int, n);
  o.wishes = IR_NEW_ARRAY(a, int, n);
  size_t nodes = f->next_id;
  o.io = IR_NEW_ARRAY(a, dom_io, n);
  o.gain = IR_NEW_ARRAY(a, int64_t, n);
  o.takes = IR_NEW_ARRAY(a, int, n);
  o.readers = IR_NEW_ARRAY(a, int, nodes);
  o.xored = IR_NEW_ARRAY(a, uint32_t, nodes);
  o.kept = IR_NEW_ARRAY(a, bool, nodes);
  o.done = IR_NEW_ARRAY(a, bool, n);
  o.heap = IR_NEW_ARRAY(a, ready, 2 * n); // each kernel once as late, once as early
  for (size_t i = 0; i < n; i++)
    f->kernels.at[i]->id = (uint32_t)i;
  for (size_t i = 0; i < n; i++)
    o.io[i] = dom_kernel_io(a, f->kernels.at[i]);
  add_edges(&o);
  find_gains(&o);
  sort_kernels(&o);
  bool changed = memcmp(o.out.at, f->kernels.at, sizeof(ir_kernel *) * n) != 0;
  memcpy(f->kernels.at, o.out.at, sizeof(ir_kernel *) * n);
  for (size_t i = 0; i < n; i++)
    f->kernels.at[i]->id = (uint32_t)i;
  fuse_relist(f);
  return changed;
}

bool pass_order(ir_module *m, ir_diags *d) {
  (void)d;
  bool changed = false;
  ir_arena *scratch = ir_arena_new();
  for (size_t i = 0; i < m->funcs.num; i++)
    if (order_func(m->funcs.at[i], scratch))
      changed = true;
  ir_arena_free(scratch);
  return changed;
}
