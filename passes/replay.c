// replay.c: see replay.h. Steps are made in one walk over the kernels; a kernel runs again at the
// last moment, right before the first that needs it (as does all that it needs in turn).
#include "passes/replay.h"

#include <string.h>

#include "passes/cost.h"
#include "passes/losses.h"
#include "passes/plan_parts.h"

// --- the function --------------------------------------------------------------------------------
// Losses that a kernel is needed for, each a bit; the last bit stands for all of the many.
typedef uint64_t loss_bits;
enum { MOST_LOSSES = 64 };

// Marks the kernels that make them. Returns how many bits there are.
static int mark_losses(const replay *r, loss_bits *needed) {
  losses l = losses_find(r->arena, r->s->f);
  int most = l.together ? 1 : MOST_LOSSES, num = l.at.num < (size_t)most ? (int)l.at.num : most;
  for (size_t i = 0; i < l.at.num; i++) {
    const ir_kernel *k = dom_base(l.at.at[i])->kernel;
    if (k)
      needed[k->id] |= (loss_bits)1 << (i < (size_t)num ? i : (size_t)num - 1);
  }
  return num;
}

static bool reads_forward(const replay *r, const loss_bits *needed, int k, loss_bits loss) {
  const sched_kernel *x = &r->s->kernels[k];
  for (int i = 0; i < x->num_in; i++)
    if (x->in[i].value >= 0 && needed[r->s->values[x->in[i].value].kernel] & loss)
      return true;
  return false;
}

// The kernel behind which the backward pass of a loss lies: most kernels that the loss is made from are not behind
// it, and most others that read what those make are. A term of the loss may be computed much later.
static int find_turn(const replay *r, const loss_bits *needed, loss_bits loss) {
  int turn = -1, score = 0, best = 0;
  for (int k = 0; k < r->s->num_kernels; k++) {
    bool forward = needed[k] & loss;
    score += forward ? 1 : -(int)reads_forward(r, needed, k, loss);
    if (forward && score >= best) {
      turn = k;
      best = score;
    }
  }
  return turn;
}

// A kernel may be forward for one loss and backward for another: it belongs to that which turns first behind it.
static void find_turns(replay *r) {
  const sched *s = r->s;
  loss_bits *needed = IR_NEW_ARRAY(r->arena, loss_bits, s->num_kernels + 1);
  int num = mark_losses(r, needed);
  for (int k = s->num_kernels - 1; k >= 0; k--)
    for (int i = 0; i < s->kernels[k].num_in; i++)
      if (s->kernels[k].in[i].value >= 0)
        needed[s->values[s->kernels[k].in[i].value].kernel] |= needed[k];
  for (int k = 0; k < s->num_kernels; k++)
    r->turn[k] = -1;
  for (int i = 0; i < num; i++) {
    int turn = find_turn(r, needed, (loss_bits)1 << i);
    r->forward = turn > r->forward ? turn : r->forward;
    for (int k = 0; k <= turn; k++)
      if (needed[k] >> i & 1 && (r->turn[k] < 0 || turn < r->turn[k]))
        r->turn[k] = turn;
  }
}

// Where a loss reads what an earlier one has updated, it is made from that one's backward pass, too: not to be run again.
static void leave_out_backward(replay *r) {
  for (int k = 0; k < r->s->num_kernels; k++)
    for (int i = 0; i < r->s->kernels[k].num_in; i++) {
      int v = r->s->kernels[k].in[i].value;
      if (v >= 0 && replay_in_loss(r, r->s->values[v].kernel) && replay_is_late(r, v, k))
        r->turn[k] = -1;
    }
}

static void find_early_ends(replay *r) {
  const sched *s = r->s;
  for (int v = 0; v < s->num_values; v++)
    r->early_end[v] = s->values[v].kernel;
  for (int k = 0; k < s->num_kernels; k++)
    for (int i = 0; i < s->kernels[k].num_in; i++)
      if (s->kernels[k].in[i].value >= 0 && !replay_is_late(r, s->kernels[k].in[i].value, k))
        r->early_end[s->kernels[k].in[i].value] = k;
}

