// calls_kernels.c: modules, functions, launches.
#include "tests/standin/standin.h"

#include <ctype.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EM_CUDA_CUBIN = 190 };

typedef struct module {
  char *image; // a copy: the caller may free its own at once
  size_t len;
} module;

typedef struct loaded_function {
  standin_function kernel;
  bool loaded;     // its code is on the device
  int most_shared; // bytes that a launch may give a block
  char name[256];
} loaded_function;

enum {
  MAX_PARAMETER = 32764, // bytes, since CUDA 12.1
  KIB = 1024,
  UNASKED_SHARED = 48 * KIB, // bytes of a block, unless a function was told of more
};

// Bytes that a function may be told of (CUDA programming guide, "compute capabilities").
static int most_shared(void) {
  int capability = standin_capability();
  return (capability < 86 ? 163 : capability < 90 ? 99 : 227) * KIB;
}

// A cubin is an ELF file, whose tables of sections come last; PTX is text that ends with a 0 byte.
static size_t image_length(const char *image) {
  Elf64_Ehdr header;
  if (memcmp(image, ELFMAG, SELFMAG) != 0)
    return strlen(image);
  memcpy(&header, image, sizeof header);
  if (header.e_machine != EM_CUDA_CUBIN)
    standin_report("cuModuleLoadDataEx: an ELF file for another machine");
  uint64_t sections = header.e_shoff + (uint64_t)header.e_shnum * header.e_shentsize;
  uint64_t segments = header.e_phoff + (uint64_t)header.e_phnum * header.e_phentsize;
  return sections > segments ? sections : segments;
}

// A cubin runs on its own capability and on higher ones of the same major number. Its flags have
// the number in the second byte (CUDA 13), before that in the first.
static CUresult judge_cubin(const char *image) {
  enum { ABI_OF_CUDA_13 = 8 };
  Elf64_Ehdr header;
  memcpy(&header, image, sizeof header);
  int shift = header.e_ident[EI_ABIVERSION] >= ABI_OF_CUDA_13 ? 8 : 0;
  int made_for = (int)(header.e_flags >> shift & 0xff), device = standin_capability();
  return made_for / 10 == device / 10 && made_for <= device ? GPU_OK : GPU_NO_BINARY;
}

// PTX runs on its own capability and on all higher ones; with an `a` on its own only.
static CUresult judge_ptx(const char *image) {
  const char *target = strstr(image, "\n.target sm_");
  if (!target) // the images of a test
    return GPU_OK;
  char *end;
  int made_for = (int)strtol(target + 12, &end, 10), device = standin_capability();
  return made_for == device || (made_for < device && *end != 'a') ? GPU_OK : STANDIN_INVALID_PTX;
}

static void write_log(unsigned num, const CUjit_option *options, void **values, const char *text) {
  char *log = NULL;
  size_t cap = 0;
  for (unsigned i = 0; i < num; i++) {
    if (options[i] == GPU_JIT_ERROR_LOG)
      log = values[i];
    else if (options[i] == GPU_JIT_ERROR_LOG_BYTES)
      cap = (size_t)(uintptr_t)values[i];
  }
  if (log && cap)
    snprintf(log, cap, "%s", text);
}

CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned num_options,
                            CUjit_option *options, void **values) {
  CUresult r = standin_enter("cuModuleLoadDataEx");
  if (r != GPU_OK) {
    write_log(num_options, options, values, "ptxas fatal: the stand-in was told to refuse it");
    return r;
  }
  r = memcmp(image, ELFMAG, SELFMAG) ? judge_ptx(image) : judge_cubin(image);
  if (r != GPU_OK) {
    write_log(num_options, options, values, "ptxas fatal: made for another architecture");
    return r;
  }
  module *m = standin_new(STANDIN_MODULE, sizeof *m);
  m->len = image_length(image);
  m->image = malloc(m->len + 1);
  if (!m->image)
    standin_report("cuModuleLoadDataEx: out of memory");
  memcpy(m->image, image, m->len);
  m->image[m->len] = '\0';
  standin_trace("  %.40s", memcmp(image, ELFMAG, SELFMAG) ? m->image : "cubin");
  *out = (CUmodule)(void *)m;
  return GPU_OK;
}

CUresult cuModuleUnload(CUmodule m) {
  STANDIN_ENTER(cuModuleUnload);
  module *x = standin_live(STANDIN_MODULE, m, "cuModuleUnload");
  free(x->image);
  standin_end(x);
  return GPU_OK;
}

static bool is_word(char c) {
  return isalnum((unsigned char)c) || c == '_';
}

