// masks.c: what is computed from a value before it was masked takes the masked value, when the mask
// is applied there, too.
//
//   before   %p = select %m, %w, %zero            after   %p = select %m, %w, %zero
//            %g = select %m, %d, %zero                    %g = select %m, %d, %zero
//            %a = mul %g, %w                              %a = mul %g, %p
//            %b = mul %c, %w                              %b = mul %c, %p
//            %s = select %m, %b, %zero                    %s = select %m, %b, %zero
//
// So the backward of attention reads the weights that the forward has multiplied by, and the same
// weights before they were masked need no memory. Done only where %w is left with %p as its one
// user.
//
// %b is the same number wherever %s takes it. %a is the same, too, unless %w is infinite or NaN
// where the mask has zeroes on both sides: a product with the zero of a mask is 0 (bands.c).
//
// Needs: equal masks are one node (cse). Breaks: nothing.
#include "passes/pass.h"
#include "passes/users.h"

typedef struct masks {
  ir_arena *scratch;
  pass_users users;
} masks;

static masks masks_of(const ir_func *f) {
  ir_arena *a = ir_arena_new();
  return (masks){a, pass_find_users(a, f)};
}

// select mask, _, 0
static bool is_masked(const ir_node *n, const ir_node *mask) {
  return n->op == IR_SELECT && (!mask || n->in[0] == mask) && ir_is_const(n->in[2], 0);
}

// All that becomes of `n` goes through the mask.
static bool only_masked(const masks *s, const ir_node *n, const ir_node *mask) {
  const ir_node_list *users = &s->users.of[n->id];
  for (size_t i = 0; i < users->num; i++) {
    const ir_node *u = users->at[i];
    if (u->op != IR_SELECT || u->in[0] != mask || u->in[1] != n || u->in[2] == n)
      return false;
  }
  return users->num > 0 && !s->users.is_result[n->id];
}

// User `u` of an unmasked value can take the masked one, `p`.
static bool may_take(const masks *s, const ir_node *u, const ir_node *p) {
  const ir_node *w = p->in[1], *mask = p->in[0];
  if (u->op != IR_MUL || s->users.position[u->id] < s->users.position[p->id])
    return false;
  const ir_node *other = u->in[u->in[0] == w];
  return is_masked(other, mask) || only_masked(s, u, mask);
}

static bool all_may_take(const masks *s, const ir_node *p) {
  const ir_node_list *users = &s->users.of[p->in[1]->id];
  for (size_t i = 0; i < users->num; i++)
    if (users->at[i] != p && !may_take(s, users->at[i], p))
      return false;
  return users->num > 1 && !s->users.is_result[p->in[1]->id];
}

static void give(masks *s, ir_node *p) {
  ir_node *w = p->in[1];
  ir_node_list *users = &s->users.of[w->id];
  for (size_t i = 0; i < users->num; i++) {
    ir_node *u = users->at[i];
    for (int j = 0; u != p && j < u->num_in; j++)
      if (u->in[j] == w) {
        u->in[j] = p;
        IR_PUSH(s->scratch, s->users.of[p->id], u);
      }
  }
  users->num = 0;
  IR_PUSH(s->scratch, *users, p);
}

static bool take_masked(ir_func *f) {
  masks s = masks_of(f);
  bool changed = false;
  for (size_t i = 0; i < f->nodes.num; i++) {
    ir_node *p = f->nodes.at[i];
    if (!is_masked(p, NULL) || p->in[1] == p->in[2] || !all_may_take(&s, p))
      continue;
    give(&s, p);
    changed = true;
  }
  ir_arena_free(s.scratch);
  return changed;
}

bool pass_masks(ir_module *m, ir_diags *d) {
  (void)d;
  return pass_each_func(m, take_masked);
}
