// gpu.c: the kind of device that is a GPU (device.h), and how its runs are ordered (gpu.h).
#include "runtime/gpu.h"
#include "runtime/gpu_times.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// --- life

static void find_device(mlrt_gpu *g, int64_t ordinal) {
  const gpu_driver *d = &g->driver;
  int count = 0;
  GPU_DO(d, cuDeviceGetCount, &count);
  if (count == 0)
    mlrt_fail(MLRT_EXIT_DEVICE, "this program trains on an NVIDIA GPU, and the driver finds none");
  if (ordinal >= count)
    mlrt_fail(MLRT_EXIT_DEVICE,
              "there is no device %" PRId64 ": the driver finds %d GPU%s, counted from 0", ordinal,
              count, count == 1 ? "" : "s");
  g->ordinal = (int)ordinal;
  GPU_DO(d, cuDeviceGet, &g->device, g->ordinal);
  GPU_DO(d, cuDeviceGetName, g->label, (int)sizeof g->label, g->device);
  GPU_DO(d, cuDeviceGetAttribute, &g->major, GPU_ATTRIBUTE_MAJOR, g->device);
  GPU_DO(d, cuDeviceGetAttribute, &g->minor, GPU_ATTRIBUTE_MINOR, g->device);
}

static void make_streams(mlrt_gpu *g) {
  const gpu_driver *d = &g->driver;
  GPU_DO(d, cuStreamCreate, &g->compute, GPU_STREAM_NON_BLOCKING);
  GPU_DO(d, cuStreamCreate, &g->copies, GPU_STREAM_NON_BLOCKING);
  for (int i = 0; i < GPU_SLOTS; i++) {
    GPU_DO(d, cuEventCreate, &g->slot[i].copied, GPU_EVENT_NO_TIMING);
    GPU_DO(d, cuEventCreate, &g->slot[i].done, GPU_EVENT_NO_TIMING);
  }
}

static void open_gpu(mlrt_device *d, const mlrt_options *o) {
  mlrt_gpu *g = d->gpu = calloc(1, sizeof *g);
  if (!g)
    mlrt_fail(MLRT_EXIT_MEMORY, "out of memory");
  g->program = d->program;
  g->use_graphs = !o->no_cuda_graph;
  // All code at once: later it would take memory that was free when the arena was taken, and its
  // first launch would break a capture. Whatever the environment says: PyTorch, for one, says LAZY
  // to all that it starts.
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  gpu_driver_open(&g->driver);
  find_device(g, o->device);
  GPU_DO(&g->driver, cuDevicePrimaryCtxRetain, &g->context, g->device);
  GPU_DO(&g->driver, cuCtxSetCurrent, g->context);
  gpu_load_images(g);
  make_streams(g);
  gpu_open_transfers(g);
  g->times = gpu_times_open(g, o->kernel_times);
  snprintf(d->name, sizeof d->name, "%s (sm_%d%d)", g->label, g->major, g->minor);
}

static void allocate(mlrt_device *d, const mlrt_options *o) {
  mlrt_gpu *g = d->gpu;
  (void)o;
  gpu_plan_results(g);
  gpu_allocate(g);
  d->staging = g->host.base;
  d->host_bytes = g->host.bytes;
}

static void close_gpu(mlrt_device *d) {
  mlrt_gpu *g = d->gpu;
  const gpu_driver *driver = &g->driver;
  gpu_wait_stream(g, g->copies, "the last batch");
  gpu_wait_stream(g, g->compute, "the last run");
  gpu_times_close(g);
  gpu_free_graphs(g);
  gpu_free_memory(g);
  gpu_free_results(g);
  for (int i = 0; i < GPU_SLOTS; i++) {
    GPU_DO(driver, cuEventDestroy_v2, g->slot[i].copied);
    GPU_DO(driver, cuEventDestroy_v2, g->slot[i].done);
  }
  gpu_close_transfers(g);
  GPU_DO(driver, cuStreamDestroy_v2, g->compute);
  GPU_DO(driver, cuStreamDestroy_v2, g->copies);
  gpu_unload_images(g);
  GPU_DO(driver, cuDevicePrimaryCtxRelease_v2, g->device);
  free(g);
  d->gpu = NULL;
}

