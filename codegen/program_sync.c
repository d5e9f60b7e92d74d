// program_sync.c: see program_sync.h.
//
// Tasks are split statically: with T threads, thread t runs tasks [n*t/T, n*(t+1)/T). So it is
// known here which bytes of each buffer each thread touches, for each size of team, and a barrier
// can go where every thread carries on with what it wrote itself:
//
//   layernorm   64 tasks of 12 rows      2 threads: rows 0..383 | 384..767
//   x @ w       8 tasks of 96 rows       2 threads: rows 0..383 | 384..767    no barrier
//                                        3 threads: 0..255 | .. against 0..191 | ..: barrier
//
// Chains of row-wise kernels (most of a forward pass) then run without a single barrier, and each
// thread finds its rows in its own caches. A team's barriers change nothing but time: which thread
// computes what is settled before. But where all threads wait before a kernel and behind it, nothing rests on that, and
// they may take each other's tasks (program_calls.c).
#include "codegen/program_sync.h"

// Teams that are worth the trouble; the others wait wherever any team of theirs might have to.
static const int teams[] = {2, 3, 4, 6, 8, 12, 16};
enum {
  NUM_TEAMS = sizeof teams / sizeof *teams,
  NUM_RANGES = 2 + 3 + 4 + 6 + 8 + 12 + 16,
  MAX_HISTORY = 64, // then everybody waits: comparing stays cheap in long functions
};

typedef struct entry {
  sync_use use;
  cg_bytes *ranges; // [sum of teams] bytes of each thread of each team; NULL until asked for
} entry;

struct sync_state {
  ir_arena *arena;
  IR_VEC(entry) past;
  IR_VEC(entry) next;
  size_t start[NUM_TEAMS]; // in `past`: what came before is settled for this team
};

sync_state *sync_new(ir_arena *a) {
  sync_state *s = IR_NEW(a, sync_state);
  s->arena = a;
  return s;
}

void sync_add(sync_state *s, sync_use use) {
  entry e = {use, NULL};
  if (use.bytes.from < use.bytes.to)
    IR_PUSH(s->arena, s->next, e);
}

void sync_reset(sync_state *s) {
  for (int i = 0; i < NUM_TEAMS; i++)
    s->start[i] = s->past.num;
}

static cg_bytes thread_bytes(const sync_use *u, int threads, int thread) {
  int share = (thread + u->shift) % threads;
  int64_t tasks = u->call->tasks[u->phase];
  int64_t begin = tasks * share / threads, end = tasks * (share + 1) / threads;
  if (begin == end)
    return (cg_bytes){0, 0};
  cg_bytes x = cg_generator_for(u->call->target, u->call->k->family)
                   ->touches(u->call, u->phase, u->arg, begin, end);
  return (cg_bytes){x.from + u->bytes.from, x.to + u->bytes.from};
}

static void find_ranges(ir_arena *a, entry *e) {
  if (e->ranges)
    return;
  e->ranges = IR_NEW_ARRAY(a, cg_bytes, NUM_RANGES);
  cg_bytes *at = e->ranges;
  for (int i = 0; i < NUM_TEAMS; i++)
    for (int t = 0; t < teams[i]; t++)
      *at++ = thread_bytes(&e->use, teams[i], t);
}

static bool threads_meet(const cg_bytes *a, const cg_bytes *b, int threads) {
  for (int i = 0; i < threads; i++)
    for (int j = 0; j < threads; j++)
      if (i != j && cg_overlap(a[i], b[j]))
        return true;
  return false;
}

// Adds the teams for which `b` must wait for `a`.
static void compare(sync_state *s, entry *a, entry *b, const bool *skip, bool *wait) {
  if ((!a->use.write && !b->use.write) || !cg_overlap(a->use.bytes, b->use.bytes))
    return;
  bool shared = !a->use.call || !b->use.call;
  if (!shared) {
    find_ranges(s->arena, a);
    find_ranges(s->arena, b);
  }
  for (int i = 0, at = 0; i < NUM_TEAMS; at += teams[i++])
    if (!skip[i] && !wait[i])
      wait[i] = shared || threads_meet(a->ranges + at, b->ranges + at, teams[i]);
}

uint32_t sync_settle(sync_state *s, bool boundary) {
  bool wait[NUM_TEAMS] = {0};
  size_t oldest = s->past.num;
  for (int i = 0; i < NUM_TEAMS; i++)
    oldest = s->start[i] < oldest ? s->start[i] : oldest;
  bool full = s->past.num - oldest > MAX_HISTORY;
  for (size_t i = oldest; i < s->past.num && !full; i++) {
    bool skip[NUM_TEAMS];
    for (int t = 0; t < NUM_TEAMS; t++)
      skip[t] = s->start[t] > i;
    for (size_t j = 0; j < s->next.num; j++)
      compare(s, &s->past.at[i], &s->next.at[j], skip, wait);
  }
  uint32_t mask = boundary ? SYNC_ALL : 0;
  for (int i = 0; i < NUM_TEAMS; i++)
    if (full || wait[i]) {
      s->start[i] = s->past.num;
      mask |= 1u << teams[i];
    } else {
      mask &= ~(1u << teams[i]);
    }
  for (size_t j = 0; j < s->next.num; j++)
    IR_PUSH(s->arena, s->past, s->next.at[j]);
  s->next.num = 0;
  return mask;
}
