// gpu_check.c: one kernel of the program on arguments of the host, for `check`.
//
// Every argument that is memory gets a buffer of its own on the device, in one block, with a guard
// behind it: a store past the end of one shows in the guard.
//
// A kernel that only joint entries call is called by one: what its table begins with becomes the row of this one call
// (see K_JOINT of codegen/cuda_memory_prelude.h), and is put back behind it.
#include "runtime/gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  ALIGN = 256,
  GUARD = 256,
  GUARD_BYTE = 0xA5,
  PLACE_BYTES = 64, // K_PLACE of the kernels
};

typedef struct trial {
  mlrt_gpu *g;
  const mlrt_kernel *k;
  CUdeviceptr block;
  int64_t *at; // of each argument in the block; its guard is behind it
  int64_t bytes;
  char *host; // pinned, as large as the block, with room for two rows behind
} trial;

// Blocks of the call, its part, its arguments.
static size_t row_bytes(const mlrt_kernel *k) {
  return (size_t)(2 + k->num_args) * sizeof(uint32_t);
}

static bool is_number(const mlrt_kernel *k, int arg) {
  return k->args[arg].kind == MLRT_ARG_NUMBER;
}

static trial open_trial(mlrt_gpu *g, const mlrt_kernel *k) {
  trial t = {.g = g, .k = k, .at = calloc((size_t)k->num_args + 1, sizeof *t.at)};
  if (!t.at)
    mlrt_fail(MLRT_EXIT_MEMORY, "out of memory in check");
  for (int i = 0; i < k->num_args; i++) {
    t.at[i] = t.bytes;
    if (!is_number(k, i))
      t.bytes += (k->args[i].size + GUARD + ALIGN - 1) / ALIGN * ALIGN;
  }
  t.block = gpu_take_buffer(g, t.bytes);
  void *host = NULL;
  GPU_DO(&g->driver, cuMemHostAlloc, &host, (size_t)t.bytes + 2 * row_bytes(k), 0);
  t.host = host;
  return t;
}

static void close_trial(trial *t) {
  GPU_DO(&t->g->driver, cuMemFreeHost, t->host);
  GPU_DO(&t->g->driver, cuMemFree_v2, t->block);
  free(t->at);
}

static void send(trial *t, char *const *args) {
  memset(t->host, GUARD_BYTE, (size_t)t->bytes);
  for (int i = 0; i < t->k->num_args; i++)
    if (!is_number(t->k, i))
      memcpy(t->host + t->at[i], args[i], (size_t)t->k->args[i].size);
  if (t->bytes)
    GPU_DO(&t->g->driver, cuMemcpyHtoDAsync_v2, t->block, t->host, (size_t)t->bytes, t->g->compute);
}

// The one parameter of an entry: the arguments by value.
static void launch(trial *t, char *const *args) {
  const mlrt_kernel *k = t->k;
  size_t bytes = (size_t)k->num_args * sizeof(uint64_t);
  uint64_t *parameter = calloc((size_t)k->num_args + 1, sizeof *parameter);
  if (!parameter)
    mlrt_fail(MLRT_EXIT_MEMORY, "out of memory in check");
  for (int i = 0; i < k->num_args; i++)
    parameter[i] =
        is_number(k, i) ? (uint64_t)(uintptr_t)args[i] : t->block + (CUdeviceptr)t->at[i];
  for (int phase = 0; phase < k->num_phases; phase++)
    mlrt_gpu_launch(t->g, k->first_entry + phase, k->phases[phase].tasks, parameter, bytes);
  free(parameter);
}

static void put_row(const trial *t, char *const *args, uint32_t *row) {
  row[0] = (uint32_t)t->k->phases[0].tasks;
  row[1] = (uint32_t)t->k->part - 1;
  for (int i = 0; i < t->k->num_args; i++)
    row[2 + i] = (uint32_t)(is_number(t->k, i) ? (uint64_t)(uintptr_t)args[i]
                                               : (uint64_t)t->at[i] / PLACE_BYTES);
}

// A table has at least two calls, so that one row always fits.
static void launch_part(trial *t, char *const *args) {
  mlrt_gpu *g = t->g;
  const mlrt_gpu_entry *e = &g->program->gpu->entries[t->k->first_entry];
  size_t bytes = row_bytes(t->k), has = 0;
  CUdeviceptr table = 0;
  char name[256], *was = t->host + t->bytes, *row = was + bytes;
  snprintf(name, sizeof name, "k_rows_of_%s", e->symbol);
  GPU_DO(&g->driver, cuModuleGetGlobal_v2, &table, &has, g->modules[e->unit], name);
  if (has < bytes)
    mlrt_fail(MLRT_EXIT_INTERNAL, "kernel '%s': its table has %zu bytes, a row has %zu", t->k->name,
              has, bytes);
  const struct {
    CUdeviceptr arena, batch;
    int64_t first, num;
  } parameter = {t->block, t->block, 0, 1};
  put_row(t, args, (uint32_t *)(void *)row);
  GPU_DO(&g->driver, cuMemcpyDtoHAsync_v2, was, table, bytes, g->compute);
  GPU_DO(&g->driver, cuMemcpyHtoDAsync_v2, table, row, bytes, g->compute);
  mlrt_gpu_launch(g, t->k->first_entry, t->k->phases[0].tasks, &parameter, sizeof parameter);
  GPU_DO(&g->driver, cuMemcpyHtoDAsync_v2, table, was, bytes, g->compute);
}

static void check_guard(const trial *t, int arg) {
  int64_t end = arg + 1 < t->k->num_args ? t->at[arg + 1] : t->bytes;
  for (int64_t i = t->at[arg] + t->k->args[arg].size; i < end; i++)
    if ((unsigned char)t->host[i] != GUARD_BYTE)
      mlrt_fail(MLRT_EXIT_INTERNAL, "kernel '%s' (%s at %s) writes behind the end of argument %d",
                t->k->name, t->k->ops, t->k->where, arg);
}

static void fetch(trial *t, char *const *args) {
  if (t->bytes)
    GPU_DO(&t->g->driver, cuMemcpyDtoHAsync_v2, t->host, t->block, (size_t)t->bytes, t->g->compute);
  gpu_wait_stream(t->g, t->g->compute, t->k->name);
  for (int i = 0; i < t->k->num_args; i++) {
    if (is_number(t->k, i))
      continue;
    check_guard(t, i);
    if (t->k->args[i].kind != MLRT_ARG_IN)
      memcpy(args[i], t->host + t->at[i], (size_t)t->k->args[i].size);
  }
}

bool gpu_has_kernel(mlrt_device *d, const mlrt_kernel *k) {
  return d->gpu->functions[k->first_entry] != NULL;
}

void gpu_call_kernel(mlrt_device *d, const mlrt_kernel *k, char *const *args, int split) {
  (void)split; // in which order blocks run is the device's choice
  trial t = open_trial(d->gpu, k);
  send(&t, args);
  (k->part ? launch_part : launch)(&t, args);
  fetch(&t, args);
  close_trial(&t);
}
