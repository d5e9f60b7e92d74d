// probe.c: see probe.h.
#include "driver/probe.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/budgets.h"
#include "passes/plan_parts.h" // plan_live_bytes

// Of the function with the highest peak.
static int64_t most_gradients(const draft *t, const plan_facts *facts) {
  const plan *p = t->plan;
  const ir_func *f = facts->largest;
  if (!f)
    return 0;
  IR_VEC(plan_buffer) gradients = {0};
  for (size_t i = 0; i < p->buffers.num; i++)
    if (facts->share[i] == PLAN_SHARE_GRADIENT)
      IR_PUSH(t->arena, gradients, p->buffers.at[i]);
  int64_t *live = IR_NEW_ARRAY(t->arena, int64_t, f->kernels.num + 2);
  return plan_live_bytes(gradients.at, gradients.num, f, live);
}

static double slower(const plan_facts *facts, const ir_module *m) {
  double most = 0;
  for (size_t i = 0; i < m->funcs.num; i++) {
    const plan_func_facts *f = &facts->func[i];
    double added = plan_ratio(f->cloned_time + f->waiting, f->time - f->cloned_time);
    most = added > most ? added : most;
  }
  return most;
}

probe probe_of(draft *t, probe x) {
  plan_facts facts = plan_find_facts(t->arena, t->plan, t->module);
  x.bytes = t->plan->arena_bytes;
  x.always = t->plan->state_bytes + t->plan->staging_bytes;
  x.most_gradients = most_gradients(t, &facts);
  x.parameters = facts.parameters;
  x.again = facts.recompute_time - 1;
  x.slower = slower(&facts, t->module);
  memcpy(x.shares, facts.shares, sizeof x.shares);
  return x;
}

static probe make_plan(const draft_subject *s, draft *t, probe x) {
  draft_subject own = *s;
  budgets_asked asked = {.policy = x.policy, .budget = x.budget};
  bool ok = budgets_plan(&own, &asked, x.limit, t);
  BUG_IF(!ok, "policy '%s' has errors", x.policy ? x.policy : "");
  return probe_of(t, x);
}

// A plan takes minutes of a large graph: nobody is to look for one when who asked has been ended.
static void end_with(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) // before it was said
    _exit(IR_EXIT_FAULT);
}

// Begins the work on a plan. Returns where it will come from; -1: no process could be made.
static int start(const draft_subject *s, draft *t, const probe *x, pid_t *child) {
  int ends[2];
  if (pipe(ends) != 0)
    return -1;
  pid_t parent = getpid();
  *child = fork();
  if (*child == 0) {
    end_with(parent);
    probe found = make_plan(s, t, *x);
    _exit(write(ends[1], &found, sizeof found) == sizeof found ? 0 : IR_EXIT_FAULT);
  }
  close(ends[1]);
  if (*child > 0)
    return ends[0];
  close(ends[0]);
  return -1;
}

// A fault of ours has said so; what the system ends, for want of memory, say, says nothing.
static void say_ended(const draft_subject *s, bool known, int status) {
  if (known && WIFSIGNALED(status))
    options_say(s->o, OPTIONS_ERROR, "a process that looks for a plan was ended by signal %d (%s)",
                WTERMSIG(status), strsignal(WTERMSIG(status)));
  else if (!known || WEXITSTATUS(status) != IR_EXIT_FAULT)
    options_say(s->o, OPTIONS_ERROR, "a process that looks for a plan has ended without one");
}

// False, after a message, when the process failed. How it ended is not to be known where whoever started
// mltc ignores his children (SIGCHLD): what it has sent counts.
static bool take(const draft_subject *s, int from, pid_t child, probe *x) {
  bool whole = read(from, x, sizeof *x) == sizeof *x; // less than a pipe takes at once
  int status = 0;
  close(from);
  bool known = waitpid(child, &status, 0) == child;
  if (!whole)
    say_ended(s, known, status);
  return whole;
}

bool probe_plans(const draft_subject *s, draft *t, probe *at, int num) {
  int *from = IR_NEW_ARRAY(t->arena, int, (size_t)num + 1);
  pid_t *child = IR_NEW_ARRAY(t->arena, pid_t, (size_t)num + 1);
  bool ok = true;
  for (int i = 0; i < num; i++)
    from[i] = start(s, t, &at[i], &child[i]);
  for (int i = 0; i < num; i++) {
    if (from[i] < 0)
      options_say(s->o, OPTIONS_ERROR, "cannot start a process: %s", strerror(errno));
    ok = from[i] >= 0 && take(s, from[i], child[i], &at[i]) && ok;
  }
  return ok;
}
