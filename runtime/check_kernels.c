// check_kernels.c: every distinct kernel on random arguments.
//
// The fast version runs several times, its tasks split and ordered differently (on a GPU: as they
// come), with other garbage in outputs and workspace each time: the results must have the same bits
// (so no result depends on the number of threads, or on memory nobody wrote). Then they are
// compared with the plain version, which computes in double precision: |fast - plain| <= 1e-4
// (|plain| + mean |plain|). The mean is the larger one of the rounds so far: 1 - tanh(x)^2 of large
// positive x is all rounding. Where a comparison inside a kernel meets two nearly equal numbers,
// both answers are right: one element in ten thousand may differ. Where more do, the plain version
// runs again with inputs moved by 2^-19 of their size, as far as the rounding errors of a long sum
// go, in a few ways: elements that move by a quarter of what is
// allowed, ten times as far (an Adam step whose moment all but cancels), say nothing about the fast
// version; nor do outputs that are 0 but for rounding. Where large terms cancel inside the kernel, as in a gradient that
// only a norm's epsilon keeps from being 0, errors of the size of the inputs' last digit are rounding, too, if
// they are small beside the output.
// And where they cancel altogether, the plain version in two other rounding modes, up and down, says what rounding can do:
// in f32 as many times as much as its last digit is larger.
// An output that is made of a number narrowed inside the kernel (bf16: 8 digits; mlrt_arg.digits) may
// differ by one in its last digit: a rounding error of the fast version may lie across where rounding
// parts neighbours. The first round has small numbers of both signs: sums of many are where tanh is still
// far from 1. Then come larger ones, and positive ones only; what is a square or a variance in the program
// is positive in all of them, so that its root is a number.
#include "runtime/check_plain.h"
#include "runtime/commands.h"
#include "runtime/number_io.h"
#include "runtime/random.h"

#include <fenv.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TOLERANCE 1e-4
#define NOTHING   1e-12 // of the inputs
#define MOVED     0.05
#define ROUNDED   0.05 // the most that rounding of what cancels may be of an output
#define DIGIT     1.2e-7
enum { SMALL, BOTH_SIGNS, POSITIVE, ROUNDS };
enum { ALL_UP, BY_INPUT, MOVES = 6 };
enum { SPLITS = 3, ALIGN = 64 };
#define MAX_PLAIN_FLOPS                                                                            \
  INT64_C(5000000000) // some seconds; larger kernels are compared by bits only

typedef struct trial { // one kernel with its memory
  mlrt_device *device;
  const mlrt_kernel *k;
  char **args;  // what the kernel gets
  char **first; // outputs of the first split, by argument
  char **plain; // what its plain version gets: float buffers hold doubles
  double **
      moves; // how far small moves of the inputs move the elements of outputs; nothing until it is wanted
  double **
      blur; // how far other rounding modes do, as large as it is in the type of the output; the same
  double *mean; // magnitude of outputs, the largest of the rounds so far
  double worst; // error relative to the tolerance's scale
  const char *trouble;
} trial;

static char *take(int64_t bytes) {
  size_t size = ((size_t)bytes + ALIGN) / ALIGN * ALIGN;
  char *p = aligned_alloc(ALIGN, size);
  if (!p)
    mlrt_fail(MLRT_EXIT_MEMORY, "out of memory in check");
  return p;
}

static bool is_out(const trial *t, int i) {
  return t->k->args[i].kind == MLRT_ARG_OUT;
}

static trial open_trial(mlrt_device *d, const mlrt_kernel *k) {
  int64_t pointers = k->num_args * (int64_t)sizeof(char *);
  trial t = {.device = d, .k = k};
  t.args = (char **)take(pointers);
  t.first = (char **)take(pointers);
  t.plain = (char **)take(pointers);
  t.moves = (double **)(void *)take(pointers);
  t.blur = (double **)(void *)take(pointers);
  t.mean = (double *)(void *)take(k->num_args * (int64_t)sizeof(double));
  for (int i = 0; i < k->num_args; i++) {
    bool number = k->args[i].kind == MLRT_ARG_NUMBER;
    t.args[i] = number ? (char *)(uintptr_t)k->args[i].size : take(k->args[i].size);
    t.first[i] = is_out(&t, i) ? take(k->args[i].size) : NULL;
    t.mean[i] = 0;
    t.plain[i] = number ? t.args[i] : NULL;
    t.moves[i] = NULL;
    t.blur[i] = NULL;
  }
  return t;
}

