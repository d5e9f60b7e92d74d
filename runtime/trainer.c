// trainer.c: see trainer.h.
#include "runtime/trainer.h"
#include "runtime/number_io.h"
#include "runtime/recipe.h"
#include "runtime/signals.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

double mlrt_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// --- life

// States, batches and temporaries are exactly the arena; every tensor lies inside its part.
static void check_plan(const mlrt_program *p) {
  if (p->abi != MLRT_ABI)
    mlrt_fail(MLRT_EXIT_INTERNAL, "the program was generated for another runtime (ABI %d, not %d)",
              p->abi, MLRT_ABI);
  if (p->state_bytes + p->staging_bytes + p->temp_bytes != p->arena_bytes)
    mlrt_fail(MLRT_EXIT_INTERNAL, "the plan's parts are not its whole");
  for (int i = 0; i < p->num_states; i++)
    if (p->states[i].offset < 0 || p->states[i].offset + p->states[i].bytes > p->state_bytes)
      mlrt_fail(MLRT_EXIT_INTERNAL, "state '%s' lies outside the plan", p->states[i].name);
}

static int num_threads(const mlrt_trainer *t) {
  int cores = mlrt_online_cores(), most = t->device.calls->most_threads;
  return t->options->threads ? (int)t->options->threads : most && cores > most ? most : cores;
}

static void put_number(mlrt_trainer *t, const mlrt_tensor *s, double value) {
  char bytes[sizeof(double)];
  mlrt_store(bytes, s->dtype, value);
  mlrt_device_put(&t->device, s->offset, bytes, mlrt_dtype_bytes(s->dtype));
}

// Writes the present flag values into their states.
static void set_flags(mlrt_trainer *t) {
  for (int i = 0; i < t->options->num_flags; i++) {
    const mlrt_flag *f = &t->options->flags[i];
    put_number(t, f->state, f->value);
  }
}

void mlrt_trainer_open(mlrt_trainer *t, const mlrt_program *p, mlrt_options *o) {
  *t = (mlrt_trainer){.program = p, .options = o, .started = mlrt_seconds()};
  check_plan(p);
  t->device = mlrt_device_for(p);
  mlrt_signals_block(); // threads of the team and of a driver never run the handlers
  t->device.calls->open(&t->device, o);
  t->device.calls->allocate(&t->device, o);
  int threads = num_threads(t);
  t->team = mlrt_team_new(threads);
  if (!t->team)
    mlrt_fail(MLRT_EXIT_MEMORY, "cannot start %d threads: %s\nhelp: --threads=N starts fewer",
              threads, strerror(errno));
  mlrt_signals_unblock();
  t->device.team = t->team;
  set_flags(t);
}

void mlrt_trainer_close(mlrt_trainer *t) {
  mlrt_team_free(t->team);
  t->device.calls->close(&t->device);
}

void mlrt_trainer_init(mlrt_trainer *t, uint64_t seed) {
  const mlrt_program *p = t->program;
  for (int i = 0; i < p->num_states; i++) {
    const mlrt_tensor *s = &p->states[i];
    if (s->role == MLRT_SEED) // not through double: all 64 bits count
      mlrt_device_put(&t->device, s->offset, &seed, sizeof seed);
    else if (s->role == MLRT_COUNTER)
      put_number(t, s, s->value);
  }
  mlrt_trainer_run(t, &p->funcs[MLRT_INIT], 0);
}

static int number_of(const mlrt_trainer *t, const mlrt_func *f) {
  return (int)(f - t->program->funcs);
}

void mlrt_trainer_run(mlrt_trainer *t, const mlrt_func *f, int slot) {
  if (mlrt_has_func(t->program, number_of(t, f)))
    t->device.calls->run(&t->device, number_of(t, f), slot, NULL);
}

void mlrt_trainer_run_batch(mlrt_trainer *t, const mlrt_func *f, mlrt_batches *b,
                            const mlrt_batch *batch) {
  if (!mlrt_has_func(t->program, number_of(t, f)))
    return; // and hand nothing out that nobody would do
  mlrt_spare ahead = mlrt_batches_ahead(b);
  t->device.calls->run(&t->device, number_of(t, f), batch->slot, &ahead);
}

bool mlrt_result_is_scalar(const mlrt_result *r) {
  return r->kind != MLRT_OUTPUT;
}

double mlrt_trainer_result(mlrt_trainer *t, int slot, const mlrt_result *r) {
  return mlrt_load(t->device.calls->result(&t->device, slot, r), r->dtype);
}

bool mlrt_trainer_lags(const mlrt_trainer *t) {
  return t->device.calls->lags;
}

// --- batches

// A batch smaller than this is copied faster than a thread is woken.
enum { PREFETCH_BYTES = 256 << 10 };

mlrt_batches *mlrt_trainer_batches(mlrt_trainer *t, mlrt_error *e) {
  bool threaded = t->program->staging_slot_bytes >= PREFETCH_BYTES;
  return mlrt_batches_open(t->program, t->device.staging, threaded, e);
}

bool mlrt_trainer_begin(mlrt_trainer *t, mlrt_batches *b, const mlrt_order *order, mlrt_error *e) {
  t->device.calls->staged(&t->device);
  return mlrt_batches_begin(b, order, e);
}

mlrt_next mlrt_trainer_next(mlrt_trainer *t, mlrt_batches *b, mlrt_batch *out, mlrt_error *e) {
  t->device.calls->staged(&t->device);
  return mlrt_batches_next(b, out, e);
}

// --- files

const char *mlrt_save_path(const mlrt_options *o) {
  return o->save ? o->save : o->default_save;
}

