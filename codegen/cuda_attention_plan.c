// cuda_attention_plan.c: decisions: rows and columns of a tile, threads, shared memory.
//
// Both kinds of kernel are tried in all their shapes; the cheapest by a rough count of cycles is
// taken, of those whose registers and shared memory fit.
#include "codegen/cuda_attention.h"

// What ptxas takes beyond the estimate where it is left alone: less room, and it spills.
enum { OTHER_REGISTERS = 56, MAX_REGISTERS = 216, SPARE_REGISTERS = 64 };

// --- in f32 --------------------------------------------------------------------------------------
static int side_elems(int rows) {
  return rows * CATT_PITCH + rows / 8 * 4;
}

static int registers_of(const catt *t, int rx, int ry) {
  int kept = t->num_in > t->num_out ? t->num_in : t->num_out, vectors = 0;
  for (int i = 0; i < t->num_out; i++)
    vectors += t->out[i].vectors;
  return CATT_VL * rx * (kept * ry + vectors + 1) + OTHER_REGISTERS;
}

// Rows that an SM works on one after the other, times what a row costs in tiles of that shape:
// products, and loads from shared memory that they share.
static double cost_of(const catt *t, int rx, int ry) {
  int64_t blocks = t->batch * ir_ceil_div(t->x, CATT_TY * rx);
  double waves = (double)ir_ceil_div(blocks, t->kernel->target->cuda->sms);
  double empty = (double)(ir_ceil_div(t->y, CATT_TX * CATT_VL * ry) * CATT_TX * CATT_VL * ry);
  return waves * rx * (1 + 1.0 / rx + 0.5 / ry) * empty;
}

static void count_vectors(catt *t, int columns) {
  for (int i = 0; i < t->num_out; i++)
    t->out[i].vectors = (int)ir_ceil_div(t->out[i].width, columns);
}

static void set_shape(catt *t, int rx, int ry) {
  t->rx = rx;
  t->ry = ry;
  t->bx = CATT_TY * rx;
  t->by = CATT_TX * CATT_VL * ry;
  t->side_elems = side_elems(t->bx);
  t->step_elems = side_elems(t->bx) + side_elems(t->by);
  for (int i = 0; i < t->num_out; i++) {
    int elems = CATT_STEP * t->out[i].vectors * CATT_TX * CATT_VL;
    t->step_elems = elems > t->step_elems ? elems : t->step_elems;
  }
  t->weights_pitch = t->by + 4 * CATT_VL; // two rows side by side are on different banks
  t->tiles = ir_ceil_div(t->x, t->bx);
}

static void plan_f32(catt *t) {
  const cg_cuda *chip = t->kernel->target->cuda;
  double best = 0;
  t->threads = CATT_THREADS;
  t->row_step = CATT_TY;
  t->group = CATT_TX;
  count_vectors(t, CATT_TX * CATT_VL);
  for (int i = 0; i < t->num_out; i++)
    t->out[i].copied = true;
  for (int rx = 4; rx >= 1; rx /= 2)
    for (int ry = 2; ry >= 1; ry--) {
      bool fits = registers_of(t, rx, ry) <= MAX_REGISTERS || rx * ry == 1;
      if (!fits || (best > 0 && cost_of(t, rx, ry) >= best))
        continue;
      best = cost_of(t, rx, ry);
      set_shape(t, rx, ry);
    }
  int64_t shared = 4 * (2 * t->step_elems + t->bx * t->weights_pitch);
  BUG_IF(shared > chip->shared_per_block, "%lld bytes of shared memory", (long long)shared);
  t->registers = registers_of(t, t->rx, t->ry);
}

// --- by the tensor cores -------------------------------------------------------------------------
enum { TENSOR_ROWS = 8, TENSOR_GROUP = 4, TENSOR_OTHER = 72 };

int catt_padded(int64_t width) {
  return (int)ir_ceil_div(width, CATT_MMA) * CATT_MMA;
}

