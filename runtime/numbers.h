// numbers.h: strict reading of numbers: the whole text, nothing else, no overflow.
#ifndef RUNTIME_NUMBERS_H
#define RUNTIME_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

bool mlrt_parse_int(const char *text, int64_t *out);   // -12, 0x10
bool mlrt_parse_double(const char *text, double *out); // 1e-3; no nan, no infinity

#endif
