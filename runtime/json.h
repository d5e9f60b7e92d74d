// json.h: the part of JSON that safetensors headers use: objects, arrays of whole numbers, strings.
//
// Hand-written because a trainer links with libc only, and stricter than a general reader: no
// nesting beyond what the format has, no numbers but non-negative 64-bit ones, no control
// characters in strings. Strings are unescaped in place.
#ifndef RUNTIME_JSON_H
#define RUNTIME_JSON_H

#include "runtime/error.h"

#include <stddef.h>
#include <stdint.h>

typedef struct mlrt_json {
  char *at, *begin, *end; // *end is writable and 0
  mlrt_error *error;
} mlrt_json;

// Each returns false after setting the error, with the position in the text.
bool mlrt_json_fail(mlrt_json *j, const char *what);
bool mlrt_json_expect(mlrt_json *j, char c);
bool mlrt_json_string(mlrt_json *j, const char **out);
bool mlrt_json_int(mlrt_json *j, int64_t *out);
// True when the next character is c, which is then skipped. Sets no error.
bool mlrt_json_accept(mlrt_json *j, char c);
// Nothing but white space is left.
bool mlrt_json_finish(mlrt_json *j);

#endif
