// support_attention_cases.c: see the header.
#include "tests/unit/support_attention_cases.h"

const attention_case attention_cases[NUM_ATTENTION_CASES] = {
    {"causal", 1, 2, 64, 64, 32, 32, .mask = CAUSAL},
    {"no mask", 1, 2, 64, 96, 64, 64, .mask = NO_MASK},
    {"tails of everything", 2, 2, 45, 70, 40, 24, .mask = NO_MASK},
    {"tails of single columns", 1, 3, 50, 67, 33, 35, .mask = CAUSAL},
    {"wide heads", 1, 4, 70, 40, 128, 128, .mask = CAUSAL},
    {"wider values", 1, 4, 40, 64, 64, 128, .mask = NO_MASK},
    {"window", 1, 2, 150, 150, 32, 32, .mask = WINDOW},
    {"window of -inf", 1, 2, 150, 150, 32, 32, .mask = WINDOW, .far = "-inf"},
    {"band up to edges of tiles", 1, 2, 200, 200, 32, 32, .mask = TO_EDGES},
    {"causal, longer rows", 1, 2, 96, 200, 32, 32, .mask = CAUSAL},
    {"rows that see nothing", 1, 2, 80, 80, 32, 32, .mask = FROM_ROW_8},
    {"rows of -inf", 1, 2, 80, 80, 32, 32, .mask = FROM_ROW_8, .far = "-inf"},
    {"causal by scores only", 1, 2, 80, 80, 32, 32, .mask = CAUSAL, .unmasked = true},
    {"mask in memory", 1, 2, 64, 66, 32, 32, .mask = FROM_MEMORY},
    {"mask of -inf in memory", 1, 2, 64, 66, 32, 32, .mask = FROM_MEMORY, .far = "-inf"},
    {"bias", 2, 2, 64, 72, 32, 32, .bias = true},
    {"bias, causal, tails", 2, 2, 50, 51, 32, 32, .mask = CAUSAL, .bias = true},
    {"dropout", 1, 2, 64, 64, 32, 32, .dropout = true},
    {"dropout, causal", 1, 2, 70, 70, 32, 32, .mask = CAUSAL, .dropout = true},
    {"grouped heads", 2, 4, 64, 64, 32, 32, .mask = CAUSAL, .groups = 2},
    {"merged heads", 2, 2, 64, 64, 32, 32, .mask = CAUSAL, .merged = true},
    {"merged heads of 20", 2, 2, 66, 66, 20, 20, .mask = CAUSAL, .merged = true},
    {"steep", 1, 2, 64, 130, 64, 64, .steep = true},
    {"narrow heads, long rows", 1, 2, 140, 140, 16, 16, .mask = CAUSAL},
    {"no maximum", 1, 2, 64, 80, 32, 32, .plain = true},
    {"no maximum, causal", 1, 2, 70, 70, 32, 32, .mask = CAUSAL, .plain = true},
    {"row sums over scores", 1, 2, 64, 80, 32, 32, .mask = CAUSAL, .keep_sums = true},
    {"rows behind all columns", 1, 4, 150, 36, 32, 32, .mask = WINDOW, .far = "-2"},
    {"forward only", 2, 2, 64, 100, 48, 40, .mask = CAUSAL, .forward = true},
};

static void put_iotas(ir_buf *b, const attention_case *c) {
  ir_buf_printf(b,
                "%%row = iota {axis=0} : i32[%d,%d]\n%%column = iota {axis=1} : i32[%d,%d]\n"
                "%%w = const {value=%d} : i32[%d,%d]\n%%low = sub %%row, %%w : i32[%d,%d]\n",
                c->m, c->n, c->m, c->n, c->mask == TO_EDGES ? 63 : 7, c->m, c->n, c->m, c->n);
  // The last diagonal that is seen is the one before the corner of a tile, whatever its size up to 64; so is
  // the first one (`low`).
  if (c->mask == TO_EDGES)
    ir_buf_printf(b,
                  "%%w2 = const {value=62} : i32[%d,%d]\n%%high = add %%row, %%w2 : i32[%d,%d]\n",
                  c->m, c->n, c->m, c->n);
}

// %see, of the scores' shape S.
static void put_mask(ir_buf *b, const attention_case *c, const char *s) {
  if (c->mask == NO_MASK)
    return;
  if (c->mask == FROM_MEMORY) {
    ir_buf_printf(b, "%%see2 = input : bool[1,1,%d,%d]\n%%see = broadcast %%see2 : bool%s\n", c->m,
                  c->n, s);
    return;
  }
  put_iotas(b, c);
  const char *dims = ir_format(b->arena, "[%d,%d]", c->m, c->n);
  if (c->mask == FROM_ROW_8) // rows before the eighth see nothing
    ir_buf_printf(b, "%%seen = le %%column, %%low : bool%s\n", dims);
  else
    ir_buf_printf(b, "%%le = le %%column, %%%s : bool%s\n", c->mask == TO_EDGES ? "high" : "row",
                  dims);
  if (c->mask == WINDOW || c->mask == TO_EDGES)
    ir_buf_printf(b, "%%gt = gt %%column, %%low : bool%s\n%%seen = and %%le, %%gt : bool%s\n", dims,
                  dims);
  const char *seen = c->mask == CAUSAL ? "le" : "seen";
  ir_buf_printf(b, "%%see2 = reshape %%%s : bool[1,1,%d,%d]\n%%see = broadcast %%see2 : bool%s\n",
                seen, c->m, c->n, s);
}