static void close_trial(trial *t) {
  for (int i = 0; i < t->k->num_args; i++) {
    free(t->first[i]);
    if (t->k->args[i].kind != MLRT_ARG_NUMBER)
      free(t->args[i]);
  }
  free(t->first);
  free(t->plain);
  free(t->moves);
  free(t->blur);
  free(t->mean);
  free(t->args);
}

static bool in_band(const mlrt_arg *x, int64_t i) {
  const mlrt_band *b = x->band;
  if (!b)
    return true;
  int64_t diagonal = i % b->columns - i / b->columns % b->rows;
  return b->lower <= diagonal && diagonal <= b->upper;
}

static bool in_border(const mlrt_border *b, int64_t i) {
  int64_t line = i / b->apart % b->lines;
  return line < b->low || line >= b->high;
}

// Kernels may take for granted what the program that they are part of gives them.
static void clear_outside(const mlrt_arg *x, char *at) {
  int size = mlrt_dtype_bytes(x->dtype);
  for (int64_t i = 0; x->band && i < x->size / size; i++)
    if (!in_band(x, i))
      memset(at + i * size, 0, (size_t)size);
  for (const mlrt_border *b = x->borders; b && b->apart; b++)
    for (int64_t i = 0; i < x->size / size; i++)
      if (in_border(b, i))
        memset(at + i * size, 0, (size_t)size);
}

// Long runs of zeros, so that several rows have theirs in the same places.
static void clear_most(const mlrt_arg *x, char *at) {
  enum { RUN = 64, KEPT = 16 }; // elements; one run of so many
  int size = mlrt_dtype_bytes(x->dtype);
  for (int64_t i = 0; x->zeros && i < x->size / size; i++)
    if (i / RUN % KEPT)
      memset(at + i * size, 0, (size_t)size);
}

// Tensor cores multiply what the program has rounded to few digits as it is.
static void round_to_digits(const mlrt_arg *x, char *at) {
  float *v = (float *)(void *)at;
  for (int64_t i = 0; x->digits && i < x->size / 4; i++) {
    int exponent;
    float mantissa = frexpf(v[i], &exponent);
    v[i] = ldexpf(rintf(ldexpf(mantissa, x->digits)), exponent - x->digits);
  }
}

static void fill_inputs(trial *t, int index, int round) {
  for (int i = 0; i < t->k->num_args; i++) {
    const mlrt_arg *x = &t->k->args[i];
    mlrt_random r = {.seed = (uint64_t)(index * 1000 + round * 100 + i),
                     .positive = round == POSITIVE || x->positive,
                     .small = round == SMALL};
    if (x->kind != MLRT_ARG_IN)
      continue;
    mlrt_random_fill(&r, t->args[i], x->size, x->dtype, x->limit);
    clear_outside(x, t->args[i]);
    if (round == POSITIVE)
      clear_most(x, t->args[i]);
    round_to_digits(x, t->args[i]);
  }
}

static void spoil_outputs(trial *t, int byte) {
  for (int i = 0; i < t->k->num_args; i++)
    if (is_out(t, i) || t->k->args[i].kind == MLRT_ARG_WORKSPACE)
      memset(t->args[i], byte, (size_t)t->k->args[i].size);
}

static void run_fast(trial *t, int split) {
  static const int garbage[SPLITS] = {0xFF, 0x00, 0x7B};
  spoil_outputs(t, garbage[split]);
  t->device->calls->call(t->device, t->k, t->args, split);
}