// Both kinds of image have the names of their entries in them, as words of their own.
static bool has_name(const module *m, const char *name) {
  size_t len = strlen(name);
  for (const char *at = m->image; (at = memmem(at, m->len - (size_t)(at - m->image), name, len));
       at++)
    if ((at == m->image || !is_word(at[-1])) && !is_word(at[len]))
      return true;
  return false;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule m, const char *name) {
  STANDIN_ENTER(cuModuleGetFunction);
  standin_function found;
  if (!has_name(standin_live(STANDIN_MODULE, m, "cuModuleGetFunction"), name))
    return STANDIN_NOT_FOUND;
  if (!standin_find_kernel(name, &found))
    standin_report("no library of MLTC_STANDIN_KERNELS has kernel %s", name);
  loaded_function *f = standin_new(STANDIN_FUNCTION, sizeof *f);
  snprintf(f->name, sizeof f->name, "%s", name);
  f->kernel = found;
  f->kernel.name = f->name;
  f->most_shared = UNASKED_SHARED;
  *function = (CUfunction)(void *)f;
  return GPU_OK;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *at, size_t *bytes, CUmodule m, const char *name) {
  STANDIN_ENTER(cuModuleGetGlobal_v2);
  if (!has_name(standin_live(STANDIN_MODULE, m, "cuModuleGetGlobal"), name))
    return STANDIN_NOT_FOUND;
  char *found = standin_find_global(name, bytes);
  if (!found)
    standin_report("no library of MLTC_STANDIN_KERNELS has %s", name);
  standin_add_global(found, *bytes);
  *at = (CUdeviceptr)(uintptr_t)found;
  return GPU_OK;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  STANDIN_ENTER(cuFuncSetAttribute);
  loaded_function *f = standin_live(STANDIN_FUNCTION, function, "cuFuncSetAttribute");
  if (attribute != GPU_FUNCTION_MOST_SHARED || value < 0 || value > most_shared())
    return STANDIN_INVALID_VALUE;
  f->most_shared = value;
  return GPU_OK;
}

// The parameter block of a launch: `extra` names its address and its size.
static void *copy_parameter(const standin_function *f, void **extra) {
  const void *at = NULL;
  size_t bytes = 0;
  for (; extra && *extra != (void *)(uintptr_t)GPU_LAUNCH_END; extra += 2) {
    if (*extra == (void *)(uintptr_t)GPU_LAUNCH_BYTES)
      at = extra[1];
    else if (*extra == (void *)(uintptr_t)GPU_LAUNCH_SIZE)
      bytes = *(size_t *)extra[1];
    else
      standin_report("kernel %s: an unknown key of a launch", f->name);
  }
  if (!at || bytes != f->parameter)
    standin_report("kernel %s: a launch gives %zu bytes of parameters; it takes %zu", f->name,
                   bytes, f->parameter);
  void *copy = malloc(bytes + 1);
  if (!copy)
    standin_report("out of memory");
  memcpy(copy, at, bytes);
  return copy;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                        CUstream stream, void **parameters, void **extra) {
  STANDIN_ENTER(cuLaunchKernel);
  loaded_function *loaded = standin_live(STANDIN_FUNCTION, function, "cuLaunchKernel");
  const standin_function *f = &loaded->kernel;
  standin_stream *s = standin_live(STANDIN_STREAM, stream, "cuLaunchKernel");
  if (grid_x == 0 || grid_x > INT32_MAX || grid_y != 1 || grid_z != 1 || block_y != 1 ||
      block_z != 1 || (int)shared > loaded->most_shared || parameters)
    return STANDIN_INVALID_VALUE;
  if (f->parameter > MAX_PARAMETER)
    standin_report("kernel %s: %zu bytes of parameters", f->name, f->parameter);
  if (s->capture && !loaded->loaded && !standin_loads_at_once())
    standin_report("kernel %s: its code would be loaded during a capture", f->name);
  loaded->loaded = true;
  if ((int)block_x != f->threads)
    standin_report("kernel %s: a launch of %u threads per block; it is made for %d", f->name,
                   block_x, f->threads);
  if ((int)shared != f->shared)
    standin_report("kernel %s: a launch with %u bytes of shared memory; it takes %d", f->name,
                   shared, f->shared);
  standin_op op = {.kind = STANDIN_KERNEL,
                   .function = f,
                   .blocks = grid_x,
                   .bytes = f->parameter,
                   .parameter = copy_parameter(f, extra)};
  standin_trace("  %s, %u blocks%s", f->name, grid_x, s->capture ? ", captured" : "");
  standin_append(standin_work_of(s), &op);
  if (s->capture || standin_setting("CUDA_LAUNCH_BLOCKING", 0) == 0)
    return GPU_OK;
  standin_finish_stream(s);
  return standin_device_error();
}
