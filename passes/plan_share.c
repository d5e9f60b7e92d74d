// plan_share.c: tells gradients and activations from other temporaries, by what depends on what:
// names are the user's, and passes move nodes about.
//
//   %h  = relu ...           activation: the loss needs it, and %dw, which the loss does not
//   %loss = ...
//   %dw = matmul %h, %d      gradient: nothing but pointwise ops between it and `write @w`
//   %s  = mul %dw, %scale    gradient, too (clipped, averaged, weight decay added)
//   %m1 = add %m, %s         no gradient: it depends on a moment
//   write @m, %m1
//
// With several losses (a GAN's) a value may be forward for one and backward for another, so each is
// looked at by itself; and what a moment has gone into ends at the new parameter, which the second
// loss may need.
#include "passes/plan_share.h"
#include "passes/domain.h"
#include "passes/losses.h"

const char *const plan_share_names[PLAN_NUM_SHARES] = {
    [PLAN_SHARE_PARAMETER] = "parameter", [PLAN_SHARE_GRADIENT] = "gradient",
    [PLAN_SHARE_MOMENT] = "moment",       [PLAN_SHARE_ACTIVATION] = "activation",
    [PLAN_SHARE_STATE] = "state",         [PLAN_SHARE_STAGING] = "staging",
    [PLAN_SHARE_WORKSPACE] = "workspace", [PLAN_SHARE_RESULT] = "result",
    [PLAN_SHARE_TEMPORARY] = "temporary",
};

// By node id of `f`.
typedef struct sorter {
  ir_arena *arena;
  const ir_func *f;
  bool *trains;   // parameters, moments or accumulators need it
  bool *toward;   // pointwise ops lead from it to one of them, of more than one number
  bool *backward; // there is a loss that does not need it
  bool *kept;     // a loss needs it, and so does a kernel of its backward
  bool *updates;  // depends on a moment
  bool *stored;   // the next value of a state, before it is copied
  bool *renewed;  // of a parameter
} sorter;

static bool *new_marks(const sorter *s) {
  return IR_NEW_ARRAY(s->arena, bool, s->f->next_id + 1);
}

static bool is_trained(const ir_state *s) {
  return s->role == IR_ROLE_PARAM || s->role == IR_ROLE_MOMENT || s->role == IR_ROLE_ACCUM;
}

static bool is_elementwise(const ir_node *n) {
  return ir_ops[n->op].cls == IR_CLASS_POINTWISE || ir_ops[n->op].cls == IR_CLASS_VIEW;
}

// All that marked nodes are computed from.
static void mark_ancestors(const ir_func *f, bool *marks) {
  for (size_t i = f->nodes.num; i-- > 0;) {
    const ir_node *n = f->nodes.at[i];
    for (int j = 0; marks[n->id] && j < n->num_in; j++)
      marks[n->in[j]->id] = true;
  }
}

// What leads to a write: by pointwise ops, and by mere copies.
static void follow_to_write(sorter *s, const ir_node *n) {
  bool writes = n->op == IR_WRITE;
  bool moves = writes || n->op == IR_COPY || n->op == IR_STOP || ir_ops[n->op].cls == IR_CLASS_VIEW;
  for (int j = 0; j < n->num_in; j++) {
    const ir_node *x = n->in[j];
    bool same = ir_elements(&x->type) == ir_elements(&n->type);
    s->toward[x->id] |= s->toward[n->id] && same && (writes || is_elementwise(n));
    s->stored[x->id] |= moves && same && s->stored[n->id];
    s->renewed[x->id] |= moves && same && s->renewed[n->id];
  }
}

static void find_training(sorter *s) {
  for (size_t i = s->f->nodes.num; i-- > 0;) {
    const ir_node *n = s->f->nodes.at[i];
    if (n->op == IR_WRITE) {
      s->trains[n->id] = is_trained(n->state);
      s->toward[n->id] = is_trained(n->state) && ir_elements(&n->type) > 1;
      s->stored[n->id] = n->state->role != IR_ROLE_ACCUM; // a sum of gradients is one, too
      s->renewed[n->id] = n->state->role == IR_ROLE_PARAM;
    }
    follow_to_write(s, n);
  }
  mark_ancestors(s->f, s->trains);
}

