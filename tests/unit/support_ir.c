// support_ir.c: see support_ir.h.
#include "tests/unit/support_ir.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int num_checks, num_failed;
static bool is_finished;

// A test with failures that does not ask for its exit status must not pass.
__attribute__((destructor)) static void fail_unasked(void) {
  if (num_failed && !is_finished) {
    fflush(stdout);
    _Exit(1);
  }
}

bool support_check(bool ok, const char *file, int line, const char *cond, const char *fmt, ...) {
  num_checks++;
  if (ok)
    return true;
  num_failed++;
  if (num_failed > 20)
    return false; // the first ones say enough
  printf("%s:%d: %s: ", file, line, cond);
  va_list ap;
  va_start(ap, fmt);
  vprintf(fmt, ap);
  va_end(ap);
  printf("\n");
  return false;
}

void support_count_failure(void) {
  num_failed++;
}

int support_finish(const char *test) {
  is_finished = true;
  printf("%s: %d checks, %d failed\n", test, num_checks, num_failed);
  return num_failed ? 1 : 0;
}

static char *diag_text(ir_arena *a, const ir_diags *d) {
  char *text = NULL;
  size_t len = 0;
  FILE *f = open_memstream(&text, &len);
  if (!f)
    return ir_strdup(a, "");
  diag_print(d, f, false);
  fclose(f);
  char *copy = ir_strndup(a, text, len);
  free(text);
  return copy;
}

ir_module *support_parse(ir_arena *a, const char *text, const char **why) {
  ir_source *src = IR_NEW(a, ir_source);
  *src = (ir_source){"test.ir", ir_strdup(a, text), strlen(text)};
  ir_diags *d = diag_new(a);
  ir_module *m = ir_parse(a, src, d);
  *why = diag_text(a, d);
  return m;
}

ir_module *support_module(ir_arena *a, const char *text) {
  const char *why;
  ir_module *m = support_parse(a, text, &why);
  if (!m) {
    printf("a module of this test has errors:\n%s", why);
    exit(1);
  }
  return m;
}

ir_module *support_step(ir_arena *a, const char *body) {
  return support_module(a, ir_format(a, "mltc-ir 1\nmodule t\nfunc step {\n%s\n}\n", body));
}

const char *support_text(ir_arena *a, const ir_module *m) {
  ir_buf b = ir_buf_new(a);
  ir_print(m, &b);
  return ir_buf_str(&b);
}

bool support_verifies(const ir_module *m, const char *what) {
  ir_buf b = ir_buf_new(m->arena);
  int faults = ir_verify(m, &b);
  return CHECK(faults == 0, "%s: %d faults\n%.2000s", what, faults, ir_buf_str(&b));
}

ir_tensor_value support_value(ir_arena *a, ir_type t, const double *v) {
  ir_tensor_value x = {t, IR_NEW_ARRAY(a, double, ir_elements(&t))};
  memcpy(x.at, v, sizeof *v * (size_t)ir_elements(&t));
  return x;
}

static double distance(double a, double b) {
  if (a == b || (isnan(a) && isnan(b)))
    return 0;
  if (!isfinite(a) || !isfinite(b))
    return INFINITY;
  return fabs(a - b) / fmax(1, fmax(fabs(a), fabs(b)));
}

double support_distance(const ir_tensor_value *a, const ir_tensor_value *b) {
  double most = 0;
  if (!ir_same_type(&a->type, &b->type))
    return INFINITY;
  for (int64_t i = 0; i < ir_elements(&a->type); i++)
    most = fmax(most, distance(a->at[i], b->at[i]));
  return most;
}

ir_world *support_world(ir_arena *a, const ir_module *m) {
  ir_world *w = ir_world_new(a, m);
  const ir_func *init = ir_find_func(m, "init");
  if (init)
    ir_interp(w, init, NULL);
  return w;
}
