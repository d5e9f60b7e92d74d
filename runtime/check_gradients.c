// check_gradients.c: the gradients that the program computes, against finite differences of its
// loss.
//
// Both sides run in double precision, by the plain versions of the step's own kernels
// (check_plain.h), which the first part of `check` compares with the fast ones. For a parameter w
// with gradient g and some directions d (two dense random ones, the element with the largest
// gradient, a random element)
//
//   D = (loss(w + s d) - loss(w - s d)) / 2s      must be      G = g . d
//
// Error: |D - G| / (|g o d| + noise / TOLERANCE), where |g o d| is what G would typically be if the
// signs of d were drawn, and noise = 64 * 2^-52 * |loss| / s bounds the rounding of D (losses sum
// some thousand terms). So it is a relative error, except for gradients too small to be seen in the
// loss at all. Truncation is of order s^2: 1e-8 for s of 1e-4 of the parameter's size, with both
// signs of d used.
//
// Where terms cancel, the loss is small and what it is made of is not: 3d - (3d / e) * e is 0, or what rounding left of
// 3d. So where a comparison fails, both sides are computed in two other rounding modes, up and down. What that
// changes, MLRT_ROUNDING_SAFETY times, is as much as they need not agree on: a gradient that is wrong is as wrong in all modes.
//
// What has no derivative does not disturb: comparisons, floor, argmax and the like keep their
// values of the point itself (mlrt_hold), so that relu is the line that it is at the point, not its
// kink; max, min and abs keep their choices; random numbers depend on seed and step alone. Rounding
// and curvature ask for different steps: several are tried, also extrapolated from two (Richardson), which
// leaves truncation of order s^4, and the smallest error counts. A wrong gradient is wrong for all of them.
// Steps so short that rounding would hide a gradient of the usual size are for one that is far larger than the loss, as
// where a loss goes up and down many times within a longer step; there the rounding of w + s d counts, too, and G is
// taken along what w has moved by.
//
// Of several losses each has parameters of its own, and the gradient must be that of one: of those
// that change with the parameter, the one that it fits best.
//
// The point: parameters after `init`, moved by some random numbers (a fresh network has ties and
// zeros that a trained one has not), one random batch.
#include "runtime/check_plain.h"
#include "runtime/commands.h"
#include "runtime/number_io.h"
#include "runtime/random.h"
#include "runtime/recipe.h"

#include <fenv.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TOLERANCE 1e-6
// In all of a parameter's directions together, over all parameters; some ten seconds.
#define MAX_FLOPS 1e11
enum { DENSE = 2, DIRECTIONS = 4 };

typedef struct slope { // along one direction
  double error, gradient, differences;
  bool moves; // the loss, along this direction or another one
} slope;

typedef struct verdict {
  slope worst;
  bool known; // which node is the gradient
} verdict;

typedef struct gradients {
  const mlrt_program *program;
  mlrt_plain_point point;
  int directions;
  double batches;    // per step: the step's loss is their mean, the gradient that of its own batch
  verdict *verdicts; // by state
  bool *open;        // by state: it has failed, and is judged again
  bool rounded;      // by then `again` is there
  mlrt_plain_point again[MLRT_ROUNDINGS];
} gradients;

// What is to be the gradient of a parameter.
typedef struct claim {
  const double *elements;
  const double
      *again[MLRT_ROUNDINGS]; // in the other rounding modes; NULL: not known, or not rounded at all
} claim;

static void *take(int64_t n, size_t size) {
  void *p = calloc(n > 0 ? (size_t)n : 1, size);
  if (!p)
    mlrt_fail(MLRT_EXIT_MEMORY, "out of memory in check");
  return p;
}

static bool is_trained(const mlrt_tensor *s) {
  return s->role == MLRT_PARAM && (s->dtype == MLRT_F32 || s->dtype == MLRT_F64);
}

static int64_t elements_of(const mlrt_tensor *s) {
  return s->bytes / mlrt_dtype_bytes(s->dtype);
}

