// cuda_attention_core.c: text: the kernel: where a block is, which tiles it walks, the steps of a
// tile.
//
// Steps of a tile in f32, in order: those of each product in, then those of each product out. Each
// waits for its own copies, begins the next step's, and multiplies. The other place in shared
// memory is free by then: whoever is past the barrier has done with it. By the tensor cores a tile
// is one step.
#include "codegen/cuda_attention.h"

// --- where a block is ----------------------------------------------------------------------------
static void put_operand(const catt_text *x, const char *name, const mm_operand *o) {
  ir_buf_printf(x->out, "  const %s *const %s = (const %s *)args[%d]", o->ctype, name, o->ctype,
                o->arg);
  if (o->offset)
    ir_buf_printf(x->out, " + %lld", ll(o->offset));
  if (o->batch.num)
    ir_buf_printf(x->out, " + (%s)", mm_offset(x->arena, &o->batch, "batch"));
  ir_buf_puts(x->out, ";\n");
}

// batch = task / 16, x0 = task % 16 * 64; long ones first (cuda_attention_plan.c):
// batch = task / 512 * 32 + task % 32, x0 = (15 - task / 32 % 16) * 64
static void put_block(const catt_text *x) {
  const catt *t = x->t;
  long long together = ll(t->together), tiles = ll(t->tiles);
  const char *item = ir_format(x->arena, "(task / %lld)", tiles), *tile = "task";
  if (together > 1) {
    item = ir_format(x->arena, "(task / %lld * %lld + task %% %lld)", together * tiles, together,
                     together);
    tile = ir_format(x->arena, "task / %lld", together);
  }
  tile = ir_format(x->arena, "%s %% %lld", tile, tiles);
  if (t->last_first)
    tile = ir_format(x->arena, "%lld - %s", tiles - 1, tile);
  ir_buf_printf(x->out, "  const %s batch = (%s)%s, x0 = (%s)(%s) * %d;\n", x->index, x->index,
                item, x->index, tile, t->bx);
}

static void put_places(catt_text *x) {
  const catt *t = x->t;
  put_block(x);
  if (t->mma)
    ir_buf_printf(x->out,
                  "  const int ty = (int)threadIdx.x / 32 * %d + (int)threadIdx.x %% 32 / 4;\n"
                  "  const int tx = (int)threadIdx.x %% 4;\n",
                  t->row_step * t->rx);
  else
    ir_buf_printf(x->out,
                  "  const int ty = (int)threadIdx.x / %d * 2 + (int)threadIdx.x %% 2;\n"
                  "  const int tx = (int)threadIdx.x %% %d / 2;\n",
                  2 * CATT_TX, 2 * CATT_TX);
  for (int i = 0; i < t->num_in; i++) {
    put_operand(x, ir_format(x->arena, "own%d", i), &t->in[i].own);
    put_operand(x, ir_format(x->arena, "streamed%d", i), &t->in[i].streamed);
  }
  for (int i = 0; i < t->num_out; i++)
    if (t->out[i].copied)
      put_operand(x, ir_format(x->arena, "values%d", i), &t->out[i].values);
  int64_t size[DOM_MAX_AXES];
  for (int i = 0; i < t->dom->num_batch_axes; i++)
    size[i] = t->dom->dom->axis[i].size;
  cg_emit_indices(x->out, 2, "batch", t->dom->num_batch_axes, size, x->axis);
}

// --- which tiles ---------------------------------------------------------------------------------
static void put_range(const catt_text *x) {
  const catt *t = x->t;
  bool last = x->sweep + 1 == t->sweeps;
  long long y = ll(t->y);
  if ((!last && !t->online.found) || !t->banded) {
    ir_buf_printf(x->out, "  const %s begin = 0, end = %lld;\n", x->index, y);
    return;
  }
  if (band_is_empty(t->band)) {
    ir_buf_printf(x->out, "  const %s begin = 0, end = 0; // nothing but zeros\n", x->index);
    return;
  }
  ir_buf_printf(x->out,
                "  // masks leave streamed - own in %lld..%lld\n"
                "  const %s least = x0 + (%lld), most_y = x0 + %lld;\n"
                "  const %s begin = least > 0 ? least / %d * %d : 0;\n"
                "  const %s end = most_y < %lld ? most_y : %lld;\n",
                ll(t->band.lower), ll(t->band.upper), x->index, ll(t->band.lower),
                ll(t->bx + t->band.upper), x->index, t->by, t->by, x->index, y, y);
}

