// device.c: what all kinds of device share (see device.h).
#include "runtime/device.h"

#include <string.h>

mlrt_device mlrt_device_for(const mlrt_program *p) {
  if (p->gpu && !p->gpu->calls)
    mlrt_fail(MLRT_EXIT_INTERNAL,
              "the program is for a GPU and was linked without that part of the "
              "runtime (mlrt_gpu_code.calls)");
  return (mlrt_device){.calls = p->gpu ? p->gpu->calls : &mlrt_cpu_calls, .program = p};
}

mlrt_device mlrt_device_memory(char *arena) {
  return (mlrt_device){.calls = &mlrt_cpu_calls, .arena = {.base = arena}};
}

static bool take(void *data, const char *from, size_t bytes) {
  char **at = data;
  memcpy(*at, from, bytes);
  *at += bytes;
  return true;
}

void mlrt_device_get(mlrt_device *d, int64_t offset, void *to, int64_t bytes) {
  char *at = to;
  d->calls->read(d, offset, bytes, take, &at);
}

static bool give(void *data, char *to, size_t bytes) {
  const char **at = data;
  memcpy(to, *at, bytes);
  *at += bytes;
  return true;
}

void mlrt_device_put(mlrt_device *d, int64_t offset, const void *from, int64_t bytes) {
  const char *at = from;
  d->calls->write(d, offset, bytes, give, &at);
}

const char *mlrt_func_name(int func) {
  static const char *const names[MLRT_NUM_FUNCS] = {"init", "step", "eval", "predict",
                                                    "accumulate"};
  return names[func];
}

bool mlrt_has_func(const mlrt_program *p, int func) {
  return p->funcs[func].run || p->funcs[func].launch;
}

char *mlrt_staged_input(const mlrt_device *d, int input, int slot) {
  const mlrt_program *p = d->program;
  return d->staging + (p->inputs[input].offset - p->state_bytes) + slot * p->staging_slot_bytes;
}
