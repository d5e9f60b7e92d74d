// gpu_launch.c: a function of the program as work for the GPU.
//
// The generated function lists its launches once; the driver records them (stream capture) as a
// graph with all their parameters, and replays that from then on, without the microseconds that
// each launch costs the host. Addresses depend on the slot: there is a graph per function and slot,
// made when it is first needed. --no-cuda-graph lists the launches anew each time.
#include "runtime/gpu.h"
#include "runtime/gpu_times.h"

#include <inttypes.h>
#include <stdio.h>

// --- what generated code calls

static void fail_to_launch(const mlrt_gpu *g, int entry, int64_t blocks, size_t bytes, CUresult r) {
  const mlrt_gpu_entry *e = &g->program->gpu->entries[entry];
  char why[256];
  gpu_driver_explain(&g->driver, r, why, sizeof why);
  mlrt_fail(gpu_driver_exit_code(r),
            "kernel '%s' (%s at %s): cuLaunchKernel of %" PRId64
            " blocks of %d threads with %zu bytes of parameters and %d of shared memory failed: %s",
            e->symbol, e->ops, e->where, blocks, e->threads, bytes, e->shared, why);
}

void mlrt_gpu_launch(mlrt_gpu *g, int entry, int64_t blocks, const void *parameter, size_t bytes) {
  const mlrt_gpu_entry *e = &g->program->gpu->entries[entry];
  if (blocks == 0)
    return;
  if (!g->functions[entry])
    mlrt_fail(MLRT_EXIT_INTERNAL, "kernel '%s' (%s at %s) is not for %s", e->symbol, e->ops,
              e->where, g->label);
  if (blocks < 0 || blocks > INT32_MAX)
    mlrt_fail(MLRT_EXIT_INTERNAL, "kernel '%s' (%s at %s): a launch cannot have %" PRId64 " blocks",
              e->symbol, e->ops, e->where, blocks);
  void *extra[] = {(void *)(uintptr_t)GPU_LAUNCH_BYTES, (void *)(uintptr_t)parameter,
                   (void *)(uintptr_t)GPU_LAUNCH_SIZE, &bytes, (void *)(uintptr_t)GPU_LAUNCH_END};
  CUresult r =
      g->driver.cuLaunchKernel(g->functions[entry], (unsigned)blocks, 1, 1, (unsigned)e->threads, 1,
                               1, (unsigned)e->shared, g->compute, NULL, extra);
  if (r != GPU_OK)
    fail_to_launch(g, entry, blocks, bytes, r);
  gpu_times_mark(g, entry);
}

bool mlrt_gpu_is_own(const mlrt_gpu *g) {
  return g->is_own;
}

void mlrt_gpu_copy(mlrt_gpu *g, char *to, const char *from, int64_t bytes) {
  if (bytes > 0)
    GPU_DO(&g->driver, cuMemcpyDtoDAsync_v2, (CUdeviceptr)(uintptr_t)to,
           (CUdeviceptr)(uintptr_t)from, (size_t)bytes, g->compute);
  gpu_times_mark(g, -1);
}

// --- functions

static void list(mlrt_gpu *g, int func, int slot) {
  g->program->funcs[func].launch(g, (char *)(uintptr_t)g->arena, slot);
  gpu_send_results(g, func, slot);
}

// False: events for the kernels' times were missing.
static bool record(mlrt_gpu *g, int func, int slot, CUgraph *graph) {
  GPU_DO(&g->driver, cuStreamBeginCapture_v2, g->compute, GPU_CAPTURE_THREAD);
  gpu_times_begin(g, func, slot);
  list(g, func, slot);
  GPU_DO(&g->driver, cuStreamEndCapture, g->compute, graph);
  return gpu_times_end(g);
}

static CUgraphExec capture(mlrt_gpu *g, int func, int slot) {
  CUgraph graph = NULL;
  CUgraphExec exec = NULL;
  while (!record(g, func, slot, &graph))
    GPU_DO(&g->driver, cuGraphDestroy, graph);
  GPU_DO(&g->driver, cuGraphInstantiateWithFlags, &exec, graph, 0);
  GPU_DO(&g->driver, cuGraphDestroy, graph);
  return exec;
}

void gpu_start(mlrt_gpu *g, int func, int slot) {
  gpu_times_take(g, func, slot);
  if (!g->use_graphs) {
    gpu_times_begin(g, func, slot);
    list(g, func, slot);
    gpu_times_end(g); // what is missing in the first run is there in the next
    return;
  }
  CUgraphExec *exec = &g->graphs[func][slot];
  if (!*exec)
    *exec = capture(g, func, slot);
  GPU_DO(&g->driver, cuGraphLaunch, *exec, g->compute);
}

void gpu_free_graphs(mlrt_gpu *g) {
  for (int func = 0; func < MLRT_NUM_FUNCS; func++)
    for (int slot = 0; slot < GPU_SLOTS; slot++)
      if (g->graphs[func][slot])
        GPU_DO(&g->driver, cuGraphExecDestroy, g->graphs[func][slot]);
}

// --- waiting

// The device has gone wrong some time before: the driver does not say in which kernel.
static void must_be_fine(const mlrt_gpu *g, const char *call, const char *what, CUresult r) {
  if (r == GPU_OK)
    return;
  char why[256];
  gpu_driver_explain(&g->driver, r, why, sizeof why);
  mlrt_fail(gpu_driver_exit_code(r), "%s failed, waiting for %s: %s%s", call, what, why,
            gpu_driver_help(r));
}

void gpu_wait_event(mlrt_gpu *g, CUevent event, const char *what) {
  must_be_fine(g, "cuEventSynchronize", what, g->driver.cuEventSynchronize(event));
}

void gpu_wait_stream(mlrt_gpu *g, CUstream stream, const char *what) {
  must_be_fine(g, "cuStreamSynchronize", what, g->driver.cuStreamSynchronize(stream));
}
