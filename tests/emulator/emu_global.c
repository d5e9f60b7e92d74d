// emu_global.c: races in global memory. Blocks of a launch come in no order, so no block may touch
// what another one writes; inside a block the rules are those of shared memory.
//
// Each word of 4 bytes that a launch touches has a record of its last write and its last reads.
// Accesses of 1 and 2 bytes are not followed: neighbours in one word may be different threads'.
#include "tests/emulator/emu_state.h"

#include <stdlib.h>

enum { PAGE_WORDS = 1024, WORD = 4 };

typedef struct access {
  int64_t block; // + 1; 0: none
  int thread;
  uint32_t period;
} access;

typedef struct word {
  access wrote, read;
  bool many_read; // blocks, of which `read` is one
} word;

typedef struct page {
  uintptr_t number; // address / (PAGE_WORDS * WORD)
  word word[PAGE_WORDS];
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

static word *word_at(emu_launch_state *l, uintptr_t at) {
  if (!l->touched)
    l->touched = calloc(1, sizeof *l->touched);
  struct emu_touched *t = l->touched;
  uintptr_t number = at / (PAGE_WORDS * WORD);
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
  return &t->last->word[at / WORD % PAGE_WORDS];
}

void emu_global_end(emu_launch_state *l) {
  struct emu_touched *t = l->touched;
  if (!t)
    return;
  for (size_t i = 0; i < t->room; i++)
    free(t->slot[i]);
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

static void touch(emu_launch_state *l, uintptr_t at, emu_access how, void *from) {
  word *w = word_at(l, at);
  const access now = {l->block + 1, l->running, l->warp[emu_warp_of(l->running)].period};
  must_not_meet(l, &w->wrote, at, how == EMU_WRITE ? "writes" : "reads", "wrote", from);
  if (how == EMU_READ) {
    w->many_read |= is_other_block(l, &w->read);
    w->read = now;
    return;
  }
  must_not_meet(l, &w->read, at, "writes", "read", from);
  if (w->many_read)
    emu_stop(l, EMU_GLOBAL_RACE, from, "writes offset %zu of a buffer, which other blocks read",
             (size_t)(at - l->last->at));
  w->wrote = now;
}

void emu_global_touch(emu_launch_state *l, uintptr_t at, size_t bytes, emu_access how, void *from) {
  if (bytes < WORD)
    return;
  for (uintptr_t a = at; a < at + bytes; a += WORD)
    touch(l, a, how, from);
}
