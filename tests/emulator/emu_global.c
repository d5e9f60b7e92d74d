// emu_global.c: races in global memory. Blocks of a launch come in no order, so no block may touch
// what another one writes; inside a block the rules are those of shared memory.
//
// Each word of 4 bytes that a launch touches has a record of its last write and its last reads. Smaller accesses have
// records of each byte instead, as neighbours in one word may be different threads': those look at both, accesses of
// whole words at those of bytes, too, where there are some.
#include "tests/emulator/emu_state.h"

#include <stdlib.h>

enum { PAGE_WORDS = 1024, WORD = 4, PAGE_BYTES = PAGE_WORDS * WORD };

typedef struct access {
  int64_t block; // + 1; 0: none
  int thread;
  uint32_t period;
} access;

typedef struct record {
  access wrote, read;
  bool many_read; // blocks, of which `read` is one
} record;

typedef struct page {
  uintptr_t number; // address / PAGE_BYTES
  record word[PAGE_WORDS];
  record *byte; // PAGE_BYTES; NULL: there was no small access
} page;

struct emu_touched {
  page **slot; // open addressing
  size_t room, num;
  page *last;
};

// --- pages -----------------------------------------------------------------------------------
static page **find_slot(page **slot, size_t room, uintptr_t number) {
  size_t i = (size_t)(number * 0x9e3779b97f4a7c15u) & (room - 1);
  while (slot[i] && slot[i]->number != number)
    i = (i + 1) & (room - 1);
  return &slot[i];
}

static void grow(struct emu_touched *t) {
  size_t room = t->room ? 2 * t->room : 64;
  page **slot = calloc(room, sizeof *slot);
  for (size_t i = 0; i < t->room; i++)
    if (t->slot[i])
      *find_slot(slot, room, t->slot[i]->number) = t->slot[i];
  free(t->slot);
  t->slot = slot;
  t->room = room;
}

static page *page_at(emu_launch_state *l, uintptr_t at) {
  if (!l->touched)
    l->touched = calloc(1, sizeof *l->touched);
  struct emu_touched *t = l->touched;
  uintptr_t number = at / PAGE_BYTES;
  if (!t->last || t->last->number != number) {
    if (2 * t->num >= t->room)
      grow(t);
    page **slot = find_slot(t->slot, t->room, number);
    if (!*slot) {
      *slot = calloc(1, sizeof **slot);
      (*slot)->number = number;
      t->num++;
    }
    t->last = *slot;
  }
  return t->last;
}

void emu_global_end(emu_launch_state *l) {
  struct emu_touched *t = l->touched;
  if (!t)
    return;
  for (size_t i = 0; i < t->room; i++) {
    if (t->slot[i])
      free(t->slot[i]->byte);
    free(t->slot[i]);
  }
  free(t->slot);
  free(t);
  l->touched = NULL;
}

// --- rules -----------------------------------------------------------------------------------
static bool is_other_block(const emu_launch_state *l, const access *a) {
  return a->block != 0 && a->block != l->block + 1;
}

static bool is_unordered(const emu_launch_state *l, const access *a) {
  return a->block == l->block + 1 && a->thread != l->running &&
         !emu_is_before(l, emu_warp_of(a->thread), a->period);
}

static void must_not_meet(emu_launch_state *l, const access *a, uintptr_t at, const char *does,
                          const char *did, void *from) {
  size_t offset = at - l->last->at;
  if (is_other_block(l, a))
    emu_stop(l, EMU_GLOBAL_RACE, from, "%s offset %zu of a buffer, which block %lld %s", does,
             offset, (long long)a->block - 1, did);
  if (is_unordered(l, a))
    emu_stop(l, EMU_GLOBAL_RACE, from,
             "%s offset %zu of a buffer, which thread %d %s with nothing in between to order them",
             does, offset, a->thread, did);
}

// Whether the access may come now.
static void check(emu_launch_state *l, const record *r, uintptr_t at, emu_access how, void *from) {
  must_not_meet(l, &r->wrote, at, how == EMU_WRITE ? "writes" : "reads", "wrote", from);
  if (how == EMU_READ)
    return;
  must_not_meet(l, &r->read, at, "writes", "read", from);
  if (r->many_read)
    emu_stop(l, EMU_GLOBAL_RACE, from, "writes offset %zu of a buffer, which other blocks read",
             (size_t)(at - l->last->at));
}

static void note(emu_launch_state *l, record *r, emu_access how) {
  const access now = {l->block + 1, l->running, l->warp[emu_warp_of(l->running)].period};
  if (how == EMU_WRITE) {
    r->wrote = now;
    return;
  }
  r->many_read |= is_other_block(l, &r->read);
  r->read = now;
}

static void touch_word(emu_launch_state *l, uintptr_t at, emu_access how, void *from) {
  page *p = page_at(l, at);
  record *r = &p->word[at % PAGE_BYTES / WORD];
  check(l, r, at, how, from);
  for (uintptr_t i = 0; p->byte && i < WORD; i++)
    check(l, &p->byte[at % PAGE_BYTES + i], at + i, how, from);
  note(l, r, how);
}

static void touch_byte(emu_launch_state *l, uintptr_t at, emu_access how, void *from) {
  page *p = page_at(l, at);
  if (!p->byte)
    p->byte = calloc(PAGE_BYTES, sizeof *p->byte);
  check(l, &p->word[at % PAGE_BYTES / WORD], at, how, from);
  check(l, &p->byte[at % PAGE_BYTES], at, how, from);
  note(l, &p->byte[at % PAGE_BYTES], how);
}

void emu_global_touch(emu_launch_state *l, uintptr_t at, size_t bytes, emu_access how, void *from) {
  bool small = bytes < WORD;
  for (uintptr_t a = at; a < at + bytes; a += small ? 1 : WORD)
    (small ? touch_byte : touch_word)(l, a, how, from);
}
