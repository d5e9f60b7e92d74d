// checkpoint_host.c: what runs again where values may also wait in memory of the host.
//
//   keep everything   --> too much for the device: sends take over all of it, if copies have the time
//   budget            --> nothing is sent, and more kernels run again
//
// The less runs again, the more has to be sent. Budgets between the two ends are tried for what is kept,
// anywhere; what the device then lacks is sent. The fewest seconds of both together win.
#include "passes/checkpoint.h"
#include "passes/offload.h"

// How much of what is too much is kept, in sixteenths, as long as more helps. What lies between the ends
// shares the work of one search.
static const int kept_parts[] = {0, 1, 2, 4, 8, 12};
enum { TRIES = sizeof kept_parts / sizeof *kept_parts };

typedef struct attempt {
  replay_steps steps;
  bool fits;
  double seconds; // that kernels run again, or wait
  int64_t bytes;
} attempt;

static attempt send_too_much(replay *r, const replay_steps *steps, int64_t budget,
                             double bandwidth) {
  replay_outcome o = replay_weigh(r, steps);
  attempt x = {.steps = *steps, .seconds = o.seconds};
  if (o.live_bytes <= budget) // else no packing fits
    x.bytes = replay_arena_bytes(r, steps, budget, PLAN_HARD);
  x.fits = o.live_bytes <= budget && x.bytes <= budget;
  if (x.fits)
    return x;
  ir_arena *a = ir_arena_new();
  offload_choice c = offload_choose(a, r->s, steps, r->seconds, budget, bandwidth);
  x.fits = c.fits;
  x.seconds += c.waiting;
  x.bytes = c.arena_bytes;
  ir_arena_free(a);
  return x;
}

static attempt try_keeping(replay *r, int64_t kept, int share, int64_t budget, double bandwidth) {
  replay_steps steps = {0};
  checkpoint_auto(r, kept, share, &steps);
  return send_too_much(r, &steps, budget, bandwidth);
}

static bool is_better(const attempt *x, const attempt *best) {
  if (x->fits != best->fits)
    return x->fits;
  return x->fits ? x->seconds < best->seconds : x->bytes < best->bytes;
}

replay_steps checkpoint_with_host(replay *r, int64_t budget, double bandwidth) {
  replay_steps all = {sched_order_as_it_is(r->s, r->arena), (size_t)r->s->num_kernels,
                      (size_t)r->s->num_kernels};
  int64_t most = replay_arena_bytes(r, &all, 0, PLAN_COMPILE);
  if (most <= budget)
    return all;
  attempt best = try_keeping(r, most, 1, budget, bandwidth);
  for (int i = 0; i < TRIES && !(best.fits && best.seconds == 0); i++) {
    int64_t kept = budget + (most - budget) / 16 * kept_parts[i];
    attempt x = try_keeping(r, kept, kept_parts[i] ? TRIES - 1 : 1, budget, bandwidth);
    if (i > 1 && best.fits && !is_better(&x, &best))
      return best.steps; // kernels wait longer than they would run again
    best = is_better(&x, &best) ? x : best;
  }
  return best.steps;
}
