// test_frontend_optim.c: optimisers, schedules, clipping and accumulation of std/optim.graph
// against the formulas of PyTorch (and nanoGPT's learning rate), written out here element by
// element.
#include "passes/pass.h"
#include "support_frontend.h"

#include <math.h>
#include <string.h>

enum { STEPS = 6, NW = 6, NB = 3, N = NW + NB };

// loss = sum(w * w * x) + sum(b * x): the gradients are 2 w x and the column sums of x.
static const char frame[] = "flag lr = 0.05, total = 5\n"
                            "model m(x: f32[2,3]) {\n"
                            "  param w: f[2,3] = ones\n"
                            "  param b: f[3] = constant(0.5)\n"
                            "  loss sum(w * w * x) + sum(b * x)\n"
                            "}\n"
                            "optim { %s }\n"
                            "%s\n";

typedef struct reference {
  double p[N], m[N], v[N];
  double lr;
  int t; // steps done
} reference;

typedef void (*update_fn)(reference *r, int i, double g);

static void gradients(const reference *r, double first, double *g) {
  for (int i = 0; i < NW; i++)
    g[i] = 2 * r->p[i] * (first + i);
  for (int i = 0; i < NB; i++)
    g[NW + i] = (first + i) + (first + 3 + i);
}

static void update_sgd(reference *r, int i, double g) {
  r->p[i] -= r->lr * g;
}

static void update_momentum(reference *r, int i, double g) {
  g += 0.01 * r->p[i];
  r->m[i] = r->t ? 0.9 * r->m[i] + g : g; // torch: the first buffer is the gradient
  r->p[i] -= r->lr * r->m[i];
}

static void update_nesterov(reference *r, int i, double g) {
  r->m[i] = r->t ? 0.9 * r->m[i] + g : g;
  r->p[i] -= r->lr * (g + 0.9 * r->m[i]);
}

static void update_rmsprop(reference *r, int i, double g) {
  r->v[i] = 0.9 * r->v[i] + 0.1 * g * g;
  r->p[i] -= r->lr * g / (sqrt(r->v[i]) + 1e-8);
}

static void update_rmsprop_momentum(reference *r, int i, double g) {
  g += 0.1 * r->p[i];
  r->v[i] = 0.99 * r->v[i] + 0.01 * g * g;
  r->m[i] = 0.9 * r->m[i] + g / (sqrt(r->v[i]) + 1e-8);
  r->p[i] -= r->lr * r->m[i];
}

static void update_adagrad(reference *r, int i, double g) {
  r->v[i] += g * g;
  r->p[i] -= r->lr * g / (sqrt(r->v[i]) + 1e-10);
}

static void update_adagrad_decay(reference *r, int i, double g) {
  update_adagrad(r, i, g + 0.1 * r->p[i]);
}

static void adam_with(reference *r, int i, double g, double b1, double b2) {
  r->m[i] = b1 * r->m[i] + (1 - b1) * g;
  r->v[i] = b2 * r->v[i] + (1 - b2) * g * g;
  double c1 = 1 - pow(b1, r->t + 1), c2 = 1 - pow(b2, r->t + 1);
  r->p[i] -= r->lr / c1 * r->m[i] / (sqrt(r->v[i]) / sqrt(c2) + 1e-8);
}

static void update_adam(reference *r, int i, double g) {
  adam_with(r, i, g + 0.1 * r->p[i], 0.9, 0.999);
}

// Decay on matrices only, as char_gpt.graph writes it.
static void update_adamw(reference *r, int i, double g) {
  if (i < NW)
    r->p[i] -= r->lr * 0.1 * r->p[i];
  adam_with(r, i, g, 0.9, 0.99);
}

static double constant_rate(int t) {
  (void)t;
  return 0.05;
}

// nanoGPT's get_lr: warm-up 2, total 5, min 0.005.
static double cosine_rate(int t) {
  if (t < 2)
    return 0.05 * (t + 1) / 3;
  if (t > 5)
    return 0.005;
  return 0.005 + 0.5 * (1 + cos(M_PI * (t - 2) / 3.)) * (0.05 - 0.005);
}

static double linear_rate(int t) {
  return t < 1 ? 0.05 / 2 : t >= 5 ? 0.01 : 0.05 + (0.01 - 0.05) * (t - 1) / 4;
}

