// error.h: how the runtime reports trouble.
//
// Readers and other library parts fill an mlrt_error and return false; the caller decides.
// Only the main thread ends the program, through mlrt_fail, with one line on stderr; or, where it has
// something to put in order first, through mlrt_complain and the exit code that it returns.
#ifndef RUNTIME_ERROR_H
#define RUNTIME_ERROR_H

#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>

// Exit codes of a trainer (docs/runtime.md).
enum {
  MLRT_EXIT_OK = 0,
  MLRT_EXIT_INPUT = 1,    // broken or missing data, checkpoint, ...
  MLRT_EXIT_USAGE = 2,    // wrong command line
  MLRT_EXIT_MEMORY = 3,   // the arena, or data as read, do not fit
  MLRT_EXIT_DEVICE = 4,   // no GPU, no driver, or a machine that cannot run this program
  MLRT_EXIT_INTERNAL = 70 // our own fault
};

typedef struct mlrt_error {
  int exit_code;   // of a program that this ends: MLRT_EXIT_INPUT, or _MEMORY
  char text[1024]; // one message, no newline at its end; a `help:` part may follow on its own line
} mlrt_error;

// Writes the message (cut to fit) and returns false, so that `return mlrt_error_set(e, ...)` works.
bool mlrt_error_set(mlrt_error *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// The same for what there is no memory for.
bool mlrt_error_memory(mlrt_error *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// "'notes.txt' is no profile: it stays as it is", for a file that `option` must not write over. Returns false.
bool mlrt_error_other_file(mlrt_error *e, const char *path, const char *what, const char *option);
// Puts "context: " before the message that `e` holds. Returns false.
bool mlrt_error_prefix(mlrt_error *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// Puts more behind the message that `e` holds.
void mlrt_error_add(mlrt_error *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// Adds to text[0..*len) of `size` bytes; what does not fit is cut, and *len then beyond it.
void mlrt_append(char *text, size_t size, size_t *len, const char *fmt, va_list args)
    __attribute__((format(printf, 4, 0)));

// Prints "NAME: error: MESSAGE" on stderr.
__attribute__((format(printf, 1, 2))) void mlrt_complain(const char *fmt, ...);
// That, and exits. Main thread only.
__attribute__((noreturn, format(printf, 2, 3))) void mlrt_fail(int exit_code, const char *fmt, ...);
// The same with what an error says, and its exit code.
__attribute__((noreturn)) void mlrt_fail_with(const mlrt_error *e);

#endif
