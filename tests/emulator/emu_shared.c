// emu_shared.c: shared arrays: indices, alignment, races, and poison.
//
// Per element: the last write and, for each warp, its last reads since. An access must come after
// all writes of other threads to the same element, a write after all reads of them, too: by a
// barrier of the block, or by __syncwarp inside a warp (emu_sync.c keeps the clocks). What comes
// after a write comes after the reads before it, so a write takes them off the record.
#include "tests/emulator/emu_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = -1, NEVER = 0 };

typedef struct access {
  int thread;      // MANY: several of the warp
  uint32_t period; // NEVER, or its warp's period
} access;

typedef struct element {
  access wrote;
  uint32_t readers; // a bit for each warp that has read since
  int in_flight;    // 1 + the thread that began an asynchronous copy to it; 0: none
  int64_t block;    // that of the last write, + 1
  uint32_t write;   // of the writes of the thread that wrote it, the number of this one
} element;

struct emu_shadow {
  size_t num;
  element *element;
  access *read; // [element][warp]
  struct emu_shadow *next;
};

// --- where arrays lie ----------------------------------------------------------------------------
// What a launch gives is one memory: arrays in one place are the same elements, of so many bytes.
enum { PART = 2 };

static bool is_given(const emu_array *a) {
  return a->begin >= 0;
}

static int64_t parts_of(const emu_array *a) {
  return is_given(a) ? (int64_t)a->element / PART : 1;
}

static int64_t first_part(const emu_array *a, int64_t at) {
  return is_given(a) ? (a->begin + at * (int64_t)a->element) / PART : at;
}

static int64_t bytes_of(const emu_array *a) {
  return (int64_t)(a->count * a->element);
}

// Compilers refuse kernels with more arrays of their own.
static void must_have_room(emu_launch_state *l, const emu_array *a, void *from) {
  enum { MOST = 48 * 1024, APART = 128 };
  int64_t all = bytes_of(a);
  for (const emu_array *x = l->unit->arrays; x; x = x->next)
    if (x->shadow && !is_given(x))
      all += (bytes_of(x) + APART - 1) / APART * APART;
  if (all > MOST)
    emu_stop(l, EMU_SHARED_BOUNDS, from,
             "has %lld bytes of shared arrays of its own, and at most %d are there", (long long)all,
             MOST);
}

static void must_be_given(emu_launch_state *l, const emu_array *a, void *from) {
  int64_t end = a->begin + bytes_of(a);
  if (end > l->entry->shared)
    emu_stop(l, EMU_SHARED_BOUNDS, from,
             "has a shared array up to byte %lld of the %d that a launch gives", (long long)end,
             l->entry->shared);
}

static struct emu_shadow *new_shadow(emu_launch_state *l, size_t num) {
  struct emu_shadow *s = calloc(1, sizeof *s);
  s->num = num;
  s->element = calloc(num, sizeof *s->element);
  s->read = calloc(num * (size_t)l->warps, sizeof *s->read);
  s->next = l->shadows;
  l->shadows = s;
  return s;
}

static struct emu_shadow *given_shadow(emu_launch_state *l) {
  if (!l->given)
    l->given = new_shadow(l, (size_t)l->entry->shared / PART);
  return l->given;
}

static struct emu_shadow *shadow_of(emu_launch_state *l, emu_array *a, void *from) {
  if (!a->shadow) {
    (is_given(a) ? must_be_given : must_have_room)(l, a, from);
    a->shadow = is_given(a) ? given_shadow(l) : new_shadow(l, a->count);
  }
  return a->shadow;
}

void emu_shared_end(emu_launch_state *l) {
  struct emu_shadow *next;
  for (struct emu_shadow *s = l->shadows; s; s = next) {
    next = s->next;
    free(s->element);
    free(s->read);
    free(s);
  }
  for (emu_array *a = l->unit->arrays; a; a = a->next)
    a->shadow = NULL;
  l->shadows = l->given = NULL;
}

// Every byte 255: NaN in all sizes of float. Copies in flight are gone with their block.
void emu_shared_poison(emu_launch_state *l) {
  for (emu_array *a = l->unit->arrays; a; a = a->next)
    memset(a->data, 0xff, a->count * a->element);
  for (struct emu_shadow *s = l->shadows; s; s = s->next)
    for (size_t i = 0; i < s->num; i++)
      s->element[i].in_flight = 0;
}

// --- bounds ----------------------------------------------------------------------------------
void emu_shared_check(emu_launch_state *l, const emu_array *a, int64_t first, int64_t count,
                      int64_t align, const char *does, void *from) {
  if (first < 0 || first + count > (int64_t)a->count)
    emu_stop(l, EMU_SHARED_BOUNDS, from, "%s elements %lld to %lld of a shared array of %zu", does,
             (long long)first, (long long)(first + count - 1), a->count);
  if (first % align != 0)
    emu_stop(l, EMU_MISALIGNED, from,
             "%s %lld elements of a shared array from element %lld on, not a multiple of %lld",
             does, (long long)count, (long long)first, (long long)align);
}

