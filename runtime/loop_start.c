// loop_start.c: see loop_start.h. All memory of a run is taken here; the loop takes none.
#include "runtime/loop_start.h"
#include "runtime/outputs.h"
#include "runtime/signals.h"
#include "runtime/weights_load.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

typedef struct opening {
  const mlrt_program *program;
  const mlrt_options *options;
  const mlrt_data *data; // NULL: nothing to read
  mlrt_use use;
  mlrt_dataset *set; // NULL: `error` says why, or there is no data
  mlrt_error error;
} opening;

static void *open_one(void *data) {
  opening *x = data;
  if (x->data)
    x->set = mlrt_trainer_open_data(x->program, x->options, x->data, x->use, &x->error);
  return NULL;
}

static mlrt_dataset *opened(const opening *x) {
  if (x->data && !x->set)
    mlrt_fail_with(&x->error);
  return x->set;
}

// Packed files take their time: those to train on and those to evaluate on are read at the same
// time. What is said about broken ones does not depend on who is faster.
static void open_data(mlrt_loop *l, const mlrt_program *p, const mlrt_options *o) {
  opening train = {p, o, mlrt_train_data(p), MLRT_USE_TRAIN, NULL, {.text = ""}};
  opening eval = {p, o, mlrt_eval_data(p), MLRT_USE_EVAL, NULL, {.text = ""}};
  if (!train.data)
    mlrt_fail(MLRT_EXIT_USAGE, "'%s' names no data to train on", p->source_path);
  pthread_t thread;
  bool together = eval.data && o->threads != 1 && !pthread_create(&thread, NULL, open_one, &eval);
  open_one(&train);
  if (together)
    pthread_join(thread, NULL);
  l->train = opened(&train);
  if (!together)
    open_one(&eval);
  l->eval = opened(&eval);
}

// What ids of texts stand for: it is the same in all of them.
static const mlrt_characters *characters_of(const mlrt_loop *l) {
  const mlrt_characters *train = mlrt_data_characters(l->train);
  return train->num || !l->eval ? train : mlrt_data_characters(l->eval);
}

static void make_recipe(mlrt_loop *l, const mlrt_program *p, const mlrt_options *o) {
  int64_t batches = mlrt_batches_per_epoch(p, l->train, MLRT_USE_TRAIN);
  if (batches < 1)
    mlrt_fail(MLRT_EXIT_INPUT,
              "data '%s' has %" PRId64 " sample%s; one batch needs %" PRId64
              "\nhelp: a batch is the first dimension of the model's inputs; mltc -D NAME=... sets "
              "its `let`",
              mlrt_data_name(l->train), mlrt_data_size(l->train),
              mlrt_data_size(l->train) == 1 ? "" : "s", mlrt_batch_size(p) * mlrt_micro_batches(p));
  mlrt_error e;
  if (!mlrt_recipe_make(&l->recipe, p, o, batches, &e))
    mlrt_fail(MLRT_EXIT_USAGE, "%s", e.text);
  if (l->recipe.accumulate > 1 && !mlrt_has_func(p, MLRT_ACCUMULATE))
    mlrt_fail(MLRT_EXIT_INTERNAL, "the program accumulates but has no function for it");
}

static _Noreturn void refuse_seed(const char *option, int64_t seed) {
  mlrt_fail(MLRT_EXIT_USAGE,
            "the checkpoint was made with --%s=%" PRId64 "; a run cannot go on with another",
            option, seed);
}

static void check_seed(const mlrt_program *p, const mlrt_options *o, const mlrt_checkpoint *c) {
  int64_t seed = (int64_t)c->at.seed;
  if (o->seed_given && o->seed != seed)
    refuse_seed("seed", seed);
  const mlrt_flag *f = mlrt_recipe_seed_flag(p, o);
  if (o->seed_given || !f || !f->given)
    return;
  double there = (double)seed; // where the file does not say what the flag was
  mlrt_checkpoint_flag(c, f->state->name, &there);
  if (f->value != there)
    refuse_seed(f->state->name, (int64_t)there);
}

static void restore(mlrt_loop *l, const mlrt_checkpoint *c) {
  mlrt_error e;
  if (!mlrt_checkpoint_read(c, l->trainer.program, &l->trainer.device, &e))
    mlrt_fail_with(&e);
  l->at = c->at;
  if (c->at.samples != mlrt_data_size(l->train))
    mlrt_fail(MLRT_EXIT_INPUT,
              "the checkpoint was made with %" PRId64 " training samples; data '%s' has %" PRId64,
              c->at.samples, mlrt_data_name(l->train), mlrt_data_size(l->train));
  int64_t batch = mlrt_batch_size(l->trainer.program), index = l->at.position.index;
  if (index % batch || index / batch >= l->recipe.batches_per_epoch)
    mlrt_fail(MLRT_EXIT_INPUT,
              "the checkpoint goes on at sample %" PRId64 " of %" PRId64
              ", where no batch of %" PRId64 " begins: it was made with another batch size",
              index, c->at.samples, batch);
  if (l->at.step > l->recipe.steps)
    mlrt_fail(MLRT_EXIT_USAGE,
              "the checkpoint is at step %" PRId64 ", beyond the %" PRId64 " steps wanted",
              l->at.step, l->recipe.steps);
  // The sums are of gradients divided by their number.
  bool other = l->at.parts && l->at.parts_of && l->at.parts_of != l->recipe.accumulate;
  if (other || l->at.parts >= l->recipe.accumulate)
    mlrt_fail(MLRT_EXIT_USAGE,
              "the checkpoint is in the middle of a step, after %" PRId64
              " of its batches; a step of this program has another number of them, %" PRId64,
              l->at.parts, l->recipe.accumulate);
}