static void adopt_flags(const mlrt_checkpoint *c, mlrt_options *o) {
  for (int i = 0; i < o->num_flags; i++) {
    mlrt_flag *f = &o->flags[i];
    double there;
    int digits = mlrt_flag_digits(f);
    if (!mlrt_checkpoint_flag(c, f->state->name, &there) || there == f->value)
      continue;
    if (!f->given && !mlrt_flag_holds(f, there))
      mlrt_fail(MLRT_EXIT_INPUT,
                "the checkpoint was made with --%s=%.9g, which the flag cannot be any more: "
                "say --%s=... to go on with another value",
                f->state->name, there, f->state->name);
    if (!f->given)
      f->value = there;
    else if (!o->quiet)
      printf("--%s is %.*g now; the checkpoint was made with %.*g\n", f->state->name, digits,
             f->value, digits, there);
  }
}

// A flag that was renamed, or is new, would go back to its default without anybody noticing.
static void note_other_flags(const mlrt_checkpoint *c, const mlrt_options *o, const char *path) {
  static const char prefix[] = "flag.";
  const size_t len = sizeof prefix - 1;
  double there;
  for (int i = 0; i < c->header.num_pairs; i++) {
    const mlrt_st_pair *p = &c->header.pairs[i];
    if (strncmp(p->key, prefix, len) == 0 && !mlrt_find_flag(o, p->key + len) &&
        mlrt_checkpoint_flag(c, p->key + len, &there))
      printf("note: '%s' was made with --%s=%.9g, a flag that this program has not\n", path,
             p->key + len, there);
  }
  for (int i = 0; i < o->num_flags; i++) {
    const mlrt_flag *f = &o->flags[i];
    if (!f->given && !mlrt_checkpoint_flag(c, f->state->name, &there))
      printf("note: '%s' says nothing of the flag --%s: it is %.*g\n", path, f->state->name,
             mlrt_flag_digits(f), f->value);
  }
}

// What a graph says that is no kernel, as the order of samples, is in no plan.
static void note_other_program(const mlrt_checkpoint *c, const char *path) {
  if (c->other_source)
    printf(
        "note: '%s' was written by a program made from another text: what has changed in it counts "
        "from here on\n",
        path);
  else if (c->other_plan)
    printf("note: '%s' was written by a program with another plan: results may differ in rounding, "
           "and by what mltc -D and imports have changed\n",
           path);
}

static bool is_whole(const mlrt_program *p, const char *path, const char *advice, mlrt_error *e) {
  mlrt_error broken;
  mlrt_checkpoint c;
  if (!mlrt_checkpoint_open(&c, p, path, &broken))
    return false;
  mlrt_error_add(e, "\nhelp: '%s' is whole, after step %" PRId64 ": %s", path, c.at.step, advice);
  mlrt_checkpoint_close(&c);
  return true;
}

// What a save has left that was killed or could not replace the file, and the checkpoint that it has kept.
static bool is_beside(const mlrt_program *p, const char *path, mlrt_error *e) {
  mlrt_place place;
  mlrt_keeper keeper = {0};
  bool found = false;
  if (mlrt_place_open(&place, path) && mlrt_keeper_open(&keeper, place.path)) {
    found = is_whole(p, place.temp, "give it another name to go on with it", e);
    found |= is_whole(p, keeper.old, "--resume goes on with it, too, when it is named", e);
  }
  mlrt_keeper_close(&keeper);
  mlrt_place_close(&place);
  return found;
}

static void cannot_resume(const mlrt_program *p, const mlrt_options *o, const char *path,
                          mlrt_error *e) {
  bool missing = access(path, F_OK) < 0;
  if (!is_beside(p, path, e) && missing)
    mlrt_error_add(e, "\nhelp: --resume=FILE names the checkpoint%s",
                   o->command == MLRT_CMD_TRAIN ? "; without --resume a new run begins" : "");
  mlrt_fail_with(e);
}

mlrt_checkpoint mlrt_trainer_checkpoint(const mlrt_program *p, mlrt_options *o) {
  const char *path = o->resume_file ? o->resume_file : mlrt_save_path(o);
  mlrt_checkpoint c;
  mlrt_error e;
  if (!mlrt_checkpoint_open(&c, p, path, &e))
    cannot_resume(p, o, path, &e);
  adopt_flags(&c, o);
  if (!o->quiet)
    note_other_flags(&c, o, path);
  o->known = (mlrt_known_characters){c.at.characters, path, false};
  if (!o->quiet)
    note_other_program(&c, path);
  return c;
}

mlrt_dataset *mlrt_trainer_open_data(const mlrt_program *p, const mlrt_options *o,
                                     const mlrt_data *d, mlrt_use use, mlrt_error *e) {
  mlrt_flag_values flags = mlrt_data_flags(o);
  return mlrt_data_open(p, d, use, o->data_dir, &flags, &o->known, e);
}

mlrt_dataset *mlrt_trainer_data(const mlrt_program *p, const mlrt_options *o, const mlrt_data *d,
                                mlrt_use use) {
  mlrt_error e;
  mlrt_dataset *set = mlrt_trainer_open_data(p, o, d, use, &e);
  if (!set)
    mlrt_fail_with(&e);
  return set;
}

void mlrt_print_memory(const mlrt_trainer *t) {
  const mlrt_program *p = t->program;
  printf("memory: %" PRId64 " bytes (states %" PRId64 ", batches %" PRId64 ", temporaries %" PRId64
         ")",
         p->arena_bytes, p->state_bytes, p->staging_bytes, p->temp_bytes);
  if (t->device.host_bytes)
    printf(" on the device and %" PRId64 " bytes of the host", t->device.host_bytes);
  printf(", allocated once\n");
}
