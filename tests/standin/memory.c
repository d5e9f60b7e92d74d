// memory.c: blocks of device memory and of pinned memory. Each is a mapping of its own with a page
// that cannot be touched on both sides; one that is freed cannot be touched any more, and its
// addresses are not used again. Device memory is aligned as the driver promises it, and no further.
#include "tests/standin/standin.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { POISON = 0xFF, TAIL = 0xC3, DEVICE_ALIGN = 256 };

typedef struct block {
  char *map, *at;       // where its pages begin, and where it does
  size_t bytes, mapped; // asked for; whole pages
  bool device, live;
  struct block *next;
} block;

static block *all;

typedef struct global {
  char *at;
  size_t bytes;
  struct global *next;
} global;
static global *globals;

static const char *side(bool device) {
  return device ? "device memory" : "pinned memory";
}

size_t standin_device_bytes(void) {
  size_t sum = 0;
  for (block *b = all; b; b = b->next)
    sum += b->live && b->device ? b->bytes : 0;
  return sum;
}

CUresult standin_take(bool device, size_t bytes, void **at) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), most = (size_t)1 << 40;
  if (bytes == 0)
    return STANDIN_INVALID_VALUE;
  if (device)
    most = (size_t)standin_setting("MLTC_STANDIN_MEMORY", 1 << 30) - standin_device_bytes();
  if (bytes > most)
    return GPU_OUT_OF_MEMORY;
  block *b = calloc(1, sizeof *b);
  size_t before = device ? DEVICE_ALIGN : 0, mapped = (before + bytes + page - 1) / page * page;
  char *base =
      mmap(NULL, mapped + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (!b || base == MAP_FAILED || mprotect(base + page, mapped, PROT_READ | PROT_WRITE))
    standin_report("out of memory");
  *b = (block){base + page, base + page + before, bytes, mapped, device, true, all};
  memset(b->map, TAIL, mapped);
  memset(b->at, POISON, bytes);
  if (device)
    mprotect(b->map, mapped, PROT_NONE);
  all = b;
  *at = b->at;
  return GPU_OK;
}

static block *block_at(bool device, const void *at, const char *call) {
  for (block *b = all; b; b = b->next)
    if (b->device == device && b->at == at) {
      if (!b->live)
        standin_report("%s: this %s has been freed before", call, side(device));
      return b;
    }
  standin_report("%s: %p is not where %s begins", call, at, side(device));
}

static void check_tail(const block *b, const char *call) {
  for (const char *x = b->map; x < b->at; x++)
    if ((unsigned char)*x != TAIL)
      standin_report("%s: something wrote %zu bytes before the begin of %s", call,
                     (size_t)(b->at - x), side(b->device));
  for (const char *x = b->at + b->bytes; x < b->map + b->mapped; x++)
    if ((unsigned char)*x != TAIL)
      standin_report("%s: something wrote %zu bytes behind the end of %s", call,
                     (size_t)(x - b->at) - b->bytes, side(b->device));
}

void standin_give_back(bool device, const void *at, const char *call) {
  block *b = block_at(device, at, call);
  if (!standin_is_idle())
    standin_report("%s: %s is freed while work is queued that may use it", call, side(device));
  mprotect(b->map, b->mapped, PROT_READ);
  check_tail(b, call);
  mprotect(b->map, b->mapped, PROT_NONE);
  madvise(b->map, b->mapped, MADV_DONTNEED);
  b->live = false;
}

static const global *global_at(const char *at) {
  for (const global *x = globals; x; x = x->next)
    if (at >= x->at && at < x->at + x->bytes)
      return x;
  return NULL;
}

void standin_add_global(char *at, size_t bytes) {
  global *x = global_at(at) ? NULL : malloc(sizeof *x);
  if (!x)
    return;
  *x = (global){at, bytes, globals};
  globals = x;
}

void standin_check_range(bool device, const void *at, size_t bytes, const char *call) {
  const char *from = at;
  const global *variable = device ? global_at(from) : NULL;
  if (variable && from + bytes <= variable->at + variable->bytes)
    return;
  for (block *b = all; b; b = b->next) {
    if (b->device != device || from < b->at || from >= b->map + b->mapped)
      continue;
    if (!b->live)
      standin_report("%s: this %s has been freed", call, side(device));
    if (from + bytes > b->at + b->bytes)
      standin_report("%s: %zu bytes at %zu of %s that has %zu", call, bytes, (size_t)(from - b->at),
                     side(device), b->bytes);
    return;
  }
  standin_report("%s: %p is not in %s", call, at, side(device));
}

void standin_check_memory_gone(void) {
  for (block *b = all; b; b = b->next)
    if (b->live)
      standin_report("the context is released and %zu bytes of %s are not freed", b->bytes,
                     side(b->device));
}

void standin_open_device(bool open) {
  for (block *b = all; b; b = b->next)
    if (b->live && b->device)
      mprotect(b->map, b->mapped, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

void standin_each_block(void (*f)(void *data, char *at, size_t bytes), void *data) {
  for (block *b = all; b; b = b->next)
    if (b->live && b->device)
      f(data, b->at, b->bytes);
}