static void put_operands(ir_buf *b, const attention_case *c) {
  int h = c->heads, kv = c->groups ? h / c->groups : h;
  if (c->merged) {
    ir_buf_printf(b, "%%all = input : f32[%d,%d,%d]\n", c->batch, c->m, 3 * h * c->d);
    for (int i = 0; i < 3; i++) {
      char x = "qkv"[i];
      ir_buf_printf(b,
                    "%%%c1 = slice %%all {start=[0,0,%d], stop=[%d,%d,%d], step=[1,1,1]} : "
                    "f32[%d,%d,%d]\n"
                    "%%%c2 = reshape %%%c1 : f32[%d,%d,%d,%d]\n"
                    "%%%c = transpose %%%c2 {perm=[0,2,1,3]} : f32[%d,%d,%d,%d]\n",
                    x, i * h * c->d, c->batch, c->m, (i + 1) * h * c->d, c->batch, c->m, h * c->d,
                    x, x, c->batch, c->m, h, c->d, x, x, c->batch, h, c->m, c->d);
    }
    return;
  }
  ir_buf_printf(b, "%%q = input : f32[%d,%d,%d,%d]\n", c->batch, h, c->m, c->d);
  for (int i = 0; i < 2; i++) {
    char x = "kv"[i];
    int width = i ? c->e : c->d;
    ir_buf_printf(b, "%%%c%s = input : f32[%d,%d,%d,%d]\n", x, c->groups ? "0" : "", c->batch, kv,
                  c->n, width);
    if (c->groups)
      ir_buf_printf(b,
                    "%%%c1 = reshape %%%c0 : f32[%d,%d,1,%d,%d]\n"
                    "%%%c2 = broadcast %%%c1 : f32[%d,%d,%d,%d,%d]\n"
                    "%%%c = reshape %%%c2 : f32[%d,%d,%d,%d]\n",
                    x, x, c->batch, kv, c->n, width, x, x, c->batch, kv, c->groups, c->n, width, x,
                    x, c->batch, h, c->n, width);
  }
}

static void put_scores(ir_buf *b, const attention_case *c, const char *s) {
  const char *x = "scaled";
  ir_buf_printf(b,
                "%%s = matmul %%q, %%k {ta=false, tb=true} : f32%s\n"
                "%%c = const {value=%g} : f32%s\n%%scaled = mul %%s, %%c : f32%s\n",
                s, c->steep ? 0.75 : 0.25, s, s);
  if (c->bias) {
    ir_buf_printf(b,
                  "%%bias = input : f32[1,%d,%d,%d]\n%%bb = broadcast %%bias : f32%s\n"
                  "%%biased = add %%scaled, %%bb : f32%s\n",
                  c->heads, c->m, c->n, s, s);
    x = "biased";
  }
  put_mask(b, c, s);
  if (c->mask != NO_MASK) {
    ir_buf_printf(b, "%%far = const {value=%s} : f32%s\n%%x = select %%see, %%%s, %%far : f32%s\n",
                  c->far ? c->far : "-1e30", s, x, s);
    return;
  }
  ir_buf_printf(b, "%%one = const {value=1.5} : f32%s\n%%x = mul %%%s, %%one : f32%s\n", s, x, s);
}

static const char *put_weights(ir_buf *b, const attention_case *c, const char *s, const char *row) {
  const char *from = "x", *w = "p";
  if (!c->plain) {
    ir_buf_printf(b,
                  "%%max = reduce_max %%x {axes=[3]} : f32%s\n%%stop = stop %%max : f32%s\n"
                  "%%bm = broadcast %%stop : f32%s\n%%sub = sub %%x, %%bm : f32%s\n",
                  row, row, s, s);
    from = "sub";
  }
  ir_buf_printf(b,
                "%%exp = exp %%%s : f32%s\n%%sum = sum %%exp {axes=[3]} : f32%s\n"
                "%%bs = broadcast %%sum : f32%s\n%%p = div %%exp, %%bs : f32%s\n"
                "%%zero = const {value=0} : f32%s\n",
                from, s, row, s, s, s);
  if (c->mask != NO_MASK && !c->unmasked) {
    ir_buf_printf(b, "%%pm = select %%see, %%p, %%zero : f32%s\n", s);
    w = "pm";
  }
  if (c->dropout) {
    ir_buf_printf(b,
                  "%%seed = const {value=7} : i64[]\n%%step = const {value=3} : i64[]\n"
                  "%%u = uniform %%seed, %%step {stream=5} : f32%s\n"
                  "%%rate = const {value=0.25} : f32%s\n%%keep = ge %%u, %%rate : bool%s\n"
                  "%%left = const {value=0.75} : f32%s\n%%up = div %%%s, %%left : f32%s\n"
                  "%%pd = select %%keep, %%up, %%zero : f32%s\n",
                  s, s, s, s, w, s, s);
    w = "pd";
  }
  return w;
}