int catt_tile_elems(const catt *t, int rows, int pitch) {
  return rows / 8 * (8 * pitch + 32 / t->elem_bytes);
}

static int pitch_of(const catt *t, int64_t width) {
  return catt_padded(width) + 16 / t->elem_bytes;
}

static bool same_axes(const mm_axes *a, const mm_axes *b) {
  bool same = a->num == b->num;
  for (int i = 0; same && i < a->num; i++)
    same = a->size[i] == b->size[i] && a->stride[i] == b->stride[i];
  return same;
}

// The values of a product out are what is streamed for this product in.
static bool is_streamed_for(const catt_out *out, const catt_in *in) {
  const mm_operand *v = &out->values, *s = &in->streamed;
  return v->arg == s->arg && v->offset == s->offset && same_axes(&v->batch, &s->batch) &&
         same_axes(&v->k, &s->x) && same_axes(&v->x, &s->k);
}

static const catt_in *streamed_for(const catt *t, const catt_out *out) {
  for (int i = 0; i < t->num_in; i++)
    if (is_streamed_for(out, &t->in[i]))
      return &t->in[i];
  return NULL;
}

// Everything that stands in shared memory, for these bx and by.
static void place_tiles(catt *t) {
  t->own_elems = t->slot_elems = 0;
  for (int i = 0; i < t->num_in; i++) {
    catt_in *in = &t->in[i];
    in->pitch = pitch_of(t, in->width);
    in->own_at = t->own_elems;
    in->at = t->slot_elems;
    t->own_elems += catt_tile_elems(t, t->bx, in->pitch);
    t->slot_elems += catt_tile_elems(t, t->by, in->pitch);
  }
  for (int i = 0; i < t->num_out; i++) {
    catt_out *out = &t->out[i];
    const catt_in *in = streamed_for(t, out);
    out->copied = !in;
    out->pitch = pitch_of(t, out->width);
    out->at = in ? in->at : t->slot_elems;
    t->slot_elems += in ? 0 : catt_tile_elems(t, t->by, out->pitch);
  }
}

static int64_t shared_of(const catt *t) {
  return t->elem_bytes * (int64_t)(t->own_elems + t->slots * t->slot_elems);
}

static void set_tensor_shape(catt *t, int warps, int rx, int ry) {
  t->threads = 32 * warps;
  t->rx = rx;
  t->ry = ry;
  t->bx = warps * TENSOR_ROWS * rx;
  t->by = TENSOR_GROUP * CATT_VL * ry;
  t->tiles = ir_ceil_div(t->x, t->bx);
  place_tiles(t);
  int vectors = 0;
  for (int i = 0; i < t->num_out; i++)
    vectors += t->out[i].vectors;
  int weights = t->elem_bytes == 2 ? (t->num_out * ry + 1) / 2 : t->num_out * ry;
  int exponents = catt_is_at_once(t) ? ry : 0; // from the maximum to the weights
  t->registers = CATT_VL * rx * (t->num_in * ry + exponents + weights + vectors) + TENSOR_OTHER;
}

// Cycles of an SM, up to a factor: 16 rows times 16 columns of a product are two mma and, for every
// rx / 2 of them, a load of the right operand; copies from the second cache take about as long as
// products of 64 rows, for each tile that is copied.
static double tensor_cost(const catt *t) {
  int products = t->num_in + t->num_out, copies = t->num_in;
  for (int i = 0; i < t->num_out; i++)
    copies += t->out[i].copied;
  double waves = (double)ir_ceil_div(t->batch * t->tiles, t->kernel->target->cuda->sms);
  double rows = (double)t->bx / CATT_MMA, columns = (double)(ir_ceil_div(t->y, t->by) * t->by);
  bool again = t->online.found && !t->online.whole && !catt_is_at_once(t); // a sweep of scores only
  double work = rows * (1 + 2.0 / t->rx + 8.0 / t->by) + 4.0 * copies / products;
  work *= t->slots == 1 ? 1.5 : 1; // copies are waited for
  return waves * columns * work * (again ? products + t->num_in : products);
}

