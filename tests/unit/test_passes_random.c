// test_passes_random.c: random graphs (fixed seeds) through every pass, each alone and all in
// their order, compared with the oracle; and autodiff against forward mode.
//
//   test_passes_random [first seed] [number of seeds]
#include "support_passes.h"

#include "ir/builder.h"
#include "tests/random/random_graph.h"
#include "tests/support_campaign.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double tolerance = 1e-7; // relative; rounding is 1e-16 before cancellation

static ir_random_options options_of(uint64_t seed) {
  return (ir_random_options){.seed = seed,
                             .num_nodes = 8 + (int)(seed * 7 % 50),
                             .differentiable = seed % 3 != 0,
                             .penalised = seed % 6 >= 4,
                             .networks = seed % 2 == 0};
}

// Results and states of one step from freshly initialised parameters.
static test_values values_of(ir_arena *a, const ir_module *m, uint64_t seed) {
  ir_world *w = ir_world_new(a, m);
  const ir_func *init = ir_find_func(m, "init"), *f = ir_find_func(m, "step");
  if (init)
    ir_interp(w, init, NULL);
  ir_tensor_value *nodes = ir_interp(w, f, ir_random_inputs(a, f, seed));
  test_values out = {.module = m};
  for (size_t i = 0; i < f->results.num; i++) {
    IR_PUSH(a, out.names, f->results.at[i].name);
    IR_PUSH(a, out.values, nodes[f->results.at[i].node->id]);
  }
  for (size_t i = 0; i < m->states.num; i++) {
    IR_PUSH(a, out.names, m->states.at[i]->name);
    IR_PUSH(a, out.values, w->states[i]);
  }
  return out;
}

typedef struct subject {
  ir_arena *arena; // of the module and the expected values
  uint64_t seed;
  const char *variant;
  test_values want;
} subject;

static void check_same(const subject *s, const char *pass, const ir_module *m) {
  ir_arena *a = ir_arena_new();
  test_values got = values_of(a, m, s->seed);
  const char *where;
  double diff = test_difference(&s->want, &got, &where);
  if (diff > tolerance)
    test_fail("seed %llu, %s, after %s: '%s' differs by %g", (unsigned long long)s->seed,
              s->variant, pass, where, diff);
  ir_arena_free(a);
}

static void check_after(void *data, const char *pass, ir_module *m) {
  if (strcmp(pass, "autodiff") != 0) // the values to compare with come from there
    check_same(data, pass, m);
}

static void check_valid(const subject *s, const char *pass, ir_arena *a, const ir_module *m) {
  ir_buf faults = ir_buf_new(a);
  if (ir_verify(m, &faults))
    test_fail("seed %llu: invalid IR after %s\n%s", (unsigned long long)s->seed, pass,
              ir_buf_str(&faults));
}

// --- every pass alone, twice -----------------------------------------------------------------
static void check_alone(const subject *s, const pass_info *p, const ir_module *expanded) {
  ir_module *m = ir_clone(expanded);
  ir_diags *d = diag_new(s->arena);
  const char *before = test_print(s->arena, m);
  bool changed = p->run(m, d);
  const char *after = test_print(s->arena, m);
  if (!changed && strcmp(before, after) != 0)
    test_fail("seed %llu: %s changed the module and says it did not", (unsigned long long)s->seed,
              p->name);
  check_valid(s, p->name, s->arena, m);
  check_same(s, p->name, m);
}

static void check_passes(subject *s, const ir_module *expanded) {
  s->variant = "alone";
  for (const pass_info *p = pass_pipeline; strcmp(p->name, "fuse") != 0; p++)
    check_alone(s, p, expanded);
}

// --- the pipeline ------------------------------------------------------------------------------
static void check_outputs_are_own(const subject *s, const ir_func *f) {
  bool *owned = IR_NEW_ARRAY(s->arena, bool, f->next_id);
  for (size_t i = 0; i < f->nodes.num + f->results.num; i++) {
    bool is_result = i >= f->nodes.num;
    if (!is_result && f->nodes.at[i]->op != IR_WRITE)
      continue;
    const ir_node *n = is_result ? f->results.at[i - f->nodes.num].node : f->nodes.at[i]->in[0];
    ir_op_class cls = ir_ops[n->op].cls;
    if (owned[n->id] || cls == IR_CLASS_LEAF || cls == IR_CLASS_VIEW)
      test_fail("seed %llu: output '%s' has no buffer of its own", (unsigned long long)s->seed,
                n->name);
    owned[n->id] = true;
  }
}

static void check_pipeline(subject *s, const ir_module *expanded) {
  size_t num = 0;
  while (strcmp(pass_pipeline[num].name, "fuse") != 0)
    num++;
  pass_info *list = IR_NEW_ARRAY(s->arena, pass_info, num + 1); // ends with {0}
  memcpy(list, pass_pipeline, num * sizeof *list);
  ir_module *m = ir_clone(expanded);
  pass_options o = {.processor = true, .after = check_after, .after_data = s};
  s->variant = "pipeline";
  if (!pass_run(list, m, diag_new(s->arena), &o))
    test_fail("seed %llu: the pipeline reports errors", (unsigned long long)s->seed);
  for (size_t i = 0; i < m->funcs.num; i++)
    check_outputs_are_own(s, m->funcs.at[i]);
}

