// times_file.c: see times_file.h.
#include "runtime/times_file.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "runtime/error.h"
#include "runtime/files.h"

static _Noreturn void fail(const char *path) {
  mlrt_fail(MLRT_EXIT_INPUT, "cannot write the kernels' times '%s': %s", path, strerror(errno));
}

void mlrt_times_check(const char *path) {
  if (!mlrt_may_be_written(path))
    fail(path);
  if (!mlrt_has_other_text(path, "{\"version\":"))
    return;
  mlrt_error e;
  mlrt_error_other_file(&e, path, "file of kernels' times, which begins with '{\"version\":'",
                        "--kernel-times");
  mlrt_fail_with(&e);
}

FILE *mlrt_times_begin(const char *path) {
  FILE *f = mlrt_open_output(path);
  if (!f)
    fail(path);
  return f;
}

void mlrt_times_text(FILE *f, const char *name, const char *text) {
  fprintf(f, "\"%s\":\"", name);
  for (const unsigned char *s = (const unsigned char *)text; *s; s++)
    if (*s < ' ' || *s == '"' || *s == '\\')
      fprintf(f, "\\u%04x", *s);
    else
      fputc(*s, f);
  fputc('"', f);
}

void mlrt_times_kernel(FILE *f, const char *name, const char *ops, const char *where,
                       int64_t launches, double seconds) {
  mlrt_times_text(f, "name", name);
  fputc(',', f);
  mlrt_times_text(f, "ops", ops);
  fputc(',', f);
  mlrt_times_text(f, "where", where);
  fprintf(f, ",\"launches\":%" PRId64 ",\"total_us\":%.3f,\"mean_us\":%.3f", launches,
          seconds * 1e6, seconds * 1e6 / (double)launches);
}

void mlrt_times_finish(FILE *f, const char *path) {
  bool bad = ferror(f) != 0;
  if (fclose(f) != 0 || bad)
    fail(path);
}