replay *replay_new(ir_arena *a, sched *s) {
  replay *r = IR_NEW(a, replay);
  *r = (replay){.s = s, .arena = a, .forward = -1};
  r->turn = IR_NEW_ARRAY(a, int, s->num_kernels + 1);
  r->early_end = IR_NEW_ARRAY(a, int, s->num_values + 1);
  r->seconds = cost_of_kernels(a, s->f);
  r->again = cost_of_again(a, s->f);
  find_turns(r);
  leave_out_backward(r);
  find_early_ends(r);
  return r;
}

// --- steps ---------------------------------------------------------------------------------------
typedef struct maker {
  const replay *r;
  ir_arena *arena;
  const unsigned char *drop; // [value]
  bool *gone, *back;         // [value] dropped; made again
  replay_steps out;
  IR_VEC(int) stack;
  IR_VEC(int) passing; // values made on the way to an operand, to be dropped again
} maker;

static int find_gone_operand(const maker *m, int k) {
  const sched_kernel *x = &m->r->s->kernels[k];
  for (int i = 0; i < x->num_in; i++)
    if (x->in[i].value >= 0 && m->gone[x->in[i].value])
      return x->in[i].value;
  return -1;
}

static void run_again(maker *m, int k) {
  const sched_kernel *x = &m->r->s->kernels[k];
  IR_PUSH(m->arena, m->out, k);
  for (int i = 0; i < x->num_values; i++) {
    int v = x->first_value + i;
    m->gone[v] = false;
    if (m->drop[v] == REPLAY_DROP_ALWAYS)
      IR_PUSH(m->arena, m->passing, v);
    else
      m->back[v] = true;
  }
}

// What kernel `k` itself has read stays from now on: its other readers are near.
static void drop_passing(maker *m, int k) {
  const sched_kernel *x = &m->r->s->kernels[k];
  for (int i = 0; i < x->num_in; i++)
    if (x->in[i].value >= 0)
      m->back[x->in[i].value] |= replay_is_late(m->r, x->in[i].value, k);
  for (size_t i = 0; i < m->passing.num; i++)
    m->gone[m->passing.at[i]] = !m->back[m->passing.at[i]];
  m->passing.num = 0;
}

// Makes all operands of kernel `k` that are gone, operands of makers first. (A stack of our own: a
// chain of thousands of layers would be a recursion as deep.)
static void fetch_operands(maker *m, int k) {
  m->stack.num = 0;
  IR_PUSH(m->arena, m->stack, k);
  while (m->stack.num) {
    int top = m->stack.at[m->stack.num - 1], value = find_gone_operand(m, top);
    if (value >= 0) {
      IR_PUSH(m->arena, m->stack, m->r->s->values[value].kernel);
      continue;
    }
    m->stack.num--;
    if (m->stack.num)
      run_again(m, top);
  }
}

static void let_go(maker *m, int value, int k) {
  const replay *r = m->r;
  if (m->drop[value] && r->early_end[value] == k && !m->back[value])
    m->gone[value] = true;
}

replay_steps replay_make_steps(const replay *r, ir_arena *a, const unsigned char *drop) {
  maker m = {.r = r, .arena = a, .drop = drop};
  m.gone = IR_NEW_ARRAY(a, bool, r->s->num_values + 1);
  m.back = IR_NEW_ARRAY(a, bool, r->s->num_values + 1);
  for (int k = 0; k < r->s->num_kernels; k++) {
    const sched_kernel *x = &r->s->kernels[k];
    fetch_operands(&m, k);
    IR_PUSH(a, m.out, k);
    drop_passing(&m, k);
    if (m.out.num > (size_t)r->s->num_kernels * REPLAY_MAX_TIMES)
      return (replay_steps){0};
    for (int i = 0; i < x->num_values; i++)
      let_go(&m, x->first_value + i, k);
    for (int i = 0; i < x->num_in; i++)
      if (x->in[i].value >= 0)
        let_go(&m, x->in[i].value, k);
  }
  return m.out;
}

