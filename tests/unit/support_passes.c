// support_passes.c: see support_passes.h.
#include "support_passes.h"

#include "ir/narrow.h"
#include "tests/unit/support_ir.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int checks;

void test_fail(const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  fputs("FAIL: ", stdout);
  vprintf(fmt, ap);
  fputs("\n", stdout);
  va_end(ap);
  support_count_failure();
}

int test_report(const char *what) {
  printf("%s: %d text checks\n", what, checks);
  return support_finish(what);
}

bool test_same_text(const char *what, const char *got, const char *want) {
  checks++;
  if (strcmp(got, want) == 0)
    return true;
  test_fail("%s\n--- got\n%s--- want\n%s", what, got, want);
  return false;
}

// --- modules -----------------------------------------------------------------------------
ir_module *test_parse(ir_arena *a, const char *text) {
  ir_source *src = IR_NEW(a, ir_source);
  *src = (ir_source){.path = "test.ir", .text = text, .len = strlen(text)};
  ir_diags *d = diag_new(a);
  ir_module *m = ir_parse(a, src, d);
  if (m)
    return m;
  printf("the test's own text has errors:\n%s\n", text);
  diag_print(d, stdout, false);
  exit(1);
}

ir_module *test_module(ir_arena *a, const char *states, const char *body) {
  return test_parse(
      a, ir_format(a, "mltc-ir 1\nmodule t\n%s\nfunc f {\n%s\n}\n", states ? states : "", body));
}

const char *test_print(ir_arena *a, const ir_module *m) {
  ir_buf b = ir_buf_new(a);
  ir_print(m, &b);
  return ir_buf_str(&b);
}

// --- values --------------------------------------------------------------------------------
double test_random(uint64_t *seed, double lo, double hi) {
  *seed += 0x9e3779b97f4a7c15u; // splitmix64
  uint64_t z = *seed;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return lo + (hi - lo) * (double)(z >> 11) * 0x1p-53;
}

int test_below(uint64_t *seed, int n) {
  *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (int)((*seed >> 33) % (uint64_t)n);
}

int test_occurrences(const char *text, const char *word) {
  int n = 0;
  for (; (text = strstr(text, word)); text++)
    n++;
  return n;
}

ir_tensor_value test_random_tensor(ir_arena *a, ir_type type, uint64_t *seed) {
  ir_tensor_value v = {type, IR_NEW_ARRAY(a, double, ir_elements(&type))};
  for (int64_t i = 0; i < ir_elements(&type); i++) {
    if (ir_is_float(type.dtype))
      v.at[i] = ir_narrow(type.dtype, test_random(seed, -2, 2));
    else
      v.at[i] = floor(test_random(seed, 0, type.dtype == IR_BOOL ? 2 : 4));
  }
  return v;
}

void test_random_states(ir_world *w, uint64_t *seed) {
  for (size_t i = 0; i < w->module->states.num; i++) {
    const ir_state *s = w->module->states.at[i];
    if (s->role != IR_ROLE_FLAG && s->role != IR_ROLE_SEED && s->role != IR_ROLE_COUNTER)
      w->states[i] = test_random_tensor(w->arena, s->type, seed);
  }
}

ir_tensor_value *test_random_inputs(ir_arena *a, const ir_func *f, uint64_t *seed) {
  IR_VEC(ir_tensor_value) in = {0};
  for (size_t i = 0; i < f->nodes.num; i++)
    if (f->nodes.at[i]->op == IR_INPUT)
      IR_PUSH(a, in, test_random_tensor(a, f->nodes.at[i]->type, seed));
  return in.at;
}

test_values test_run(ir_arena *a, const ir_module *m, const char *func, uint64_t seed) {
  const ir_func *f = ir_find_func(m, func);
  ir_world *w = ir_world_new(a, m);
  test_random_states(w, &seed);
  ir_tensor_value *nodes = ir_interp(w, f, test_random_inputs(a, f, &seed));
  test_values out = {.module = m};
  for (size_t i = 0; i < f->results.num; i++) {
    IR_PUSH(a, out.names, ir_format(a, "result %s", f->results.at[i].name));
    IR_PUSH(a, out.values, nodes[f->results.at[i].node->id]);
  }
  for (size_t i = 0; i < m->states.num; i++) {
    IR_PUSH(a, out.names, ir_format(a, "state %s", m->states.at[i]->name));
    IR_PUSH(a, out.values, w->states[i]);
  }
  return out;
}

static double element_difference(double x, double y) {
  if ((isnan(x) && isnan(y)) || x == y)
    return 0;
  double d = fabs(x - y) / fmax(1, fmax(fabs(x), fabs(y)));
  return isnan(d) ? INFINITY : d;
}

double test_difference(const test_values *x, const test_values *y, const char **where) {
  double worst = 0;
  *where = "";
  if (x->names.num != y->names.num)
    return *where = "number of results", INFINITY;
  for (size_t i = 0; i < x->names.num; i++) {
    const ir_tensor_value *u = &x->values.at[i], *v = &y->values.at[i];
    if (strcmp(x->names.at[i], y->names.at[i]) != 0 || !ir_same_type(&u->type, &v->type))
      return *where = x->names.at[i], INFINITY;
    for (int64_t k = 0; k < ir_elements(&u->type); k++) {
      double d = element_difference(u->at[k], v->at[k]);
      if (d > worst) {
        worst = d;
        *where = x->names.at[i];
      }
    }
  }
  return worst;
}

// --- cases
// Gradients are compared, too: those of what the pass has left.
static void check_values(ir_arena *a, const test_pass_case *c, ir_module *after) {
  ir_module *before = test_module(a, c->states, c->before);
  pass_autodiff(before, diag_new(a));
  pass_autodiff(after, diag_new(a));
  test_values x = test_run(a, before, "f", 11);
  test_values y = test_run(a, after, "f", 11);
  const char *where;
  double diff = test_difference(&x, &y, &where);
  if (diff > 1e-11)
    test_fail("%s: %s differs by %g", c->what, where, diff);
}

void test_check_pass(const test_pass_case *c) {
  ir_arena *a = ir_arena_new();
  ir_module *m = test_module(a, c->states, c->before);
  bool changed = c->pass(m, diag_new(a));
  if (changed != (c->after != NULL))
    test_fail("%s: the pass says that it changed %s", c->what, changed ? "something" : "nothing");
  ir_buf faults = ir_buf_new(a);
  if (ir_verify(m, &faults))
    test_fail("%s: invalid IR\n%s", c->what, ir_buf_str(&faults));
  ir_module *want = test_module(a, c->states, c->after ? c->after : c->before);
  test_same_text(c->what, test_print(a, m), test_print(a, want));
  check_values(a, c, m);
  ir_arena_free(a);
}
