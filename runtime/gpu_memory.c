// gpu_memory.c: the arena of the device, the pinned block of the host, and what goes between them
// beside batches: states, for checkpoints and flags.
//
// States pass through a bounce buffer of two halves: while the host writes one to a file, the
// device fills the other. It is never larger than two pieces of the largest state, and never larger
// than GPU_BOUNCE_BYTES.
#include "runtime/gpu.h"

#include <inttypes.h>
#include <string.h>

enum { ALIGN = 256 };

static int64_t round_up(int64_t bytes) {
  return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

// What `check` and `predict` move may be larger than any state; it goes in more pieces.
static int64_t half_bytes(const mlrt_program *p) {
  int64_t most = ALIGN;
  for (int i = 0; i < p->num_states; i++)
    most = p->states[i].bytes > most ? p->states[i].bytes : most;
  most = round_up(most);
  return most < GPU_BOUNCE_BYTES / GPU_HALVES ? most : GPU_BOUNCE_BYTES / GPU_HALVES;
}

gpu_host gpu_plan_host(const mlrt_program *p, int64_t result_bytes) {
  gpu_host h = {.slot_bytes = p->staging_slot_bytes, .result_bytes = result_bytes};
  h.half_bytes = half_bytes(p);
  h.results_at = round_up(GPU_SLOTS * h.slot_bytes);
  h.bounce_at = h.results_at + round_up(GPU_SLOTS * h.result_bytes);
  h.waiting_at = h.bounce_at + GPU_HALVES * h.half_bytes;
  h.bytes = h.waiting_at + p->host_bytes;
  return h;
}

static void fail_for_memory(mlrt_gpu *g, CUresult r) {
  size_t free_bytes = 0, total = 0;
  char why[256];
  gpu_driver_explain(&g->driver, r, why, sizeof why);
  if (r != GPU_OUT_OF_MEMORY)
    mlrt_fail(gpu_driver_exit_code(r), "cuMemAlloc of %" PRId64 " bytes failed: %s",
              g->program->arena_bytes, why);
  GPU_DO(&g->driver, cuMemGetInfo_v2, &free_bytes, &total);
  mlrt_fail(MLRT_EXIT_MEMORY,
            "this program needs %" PRId64 " bytes of memory on the GPU, and of the %zu bytes of "
            "device %d (%s) only %zu are free",
            g->program->arena_bytes, total, g->ordinal, g->label, free_bytes);
}

static void take_arena(mlrt_gpu *g) {
  const mlrt_program *p = g->program;
  size_t bytes = (size_t)(p->arena_bytes > 0 ? p->arena_bytes : 1);
  CUresult r = g->driver.cuMemAlloc_v2(&g->arena, bytes);
  if (r != GPU_OK)
    fail_for_memory(g, r);
  GPU_DO(&g->driver, cuMemsetD8Async, g->arena, 0, bytes, g->compute); // as the host's arena is
}

static void take_host(mlrt_gpu *g) {
  void *base = NULL;
  g->host = gpu_plan_host(g->program, g->host.result_bytes);
  CUresult r = g->driver.cuMemHostAlloc(&base, (size_t)g->host.bytes, 0);
  g->host.base = base;
  if (r == GPU_OK)
    return;
  char why[256];
  gpu_driver_explain(&g->driver, r, why, sizeof why);
  mlrt_fail(MLRT_EXIT_MEMORY,
            "this program needs %" PRId64 " bytes of pinned memory of the host for batches, "
            "checkpoints and values that wait there (%" PRId64 "): cuMemHostAlloc failed: %s",
            g->host.bytes, g->program->host_bytes, why);
}

void gpu_allocate(mlrt_gpu *g) {
  take_arena(g);
  take_host(g);
  // Padding between inputs crosses over, too; nobody reads it, and it is the same in each run.
  memset(g->host.base, 0, (size_t)g->host.waiting_at);
  for (int i = 0; i < GPU_HALVES; i++)
    GPU_DO(&g->driver, cuEventCreate, &g->moved[i], GPU_EVENT_NO_TIMING);
  GPU_DO(&g->driver, cuStreamSynchronize, g->compute); // batches come by another stream
}

void gpu_free_memory(mlrt_gpu *g) {
  if (!g->arena)
    return;
  for (int i = 0; i < GPU_HALVES; i++)
    GPU_DO(&g->driver, cuEventDestroy_v2, g->moved[i]);
  GPU_DO(&g->driver, cuMemFreeHost, g->host.base);
  GPU_DO(&g->driver, cuMemFree_v2, g->arena);
  g->arena = 0;
}

CUdeviceptr gpu_take_buffer(mlrt_gpu *g, int64_t bytes) {
  CUdeviceptr at = 0;
  GPU_DO(&g->driver, cuMemAlloc_v2, &at, (size_t)(bytes > 0 ? bytes : 1));
  return at;
}

// --- through the bounce buffer

static char *half(const mlrt_gpu *g, int64_t piece) {
  return g->host.base + g->host.bounce_at + piece % GPU_HALVES * g->host.half_bytes;
}

static CUevent moved(const mlrt_gpu *g, int64_t piece) {
  return g->moved[piece % GPU_HALVES];
}

// Bytes of a piece; 0 or less: there is none.
static int64_t piece_bytes(const mlrt_gpu *g, int64_t piece, int64_t bytes) {
  int64_t left = bytes - piece * g->host.half_bytes;
  return left < g->host.half_bytes ? left : g->host.half_bytes;
}

static void ask_for(mlrt_gpu *g, int64_t offset, int64_t bytes, int64_t piece) {
  int64_t n = piece_bytes(g, piece, bytes);
  if (n <= 0)
    return;
  CUdeviceptr from = g->arena + (CUdeviceptr)(offset + piece * g->host.half_bytes);
  GPU_DO(&g->driver, cuMemcpyDtoHAsync_v2, half(g, piece), from, (size_t)n, g->compute);
  GPU_DO(&g->driver, cuEventRecord, moved(g, piece), g->compute);
}

bool gpu_read(mlrt_device *d, int64_t offset, int64_t bytes, mlrt_take_fn take, void *data) {
  mlrt_gpu *g = d->gpu;
  bool fine = true;
  int64_t n;
  ask_for(g, offset, bytes, 0);
  for (int64_t piece = 0; fine && (n = piece_bytes(g, piece, bytes)) > 0; piece++) {
    ask_for(g, offset, bytes, piece + 1);
    gpu_wait_event(g, moved(g, piece), "states of the device");
    fine = take(data, half(g, piece), (size_t)n);
  }
  if (!fine) // a half may still be on its way: the next user of it must not meet it
    gpu_wait_stream(g, g->compute, "states of the device");
  return fine;
}

bool gpu_write(mlrt_device *d, int64_t offset, int64_t bytes, mlrt_give_fn give, void *data) {
  mlrt_gpu *g = d->gpu;
  bool fine = true;
  int64_t n;
  for (int64_t piece = 0; fine && (n = piece_bytes(g, piece, bytes)) > 0; piece++) {
    if (piece >= GPU_HALVES)
      gpu_wait_event(g, moved(g, piece), "states on their way to the device");
    fine = give(data, half(g, piece), (size_t)n);
    if (!fine)
      break;
    CUdeviceptr to = g->arena + (CUdeviceptr)(offset + piece * g->host.half_bytes);
    GPU_DO(&g->driver, cuMemcpyHtoDAsync_v2, to, half(g, piece), (size_t)n, g->compute);
    GPU_DO(&g->driver, cuEventRecord, moved(g, piece), g->compute);
  }
  gpu_wait_stream(g, g->compute, "states on their way to the device");
  return fine;
}

void gpu_fill(mlrt_device *d, int64_t offset, int64_t bytes, int byte) {
  if (bytes > 0)
    GPU_DO(&d->gpu->driver, cuMemsetD8Async, d->gpu->arena + (CUdeviceptr)offset,
           (unsigned char)byte, (size_t)bytes, d->gpu->compute);
}
