// emu_build.c: from kernel text to a loaded library.
//
// The library is loaded from memory (memfd), so that the files of the build can be removed at once.
// It has no debug lines, which would take clang two thirds more time: the same text is compiled with
// them when the first report needs a place. The code is the same to the byte, so that an address in
// one library is an address in the other.
#include "tests/emulator/emu_state.h"

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

// -O0: these files are compiled often and run briefly. No -ffast-math: bits matter. The C library's own math.h:
// that of C++ takes a fifth of the time of compiling for what no kernel calls.
static const char flags[] =
    "-std=c++17 -O0 -nostdinc++ -fno-threadsafe-statics -fno-exceptions -fno-rtti "
    "-fvisibility=hidden -fno-math-errno -fno-trapping-math -w -shared -fPIC -I " EMU_INCLUDE;
static const char lines_flags[] = "-gline-tables-only -gdwarf-4";

// A library by the path that it was loaded from.
typedef struct built {
  char path[64], lines[64]; // lines: the one with debug lines; empty until it is asked for
  char *text;
  struct built *next;
} built;
static built *all_built;

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
static bool to_memory(const char *so, char *path, size_t room) {
  int fd = memfd_create("kernels", 0);
  if (fd < 0 || !copy_to(fd, so))
    return false;
  snprintf(path, room, "/proc/%d/fd/%d", (int)getpid(), fd);
  return true;
}

// Leaves k.cpp and k.so in the folder; `path`: of the library in memory.
static bool build_in(const char *dir, const char *text, const char *more, char *path, size_t room) {
  char source[ROOM], so[ROOM], command[3 * ROOM];
  snprintf(source, sizeof source, "%s/k.cpp", dir);
  snprintf(so, sizeof so, "%s/k.so", dir);
  snprintf(command, sizeof command, "%s %s %s -o '%s' '%s' -lm", compiler(), flags, more, so,
           source);
  if (!write_text(source, text) || system(command) != 0) {
    fprintf(stderr, "emulator: failed: %s\n", command);
    return false;
  }
  return to_memory(so, path, room);
}

static bool build_aside(const char *text, const char *more, char *path, size_t room) {
  char dir[] = "/tmp/mltc-emulator-XXXXXX", file[ROOM];
  if (!mkdtemp(dir))
    return false;
  bool ok = build_in(dir, text, more, path, room);
  snprintf(file, sizeof file, "%s/k.cpp", dir);
  unlink(file);
  snprintf(file, sizeof file, "%s/k.so", dir);
  unlink(file);
  rmdir(dir);
  return ok;
}

void *emu_build(const char *text, const char *keep) {
  built *b = calloc(1, sizeof *b);
  if (!(keep ? build_in(keep, text, "", b->path, sizeof b->path)
             : build_aside(text, "", b->path, sizeof b->path))) {
    free(b);
    return NULL;
  }
  void *library = dlopen(b->path, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    fprintf(stderr, "emulator: %s\n", dlerror());
  b->text = strdup(text);
  b->next = all_built;
  all_built = b;
  return library;
}

const char *emu_lines_of(const char *path) {
  built *b = all_built;
  while (b && strcmp(b->path, path) != 0)
    b = b->next;
  if (!b)
    return path;
  if (!b->lines[0] && !build_aside(b->text, lines_flags, b->lines, sizeof b->lines))
    return path;
  return b->lines;
}

const emu_entry *emu_find(void *library, const char *name) {
  char symbol[512];
  snprintf(symbol, sizeof symbol, "%s_entry", name);
  return library ? dlsym(library, symbol) : NULL;
}
