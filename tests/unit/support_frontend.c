// support_frontend.c: see support_frontend.h.
#include "support_frontend.h"

#include <stdlib.h>
#include <string.h>

const char *support_messages(ir_arena *a, const ir_diags *d) {
  char *text = NULL;
  size_t len = 0;
  FILE *f = open_memstream(&text, &len);
  diag_print(d, f, false);
  fclose(f);
  const char *copy = ir_strndup(a, text, len);
  free(text);
  return copy;
}

ir_module *support_compile_with(ir_arena *a, const char *text, const fe_options *o,
                                const char **messages) {
  ir_source *src = IR_NEW(a, ir_source);
  *src = (ir_source){"t.graph", text, strlen(text)};
  ir_diags *d = diag_new(a);
  ir_module *m = fe_compile(a, src, o, d);
  *messages = support_messages(a, d);
  return m;
}

ir_module *support_compile(ir_arena *a, const char *text, const char **messages) {
  return support_compile_with(a, text, NULL, messages);
}

ir_module *support_graph(ir_arena *a, const char *text) {
  const char *messages;
  ir_module *m = support_compile(a, text, &messages);
  if (!m) {
    printf("this text must compile:\n%s\n%s", text, messages);
    exit(1);
  }
  support_verifies(m, "a compiled graph");
  return m;
}

ir_func *support_func(const ir_module *m, const char *name) {
  ir_func *f = ir_find_func(m, name);
  if (!f) {
    printf("the module has no function '%s'\n", name);
    exit(1);
  }
  return f;
}

static ir_tensor_value counting(ir_arena *a, ir_type t, double *next, double by) {
  int64_t n = ir_elements(&t);
  ir_tensor_value v = {t, IR_NEW_ARRAY(a, double, n)};
  for (int64_t i = 0; i < n; i++, *next += by)
    v.at[i] = *next;
  return v;
}

const ir_tensor_value *support_run(ir_arena *a, ir_world *w, const ir_func *f, double first,
                                   double by, const char *result) {
  IR_VEC(ir_tensor_value) inputs = {0};
  for (size_t i = 0; i < f->nodes.num; i++)
    if (f->nodes.at[i]->op == IR_INPUT) {
      ir_tensor_value v = counting(a, f->nodes.at[i]->type, &first, by);
      IR_PUSH(a, inputs, v);
    }
  ir_tensor_value *values = ir_interp(w, f, inputs.at);
  for (size_t i = 0; i < f->results.num; i++)
    if (strcmp(f->results.at[i].name, result) == 0)
      return &values[f->results.at[i].node->id];
  printf("function '%s' has no result '%s'\n", f->name, result);
  exit(1);
}

const char *const support_layers[SUPPORT_NUM_LAYERS] = {
    "return tanh(linear(x, d))",
    "return x + linear(gelu(linear(layernorm(x), 2*d)), d)",
    "return x + dropout(linear(relu(batchnorm(linear(x, d))), d), 0.2)",
};

ir_module *support_deep(ir_arena *a, const char *layer, int rows, int layers) {
  return support_graph(a, ir_format(a,
                                    "let B = %d, L = %d\n"
                                    "block layer(x: f[b,d]) -> f[b,d] {\n"
                                    "  %s\n"
                                    "}\n"
                                    "model m(x: f32[B,16], y: f32[B,16]) {\n"
                                    "  repeat i in L { x = layer(x) }\n"
                                    "  loss mse(rmsnorm(x), y)\n"
                                    "}\n"
                                    "data { train = npy(\"x.npy\", \"y.npy\") }\n"
                                    "optim { adam(0.1), clip = 1.0 }\n"
                                    "train { steps = 1 }\n",
                                    rows, layers, layer));
}
