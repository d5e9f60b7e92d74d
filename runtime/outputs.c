// outputs.c: see outputs.h.
#include "runtime/outputs.h"
#include "runtime/data_reader.h"
#include "runtime/files.h"
#include "runtime/keep.h"
#include "runtime/trainer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct output {
  const char *option, *path; // NULL: it is not written
  bool replaces;             // the checkpoint that this run goes on from
  bool beside; // where what an earlier run has left is kept: may be another name of it
} output;

static bool is_data(const mlrt_program *p, const mlrt_options *o, const char *path) {
  for (int i = 0; i < p->num_data; i++)
    if (mlrt_data_is_at(p, o->data_dir, &p->data[i], path))
      return true;
  return false;
}

// What the command begins with, NULL: nothing.
static const char *checkpoint_read(const mlrt_options *o) {
  bool reads = o->resume || o->command != MLRT_CMD_TRAIN;
  if (!reads || o->weights)
    return NULL;
  return o->resume_file ? o->resume_file : mlrt_save_path(o);
}

static void check(const mlrt_program *p, const mlrt_options *o, const output *out) {
  const char *from = checkpoint_read(o);
  if (is_data(p, o, out->path))
    mlrt_fail(MLRT_EXIT_USAGE, "--%s: '%s' has data that this run reads", out->option, out->path);
  if (mlrt_same_file("/proc/self/exe", out->path))
    mlrt_fail(MLRT_EXIT_USAGE, "--%s: '%s' is this program", out->option, out->path);
  if (p->source_path && mlrt_same_file(p->source_path, out->path))
    mlrt_fail(MLRT_EXIT_USAGE, "--%s: '%s' is what this program was made from", out->option,
              out->path);
  if (o->weights && mlrt_same_file(o->weights, out->path))
    mlrt_fail(MLRT_EXIT_USAGE, "--%s: '%s' has the weights that this run reads; name another file",
              out->option, out->path);
  if (from && !out->replaces && mlrt_same_file(from, out->path))
    mlrt_fail(MLRT_EXIT_USAGE, "--%s: '%s' is the checkpoint that this run reads", out->option,
              out->path);
}

void mlrt_check_output(const mlrt_program *p, const mlrt_options *o, const char *option,
                       const char *path) {
  check(p, o, &(output){option, path, false, false});
}

// A file whose place a new one takes, and what is beside it for that. All NULL: none is.
typedef struct replaced {
  mlrt_place place;
  mlrt_keeper keeper;
} replaced;

static replaced replaced_at(const char *path) {
  replaced r = {0};
  if (!path)
    return r;
  if (!mlrt_place_open(&r.place, path) || !mlrt_keeper_open(&r.keeper, r.place.path))
    mlrt_fail(MLRT_EXIT_MEMORY, "out of memory");
  return r;
}

static void forget(replaced *r) {
  mlrt_keeper_close(&r->keeper);
  mlrt_place_close(&r->place);
}

void mlrt_check_outputs(const mlrt_program *p, const mlrt_options *o) {
  bool trains = o->command == MLRT_CMD_TRAIN;
  replaced save = replaced_at(trains && !o->no_save ? mlrt_save_path(o) : NULL);
  replaced metrics = replaced_at(trains ? o->metrics : NULL);
  const output outputs[] = {{"save", save.place.path, true, false},
                            {"save", save.place.temp, false, false},
                            {"save", save.keeper.old, true, true},
                            {"save", save.keeper.link, true, true},
                            {"metrics", o->metrics, false, false},
                            {"metrics", metrics.place.temp, false, false},
                            {"metrics", metrics.keeper.old, false, true},
                            {"metrics", metrics.keeper.link, false, true},
                            {"profile", o->profile, false, false},
                            {"kernel-times", o->kernel_times, false, false}};
  enum { NUM = sizeof outputs / sizeof *outputs };
  for (int i = 0; i < NUM; i++) {
    const output *x = &outputs[i];
    if (!x->path)
      continue;
    check(p, o, x);
    for (int j = 0; j < i; j++)
      if (outputs[j].path && !(x->beside && !strcmp(x->option, outputs[j].option)) &&
          mlrt_same_file(x->path, outputs[j].path))
        mlrt_fail(MLRT_EXIT_USAGE, "--%s and --%s are one file, '%s'", outputs[j].option, x->option,
                  x->path);
  }
  forget(&save);
  forget(&metrics);
}