static void start(mlrt_loop *l, const mlrt_program *p, const mlrt_options *o) {
  l->at = (mlrt_run_point){.samples = mlrt_data_size(l->train)};
  mlrt_error e;
  if (!mlrt_recipe_seed(&l->at.seed, p, o, &e))
    mlrt_fail(MLRT_EXIT_USAGE, "%s", e.text);
  if (o->weights)
    mlrt_weights_begin(&l->trainer, l->at.seed);
  else
    mlrt_trainer_init(&l->trainer, l->at.seed);
}

static void open_files(mlrt_loop *l, const mlrt_program *p, const mlrt_options *o,
                       const mlrt_checkpoint *resumed) {
  mlrt_error e;
  if (!o->no_save && !mlrt_saver_open(&l->saver, p, o, mlrt_save_path(o), &e))
    mlrt_fail_with(&e);
  if (!o->no_save && o->resume)
    mlrt_saver_go_on(&l->saver, resumed);
  bool branches = o->resume_file && !mlrt_same_file(o->resume_file, mlrt_save_path(o));
  mlrt_metrics_from from = {l->at.step, mlrt_loop_eval_due(l) ? mlrt_data_name(l->eval) : NULL,
                            branches ? mlrt_save_path(o) : NULL};
  if (!mlrt_profile_open(&l->profile, o->profile, &e) || // refused before lines are cut
      !mlrt_metrics_open(&l->metrics, p, o->metrics, !o->no_times, o->resume ? &from : NULL, &e))
    mlrt_fail_with(&e);
}

static void open_batches(mlrt_loop *l) {
  mlrt_error e;
  l->batches = mlrt_trainer_batches(&l->trainer, &e);
  if (!l->batches)
    mlrt_fail_with(&e);
}

static void print_data(const mlrt_dataset *d) {
  if (!d)
    return;
  printf("data: %s, %" PRId64 " samples", mlrt_data_name(d), mlrt_data_size(d));
  int64_t resident = mlrt_data_resident_bytes(d);
  if (mlrt_data_files(d) > 1)
    printf(" of %d files", mlrt_data_files(d));
  if (resident)
    printf(", %" PRId64 " bytes beside the plan", resident);
  putchar('\n');
}

static void greet(const mlrt_loop *l) {
  const mlrt_program *p = l->trainer.program;
  if (l->trainer.options->quiet)
    return;
  int threads = mlrt_team_size(l->trainer.team);
  const char *device = l->trainer.device.name;
  printf("model: %s (%s), %s%s%d thread%s, seed %" PRId64 "\n", p->model, p->source_path, device,
         device[0] ? ", " : "", threads, threads == 1 ? "" : "s", (int64_t)l->at.seed);
  mlrt_print_memory(&l->trainer);
  print_data(l->train);
  print_data(l->eval);
  if (l->trainer.options->resume)
    printf("resumed after step %" PRId64 "\n", l->at.step);
  mlrt_progress_flush();
}

static int find_result(const mlrt_func *f, const char *name) {
  for (int i = 0; i < f->num_results && i < MLRT_MAX_RESULTS; i++)
    if (!strcmp(f->results[i].name, name))
      return i;
  return -1;
}

// Once, and not at each step: some hundred results have some ten thousand pairs.
static void match_results(mlrt_loop *l, const mlrt_program *p) {
  const mlrt_func *step = &p->funcs[MLRT_STEP], *part = &p->funcs[MLRT_ACCUMULATE];
  for (int i = 0; i < part->num_results && i < MLRT_MAX_RESULTS; i++)
    l->same_of_step[i] = find_result(step, part->results[i].name);
  for (int k = 0; k < step->num_results && k < MLRT_MAX_RESULTS; k++)
    l->step_only[k] = find_result(part, step->results[k].name) < 0;
}

void mlrt_loop_open(mlrt_loop *l, const mlrt_program *p, mlrt_options *o) {
  memset(l, 0, sizeof *l);
  l->saved = -1;
  mlrt_check_outputs(p, o);
  mlrt_signals_ignore();
  mlrt_checkpoint c = {.fd = -1};
  if (o->resume) { // first, because it brings flags that data and recipe may depend on
    c = mlrt_trainer_checkpoint(p, o);
    check_seed(p, o, &c);
  }
  if (o->weights)
    mlrt_weights_characters(o);
  open_data(l, p, o);
  make_recipe(l, p, o);
  match_results(l, p);
  mlrt_trainer_open(&l->trainer, p, o);
  if (o->resume)
    restore(l, &c);
  else
    start(l, p, o);
  l->at.parts_of = l->recipe.accumulate;
  l->at.characters = *characters_of(l);
  open_batches(l);
  open_files(l, p, o, &c);
  mlrt_checkpoint_close(&c);
  mlrt_signals_install(); // the run begins
  mlrt_progress_open(&l->progress, o->quiet, l->at.step, l->recipe.steps,
                     mlrt_batch_size(p) * l->recipe.accumulate);
  greet(l);
}

bool mlrt_loop_eval_due(const mlrt_loop *l) {
  return l->eval && l->at.step > 0 && l->at.evaluated != l->at.step &&
         (mlrt_recipe_due(&l->recipe, l->recipe.eval_every, l->at.step) ||
          l->at.step == l->recipe.steps);
}

bool mlrt_loop_close(mlrt_loop *l) {
  mlrt_error e;
  bool fine = mlrt_metrics_close(&l->metrics);
  if (!mlrt_profile_close(&l->profile, &e)) {
    fprintf(stderr, "error: %s\n", e.text);
    fine = false;
  }
  mlrt_batches_close(l->batches);
  mlrt_saver_close(&l->saver);
  mlrt_data_close(l->train);
  mlrt_data_close(l->eval);
  mlrt_trainer_close(&l->trainer);
  return fine;
}
