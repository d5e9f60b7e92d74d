// alike.c: kernels of evaluation and prediction that compute a part of what one of the step's does
// become that one's function, and are compiled once for both.
//
//   step    kernel g { h = matmul x, w; t = tanh h; y = mul h, t; d = sub one, t }   stores y, d
//   before  kernel e { h = matmul x, w; t = tanh h; y = mul h, t }                   stores y
//   after   kernel e stores=%d { h = matmul x, w; ...; d = sub one, t }              stores y, d
//
// The step stores more for its gradients: what activations are multiplied by, sums of a norm's rows,
// maxima and sums of attention. Nobody reads that here. It needs no memory that the step does not
// need: the same values live there when the same kernel runs.
//
// Members are compared in their order, each with the next one of the step's kernel that computes the
// same of the same operands; what is passed over is added. Buffers stand for each other, whatever
// they hold, one for one. It is done where the kernel takes hardly longer by the estimates of
// cost.h, and reads nothing more.
//
// Two designs: an argument that is null where a result is left out, or this. A null would be asked for
// at each store, in the step as well, and bounds of what a kernel touches would depend on it.
//
// Needs: pass_order. Keeps: kernels and their order. Linear: a kernel is compared with at most
// MOST_HOSTS of those that begin like it.
#include "passes/cost.h"
#include "passes/fuse.h"

enum { MOST_HOSTS = 8 };
static const double MOST_TIME = 1.1; // of what the kernel took before

// What stands for what, by id; empty between two pairings.
typedef struct sides {
  ir_node **of;    // [in the host's function]
  ir_node **back;  // [in the guest's]
  uint32_t guests; // ids of the guest's function before this pass: what it makes is not in `back`
} sides;

// A kernel of the step (the host) beside one that may become its function (the guest).
typedef struct pairing {
  ir_arena *arena; // scratch
  sides *s;
  const ir_kernel *host;
  ir_kernel *guest;
  ir_node_list known; // host nodes that something stands for
} pairing;

typedef struct host_list {
  const ir_kernel *at[MOST_HOSTS];
  size_t num;
} host_list;

typedef struct hosts {
  ir_arena *arena;
  ir_map *by_begin; // "loop exp f32[8,16]" -> host_list
} hosts;

static sides sides_new(ir_arena *a, const ir_func *host, const ir_func *guest) {
  return (sides){IR_NEW_ARRAY(a, ir_node *, host->next_id + 1),
                 IR_NEW_ARRAY(a, ir_node *, guest->next_id + 1), guest->next_id};
}

// --- what stands for what -----------------------------------------------------------------------
static ir_node *guest_of(const pairing *p, const ir_node *host) {
  return p->s->of[host->id];
}

static ir_node *host_of(const pairing *p, const ir_node *guest) {
  return guest->id < p->s->guests ? p->s->back[guest->id] : NULL;
}

static void set(pairing *p, ir_node *host, ir_node *guest) {
  p->s->of[host->id] = guest;
  if (guest->id < p->s->guests)
    p->s->back[guest->id] = host;
  IR_PUSH(p->arena, p->known, host);
}

static void forget(pairing *p, size_t from) {
  while (p->known.num > from) {
    const ir_node *host = p->known.at[--p->known.num], *guest = guest_of(p, host);
    if (guest->id < p->s->guests)
      p->s->back[guest->id] = NULL;
    p->s->of[host->id] = NULL;
  }
}

static bool is_buffer(const ir_node *n) {
  return n->kernel || n->op == IR_READ || n->op == IR_INPUT;
}

static bool is_alike(pairing *p, ir_node *host, ir_node *guest);

static bool has_alike_operands(pairing *p, const ir_node *host, const ir_node *guest) {
  for (int i = 0; i < host->num_in; i++)
    if (!is_alike(p, host->in[i], guest->in[i]))
      return false;
  return true;
}

static bool is_alike(pairing *p, ir_node *host, ir_node *guest) {
  if (guest_of(p, host) || host_of(p, guest))
    return guest_of(p, host) == guest;
  if (host->kernel == p->host || guest->kernel == p->guest)
    return false; // a member that the other kernel has not
  if (!is_buffer(host))
    return !is_buffer(guest) && host->folded == guest->folded && ir_same_work(host, guest) &&
           has_alike_operands(p, host, guest);
  if (!is_buffer(guest) || !ir_same_type(&host->type, &guest->type))
    return false;
  set(p, host, guest);
  return true;
}

static bool pair_members(pairing *p, ir_node *host, ir_node *guest) {
  size_t before = p->known.num;
  bool anchors = (host == p->host->anchor) == (guest == p->guest->anchor);
  bool same = (anchors || p->host->family != IR_FAMILY_MATMUL) && ir_same_work(host, guest) &&
              has_alike_operands(p, host, guest);
  if (same)
    set(p, host, guest);
  else
    forget(p, before);
  return same;
}

static bool pair_all(pairing *p) {
  size_t paired = 0;
  for (size_t i = 0; i < p->host->nodes.num && paired < p->guest->nodes.num; i++)
    paired += pair_members(p, p->host->nodes.at[i], p->guest->nodes.at[paired]);
  return paired == p->guest->nodes.num;
}

// --- whether it may be -----------------------------------------------------------------------------
// From what the guest reads already.
static bool can_be_made(const pairing *p, const ir_node *host) {
  if (guest_of(p, host) || host->kernel == p->host)
    return true;
  bool can = !is_buffer(host);
  for (int i = 0; can && i < host->num_in; i++)
    can = can_be_made(p, host->in[i]);
  return can;
}

static bool all_can_be_made(const pairing *p) {
  for (size_t i = 0; i < p->host->nodes.num; i++) {
    const ir_node *n = p->host->nodes.at[i];
    for (int j = 0; j < n->num_in; j++)
      if (!can_be_made(p, n->in[j]))
        return false;
  }
  return true;
}

