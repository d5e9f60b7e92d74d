// emu_async.c: cp.async: copies that come to pass some time between their instruction and the wait
// for their group.
//
// Each thread has a list of copies not yet waited for, oldest first, with the number of their
// group. When the data arrives depends on the order of the launch: at the latest (order 0), at once
// (order 1 and fast launches), or by chance; whoever looks in between is told so by emu_shared.c.
#include "tests/emulator/emu_state.h"

#include <stdlib.h>
#include <string.h>

typedef struct copy {
  emu_array *array;
  int64_t first;
  const void *from; // NULL: zeros
  size_t bytes;
  int group;
  bool done;
} copy;

struct emu_copies {
  copy *copy;
  int num, room;
  int group; // the one being filled
};

static struct emu_copies *mine(emu_launch_state *l) {
  emu_thread *t = &l->thread[l->running];
  if (!t->copies)
    t->copies = calloc(1, sizeof *t->copies);
  return t->copies;
}

static void deliver(copy *c) {
  char *to = (char *)c->array->data + (size_t)c->first * c->array->element;
  if (c->done)
    return;
  if (c->from)
    memcpy(to, c->from, c->bytes);
  else
    memset(to, 0, c->bytes);
  c->done = true;
}

static bool arrives_now(emu_launch_state *l) {
  if (l->options.fast || l->options.order == 1)
    return true;
  return l->options.order > 1 && emu_random(l, 2) == 0;
}

static void append(struct emu_copies *all, copy c) {
  if (all->num == all->room) {
    all->room = all->room ? 2 * all->room : 16;
    all->copy = realloc(all->copy, (size_t)all->room * sizeof *all->copy);
  }
  all->copy[all->num++] = c;
}

static void check_copy(emu_launch_state *l, const copy *c, void *from) {
  int64_t count = (int64_t)(c->bytes / c->array->element);
  emu_shared_check(l, c->array, c->first, count, count, "copies to", from);
  if (c->from)
    emu_global_check(l, c->from, c->bytes, c->bytes, EMU_READ, from);
}

void emu_async_copy(emu_launch_state *l, emu_array *a, int64_t first, const void *source,
                    size_t bytes) {
  void *from = __builtin_return_address(0);
  struct emu_copies *all = mine(l);
  copy c = {a, first, source, bytes, all->group, false};
  if (!l->options.fast) {
    check_copy(l, &c, from);
    emu_shared_take_away(l, a, first, (int64_t)(bytes / a->element), from);
  }
  if (arrives_now(l))
    deliver(&c);
  if (!l->options.fast)
    append(all, c);
}

void emu_async_commit(emu_launch_state *l) {
  mine(l)->group++;
}

void emu_async_wait(emu_launch_state *l, int newer) {
  struct emu_copies *all = mine(l);
  int kept = 0;
  for (int i = 0; i < all->num; i++) {
    copy *c = &all->copy[i];
    if (c->group >= all->group - newer) {
      all->copy[kept++] = *c;
      continue;
    }
    deliver(c);
    emu_shared_give_back(l, c->array, c->first, (int64_t)(c->bytes / c->array->element),
                         __builtin_return_address(0));
  }
  all->num = kept;
}

void emu_async_begin_block(emu_launch_state *l) {
  for (int i = 0; i < l->threads; i++)
    if (l->thread[i].copies)
      l->thread[i].copies->num = l->thread[i].copies->group = 0;
}

void emu_async_end(emu_launch_state *l) {
  for (int i = 0; i < l->threads; i++)
    if (l->thread[i].copies) {
      free(l->thread[i].copies->copy);
      free(l->thread[i].copies);
    }
}
