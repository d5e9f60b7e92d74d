// offload.c: what waits in memory of the host where `config memory_budget` asks for it and the target
// has two memories (`config host_bandwidth`).
//
//   before   kernel h { %h = .. }  ..  kernel d.h { .. %h .. }
//   after    kernel h { %h = .. }  ..  kernel h.send send begin=y { %h.sent = copy %h }  ..
//            kernel h.fetch fetch begin=d.z { %h.2 = copy %h.sent }  kernel d.h { .. %h.2 .. }
//
// Two designs were weighed. Transfers could be decided first, and recomputation then make up for what is
// missing: but what one runs again decides what the other one has to wait for. So it is the other way
// round: pass_checkpoint has left as many bytes too many as sends can take over, by offload_choose, and
// here they do.
//
// Needs: pass_checkpoint; order and workspaces are final. Keeps: each kernel. The numbers are the same
// bits, as nothing but copies is added.
#include "passes/offload.h"

#include "passes/cost.h"
#include "passes/pass.h"
#include "passes/plan_parts.h"

double offload_bandwidth(const ir_module *m) {
  return (double)ir_config_count(m, "host_bandwidth");
}

// As the plan packs it.
static bool fits_as_it_is(ir_arena *a, sched *s, const replay_steps *steps, int64_t budget) {
  plan_live l = plan_live_steps(a, s, steps->at, steps->num);
  plan_joined j = plan_join_reused(a, &l);
  return plan_pack_bound(a, j.at, j.num) <= budget && plan_pack_for(j.at, j.num, budget) <= budget;
}

static bool offload_func(ir_func *f, int64_t budget, double bandwidth) {
  if (f->kernels.num == 0 || ir_has_transfers(f))
    return false;
  ir_arena *a = ir_arena_new();
  sched *s = sched_new(a, f);
  replay_steps steps = {sched_order_as_it_is(s, a), f->kernels.num, f->kernels.num};
  offload_choice c = {0};
  if (!fits_as_it_is(a, s, &steps, budget))
    c = offload_choose(a, s, &steps, cost_of_kernels(a, f), budget, bandwidth);
  if (c.moves.num)
    offload_apply(s, &c);
  ir_arena_free(a);
  return c.moves.num > 0;
}

bool pass_offload(ir_module *m, ir_diags *d) {
  (void)d;
  int64_t budget = ir_config_count(m, "memory_budget");
  double bandwidth = offload_bandwidth(m);
  if (budget == 0 || bandwidth == 0)
    return false;
  dom_find_stretches(m);
  budget -= plan_whole_run_bytes(m);
  bool changed = false;
  for (size_t i = 0; i < m->funcs.num; i++)
    changed |= offload_func(m->funcs.at[i], budget, bandwidth);
  dom_forget_stretches(m);
  return changed;
}
