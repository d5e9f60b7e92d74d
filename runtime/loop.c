// loop.c: `./trainer train`: steps, logs, evaluations and saves, in an order that a resumed run
// repeats exactly.
//
// After each step, in this order: log line, evaluation, checkpoint. A checkpoint says which of
// these were done after its step (window, evaluated), so that a run that was stopped anywhere and
// resumed writes the same lines, the same evaluations and the same final file as one that was not.
//
// A device that lags (device.h) would stand still while the loop reads a loss, decides and starts
// the next step. There the results of a step are taken when the next one is under way, or as soon
// as something needs them or follows the step: a line, an evaluation, a checkpoint, the end. So a
// loss that is not finite is seen at most one step late, before anything was logged or saved, and
// is reported, and the run ended, for the step that it belongs to: all that can be seen from
// outside is as on the CPU.
//
// A sample that cannot be used, to train on or to evaluate on, ends the run, too, but what was done
// is saved before: when the data are repaired, the run goes on there. That may be in the middle of a
// step of several batches: the sums of those that are done are states, and a checkpoint says how
// many they are (parts).
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

// By all steps that are done.
static int64_t batches_taken(const mlrt_loop *l) {
  const mlrt_position *at = &l->at.position;
  return at->epoch * l->recipe.batches_per_epoch + at->index / mlrt_batch_size(l->trainer.program) -
         l->at.parts;
}

// --- one step

// Adds weight * results of a run to the sums of the step's results of the same name.
static void add_to_window(mlrt_loop *l, const mlrt_untaken *run, double weight) {
  const mlrt_func *f = run->func;
  bool whole = f == &l->trainer.program->funcs[MLRT_STEP];
  for (int i = 0; i < f->num_results && i < MLRT_MAX_RESULTS; i++) {
    const mlrt_result *r = &f->results[i];
    if (!mlrt_result_is_scalar(r))
      continue;
    double v = mlrt_trainer_result(&l->trainer, run->slot, r);
    int k = whole ? i : l->same_of_step[i];
    if (r->kind == MLRT_LOSS)
      l->loss += v;
    if (k >= 0)
      l->at.window[k] += weight * v;
  }
}

// Results that every batch has (loss, metrics) are averaged over the batches of a step; those of
// the step function alone (a learning rate, a gradient norm) are the step's.
static void add_step_only(mlrt_loop *l, int slot) {
  const mlrt_func *step = &l->trainer.program->funcs[MLRT_STEP];
  for (int k = 0; k < step->num_results && k < MLRT_MAX_RESULTS; k++)
    if (mlrt_result_is_scalar(&step->results[k]) && l->step_only[k])
      l->at.window[k] += (1 - 1 / (double)l->recipe.accumulate) *
                         mlrt_trainer_result(&l->trainer, slot, &step->results[k]);
}

// False: the run must end here, because of --stop-on-nan.
static bool check_loss(mlrt_loop *l, double loss, int64_t step) {
  if (isfinite(loss) || l->warned)
    return true;
  l->warned = true;
  mlrt_progress_clear(&l->progress);
  bool stop = l->trainer.options->stop_on_nan;
  fprintf(stderr, "warning: the loss is %s at step %" PRId64 "%s\n",
          isnan(loss) ? "nan" : "infinite", step,
          stop ? "; stopped before it was saved" : "; training goes on (--stop-on-nan)");
  return !stop;
}

// Takes the results of the last run that was started. False: the run must end here.
static bool settle(mlrt_loop *l) {
  mlrt_untaken run = l->untaken;
  if (!run.func)
    return true;
  l->untaken.func = NULL;
  add_to_window(l, &run, 1 / (double)l->recipe.accumulate);
  if (run.func != &l->trainer.program->funcs[MLRT_STEP])
    return true;
  if (l->recipe.accumulate > 1)
    add_step_only(l, run.slot);
  l->at.window_steps++;
  double loss = l->loss;
  l->loss = 0;
  return check_loss(l, loss, run.step);
}

