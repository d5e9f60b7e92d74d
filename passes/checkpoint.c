// checkpoint.c: see checkpoint.h. Functions whose backward pass needs values of the forward pass get
// kernels that run again.
//
//   config checkpoint = "sqrt"
//   before   kernel h.1 .. h.9 {..}  kernel loss {..}  kernel d.9 {.. %h.9 ..} .. kernel d.1 {.. %h.1 ..}
//   after    .. kernel loss {..}  kernel d.9 .. d.7  kernel h.4.again again=h.4 {..} .. kernel d.6 ..
//
// Two designs were weighed. One rewrites the graph before fusion, as JAX and PyTorch do: then fusion
// may make other kernels of the copies, whose sums round differently, and later passes may merge the
// copies again. Here, behind fusion, a copy is the same kernel called twice: the same bits under every
// policy by construction, no new code, and what is counted is what runs.
//
// Needs: pass_order, kernels scheduled (ir_kernel.workspace). Keeps: each kernel.
#include "passes/checkpoint.h"

#include <string.h>

#include "passes/offload.h"
#include "passes/plan_parts.h"

const char *const checkpoint_names[] = {
    [CHECKPOINT_NONE] = "none",
    [CHECKPOINT_FREE] = "free",
    [CHECKPOINT_SELECTIVE] = "selective",
    [CHECKPOINT_SQRT] = "sqrt",
    [CHECKPOINT_ALL] = "all",
    [CHECKPOINT_AUTO] = "auto",
    NULL,
};

static bool policy_of(const ir_module *m, ir_diags *d, checkpoint_policy *out) {
  const ir_setting *s = ir_find_config(m, "checkpoint");
  *out = ir_find_config(m, "memory_budget") ? CHECKPOINT_AUTO : CHECKPOINT_NONE;
  for (int i = 0; s && i < CHECKPOINT_NUM_POLICIES; i++)
    if (s->kind == IR_SET_STR && !strcmp(s->str, checkpoint_names[i])) {
      *out = (checkpoint_policy)i;
      return true;
    }
  if (s)
    diag_error(d, (ir_loc){0}, "E0507",
               "config checkpoint is %s: it can be none, free, selective, sqrt, all or auto",
               s->kind == IR_SET_STR ? ir_format(m->arena, "'%s'", s->str) : "a number");
  return !s;
}

bool checkpoint_policy_is_known(const ir_module *m, ir_diags *d) {
  checkpoint_policy p;
  return policy_of(m, d, &p);
}

// Bytes for temporaries: what is left of the budget beside what lives for the whole run. Without one,
// everything can be kept.
static int64_t budget_of(ir_module *m) {
  int64_t bytes = ir_config_count(m, "memory_budget");
  return bytes ? bytes - plan_whole_run_bytes(m) : INT64_MAX;
}

static void choose_by_rule(replay *r, checkpoint_policy p, unsigned char *drop) {
  if (p == CHECKPOINT_FREE)
    checkpoint_free(r, drop);
  else if (p == CHECKPOINT_SELECTIVE)
    checkpoint_selective(r, drop);
  else if (p == CHECKPOINT_SQRT)
    checkpoint_sqrt(r, drop);
  else if (p == CHECKPOINT_ALL)
    checkpoint_all(r, drop);
}

// What takes no less memory than keeping everything is not worth its time.
static replay_steps choose(replay *r, checkpoint_policy p, int64_t budget) {
  double bandwidth = offload_bandwidth(r->s->f->module);
  if (p == CHECKPOINT_AUTO && bandwidth > 0 && budget < INT64_MAX)
    return checkpoint_with_host(r, budget, bandwidth);
  if (p == CHECKPOINT_AUTO) {
    replay_steps steps = {0};
    checkpoint_auto(r, budget, 1, &steps);
    return steps;
  }
  unsigned char *drop = IR_NEW_ARRAY(r->arena, unsigned char, r->s->num_values + 1);
  int64_t keep_all = replay_try(r, drop).live_bytes;
  choose_by_rule(r, p, drop);
  if (replay_try(r, drop).live_bytes >= keep_all)
    memset(drop, REPLAY_KEEP, (size_t)r->s->num_values);
  return replay_make_steps(r, r->arena, drop);
}

static bool checkpoint_func(ir_func *f, checkpoint_policy p, int64_t budget) {
  if (f->kernels.num == 0 || ir_has_clones(f) || ir_has_transfers(f) ||
      (p == CHECKPOINT_FREE && !checkpoint_has_free(f)))
    return false;
  ir_arena *a = ir_arena_new();
  replay *r = replay_new(a, sched_new(a, f));
  replay_steps steps = choose(r, p, budget);
  bool changed = steps.num > f->kernels.num;
  if (changed)
    replay_apply(r->s, &steps);
  ir_arena_free(a);
  return changed;
}

bool pass_checkpoint(ir_module *m, ir_diags *d) {
  checkpoint_policy p;
  if (!policy_of(m, d, &p) || p == CHECKPOINT_NONE)
    return false;
  dom_find_stretches(m);
  int64_t budget = budget_of(m);
  bool changed = false;
  for (size_t i = 0; i < m->funcs.num; i++)
    changed |= checkpoint_func(m->funcs.at[i], p, budget);
  dom_forget_stretches(m);
  return changed;
}
