// gpu_times.h: --kernel-times=FILE: how long each launch took by the device's own clock.
//
// Events are recorded behind every launch, also as parts of a CUDA graph; the time between one and
// the next is that of the launch between them. They cost about a microsecond each, so steps of
// small kernels are slower with them.
#ifndef RUNTIME_GPU_TIMES_H
#define RUNTIME_GPU_TIMES_H

#include "runtime/gpu.h"

typedef struct gpu_mark {
  CUevent event;
  int entry; // the launch before it; -1: something else
} gpu_mark;

// The marks of one function on one slot.
typedef struct gpu_line {
  gpu_mark *marks;
  int made, used, wanted; // events there are; marks of the last listing: recorded, and to be
  int64_t runs;
} gpu_line;

typedef struct gpu_sum { // of an entry in a function
  int64_t launches;
  double total, least; // ms
} gpu_sum;

typedef struct gpu_times {
  const char *path;
  gpu_line lines[MLRT_NUM_FUNCS][GPU_SLOTS];
  gpu_sum *sums[MLRT_NUM_FUNCS]; // by entry
  int64_t runs[MLRT_NUM_FUNCS];  // that the sums are of
  gpu_line *now;                 // being listed
} gpu_times;

// NULL for a path of NULL. Fails when the file cannot be written.
gpu_times *gpu_times_open(const mlrt_gpu *g, const char *path);
// Takes the times of the last run of a function on a slot, for it is about to run again.
void gpu_times_take(mlrt_gpu *g, int func, int slot);
// Around the listing of a function's launches. False: there were not enough events, which there
// are now: list again. (None is made during a capture.)
void gpu_times_begin(mlrt_gpu *g, int func, int slot);
bool gpu_times_end(mlrt_gpu *g);
// Behind a launch of an entry, or behind something else (-1).
void gpu_times_mark(mlrt_gpu *g, int entry);
// Takes what is left and writes the file; nothing runs any more.
void gpu_times_close(mlrt_gpu *g);

#endif