// --- races -----------------------------------------------------------------------------------
static bool is_race(const emu_launch_state *l, const access *a, int warp) {
  return a->period != NEVER && a->thread != l->running && !emu_is_before(l, warp, a->period);
}

static void race(emu_launch_state *l, const emu_array *a, int64_t at, const char *does, int thread,
                 int warp, const char *did, void *from) {
  char who[48];
  if (thread == MANY)
    snprintf(who, sizeof who, "several threads of warp %d", warp);
  else
    snprintf(who, sizeof who, "thread %d", thread);
  emu_stop(l, EMU_RACE, from,
           "%s element %lld of a shared array of %zu, which %s %s with no barrier in between", does,
           (long long)at, a->count, who, did);
}

// Part `part` of element `at`.
static inline void touch_part(emu_launch_state *l, struct emu_shadow *s, int64_t part,
                              const emu_array *a, int64_t at, emu_access how, void *from) {
  element *e = &s->element[part];
  access *read = &s->read[part * l->warps];
  const char *does = how == EMU_WRITE ? "writes" : "reads";
  int warp = emu_warp_of(l->running);
  const access now = {l->running, l->warp[warp].period};
  if (e->in_flight)
    emu_stop(l, EMU_IN_FLIGHT, from,
             "%s element %lld of a shared array while thread %d has an asynchronous copy to it in "
             "flight",
             does, (long long)at, e->in_flight - 1);
  if (is_race(l, &e->wrote, emu_warp_of(e->wrote.thread)))
    race(l, a, at, does, e->wrote.thread, 0, "wrote", from);
  if (how == EMU_READ && e->block != l->block + 1)
    emu_stop(
        l, EMU_UNWRITTEN, from,
        "reads element %lld of a shared array of %zu, which no thread of the block has written",
        (long long)at, a->count);
  if (how == EMU_READ) {
    bool joins = (e->readers >> warp & 1) && read[warp].period == now.period &&
                 read[warp].thread != now.thread;
    read[warp] = now;
    e->readers |= 1u << warp;
    if (joins)
      read[warp].thread = MANY;
    return;
  }
  for (uint32_t left = e->readers; left; left &= left - 1) {
    int w = __builtin_ctz(left);
    if (is_race(l, &read[w], w))
      race(l, a, at, does, read[w].thread, w, "read", from);
  }
  e->readers = 0;
  e->wrote = now;
  e->block = l->block + 1;
  e->write = ++l->thread[l->running].writes;
}

static inline void touch(emu_launch_state *l, emu_array *a, int64_t at, emu_access how,
                         void *from) {
  struct emu_shadow *s = shadow_of(l, a, from);
  int64_t first = first_part(a, at), end = first + parts_of(a);
  for (int64_t part = first; part < end; part++)
    touch_part(l, s, part, a, at, how, from);
}

void emu_shared(emu_launch_state *l, emu_array *a, int64_t first, int64_t count, int64_t align,
                emu_access how) {
  void *from = __builtin_return_address(0);
  emu_shared_check(l, a, first, count, align, how == EMU_WRITE ? "writes" : "reads", from);
  for (int64_t i = first; i < first + count; i++)
    touch(l, a, i, how, from);
}

// --- wgmma: another way to memory -----------------------------------------------------------------
void emu_wgmma_ready(emu_launch_state *l) {
  l->thread[l->running].ready = l->thread[l->running].writes;
}

void emu_shared_see(emu_launch_state *l, emu_array *a, int64_t at, void *from) {
  emu_shared_check(l, a, at, 1, 1, "multiplies", from);
  touch(l, a, at, EMU_READ, from);
  const element *e = &shadow_of(l, a, from)->element[first_part(a, at)];
  if (e->wrote.period != NEVER && e->write > l->thread[e->wrote.thread].ready)
    emu_stop(l, EMU_RACE, from,
             "multiplies element %lld of a shared array of %zu, which thread %d wrote with no "
             "k_wgmma_ready since",
             (long long)at, a->count, e->wrote.thread);
}

// --- asynchronous copies: a write by the thread at both ends, and untouchable in between ---------
static void set_in_flight(emu_launch_state *l, emu_array *a, int64_t at, int value, void *from) {
  struct emu_shadow *s = shadow_of(l, a, from);
  for (int64_t i = 0; i < parts_of(a); i++)
    s->element[first_part(a, at) + i].in_flight = value;
}

void emu_shared_take_away(emu_launch_state *l, emu_array *a, int64_t first, int64_t count,
                          void *from) {
  for (int64_t i = first; i < first + count; i++) {
    touch(l, a, i, EMU_WRITE, from);
    set_in_flight(l, a, i, 1 + l->running, from);
  }
}

void emu_shared_give_back(emu_launch_state *l, emu_array *a, int64_t first, int64_t count,
                          void *from) {
  for (int64_t i = first; i < first + count; i++) {
    set_in_flight(l, a, i, 0, from);
    touch(l, a, i, EMU_WRITE, from);
  }
}
