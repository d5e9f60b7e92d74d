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

static void first_use(emu_launch_state *l, emu_array *a, void *from) {
  (is_given(a) ? must_be_given : must_have_room)(l, a, from);
  a->shadow = is_given(a) ? given_shadow(l) : new_shadow(l, a->count);
}

static inline struct emu_shadow *shadow_of(emu_launch_state *l, emu_array *a, void *from) {
  if (!a->shadow)
    first_use(l, a, from);
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
// An access to several elements, on its way through them: what is the same for all is looked up once.
typedef struct visit {
  emu_launch_state *l;
  const emu_array *a;
  struct emu_shadow *s;
  int64_t first, begin; // element; its first part
  access now;
  int warp;
  const uint32_t *seen; // by that warp, of each
  const char *does;
  void *from;
} visit;

static inline bool is_race(const visit *v, const access *a, int warp) {
  return a->period != NEVER && a->thread != v->now.thread && v->seen[warp] < a->period;
}

static int64_t element_of(const visit *v, int64_t part) {
  return v->first + (part - v->begin) / parts_of(v->a);
}

static __attribute__((noreturn)) void race(const visit *v, int64_t part, int thread, int warp,
                                           const char *did) {
  char who[48];
  if (thread == MANY)
    snprintf(who, sizeof who, "several threads of warp %d", warp);
  else
    snprintf(who, sizeof who, "thread %d", thread);
  emu_stop(v->l, EMU_RACE, v->from,
           "%s element %lld of a shared array of %zu, which %s %s with no barrier in between",
           v->does, (long long)element_of(v, part), v->a->count, who, did);
}

static inline element *look(const visit *v, int64_t part) {
  element *e = &v->s->element[part];
  if (e->in_flight)
    emu_stop(v->l, EMU_IN_FLIGHT, v->from,
             "%s element %lld of a shared array while thread %d has an asynchronous copy to it in "
             "flight",
             v->does, (long long)element_of(v, part), e->in_flight - 1);
  if (is_race(v, &e->wrote, emu_warp_of(e->wrote.thread)))
    race(v, part, e->wrote.thread, 0, "wrote");
  return e;
}

// Not by copying a struct: of one that has just been put together the processor waits for both halves, which took a
// third of the time of an access.
static inline void set_access(access *a, int thread, uint32_t period) {
  a->thread = thread;
  a->period = period;
}

static inline void read_part(const visit *v, int64_t part) {
  element *e = look(v, part);
  access *read = &v->s->read[part * v->l->warps + v->warp];
  if (e->block != v->l->block + 1)
    emu_stop(
        v->l, EMU_UNWRITTEN, v->from,
        "reads element %lld of a shared array of %zu, which no thread of the block has written",
        (long long)element_of(v, part), v->a->count);
  bool joins =
      (e->readers >> v->warp & 1) && read->period == v->now.period && read->thread != v->now.thread;
  set_access(read, joins ? MANY : v->now.thread, v->now.period);
  e->readers |= 1u << v->warp;
}

static inline void write_part(const visit *v, int64_t part) {
  element *e = look(v, part);
  const access *read = &v->s->read[part * v->l->warps];
  for (uint32_t left = e->readers; left; left &= left - 1) {
    int w = __builtin_ctz(left);
    if (is_race(v, &read[w], w))
      race(v, part, read[w].thread, w, "read");
  }
  e->readers = 0;
  set_access(&e->wrote, v->now.thread, v->now.period);
  e->block = v->l->block + 1;
  e->write = ++v->l->thread[v->now.thread].writes;
}

static void touch(emu_launch_state *l, emu_array *a, int64_t first, int64_t count, emu_access how,
                  void *from) {
  const int warp = emu_warp_of(l->running);
  const visit v = {.l = l,
                   .a = a,
                   .s = shadow_of(l, a, from),
                   .first = first,
                   .begin = first_part(a, first),
                   .now = {l->running, l->warp[warp].period},
                   .warp = warp,
                   .seen = l->warp[warp].seen,
                   .does = how == EMU_WRITE ? "writes" : "reads",
                   .from = from};
  const int64_t end = v.begin + count * parts_of(a);
  if (how == EMU_READ)
    for (int64_t part = v.begin; part < end; part++)
      read_part(&v, part);
  else
    for (int64_t part = v.begin; part < end; part++)
      write_part(&v, part);
}

void emu_shared(emu_launch_state *l, emu_array *a, int64_t first, int64_t count, int64_t align,
                emu_access how) {
  void *from = __builtin_return_address(0);
  emu_shared_check(l, a, first, count, align, how == EMU_WRITE ? "writes" : "reads", from);
  touch(l, a, first, count, how, from);
}

// --- wgmma: another way to memory -----------------------------------------------------------------
void emu_wgmma_ready(emu_launch_state *l) {
  l->thread[l->running].ready = l->thread[l->running].writes;
}

void emu_shared_see(emu_launch_state *l, emu_array *a, int64_t at, void *from) {
  emu_shared_check(l, a, at, 1, 1, "multiplies", from);
  touch(l, a, at, 1, EMU_READ, from);
  const element *e = &shadow_of(l, a, from)->element[first_part(a, at)];
  if (e->wrote.period != NEVER && e->write > l->thread[e->wrote.thread].ready)
    emu_stop(l, EMU_RACE, from,
             "multiplies element %lld of a shared array of %zu, which thread %d wrote with no "
             "k_wgmma_ready since",
             (long long)at, a->count, e->wrote.thread);
}

// --- asynchronous copies: a write by the thread at both ends, and untouchable in between ---------
static void set_in_flight(emu_launch_state *l, emu_array *a, int64_t first, int64_t count,
                          int value, void *from) {
  element *e = &shadow_of(l, a, from)->element[first_part(a, first)];
  for (int64_t i = 0; i < count * parts_of(a); i++)
    e[i].in_flight = value;
}

void emu_shared_take_away(emu_launch_state *l, emu_array *a, int64_t first, int64_t count,
                          void *from) {
  touch(l, a, first, count, EMU_WRITE, from);
  set_in_flight(l, a, first, count, 1 + l->running, from);
}

void emu_shared_give_back(emu_launch_state *l, emu_array *a, int64_t first, int64_t count,
                          void *from) {
  set_in_flight(l, a, first, count, 0, from);
  touch(l, a, first, count, EMU_WRITE, from);
}