// False: the run must end here.
static bool next_batch(mlrt_loop *l, mlrt_batch *b) {
  double begun = mlrt_profile_begin(&l->profile);
  if (mlrt_trainer_next(&l->trainer, l->batches, b, &l->error) != MLRT_BATCH) {
    l->bad_data = settle(l); // what ends the run there comes first
    return false;
  }
  mlrt_profile_end(&l->profile, MLRT_PHASE_DATA, begun);
  return true;
}

// Starts `f` on the next batch, then takes what is to be taken. False: the run must end here.
static bool run_part(mlrt_loop *l, const mlrt_func *f) {
  mlrt_batch b;
  if (!next_batch(l, &b))
    return false;
  double begun = mlrt_profile_begin(&l->profile);
  mlrt_trainer_run_batch(&l->trainer, f, l->batches, &b);
  bool fine = settle(l);
  l->untaken = (mlrt_untaken){f, b.slot, l->at.step + 1};
  l->ran = true;
  l->at.position = mlrt_batches_position(l->batches);
  fine = fine && (mlrt_trainer_lags(&l->trainer) || settle(l));
  mlrt_profile_end(&l->profile, MLRT_PHASE_STEP, begun);
  return fine;
}

// False: the run must end here.
static bool run_step(mlrt_loop *l) {
  const mlrt_func *funcs = l->trainer.program->funcs;
  for (; l->at.parts + 1 < l->recipe.accumulate; l->at.parts++)
    if (!run_part(l, &funcs[MLRT_ACCUMULATE]))
      return false;
  if (!run_part(l, &funcs[MLRT_STEP]))
    return false;
  l->at.parts = 0;
  l->at.step++;
  return true;
}

// --- what follows a step

static void window_means(const mlrt_loop *l, double *means) {
  int64_t n = l->at.window_steps > 0 ? l->at.window_steps : 1;
  for (int i = 0; i < MLRT_MAX_RESULTS; i++)
    means[i] = l->at.window[i] / (double)n;
}

static mlrt_progress_line make_line(const mlrt_loop *l, const double *means) {
  return (mlrt_progress_line){l->at.step, mlrt_recipe_epoch(&l->recipe, batches_taken(l)),
                              &l->trainer.program->funcs[MLRT_STEP], means};
}

static double elapsed(const mlrt_loop *l) {
  return mlrt_seconds() - l->trainer.started;
}

static void say_metrics_kept(mlrt_loop *l) {
  if (l->metrics.kept)
    mlrt_progress_say(&l->progress, "the metrics of an earlier run are kept as '%s'",
                      l->metrics.keeper.old);
  l->metrics.kept = false;
}

static void log_window(mlrt_loop *l) {
  double begun = mlrt_profile_begin(&l->profile);
  double means[MLRT_MAX_RESULTS];
  window_means(l, means);
  mlrt_progress_line line = make_line(l, means);
  mlrt_progress_log(&l->progress, &line);
  mlrt_metrics_train(&l->metrics, l->at.step, line.epoch);
  mlrt_metrics_values(&l->metrics, line.func, means);
  mlrt_metrics_end(&l->metrics, elapsed(l));
  say_metrics_kept(l);
  l->at.window_steps = 0;
  memset(l->at.window, 0, sizeof l->at.window);
  mlrt_profile_end(&l->profile, MLRT_PHASE_LOG, begun);
}

static void draw(mlrt_loop *l) {
  double means[MLRT_MAX_RESULTS];
  window_means(l, means);
  mlrt_progress_line line = make_line(l, means);
  mlrt_progress_live(&l->progress, &line);
}

// False: the run must end here.
static bool begin_training_data(mlrt_loop *l) {
  mlrt_order order = {.data = l->train,
                      .use = MLRT_USE_TRAIN,
                      .shuffle = l->recipe.shuffle,
                      .seed = l->at.seed,
                      .from = l->at.position};
  l->bad_data = !mlrt_trainer_begin(&l->trainer, l->batches, &order, &l->error);
  return !l->bad_data;
}

