// emu_wgmma.c: wgmma.mma_async: products of a warpgroup that come to pass some time between their instruction and
// the wait for their group.
//
// Here they come to pass as late as they may: at the wait. So what they read must stay as it is until then, which
// is checked as for other reads (emu_shared.c), at both ends; and sums are NaN in between, for whoever looks at them
// too early. Each thread works out the elements of c that it holds, from shared memory.
//
// Operands are laid out as in PTX ISA, "shared memory matrix layout", with a swizzle of 128 bytes.
#include "tests/emulator/emu_floats.h"
#include "tests/emulator/emu_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { K = 16, MOST_COLUMNS = 32 };

// Sums of some products that are under way.
typedef struct pending {
  float *c;
  int columns, group; // of 8; that of the last product
  float sum[MOST_COLUMNS * 4];
} pending;

typedef struct product {
  emu_collective what;
  float *c;
  int columns, group;
  emu_operand a, b;
} product;

struct emu_products {
  product *product;
  int num, room;
  pending *sums;
  int num_sums, room_sums;
  int group; // the one being filled
  bool begun;
};

static struct emu_products *mine(emu_launch_state *l) {
  emu_thread *t = &l->thread[l->running];
  if (!t->products)
    t->products = calloc(1, sizeof *t->products);
  return t->products;
}

// --- operands in shared memory -------------------------------------------------------------------
enum { BYTES = 2, ROW = 128, UNIT = 16, EIGHT = 8 };

// Where the first K of row or column x would begin if nothing were swizzled, in bytes; and how far the next is.
static int64_t begin_of(const emu_operand *o, int x) {
  int along = o->turned ? x : 0, across = o->turned ? 0 : x;
  return o->index * BYTES + along / (ROW / BYTES) * o->lead + along % (ROW / BYTES) * BYTES +
         across / EIGHT * o->stride + across % EIGHT * ROW;
}

static int64_t swizzled(int64_t at) { // unsigned: no shift has to mind a sign
  return (int64_t)(((uint64_t)at ^ (uint64_t)at / ROW % EIGHT * UNIT) / BYTES);
}

// The row or column x of an operand as the running thread meets it: looked at, if it is the one that looks for
// those of its warp that need the same; and taken, unless `use` is NULL.
static void take(emu_launch_state *l, const product *p, const emu_operand *o, int x, bool looks,
                 double *use, void *from) {
  const uint16_t *data = (const uint16_t *)o->array->data;
  int64_t begin = begin_of(o, x), next = o->turned ? ROW : BYTES,
          half = o->turned ? o->stride : EIGHT * BYTES;
  bool sees = looks && !l->options.fast, f16 = p->what == EMU_WGMMA_F16;
  for (int k = 0; k < K; k++) {
    int64_t at = swizzled(begin + k / EIGHT * half + k % EIGHT * next);
    if (sees)
      emu_shared_see(l, o->array, at, from);
    if (use)
      use[k] = (double)(f16 ? emu_from_f16(data[at]) : emu_from_bf16(data[at]));
  }
}

// Rows are counted from where the array begins.
static void must_begin_a_row(emu_launch_state *l, const emu_operand *o, void *from) {
  enum { EIGHT_ROWS = 1024 };
  if (o->array->begin > 0 && o->array->begin % EIGHT_ROWS != 0)
    emu_stop(l, EMU_MISALIGNED, from,
             "multiplies what lies in an array from byte %lld on, not a multiple of %d",
             (long long)o->array->begin, EIGHT_ROWS);
}

