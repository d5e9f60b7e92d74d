// gpu_images.c: which of the program's images suits the device, and loading it.
//
// A cubin runs on its own compute capability and on higher ones of the same major number (sm_80 on
// 8.0, 8.6, 8.9); with an `a` behind it on its own only (sm_90a on 9.0), with an `f` as without.
// PTX runs on its own capability and on all higher ones, after the driver has compiled it, which
// takes seconds. The best that runs is taken: the device's own `a`, the highest cubin, the highest
// PTX.
#include "runtime/gpu.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { PTX_RANK = 0, CUBIN_RANK = 1000, OWN_RANK = 2000, NO_RANK = -1 };

// How well an image suits a device; NO_RANK: not at all.
static int rank_of(const char *arch, int major, int minor) {
  bool ptx = !strncmp(arch, "compute_", 8);
  if (!ptx && strncmp(arch, "sm_", 3) != 0)
    return NO_RANK;
  char *end;
  long number = strtol(arch + (ptx ? 8 : 3), &end, 10);
  int device = major * 10 + minor;
  if (*end == 'a')
    return number != device ? NO_RANK : ptx ? CUBIN_RANK - 1 : OWN_RANK;
  if (number > device || ((!ptx || *end == 'f') && number / 10 != major))
    return NO_RANK;
  return (ptx ? PTX_RANK : CUBIN_RANK) + (int)number;
}

// Index of the first image of the architecture for a device of this compute capability; -1: none.
static int choose_images(const mlrt_gpu_code *code, int major, int minor) {
  int best = -1, best_rank = NO_RANK;
  for (int i = 0; i + code->num_units <= *code->num_images; i += code->num_units) {
    int rank = rank_of(code->images[i].arch, major, minor);
    if (rank > best_rank) {
      best = i;
      best_rank = rank;
    }
  }
  return best;
}

// "sm_90a, sm_80 and compute_90" in `out`.
static void list_images(const mlrt_gpu_code *code, char *out, size_t cap) {
  size_t len = 0;
  int num = *code->num_images / code->num_units;
  out[0] = '\0';
  for (int i = 0; i < num && len < cap; i++)
    len += (size_t)snprintf(out + len, cap - len, "%s%s",
                            i == 0         ? ""
                            : i == num - 1 ? " and "
                                           : ", ",
                            code->images[i * code->num_units].arch);
}

static void fail_to_choose(const mlrt_gpu *g) {
  enum { OLDEST_MAJOR = 8 }; // that mltc makes code for
  char inside[256];
  list_images(g->program->gpu, inside, sizeof inside);
  if (g->major < OLDEST_MAJOR)
    mlrt_fail(
        MLRT_EXIT_DEVICE,
        "device %d (%s) is sm_%d%d: programs for GPUs need sm_%d0 or newer; one for CPUs runs "
        "on this machine",
        g->ordinal, g->label, g->major, g->minor, OLDEST_MAJOR);
  mlrt_fail(MLRT_EXIT_DEVICE,
            "this program holds code for %s, and device %d (%s) is sm_%d%d: compile it with "
            "--target=cuda:sm_%d%d",
            inside[0] ? inside : "no GPU", g->ordinal, g->label, g->major, g->minor, g->major,
            g->minor);
}

// The image itself; *own is memory to free, or NULL.
static const void *unpack(const mlrt_gpu_image *image, void **own) {
  *own = NULL;
  if (image->packed == 0)
    return image->data;
  uLongf len = image->len;
  *own = malloc(image->len);
  if (!*own)
    mlrt_fail(MLRT_EXIT_MEMORY, "out of memory");
  if (uncompress(*own, &len, image->data, image->packed) != Z_OK || len != image->len)
    mlrt_fail(MLRT_EXIT_INTERNAL, "the code for %s (unit %d) in this program is damaged",
              image->arch, image->unit);
  return *own;
}

// What an older driver answers to code of a newer CUDA.
static const char *help_with(CUresult r) {
  bool of_image = (int)r == GPU_INVALID_IMAGE || (int)r == GPU_NO_BINARY;
  return of_image || (int)r == GPU_PTX_TOO_NEW
             ? "\nhelp: a driver takes no code of a newer CUDA than its own: programs made by "
               "NVRTC "
               "13 want driver 580 or newer, by NVRTC 12 driver 530"
             : "";
}