// --- runs

// The batch of the host's slot to the device's: after the last run that reads the old one there,
// before the run that this is for.
static void send_batch(mlrt_gpu *g, int slot) {
  const gpu_driver *d = &g->driver;
  const mlrt_program *p = g->program;
  gpu_slot *s = &g->slot[slot];
  if (p->staging_slot_bytes == 0)
    return;
  int64_t at = slot * p->staging_slot_bytes;
  GPU_DO(d, cuStreamWaitEvent, g->copies, s->done, 0);
  GPU_DO(d, cuMemcpyHtoDAsync_v2, g->arena + (CUdeviceptr)(p->state_bytes + at), g->host.base + at,
         (size_t)p->staging_slot_bytes, g->copies);
  GPU_DO(d, cuEventRecord, s->copied, g->copies);
  GPU_DO(d, cuStreamWaitEvent, g->compute, s->copied, 0);
  s->copying = true;
}

// What the team does while the GPU computes: nothing but what is beside it.
static void idle(char *arena, int slot, mlrt_team *team, int tid) {
  (void)arena;
  (void)slot;
  (void)team;
  (void)tid;
}

static void run(mlrt_device *d, int func, int slot, const mlrt_spare *beside) {
  mlrt_gpu *g = d->gpu;
  gpu_slot *s = &g->slot[slot];
  if (func != MLRT_INIT) // it has no batch
    send_batch(g, slot);
  gpu_start(g, func, slot);
  GPU_DO(&g->driver, cuEventRecord, s->done, g->compute);
  s->running = true;
  s->func = func;
  if (beside && beside->num)
    mlrt_team_run_beside(d->team, idle, NULL, slot, beside);
}

static void staged(mlrt_device *d) {
  mlrt_gpu *g = d->gpu;
  for (int i = 0; i < GPU_SLOTS; i++) {
    if (g->slot[i].copying)
      gpu_wait_event(g, g->slot[i].copied, "a batch on its way to the device");
    g->slot[i].copying = false;
  }
}

static const char *result(mlrt_device *d, int slot, const mlrt_result *r) {
  mlrt_gpu *g = d->gpu;
  gpu_slot *s = &g->slot[slot];
  if (s->running)
    gpu_wait_event(g, s->done, mlrt_func_name(s->func));
  s->running = false;
  return gpu_find_result(g, slot, r);
}

// --- info

static int num_entries(const mlrt_gpu_code *code, int first) {
  int num = 0;
  for (int i = 0; i < code->num_entries; i++)
    num += code->images[first + code->entries[i].unit].data != NULL;
  return num;
}

static int64_t image_bytes(const mlrt_gpu_code *code, int first) {
  int64_t bytes = 0;
  for (int i = 0; i < code->num_units; i++)
    bytes += (int64_t)code->images[first + i].len;
  return bytes;
}

static void print_code(const mlrt_program *p) {
  const mlrt_gpu_code *code = p->gpu;
  mlrt_gpu g = {.program = p};
  gpu_plan_results(&g);
  printf("host       %" PRId64 " bytes, pinned: batches, results, and a buffer for checkpoints\n",
         gpu_plan_host(p, g.host.result_bytes).bytes - p->host_bytes);
  if (p->host_bytes)
    printf("           %" PRId64 " bytes, pinned: values that wait there for the backward pass\n",
           p->host_bytes);
  gpu_free_results(&g);
  for (int i = 0; i + code->num_units <= *code->num_images; i += code->num_units)
    printf("code       %s: %d kernels, %" PRId64 " bytes\n", code->images[i].arch,
           num_entries(code, i), image_bytes(code, i));
}

const mlrt_device_calls mlrt_gpu_calls = {
    .lags = true,
    .most_threads = 4, // they only make batches
    .open = open_gpu,
    .allocate = allocate,
    .close = close_gpu,
    .run = run,
    .staged = staged,
    .result = result,
    .read = gpu_read,
    .write = gpu_write,
    .fill = gpu_fill,
    .call = gpu_call_kernel,
    .has = gpu_has_kernel,
    .print_code = print_code,
};
