// cmd_diff.c: `mltc diff A.json B.json`: what has changed from one memory plan to another.
#include "driver/cmd_diff.h"

#include <errno.h>
#include <string.h>

#include "driver/plan_diff.h"

enum { SAME = 0, DIFFERENT = 1, TROUBLE = 2 };

static int trouble(const char *why) {
  fprintf(stderr, "mltc: %s\n", why);
  return TROUBLE;
}

// The files' names; false when they are not two, or an option is unknown.
static bool parse(int argc, char **argv, const char **names, bool *json) {
  int num = 0;
  for (int i = 1; i < argc; i++)
    if (strcmp(argv[i], "--json") == 0)
      *json = true;
    else if (argv[i][0] == '-' || num == 2)
      return false;
    else
      names[num++] = argv[i];
  return num == 2;
}

static int compare(ir_arena *arena, const char *const *names, bool json) {
  const char *why = NULL;
  const plan_file *a = plan_file_open(arena, PLAN_FILE_COMPARED, names[0], &why);
  const plan_file *b = a ? plan_file_open(arena, PLAN_FILE_COMPARED, names[1], &why) : NULL;
  if (!b)
    return trouble(why);
  plan_diff d = plan_diff_find(arena, a, b);
  ir_buf out = ir_buf_new(arena);
  (json ? plan_diff_print_json : plan_diff_print)(&d, &out);
  if (fwrite(ir_buf_str(&out), 1, out.len, stdout) != out.len || fflush(stdout) != 0)
    return trouble(ir_format(arena, "cannot write: %s", strerror(errno)));
  return d.same ? SAME : DIFFERENT;
}

int cmd_diff(int argc, char **argv) {
  const char *names[2] = {0};
  bool json = false;
  if (!parse(argc, argv, names, &json))
    return trouble("usage: mltc diff [--json] A.json B.json");
  ir_arena *a = ir_arena_new();
  int status = compare(a, names, json);
  ir_arena_free(a);
  return status;
}
