// arena.c: see arena.h. The mapping starts at a 2 MB boundary, so that the kernel can back it
// with huge pages; the address space trimmed off on both sides is never memory. Nor are the pages
// left on both sides: they keep other mappings apart from this one.
#include "runtime/arena.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
  HUGE_PAGE = 2 << 20,
  BEYOND = 0xa5, // what lies behind the plan in its last page
};

static int64_t page_bytes(void) {
  return sysconf(_SC_PAGESIZE);
}

static int64_t meminfo(const char *key) {
  FILE *f = fopen("/proc/meminfo", "re");
  if (!f)
    return -1;
  char line[128];
  int64_t kb = -1;
  size_t len = strlen(key);
  while (kb < 0 && fgets(line, sizeof line, f))
    if (!strncmp(line, key, len) && line[len] == ':')
      sscanf(line + len + 1, "%" SCNd64, &kb);
  fclose(f);
  return kb < 0 ? -1 : kb * 1024;
}

static int64_t container_limit(void) {
  FILE *f = fopen("/sys/fs/cgroup/memory.max", "re");
  if (!f)
    return INT64_MAX;
  int64_t limit = INT64_MAX;
  if (fscanf(f, "%" SCNd64, &limit) != 1) // "max"
    limit = INT64_MAX;
  fclose(f);
  return limit;
}

// Bytes that the machine and its container can still give; INT64_MAX when they do not say.
static int64_t memory_available(void) {
  int64_t free_bytes = meminfo("MemAvailable"), swap = meminfo("SwapFree");
  int64_t machine = free_bytes < 0 ? INT64_MAX : free_bytes + (swap > 0 ? swap : 0);
  int64_t limit = container_limit();
  return machine < limit ? machine : limit;
}

// Maps `bytes` at a multiple of HUGE_PAGE, between two pages that nobody may touch.
static char *map_aligned(size_t bytes, size_t page) {
  size_t reserve = bytes + HUGE_PAGE + 2 * page;
  char *at = mmap(NULL, reserve, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED)
    return NULL;
  size_t before = (size_t)(-((intptr_t)at + (intptr_t)page) & (HUGE_PAGE - 1));
  char *first = at + before, *base = first + page, *end = base + bytes + page;
  if (before)
    munmap(at, before);
  if (end < at + reserve)
    munmap(end, (size_t)(at + reserve - end));
  // Mapped anew with full accounting: the kernel refuses here what it could not give later.
  if (mmap(base, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
      MAP_FAILED)
    return base;
  int why = errno;
  munmap(first, (size_t)(end - first));
  errno = why;
  return NULL;
}

static bool no_room(mlrt_error *e) {
  mlrt_error_add(e, "\nhelp: mltc --memory-budget=SIZE makes a program that needs less; so does a "
                    "smaller batch (mltc -D)");
  return false;
}

bool mlrt_arena_map(mlrt_arena *a, int64_t bytes, bool huge_pages, mlrt_error *e) {
  int64_t page = page_bytes();
  *a = (mlrt_arena){.bytes = bytes, .mapped = (bytes + page - 1) / page * page};
  if (a->mapped == 0)
    a->mapped = page;
  int64_t available = memory_available();
  if (a->mapped > available) {
    mlrt_error_memory(
        e, "this program needs %" PRId64 " bytes of memory and only %" PRId64 " are available",
        a->mapped, available);
    return no_room(e);
  }
  a->base = map_aligned((size_t)a->mapped, (size_t)page);
  if (!a->base) {
    mlrt_error_memory(e, "this program needs %" PRId64 " bytes of memory: %s", a->mapped,
                      strerror(errno));
    return no_room(e);
  }
  if (huge_pages)
    madvise(a->base, (size_t)a->mapped, MADV_HUGEPAGE);
  memset(a->base + a->bytes, BEYOND, (size_t)(a->mapped - a->bytes));
  return true;
}

int64_t mlrt_arena_measure(const mlrt_arena *a) {
  FILE *f = fopen("/proc/self/maps", "re");
  if (!f)
    return -1;
  char line[512];
  int64_t bytes = -1;
  uintptr_t base = (uintptr_t)a->base, from, to;
  while (bytes < 0 && fgets(line, sizeof line, f))
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &from, &to) == 2 && from <= base && base < to)
      bytes = (int64_t)(to - from);
  fclose(f);
  return bytes;
}

bool mlrt_arena_is_whole(const mlrt_arena *a) {
  for (int64_t i = a->bytes; i < a->mapped; i++)
    if ((unsigned char)a->base[i] != BEYOND)
      return false;
  return true;
}

void mlrt_arena_unmap(mlrt_arena *a) {
  int64_t page = page_bytes();
  if (a->base)
    munmap(a->base - page, (size_t)(a->mapped + 2 * page));
  a->base = NULL;
}
