// dtype.h: facts about element types (rows of mlrt_dtype).
#ifndef RUNTIME_DTYPE_H
#define RUNTIME_DTYPE_H

#include "runtime/mlrt.h"

int mlrt_dtype_bytes(mlrt_dtype t);
const char *mlrt_dtype_name(mlrt_dtype t); // "f32"

#endif
