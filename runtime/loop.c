// loop.c: `./trainer train`: steps, logs, evaluations and saves, in an order that a resumed run
// repeats exactly.
//
// After each step, in this order: log line, evaluation, checkpoint. A checkpoint says which of
// these were done after its step (window, evaluated), so that a run that was stopped anywhere and
// resumed writes the same lines, the same evaluations and the same final file as one that was not.
#include "runtime/commands.h"
#include "runtime/evaluate.h"
#include "runtime/loop_start.h"
#include "runtime/signals.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static bool is_due(const mlrt_loop *l, int64_t every) {
  return mlrt_recipe_due(&l->recipe, every, l->at.step);
}

// --- one step

// Adds weight * results of `f` to the sums of the step's results of the same name.
static void add_to_window(mlrt_loop *l, const mlrt_func *f, double weight, double *loss) {
  const mlrt_func *step = &l->trainer.program->funcs[MLRT_STEP];
  for (int i = 0; i < f->num_results; i++) {
    const mlrt_result *r = &f->results[i];
    if (!mlrt_result_is_scalar(r))
      continue;
    double v = mlrt_trainer_result(&l->trainer, r);
    if (r->kind == MLRT_LOSS)
      *loss += v;
    for (int k = 0; k < step->num_results && k < MLRT_MAX_RESULTS; k++)
      if (!strcmp(step->results[k].name, r->name))
        l->at.window[k] += weight * v;
  }
}

static bool has_result(const mlrt_func *f, const char *name) {
  for (int i = 0; i < f->num_results; i++)
    if (!strcmp(f->results[i].name, name))
      return true;
  return false;
}

// Results that every batch has (loss, metrics) are averaged over the batches of a step; those of
// the step function alone (a learning rate, a gradient norm) are the step's.
static void add_step_only(mlrt_loop *l) {
  const mlrt_program *p = l->trainer.program;
  const mlrt_func *step = &p->funcs[MLRT_STEP], *part = &p->funcs[MLRT_ACCUMULATE];
  for (int k = 0; k < step->num_results && k < MLRT_MAX_RESULTS; k++)
    if (mlrt_result_is_scalar(&step->results[k]) && !has_result(part, step->results[k].name))
      l->at.window[k] += (1 - 1 / (double)l->recipe.accumulate) *
                         mlrt_trainer_result(&l->trainer, &step->results[k]);
}

static mlrt_batch next_batch(mlrt_loop *l) {
  mlrt_batch b;
  mlrt_error e;
  double begun = mlrt_profile_begin(&l->profile);
  if (mlrt_batches_next(l->batches, &b, &e) != MLRT_BATCH) {
    mlrt_progress_clear(&l->progress);
    mlrt_fail(MLRT_EXIT_INPUT, "%s", e.text);
  }
  mlrt_profile_end(&l->profile, MLRT_PHASE_DATA, begun);
  return b;
}

// Returns the sum of the losses.
static double run_step(mlrt_loop *l) {
  const mlrt_func *funcs = l->trainer.program->funcs;
  int64_t parts = l->recipe.accumulate;
  double loss = 0;
  for (int64_t i = 1; i <= parts; i++) {
    const mlrt_func *f = &funcs[i < parts ? MLRT_ACCUMULATE : MLRT_STEP];
    mlrt_batch b = next_batch(l);
    double begun = mlrt_profile_begin(&l->profile);
    mlrt_trainer_run_batch(&l->trainer, f, l->batches, &b);
    add_to_window(l, f, 1 / (double)parts, &loss);
    mlrt_profile_end(&l->profile, MLRT_PHASE_STEP, begun);
  }
  if (parts > 1)
    add_step_only(l);
  l->at.step++;
  l->at.window_steps++;
  l->at.position = mlrt_batches_position(l->batches);
  return loss;
}

// --- what follows a step

static void window_means(const mlrt_loop *l, double *means) {
  int64_t n = l->at.window_steps > 0 ? l->at.window_steps : 1;
  for (int i = 0; i < MLRT_MAX_RESULTS; i++)
    means[i] = l->at.window[i] / (double)n;
}

static mlrt_progress_line make_line(const mlrt_loop *l, const double *means) {
  return (mlrt_progress_line){l->at.step, mlrt_recipe_epoch(&l->recipe, l->at.step),
                              &l->trainer.program->funcs[MLRT_STEP], means};
}

static void write_values(mlrt_metrics *m, const mlrt_func *f, const double *values) {
  for (int i = 0; i < f->num_results && i < MLRT_MAX_RESULTS; i++)
    if (mlrt_result_is_scalar(&f->results[i]))
      mlrt_metrics_value(m, f->results[i].name, values[i]);
}

static double elapsed(const mlrt_loop *l) {
  return mlrt_seconds() - l->trainer.started;
}

static void log_window(mlrt_loop *l) {
  double begun = mlrt_profile_begin(&l->profile);
  double means[MLRT_MAX_RESULTS];
  window_means(l, means);
  mlrt_progress_line line = make_line(l, means);
  mlrt_progress_log(&l->progress, &line);
  mlrt_metrics_train(&l->metrics, l->at.step, line.epoch);
  write_values(&l->metrics, line.func, means);
  mlrt_metrics_end(&l->metrics, elapsed(l));
  l->at.window_steps = 0;
  memset(l->at.window, 0, sizeof l->at.window);
  mlrt_profile_end(&l->profile, MLRT_PHASE_LOG, begun);
}

static void draw(mlrt_loop *l) {
  if (!mlrt_progress_wants(&l->progress) || l->at.window_steps == 0)
    return;
  double means[MLRT_MAX_RESULTS];
  window_means(l, means);
  mlrt_progress_line line = make_line(l, means);
  mlrt_progress_live(&l->progress, &line);
}

