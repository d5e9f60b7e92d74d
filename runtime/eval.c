// eval.c: `./trainer eval`: a checkpoint's loss and metrics on whole data sets.
#include "runtime/commands.h"
#include "runtime/evaluate.h"
#include "runtime/metrics.h"
#include "runtime/outputs.h"
#include "runtime/progress.h"
#include "runtime/recipe.h"
#include "runtime/signals.h"
#include "runtime/suggest.h"
#include "runtime/weights_load.h"

#include <inttypes.h>
#include <string.h>

int64_t mlrt_open_trained(mlrt_trainer *t, const mlrt_program *p, mlrt_options *o) {
  mlrt_error e;
  if (o->weights) {
    uint64_t seed;
    if (!mlrt_recipe_seed(&seed, p, o, &e))
      mlrt_fail(MLRT_EXIT_USAGE, "%s", e.text);
    mlrt_trainer_open(t, p, o);
    mlrt_weights_begin(t, seed);
    mlrt_weights_characters(o);
    return 0;
  }
  mlrt_checkpoint c = mlrt_trainer_checkpoint(p, o);
  mlrt_trainer_open(t, p, o);
  if (!mlrt_checkpoint_read(&c, p, &t->device, &e))
    mlrt_fail_with(&e);
  if (!o->quiet)
    printf("checkpoint: step %" PRId64 ", epoch %" PRId64 "\n", c.at.step, c.at.position.epoch);
  mlrt_checkpoint_close(&c);
  return c.at.step;
}

void mlrt_check_split(const mlrt_program *p, const char *split) {
  if (!split || mlrt_find_data(p, split))
    return;
  mlrt_suggestion s = mlrt_suggest_begin(split);
  for (int i = 0; i < p->num_data; i++)
    mlrt_suggest_try(&s, p->data[i].name);
  mlrt_fail(MLRT_EXIT_USAGE, "the program has no data '%s'%s%s%s", split,
            s.best ? "; did you mean '" : "", s.best ? s.best : "", s.best ? "'?" : "");
}

// Without --split: everything but the training data, unless there is nothing else.
static bool wanted(const mlrt_program *p, const mlrt_options *o, const mlrt_data *d) {
  if (o->split)
    return !strcmp(o->split, d->name);
  return p->num_data == 1 || d != mlrt_train_data(p);
}

static void report(const mlrt_trainer *t, mlrt_metrics *m, const mlrt_data *d,
                   const mlrt_means *means, int64_t step) {
  const mlrt_func *f = &t->program->funcs[MLRT_EVAL];
  printf("%s:", d->name);
  mlrt_print_values(stdout, f, means->value);
  printf("  (%" PRId64 " samples)\n", means->samples);
  mlrt_metrics_eval(m, d->name, step);
  mlrt_metrics_values(m, f, means->value);
  mlrt_metrics_end(m, mlrt_seconds() - t->started);
}

// False when a signal came.
static bool evaluate_one(mlrt_trainer *t, mlrt_metrics *m, const mlrt_data *d, int64_t step) {
  mlrt_dataset *data = mlrt_trainer_data(t->program, t->options, d, MLRT_USE_EVAL);
  mlrt_error e;
  mlrt_batches *b = mlrt_trainer_batches(t, &e);
  if (!b)
    mlrt_fail_with(&e);
  mlrt_means means;
  mlrt_evaluated how = mlrt_evaluate(t, b, data, &means, &e);
  if (how == MLRT_EVAL_BAD)
    mlrt_fail_with(&e);
  if (how == MLRT_EVAL_WHOLE)
    report(t, m, d, &means, step);
  mlrt_batches_close(b);
  mlrt_data_close(data);
  return how == MLRT_EVAL_WHOLE;
}

int mlrt_eval(const mlrt_program *p, mlrt_options *o) {
  if (!mlrt_has_func(p, MLRT_EVAL))
    mlrt_fail(MLRT_EXIT_USAGE, "the program has no eval function");
  if (!p->num_data)
    mlrt_fail(MLRT_EXIT_USAGE, "the program names no data");
  mlrt_check_split(p, o->split);
  mlrt_check_outputs(p, o);
  mlrt_signals_install();
  mlrt_trainer t;
  int64_t step = mlrt_open_trained(&t, p, o);
  mlrt_metrics m;
  mlrt_error e;
  mlrt_metrics_from end = {INT64_MAX, NULL, NULL};
  if (!mlrt_metrics_open(&m, p, o->metrics, !o->no_times, &end, &e))
    mlrt_fail_with(&e);
  bool whole = true;
  for (int i = 0; whole && i < p->num_data; i++)
    if (wanted(p, o, &p->data[i]))
      whole = evaluate_one(&t, &m, &p->data[i], step);
  bool fine = mlrt_metrics_close(&m);
  mlrt_trainer_close(&t);
  return !whole ? 128 + mlrt_signals_pending() : fine ? MLRT_EXIT_OK : MLRT_EXIT_INPUT;
}