static void keep_outputs(trial *t) {
  for (int i = 0; i < t->k->num_args; i++)
    if (is_out(t, i))
      memcpy(t->first[i], t->args[i], (size_t)t->k->args[i].size);
}

// Where somebody reads it: kernels may leave the rest as it was.
static bool same_output(const trial *t, int out) {
  const mlrt_arg *x = &t->k->args[out];
  const char *first = t->first[out], *now = t->args[out];
  if (!x->band)
    return !memcmp(first, now, (size_t)x->size);
  int size = mlrt_dtype_bytes(x->dtype);
  for (int64_t i = 0; i < x->size / size; i++)
    if (in_band(x, i) && memcmp(first + i * size, now + i * size, (size_t)size))
      return false;
  return true;
}

static bool same_outputs(const trial *t) {
  for (int i = 0; i < t->k->num_args; i++)
    if (is_out(t, i) && !same_output(t, i))
      return false;
  return true;
}

// What the plain version computes is rounded to the type of the output here.
static double plain_value(const char *at, mlrt_dtype type, int64_t i) {
  char stored[sizeof(double)];
  double v = mlrt_load(at + i * mlrt_plain_bytes(type), mlrt_is_float(type) ? MLRT_F64 : type);
  mlrt_store(stored, type, v);
  return mlrt_load(stored, type);
}

// Of what a plain version computed.
static double mean_magnitude(const char *at, mlrt_dtype t, int64_t n) {
  double sum = 0;
  int64_t finite = 0;
  for (int64_t i = 0; i < n; i++) {
    double v = fabs(plain_value(at, t, i));
    if (isfinite(v)) {
      sum += v;
      finite++;
    }
  }
  return finite ? sum / (double)finite : 0;
}

static double relative_error(double fast, double plain, double scale) {
  if (fast == plain || (isnan(fast) && isnan(plain)))
    return 0;
  double size = fabs(plain) + scale;
  return size > 0 && isfinite(fast) && isfinite(plain) ? fabs(fast - plain) / size : INFINITY;
}

static double tolerance(const mlrt_arg *x) {
  return x->digits ? TOLERANCE + ldexp(1, 1 - x->digits) : TOLERANCE;
}

// The plain version's inputs, each a little up or down. A sum of positive numbers is rounded by more than moves
// of its terms amount to where these cancel: the first move is up for all, the second up or down for each input.
static void move_a_little(double *x, int64_t n, int arg, int move) {
  for (int64_t i = 0; i < n; i++) {
    uint64_t bits = mlrt_random_bits((uint64_t)arg, move == BY_INPUT ? 0 : (uint64_t)i);
    x[i] *= 1 + ldexp(move == ALL_UP || (bits >> move & 1) ? 1 : -1, -19);
  }
}

// Buffers for doubles exist only here: they are twice as large. `move` < 0: inputs as they are.
static void run_plain(trial *t, char **args, int move) {
  for (int i = 0; i < t->k->num_args; i++) {
    const mlrt_arg *x = &t->k->args[i];
    int64_t n = x->size / mlrt_dtype_bytes(x->dtype);
    if (x->kind != MLRT_ARG_IN && x->kind != MLRT_ARG_OUT)
      continue;
    args[i] = take(n * mlrt_plain_bytes(x->dtype));
    if (x->kind == MLRT_ARG_IN)
      mlrt_plain_widen(args[i], t->args[i], x->dtype, n);
    if (x->kind == MLRT_ARG_IN && move >= 0 && mlrt_is_float(x->dtype))
      move_a_little((double *)(void *)args[i], n, i, move);
  }
  t->k->plain(args, NULL, MLRT_HOLD_NOTHING);
}

static void free_plain(const trial *t, char **args) {
  for (int i = 0; i < t->k->num_args; i++)
    if (t->k->args[i].kind != MLRT_ARG_NUMBER) {
      free(args[i]);
      args[i] = NULL;
    }
}

static double *take_zeros(int64_t n) {
  double *x = (double *)(void *)take(n * (int64_t)sizeof(double));
  memset(x, 0, (size_t)n * sizeof(double));
  return x;
}