static double root_mean_square(const double *w, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++)
    sum += w[i] * w[i];
  return n > 0 ? sqrt(sum / (double)n) : 0;
}

// --- the point ---------------------------------------------------------------------------------
static void fill_batch(const mlrt_program *p, char *arena, bool positive) {
  for (int i = 0; i < p->num_inputs; i++) {
    const mlrt_input *in = &p->inputs[i];
    mlrt_random r = {.seed = 7000 + (uint64_t)i, .positive = positive};
    mlrt_random_fill(&r, arena + in->offset, in->bytes, in->dtype, in->limit);
  }
}

static void move_params(const mlrt_program *p, char *arena) {
  for (int i = 0; i < p->num_states; i++) {
    const mlrt_tensor *s = &p->states[i];
    if (!is_trained(s))
      continue;
    int64_t n = elements_of(s);
    double *w = take(n, sizeof *w), *by = take(n, sizeof *by);
    char *at = arena + s->offset;
    for (int64_t k = 0; k < n; k++)
      w[k] = mlrt_load(at + k * mlrt_dtype_bytes(s->dtype), s->dtype);
    mlrt_random r = {.seed = 8000 + (uint64_t)i};
    mlrt_random_fill(&r, (char *)by, n * (int64_t)sizeof *by, MLRT_F64, 0);
    double size = 0.1 * root_mean_square(w, n) + 0.01;
    for (int64_t k = 0; k < n; k++)
      mlrt_store(at + k * mlrt_dtype_bytes(s->dtype), s->dtype, w[k] + size * by[k]);
    free(w);
    free(by);
  }
}

// False when the loss is no number: a logarithm of random numbers, say.
static bool open_point(gradients *g, mlrt_trainer *t) {
  const mlrt_program *p = g->program;
  char *arena = take(p->state_bytes + p->staging_bytes, 1); // its part that is not temporary
  mlrt_trainer_init(t, 1);
  mlrt_device_get(&t->device, 0, arena, p->state_bytes);
  move_params(p, arena);
  bool finite = false;
  for (int positive = 0; positive < 2 && !finite; positive++) {
    fill_batch(p, arena, positive);
    g->point = mlrt_plain_open(p, arena);
    finite = true;
    for (int i = 0; i < p->plain_step->num_losses; i++)
      finite = finite && isfinite(g->point.loss[i]);
    if (!finite)
      mlrt_plain_close(&g->point);
  }
  free(arena);
  return finite;
}

// --- one direction -----------------------------------------------------------------------------
// All elements, the element where the gradient is largest, or any element.
static void choose_direction(double *d, int number, const double *gradient, int64_t n, int state) {
  mlrt_random r = {.seed = 9000 + (uint64_t)(state * DIRECTIONS + number)};
  if (number < DENSE) {
    mlrt_random_fill(&r, (char *)d, n * (int64_t)sizeof *d, MLRT_F64, 0);
    return;
  }
  int64_t at = (int64_t)(mlrt_random_bits(r.seed, 0) % (uint64_t)n);
  for (int64_t i = 0; number == DENSE && i < n; i++)
    at = fabs(gradient[i]) > fabs(gradient[at]) ? i : at;
  memset(d, 0, (size_t)n * sizeof *d);
  d[at] = 1;
}

static const double *move(const mlrt_plain_probe *x, int buffer, const double *d, double step,
                          double *moved, int64_t n) {
  const double *w = (const double *)(const void *)x->at->buffer[buffer];
  for (int64_t i = 0; i < n; i++)
    moved[i] = w[i] + step * d[i];
  return moved;
}

// How far that loss is from `near` in the other rounding modes.
static double loss_blur(mlrt_plain_probe *x, int loss, int buffer, const double *moved,
                        double near) {
  double blur = 0;
  for (int i = 0; i < MLRT_ROUNDINGS; i++) {
    int before = mlrt_round_otherwise(i);
    double other = mlrt_plain_loss(x, loss, buffer, moved);
    fesetround(before);
    blur = fmax(blur, fabs(other - near));
  }
  return blur;
}

