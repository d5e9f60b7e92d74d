// gpu.h: a program on a GPU, as the files gpu_*.c share it.
//
//   compute stream   the program's functions, one after the other; copies for checkpoints
//   copies stream    batches, from the host's slots to the device's
//   two more         values of a function to memory of the host, and back (gpu_transfer.c)
//
//   batch k      copies:  wait done[k-2's slot] | copy | copied[slot]
//                compute: wait copied[slot] | the function, its scalar results to the host | done
//   host         makes batch k+1 once copied[slot of k-1] has come; reads the results of k after
//                done[slot of k]
//
// Batch k and batch k-2 have the same slot, on the host and on the device. So while function k
// runs, batch k+1 crosses over, and k+2 may be made as soon as batch k has left the host's slot.
#ifndef RUNTIME_GPU_H
#define RUNTIME_GPU_H

#include "runtime/device.h"
#include "runtime/gpu_driver.h"

enum {
  GPU_SLOTS = 2,
  GPU_HALVES = 2,
  GPU_BOUNCE_BYTES = 4 << 20, // at most, both halves
};

// A range of the arena with scalar results of a function, and its place in a slot's results.
typedef struct gpu_span {
  int64_t from, to; // in the arena
  int64_t at;
} gpu_span;

// Where the results of a function go (gpu_results.c).
typedef struct gpu_results {
  gpu_span *spans;
  int num_spans;
} gpu_results;

// The pinned block of the host: slots as in the arena, results of each slot, the bounce buffer, values
// that wait there.
typedef struct gpu_host {
  char *base;
  int64_t slot_bytes, result_bytes, half_bytes; // of one each
  int64_t results_at, bounce_at, waiting_at, bytes;
} gpu_host;

typedef struct gpu_transfers {
  CUstream sends, fetches;
  CUevent begun, *done; // done: by number; NULL: the program has no transfers
} gpu_transfers;

typedef struct gpu_slot {
  CUevent copied, done;
  bool copying; // the host has not waited for `copied` since it was recorded
  bool running; // the same for `done`
  int func;     // of its last run
} gpu_slot;

struct mlrt_gpu {
  gpu_driver driver;
  const mlrt_program *program;
  int ordinal, major, minor; // number and compute capability of the device
  char label[64];            // "NVIDIA H100"
  CUdevice device;
  CUcontext context;     // the device's primary one
  CUmodule *modules;     // by unit; NULL: of kernels that other chips run
  CUfunction *functions; // by entry; NULL: in such a unit
  bool is_own;           // mlrt_gpu_is_own
  CUstream compute, copies;

  CUdeviceptr arena;
  gpu_host host;
  CUevent moved[GPU_HALVES]; // of the bounce buffer
  gpu_slot slot[GPU_SLOTS];
  gpu_results results[MLRT_NUM_FUNCS];
  gpu_transfers transfers;

  struct gpu_times *times; // gpu_times.h; NULL: nobody asks
  bool use_graphs;
  CUgraphExec graphs[MLRT_NUM_FUNCS][GPU_SLOTS]; // NULL: not captured yet
};

// gpu_images.c: loads the code that suits the device. Exit code 4 when there is none.
void gpu_load_images(mlrt_gpu *g);
void gpu_unload_images(mlrt_gpu *g);

// gpu_results.c
void gpu_plan_results(mlrt_gpu *g); // also sizes host.result_bytes
void gpu_free_results(mlrt_gpu *g);
// Queues the copies of a function's results to the host.
void gpu_send_results(mlrt_gpu *g, int func, int slot);
// In the host's memory, as the last run on `slot` left it; not waited for.
const char *gpu_find_result(const mlrt_gpu *g, int slot, const mlrt_result *r);

// gpu_launch.c: queues a function on the compute stream, as a graph or launch by launch.
void gpu_start(mlrt_gpu *g, int func, int slot);
void gpu_free_graphs(mlrt_gpu *g);
// Waits for an event (a stream); what went wrong before it on the device is reported here.
void gpu_wait_event(mlrt_gpu *g, CUevent event, const char *what);
void gpu_wait_stream(mlrt_gpu *g, CUstream stream, const char *what);

// gpu_memory.c: the device's and the host's memory, and what goes to and fro beside batches.
gpu_host gpu_plan_host(const mlrt_program *p, int64_t result_bytes);
void gpu_allocate(mlrt_gpu *g);
void gpu_free_memory(mlrt_gpu *g);
// One more buffer of the device, for `check`.
CUdeviceptr gpu_take_buffer(mlrt_gpu *g, int64_t bytes);
bool gpu_read(mlrt_device *d, int64_t offset, int64_t bytes, mlrt_take_fn take, void *data);
bool gpu_write(mlrt_device *d, int64_t offset, int64_t bytes, mlrt_give_fn give, void *data);
void gpu_fill(mlrt_device *d, int64_t offset, int64_t bytes, int byte);

// gpu_transfer.c
void gpu_open_transfers(mlrt_gpu *g);
void gpu_close_transfers(mlrt_gpu *g);

// gpu_check.c: mlrt_device_calls.has, .call
bool gpu_has_kernel(mlrt_device *d, const mlrt_kernel *k);
void gpu_call_kernel(mlrt_device *d, const mlrt_kernel *k, char *const *args, int split);

#endif