static bool stores_what_guest_does(const pairing *p) {
  for (size_t i = 0; i < p->guest->outputs.num; i++)
    if (!ir_has_node(&p->host->outputs, host_of(p, p->guest->outputs.at[i])))
      return false;
  return true;
}

static bool takes_hardly_longer(const pairing *p) {
  return cost_seconds(p->arena, p->host) <= MOST_TIME * cost_seconds(p->arena, p->guest);
}

typedef enum likeness { UNLIKE, PART, SAME } likeness;

// The pairing is left as it was found, empty.
static likeness compare(pairing *p) {
  likeness is = UNLIKE;
  if (p->host->nodes.num >= p->guest->nodes.num && pair_all(p) && stores_what_guest_does(p)) {
    bool same =
        p->host->nodes.num == p->guest->nodes.num && p->host->outputs.num == p->guest->outputs.num;
    is = same ? SAME : all_can_be_made(p) && takes_hardly_longer(p) ? PART : UNLIKE;
  }
  forget(p, 0);
  return is;
}

// --- becoming it -----------------------------------------------------------------------------------
static ir_node *make(pairing *p, ir_builder *b, ir_node *host) {
  if (guest_of(p, host))
    return guest_of(p, host);
  ir_node **in = IR_NEW_ARRAY(p->arena, ir_node *, host->num_in + 1);
  for (int i = 0; i < host->num_in; i++)
    in[i] = make(p, b, host->in[i]);
  ir_node *guest = ir_build_like(b, host, in);
  guest->folded = host->folded;
  set(p, host, guest);
  return guest;
}

static void become(pairing *p, ir_func *f) {
  ir_builder b = ir_build_at_end(f);
  ir_node_list members = {0};
  pair_all(p);
  for (size_t i = 0; i < p->host->nodes.num; i++) {
    ir_node *host = p->host->nodes.at[i], *n = make(p, &b, host);
    n->stored = ir_has_node(&p->host->outputs, host) && !ir_has_node(&p->guest->outputs, n);
    n->kernel = p->guest;
    IR_PUSH(f->module->arena, members, n);
  }
  p->guest->anchor = guest_of(p, p->host->anchor);
  p->guest->nodes = members;
  forget(p, 0);
}

// --- the step's kernels ----------------------------------------------------------------------------
static bool has_likes(const ir_kernel *k) {
  return k->family == IR_FAMILY_LOOP || k->family == IR_FAMILY_MATMUL ||
         k->family == IR_FAMILY_ATTENTION;
}

static host_list *hosts_like(hosts *h, const ir_kernel *k) {
  const ir_node *first = k->nodes.at[0];
  const char *begin = ir_format(h->arena, "%s %s %s", ir_family_names[k->family],
                                ir_ops[first->op].name, ir_type_str(h->arena, &first->type));
  host_list *l = ir_map_get(h->by_begin, begin);
  if (!l)
    ir_map_put(h->by_begin, begin, l = IR_NEW(h->arena, host_list));
  return l;
}

// Of equal ones the first.
static void add_host(hosts *h, sides *s, ir_kernel *k) {
  host_list *l = hosts_like(h, k);
  for (size_t i = 0; i < l->num; i++) {
    pairing p = {.arena = h->arena, .s = s, .host = l->at[i], .guest = k};
    if (compare(&p) == SAME)
      return;
  }
  if (l->num < MOST_HOSTS)
    l->at[l->num++] = k;
}

static hosts find_hosts(ir_arena *a, ir_func *step) {
  hosts h = {a, ir_map_new(a)};
  sides s = sides_new(a, step, step);
  for (size_t i = 0; i < step->kernels.num; i++)
    if (has_likes(step->kernels.at[i]))
      add_host(&h, &s, step->kernels.at[i]);
  return h;
}

// --- the pass --------------------------------------------------------------------------------------
// Nothing to do where the step has a kernel that is the same already.
static const ir_kernel *find_host(hosts *h, sides *s, ir_kernel *guest) {
  const host_list *l = hosts_like(h, guest);
  const ir_kernel *part = NULL;
  for (size_t i = 0; i < l->num; i++) {
    pairing p = {.arena = h->arena, .s = s, .host = l->at[i], .guest = guest};
    likeness is = compare(&p);
    if (is == SAME)
      return NULL;
    if (is == PART && (!part || l->at[i]->nodes.num < part->nodes.num))
      part = l->at[i];
  }
  return part;
}

static bool make_alike(hosts *h, const ir_func *step, ir_func *f) {
  sides s = sides_new(h->arena, step, f);
  bool changed = false;
  for (size_t i = 0; i < f->kernels.num; i++) {
    ir_kernel *guest = f->kernels.at[i];
    const ir_kernel *host = has_likes(guest) ? find_host(h, &s, guest) : NULL;
    if (!host)
      continue;
    pairing p = {.arena = h->arena, .s = &s, .host = host, .guest = guest};
    become(&p, f);
    changed = true;
  }
  if (changed) {
    fuse_relist(f);
    dom_find_outputs(f);
  }
  return changed;
}

bool pass_alike(ir_module *m, ir_diags *d) {
  (void)d;
  static const char *const guests[] = {"eval", "predict"};
  ir_func *step = ir_find_func(m, "step");
  if (!step)
    return false;
  ir_arena *a = ir_arena_new();
  hosts h = find_hosts(a, step);
  bool changed = false;
  for (size_t i = 0; i < sizeof guests / sizeof *guests; i++) {
    ir_func *f = ir_find_func(m, guests[i]);
    if (f && !f->ordered)
      changed |= make_alike(&h, step, f);
  }
  ir_arena_free(a);
  return changed;
}
