// emu_build.c: from kernel text to a loaded library.
//
// The library is loaded from memory (memfd), so that the files of the build can be removed at once
// and its debug lines can still be read when a report needs them (emu_report.c).
#include "tests/emulator/emulator.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef EMU_INCLUDE
#error "EMU_INCLUDE: the folder of mltc_emulator.h"
#endif

enum { ROOM = 4096 };

// -O0: these files are compiled often and run briefly. No -ffast-math: bits matter.
const char *emu_build_flags(void) {
  return "-std=c++17 -O0 -gline-tables-only -gdwarf-4 -fno-threadsafe-statics -fno-exceptions "
         "-fno-rtti "
         "-fvisibility=hidden -fno-math-errno -fno-trapping-math -w -shared -fPIC "
         "-I " EMU_INCLUDE;
}

static const char *compiler(void) {
  const char *c = getenv("MLTC_CXX");
  return c && *c ? c : "clang++";
}

static bool write_text(const char *path, const char *text) {
  FILE *f = fopen(path, "w");
  if (!f)
    return false;
  bool ok = fputs(text, f) >= 0;
  return fclose(f) == 0 && ok;
}

static bool copy_to(int fd, const char *path) {
  FILE *f = fopen(path, "rb");
  char part[1 << 16];
  size_t n;
  bool ok = f != NULL;
  while (ok && (n = fread(part, 1, sizeof part, f)) > 0)
    ok = write(fd, part, n) == (ssize_t)n;
  if (f)
    fclose(f);
  return ok;
}

// The path names the process, too: addr2line, a child, must find it.
static void *load(const char *so) {
  int fd = memfd_create("kernels", 0);
  if (fd < 0 || !copy_to(fd, so))
    return NULL;
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), fd);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    fprintf(stderr, "emulator: %s\n", dlerror());
  return library;
}

static void *build_in(const char *dir, const char *text) {
  char source[ROOM], so[ROOM], command[3 * ROOM];
  snprintf(source, sizeof source, "%s/k.cpp", dir);
  snprintf(so, sizeof so, "%s/k.so", dir);
  snprintf(command, sizeof command, "%s %s -o '%s' '%s' -lm", compiler(), emu_build_flags(), so,
           source);
  if (!write_text(source, text) || system(command) != 0) {
    fprintf(stderr, "emulator: failed: %s\n", command);
    return NULL;
  }
  return load(so);
}

void *emu_build(const char *text, const char *keep) {
  if (keep)
    return build_in(keep, text);
  char dir[] = "/tmp/mltc-emulator-XXXXXX", path[ROOM];
  if (!mkdtemp(dir))
    return NULL;
  void *library = build_in(dir, text);
  snprintf(path, sizeof path, "%s/k.cpp", dir);
  unlink(path);
  snprintf(path, sizeof path, "%s/k.so", dir);
  unlink(path);
  rmdir(dir);
  return library;
}

const emu_entry *emu_find(void *library, const char *name) {
  char symbol[512];
  snprintf(symbol, sizeof symbol, "%s_entry", name);
  return library ? dlsym(library, symbol) : NULL;
}
