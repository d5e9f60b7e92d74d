// test_ir_rewrite.c: the builder's names and shortcuts, rewriting, dead nodes, clones.
#include "tests/unit/support_ir.h"

#include <string.h>

static const int64_t dims[] = {3, 4};

static ir_func *empty_step(ir_arena *a) {
  return ir_func_new(ir_module_new(a, "t"), "step");
}

static void check_names(ir_arena *a) {
  ir_builder b = ir_build_at_end(empty_step(a));
  ir_node *x = ir_input(&b, "x", ir_tensor(IR_F32, 2, dims));
  b.scope = "layer.0";
  ir_node *p = ir_unary(&b, IR_NEG, x), *q = ir_unary(&b, IR_NEG, x), *r = ir_unary(&b, IR_NEG, x);
  CHECK(strcmp(p->name, "layer.0.neg") == 0, "%s", p->name);
  CHECK(strcmp(q->name, "layer.0.neg.2") == 0, "%s", q->name);
  CHECK(strcmp(r->name, "layer.0.neg.3") == 0, "%s", r->name);
  b.scope = NULL;
  ir_node *s = ir_build(&b, IR_NEG, q->name, 1, &x, 0, NULL, NULL);
  CHECK(strcmp(s->name, "layer.0.neg.4") == 0, "a copy of a numbered name: %s", s->name);
  ir_node *t = ir_build(&b, IR_NEG, "layer.0", 1, &x, 0, NULL, NULL);
  ir_node *u = ir_build(&b, IR_NEG, "layer.0", 1, &x, 0, NULL, NULL);
  CHECK(strcmp(t->name, "layer.0") == 0 && strcmp(u->name, "layer.0.2") == 0,
        "a number from the graph is no number of ours: %s %s", t->name, u->name);
  ir_rename(b.func, u, "odd name/");
  CHECK(strcmp(u->name, "odd_name_") == 0, "%s", u->name);
  support_verifies(b.func->module, "names");
}

static void check_shortcuts(ir_arena *a) {
  ir_builder b = ir_build_at_end(empty_step(a));
  ir_node *x = ir_input(&b, "x", ir_tensor(IR_F32, 2, dims));
  const int64_t zero[] = {0, 0}, one[] = {1, 1}, big[] = {5, 3, 4};
  CHECK(ir_cast(&b, x, IR_F32) == x, "cast to the same");
  CHECK(ir_reshape(&b, x, 2, dims) == x, "reshape to the same");
  CHECK(ir_transpose(&b, x, (const int64_t[]){0, 1}) == x, "transpose by nothing");
  CHECK(ir_broadcast(&b, x, 2, dims) == x, "broadcast to the same");
  CHECK(ir_slice(&b, x, zero, dims, one) == x, "slice of everything");
  CHECK(ir_reduce(&b, IR_SUM, x, NULL, 0) == x, "sum over nothing");
  ir_node *y = ir_broadcast_to(&b, x, 3, big);
  CHECK(y->op == IR_BROADCAST && y->in[0]->op == IR_RESHAPE && y->type.rank == 3, "broadcast_to");
  ir_node *z = ir_binary_const(&b, IR_MUL, x, 2);
  CHECK(ir_same_type(&z->in[1]->type, &x->type), "the constant has x's type");
  support_verifies(b.func->module, "shortcuts");
}

// --- rewriting -----------------------------------------------------------------------------------
static const char graph[] = "mltc-ir 1\n"
                            "module t\n"
                            "func step {\n"
                            "  %unused = input : f32[4]\n"
                            "  %x = input : f32[4]\n"
                            "  %a = neg %x : f32[4]\n"
                            "  %b = neg %a : f32[4]\n"
                            "  %c = abs %b : f32[4]\n"
                            "  result output c = %c\n"
                            "}\n";

typedef ir_node *(*improve)(ir_builder *b, ir_node *n);

static bool rewrite(ir_func *f, improve improve) {
  ir_rewrite rw = ir_rewrite_begin(f);
  for (size_t i = 0; i < rw.num_old; i++) {
    ir_node *n = ir_rewrite_next(&rw, i), *r = improve(&rw.b, n);
    ir_rewrite_done(&rw, i, r ? r : n);
  }
  return ir_rewrite_end(&rw);
}