static void begin_training_data(mlrt_loop *l) {
  mlrt_order order = {.data = l->train,
                      .use = MLRT_USE_TRAIN,
                      .shuffle = l->recipe.shuffle,
                      .seed = l->at.seed,
                      .from = l->at.position};
  mlrt_error e;
  if (!mlrt_batches_begin(l->batches, &order, &e))
    mlrt_fail(MLRT_EXIT_INPUT, "%s", e.text);
}

static void report_eval(mlrt_loop *l, const mlrt_means *means) {
  const mlrt_func *f = &l->trainer.program->funcs[MLRT_EVAL];
  const char *name = mlrt_data_name(l->eval);
  mlrt_metrics_eval(&l->metrics, name, l->at.step);
  write_values(&l->metrics, f, means->value);
  mlrt_metrics_end(&l->metrics, elapsed(l));
  if (l->trainer.options->quiet)
    return;
  mlrt_progress_clear(&l->progress);
  printf("%s after step %" PRId64 ":", name, l->at.step);
  mlrt_print_values(stdout, f, means->value);
  printf("  (%" PRId64 " samples)\n", means->samples);
  fflush(stdout);
}

static void evaluate(mlrt_loop *l) {
  double begun = mlrt_profile_begin(&l->profile);
  mlrt_means means;
  bool whole = mlrt_evaluate(&l->trainer, l->batches, l->eval, &means);
  begin_training_data(l);
  if (whole) {
    report_eval(l, &means);
    l->at.evaluated = l->at.step;
    l->saved = -1; // a file of this step, if any, does not know it
  }
  mlrt_profile_end(&l->profile, MLRT_PHASE_EVAL, begun);
}

// A failed save in the middle is a warning: the earlier file is whole, the next save may work,
// and ending here would lose more. At the end of the run it is an error.
static bool save(mlrt_loop *l, const char *kind) {
  if (!l->saver.path || l->saved == l->at.step)
    return true;
  double begun = mlrt_profile_begin(&l->profile);
  mlrt_metrics_sync(&l->metrics);
  mlrt_error e;
  bool ok = mlrt_saver_save(&l->saver, l->trainer.arena.base, &l->at, &e);
  mlrt_profile_end(&l->profile, MLRT_PHASE_SAVE, begun);
  if (ok)
    l->saved = l->at.step;
  else {
    mlrt_progress_clear(&l->progress);
    fprintf(stderr, "%s: %s\n", kind, e.text);
  }
  return ok;
}

// --- the run

static bool eval_is_due(const mlrt_loop *l) {
  return l->eval && l->at.step > 0 && l->at.evaluated != l->at.step &&
         (is_due(l, l->recipe.eval_every) || l->at.step == l->recipe.steps);
}

// False: the run must end here, because of --stop-on-nan.
static bool check_loss(mlrt_loop *l, double loss) {
  if (isfinite(loss) || l->warned)
    return true;
  l->warned = true;
  mlrt_progress_clear(&l->progress);
  bool stop = l->trainer.options->stop_on_nan;
  fprintf(stderr, "warning: the loss is %s at step %" PRId64 "%s\n",
          isnan(loss) ? "nan" : "infinite", l->at.step,
          stop ? "; stopped before it was saved" : "; training goes on (--stop-on-nan)");
  return !stop;
}

static bool is_running(const mlrt_loop *l) {
  return l->at.step < l->recipe.steps && !mlrt_signals_pending();
}

// False after --stop-on-nan, or when the end of the run could not be saved.
static bool run_steps(mlrt_loop *l) {
  if (eval_is_due(l)) // the stopped run was interrupted in it
    evaluate(l);
  while (is_running(l)) {
    if (!check_loss(l, run_step(l)))
      return false;
    if (is_due(l, l->recipe.log_every) || l->at.step == l->recipe.steps)
      log_window(l);
    else
      draw(l);
    if (eval_is_due(l) && !mlrt_signals_pending())
      evaluate(l);
    if (is_due(l, l->recipe.save_every))
      save(l, "warning");
  }
  return save(l, "error");
}

static void say_stopped(mlrt_loop *l, int number) {
  if (l->saver.path)
    mlrt_progress_say(&l->progress,
                      "stopped by signal %d after step %" PRId64
                      "; '%s' is saved: go on with --resume%s%s",
                      number, l->at.step, l->saver.path, l->trainer.options->save ? "=" : "",
                      l->trainer.options->save ? l->saver.path : "");
  else
    mlrt_progress_say(&l->progress, "stopped by signal %d after step %" PRId64 "; nothing is saved",
                      number, l->at.step);
}

static void say_done(mlrt_loop *l) {
  double seconds = mlrt_seconds() - l->progress.started;
  mlrt_progress_say(&l->progress, "done: %" PRId64 " steps in %.2f s%s%s%s", l->at.step, seconds,
                    l->saver.path ? "; saved '" : "", l->saver.path ? l->saver.path : "",
                    l->saver.path ? "'" : "");
}

int mlrt_train(const mlrt_program *p, mlrt_options *o) {
  mlrt_loop l;
  mlrt_loop_open(&l, p, o);
  begin_training_data(&l);
  bool fine = run_steps(&l);
  int stopped = l.at.step < l.recipe.steps || eval_is_due(&l) ? mlrt_signals_pending() : 0;
  if (stopped && fine)
    say_stopped(&l, stopped);
  else if (fine)
    say_done(&l);
  mlrt_progress_clear(&l.progress);
  fine &= mlrt_loop_close(&l);
  return !fine ? MLRT_EXIT_INPUT : stopped ? 128 + stopped : MLRT_EXIT_OK;
}