// --- what a block holds --------------------------------------------------------------------------
static void put_online_values(const catt_text *x) {
  ir_buf_printf(x->out, "  float most[%d], total[%d]; // maximum and sum of exponentials so far\n",
                x->t->rx, x->t->rx);
}

// Columns outside of the range of an online softmax are its first tile; rows far down begin behind the last column.
static void put_online(const catt_text *x) {
  const catt *t = x->t;
  const catt_online *o = &t->online;
  if (o->whole)
    put_online_values(x);
  const char *most = "-__builtin_inff()", *total = "0.0f";
  if (t->banded) {
    const char *c = cpu_literal(x->arena, IR_F32, o->constant);
    ir_buf_printf(x->out,
                  "  const %s walked = begin < end ? (end - begin + %d) / %d * %d : 0;\n"
                  "  const %s skipped = begin + walked < %lld ? %lld - walked : begin < %lld ? "
                  "begin : %lld;\n",
                  x->index, t->by - 1, t->by, t->by, x->index, ll(t->y), ll(t->y), ll(t->y),
                  ll(t->y));
    most = ir_format(x->arena, "skipped > 0 ? %s : -__builtin_inff()", c);
    total = "tx == 0 ? (float)skipped : 0.0f";
    if (o->constant < 0 && o->constant - o->constant != 0) // exp(-inf - -inf)
      total = "skipped > 0 ? __builtin_nanf(\"\") : 0.0f";
  }
  ir_buf_printf(x->out,
                "  #pragma unroll\n  for (int i = 0; i < %d; i++) {\n"
                "    most[i] = %s;\n    total[i] = %s;\n  }\n",
                t->rx, most, total);
}

// --- steps ---------------------------------------------------------------------------------------
static int num_steps(const catt *t, int product) {
  if (product >= t->num_in)
    return t->by / CATT_STEP;
  return (int)((t->in[product].width + CATT_STEP - 1) / CATT_STEP);
}

static int num_products(const catt_text *x) {
  bool last = x->sweep + 1 == x->t->sweeps;
  return x->t->num_in + (last ? x->t->num_out : 0);
}

// Step `step` of a product of the tile at y0.
static const char *copy_text(const catt_text *x, int product, const char *y0, const char *step,
                             const char *slot) {
  int in = x->t->num_in, i = product < in ? product : product - in;
  if (product < in)
    return ir_format(x->arena, "%s_copy_in%d(steps, %s, own%d, streamed%d, x0, %s, %s * %d);",
                     x->name, i, slot, i, i, y0, step, CATT_STEP);
  return ir_format(x->arena, "%s_copy_out%d(steps, %s, values%d, %s + %s * %d);", x->name, i, slot,
                   i, y0, step, CATT_STEP);
}

// The first step after those of this product: of the next one, or of the next tile.
static void put_next_product(const catt_text *x, int product) {
  if (product + 1 < num_products(x))
    ir_buf_printf(x->out, "      else\n        %s\n",
                  copy_text(x, product + 1, "y0", "0", "1 - slot"));
  else
    ir_buf_printf(x->out, "      else if (y0 + %d < end)\n        %s\n", x->t->by,
                  copy_text(x, 0, ir_format(x->arena, "y0 + %d", x->t->by), "0", "1 - slot"));
}

static void put_product(const catt_text *x, int product) {
  const catt *t = x->t;
  int steps = num_steps(t, product), out = product - t->num_in;
  ir_buf_printf(x->out,
                "    #pragma unroll 1\n"
                "    for (int step = 0; step < %d; step++) {\n"
                "      k_async_wait<0>();\n"
                "      __syncthreads();\n"
                "      if (step < %d)\n        %s\n",
                steps, steps - 1, copy_text(x, product, "y0", "(step + 1)", "1 - slot"));
  put_next_product(x, product);
  ir_buf_puts(x->out, "      k_async_commit();\n");
  if (out < 0)
    ir_buf_printf(x->out, "      %s_scores(s%d, steps, slot, ty, tx);\n", x->name, product);
  else
    ir_buf_printf(x->out, "      %s_out%d(out%d, steps, slot, weights, step * %d, ty, tx);\n",
                  x->name, out, out, CATT_STEP);
  ir_buf_puts(x->out, "      slot = 1 - slot;\n    }\n");
}