// --- losses --------------------------------------------------------------------------------------
static void take_loss(sorter *s, const ir_node *loss) {
  bool *needed = new_marks(s);
  needed[loss->id] = true;
  mark_ancestors(s->f, needed);
  for (size_t i = 0; i < s->f->nodes.num; i++) {
    const ir_node *n = s->f->nodes.at[i];
    s->backward[n->id] |= !needed[n->id];
    bool reads = !needed[n->id] && s->trains[n->id] && !ir_is_seen_through(n);
    for (int j = 0; reads && j < n->num_in; j++) {
      const ir_node *from = dom_owner(dom_base(n->in[j]));
      s->kept[from->id] |= needed[from->id] && from->kernel != n->kernel;
    }
  }
}

static void take_losses(sorter *s) {
  losses l = losses_find(s->arena, s->f);
  for (size_t i = 0; i < l.at.num; i++)
    take_loss(s, l.at.at[i]);
}

static void find_updates(sorter *s) {
  for (size_t i = 0; i < s->f->nodes.num; i++) {
    const ir_node *n = s->f->nodes.at[i];
    bool *updates = &s->updates[n->id];
    *updates = n->op == IR_READ && n->state->role == IR_ROLE_MOMENT;
    for (int j = 0; !s->renewed[n->id] && j < n->num_in; j++)
      *updates |= s->updates[n->in[j]->id];
  }
}

static sorter sort_func(ir_arena *a, const ir_func *f) {
  sorter s = {.arena = a, .f = f};
  bool **all[] = {&s.trains, &s.toward, &s.backward, &s.kept, &s.updates, &s.stored, &s.renewed};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    *all[i] = new_marks(&s);
  find_training(&s);
  take_losses(&s);
  find_updates(&s);
  return s;
}

// --- buffers -------------------------------------------------------------------------------------
static plan_share share_of_state(const ir_state *s) {
  static const plan_share shares[IR_NUM_ROLES] = {
      [IR_ROLE_PARAM] = PLAN_SHARE_PARAMETER, [IR_ROLE_FROZEN] = PLAN_SHARE_PARAMETER,
      [IR_ROLE_MOMENT] = PLAN_SHARE_MOMENT,   [IR_ROLE_ACCUM] = PLAN_SHARE_GRADIENT,
      [IR_ROLE_BUFFER] = PLAN_SHARE_STATE,    [IR_ROLE_COUNTER] = PLAN_SHARE_STATE,
      [IR_ROLE_SEED] = PLAN_SHARE_STATE,      [IR_ROLE_FLAG] = PLAN_SHARE_STATE,
  };
  return shares[s->role];
}

static plan_share share_of_value(const sorter *s, const ir_node *n) {
  if (s->toward[n->id] && s->backward[n->id] && !s->updates[n->id] && !s->stored[n->id])
    return PLAN_SHARE_GRADIENT;
  if ((s->kept[n->id] && !s->stored[n->id]) || n->kernel->clone_of || ir_is_transfer(n->kernel))
    return PLAN_SHARE_ACTIVATION;
  return PLAN_SHARE_TEMPORARY;
}

static plan_share share_of(const sorter *s, const plan_buffer *b) {
  switch (b->kind) {
  case PLAN_STATE:
    return share_of_state(b->state);
  case PLAN_STAGING:
    return PLAN_SHARE_STAGING;
  case PLAN_WORKSPACE:
    return PLAN_SHARE_WORKSPACE;
  case PLAN_RESULT:
    return PLAN_SHARE_RESULT;
  case PLAN_TEMP:
  case PLAN_HOST:
    return share_of_value(s, b->node);
  }
  BUG("buffer %s of kind %d", b->name, (int)b->kind);
}

plan_share *plan_share_buffers(ir_arena *a, const plan *p) {
  plan_share *of = IR_NEW_ARRAY(a, plan_share, p->buffers.num + 1);
  sorter s = {0};
  for (size_t i = 0; i < p->buffers.num; i++) {
    const plan_buffer *b = &p->buffers.at[i];
    if ((b->kind == PLAN_TEMP || b->kind == PLAN_HOST) &&
        b->func != s.f) // buffers of a function stand together
      s = sort_func(a, b->func);
    of[i] = share_of(&s, b);
  }
  return of;
}