static void report_eval(mlrt_loop *l, const mlrt_means *means) {
  const mlrt_func *f = &l->trainer.program->funcs[MLRT_EVAL];
  const char *name = mlrt_data_name(l->eval);
  mlrt_metrics_eval(&l->metrics, name, l->at.step);
  mlrt_metrics_values(&l->metrics, f, means->value);
  mlrt_metrics_end(&l->metrics, elapsed(l));
  say_metrics_kept(l);
  if (l->trainer.options->quiet)
    return;
  mlrt_progress_clear(&l->progress);
  printf("%s after step %" PRId64 ":", name, l->at.step);
  mlrt_print_values(stdout, f, means->value);
  printf("  (%" PRId64 " samples)\n", means->samples);
  mlrt_progress_flush();
}

// False: the run must end here.
static bool evaluate(mlrt_loop *l) {
  double begun = mlrt_profile_begin(&l->profile);
  mlrt_means means;
  mlrt_evaluated how = mlrt_evaluate(&l->trainer, l->batches, l->eval, &means, &l->error);
  if (how == MLRT_EVAL_WHOLE) {
    report_eval(l, &means);
    l->at.evaluated = l->at.step;
    l->saved = -1; // a file of this step, if any, does not know it
  }
  l->bad_data = how == MLRT_EVAL_BAD;
  bool fine = !l->bad_data && begin_training_data(l);
  mlrt_profile_end(&l->profile, MLRT_PHASE_EVAL, begun);
  return fine;
}

static void say_kept(mlrt_loop *l) {
  const mlrt_saver *s = &l->saver;
  if (s->kept == MLRT_KEPT_EARLIER)
    mlrt_progress_say(&l->progress, "the checkpoint of an earlier run is kept as '%s'",
                      s->keeper.old);
  if (s->kept != MLRT_KEPT_MEANWHILE || l->crowded)
    return;
  l->crowded = true;
  mlrt_progress_clear(&l->progress);
  fprintf(stderr,
          "warning: another program saves to '%s', too: its checkpoint is kept as '%s', in the "
          "place of any earlier one; give each run its own with --save\n",
          s->place.path, s->keeper.old);
}

// Long enough for large files of another run; one that was stopped in a save must not keep this one from its end.
enum { LAST_SAVE_WAITS = 60 };

// A failed save in the middle is a warning: the earlier file is whole, the next save may work,
// and ending here would lose more. At the end of the run it is an error.
static bool save(mlrt_loop *l, bool last) {
  if (!l->saver.place.path || l->saved == l->at.step)
    return true;
  l->saver.patience = last ? LAST_SAVE_WAITS : 0;
  double begun = mlrt_profile_begin(&l->profile);
  mlrt_metrics_sync(&l->metrics);
  say_metrics_kept(l);
  mlrt_error e;
  bool ok = mlrt_saver_save(&l->saver, &l->trainer.device, &l->at, &e);
  mlrt_profile_end(&l->profile, MLRT_PHASE_SAVE, begun);
  say_kept(l);
  if (ok)
    l->saved = l->at.step;
  else {
    mlrt_progress_clear(&l->progress);
    fprintf(stderr, "%s: %s\n", last ? "error" : "warning", e.text);
  }
  return ok;
}

// Somebody waits for an answer: a periodic save says nothing.
static void save_for_signal(mlrt_loop *l, int number) {
  if (!l->saver.place.path)
    mlrt_progress_say(&l->progress,
                      "signal %d after step %" PRId64 ": nothing is saved (--no-save)", number,
                      l->at.step);
  else if (save(l, false))
    mlrt_progress_say(&l->progress, "signal %d: '%s' is saved, after step %" PRId64, number,
                      l->saver.place.path, l->at.step);
}

// --- the run

static bool is_running(const mlrt_loop *l) {
  return l->at.step < l->recipe.steps && !mlrt_signals_pending();
}

static bool log_is_due(const mlrt_loop *l) {
  return is_due(l, l->recipe.log_every) || l->at.step == l->recipe.steps;
}

