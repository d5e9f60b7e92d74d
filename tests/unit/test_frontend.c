// test_frontend.c: what a graph becomes: functions, names of parameters, states, results, settings;
// the canonical source; and files made to break the compiler.
#include "support_frontend.h"

#include <string.h>

static void check_has(ir_arena *a, const ir_module *m, const char *line) {
  const char *text = support_text(a, m);
  CHECK(strstr(text, line), "no '%s' in\n%s", line, text);
}

static void check_module(void) {
  ir_arena *a = ir_arena_new();
  ir_module *m = support_graph(
      a,
      "let B = 8, L = 2\n"
      "flag lr = 0.1, steps = 100\n"
      "block layer(x: f[b,c]) -> f[b,c] { return x + relu(linear(linear(x, 2*c), c)) }\n"
      "model net(x: f32[B,4], label: u8[B]) {\n"
      "  frozen scale: f[4] = ones\n"
      "  buffer seen: i64[] = 0\n"
      "  seen <- seen + 1\n"
      "  h = x * scale\n"
      "  repeat i in L {\n"
      "    param gain: f[4] = ones\n"
      "    h = layer(h) * gain\n"
      "  }\n"
      "  h = layer(h)\n"
      "  logits = linear(h, 3, bias=false) as head\n"
      "  loss cross_entropy(logits, label)\n"
      "  metric accuracy = mean(argmax(logits, axis=-1) == label)\n"
      "}\n"
      "data {\n"
      "  train = csv(\"a.csv\", label=last, range=0%..90%, header=true)\n"
      "  val = tokens(\"b.bin\", window=2*L, dtype=u16)\n"
      "}\n"
      "optim { sgd(lr, momentum=0.9), clip = 1.0, schedule = linear(total=steps) }\n"
      "train { steps = steps, seed = 7, shuffle = false, eval = val every 2e1, save every epoch,\n"
      "        accumulate = 2 }\n");
  static const char *const lines[] = {
      "state seed : i64[] role=seed value=7",
      "state lr : f32[] role=flag value=0.1",
      "state steps : i64[] role=flag value=",
      "state scale : f32[4] role=frozen",
      "state seen : i64[] role=buffer",
      "state gain.0 : f32[4] role=param",
      "state gain.1 : f32[4] role=param",
      "state layer.0.linear.w : f32[4,8] role=param",
      "state layer.1.linear_2.b : f32[4] role=param",
      "state layer_2.linear.w : f32[4,8] role=param",
      "state head.w : f32[4,3] role=param",
      "state head.w.m : f32[4,3] role=moment",
      "state head.w.acc : f32[4,3] role=accum",
      "state loss.acc : f32[] role=accum",
      "range_lo=0, range_hi=0.9",
      "label=\"last\"",
      "header=1",
      "data val = tokens(\"b.bin\") {window=4, dtype=\"u16\"}",
      "config steps = $steps",
      "config seed = 7",
      "config shuffle = 0",
      "config eval = \"val\"",
      "config eval_every = 20",
      "config save_every = 0",
      "config accumulate = 2",
      "result metric grad_norm = %grad_norm",
      "result metric lr = %lr.now",
      "result output logits = %logits",
  };
  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
    check_has(a, m, lines[i]);
  static const char *const order[] = {"init", "step", "accum", "eval", "predict"};
  CHECK(m->funcs.num == 5, "%zu functions", m->funcs.num);
  for (size_t i = 0; i < 5 && i < m->funcs.num; i++)
    CHECK(!strcmp(m->funcs.at[i]->name, order[i]), "function %zu is %s", i, m->funcs.at[i]->name);
  CHECK(!ir_find_state(m, "head.b"), "bias=false leaves the bias out");
  CHECK(!ir_find_state(m, "scale.m"), "a frozen parameter has no moment");
  ir_arena_free(a);
}

static size_t count_op(const ir_func *f, ir_op op) {
  size_t n = 0;
  for (size_t i = 0; i < f->nodes.num; i++)
    n += f->nodes.at[i]->op == op;
  return n;
}

// A batch has the same inputs in every function; predict has nothing that it does not need.
static void check_predict(void) {
  ir_arena *a = ir_arena_new();
  ir_module *m = support_graph(a, "model m(x: f32[4,2], y: f32[4,1]) {\n"
                                  "  param unused: f[3] = ones\n"
                                  "  p = linear(x, 1)\n"
                                  "  loss mse(p, y) + 0 * sum(unused)\n"
                                  "  output twice = 2 * p\n"
                                  "}\noptim { sgd(0.1) }\n");
  const ir_func *f = support_func(m, "predict");
  CHECK(count_op(f, IR_INPUT) == 2, "%zu inputs", count_op(f, IR_INPUT));
  CHECK(count_op(f, IR_READ) == 2, "%zu reads", count_op(f, IR_READ));
  CHECK(f->results.num == 1 && !strcmp(f->results.at[0].name, "twice"), "the output is `twice`");
  CHECK(count_op(support_func(m, "eval"), IR_WRITE) == 0, "eval writes nothing");
  CHECK(count_op(support_func(m, "step"), IR_GRAD) == 3, "a gradient for each parameter");
  ir_arena_free(a);
}