// --- what they lead to ---------------------------------------------------------------------------
static void count_tried(replay *r, const replay_steps *steps) {
  r->tried += steps->num ? (int64_t)steps->num : r->s->num_kernels * REPLAY_MAX_TIMES;
}

replay_outcome replay_weigh(replay *r, const replay_steps *steps) {
  count_tried(r, steps);
  if (steps->num == 0 && r->s->num_kernels > 0)
    return (replay_outcome){.live_bytes = INT64_MAX};
  ir_arena *a = ir_arena_new();
  replay_outcome out = {.num_again = (int)steps->num - r->s->num_kernels};
  out.live_bytes = sched_weigh(r->s, steps->at, steps->num, NULL);
  bool *ran = IR_NEW_ARRAY(a, bool, r->s->num_kernels + 1);
  for (size_t t = 0; t < steps->num; t++) {
    out.seconds += ran[steps->at[t]] ? r->again[steps->at[t]] : 0;
    ran[steps->at[t]] = true;
  }
  ir_arena_free(a);
  return out;
}

replay_outcome replay_try(replay *r, const unsigned char *drop) {
  ir_arena *a = ir_arena_new();
  replay_steps steps = replay_make_steps(r, a, drop);
  replay_outcome out = replay_weigh(r, &steps);
  ir_arena_free(a);
  return out;
}

bool replay_fits(replay *r, const unsigned char *drop, int64_t bytes) {
  ir_arena *a = ir_arena_new();
  replay_steps steps = replay_make_steps(r, a, drop);
  count_tried(r, &steps);
  bool fits =
      (steps.num > 0 || r->s->num_kernels == 0) && sched_fits(r->s, steps.at, steps.num, bytes);
  ir_arena_free(a);
  return fits;
}

// Searches come to the same steps again and again, and packing is dear where what is enough is out of reach:
// what was packed before is remembered.
struct replay_packed {
  const plan_interval *iv; // as they were given: without offsets
  size_t num;
  int64_t enough; // what was asked for
  plan_effort effort;
  int64_t bytes; // what came out
  replay_packed *next;
};

static const replay_packed *find_packed(const replay *r, const plan_interval *iv, size_t num,
                                        int64_t enough, plan_effort effort) {
  const replay_packed *p = r->packed;
  while (p && (p->num != num || p->enough != enough || p->effort != effort ||
               memcmp(p->iv, iv, num * sizeof *iv) != 0))
    p = p->next;
  return p;
}

static int64_t pack(replay *r, plan_interval *iv, size_t num, int64_t enough, plan_effort effort) {
  replay_packed *p = IR_NEW(r->arena, replay_packed);
  plan_interval *given = IR_NEW_ARRAY(r->arena, plan_interval, num + 1);
  memcpy(given, iv, num * sizeof *iv);
  *p = (replay_packed){
      .iv = given, .num = num, .enough = enough, .effort = effort, .next = r->packed};
  p->bytes = plan_pack_down_to(iv, num, enough, effort);
  r->packed = p;
  return p->bytes;
}

// Where `enough` is out of reach by packing, a search would spend most of its time on seeing that again and again.
static plan_effort effort_left(const replay *r, plan_effort effort) {
  while (effort > PLAN_QUICK && r->missed[effort] >= REPLAY_MOST_MISSED)
    effort--;
  return effort;
}

int64_t replay_arena_bytes(replay *r, const replay_steps *steps, int64_t enough,
                           plan_effort effort) {
  ir_arena *a = ir_arena_new();
  effort = effort_left(r, effort);
  enough = enough > 0 ? enough : 0;
  plan_live l = plan_live_steps(a, r->s, steps->at, steps->num);
  plan_joined j = plan_join_reused(a, &l);
  const replay_packed *known = find_packed(r, j.at, j.num, enough, effort);
  int64_t bytes = known ? known->bytes : pack(r, j.at, j.num, enough, effort);
  if (!known && enough > 0 && bytes > enough && plan_pack_bound(a, j.at, j.num) <= enough)
    r->missed[effort] += 1 + (int)(j.num / REPLAY_MANY);
  ir_arena_free(a);
  return bytes;
}
