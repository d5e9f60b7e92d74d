// join_masks.c: what goes through two masks goes through both at once.
//
//   before   %p = select %a, %v, %zero      after    %m = and %b, %a2       %a2, %v2: the views of
//            %r = reshape %p                         %d = select %m, %v2, %zero     %a and %v
//            %d = select %b, %r, %zero
//
// So the gradient of a maximum over windows of what was clamped, as in max_pool2d(relu(x)), waits for one
// mask of the forward pass instead of two. Done where nobody else uses %p and what is between, and
// nobody later the masks. Masks that are made of no data, of which bands.c and dropout make use, are
// left as they are: they need no memory.
//
// The numbers are the same: %v is where both masks let it through, and 0 elsewhere.
//
// Needs: equal masks are one node (cse). Breaks: nothing.
#include "ir/builder.h"
#include "passes/pass.h"
#include "passes/users.h"

typedef struct joining {
  pass_users users;
  bool *of_data; // by id
} joining;

static bool is_masked(const ir_node *n) {
  return n->op == IR_SELECT && ir_is_const(n->in[2], 0);
}

static bool is_view(const ir_node *n) {
  return ir_ops[n->op].cls == IR_CLASS_VIEW;
}

// What is neither constants, indices and random numbers, nor computed from only these, element by element.
static bool *find_of_data(ir_arena *a, const ir_func *f) {
  bool *of_data = IR_NEW_ARRAY(a, bool, f->next_id);
  for (size_t i = 0; i < f->nodes.num; i++) {
    const ir_node *n = f->nodes.at[i];
    bool found = !is_view(n) && ir_ops[n->op].cls != IR_CLASS_POINTWISE;
    for (int k = 0; k < n->num_in; k++)
      found |= of_data[n->in[k]->id];
    of_data[n->id] = found && !ir_is_generated(n) && !ir_is_random(n);
  }
  return of_data;
}

// Of those behind `p`, only `user` uses `mask`.
static bool is_last_use(const joining *j, const ir_node *mask, const ir_node *user,
                        const ir_node *p) {
  const pass_users *u = &j->users;
  for (size_t i = 0; i < u->of[mask->id].num; i++) {
    const ir_node *x = u->of[mask->id].at[i];
    if (x != user && u->position[x->id] > u->position[p->id])
      return false;
  }
  return j->of_data[mask->id];
}

// The masked value that is all that `d` masks once more; NULL.
static ir_node *find_masked(const joining *j, const ir_node *d) {
  const pass_users *u = &j->users;
  ir_node *p = is_masked(d) ? d->in[1] : NULL;
  while (p && is_view(p) && u->of[p->id].num == 1 && !u->is_result[p->id])
    p = p->in[0];
  bool fits = p && is_masked(p) && u->of[p->id].num == 1 && !u->is_result[p->id] &&
              is_last_use(j, p->in[0], p, p) && is_last_use(j, d->in[0], d, p);
  return fits ? p : NULL;
}

// `x` as `seen` is seen: through the views from `seen` down to `p`.
static ir_node *through_views(ir_builder *b, ir_node *seen, const ir_node *p, ir_node *x) {
  if (seen == p)
    return x;
  ir_node *below = through_views(b, seen->in[0], p, x);
  ir_type t = seen->type;
  t.dtype = x->type.dtype;
  return ir_build(b, seen->op, seen->name, 1, &below, seen->num_attrs, seen->attrs, &t);
}

static ir_node *join(ir_builder *b, ir_node *d, const ir_node *p) {
  ir_node *mask = through_views(b, d->in[1], p, p->in[0]);
  ir_node *both = ir_binary(b, IR_AND, d->in[0], mask);
  return ir_select(b, both, through_views(b, d->in[1], p, p->in[1]), d->in[2]);
}

static bool join_func(ir_func *f) {
  ir_arena *scratch = ir_arena_new();
  joining j = {pass_find_users(scratch, f), find_of_data(scratch, f)};
  ir_node **masked = IR_NEW_ARRAY(scratch, ir_node *, f->nodes.num + 1);
  bool any = false;
  for (size_t i = 0; i < f->nodes.num; i++)
    any |= (masked[i] = find_masked(&j, f->nodes.at[i])) != NULL;
  if (!any) {
    ir_arena_free(scratch);
    return false;
  }
  ir_rewrite rw = ir_rewrite_begin(f);
  for (size_t i = 0; i < rw.num_old; i++) {
    ir_node *n = ir_rewrite_next(&rw, i);
    // Which may have been joined itself.
    ir_node *p = masked[i] ? ir_rewrite_now(&rw, masked[i]) : NULL;
    ir_rewrite_done(&rw, i, p ? join(&rw.b, n, p) : n);
  }
  ir_arena_free(scratch);
  return ir_rewrite_end(&rw);
}

bool pass_join_masks(ir_module *m, ir_diags *d) {
  (void)d;
  return pass_each_func(m, join_func);
}