// What the gradient is compared with: `d` has been chosen.
typedef struct direction {
  double along, squares, length; // g . d, |g o d|^2, |d|^2
  double blur;                   // of g . d, by rounding
} direction;

static double element_blur(const claim *g, int64_t i) {
  double blur = 0;
  for (int m = 0; m < MLRT_ROUNDINGS; m++)
    if (g->again[m])
      blur = fmax(blur, fabs(g->again[m][i] - g->elements[i]));
  return blur;
}

static direction measure(const claim *g, const double *d, int64_t n) {
  direction x = {0};
  for (int64_t i = 0; i < n; i++) {
    double part = g->elements[i] * d[i];
    x.along += part;
    x.squares += part * part;
    x.length += d[i] * d[i];
    x.blur += element_blur(g, i) * fabs(d[i]);
  }
  return x;
}

static void keep_better(slope *best, const direction *x, double differences, double noise) {
  double error = fabs(differences - x->along) / (sqrt(x->squares) + noise / TOLERANCE);
  if (error < best->error || isnan(best->differences))
    *best = (slope){isnan(error) ? INFINITY : error, x->along, differences, differences != 0};
}

// The change of the loss along d, from `step` behind the point to `step` ahead of it; adds to *blur.
static double change(const gradients *g, mlrt_plain_probe *p, int loss, int buffer, const double *d,
                     double step, double *moved, int64_t n, double *blur) {
  double at[2];
  for (int i = 0; i < 2; i++) {
    move(p, buffer, d, i ? -step : step, moved, n);
    at[i] = mlrt_plain_loss(p, loss, buffer, moved);
    if (g->rounded)
      *blur = fmax(*blur, loss_blur(p, loss, buffer, moved, at[i]));
  }
  return at[0] - at[1];
}

// What rounding at `step` may be of a gradient as large as this.
static double usual_noise(const gradients *g, int loss, double step) {
  return g->batches * 64 * DBL_EPSILON * fabs(g->point.loss[loss]) / step;
}

// By how much g . d is another along what w moves by, which `step` d is rounded to.
static double rounded_away(const claim *g, const double *w, const double *d, double step,
                           int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++)
    sum += g->elements[i] * (((w[i] + step * d[i]) - (w[i] - step * d[i])) / (2 * step) - d[i]);
  return sum;
}

static slope compare(const gradients *g, mlrt_plain_probe *p, int loss, int buffer,
                     const claim *gradient, const double *d, int64_t n) {
  enum { SIZES = 10, USUAL = 4 };
  static const double sizes[SIZES] = {1e-4, 1e-3, 1e-5,  1e-6,  1e-7,
                                      1e-8, 1e-9, 1e-10, 1e-11, 1e-12};
  // With each size, sizes tried by then of which one is ten times the other.
  static const struct {
    int narrow, wide;
  } pairs[SIZES] = {{0, -1}, {0, 1}, {2, 0}, {3, 2}, {4, 3},
                    {5, 4},  {6, 5}, {7, 6}, {8, 7}, {9, 8}};
  direction x = measure(gradient, d, n);
  if (buffer < 0) // the loss does not depend on it
    return (slope){x.squares == 0 ? 0 : INFINITY, x.along, 0, false};
  double *moved = take(n, sizeof *moved), found[SIZES], noise[SIZES];
  // One element may go further than all together.
  const double *w = (const double *)(const void *)p->at->buffer[buffer];
  double size = root_mean_square(w, n) * sqrt(fmin((double)n / x.length, 1e4));
  slope best = {INFINITY, x.along, NAN, false};
  for (int i = 0; i < SIZES && !(best.error <= TOLERANCE); i++) {
    double step = sizes[i] * size;
    double blur = 0, usual = usual_noise(g, loss, step);
    if (i >= USUAL && !(usual <= TOLERANCE * sqrt(x.squares)))
      break;
    found[i] = g->batches * change(g, p, loss, buffer, d, step, moved, n, &blur) / (2 * step) -
               rounded_away(gradient, w, d, step, n);
    noise[i] = usual + MLRT_ROUNDING_SAFETY * (g->batches * blur / step + x.blur) + DBL_MIN;
    keep_better(&best, &x, found[i], noise[i]);
    int narrow = pairs[i].narrow, wide = pairs[i].wide;
    if (wide >= 0)
      keep_better(&best, &x, (100 * found[narrow] - found[wide]) / 99, noise[narrow]);
  }
  free(moved);
  return best;
}