// Nodes carry the place in the file, also those that standard blocks make.
static void check_places(void) {
  ir_arena *a = ir_arena_new();
  ir_module *m = support_graph(a, "model m(x: f32[4,2]) {\n  h = linear(x, 3)\n  loss mean(h)\n}\n"
                                  "optim { sgd(0.1) }\n");
  const ir_node *h = ir_map_get(support_func(m, "step")->names, "h");
  CHECK(h && h->loc.line == 2 && h->loc.col == 7, "h is at %u:%u", h ? h->loc.line : 0,
        h ? h->loc.col : 0);
  ir_arena_free(a);
}

// --- canonical source ----------------------------------------------------------------------------
static const char *reprint(ir_arena *a, const char *text) {
  ir_source *src = IR_NEW(a, ir_source);
  *src = (ir_source){"t.graph", text, strlen(text)};
  ir_diags *d = diag_new(a);
  const ast_file *f = fe_parse(a, src, d);
  CHECK(diag_num_errors(d) == 0, "%s", support_messages(a, d));
  ir_buf b = ir_buf_new(a);
  ast_print(f, &b);
  return ir_buf_str(&b);
}

static void check_expressions(void) {
  static const struct {
    const char *in, *out;
  } cases[] = {{"(a + b) * c", "(a + b) * c"},
               {"a + (b * c)", "a + b * c"},
               {"a - (b - c)", "a - (b - c)"},
               {"(a - b) - c", "a - b - c"},
               {"-(a ** b)", "-a ** b"},
               {"(-a) ** -b", "(-a) ** -b"},
               {"(a ** b) ** c", "(a ** b) ** c"},
               {"a ** (b ** c)", "a ** b ** c"},
               {"not (a and b) or c", "not (a and b) or c"},
               {"(not a) and b", "not a and b"},
               {"(a if b else c) + 1", "(a if b else c) + 1"},
               {"a if b else (c if d)", "a if b else c if d"},
               {"(a @ b)^T[0]", "(a @ b)^T[0]"},
               {"x[ : , 1:,:2, ::3, ..., -1]", "x[:, 1:, :2, ::3, ..., -1]"},
               {"f( a , b=1 ) as q", "f(a, b=1) as q"},
               {"(a,)", "(a,)"},
               {"[..., 1.]", "[..., 1.0]"},
               {"a <-b", "a < -b"},
               {"7%3", "7 % 3"},
               {"f(90%)", "f(90%)"},
               {"\"a\\\"b\\n\"", "\"a\\\"b\\n\""}};
  ir_arena *a = ir_arena_new();
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const char *got = reprint(a, ir_format(a, "let v = %s\n", cases[i].in));
    CHECK(!strcmp(got, ir_format(a, "let v = %s\n", cases[i].out)), "'%s' prints as %s",
          cases[i].in, got);
  }
  ir_arena_free(a);
}

// The module without places, which differ between a file and its canonical form.
static const char *no_places(ir_arena *a, ir_module *m) {
  for (size_t i = 0; i < m->states.num; i++)
    m->states.at[i]->loc = (ir_loc){0};
  for (size_t i = 0; i < m->data.num; i++)
    m->data.at[i]->loc = (ir_loc){0};
  for (size_t i = 0; i < m->funcs.num; i++)
    for (size_t k = 0; k < m->funcs.at[i]->nodes.num; k++)
      m->funcs.at[i]->nodes.at[k]->loc = (ir_loc){0};
  return support_text(a, m);
}

static void check_file(const char *path) {
  ir_arena *a = ir_arena_new();
  size_t len;
  const char *text = ir_read_file(a, path, &len);
  CHECK(text, "%s cannot be read", path);
  if (text) {
    const char *once = reprint(a, text);
    CHECK(!strcmp(once, reprint(a, once)), "%s does not print the same twice", path);
    if (strstr(path, "examples/")) // the canonical source means the same
      CHECK(!strcmp(no_places(a, support_graph(a, text)), no_places(a, support_graph(a, once))),
            "%s means something else when printed", path);
  }
  ir_arena_free(a);
}

// --- files made to break things ------------------------------------------------------------------
static char *many(ir_arena *a, const char *before, const char *part, int n, const char *after) {
  ir_buf b = ir_buf_new(a);
  ir_buf_puts(&b, before);
  for (int i = 0; i < n; i++)
    ir_buf_puts(&b, part);
  ir_buf_puts(&b, after);
  return ir_strdup(a, ir_buf_str(&b));
}