// Adds to the sums of the running thread what the product gives; sum NULL: looks at what it will read.
static void multiply(emu_launch_state *l, const product *p, float *sum, void *from) {
  double row[2][K], column[K];
  int lane = l->running % EMU_WARP, first = emu_warp_of(l->running) % 4 * 16 + lane / 4;
  for (int i = 0; i < 2; i++)
    take(l, p, &p->a, first + 8 * i, lane % 4 == 0, sum ? row[i] : NULL, from);
  for (int j = 0; j < 2 * p->columns && (sum || lane / 4 == 0); j++) {
    int x = j / 2 * 8 + lane % 4 * 2 + j % 2;
    take(l, p, &p->b, x, lane / 4 == 0, sum ? column : NULL, from);
    for (int i = 0; i < 2 && sum; i++) {
      float *c = &sum[j / 2 * 4 + i * 2 + j % 2];
      double s = (double)*c;
      for (int k = 0; k < K; k++)
        s += row[i][k] * column[k];
      *c = (float)s;
    }
  }
}

// --- sums that are under way ---------------------------------------------------------------------
static pending *sums_of(struct emu_products *all, float *c) {
  for (int i = 0; i < all->num_sums; i++)
    if (all->sums[i].c == c)
      return &all->sums[i];
  return NULL;
}

static pending *take_sums(struct emu_products *all, float *c, int columns) {
  pending *s = sums_of(all, c);
  if (s)
    return s;
  if (all->num_sums == all->room_sums) {
    all->room_sums = all->room_sums ? 2 * all->room_sums : 4;
    all->sums = realloc(all->sums, (size_t)all->room_sums * sizeof *all->sums);
  }
  s = &all->sums[all->num_sums++];
  *s = (pending){.c = c, .columns = columns};
  memcpy(s->sum, c, sizeof(float) * 4 * (size_t)columns);
  for (int i = 0; i < 4 * columns; i++)
    c[i] = NAN;
  return s;
}

// --- instructions --------------------------------------------------------------------------------
void emu_wgmma(emu_launch_state *l, emu_collective what, float *c, int columns,
               const emu_operand *a, const emu_operand *b) {
  void *from = __builtin_return_address(0);
  struct emu_products *all = mine(l);
  emu_meet(l, what, columns, NULL, 0, from);
  if (!all->begun)
    emu_stop(l, EMU_RACE, from, "multiplies with no k_wgmma_begin in front");
  must_begin_a_row(l, a, from);
  must_begin_a_row(l, b, from);
  if (all->num == all->room) {
    all->room = all->room ? 2 * all->room : 16;
    all->product = realloc(all->product, (size_t)all->room * sizeof *all->product);
  }
  product *p = &all->product[all->num++];
  *p = (product){what, c, columns, all->group, *a, *b};
  take_sums(all, c, columns)->group = all->group;
  if (!l->options.fast)
    multiply(l, p, NULL, from);
}

void emu_wgmma_begin(emu_launch_state *l) {
  mine(l)->begun = true;
}

void emu_wgmma_commit(emu_launch_state *l) {
  mine(l)->group++;
  mine(l)->begun = false;
}

void emu_wgmma_wait(emu_launch_state *l, int newer) {
  void *from = __builtin_return_address(0);
  struct emu_products *all = mine(l);
  int oldest = all->group - newer, kept = 0, kept_sums = 0;
  for (int i = 0; i < all->num; i++) {
    product *p = &all->product[i];
    if (p->group < oldest)
      multiply(l, p, sums_of(all, p->c)->sum, from);
    else
      all->product[kept++] = *p;
  }
  all->num = kept;
  for (int i = 0; i < all->num_sums; i++) {
    pending *s = &all->sums[i];
    if (s->group < oldest)
      memcpy(s->c, s->sum, sizeof(float) * 4 * (size_t)s->columns);
    else
      all->sums[kept_sums++] = *s;
  }
  all->num_sums = kept_sums;
}

void emu_wgmma_begin_block(emu_launch_state *l) {
  for (int i = 0; i < l->threads; i++)
    if (l->thread[i].products) {
      struct emu_products *all = l->thread[i].products;
      all->num = all->num_sums = all->group = 0;
      all->begun = false;
    }
}

void emu_wgmma_end(emu_launch_state *l) {
  for (int i = 0; i < l->threads; i++)
    if (l->thread[i].products) {
      free(l->thread[i].products->product);
      free(l->thread[i].products->sums);
      free(l->thread[i].products);
    }
}