static void put_loss(ir_buf *b, const attention_case *c) {
  const char *y = ir_format(b->arena, "[%d,%d,%d,%d]", c->batch, c->heads, c->m, c->e);
  ir_buf_printf(b,
                "%%t = input : f32%s\n%%ty = mul %%y, %%t : f32%s\n"
                "%%l4 = sum %%ty {axes=[0,1,2,3]} : f32[1,1,1,1]\n%%l = reshape %%l4 : f32[]\n"
                "result loss l = %%l\n",
                y, y);
  static const char *const whole[] = {"q", "k", "v"}, *const shared[] = {"q", "k0", "v0"};
  int kv = c->groups ? c->heads / c->groups : c->heads;
  for (int i = 0; i < 3 && !c->merged; i++)
    ir_buf_printf(b, "%%d%d = grad %%l, %%%s : f32[%d,%d,%d,%d]\nresult output d%d = %%d%d\n", i,
                  c->groups ? shared[i] : whole[i], c->batch, i ? kv : c->heads, i ? c->n : c->m,
                  i == 2 ? c->e : c->d, i, i);
  if (c->merged)
    ir_buf_printf(b, "%%dall = grad %%l, %%all : f32[%d,%d,%d]\nresult output dall = %%dall\n",
                  c->batch, c->m, 3 * c->heads * c->d);
}

const char *attention_text(ir_arena *a, const attention_case *c) {
  ir_buf b = ir_buf_new(a);
  const char *s = ir_format(a, "[%d,%d,%d,%d]", c->batch, c->heads, c->m, c->n);
  const char *row = ir_format(a, "[%d,%d,%d,1]", c->batch, c->heads, c->m);
  put_operands(&b, c);
  put_scores(&b, c, s);
  const char *w = put_weights(&b, c, s, row);
  ir_buf_printf(&b, "%%y = matmul %%%s, %%v {ta=false, tb=false} : f32[%d,%d,%d,%d]\n", w, c->batch,
                c->heads, c->m, c->e);
  if (c->merged)
    ir_buf_printf(&b,
                  "%%yt = transpose %%y {perm=[0,2,1,3]} : f32[%d,%d,%d,%d]\n"
                  "%%yr = reshape %%yt : f32[%d,%d,%d]\nresult output y = %%yr\n",
                  c->batch, c->m, c->heads, c->e, c->batch, c->m, c->heads * c->e);
  else
    ir_buf_puts(&b, "result output y = %y\n");
  if (!c->forward)
    put_loss(&b, c);
  return ir_buf_str(&b);
}

static int draw(uint64_t *seed, int low, int high) {
  return (int)test_random(seed, low, high + 1);
}

const attention_case *attention_random(ir_arena *a, uint64_t seed) {
  attention_case *c = IR_NEW(a, attention_case);
  *c = (attention_case){.what = ir_format(a, "random %llu", (unsigned long long)seed),
                        .batch = draw(&seed, 1, 2),
                        .m = draw(&seed, 32, 100),
                        .n = draw(&seed, 32, 140),
                        .d = draw(&seed, 3, 70),
                        .e = draw(&seed, 1, 70),
                        .mask = (attention_mask)draw(&seed, NO_MASK, FROM_MEMORY),
                        .far = draw(&seed, 0, 1) ? "-1e30" : "-inf",
                        .groups = draw(&seed, 0, 1) * 2,
                        .bias = draw(&seed, 0, 1),
                        .dropout = draw(&seed, 0, 2) == 0,
                        .merged = draw(&seed, 0, 3) == 0,
                        .keep_sums = draw(&seed, 0, 3) == 0};
  c->heads = 4;
  if (c->merged) {
    c->n = c->m;
    c->e = c->d;
    c->groups = 0;
  }
  return c;
}

bool attention_compile(ir_module *m, const cg_target *target, const attention_case *c) {
  static const char *const sums[] = {"row_sums"};
  pass_options o = {
      .families = cg_families(target), .disabled = sums, .num_disabled = c->keep_sums};
  bool ok = pass_run_pipeline(m, diag_new(m->arena), &o);
  if (!ok)
    test_fail("%s: the pipeline fails", c->what);
  return ok;
}
