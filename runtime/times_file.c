// times_file.c: see times_file.h.
#include "runtime/times_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/error.h"

static _Noreturn void fail(const char *path) {
  mlrt_fail(MLRT_EXIT_INPUT, "cannot write the kernels' times '%s': %s", path, strerror(errno));
}

// Never waits: a pipe that nobody reads is an error (ENXIO), as signals wait for the end of this.
static int open_to_write(const char *path, int more) {
  return open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | more, 0666);
}

static bool is_pipe(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISFIFO(st.st_mode);
}

void mlrt_times_check(const char *path) {
  if (is_pipe(path)) // whose reader would see an end
    return;
  int fd = open_to_write(path, 0);
  bool is_new = fd < 0 && errno == ENOENT;
  if (is_new)
    fd = open_to_write(path, O_CREAT);
  if (fd < 0)
    fail(path);
  close(fd);
  if (is_new)
    unlink(path);
}

FILE *mlrt_times_begin(const char *path) {
  int fd = open_to_write(path, O_CREAT | O_TRUNC);
  if (fd < 0 || fcntl(fd, F_SETFL, 0) < 0)
    fail(path);
  FILE *f = fdopen(fd, "w");
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