// Weights of a row are written and read by one warp: it waits for its own threads before it writes
// new ones over them. Products begin with a barrier of the block.
static void put_tile(catt_text *x) {
  const catt *t = x->t;
  for (int i = 0; i < t->num_in; i++) {
    ir_buf_printf(x->out, "    vf s%d[%d][%d] = {}; // %s\n", i, t->rx, t->ry,
                  cg_local_name(x->arena, ir_map_new(x->arena), t->in[i].n));
    put_product(x, i);
  }
  catt_emit_values(x);
  for (int i = t->num_in; i < num_products(x); i++) {
    if (i > t->num_in) {
      ir_buf_puts(x->out, "    __syncwarp();\n");
      catt_emit_weights(x, i - t->num_in);
    }
    put_product(x, i);
  }
}

static void put_steps(catt_text *x) {
  ir_buf_printf(x->out,
                "  if (begin < end)\n    %s\n"
                "  k_async_commit();\n"
                "  #pragma unroll 1\n"
                "  for (%s y0 = begin; y0 < end; y0 += %d) {\n",
                copy_text(x, 0, "begin", "0", "slot"), x->index, x->t->by);
  put_tile(x);
  ir_buf_puts(x->out, "  }\n");
}

// Two slots, one barrier: past it, this tile is there for all, and nobody reads the tile before it,
// whose slot the next one gets. One slot: nobody reads it any more; then it is filled and waited
// for.
static void put_tile_copies(const catt_text *x) {
  const catt *t = x->t;
  if (t->slots == 1)
    ir_buf_puts(x->out, "    __syncthreads();\n");
  else
    ir_buf_printf(
        x->out, "    k_async_wait<0>();\n    __syncthreads();\n    if (y0 + %d < end) {\n", t->by);
  if (t->slots == 1)
    catt_emit_tensor_copies(x, "    ", "y0", "slot");
  else
    catt_emit_tensor_copies(x, "      ", ir_format(x->arena, "y0 + %d", t->by), "1 - slot");
  ir_buf_puts(x->out, t->slots == 1
                          ? "    k_async_commit();\n    k_async_wait<0>();\n    __syncthreads();\n"
                          : "    }\n    k_async_commit();\n");
}

static void put_whole_tiles(catt_text *x) {
  const catt *t = x->t;
  if (t->slots > 1 || x->sweep == 0)
    ir_buf_puts(x->out, "  if (begin < end) {\n");
  if (x->sweep == 0) // they come with the first tile
    catt_emit_tensor_own(x);
  if (t->slots > 1)
    catt_emit_tensor_copies(x, "    ", "begin", "slot");
  if (t->slots > 1 || x->sweep == 0)
    ir_buf_puts(x->out, "  }\n  k_async_commit();\n");
  ir_buf_printf(x->out,
                "  #pragma unroll 1\n"
                "  for (%s y0 = begin; y0 < end; y0 += %d) {\n",
                x->index, t->by);
  put_tile_copies(x);
  if (t->dom->columns)
    catt_emit_held_loads(x);
  for (int i = 0; i < t->num_in; i++)
    catt_emit_tensor_in(x, i);
  catt_emit_values(x);
  for (int i = 0; x->sweep + 1 == t->sweeps && i < t->num_out; i++)
    catt_emit_tensor_out(x, i);
  ir_buf_puts(x->out, t->slots > 1 ? "    slot = 1 - slot;\n  }\n" : "  }\n");
}

static void put_sweep(catt_text *x) {
  ir_buf_puts(x->out, "  {\n");
  put_range(x);
  if (x->t->online.found && x->sweep == 0)
    put_online(x);
  (x->t->mma ? put_whole_tiles : put_steps)(x);
  catt_emit_finish(x);
  ir_buf_puts(x->out, "  }\n");
}

// --- the whole kernel ----------------------------------------------------------------------------
static int64_t extent(const mm_axes *axes) {
  int64_t e = 0;
  for (int i = 0; i < axes->num; i++)
    e += (axes->size[i] + 128) * axes->stride[i];
  return e;
}

static bool fits_int(const mm_operand *o) {
  return o->offset + extent(&o->batch) + extent(&o->x) + extent(&o->k) < INT32_MAX;
}

