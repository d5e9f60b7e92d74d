// plan_shares.c: see plan_shares.h.
//
// Values that the loss is computed from are activations. Of the others, those are gradients that a
// kernel reads which computes new parameters or moments, element by element, and what that kernel makes
// of them: only there is it sure that a value belongs to a parameter, and does not just have its shape.
//
//   loss = mean(.. gelu(%h) ..)                        %h      an activation
//   @w <- sub @w, (mul lr, (mul %d.w, %scale))         %d.w    a gradient
#include "passes/plan_shares.h"

#include "passes/plan_text.h"

typedef enum share { SHARE_OTHER, SHARE_GRADIENT, SHARE_ACTIVATION } share;

typedef struct marking {
  ir_arena *arena;
  const ir_func *f;
  unsigned char *of;       // [node id] share
  IR_VEC(ir_node *) stack; // still to be followed
} marking;

static bool mark(marking *x, const ir_node *n, share what) {
  if (x->of[n->id])
    return false;
  x->of[n->id] = (unsigned char)what;
  return true;
}

static bool is_trained_state(const ir_state *s) {
  return s->role == IR_ROLE_PARAM || s->role == IR_ROLE_MOMENT || s->role == IR_ROLE_ACCUM;
}

// A second loss is computed from parameters that the first has trained: what those come from are
// gradients.
static void mark_updated(marking *x) {
  for (size_t i = 0; i < x->f->nodes.num; i++) {
    const ir_node *n = x->f->nodes.at[i];
    if (n->op == IR_WRITE && is_trained_state(n->state))
      mark(x, n->in[0], SHARE_GRADIENT);
  }
}

static void mark_activations(marking *x, ir_node *loss) {
  if (mark(x, loss, SHARE_ACTIVATION))
    IR_PUSH(x->arena, x->stack, loss);
  while (x->stack.num) {
    const ir_node *n = x->stack.at[--x->stack.num];
    for (int i = 0; i < n->num_in; i++)
      if (mark(x, n->in[i], SHARE_ACTIVATION))
        IR_PUSH(x->arena, x->stack, n->in[i]);
  }
}

// Follows operands of the state's size inside the kernel that computes what is written.
static void mark_gradients(marking *x, const ir_node *write) {
  int64_t elements = ir_elements(&write->state->type);
  const ir_kernel *k = write->in[0]->kernel;
  IR_PUSH(x->arena, x->stack, write->in[0]);
  while (x->stack.num) {
    const ir_node *n = x->stack.at[--x->stack.num];
    for (int i = 0; i < n->num_in; i++) {
      ir_node *in = n->in[i];
      if (in->op == IR_READ || ir_elements(&in->type) != elements || !mark(x, in, SHARE_GRADIENT))
        continue;
      if (in->kernel == k || !in->kernel)
        IR_PUSH(x->arena, x->stack, in);
    }
  }
}

static const unsigned char *mark_func(ir_arena *a, const ir_func *f) {
  marking x = {.arena = a, .f = f, .of = IR_NEW_ARRAY(a, unsigned char, f->next_id + 1)};
  mark_updated(&x);
  for (size_t i = 0; i < f->results.num; i++)
    if (f->results.at[i].kind == IR_RESULT_LOSS)
      mark_activations(&x, f->results.at[i].node);
  for (size_t i = 0; i < f->nodes.num; i++)
    if (f->nodes.at[i]->op == IR_WRITE && is_trained_state(f->nodes.at[i]->state))
      mark_gradients(&x, f->nodes.at[i]);
  return x.of;
}

// --- adding up -----------------------------------------------------------------------------------
static int64_t *share_of_state(plan_shares *s, ir_role role) {
  switch (role) {
  case IR_ROLE_PARAM:
  case IR_ROLE_FROZEN:
  case IR_ROLE_BUFFER:
    return &s->weights;
  case IR_ROLE_MOMENT:
    return &s->optimizer;
  case IR_ROLE_ACCUM:
    return &s->gradients;
  default:
    return &s->other;
  }
}

static void add_states(plan_shares *s, const plan *p) {
  for (size_t i = 0; i < p->buffers.num; i++) {
    const plan_buffer *b = &p->buffers.at[i];
    if (b->kind != PLAN_STATE)
      continue;
    *share_of_state(s, b->state->role) += plan_align(b->bytes);
    if (b->state->role == IR_ROLE_PARAM || b->state->role == IR_ROLE_FROZEN)
      s->parameters += ir_elements(&b->state->type);
  }
}

static const ir_func *find_largest(ir_arena *a, const plan *p, const ir_module *m, int *peak) {
  const ir_func *largest = NULL;
  int64_t most = -1;
  for (size_t i = 0; i < m->funcs.num; i++) {
    int64_t bytes;
    int k = plan_peak(a, p, m->funcs.at[i], &bytes);
    if (k >= 0 && bytes > most) {
      most = bytes;
      largest = m->funcs.at[i];
      *peak = k;
    }
  }
  return largest;
}

// What a kernel of the forward pass makes a second time is an activation as it was the first time.
static share share_of(const unsigned char *of, const plan_buffer *b) {
  if (b->node && b->node->kernel && b->node->kernel->clone_of)
    return SHARE_ACTIVATION;
  return b->node ? (share)of[b->node->id] : SHARE_OTHER;
}

// Gradients in temporaries, at each kernel in turn.
static int64_t most_gradients(ir_arena *a, const plan *p, const ir_func *f,
                              const unsigned char *of) {
  int64_t *change = IR_NEW_ARRAY(a, int64_t, f->kernels.num + 2), live = 0, most = 0;
  for (size_t i = 0; i < p->buffers.num; i++) {
    const plan_buffer *b = &p->buffers.at[i];
    if (!plan_is_temp_of(b, f) || share_of(of, b) != SHARE_GRADIENT)
      continue;
    change[b->first + (b->reuses >= 0)] += plan_align(b->bytes);
    change[b->last + 1] -= plan_align(b->bytes);
  }
  for (size_t k = 0; k < f->kernels.num; k++) {
    live += change[k];
    most = live > most ? live : most;
  }
  return most;
}

static void add_temporaries(ir_arena *a, plan_shares *s, const plan *p, const ir_module *m) {
  int peak = 0;
  const ir_func *f = find_largest(a, p, m, &peak);
  s->most_gradients = s->gradients;
  if (!f)
    return;
  const unsigned char *of = mark_func(a, f);
  plan_list live = plan_live_at(a, p, f, peak);
  s->most_gradients += most_gradients(a, p, f, of);
  for (size_t i = 0; i < live.num; i++) {
    const plan_buffer *b = &p->buffers.at[live.at[i]];
    share what = share_of(of, b);
    if (what == SHARE_GRADIENT)
      s->gradients += plan_align(b->bytes);
    else if (what == SHARE_ACTIVATION)
      s->activations += plan_align(b->bytes);
  }
}

plan_shares plan_find_shares(const plan *p, const ir_module *m) {
  ir_arena *a = ir_arena_new();
  plan_shares s = {0};
  add_states(&s, p);
  add_temporaries(a, &s, p, m);
  s.other = p->arena_bytes - s.weights - s.optimizer - s.gradients - s.activations;
  ir_arena_free(a);
  return s;
}