// The worst of all directions.
static slope compare_with(const gradients *g, mlrt_plain_probe *x, int loss, int state,
                          const claim *gradient) {
  int64_t n = elements_of(&g->program->states[state]);
  int buffer = mlrt_plain_state(g->point.step, state);
  double *d = take(n, sizeof *d);
  slope worst = {0, 0, 0, false};
  for (int i = 0; n > 0 && i < g->directions; i++) {
    choose_direction(d, i, gradient->elements, n, state);
    slope found = compare(g, x, loss, buffer, gradient, d, n);
    bool moves = worst.moves || found.moves;
    if (found.error >= worst.error)
      worst = found;
    worst.moves = moves;
  }
  free(d);
  return worst;
}

// With the loss that it fits best, of those that change with the parameter when any does.
static slope compare_all(const gradients *g, mlrt_plain_probe *x, int state,
                         const claim *gradient) {
  slope best = compare_with(g, x, 0, state, gradient);
  for (int i = 1; i < g->point.step->num_losses; i++) {
    slope found = compare_with(g, x, i, state, gradient);
    if (found.moves > best.moves || (found.moves == best.moves && found.error < best.error))
      best = found;
  }
  return best;
}

// --- all parameters ----------------------------------------------------------------------------
static slope compare_tap(const gradients *g, mlrt_plain_probe *x, int state, int tap) {
  claim c = {.elements = g->point.tap[tap]};
  for (int i = 0; g->rounded && i < MLRT_ROUNDINGS; i++)
    c.again[i] = g->again[i].tap[tap];
  return compare_all(g, x, state, &c);
}

static slope compare_zeros(const gradients *g, mlrt_plain_probe *x, int state) {
  double *zeros = take(elements_of(&g->program->states[state]), sizeof *zeros);
  slope found = compare_all(g, x, state, &(claim){.elements = zeros});
  free(zeros);
  return found;
}

// The worst of all copies of the gradient. Without one of its name it may be another's, or zero.
static verdict judge(const gradients *g, mlrt_plain_probe *x, int state) {
  const mlrt_plain_step *s = g->point.step;
  verdict v = {.known = false};
  int guess = -1;
  for (int i = 0; i < s->num_taps; i++) {
    if (s->taps[i].param != state)
      continue;
    if (s->taps[i].guess) {
      guess = i;
      continue;
    }
    slope found = compare_tap(g, x, state, i);
    if (!v.known || found.error >= v.worst.error)
      v.worst = found;
    v.known = true;
  }
  if (!v.known && guess >= 0)
    v.worst = compare_tap(g, x, state, guess);
  if (!v.known && (guess < 0 || v.worst.error > TOLERANCE))
    v.worst = compare_zeros(g, x, state);
  return v;
}

static bool has_failed(const verdict *v) {
  return !(v->worst.error <= TOLERANCE);
}

// Whether it is still to be judged: where rounding is known, only what failed without that.
static bool is_open(const gradients *g, int state) {
  return is_trained(&g->program->states[state]) && (!g->rounded || g->open[state]);
}

// The work of one thread (mlrt_step_fn): parameters are independent of each other.
static void judge_share(char *of, int slot, mlrt_team *team, int tid) {
  gradients *g = (gradients *)(void *)of;
  mlrt_plain_probe x = mlrt_plain_probe_open(&g->point);
  int number = 0;
  (void)slot;
  for (int i = 0; i < g->program->num_states; i++)
    if (is_open(g, i) && number++ % mlrt_team_size(team) == tid)
      g->verdicts[i] = judge(g, &x, i);
  mlrt_plain_probe_close(&x);
}