// Warm-up 3, total 3, min 0.01: nothing lies between.
static double rise_rate(int t) {
  return t < 3 ? 0.05 * (t + 1) / 4 : 0.01;
}

static double step_rate(int t) {
  return 0.05 * pow(0.5, t / 2);
}

static double milestones_rate(int t) {
  return t < 2 ? 0.05 : t < 4 ? 0.05 * 0.2 : 0.05 * 0.2 * 0.2;
}

static double exponential_rate(int t) {
  return 0.05 * pow(0.9, t);
}

// Warm-up 1, total 4, power 2, min 0.01.
static double polynomial_rate(int t) {
  return t < 1 ? 0.05 / 2 : t >= 4 ? 0.01 : 0.01 + 0.04 * pow(1 - (t - 1) / 3., 2);
}

static double inverse_root_rate(int t) {
  return t < 3 ? 0.05 * (t + 1) / 3 : 0.05 * sqrt(3. / (t + 1));
}

static double wave(double part, double min) {
  return min + 0.5 * (1 + cos(M_PI * part)) * (0.05 - min);
}

static double restarts_rate(int t) {
  return wave(t % 3 / 3., 0);
}

// Waves of 1, 2 and 4 steps down to 0.005.
static double longer_rate(int t) {
  return wave(t < 1 ? 0 : t < 3 ? (t - 1) / 2. : (t - 3) / 4., 0.005);
}

// Waves of 2, 3 and 4.5 steps.
static double uneven_rate(int t) {
  return wave(t < 2 ? t / 2. : t < 5 ? (t - 2) / 3. : (t - 5) / 4.5, 0);
}

// torch's OneCycleLR(max_lr=0.05, total_steps=6, pct_start=0.5, div_factor=10, final_div_factor=100).
static double one_cycle_rate(int t) {
  double low = 0.05 / 10, last = low / 100;
  return t <= 2 ? low + (0.05 - low) * (1 - cos(M_PI * t / 2.)) / 2
                : 0.05 + (last - 0.05) * (1 - cos(M_PI * (t - 2) / 3.)) / 2;
}

typedef struct optim_case {
  const char *optim;
  update_fn update;
  double (*rate)(int t);
  double clip;       // 0: none
  const char *train; // NULL: as it is
  int accumulate;    // micro-batches; 0: one
  int every;         // 0: an update in each step
} optim_case;