static void note_moves(trial *t, int out, const char *moved) {
  const mlrt_arg *x = &t->k->args[out];
  int64_t n = x->size / mlrt_dtype_bytes(x->dtype);
  if (!t->moves[out])
    t->moves[out] = take_zeros(n);
  for (int64_t i = 0; i < n; i++) {
    double plain = plain_value(t->plain[out], x->dtype, i), other = plain_value(moved, x->dtype, i);
    bool same = plain == other || (isnan(plain) && isnan(other));
    double by = same ? 0 : isfinite(plain) && isfinite(other) ? fabs(other - plain) : INFINITY;
    t->moves[out][i] = fmax(t->moves[out][i], by);
  }
}

// Not rounded to the type of the output: what cancels leaves less than its digits show.
static void note_blur(trial *t, int out, const char *rounded) {
  const mlrt_arg *x = &t->k->args[out];
  int64_t n = x->size / mlrt_dtype_bytes(x->dtype);
  double digits = x->dtype == MLRT_F64 ? 1 : 0x1p29; // of a double behind those of an f32
  if (!t->blur[out])
    t->blur[out] = take_zeros(n);
  for (int64_t i = 0; mlrt_is_float(x->dtype) && i < n; i++) {
    const double *plain = (const double *)(const void *)t->plain[out];
    double by = digits * fabs(((const double *)(const void *)rounded)[i] - plain[i]);
    t->blur[out][i] = fmax(t->blur[out][i], by);
  }
}

static void run_changed(trial *t, char **args, int move, void (*note)(trial *, int, const char *)) {
  for (int i = 0; i < t->k->num_args; i++)
    args[i] = t->k->args[i].kind == MLRT_ARG_NUMBER ? t->args[i] : NULL;
  run_plain(t, args, move);
  for (int i = 0; i < t->k->num_args; i++)
    if (is_out(t, i))
      note(t, i, args[i]);
  free_plain(t, args);
}

static void find_moves(trial *t) {
  char **args = (char **)take(t->k->num_args * (int64_t)sizeof(char *));
  for (int move = 0; move < MOVES; move++)
    run_changed(t, args, move, note_moves);
  for (int i = 0; i < MLRT_ROUNDINGS; i++) {
    int before = mlrt_round_otherwise(i);
    run_changed(t, args, -1, note_blur);
    fesetround(before);
  }
  free(args);
}

static void free_moves(const trial *t) {
  for (int i = 0; i < t->k->num_args; i++) {
    free(t->moves[i]);
    free(t->blur[i]);
    t->moves[i] = t->blur[i] = NULL;
  }
}

static double largest_input(const trial *t) {
  double inputs = 0;
  for (int i = 0; i < t->k->num_args; i++) {
    const mlrt_arg *in = &t->k->args[i];
    if (in->kind == MLRT_ARG_IN && mlrt_is_float(in->dtype))
      inputs = fmax(inputs,
                    mean_magnitude(t->plain[i], in->dtype, in->size / mlrt_dtype_bytes(in->dtype)));
  }
  return inputs;
}

// Elements that are too far off, and the largest error among all that count. `moved`: without those
// which small changes of the inputs or other ways to round move as far, or that are off by rounding of what has cancelled.
static int64_t count_bad(const trial *t, int out, bool moved, double *worst, double *worst_good) {
  const mlrt_arg *x = &t->k->args[out];
  int size = mlrt_dtype_bytes(x->dtype);
  int64_t bad = 0;
  double allowed = tolerance(x), digit = moved ? DIGIT * largest_input(t) : 0;
  *worst = *worst_good = 0;
  for (int64_t i = 0; i < x->size / size; i++) {
    if (!in_band(x, i))
      continue;
    double plain = plain_value(t->plain[out], x->dtype, i), scale = t->mean[out];
    double fast = mlrt_load(t->first[out] + i * size, x->dtype);
    double error = relative_error(fast, plain, scale);
    if (error <= allowed) {
      *worst_good = fmax(*worst_good, error);
      continue;
    }
    if (moved && t->moves[out][i] > allowed / 4 * (fabs(plain) + scale))
      continue;
    if (moved && fabs(fast - plain) <= MLRT_ROUNDING_SAFETY * t->blur[out][i])
      continue;
    if (moved && error <= ROUNDED && fabs(fast - plain) <= digit)
      continue;
    *worst = fmax(*worst, error);
    bad++;
  }
  return bad;
}

