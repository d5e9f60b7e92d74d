// checkpoint_free.c: the policy `free`: what takes next to no time to make again, and much memory to keep.
//
//   forward    z = conv ..    y = relu(norm(z))    p = pad(y)    conv of p
//   backward   y, p again     d.w = windows(p)^T d.z             z is kept: the gradient of the norm reads it
//
// What a convolution reads is a copy with room around it. Kept, it comes from memory when its time has come;
// made again, it has just been written to a cache. cost.h predicts 3% for ResNet-20's; measured it costs nothing:
// the same time with two thirds of the memory.
//
// The value that was copied is made again, too, where it is computed element by element from what is in
// memory that late anyway, or is small; else it waits in the copy's place, without the room. So does each of the parts
// that are inserted into one room.
#include "passes/again.h"
#include "passes/checkpoint.h"

static const double MOST_TIME = 2; // of the kernels that read the copy

typedef struct chooser {
  replay *r;
  double *late; // [value] seconds of kernels that read it when it would have to be made again
  unsigned char *drop;
} chooser;

static double *find_late(const replay *r, ir_arena *a) {
  double *late = IR_NEW_ARRAY(a, double, r->s->num_values + 1);
  for (int k = 0; k < r->s->num_kernels; k++)
    for (int i = 0; i < r->s->kernels[k].num_in; i++) {
      int v = r->s->kernels[k].in[i].value;
      if (v >= 0 && replay_is_late(r, v, k))
        late[v] += r->seconds[k];
    }
  return late;
}

static bool makes_room(const ir_kernel *k) {
  return k->family == IR_FAMILY_COPY && (k->anchor->op == IR_PAD || k->anchor->op == IR_INSERT);
}

bool checkpoint_has_free(const ir_func *f) {
  for (size_t i = 0; i < f->kernels.num; i++)
    if (makes_room(f->kernels.at[i]))
      return true;
  return false;
}

static bool is_pointwise(const ir_kernel *k) {
  for (size_t i = 0; i < k->nodes.num; i++)
    if (ir_ops[k->nodes.at[i]->op].cls != IR_CLASS_VIEW && !again_is_pointwise(k->nodes.at[i]))
      return false;
  return k->family == IR_FAMILY_LOOP;
}

// Its operands are there that late.
static bool can_be_made(const chooser *c, int value) {
  const sched *s = c->r->s;
  const sched_kernel *k = &s->kernels[s->values[value].kernel];
  for (int i = 0; i < k->num_in; i++) {
    int in = k->in[i].value;
    bool there =
        in < 0 || (!c->drop[in] && (c->late[in] > 0 || s->values[in].bytes * AGAIN_SMALL_SHARE <=
                                                           s->values[value].bytes));
    if (!there)
      return false;
  }
  return is_pointwise(k->k);
}

// The kernel that makes the room which this one inserts a part into, and nobody else reads; -1: there is none.
static int find_room(const chooser *c, const sched_kernel *k) {
  int value = k->k->anchor->op == IR_INSERT ? k->in[0].value : -1;
  int maker = value < 0 ? -1 : c->r->s->values[value].kernel;
  return maker >= 0 && makes_room(c->r->s->kernels[maker].k) && c->late[value] == 0 ? maker : -1;
}

static void drop_parts(const chooser *c, int copy, double limit, double *seconds) {
  const sched *s = c->r->s;
  const sched_kernel *k = &s->kernels[copy];
  for (int i = find_room(c, k) >= 0; i < k->num_in; i++) {
    int from = k->in[i].value;
    double own = from < 0 ? 0 : c->r->seconds[s->values[from].kernel];
    if (from < 0 || c->drop[from] || !can_be_made(c, from) || *seconds + own > limit)
      continue;
    c->drop[from] = REPLAY_DROP;
    *seconds += own;
  }
}

static void consider(const chooser *c, int copy) {
  const sched_kernel *k = &c->r->s->kernels[copy];
  if (!makes_room(k->k) || k->num_in == 0 || k->in[0].value < 0)
    return;
  double limit = MOST_TIME * c->late[k->first_value], seconds = 0;
  for (int i = copy; i >= 0; i = find_room(c, &c->r->s->kernels[i]))
    seconds += c->r->seconds[i];
  for (int i = copy; seconds <= limit && i >= 0; i = find_room(c, &c->r->s->kernels[i])) {
    c->drop[c->r->s->kernels[i].first_value] = REPLAY_DROP;
    drop_parts(c, i, limit, &seconds);
  }
}

void checkpoint_free(replay *r, unsigned char *drop) {
  ir_arena *a = ir_arena_new();
  chooser c = {r, find_late(r, a), drop};
  for (int k = 0; k <= r->forward; k++)
    consider(&c, k);
  ir_arena_free(a);
}
