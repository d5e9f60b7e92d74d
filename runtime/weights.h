// weights.h: a network's values by name from any safetensors file: a trainer's checkpoint, or one
// that another program wrote. (A run that goes on reads a checkpoint: checkpoint.h.)
//
//   match   which states the file has, and what it lacks, has besides or has in another form
//   load    reads those, converting between floating-point types
//
// Only what makes up the network is loaded: parameters, frozen ones and buffers. Moments, counters
// and seeds are those of a new run.
#ifndef RUNTIME_WEIGHTS_H
#define RUNTIME_WEIGHTS_H

#include "runtime/state_report.h"

typedef struct mlrt_weights {
  mlrt_st_header header;
  mlrt_report report; // lines of everything below but `loaded`
  int loaded, converted;
  int missing, frozen_missing; // states that the file lacks; those of them that are not trained
  int different;               // of another shape, or of a type that cannot be converted
  int unused;                  // tensors of the file
} mlrt_weights;

// Compares w->header with the program's states; fills the rest. False: out of memory.
bool mlrt_weights_match(mlrt_weights *w, const mlrt_program *p, mlrt_error *e);
// Whether the file will do: nothing different, nothing missing. `allow_missing`: trained parameters
// and buffers may be.
bool mlrt_weights_suit(const mlrt_weights *w, bool allow_missing, mlrt_error *e);
// `num` elements: the same bits where the types are equal; else both are floating-point types, as of all tensors that
// mlrt_weights_find gives. False: a finite number is beyond the range of type `to_type` (and infinite there).
bool mlrt_weights_convert(char *to, mlrt_dtype to_type, const char *from, mlrt_dtype from_type,
                          int64_t num);
// The tensor that state t is loaded from; NULL: none.
const mlrt_st_tensor *mlrt_weights_find(const mlrt_weights *w, const mlrt_tensor *t);

#endif
