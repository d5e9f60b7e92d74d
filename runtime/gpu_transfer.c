// gpu_transfer.c: values of a function that wait in memory of the host, and come back.
//
//   compute   a b | begun         c d     | wait done |  e         the launches around a copy
//   sends           wait begun | copy | done                       a stream for each direction
//
// What is copied, and where to, is nobody else's between the two: the plan sees to that. While a
// function is captured, both streams become branches of its graph, and every copy is waited for
// before the function ends.
#include "runtime/gpu.h"
#include "runtime/gpu_times.h"

#include <stdlib.h>

void gpu_open_transfers(mlrt_gpu *g) {
  gpu_transfers *x = &g->transfers;
  if (g->program->num_transfers == 0)
    return;
  x->done = calloc((size_t)g->program->num_transfers, sizeof *x->done);
  if (!x->done)
    mlrt_fail(MLRT_EXIT_MEMORY, "out of memory");
  GPU_DO(&g->driver, cuStreamCreate, &x->sends, GPU_STREAM_NON_BLOCKING);
  GPU_DO(&g->driver, cuStreamCreate, &x->fetches, GPU_STREAM_NON_BLOCKING);
  GPU_DO(&g->driver, cuEventCreate, &x->begun, GPU_EVENT_NO_TIMING);
  for (int i = 0; i < g->program->num_transfers; i++)
    GPU_DO(&g->driver, cuEventCreate, &x->done[i], GPU_EVENT_NO_TIMING);
}

void gpu_close_transfers(mlrt_gpu *g) {
  gpu_transfers *x = &g->transfers;
  if (!x->done)
    return;
  for (int i = 0; i < g->program->num_transfers; i++)
    GPU_DO(&g->driver, cuEventDestroy_v2, x->done[i]);
  GPU_DO(&g->driver, cuEventDestroy_v2, x->begun);
  GPU_DO(&g->driver, cuStreamDestroy_v2, x->sends);
  GPU_DO(&g->driver, cuStreamDestroy_v2, x->fetches);
  free(x->done);
  x->done = NULL;
}

// `stream` goes on where the compute stream is now.
static void fork_stream(mlrt_gpu *g, CUstream stream) {
  GPU_DO(&g->driver, cuEventRecord, g->transfers.begun, g->compute);
  GPU_DO(&g->driver, cuStreamWaitEvent, stream, g->transfers.begun, 0);
}

static char *on_host(const mlrt_gpu *g, int64_t at) {
  return g->host.base + g->host.waiting_at + at;
}

void mlrt_gpu_send(mlrt_gpu *g, int transfer, int64_t to, const char *from, int64_t bytes) {
  if (bytes == 0)
    return;
  fork_stream(g, g->transfers.sends);
  GPU_DO(&g->driver, cuMemcpyDtoHAsync_v2, on_host(g, to), (CUdeviceptr)(uintptr_t)from,
         (size_t)bytes, g->transfers.sends);
  GPU_DO(&g->driver, cuEventRecord, g->transfers.done[transfer], g->transfers.sends);
}

void mlrt_gpu_fetch(mlrt_gpu *g, int transfer, char *to, int64_t from, int64_t bytes) {
  if (bytes == 0)
    return;
  fork_stream(g, g->transfers.fetches);
  GPU_DO(&g->driver, cuMemcpyHtoDAsync_v2, (CUdeviceptr)(uintptr_t)to, on_host(g, from),
         (size_t)bytes, g->transfers.fetches);
  GPU_DO(&g->driver, cuEventRecord, g->transfers.done[transfer], g->transfers.fetches);
}

void mlrt_gpu_join(mlrt_gpu *g, int transfer) {
  GPU_DO(&g->driver, cuStreamWaitEvent, g->compute, g->transfers.done[transfer], 0);
  gpu_times_mark(g, -1); // the kernel behind it has not waited
}