// --- gradients -----------------------------------------------------------------------------------
typedef struct grads {
  ir_node *loss;
  IR_VEC(ir_state *) wrt;
  size_t first_result; // results [first_result ..): the gradients
} grads;

// What is trained: the last that is differentiated. Another is a part of it.
static ir_node *loss_of(const ir_func *f) {
  ir_node *loss = NULL;
  for (size_t i = 0; i < f->nodes.num; i++)
    loss = f->nodes.at[i]->op == IR_GRAD ? f->nodes.at[i]->in[0] : loss;
  return loss;
}

// Makes the gradients of parameters results, so that they can be read after autodiff.
static grads expose_gradients(ir_module *m) {
  ir_func *f = ir_find_func(m, "step");
  grads g = {.loss = loss_of(f), .first_result = f->results.num};
  for (size_t i = 0; i < f->nodes.num; i++) {
    ir_node *n = f->nodes.at[i];
    if (n->op != IR_GRAD || n->in[0] != g.loss || n->in[1]->op != IR_READ)
      continue;
    IR_PUSH(m->arena, g.wrt, n->in[1]->state);
    ir_result_add(f, ir_format(m->arena, "grad%zu", i), IR_RESULT_OUTPUT, n);
  }
  if (g.loss)
    ir_result_add(f, "the_loss", IR_RESULT_OUTPUT, g.loss);
  return g;
}

// Reverse mode times a direction is forward mode in that direction.
static void check_direction(ir_arena *a, const ir_module *m, const grads *g, uint64_t seed) {
  const ir_func *f = ir_find_func(m, "step");
  const ir_tensor_value *inputs = ir_random_inputs(a, f, seed);
  ir_world *w = ir_world_new(a, m), *again = ir_world_new(a, m);
  ir_interp(w, ir_find_func(m, "init"), NULL);
  ir_interp(again, ir_find_func(m, "init"), NULL);
  ir_tensor_value *t = IR_NEW_ARRAY(a, ir_tensor_value, m->states.num);
  uint64_t random = seed;
  for (size_t i = 0; i < g->wrt.num; i++)
    t[g->wrt.at[i]->id] = test_random_tensor(a, g->wrt.at[i]->type, &random);
  ir_tensor_value *v = ir_interp(w, f, inputs);
  ir_tensor_value *dv = ir_interp_tangent(again, f, inputs, t, NULL);
  double reverse = 0, size = 1;
  for (size_t i = 0; i < g->wrt.num; i++) {
    const ir_tensor_value *grad = &v[f->results.at[g->first_result + i].node->id];
    const ir_tensor_value *dir = &t[g->wrt.at[i]->id];
    for (int64_t k = 0; k < ir_elements(&grad->type); k++) {
      reverse += grad->at[k] * dir->at[k];
      size += fabs(grad->at[k] * dir->at[k]);
    }
  }
  double forward = dv[f->results.at[g->first_result + g->wrt.num].node->id].at[0];
  if (!(fabs(forward - reverse) <= 1e-9 * size))
    test_fail("seed %llu: reverse mode gives %.12g, forward mode %.12g", (unsigned long long)seed,
              reverse, forward);
}

typedef struct found {
  bool gradients, products; // of tables
} found;

// Before autodiff: values, and the gradients that autodiff then makes of what the pass has left.
static bool check_table_products(const subject *s, ir_module *m) {
  bool changed = pass_table_products(m, diag_new(s->arena));
  check_valid(s, "table_products", s->arena, m);
  pass_autodiff(m, diag_new(s->arena));
  check_same(s, "table_products and autodiff", m);
  return changed;
}

static found check_graph(uint64_t seed) {
  ir_arena *a = ir_arena_new();
  ir_module *m = ir_random_module(a, options_of(seed));
  grads g = expose_gradients(m);
  ir_module *picked = ir_clone(m);
  pass_autodiff(m, diag_new(a));
  subject s = {.arena = a, .seed = seed};
  check_valid(&s, "autodiff", a, m);
  if (g.loss)
    check_direction(a, m, &g, seed);
  s.want = values_of(a, m, seed);
  check_passes(&s, m);
  check_pipeline(&s, m);
  found f = {g.loss != NULL, check_table_products(&s, picked)};
  ir_arena_free(a);
  return f;
}

int main(int argc, char **argv) {
  uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
  uint64_t num = (uint64_t)test_campaign(150);
  if (argc > 2)
    num = strtoull(argv[2], NULL, 10);
  int differentiated = 0, multiplied = 0;
  for (uint64_t seed = first; seed < first + num; seed++) {
    found f = check_graph(seed);
    differentiated += f.gradients;
    multiplied += f.products;
  }
  printf("%llu random graphs, %d with gradients, %d with products of tables\n",
         (unsigned long long)num, differentiated, multiplied);
  if (argc == 1 && (uint64_t)differentiated < num / 2)
    test_fail("too few graphs have gradients");
  if (argc == 1 && num >= 100 && multiplied == 0)
    test_fail("no graph has products of tables");
  return test_report("random graphs");
}
