// number_io.h: one element of any type, to and from double.
#ifndef RUNTIME_NUMBER_IO_H
#define RUNTIME_NUMBER_IO_H

#include "runtime/mlrt.h"

// To nearest; what is beyond the range of a floating-point type becomes infinite, as IEEE 754 has it. An integer type
// must have v in its range, but for a fraction, which is cut off.
void mlrt_store(char *at, mlrt_dtype t, double v);
double mlrt_load(const char *at, mlrt_dtype t);
bool mlrt_is_float(mlrt_dtype t);
int mlrt_dtype_bytes(mlrt_dtype t); // data_convert.c

#endif