static bool all_fit_int(const catt *t) {
  bool fit = t->batch * t->tiles < INT32_MAX && t->x + t->y < INT32_MAX / 2;
  for (int i = 0; i < t->num_in; i++)
    fit = fit && fits_int(&t->in[i].own) && fits_int(&t->in[i].streamed);
  for (int i = 0; i < t->num_out; i++)
    fit = fit && fits_int(&t->out[i].values);
  return fit;
}

static void put_head(const catt_text *x) {
  const catt *t = x->t;
  ir_buf_printf(
      x->out, "// scores[%lld,%lld], %lld times%s, in tiles of %d x %d, %d x %d of a thread%s%s\n",
      ll(t->x), ll(t->y), ll(t->batch),
      t->mma ? ir_format(x->arena, ", products in %s", t->mma) : "", t->bx, t->by, t->rx,
      t->ry * CATT_VL, t->dom->columns ? ", transposed" : "",
      !t->online.found ? ""
      : t->sweeps == 1 ? "; softmax in one sweep"
                       : "; softmax in two sweeps");
}

static void reserve_names(catt_text *x) {
  static const char *const taken[] = {
      "batch",  "x0",      "y0",     "ty",      "tx",    "begin",   "end",  "least", "most_y",
      "walked", "skipped", "most",   "total",   "steps", "weights", "slot", "step",  "row",
      "line",   "place",   "column", "lanes",   "in",    "i",       "q",    "x",     "top",
      "larger", "fresh",   "scale",  "inverse", "to",    "changes"};
  for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
    cg_scope_name(x->arena, x->names, taken[i]);
  for (int i = 0; x->t->mma && i < 2; i++)
    cg_scope_name(x->arena, x->names, i ? "own" : "tiles");
  if (catt_is_at_once(x->t))
    cg_scope_name(x->arena, x->names, "whole");
  for (int i = 0; i < CATT_MAX; i++) {
    static const char *const numbered[] = {"s", "w", "out", "own", "streamed", "values"};
    for (size_t j = 0; j < sizeof numbered / sizeof *numbered; j++)
      cg_scope_name(x->arena, x->names, ir_format(x->arena, "%s%d", numbered[j], i));
  }
  for (size_t i = 0; i < x->t->inner.k->nodes.num; i++)
    cg_scope_name(x->arena, x->names, ir_format(x->arena, "r%zu", i));
  for (int i = 0; i < DOM_MAX_AXES; i++) {
    x->axis[i] = ir_format(x->arena, "i%d", i);
    cg_scope_name(x->arena, x->names, x->axis[i]);
  }
}

static void put_shared(const catt_text *x) {
  const catt *t = x->t;
  if (t->mma)
    ir_buf_printf(x->out,
                  "  __shared__ k_array<%s, %d> own;\n"
                  "  __shared__ k_array<%s, %d> tiles;\n",
                  t->in[0].own.ctype, t->own_elems, t->in[0].own.ctype, t->slots * t->slot_elems);
  else
    ir_buf_printf(x->out,
                  "  __shared__ k_array<float, %d> steps;\n"
                  "  __shared__ k_array<float, %d> weights;\n",
                  2 * t->step_elems, t->bx * t->weights_pitch);
}

void catt_emit_kernel(const catt *t, const char *name, ir_buf *out) {
  const cg_kernel *k = t->kernel;
  catt_text x = {.t = t,
                 .name = name,
                 .out = out,
                 .arena = k->arena,
                 .index = all_fit_int(t) ? "int" : "int64_t",
                 .names = ir_map_new(k->arena)};
  reserve_names(&x);
  put_head(&x);
  catt_emit_functions(&x);
  ir_buf_printf(out, "K_KERNEL_ROOM(%s_0, %d, %d, %zu) {\n", name, t->threads, t->resident,
                k->in.num + k->out.num);
  put_shared(&x);
  cg_emit_args(k, out, 2);
  put_places(&x);
  ir_buf_puts(out, "  int slot = 0;\n");
  for (int i = 0; i < t->num_out; i++)
    ir_buf_printf(out, "  vf out%d[%d][%d] = {};\n", i, t->rx, t->out[i].vectors);
  if (t->online.found && !t->online.whole)
    put_online_values(&x);
  catt_emit_row_values(&x);
  if (!t->dom->columns)
    catt_emit_held_loads(&x);
  for (x.sweep = 0; x.sweep < t->sweeps; x.sweep++)
    put_sweep(&x);
  ir_buf_puts(out, "}\n\n");
}
