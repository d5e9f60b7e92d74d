// emu_memory.c: the buffers of a machine, and whether an access keeps to them.
#include "tests/emulator/emu_state.h"

#include <stdlib.h>
#include <string.h>

// Index of the first region that begins after `at`.
static int region_after(const emu_machine *m, uintptr_t at) {
  int low = 0, high = m->num;
  while (low < high) {
    int middle = (low + high) / 2;
    if (m->region[middle].at <= at)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

void emu_buffer(emu_machine *m, const void *at, size_t bytes, bool writable) {
  emu_forget(m, at);
  if (m->num == m->room) {
    m->room = m->room ? 2 * m->room : 16;
    m->region = realloc(m->region, (size_t)m->room * sizeof *m->region);
  }
  int i = region_after(m, (uintptr_t)at);
  memmove(m->region + i + 1, m->region + i, (size_t)(m->num++ - i) * sizeof *m->region);
  m->region[i] = (emu_region){(uintptr_t)at, bytes, writable};
}

void emu_forget(emu_machine *m, const void *at) {
  int i = region_after(m, (uintptr_t)at) - 1;
  if (i < 0 || m->region[i].at != (uintptr_t)at)
    return;
  memmove(m->region + i, m->region + i + 1, (size_t)(--m->num - i) * sizeof *m->region);
}

void emu_forget_all(emu_machine *m) {
  m->num = 0;
}

// --- accesses --------------------------------------------------------------------------------
static bool inside(const emu_region *r, uintptr_t at, size_t bytes) {
  return r && at - r->at < r->bytes && r->bytes - (at - r->at) >= bytes;
}

// The nearest buffer that begins at or before `at`; else the first of all.
static const emu_region *nearest(const emu_launch_state *l, uintptr_t at) {
  const emu_machine *m = l->machine;
  int i = region_after(m, at) - 1;
  return m->num == 0 ? NULL : &m->region[i < 0 ? 0 : i];
}

static void outside(emu_launch_state *l, const emu_region *r, uintptr_t at, size_t bytes,
                    const char *does, void *from) {
  if (!r)
    emu_stop(l, EMU_OUT_OF_BOUNDS, from, "%s %zu bytes at %p: there are no buffers", does, bytes,
             (void *)at);
  emu_stop(l, EMU_OUT_OF_BOUNDS, from, "%s %zu bytes at offset %lld of a buffer of %zu bytes", does,
           bytes, (long long)((intptr_t)at - (intptr_t)r->at), r->bytes);
}

static void check(emu_launch_state *l, uintptr_t at, size_t bytes, size_t align, emu_access how,
                  void *from) {
  const char *does = how == EMU_WRITE ? "writes" : "reads";
  const emu_region *r = inside(l->last, at, bytes) ? l->last : nearest(l, at);
  if (!inside(r, at, bytes))
    outside(l, r, at, bytes, does, from);
  l->last = r;
  if (at % align != 0)
    emu_stop(l, EMU_MISALIGNED, from,
             "%s %zu bytes at offset %zu of a buffer, not a multiple of %zu", does, bytes,
             (size_t)(at - r->at), align);
  if (how == EMU_WRITE && !r->writable)
    emu_stop(l, EMU_READ_ONLY, from, "writes %zu bytes at offset %zu of a buffer that is only read",
             bytes, (size_t)(at - r->at));
}

void emu_global_check(emu_launch_state *l, const void *at, size_t bytes, size_t align,
                      emu_access how, void *from) {
  check(l, (uintptr_t)at, bytes, align, how, from);
  emu_global_touch(l, (uintptr_t)at, bytes, how, from);
}

void emu_global(emu_launch_state *l, const void *at, size_t bytes, size_t align, emu_access how) {
  emu_global_check(l, at, bytes, align, how, __builtin_return_address(0));
}

void emu_argument(emu_launch_state *l, const void *begin, size_t align) {
  if ((uintptr_t)begin % align != 0)
    emu_stop(l, EMU_MISALIGNED, __builtin_return_address(0),
             "a buffer begins at %p, not at a multiple of %zu", begin, align);
}
