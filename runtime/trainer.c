// trainer.c: see trainer.h.
#include "runtime/trainer.h"
#include "runtime/number_io.h"
#include "runtime/recipe.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

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

void mlrt_trainer_open(mlrt_trainer *t, const mlrt_program *p, mlrt_options *o) {
  *t = (mlrt_trainer){.program = p, .options = o, .started = mlrt_seconds()};
  check_plan(p);
  mlrt_error e;
  if (!mlrt_arena_map(&t->arena, p->arena_bytes, !o->no_huge_pages, &e))
    mlrt_fail(MLRT_EXIT_MEMORY, "%s", e.text);
  int threads = o->threads ? (int)o->threads : mlrt_online_cores();
  t->team = mlrt_team_new(threads);
  if (!t->team)
    mlrt_fail(MLRT_EXIT_MEMORY, "cannot start %d threads: %s", threads, strerror(errno));
  mlrt_trainer_set_flags(t);
}

void mlrt_trainer_close(mlrt_trainer *t) {
  mlrt_team_free(t->team);
  mlrt_arena_unmap(&t->arena);
}

void mlrt_trainer_set_flags(mlrt_trainer *t) {
  for (int i = 0; i < t->options->num_flags; i++) {
    const mlrt_flag *f = &t->options->flags[i];
    mlrt_store(t->arena.base + f->state->offset, f->state->dtype, f->value);
  }
}

void mlrt_trainer_init(mlrt_trainer *t, uint64_t seed) {
  const mlrt_program *p = t->program;
  for (int i = 0; i < p->num_states; i++) {
    const mlrt_tensor *s = &p->states[i];
    char *at = t->arena.base + s->offset;
    if (s->role == MLRT_SEED)
      memcpy(at, &seed, sizeof seed); // not through double: all 64 bits count
    else if (s->role == MLRT_COUNTER)
      mlrt_store(at, s->dtype, s->value);
  }
  mlrt_trainer_run(t, &p->funcs[MLRT_INIT], 0);
}

void mlrt_trainer_run(mlrt_trainer *t, const mlrt_func *f, int slot) {
  if (f->run)
    mlrt_team_run(t->team, f->run, t->arena.base, slot);
}

void mlrt_trainer_run_batch(mlrt_trainer *t, const mlrt_func *f, mlrt_batches *b,
                            const mlrt_batch *batch) {
  if (!f->run)
    return; // and hand nothing out that nobody would do
  mlrt_spare ahead = mlrt_batches_ahead(b);
  mlrt_team_run_beside(t->team, f->run, t->arena.base, batch->slot, &ahead);
}

bool mlrt_result_is_scalar(const mlrt_result *r) {
  return r->kind != MLRT_OUTPUT;
}

double mlrt_trainer_result(const mlrt_trainer *t, const mlrt_result *r) {
  return mlrt_load(t->arena.base + r->offset, r->dtype);
}

// --- files

const char *mlrt_save_path(const mlrt_program *p, const mlrt_options *o, char *buf, size_t cap) {
  if (o->save)
    return o->save;
  snprintf(buf, cap, "%s.safetensors", p->model);
  return buf;
}

static void adopt_flags(const mlrt_checkpoint *c, mlrt_options *o) {
  for (int i = 0; i < o->num_flags; i++) {
    mlrt_flag *f = &o->flags[i];
    double there;
    if (!mlrt_checkpoint_flag(c, f->state->name, &there) || there == f->value)
      continue;
    if (!f->given)
      f->value = there;
    else if (!o->quiet)
      printf("--%s is %.9g now; the checkpoint was made with %.9g\n", f->state->name, f->value,
             there);
  }
}

mlrt_checkpoint mlrt_trainer_checkpoint(const mlrt_program *p, mlrt_options *o) {
  char buf[256];
  const char *path = o->resume_file ? o->resume_file : mlrt_save_path(p, o, buf, sizeof buf);
  mlrt_checkpoint c;
  mlrt_error e;
  if (!mlrt_checkpoint_open(&c, p, path, &e))
    mlrt_fail(MLRT_EXIT_INPUT, "%s", e.text);
  adopt_flags(&c, o);
  if (c.other_plan && !o->quiet)
    printf(
        "note: '%s' was written by a program with another plan: results may differ in rounding\n",
        path);
  return c;
}

mlrt_dataset *mlrt_trainer_open_data(const mlrt_program *p, const mlrt_options *o,
                                     const mlrt_data *d, mlrt_use use, mlrt_error *e) {
  mlrt_flag_values flags = mlrt_data_flags(o);
  return mlrt_data_open(p, d, use, o->data_dir, &flags, e);
}

mlrt_dataset *mlrt_trainer_data(const mlrt_program *p, const mlrt_options *o, const mlrt_data *d,
                                mlrt_use use) {
  mlrt_error e;
  mlrt_dataset *set = mlrt_trainer_open_data(p, o, d, use, &e);
  if (!set)
    mlrt_fail(MLRT_EXIT_INPUT, "%s", e.text);
  return set;
}

void mlrt_print_memory(const mlrt_trainer *t) {
  const mlrt_program *p = t->program;
  printf("memory: %" PRId64 " bytes (states %" PRId64 ", batches %" PRId64 ", temporaries %" PRId64
         "), allocated once\n",
         t->arena.bytes, p->state_bytes, p->staging_bytes, p->temp_bytes);
}
