// recipe.c: see recipe.h. Defaults are in docs/runtime.md.
#include "runtime/recipe.h"
#include "runtime/device.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { DEFAULT_LOG_EVERY = 100 };
#define MOST      1e15   // of any count: int64_t and double hold it, and sums of it
#define MOST_SEED 0x1p53 // of a flag: a double does not tell larger ones from their neighbours

static const mlrt_setting *find(const mlrt_program *p, const char *key) {
  for (int i = 0; i < p->num_config; i++)
    if (!strcmp(p->config[i].key, key))
      return &p->config[i];
  return NULL;
}

static double flag_value(const void *options, const char *name) {
  const mlrt_flag *f = mlrt_find_flag(options, name);
  return f ? f->value : 0;
}

mlrt_flag_values mlrt_data_flags(const mlrt_options *o) {
  return (mlrt_flag_values){flag_value, o};
}

double mlrt_recipe_number(const mlrt_program *p, const mlrt_options *o, const char *key,
                          double fallback) {
  const mlrt_setting *s = find(p, key);
  if (!s || s->kind == MLRT_SET_STR)
    return fallback;
  return s->kind == MLRT_SET_FLAG ? flag_value(o, s->str) : s->num;
}

int64_t mlrt_micro_batches(const mlrt_program *p) {
  const mlrt_setting *s = find(p, "micro_batches");
  return s ? (int64_t)s->num : 1;
}

// A whole number; wrong values can only come from flags.
static bool whole(int64_t *out, const mlrt_program *p, const mlrt_options *o, const char *key,
                  int64_t fallback, double low, double high, mlrt_error *e) {
  double v = mlrt_recipe_number(p, o, key, (double)fallback);
  if (v != floor(v) || v < low || v > high)
    return mlrt_error_set(e, "'%s' is %.9g; it must be a whole number from %.0f to %.0f", key, v,
                          low, high);
  *out = (int64_t)v;
  return true;
}

static bool count(int64_t *out, const mlrt_program *p, const mlrt_options *o, const char *key,
                  int64_t fallback, int64_t low, mlrt_error *e) {
  return whole(out, p, o, key, fallback, (double)low, MOST, e);
}

// Whole steps in `epochs`. 0.29 of 100 batches are 28.999999999999996 in floating point: what is a whole number but for
// the rounding of the three numbers is meant to be one; of any other the part of a step is left out.
static double steps_in(double epochs, double batches, double accumulate) {
  double steps = epochs * batches / accumulate, near = round(steps);
  return fabs(steps - near) <= 4 * DBL_EPSILON * near ? near : floor(steps);
}

static bool total_steps(mlrt_recipe *r, const mlrt_program *p, const mlrt_options *o,
                        mlrt_error *e) {
  if (find(p, "steps"))
    return count(&r->steps, p, o, "steps", 0, 0, e);
  double epochs = mlrt_recipe_number(p, o, "epochs", 1);
  if (!(epochs >= 0 && epochs < 1e9))
    return mlrt_error_set(e, "'epochs' is %.9g; it must be 0 or more, and less than 1e9", epochs);
  double steps = steps_in(epochs, (double)r->batches_per_epoch, (double)r->accumulate);
  if (steps > MOST)
    return mlrt_error_set(e, "'epochs' is %.9g: too many steps", epochs);
  if (epochs > 0 && steps < 1) // saved, it would pass for a trained model
    return mlrt_error_set(e,
                          "%.9g epochs of %lld batches, %lld to a step, make no whole step\n"
                          "help: train for more epochs, or with smaller batches or 'accumulate'",
                          epochs, (long long)r->batches_per_epoch, (long long)r->accumulate);
  r->steps = (int64_t)steps;
  return true;
}

bool mlrt_recipe_make(mlrt_recipe *r, const mlrt_program *p, const mlrt_options *o,
                      int64_t batches_per_epoch, mlrt_error *e) {
  *r = (mlrt_recipe){.batches_per_epoch = batches_per_epoch};
  int64_t shuffle, log_default = find(p, "steps") ? DEFAULT_LOG_EVERY : 0;
  if (!whole(&shuffle, p, o, "shuffle", 1, 0, 1, e) ||
      !count(&r->accumulate, p, o, "accumulate", 1, 1, e) || !total_steps(r, p, o, e) ||
      !count(&r->eval_every, p, o, "eval_every", 0, 0, e) ||
      !count(&r->save_every, p, o, "save_every", -1, -1, e) ||
      !count(&r->log_every, p, o, "log_every", log_default, 0, e))
    return false;
  r->shuffle = shuffle;
  if (o->save_every)
    r->save_every = o->save_every;
  if (o->log_every)
    r->log_every = o->log_every;
  return true;
}

const mlrt_flag *mlrt_recipe_seed_flag(const mlrt_program *p, const mlrt_options *o) {
  const mlrt_setting *s = find(p, "seed");
  return s && s->kind == MLRT_SET_FLAG ? mlrt_find_flag(o, s->str) : NULL;
}

bool mlrt_recipe_seed(uint64_t *out, const mlrt_program *p, const mlrt_options *o, mlrt_error *e) {
  int64_t seed = o->seed;
  if (!o->seed_given && !whole(&seed, p, o, "seed", 0, -MOST_SEED, MOST_SEED, e))
    return false;
  *out = (uint64_t)seed;
  return true;
}

bool mlrt_recipe_due(const mlrt_recipe *r, int64_t every, int64_t step) {
  if (every < 0 || step == 0)
    return false;
  if (every > 0)
    return step % every == 0;
  // An epoch ends inside this step: epochs need not be whole multiples of steps.
  int64_t per_epoch = r->batches_per_epoch, k = r->accumulate;
  return step * k / per_epoch > (step - 1) * k / per_epoch;
}

double mlrt_recipe_epoch(const mlrt_recipe *r, int64_t batches) {
  return (double)batches / (double)r->batches_per_epoch;
}

const mlrt_data *mlrt_find_data(const mlrt_program *p, const char *name) {
  for (int i = 0; i < p->num_data; i++)
    if (!strcmp(p->data[i].name, name))
      return &p->data[i];
  return NULL;
}

const mlrt_data *mlrt_train_data(const mlrt_program *p) {
  const mlrt_data *d = mlrt_find_data(p, "train");
  return d || !p->num_data ? d : &p->data[0];
}

const mlrt_data *mlrt_eval_data(const mlrt_program *p) {
  const mlrt_setting *s = find(p, "eval");
  return s && s->kind == MLRT_SET_STR && mlrt_has_func(p, MLRT_EVAL) ? mlrt_find_data(p, s->str)
                                                                     : NULL;
}