static const optim_case cases[] = {
    {.optim = "sgd(lr)", .update = update_sgd, .rate = constant_rate},
    {.optim = "sgd(lr, momentum=0.9, decay=0.01)",
     .update = update_momentum,
     .rate = constant_rate},
    {.optim = "sgd(lr, momentum=0.9, nesterov=true)",
     .update = update_nesterov,
     .rate = constant_rate},
    {.optim = "rmsprop(lr, alpha=0.9)", .update = update_rmsprop, .rate = constant_rate},
    {.optim = "rmsprop(lr, momentum=0.9, decay=0.1)",
     .update = update_rmsprop_momentum,
     .rate = constant_rate},
    {.optim = "adagrad(lr)", .update = update_adagrad, .rate = constant_rate},
    {.optim = "adagrad(lr, decay=0.1)", .update = update_adagrad_decay, .rate = constant_rate},
    {.optim = "adam(lr, decay=0.1)", .update = update_adam, .rate = constant_rate},
    {.optim = "adamw(lr, betas=(0.9, 0.99), decay=0.1 if rank >= 2)",
     .update = update_adamw,
     .rate = constant_rate},
    {.optim = "adamw(lr, betas=(0.9, 0.99), decay=0.1 if name == \"w\")",
     .update = update_adamw,
     .rate = constant_rate},
    {.optim = "sgd(lr), schedule = cosine(warmup=2, total=total, min=lr/10)",
     .update = update_sgd,
     .rate = cosine_rate},
    {.optim = "sgd(0.05), schedule = cosine(warmup=2, total=5, min=0.005)",
     .update = update_sgd,
     .rate = cosine_rate},
    {.optim = "sgd(lr), schedule = linear(warmup=1, total=5, min=0.01)",
     .update = update_sgd,
     .rate = linear_rate},
    {.optim = "sgd(lr), schedule = linear(warmup=3, total=3, min=0.01)",
     .update = update_sgd,
     .rate = rise_rate},
    {.optim = "sgd(lr), schedule = cosine(warmup=3, total=3, min=0.01)",
     .update = update_sgd,
     .rate = rise_rate},
    {.optim = "sgd(lr), schedule = step(size=2, factor=0.5)",
     .update = update_sgd,
     .rate = step_rate},
    {.optim = "sgd(lr), schedule = milestones(at=[2, 4], factor=0.2)",
     .update = update_sgd,
     .rate = milestones_rate},
    {.optim = "sgd(lr), schedule = exponential(factor=0.9)",
     .update = update_sgd,
     .rate = exponential_rate},
    {.optim = "sgd(lr), schedule = polynomial(total=4, power=2, warmup=1, min=0.01)",
     .update = update_sgd,
     .rate = polynomial_rate},
    {.optim = "sgd(lr), schedule = inverse_root(warmup=3)",
     .update = update_sgd,
     .rate = inverse_root_rate},
    {.optim = "sgd(lr), schedule = restarts(period=3)",
     .update = update_sgd,
     .rate = restarts_rate},
    {.optim = "sgd(lr), schedule = restarts(period=total - 4, longer=2, min=lr/10)",
     .update = update_sgd,
     .rate = longer_rate},
    {.optim = "sgd(lr), schedule = restarts(period=1, longer=2, min=0.005)",
     .update = update_sgd,
     .rate = longer_rate},
    {.optim = "sgd(lr), schedule = restarts(period=2, longer=1.5)",
     .update = update_sgd,
     .rate = uneven_rate},
    {.optim = "sgd(lr), schedule = one_cycle(total=6, part=0.5, start=10, end=100)",
     .update = update_sgd,
     .rate = one_cycle_rate},
    {.optim = "sgd(lr), schedule = one_cycle(total=total + 1, part=0.5, start=10, end=100)",
     .update = update_sgd,
     .rate = one_cycle_rate},
    {.optim = "sgd(lr), schedule = constant()", .update = update_sgd, .rate = constant_rate},
    {.optim = "sgd(lr), clip = 2", .update = update_sgd, .rate = constant_rate, .clip = 2},
    {.optim = "sgd(lr), clip = 1e9", .update = update_sgd, .rate = constant_rate, .clip = 1e9},
    {.optim = "sgd(lr, momentum=0.9, nesterov=true), clip = 40 * lr",
     .update = update_nesterov,
     .rate = constant_rate,
     .clip = 2,
     .train = "train { accumulate = 3, steps = 4 }",
     .accumulate = 3},
    {.optim = "adam(lr, decay=0.1), update_every = 2",
     .update = update_adam,
     .rate = constant_rate,
     .every = 2},
    {.optim = "sgd(lr, momentum=0.9, nesterov=true), schedule = step(size=2, factor=0.5), "
              "update_every = 3",
     .update = update_nesterov,
     .rate = step_rate,
     .every = 3},
};

static int batches_of(const optim_case *k) {
  return k->accumulate ? k->accumulate : 1;
}

static double global_norm(const double *g) {
  double sum = 0;
  for (int i = 0; i < N; i++)
    sum += g[i] * g[i];
  return sqrt(sum);
}

// One step of the reference over `k` micro-batches, whose inputs start at `first`, `first` + 1, ...
static double reference_step(reference *r, const optim_case *k, double first) {
  double g[N] = {0}, one[N];
  for (int b = 0; b < batches_of(k); b++) {
    gradients(r, first + b, one);
    for (int i = 0; i < N; i++)
      g[i] += one[i] / batches_of(k);
  }
  double norm = global_norm(g), scale = k->clip > 0 ? fmin(1, k->clip / (norm + 1e-6)) : 1;
  int t = r->t, every = k->every ? k->every : 1;
  r->lr = k->rate(t);
  r->t = t / every; // updates before this one
  for (int i = 0; i < N && t % every == every - 1; i++)
    k->update(r, i, g[i] * scale);
  r->t = t + 1;
  return norm;
}

static double reference_loss(const reference *r, double first) {
  double loss = 0;
  for (int i = 0; i < NW; i++)
    loss += r->p[i] * r->p[i] * (first + i) + r->p[NW + i % 3] * (first + i);
  return loss;
}

