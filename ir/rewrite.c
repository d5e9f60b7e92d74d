// rewrite.c: rebuilding a function's node list, and dropping what nothing needs.
//
// A rewrite walks the old list once. Each old node is either kept, or replaced by
// nodes that were built at its place; uses are redirected as the walk reaches them:
//
//   before   %y = mul %x, %one        after   (gone)
//            %z = neg %y                      %z = neg %x
//
// A node that replaces an old one and was built for it takes over its name, so that
// names from the graph survive the pipeline.
#include "ir/builder.h"
#include "ir/internal.h"

#include <string.h>

ir_rewrite ir_rewrite_begin(ir_func *f) {
  ir_rewrite rw = {.b = ir_build_at_end(f)};
  rw.old = f->nodes.at;
  rw.num_old = f->nodes.num;
  rw.map_size = f->next_id;
  rw.map = IR_NEW_ARRAY(f->module->arena, ir_node *, rw.map_size + 1);
  f->nodes.at = IR_NEW_ARRAY(f->module->arena, ir_node *, rw.num_old + 1);
  f->nodes.num = 0;
  f->nodes.cap = rw.num_old + 1;
  return rw;
}

ir_node *ir_rewrite_now(const ir_rewrite *rw, ir_node *n) {
  ir_node *to = n->id < rw->map_size ? rw->map[n->id] : NULL;
  return to ? to : n;
}

ir_node *ir_rewrite_next(ir_rewrite *rw, size_t i) {
  ir_node *n = rw->old[i];
  for (int k = 0; k < n->num_in; k++)
    n->in[k] = ir_rewrite_now(rw, n->in[k]);
  rw->b.loc = n->loc;
  rw->first_new = rw->b.func->nodes.num;
  return n;
}

// True when a node built since ir_rewrite_next uses `n`: it then has to come before them.
static bool used_by_new(const ir_rewrite *rw, const ir_node *n) {
  const ir_func *f = rw->b.func;
  for (size_t i = rw->first_new; i < f->nodes.num; i++)
    for (int k = 0; k < f->nodes.at[i]->num_in; k++)
      if (f->nodes.at[i]->in[k] == n)
        return true;
  return false;
}

static void insert_before_new(ir_rewrite *rw, ir_node *n) {
  ir_func *f = rw->b.func;
  IR_PUSH(f->module->arena, f->nodes, n);
  size_t after = f->nodes.num - 1 - rw->first_new;
  ir_node **at = f->nodes.at + rw->first_new;
  memmove(at + 1, at, after * sizeof *at);
  *at = n;
}

static bool built_here(const ir_rewrite *rw, const ir_node *n) {
  for (size_t i = rw->first_new; i < rw->b.func->nodes.num; i++)
    if (rw->b.func->nodes.at[i] == n)
      return true;
  return false;
}

static void take_name(ir_func *f, ir_node *from, ir_node *to) {
  const char *name = from->name;
  ir_map_put(f->names, to->name, NULL);
  ir_map_put(f->names, name, NULL);
  ir_name_node(f, to, name);
}

size_t ir_before_number(const char *name) {
  const char *dot = strrchr(name, '.');
  bool numbered = dot && dot[1] && !dot[1 + strspn(dot + 1, "0123456789")];
  return numbered ? (size_t)(dot - name) : strlen(name);
}

bool ir_names_gradient(const ir_func *f, const ir_node *n) {
  if (strncmp(n->name, "d.", 2) != 0)
    return false;
  const char *of = n->name + 2;
  size_t len = ir_before_number(of);
  return ir_find_state(f->module, of) ||
         (of[len] && ir_find_state(f->module, ir_strndup(f->module->arena, of, len)));
}

void ir_rewrite_done(ir_rewrite *rw, size_t i, ir_node *replacement) {
  ir_func *f = rw->b.func;
  ir_node *n = rw->old[i];
  bool needed = used_by_new(rw, n);
  if (needed)
    insert_before_new(rw, n);
  else if (replacement == n)
    IR_PUSH(f->module->arena, f->nodes, n);
  else if (n->op != IR_WRITE && replacement->op != IR_WRITE && built_here(rw, replacement))
    take_name(f, n, replacement);
  else if (n->op != IR_WRITE && ir_names_gradient(f, n) && !ir_names_gradient(f, replacement) &&
           ir_ops[replacement->op].cls != IR_CLASS_LEAF)
    take_name(f, n, replacement);
  if (replacement != n) {
    rw->map[n->id] = replacement;
    rw->changed = true;
  }
}

