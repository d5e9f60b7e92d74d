// check_program.c: the whole program on random batches: init and three steps give the same bits
// with any number of threads (on a GPU: as one graph or launch by launch) and whatever lies in the
// temporaries before; a checkpoint written and read again is the same state.
#include "runtime/commands.h"
#include "runtime/random.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 3 };

static void fill_batch(mlrt_trainer *t, int slot, uint64_t number) {
  const mlrt_program *p = t->program;
  t->device.calls->staged(&t->device);
  for (int i = 0; i < p->num_inputs; i++) {
    const mlrt_input *in = &p->inputs[i];
    mlrt_random r = {.seed = number * 16 + (uint64_t)i};
    mlrt_random_fill(&r, mlrt_staged_input(&t->device, i, slot), in->bytes, in->dtype, in->limit);
  }
}

static void spoil_temporaries(mlrt_trainer *t, int byte) {
  const mlrt_program *p = t->program;
  t->device.calls->fill(&t->device, p->state_bytes + p->staging_bytes, p->temp_bytes, byte);
}

static void run_steps(mlrt_trainer *t, int garbage) {
  const mlrt_func *funcs = t->program->funcs;
  spoil_temporaries(t, garbage);
  mlrt_trainer_init(t, 1);
  uint64_t batch = 0;
  for (int i = 0; i < STEPS; i++) {
    if (mlrt_has_func(t->program, MLRT_ACCUMULATE)) {
      fill_batch(t, 1, ++batch);
      mlrt_trainer_run(t, &funcs[MLRT_ACCUMULATE], 1);
    }
    fill_batch(t, 0, ++batch);
    spoil_temporaries(t, garbage);
    mlrt_trainer_run(t, &funcs[MLRT_STEP], 0);
  }
}

// The states after some steps, as bytes like those at the start of the arena.
static char *states_after_steps(const mlrt_program *p, const mlrt_options *with, int garbage) {
  mlrt_options own = *with;
  mlrt_trainer t;
  mlrt_trainer_open(&t, p, &own);
  run_steps(&t, garbage);
  char *states = malloc((size_t)p->state_bytes + 1);
  if (!states)
    mlrt_fail(MLRT_EXIT_MEMORY, "out of memory in check");
  mlrt_device_get(&t.device, 0, states, p->state_bytes);
  mlrt_trainer_close(&t);
  return states;
}

// Name of the first state that differs; NULL: none.
static const char *first_difference(const mlrt_program *p, const char *a, const char *b) {
  for (int i = 0; i < p->num_states; i++) {
    const mlrt_tensor *s = &p->states[i];
    if (s->role != MLRT_FLAG && memcmp(a + s->offset, b + s->offset, (size_t)s->bytes))
      return s->name;
  }
  return NULL;
}

static int verdict(const char *what, const char *differs) {
  if (differs)
    printf("%s: FAILED: '%s' differs\n", what, differs);
  else
    printf("%s: ok\n", what);
  return differs != NULL;
}

// The same steps once more, with other garbage in the temporaries.
static int check_again(const mlrt_program *p, const mlrt_options *with, const char *one,
                       const char *what) {
  char *again = states_after_steps(p, with, 0xFF);
  int failed = verdict(what, first_difference(p, one, again));
  free(again);
  return failed;
}

static int check_threads(const mlrt_program *p, const mlrt_options *o, const char *one) {
  int given = o->threads ? (int)o->threads : mlrt_online_cores();
  int tried[] = {2, 3, given};
  int failures = 0;
  for (int i = 0; i < 3; i++) {
    if (i == 2 && given <= 3)
      break;
    char what[96];
    mlrt_options with = *o;
    with.threads = tried[i];
    snprintf(what, sizeof what, "%d steps, 1 and %d threads: same bits", STEPS, tried[i]);
    failures += check_again(p, &with, one, what);
  }
  return failures;
}

// A GPU's threads are its own: twice, and with its launches one by one.
static int check_launches(const mlrt_program *p, const mlrt_options *o, const char *one) {
  char what[96];
  mlrt_options with = *o;
  snprintf(what, sizeof what, "%d steps, twice: same bits", STEPS);
  int failures = check_again(p, &with, one, what);
  with.no_cuda_graph = !o->no_cuda_graph;
  snprintf(what, sizeof what, "%d steps, with and without a CUDA graph: same bits", STEPS);
  return failures + check_again(p, &with, one, what);
}

static void read_back(const mlrt_program *p, const char *path, char *states) {
  mlrt_checkpoint c;
  mlrt_error e;
  mlrt_device memory = mlrt_device_memory(states);
  if (!mlrt_checkpoint_open(&c, p, path, &e) || !mlrt_checkpoint_read(&c, p, &memory, &e))
    mlrt_fail_with(&e);
  mlrt_checkpoint_close(&c);
}

static int check_round_trip(const mlrt_program *p, const mlrt_options *o, char *states) {
  const char *folder = getenv("TMPDIR");
  char *path;
  // Not the model's name: with it, that of the file may be longer than a file system takes.
  if (asprintf(&path, "%s/mltc-check-%d.safetensors", folder && *folder ? folder : "/tmp",
               (int)getpid()) < 0)
    mlrt_fail(MLRT_EXIT_MEMORY, "out of memory in check");
  unlink(path); // of a check that was killed: nothing to keep
  mlrt_saver s;
  mlrt_error e;
  mlrt_run_point at = {.step = STEPS, .samples = 1, .seed = 1};
  mlrt_device memory = mlrt_device_memory(states);
  if (!mlrt_saver_open(&s, p, o, path, &e) || !mlrt_saver_save(&s, &memory, &at, &e))
    mlrt_fail_with(&e);
  mlrt_saver_close(&s);
  char *again = calloc(1, (size_t)p->state_bytes + 1);
  if (!again)
    mlrt_fail(MLRT_EXIT_MEMORY, "out of memory in check");
  read_back(p, path, again);
  unlink(path);
  free(path);
  int failures =
      verdict("checkpoint written and read: same bits", first_difference(p, states, again));
  free(again);
  return failures;
}

int mlrt_check_program(const mlrt_program *p, mlrt_options *o) {
  mlrt_options with = *o;
  with.threads = 1;
  char *one = states_after_steps(p, &with, 0x00);
  int failures = p->gpu ? check_launches(p, &with, one) : check_threads(p, o, one);
  failures += check_round_trip(p, o, one);
  free(one);
  return failures;
}