static void check_hostile(const char *what, const char *text, const char *code) {
  ir_arena *a = ir_arena_new();
  const char *messages;
  ir_module *m = support_compile(a, text, &messages);
  CHECK(!m && strstr(messages, code), "%s: no %s in\n%.2000s", what, code, messages);
  ir_arena_free(a);
}

#define OPEN  "model m(x: f32[4,4]) {\n"
#define CLOSE "\nloss mean(x)\n}\noptim { sgd(0.1) }\n"

// What docs/language.md allows: 200 levels, of which the model and its file take some.
static void check_deep(void) {
  ir_arena *a = ir_arena_new();
  const char *messages;
  const char *text =
      ir_format(a, "%s%s%s", many(a, OPEN "a = ", "(", 190, "x"), many(a, "", ")", 190, ""), CLOSE);
  CHECK(support_compile(a, text, &messages), "190 parentheses:\n%s", messages);
  text = many(a, OPEN "a = [", "-1 ** 2, 1 if not false else (2), ", 210, "0][0] * x" CLOSE);
  CHECK(support_compile(a, text, &messages), "210 side by side:\n%.2000s", messages);
  ir_arena_free(a);
}

// Warnings do not stop anything; each is said once, though a model is walked several times.
static void check_warnings(void) {
  ir_arena *a = ir_arena_new();
  const char *messages;
  ir_module *m =
      support_compile(a, OPEN "output all = sum(x)\noutput each = x[:, 0]" CLOSE, &messages);
  const char *first = strstr(messages, "t.graph:2:8: warning[W0221]: output 'all'");
  CHECK(m && first && !strstr(strchr(first, '\n'), "W0221"), "one warning:\n%s", messages);
  ir_arena_free(a);
}

static void check_all_hostile(void) {
  ir_arena *a = ir_arena_new();
  enum { MANY = 20000 };
  check_hostile("parentheses", many(a, OPEN "a = ", "(", MANY, CLOSE), "E0005");
  check_hostile("brackets", many(a, OPEN "a = ", "[", MANY, CLOSE), "E0005");
  check_hostile("minus", many(a, OPEN "a = ", "-", MANY, "x" CLOSE), "E0005");
  check_hostile("not", many(a, OPEN "a = ", "not ", MANY, "x" CLOSE), "E0005");
  check_hostile("a long sum", many(a, OPEN "a = x", " + x", MANY, CLOSE), "E0005");
  check_hostile("powers", many(a, OPEN "a = x", " ** 2", MANY, CLOSE), "E0005");
  check_hostile("transposes", many(a, OPEN "a = x", "^T", MANY, CLOSE), "E0005");
  check_hostile("conditions", many(a, OPEN "a = x", " if true else x", MANY, CLOSE), "E0005");
  check_hostile("nested ifs", many(a, OPEN, "if true {", MANY, CLOSE), "E0005");
  check_hostile("else ifs", many(a, OPEN "if false { }", " else if false { }", MANY, CLOSE),
                "E0005");
  check_hostile("types", many(a, "block b(x: f[", "(", MANY, "]) { }\n"), "E0005");
  check_hostile("loops", OPEN "repeat 99999 { repeat 99999 { repeat 99999 { } } }" CLOSE, "E0210");
  check_hostile("a closing brace", "}\n" OPEN CLOSE, "E0004");
  check_hostile("nothing", "", "E0216");
  check_hostile("spaces", " \n\t\n# only a comment", "E0216");
  check_hostile("open block", "block a(x) {", "E0004");
  check_hostile("open model", "model", "E0004");
  check_hostile("bytes", "\xff\xfe\x80 let", "E0001");
  ir_buf chain = ir_buf_new(a);
  ir_buf_puts(&chain, "block b0(x) { return x }\n");
  for (int i = 1; i < 60; i++) // each doubles the work of the one before
    ir_buf_printf(&chain, "block b%d(x) {\n y = b%d(x)\n return b%d(y)\n}\n", i, i - 1, i - 1);
  ir_buf_puts(&chain, OPEN "a = b59(x)" CLOSE);
  check_hostile("2^60 calls", ir_buf_str(&chain), "E0210");
  ir_arena_free(a);
}

int main(void) {
  check_module();
  check_predict();
  check_places();
  check_expressions();
  check_file("examples/mnist_mlp.graph");
  check_file("examples/char_gpt.graph");
  check_file("examples/digits_mlp.graph");
  check_file("frontend/std/nn.graph");
  check_file("frontend/std/arrays.graph");
  check_file("frontend/std/augment.graph");
  check_file("frontend/std/experts.graph");
  check_file("frontend/std/graphs.graph");
  check_file("frontend/std/images.graph");
  check_file("frontend/std/init.graph");
  check_file("frontend/std/losses.graph");
  check_file("frontend/std/optim.graph");
  check_file("frontend/std/transformers.graph");
  check_file("frontend/std/sequences.graph");
  check_file("frontend/std/recommend.graph");
  check_all_hostile();
  check_deep();
  check_warnings();
  return support_finish("frontend");
}