// --- dead nodes ------------------------------------------------------------------------------
bool *ir_find_live(ir_arena *a, const ir_func *f) {
  bool *live = IR_NEW_ARRAY(a, bool, f->next_id + 1);
  for (size_t i = 0; i < f->results.num; i++)
    live[f->results.at[i].node->id] = true;
  for (size_t i = f->nodes.num; i-- > 0;) {
    const ir_node *n = f->nodes.at[i];
    // Inputs are the function's interface: their order says which batch field fills which.
    if (n->op == IR_INPUT || n->stored || ir_ops[n->op].cls == IR_CLASS_EFFECT)
      live[n->id] = true;
    if (live[n->id])
      for (int k = 0; k < n->num_in; k++)
        live[n->in[k]->id] = true;
  }
  return live;
}

static void drop_from_kernel(ir_kernel *k, const bool *live) {
  size_t kept = 0;
  for (size_t i = 0; i < k->nodes.num; i++)
    if (live[k->nodes.at[i]->id])
      k->nodes.at[kept++] = k->nodes.at[i];
  k->nodes.num = kept;
  if (kept && !live[k->anchor->id])
    k->anchor = k->nodes.at[kept - 1];
}

static void drop_from_kernels(ir_func *f, const bool *live) {
  size_t kept = 0;
  for (size_t i = 0; i < f->kernels.num; i++) {
    ir_kernel *k = f->kernels.at[i];
    drop_from_kernel(k, live);
    if (k->nodes.num == 0)
      continue;
    k->id = (uint32_t)kept;
    f->kernels.at[kept++] = k;
  }
  f->kernels.num = kept;
}

// A gradient of other dimensions is dead, its elements are still there: they get the name.
static void keep_gradient_name(ir_func *f, ir_node *n, const bool *live) {
  if (n->op != IR_RESHAPE || !ir_names_gradient(f, n))
    return;
  ir_node *below = n->in[0];
  while (!live[below->id] && below->op == IR_RESHAPE)
    below = below->in[0];
  if (live[below->id] && ir_ops[below->op].cls != IR_CLASS_LEAF && !ir_names_gradient(f, below))
    take_name(f, n, below);
}

// The names of what is gone are still taken.
static bool drop_dead(ir_func *f) {
  const bool *live = ir_find_live(f->module->arena, f);
  size_t kept = 0, before = f->nodes.num;
  for (size_t i = 0; i < before; i++) {
    ir_node *n = f->nodes.at[i];
    if (live[n->id])
      f->nodes.at[kept++] = n;
    else
      keep_gradient_name(f, n, live);
  }
  if (kept == before)
    return false;
  f->nodes.num = kept;
  drop_from_kernels(f, live);
  return true;
}

bool ir_drop_dead(ir_func *f) {
  bool dropped = drop_dead(f);
  if (dropped)
    ir_names_forget(f);
  return dropped;
}

// --- the end of a rewrite ----------------------------------------------------------------------
bool ir_rewrite_end(ir_rewrite *rw) {
  ir_func *f = rw->b.func;
  for (size_t i = 0; i < f->results.num; i++)
    f->results.at[i].node = ir_rewrite_now(rw, f->results.at[i].node);
  bool dropped = drop_dead(f), same = f->nodes.num == rw->num_old;
  for (size_t i = 0; same && i < rw->num_old; i++)
    same = f->nodes.at[i] == rw->old[i];
  if (dropped || !same)
    ir_names_forget(f);
  return rw->changed || !same;
}

bool ir_rewrite_each(ir_func *f, ir_node *(*improve)(ir_builder *b, ir_node *n)) {
  ir_rewrite rw = ir_rewrite_begin(f);
  for (size_t i = 0; i < rw.num_old; i++) {
    ir_node *n = ir_rewrite_next(&rw, i), *r = improve(&rw.b, n);
    ir_rewrite_done(&rw, i, r ? r : n);
  }
  return ir_rewrite_end(&rw);
}