static ir_node *leave(ir_builder *b, ir_node *n) {
  (void)b;
  (void)n;
  return NULL;
}
static ir_node *double_negation(ir_builder *b, ir_node *n) {
  (void)b;
  return n->op == IR_NEG && n->in[0]->op == IR_NEG ? n->in[0]->in[0] : NULL;
}
static ir_node *abs_to_max(ir_builder *b, ir_node *n) {
  return n->op == IR_ABS ? ir_binary(b, IR_MAX, n->in[0], ir_unary(b, IR_NEG, n->in[0])) : NULL;
}
static ir_node *copy_after_abs(ir_builder *b, ir_node *n) {
  return n->op == IR_ABS ? ir_unary(b, IR_COPY, n) : NULL;
}
static ir_node *build_for_nothing(ir_builder *b, ir_node *n) {
  if (n->op == IR_ABS)
    ir_unary(b, IR_COPY, n->in[0]);
  return NULL;
}

static void check_rewrite(ir_arena *a, improve improve, bool changes, const char *lines) {
  ir_module *m = support_module(a, graph);
  CHECK(rewrite(m->funcs.at[0], improve) == changes, "wanted changed=%d for\n%s", changes, lines);
  support_verifies(m, "after a rewrite");
  CHECK(strstr(support_text(a, m), lines), "wanted\n%s\nin\n%s", lines, support_text(a, m));
  ir_source src = {"again", support_text(a, m), strlen(support_text(a, m))};
  CHECK(ir_parse(a, &src, diag_new(a)), "the text reads back");
}

static void check_rewrites(ir_arena *a) {
  check_rewrite(a, leave, false, "%c = abs %b : f32[4]");
  check_rewrite(a, build_for_nothing, false, "%c = abs %b : f32[4]");
  check_rewrite(a, double_negation, true,
                "  %unused = input : f32[4]\n" // inputs stay: they are the interface
                "  %x = input : f32[4]\n  %c = abs %x : f32[4]\n  result");
  check_rewrite(a, abs_to_max, true, // the new node takes over the name
                "  %neg = neg %b : f32[4]\n  %c = max %b, %neg : f32[4]\n  result output c = %c");
  check_rewrite(a, copy_after_abs, true, // the old node is still used
                "  %c = abs %b : f32[4]\n  %copy = copy %c : f32[4]\n  result output c = %copy");
}

// --- dead nodes ----------------------------------------------------------------------------------
static void check_dead(ir_arena *a) {
  ir_module *m = support_module(a, "mltc-ir 1\nmodule t\nstate w : f32[4] role=param\n"
                                   "func step {\n"
                                   "  %x = input : f32[4]\n"
                                   "  %w = read @w : f32[4]\n"
                                   "  kernel k loop anchor=%dead {\n"
                                   "    %y = neg %x : f32[4]\n"
                                   "    %dead = neg %y : f32[4]\n"
                                   "  }\n"
                                   "  kernel gone loop {\n"
                                   "    %dead2 = neg %dead : f32[4]\n"
                                   "  }\n"
                                   "  write @w, %y\n"
                                   "}\n");
  ir_func *f = m->funcs.at[0];
  CHECK(ir_drop_dead(f), "dead nodes go");
  CHECK(!ir_drop_dead(f), "once");
  CHECK(f->nodes.num == 3 && f->kernels.num == 1, "%zu nodes, %zu kernels", f->nodes.num,
        f->kernels.num);
  support_verifies(m, "after dropping dead nodes");
  ir_builder b = ir_build_at_end(f);
  ir_node *again = ir_build(&b, IR_NEG, "dead", 1, f->nodes.at, 0, NULL, NULL);
  CHECK(strcmp(again->name, "dead") == 0, "names of dead nodes are free: %s", again->name);
}

// A clone is on its own: changes of one do not show in the other.
static void check_clone(ir_arena *a) {
  ir_module *m = support_module(a, graph), *copy = ir_clone(m);
  const char *before = ir_strdup(a, support_text(a, m));
  rewrite(copy->funcs.at[0], double_negation);
  CHECK(strcmp(support_text(a, m), before) == 0, "the original changed");
  CHECK(strcmp(support_text(a, copy), before) != 0, "the copy did not");
}

// Naming and rewriting of large functions take time in proportion.
static void check_large(ir_arena *a) {
  ir_func *f = empty_step(a);
  ir_builder b = ir_build_at_end(f);
  ir_node *x = ir_input(&b, "x", ir_tensor(IR_F32, 2, dims));
  for (int i = 0; i < 100000; i++)
    x = ir_unary(&b, IR_NEG, x);
  ir_result_add(f, "x", IR_RESULT_OUTPUT, x);
  CHECK(rewrite(f, double_negation) && f->nodes.num == 1, "%zu nodes are left", f->nodes.num);
}

int main(void) {
  ir_arena *a = ir_arena_new();
  check_names(a);
  check_shortcuts(a);
  check_rewrites(a);
  check_dead(a);
  check_clone(a);
  check_large(a);
  ir_arena_free(a);
  return support_finish("test_ir_rewrite");
}