static void compare(const ir_world *w, const reference *r, const optim_case *k) {
  const double *pw = w->states[ir_find_state(w->module, "w")->id].at;
  const double *pb = w->states[ir_find_state(w->module, "b")->id].at;
  for (int i = 0; i < N; i++) {
    double have = i < NW ? pw[i] : pb[i - NW];
    CHECK(fabs(have - r->p[i]) < 1e-9 * fmax(1, fabs(r->p[i])),
          "%s: after %d steps parameter %d is %.15g, not %.15g", k->optim, r->t, i, have, r->p[i]);
  }
}

static void check_case(const optim_case *k) {
  ir_arena *a = ir_arena_new();
  ir_module *m = support_graph(a, ir_format(a, frame, k->optim, k->train ? k->train : ""));
  ir_diags *d = diag_new(a);
  pass_autodiff(m, d);
  CHECK(diag_num_errors(d) == 0, "%s: %s", k->optim, support_messages(a, d));
  ir_world *w = support_world(a, m);
  reference r = {.p = {1, 1, 1, 1, 1, 1, 0.5, 0.5, 0.5}};
  for (int t = 0; t < STEPS; t++) {
    double first = 0.1 * t, loss = 0;
    for (int b = 0; b < batches_of(k); b++)
      loss += reference_loss(&r, first + b) / batches_of(k);
    double norm = reference_step(&r, k, first);
    for (int b = 0; b + 1 < batches_of(k); b++)
      ir_interp(w, support_func(m, "accum"),
                &(ir_tensor_value){support_func(m, "accum")->nodes.at[0]->type,
                                   (double[]){first + b, first + b + 1, first + b + 2,
                                              first + b + 3, first + b + 4, first + b + 5}});
    const ir_func *step = support_func(m, "step");
    const char *result = k->clip > 0 ? "grad_norm" : "loss";
    double have = support_run(a, w, step, first + batches_of(k) - 1, 1, result)->at[0];
    double want = k->clip > 0 ? norm : loss;
    CHECK(fabs(have - want) < 1e-9 * fmax(1, fabs(want)), "%s: %s is %.15g, not %.15g", k->optim,
          result, have, want);
    compare(w, &r, k);
  }
  double steps = w->states[ir_find_state(m, "step")->id].at[0];
  CHECK(steps == (double)STEPS, "%s: the counter stands at %g", k->optim, steps);
  ir_arena_free(a);
}

// An optimiser and a schedule of the file's own; states of both kinds are made.
static void check_own(void) {
  ir_arena *a = ir_arena_new();
  ir_module *m =
      support_graph(a, "optimizer heavy(w, g, lr, mu) {\n"
                       "  state pace: like w = zeros\n"
                       "  pace <- mu * pace - lr * g\n"
                       "  w <- w + pace\n"
                       "}\n"
                       "schedule halve(lr, after) { return where(step >= after, lr / 2, lr) }\n"
                       "model m(x: f32[4]) {\n"
                       "  param w: f[4] = ones\n"
                       "  buffer seen: i64[] = 0\n"
                       "  seen <- seen + 1\n"
                       "  loss sum(w * x)\n"
                       "}\n"
                       "optim { heavy(0.1, mu=0.5), schedule = halve(after=1) }\n");
  ir_diags *d = diag_new(a);
  pass_autodiff(m, d);
  ir_world *w = support_world(a, m);
  CHECK(ir_find_state(m, "w.pace") && ir_find_state(m, "w.pace")->role == IR_ROLE_MOMENT, "moment");
  CHECK(ir_find_state(m, "seen") && ir_find_state(m, "seen")->role == IR_ROLE_BUFFER, "buffer");
  double p = 1, pace = 0;
  for (int t = 0; t < 3; t++) {
    double lr = support_run(a, w, support_func(m, "step"), 1, 0, "lr")->at[0];
    CHECK(fabs(lr - (t >= 1 ? 0.05 : 0.1)) < 1e-12, "lr %g in step %d", lr, t);
    pace = 0.5 * pace - lr;
    p += pace;
    double have = w->states[ir_find_state(m, "w")->id].at[0];
    CHECK(fabs(have - p) < 1e-12, "parameter %g, not %g", have, p);
  }
  double before = w->states[ir_find_state(m, "seen")->id].at[0];
  support_run(a, w, support_func(m, "eval"), 1, 0, "loss");
  CHECK(before == 3 && w->states[ir_find_state(m, "seen")->id].at[0] == 3,
        "step stores and eval does not: %g", before);
  ir_arena_free(a);
}