// PTX is compiled here: what the driver's compiler says is in the message.
static void load_unit(mlrt_gpu *g, const mlrt_gpu_image *image) {
  void *own;
  const void *code = unpack(image, &own);
  char log[768] = "";
  CUjit_option options[] = {GPU_JIT_ERROR_LOG, GPU_JIT_ERROR_LOG_BYTES};
  void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)}; // sizes are values here
  CUresult r = g->driver.cuModuleLoadDataEx(&g->modules[image->unit], code,
                                            sizeof options / sizeof *options, options, values);
  free(own);
  if (r == GPU_OK)
    return;
  char why[256];
  gpu_driver_explain(&g->driver, r, why, sizeof why);
  mlrt_fail(r == GPU_OUT_OF_MEMORY ? MLRT_EXIT_MEMORY : MLRT_EXIT_DEVICE,
            "device %d (%s) does not take the code for %s (unit %d, %zu bytes; the driver is for "
            "CUDA %d.%d): cuModuleLoadDataEx failed: %s%s%s%s",
            g->ordinal, g->label, image->arch, image->unit, image->len, g->driver.version / 1000,
            g->driver.version % 1000 / 10, why, log[0] ? "\n" : "", log, help_with(r));
}

static void find_function(mlrt_gpu *g, int entry) {
  const mlrt_gpu_entry *e = &g->program->gpu->entries[entry];
  if (e->unit < 0 || e->unit >= g->program->gpu->num_units)
    mlrt_fail(MLRT_EXIT_INTERNAL, "kernel '%s' is in no unit of the program", e->symbol);
  if (!g->modules[e->unit])
    return; // of another chip
  CUresult r = g->driver.cuModuleGetFunction(&g->functions[entry], g->modules[e->unit], e->symbol);
  char why[256];
  if (r != GPU_OK) {
    gpu_driver_explain(&g->driver, r, why, sizeof why);
    mlrt_fail(MLRT_EXIT_INTERNAL, "kernel '%s' (%s at %s): cuModuleGetFunction failed: %s",
              e->symbol, e->ops, e->where, why);
  }
  if (e->shared == 0)
    return;
  r = g->driver.cuFuncSetAttribute(g->functions[entry], GPU_FUNCTION_MOST_SHARED, e->shared);
  if (r == GPU_OK)
    return;
  // PTX runs on newer GPUs, of which some have less of it.
  gpu_driver_explain(&g->driver, r, why, sizeof why);
  mlrt_fail(
      MLRT_EXIT_DEVICE,
      "kernel '%s' (%s at %s): device %d (%s) does not give a block %d bytes of shared memory: "
      "cuFuncSetAttribute failed: %s\n"
      "Compile for this GPU, or for one with as little beside it: --target=cuda:sm_80,...",
      e->symbol, e->ops, e->where, g->ordinal, g->label, e->shared, why);
}

void gpu_load_images(mlrt_gpu *g) {
  const mlrt_gpu_code *code = g->program->gpu;
  int first = choose_images(code, g->major, g->minor);
  if (first < 0)
    fail_to_choose(g);
  g->modules = calloc((size_t)code->num_units + 1, sizeof *g->modules);
  g->functions = calloc((size_t)code->num_entries + 1, sizeof *g->functions);
  if (!g->modules || !g->functions)
    mlrt_fail(MLRT_EXIT_MEMORY, "out of memory");
  for (int i = 0; i < code->num_units; i++)
    if (code->images[first + i].data)
      load_unit(g, &code->images[first + i]);
  const char *arch = code->images[first].arch;
  g->is_own = arch[strlen(arch) - 1] == 'a';
  for (int i = 0; i < code->num_entries; i++)
    find_function(g, i);
}

void gpu_unload_images(mlrt_gpu *g) {
  for (int i = 0; g->modules && i < g->program->gpu->num_units; i++)
    if (g->modules[i])
      GPU_DO(&g->driver, cuModuleUnload, g->modules[i]);
  free(g->modules);
  free(g->functions);
  g->modules = NULL;
  g->functions = NULL;
}
