// schedule_match.c: outputs of a kernel over operands that die with it.
//
//   %a, %b die    output 0 may lie over a or b    output 1 over a only
//   0 takes a; 1 finds a taken, so 0 takes b and 1 takes a
//
// Two outputs take two operands wherever they can (augmenting paths, Kuhn 1955). Free operands first: in a kernel of a
// hundred alike parts all may take all, and paths would go through every output before.
#include <string.h>

#include "passes/schedule_parts.h"

sched_match sched_match_new(sched *s, ir_arena *a) {
  size_t operands = (size_t)s->most_in + 1, values = (size_t)s->num_values + 1;
  sched_match m = {.s = s,
                   .dying = IR_NEW_ARRAY(a, bool, operands),
                   .tried = IR_NEW_ARRAY(a, bool, operands),
                   .taken_by = IR_NEW_ARRAY(a, int, values)};
  memset(m.taken_by, -1, sizeof(int) * values);
  return m;
}

static bool take_free(const sched_match *m, int k, int out) {
  sched_ins under = sched_find_under(m->s, k, out);
  for (int i = 0; i < under.num; i++) {
    int value = m->s->kernels[k].in[under.at[i]].value;
    if (!m->dying[under.at[i]] || m->taken_by[value] >= 0)
      continue;
    m->taken_by[value] = out;
    return true;
  }
  return false;
}

// One whose owner finds itself a different one.
static bool take_from_other(const sched_match *m, int k, int out) {
  sched_ins under = sched_find_under(m->s, k, out);
  for (int i = 0; i < under.num; i++) {
    int in = under.at[i], value = m->s->kernels[k].in[in].value;
    if (!m->dying[in] || m->tried[in])
      continue;
    m->tried[in] = true;
    int owner = m->taken_by[value];
    if (!take_free(m, k, owner) && !take_from_other(m, k, owner))
      continue;
    m->taken_by[value] = out;
    return true;
  }
  return false;
}

// What was tried in vain leads to operands that are taken, by outputs that found no other: that stays so until one did.
static void forget_tried(const sched_match *m, int k) {
  memset(m->tried, false, sizeof(bool) * (size_t)m->s->kernels[k].num_in);
}

bool sched_match_output(sched_match *m, int k, int out) {
  if (take_free(m, k, out))
    return true;
  bool taken = take_from_other(m, k, out);
  if (taken)
    forget_tried(m, k);
  return taken;
}

void sched_match_end(sched_match *m, int k) {
  const sched_kernel *x = &m->s->kernels[k];
  for (int i = 0; i < x->num_in; i++)
    if (x->in[i].value >= 0)
      m->taken_by[x->in[i].value] = -1;
  forget_tried(m, k);
}