static bool tensor_fits(const catt *t) {
  bool smallest = t->rx == 2 && t->ry == 1;
  return (smallest || t->registers <= MAX_REGISTERS) &&
         shared_of(t) <= t->kernel->target->cuda->shared_per_block;
}

// Keeps the shape of `t` in `best` if it is better.
static void consider(const catt *t, catt *best) {
  if (tensor_fits(t) && (!best->threads || tensor_cost(t) < tensor_cost(best)))
    *best = *t;
}

// False: nothing fits.
static bool plan_tensor(catt *t) {
  catt best = {0};
  t->row_step = TENSOR_ROWS;
  t->group = TENSOR_GROUP;
  count_vectors(t, CATT_MMA);
  for (int ry = 4; ry >= 1; ry /= 2)
    for (int rx = 4; rx >= 2; rx -= 2)
      for (int warps = 4; warps >= 1; warps /= 2)
        for (t->slots = 2; t->slots >= 1; t->slots--) {
          set_tensor_shape(t, warps, rx, ry);
          consider(t, &best);
        }
  if (best.threads)
    *t = best;
  return best.threads > 0;
}

// --- the order of blocks -------------------------------------------------------------------------
// Under a mask some tiles of an item (a head of a sequence) have more columns to walk than others, under a causal
// one up to `tiles` times as many. Blocks begin in the order of their numbers, one where another has ended. If the
// last ones are the longest, most of the chip waits for them: in the order of items SMs of an H100 were busy for
// 10% less, on average, than the one that was busy longest. So long ones come first (Graham, Bounds on
// multiprocessing timing anomalies, 1969), of as many items as share the second cache with what they stream.
// Columns that the tile at x0 walks.
static int64_t columns_of(const catt *t, int64_t x0) {
  int64_t first = x0 + t->band.lower, last = x0 + t->bx + t->band.upper;
  first = first > 0 ? first : 0;
  last = last < t->y ? last : t->y;
  return last > first ? last - first : 0;
}

static int64_t streamed_bytes(const catt *t) {
  int64_t bytes = 0;
  for (int i = 0; i < t->num_in; i++)
    bytes += t->y * t->in[i].width * t->in[i].streamed.elem_bytes;
  for (int i = 0; i < t->num_out; i++)
    if (!streamed_for(t, &t->out[i]))
      bytes += t->y * t->out[i].width * t->out[i].values.elem_bytes;
  return bytes;
}

static int64_t largest_divisor(int64_t n, int64_t most) {
  int64_t d = most < n ? most : n;
  while (d > 1 && n % d)
    d--;
  return d < 1 ? 1 : d;
}

static void plan_order(catt *t) {
  t->together = 1;
  t->last_first = false;
  int64_t first = columns_of(t, 0), last = columns_of(t, (t->tiles - 1) * t->bx);
  if (!t->banded || first == last)
    return;
  t->last_first = last > first;
  t->together =
      largest_divisor(t->batch, t->kernel->target->cuda->l2_bytes / 2 / streamed_bytes(t));
}

void catt_make_plan(catt *t) {
  const cg_cuda *chip = t->kernel->target->cuda;
  if (t->mma && !plan_tensor(t)) {
    BUG_IF(t->elem_bytes == 2, "attention '%s' fits no tile", t->kernel->k->name);
    t->mma = NULL;
  }
  if (!t->mma)
    plan_f32(t);
  int most = chip->registers_per_sm / (t->threads * (t->registers + SPARE_REGISTERS));
  if (t->mma) {
    int by_shared = (int)(chip->shared_per_sm / (shared_of(t) + 1024));
    most = by_shared < most ? by_shared : most;
  }
  t->resident = most < 1 ? 1 : most > 4 ? 4 : most;
  plan_order(t);
}
