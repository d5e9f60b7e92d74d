// error.c: error texts and the one way out of the program (see error.h).
#include "runtime/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((format(printf, 2, 0))) static bool vset(mlrt_error *e, const char *fmt,
                                                       va_list args) {
  vsnprintf(e->text, sizeof e->text, fmt, args);
  return false;
}

bool mlrt_error_set(mlrt_error *e, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  e->exit_code = MLRT_EXIT_INPUT;
  vset(e, fmt, args);
  va_end(args);
  return false;
}

bool mlrt_error_memory(mlrt_error *e, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  e->exit_code = MLRT_EXIT_MEMORY;
  vset(e, fmt, args);
  va_end(args);
  return false;
}

bool mlrt_error_other_file(mlrt_error *e, const char *path, const char *what, const char *option) {
  return mlrt_error_set(e,
                        "'%s' is no %s: it stays as it is\n"
                        "help: give %s another name, or remove the file",
                        path, what, option);
}

bool mlrt_error_prefix(mlrt_error *e, const char *fmt, ...) {
  mlrt_error old = *e;
  va_list args;
  va_start(args, fmt);
  vset(e, fmt, args);
  va_end(args);
  size_t used = strlen(e->text);
  snprintf(e->text + used, sizeof e->text - used, ": %s", old.text);
  return false;
}

void mlrt_error_add(mlrt_error *e, const char *fmt, ...) {
  size_t len = strlen(e->text);
  va_list args;
  va_start(args, fmt);
  mlrt_append(e->text, sizeof e->text, &len, fmt, args);
  va_end(args);
}

void mlrt_append(char *text, size_t size, size_t *len, const char *fmt, va_list args) {
  if (*len >= size)
    return;
  int n = vsnprintf(text + *len, size - *len, fmt, args);
  *len += n > 0 ? (size_t)n : 0;
}

__attribute__((format(printf, 1, 0))) static void vcomplain(const char *fmt, va_list args) {
  fflush(stdout); // what was said before the error stays before it
  fprintf(stderr, "%s: error: ", program_invocation_short_name);
  vfprintf(stderr, fmt, args);
  fputc('\n', stderr);
}

void mlrt_complain(const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  vcomplain(fmt, args);
  va_end(args);
}

void mlrt_fail(int exit_code, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  vcomplain(fmt, args);
  va_end(args);
  exit(exit_code);
}

void mlrt_fail_with(const mlrt_error *e) {
  mlrt_fail(e->exit_code, "%s", e->text);
}