static bool report(const gradients *g, int state) {
  const mlrt_tensor *s = &g->program->states[state];
  const verdict *v = &g->verdicts[state];
  bool fine = !has_failed(v);
  printf("%-28s %12" PRId64 " ", s->name, elements_of(s));
  if (!fine && !v->known) {
    printf("%10s  not compared: nothing named 'd.%s' leads to its update\n", "", s->name);
    return true;
  }
  printf("%10.1e  %s\n", v->worst.error, fine ? "ok" : "FAILED: differs from finite differences");
  if (!fine)
    printf(
        "    along a direction the program's gradient is %.9g, and the loss changes by %.9g%s%s\n",
        v->worst.gradient, v->worst.differences, s->where[0] ? "; parameter at " : "", s->where);
  return fine;
}

static int report_all(const gradients *g) {
  int failures = 0;
  printf("%-28s %12s %10s\n", "gradient", "elements", "error");
  for (int i = 0; i < g->program->num_states; i++)
    if (is_trained(&g->program->states[i]))
      failures += !report(g, i);
  return failures;
}

// --- how much ----------------------------------------------------------------------------------
// Directions that can be afforded: all, one, or none.
static int count_directions(const mlrt_program *p) {
  const mlrt_plain_step *s = p->plain_step;
  double once = 0, each = 0;
  for (int i = 0; i < s->num_calls; i++)
    once += (double)s->calls[i].flops;
  for (int i = 0; i < p->num_states; i++)
    if (is_trained(&p->states[i]) && mlrt_plain_state(s, i) >= 0)
      each += 2 * s->num_losses * (double)mlrt_plain_flops(s, mlrt_plain_state(s, i));
  return once + DIRECTIONS * each <= MAX_FLOPS ? DIRECTIONS : once + each <= MAX_FLOPS ? 1 : 0;
}

// --- all of it ---------------------------------------------------------------------------------
// Of what failed, whether rounding explains it.
static void judge_rounded(gradients *g, mlrt_team *team) {
  int failed = 0;
  for (int i = 0; i < g->program->num_states; i++) {
    g->open[i] = is_trained(&g->program->states[i]) && has_failed(&g->verdicts[i]);
    failed += g->open[i];
  }
  if (!failed)
    return;
  for (int i = 0; i < MLRT_ROUNDINGS; i++) {
    int before = mlrt_round_otherwise(i);
    g->again[i] = mlrt_plain_again(&g->point);
    fesetround(before);
  }
  g->rounded = true;
  mlrt_team_run(team, judge_share, (char *)g, 0);
  for (int i = 0; i < MLRT_ROUNDINGS; i++)
    mlrt_plain_close(&g->again[i]);
}

static bool has_trained(const mlrt_program *p) {
  for (int i = 0; i < p->num_states; i++)
    if (is_trained(&p->states[i]))
      return true;
  return false;
}

int mlrt_check_gradients(const mlrt_program *p, mlrt_options *o) {
  if (!p->plain_step || !has_trained(p))
    return 0;
  gradients g = {.program = p, .directions = count_directions(p)};
  g.batches = mlrt_has_func(p, MLRT_ACCUMULATE) ? mlrt_recipe_number(p, o, "accumulate", 1) : 1;
  if (!g.directions) {
    printf("gradients: not compared: too large for plain versions\n");
    return 0;
  }
  mlrt_options with = *o;
  if (!with.threads) // plain versions are work of the host whatever the program is for
    with.threads = mlrt_online_cores();
  mlrt_trainer t;
  mlrt_trainer_open(&t, p, &with);
  int failures = 0;
  if (open_point(&g, &t)) {
    g.verdicts = take(p->num_states, sizeof *g.verdicts);
    g.open = take(p->num_states, sizeof *g.open);
    mlrt_team_run(t.team, judge_share, (char *)&g, 0);
    judge_rounded(&g, t.team);
    failures = report_all(&g);
    free(g.verdicts);
    free(g.open);
    mlrt_plain_close(&g.point);
  } else {
    printf("gradients: not compared: the loss of a random batch is not a finite number\n");
  }
  mlrt_trainer_close(&t);
  return failures;
}