// What is due after a step. False: the run must end here.
static bool follow_step(mlrt_loop *l) {
  bool log = log_is_due(l), see = !log && mlrt_progress_wants(&l->progress);
  bool evaluation = mlrt_loop_eval_due(l), checkpoint = is_due(l, l->recipe.save_every);
  int asked = mlrt_signals_take_save();
  if ((log || see || evaluation || checkpoint || asked) && !settle(l))
    return false;
  if (log)
    log_window(l);
  else if (see)
    draw(l);
  if (evaluation && !mlrt_signals_pending() && !evaluate(l))
    return false;
  if (checkpoint)
    save(l, false);
  if (asked)
    save_for_signal(l, asked);
  return true;
}

// False after --stop-on-nan and bad data, or when the end of the run could not be saved.
static bool run_steps(mlrt_loop *l) {
  if (!begin_training_data(l))
    return false;
  if (mlrt_loop_eval_due(l) && !evaluate(l)) // the stopped run was interrupted in it
    return false;
  while (is_running(l))
    if (!run_step(l) || !follow_step(l))
      return false;
  return settle(l) && save(l, true);
}

// What follows --resume to go on with the file that this run saves to.
static const char *equals(const mlrt_loop *l) {
  return l->trainer.options->save ? "=" : "";
}

static const char *equal_to(const mlrt_loop *l) {
  return l->trainer.options->save ? l->saver.place.path : "";
}

static void say_stopped(mlrt_loop *l, int number) {
  if (l->saver.place.path)
    mlrt_progress_say(&l->progress,
                      "stopped by signal %d after step %" PRId64
                      "; '%s' is saved: go on with --resume%s%s",
                      number, l->at.step, l->saver.place.path, equals(l), equal_to(l));
  else
    mlrt_progress_say(&l->progress, "stopped by signal %d after step %" PRId64 "; nothing is saved",
                      number, l->at.step);
}

// Whether what this run has done is in its file, so that it is not lost with bad data. A run that has
// not come to its first batch has done nothing: it leaves a file that may be there alone.
static bool keep(mlrt_loop *l) {
  if (!l->ran || !l->saver.place.path)
    return false;
  // Of a step that is not whole nobody has looked at the loss yet.
  return check_loss(l, l->loss, l->at.step + 1) && save(l, true);
}

static void say_bad_data(mlrt_loop *l) {
  bool kept = keep(l);
  mlrt_progress_clear(&l->progress);
  if (!kept)
    mlrt_complain("%s", l->error.text);
  else
    mlrt_complain("%s\nnote: '%s' is saved, after step %" PRId64
                  ": go on with --resume%s%s when the data are repaired",
                  l->error.text, l->saver.place.path, l->at.step, equals(l), equal_to(l));
}

static void say_done(mlrt_loop *l) {
  double seconds = mlrt_seconds() - l->progress.started;
  mlrt_progress_say(&l->progress, "done: %" PRId64 " steps in %.2f s%s%s%s", l->at.step, seconds,
                    l->saver.place.path ? "; saved '" : "",
                    l->saver.place.path ? l->saver.place.path : "", l->saver.place.path ? "'" : "");
}

int mlrt_train(const mlrt_program *p, mlrt_options *o) {
  if (!mlrt_has_func(p, MLRT_STEP)) // steps would be counted, and a checkpoint saved that says so
    mlrt_fail(MLRT_EXIT_USAGE, "the program has no step function: it cannot train");
  mlrt_loop l;
  mlrt_loop_open(&l, p, o);
  bool fine = run_steps(&l);
  int stopped = l.at.step < l.recipe.steps || mlrt_loop_eval_due(&l) ? mlrt_signals_pending() : 0;
  if (l.bad_data)
    say_bad_data(&l);
  else if (stopped && fine)
    say_stopped(&l, stopped);
  else if (fine)
    say_done(&l);
  mlrt_progress_clear(&l.progress);
  mlrt_progress_close();
  fine &= mlrt_loop_close(&l);
  return !fine ? MLRT_EXIT_INPUT : stopped ? 128 + stopped : MLRT_EXIT_OK;
}
