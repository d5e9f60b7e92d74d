// gpu_driver.c: see gpu_driver.h.
#include "runtime/gpu_driver.h"
#include "runtime/error.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Names end in _v2 where the driver keeps an older call under the plain one.
static int plain_length(const char *call) {
  size_t len = strlen(call);
  return (int)(len > 3 && !strcmp(call + len - 3, "_v2") ? len - 3 : len);
}

void gpu_driver_explain(const gpu_driver *d, CUresult r, char *out, size_t cap) {
  const char *name = NULL, *text = NULL;
  if (d->cuGetErrorName(r, &name) || !name)
    name = "unknown error";
  if (d->cuGetErrorString(r, &text) || !text)
    text = "the driver has no text for it";
  snprintf(out, cap, "%s, error %d (%s)", name, (int)r, text);
}

const char *gpu_driver_help(CUresult r) {
  bool of_kernel = (int)r >= GPU_KERNEL_ERRORS && (int)r < GPU_KERNEL_ERRORS_END;
  return of_kernel ? "\nhelp: CUDA_LAUNCH_BLOCKING=1 in the environment and --no-cuda-graph name "
                     "the kernel"
                   : "";
}

int gpu_driver_exit_code(CUresult r) {
  switch ((int)r) {
  case GPU_OUT_OF_MEMORY:
    return MLRT_EXIT_MEMORY;
  case GPU_UNAVAILABLE:
  case GPU_NO_DEVICE:
  case GPU_ECC_ERROR:
  case GPU_NVLINK_ERROR:
  case GPU_SYSTEM_NOT_READY:
    return MLRT_EXIT_DEVICE;
  default:
    return MLRT_EXIT_INTERNAL;
  }
}

void gpu_driver_check(const gpu_driver *d, const char *call, CUresult r) {
  if (r == GPU_OK)
    return;
  char why[256];
  gpu_driver_explain(d, r, why, sizeof why);
  mlrt_fail(gpu_driver_exit_code(r), "%.*s failed: %s%s", plain_length(call), call, why,
            gpu_driver_help(r));
}

static const char *library_name(void) {
  const char *given = getenv("MLTC_CUDA_DRIVER");
  return given && *given ? given : "libcuda.so.1";
}

static void find_calls(gpu_driver *d) {
#define GPU_CALL(name, parameters) {#name, offsetof(gpu_driver, name)},
  static const struct {
    const char *name;
    size_t offset;
  } calls[] = {
#include "runtime/gpu_calls.def"
  };
#undef GPU_CALL
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    void *found = dlsym(d->library, calls[i].name);
    if (!found)
      mlrt_fail(MLRT_EXIT_DEVICE,
                "the CUDA driver '%s' has no %s: it is too old; this program needs one for CUDA "
                "%d.%d or newer",
                library_name(), calls[i].name, GPU_OLDEST_DRIVER / 1000,
                GPU_OLDEST_DRIVER % 1000 / 10);
    memcpy((char *)d + calls[i].offset, &found, sizeof found);
  }
}

// What happens before there is a device is never our own fault.
static void must(const gpu_driver *d, const char *call, CUresult r) {
  char why[256];
  if (r == GPU_OK)
    return;
  gpu_driver_explain(d, r, why, sizeof why);
  if (r == GPU_NO_DEVICE)
    mlrt_fail(MLRT_EXIT_DEVICE,
              "this program trains on an NVIDIA GPU, and the driver finds none: %s", why);
  mlrt_fail(MLRT_EXIT_DEVICE, "the CUDA driver does not start: %s failed: %s", call, why);
}

void gpu_driver_open(gpu_driver *d) {
  d->library = dlopen(library_name(), RTLD_NOW | RTLD_LOCAL);
  if (!d->library)
    mlrt_fail(MLRT_EXIT_DEVICE,
              "this program trains on an NVIDIA GPU, and its driver cannot be opened: %s",
              dlerror());
  find_calls(d);
  must(d, "cuInit", d->cuInit(0));
  must(d, "cuDriverGetVersion", d->cuDriverGetVersion(&d->version));
  if (d->version < GPU_OLDEST_DRIVER)
    mlrt_fail(MLRT_EXIT_DEVICE,
              "the CUDA driver is too old: it is for CUDA %d.%d, and this program needs one for "
              "%d.%d or newer",
              d->version / 1000, d->version % 1000 / 10, GPU_OLDEST_DRIVER / 1000,
              GPU_OLDEST_DRIVER % 1000 / 10);
}