// The output is 0 but for rounding, such as the gradient of a bias in front of a norm, or what is made of it:
// next to nothing beside the inputs, and small changes of these make another such number of it.
static bool is_rounding(const trial *t, int out) {
  const mlrt_arg *x = &t->k->args[out];
  int64_t n = x->size / mlrt_dtype_bytes(x->dtype);
  double size = 0, moves = 0;
  for (int64_t i = 0; i < n; i++) {
    double plain = plain_value(t->plain[out], x->dtype, i);
    size += fabs(plain);
    moves += t->moves[out][i];
  }
  return size <= (double)n * NOTHING * largest_input(t) && moves > MOVED * size;
}

static void compare_output(trial *t, int out) {
  mlrt_dtype type = t->k->args[out].dtype;
  int64_t n = t->k->args[out].size / mlrt_dtype_bytes(type), few = n / 10000;
  double worst, worst_good;
  t->mean[out] = fmax(t->mean[out], mean_magnitude(t->plain[out], type, n));
  int64_t bad = count_bad(t, out, false, &worst, &worst_good);
  if (bad > few) {
    if (!t->moves[out])
      find_moves(t);
    bad = is_rounding(t, out) ? 0 : count_bad(t, out, true, &worst, &worst_good);
  }
  t->worst = fmax(t->worst, bad > few ? worst : worst_good);
  if (bad > few && !t->trouble)
    t->trouble = "differs from the plain version";
}

static void run_round(trial *t, int index, int round) {
  fill_inputs(t, index, round);
  for (int split = 0; split < SPLITS; split++) {
    run_fast(t, split);
    if (split == 0)
      keep_outputs(t);
    else if (!same_outputs(t))
      t->trouble = "depends on how its tasks are split";
  }
  if (!t->k->plain || t->k->flops > MAX_PLAIN_FLOPS)
    return;
  run_plain(t, t->plain, -1);
  for (int i = 0; i < t->k->num_args; i++)
    if (is_out(t, i))
      compare_output(t, i);
  free_plain(t, t->plain);
  free_moves(t);
}

static bool check_kernel(mlrt_device *d, const mlrt_kernel *k, int index) {
  trial t = open_trial(d, k);
  for (int round = 0; round < ROUNDS; round++)
    run_round(&t, index, round);
  const char *note = t.trouble   ? t.trouble
                     : !k->plain ? "ok (bits only: no plain version)"
                     : k->flops > MAX_PLAIN_FLOPS
                         ? "ok (bits only: too large for the plain version)"
                         : "ok";
  printf("%-28s %12" PRId64 " %10.1e  %s%s\n", k->name, k->flops, t.worst,
         t.trouble ? "FAILED: " : "", note);
  if (t.trouble)
    printf("    %s at %s\n", k->ops, k->where);
  bool fine = !t.trouble;
  close_trial(&t);
  return fine;
}

int mlrt_check_kernels(const mlrt_program *p, const mlrt_options *o) {
  int failures = 0;
  mlrt_device d = mlrt_device_for(p);
  d.calls->open(&d, o);
  if (p->num_kernels)
    printf("%-28s %12s %10s\n", "kernel", "flops", "error");
  for (int i = 0; i < p->num_kernels; i++) {
    if (d.calls->has && !d.calls->has(&d, &p->kernels[i]))
      continue;
    failures += !check_kernel(&d, &p->kernels[i], i);
    fflush(stdout);
  }
  d.calls->close(&d);
  return failures;
}
