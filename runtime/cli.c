// cli.c: from the command line to a command.
#include "runtime/commands.h"
#include "runtime/files.h"
#include "runtime/signals.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

static void print_version(const mlrt_program *p) {
  printf("%s from %s, compiled by %s for %s\nsource %016" PRIx64 ", plan %016" PRIx64 "\n",
         p->model, p->source_path, p->compiler, p->target, p->source_hash, p->plan_hash);
}

// Else another file of the name would seem to be read.
static void note_carried(const mlrt_program *p, const mlrt_options *o) {
  for (int i = 0; o->data_dir && !o->quiet && i < p->num_embedded; i++) {
    char path[PATH_MAX];
    int len = snprintf(path, sizeof path, "%s/%s", o->data_dir, p->embedded[i].name);
    if (len < (int)sizeof path && access(path, F_OK) == 0)
      printf("note: '%s' is carried in the program: '%s' is not read\n", p->embedded[i].name, path);
  }
}

static int run_command(const mlrt_program *p, mlrt_options *o) {
  static int (*const commands[MLRT_NUM_COMMANDS])(const mlrt_program *, mlrt_options *) = {
      mlrt_train, mlrt_eval, mlrt_predict, mlrt_check, mlrt_info};
  note_carried(p, o);
  return commands[o->command](p, o);
}

int mlrt_main(const mlrt_program *p, int argc, char **argv) {
  mlrt_options o;
  mlrt_error e;
  int code = MLRT_EXIT_OK;
  mlrt_occupy_streams();
  mlrt_signals_begin();
  if (!mlrt_options_parse(&o, p, argc, argv, &e)) {
    mlrt_options_free(&o);
    mlrt_fail(MLRT_EXIT_USAGE, "%s", e.text);
  }
  const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
  if (o.help)
    mlrt_options_help(&o, p, slash ? slash + 1 : argv[0], stdout);
  else if (o.version)
    print_version(p);
  else
    code = run_command(p, &o);
  bool trains = !o.help && !o.version && o.command == MLRT_CMD_TRAIN; // what counts is in files
  mlrt_options_free(&o);
  if (!trains && (fflush(stdout) != 0 || ferror(stdout)))
    mlrt_fail(MLRT_EXIT_INPUT, "cannot write to standard output");
  return code;
}