// An optimiser knows the name and the rank of what it is expanded for; a parameter of its own that is called so comes
// first.
static void check_known(void) {
  ir_arena *a = ir_arena_new();
  ir_module *m = support_graph(
      a,
      "optimizer of_kinds(w, g, lr, name) {\n"
      "  if rank == 0 { w <- w - 8 * lr * g } else { w <- w - lr * (4 if name == 3 else 0) * g }\n"
      "}\n"
      "optimizer picks(w, g, lr) {\n"
      "  if ends_with(name, \"head\") { of = 2 } else { of = rank + rank(w) }\n"
      "  w <- w - of * lr * g\n"
      "}\n"
      "model m(x: f32[1,1]) {\n"
      "  param head: f[1] = ones\n"
      "  param body: f[1,1,1] = ones\n"
      "  param other: f[1] = ones\n"
      "  param number: f[] = 1\n"
      "  loss a = sum(head) + sum(body) over head, body\n"
      "  loss b = sum(other) + number over other, number\n"
      "}\n"
      "optim a { picks(0.125) }\n"
      "optim b { of_kinds(0.125, name=3) }\n");
  ir_diags *d = diag_new(a);
  pass_autodiff(m, d);
  ir_world *w = support_world(a, m);
  support_run(a, w, support_func(m, "step"), 1, 0, "a");
  const char *names[] = {"head", "body", "other", "number"};
  const double want[] = {1 - 2 * 0.125, 1 - 6 * 0.125, 1 - 4 * 0.125, 1 - 8 * 0.125};
  for (int i = 0; i < 4; i++) {
    double have = w->states[ir_find_state(m, names[i])->id].at[0];
    CHECK(have == want[i], "%s is %g, not %g", names[i], have, want[i]);
  }
  ir_arena_free(a);
}

// The last loss after three steps of two batches each.
static double last_loss(ir_arena *a, const char *param, const char *type, const char *loss) {
  ir_module *m = support_graph(a, ir_format(a,
                                            "model m(x: f32[2,3]) {\n"
                                            "  param w: f[3] = 0.5\n"
                                            "  param %s: %s = 2\n"
                                            "  loss sum(w * x) * %s\n"
                                            "}\n"
                                            "optim { sgd(0.01, momentum=0.5), clip = 3 }\n"
                                            "train { accumulate = 2, steps = 3 }\n",
                                            param, type, loss));
  ir_diags *d = diag_new(a);
  bool fine = pass_run_pipeline(ir_clone(m), d, NULL);
  CHECK(fine, "%s: %s", loss, support_messages(a, d));
  pass_autodiff(m, d);
  ir_world *w = support_world(a, m);
  double last = 0;
  for (int t = 0; t < 3; t++) {
    const ir_func *accum = support_func(m, "accum");
    double x[6] = {t, t + 1, t + 2, t + 3, t + 4, t + 5};
    ir_interp(w, accum, &(ir_tensor_value){accum->nodes.at[0]->type, x});
    last = support_run(a, w, support_func(m, "step"), t + 2, 1, "loss")->at[0];
  }
  return last;
}

// Neither the name of a parameter nor its element type changes what is computed: the accumulators
// of the loss and of a parameter called `loss` are two, and one norm is taken over f32 and f64.
static void check_names_and_types(void) {
  ir_arena *a = ir_arena_new();
  double want = last_loss(a, "s", "f[]", "s");
  double named = last_loss(a, "loss", "f[]", "loss");
  double wide = last_loss(a, "s", "f64[]", "f32(s)");
  CHECK(want == named, "with a parameter called loss: %.17g, not %.17g", named, want);
  CHECK(want == wide, "with a parameter in f64: %.17g, not %.17g", wide, want);
  ir_arena_free(a);
}

int main(void) {
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    check_case(&cases[i]);
  check_own();
  check_known();
  check_names_and_types();
  return support_finish("frontend optimisers");
}
