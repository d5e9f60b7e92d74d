// execute.c: where kernels come from and how they run: the emulator of tests/emulator, or plain
// functions of the host (host_kernel.h). What a kernel file's image holds is not looked at but for
// the names in it: the same text, compiled for the host, is in $MLTC_STANDIN_KERNELS.
#include "tests/standin/standin.h"
#include "tests/standin/host_kernel.h"
#ifdef STANDIN_EMULATOR
#include "tests/emulator/emulator.h"
#endif

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LIBRARIES = 64 };
static void *libraries[MAX_LIBRARIES];
static int num_libraries;

void standin_open_kernels(void) {
  const char *list = standin_text("MLTC_STANDIN_KERNELS");
  if (!list || num_libraries)
    return;
  char *copy = strdup(list), *rest = copy;
  for (char *path; rest && (path = strsep(&rest, ":"));) {
    if (!*path)
      continue;
    if (num_libraries == MAX_LIBRARIES)
      standin_report("MLTC_STANDIN_KERNELS lists more than %d libraries", MAX_LIBRARIES);
    libraries[num_libraries] = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!libraries[num_libraries++])
      standin_report("MLTC_STANDIN_KERNELS: %s", dlerror());
  }
  free(copy);
}

static bool find_host_kernel(void *library, const char *name, standin_function *f) {
  char symbol[256];
  snprintf(symbol, sizeof symbol, "%s_host", name);
  const standin_host_kernel *k = dlsym(library, symbol);
  if (k)
    *f = (standin_function){name, k->threads, k->shared, k->parameter, k, true};
  return k;
}

#ifdef STANDIN_EMULATOR
static bool find_emulated(void *library, const char *name, standin_function *f) {
  const emu_entry *e = emu_find(library, name);
  if (e)
    *f = (standin_function){name, e->threads, e->shared, e->parameter, e, false};
  return e;
}

static void give_buffer(void *machine, char *at, size_t bytes) {
  emu_buffer(machine, at, bytes, true);
}

static bool run_emulated(const standin_function *f, int64_t blocks, const void *parameter,
                         char *why, size_t cap) {
  static emu_machine *machine;
  if (!machine)
    machine = emu_new();
  emu_forget_all(machine);
  standin_each_block(give_buffer, machine);
  emu_options options = {.order = (unsigned)standin_setting("MLTC_STANDIN_SEED", 0),
                         .fast = standin_setting("MLTC_STANDIN_FAST", 0) != 0};
  emu_report report;
  if (emu_launch(machine, f->entry, blocks, parameter, f->parameter, &options, &report))
    return true;
  snprintf(why, cap, "%s", report.text);
  return false;
}
#else
static bool find_emulated(void *library, const char *name, standin_function *f) {
  (void)library;
  (void)name;
  (void)f;
  return false;
}

static bool run_emulated(const standin_function *f, int64_t blocks, const void *parameter,
                         char *why, size_t cap) {
  (void)blocks;
  (void)parameter;
  snprintf(why, cap, "%s: this driver is built without the emulator", f->name);
  return false;
}
#endif

bool standin_find_kernel(const char *name, standin_function *f) {
  for (int i = 0; i < num_libraries; i++)
    if (find_host_kernel(libraries[i], name, f) || find_emulated(libraries[i], name, f))
      return true;
  return false;
}

char *standin_find_global(const char *name, size_t *bytes) {
  for (int i = 0; i < num_libraries; i++) {
    void *at = dlsym(libraries[i], name), *symbol = NULL;
    Dl_info where;
    if (!at || !dladdr1(at, &where, &symbol, RTLD_DL_SYMENT) || !symbol)
      continue;
    *bytes = ((const ElfW(Sym) *)symbol)->st_size;
    return at;
  }
  return NULL;
}

// The blocks of a grid in any order: results may not depend on it.
static void run_host_kernel(const standin_host_kernel *k, int64_t blocks, const void *parameter) {
  bool backwards = standin_random() % 2;
  for (int64_t i = 0; i < blocks; i++)
    k->run(backwards ? blocks - 1 - i : i, parameter);
}

bool standin_run_kernel(const standin_function *f, int64_t blocks, const void *parameter, char *why,
                        size_t cap) {
  if (!f->is_host)
    return run_emulated(f, blocks, parameter, why, cap);
  run_host_kernel(f->entry, blocks, parameter);
  return true;
}
