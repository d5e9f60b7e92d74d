// cuda_matmul_core.c: text: the kernels of a product.
//
//   NAME_0 (behind phases that turn operands: cuda_matmul_turn.c): a block computes a tile of c, or a piece of k of it
//     where am I; which steps of k does this tile need (bands, pieces)
//     for steps t, beginning STAGES - 1 too early:
//       wait for the copies of step t            one barrier per step: whoever is past it may
//       begin the copies of step t + STAGES - 1  overwrite the place of step t - 1
//       multiply step t
//     finish the sums, or leave them in the workspace
//   NAME_1, with pieces of k: adds the pieces of one vector of each thread, in order; finishes them
//
// Partial sums lie in the workspace as threads hold them, [piece][tile][vector][thread]: both
// phases read and write whole lines whatever the tile, and know by the same formulas where they
// are.
#include "codegen/cuda_matmul.h"

#include <string.h>

enum {
  ROWS_TOGETHER = 8, // tiles that run at a time read this many row tiles
  MOST_BEYOND =
      256 + 128, // rows, columns of a tile and steps of k that lie beyond an operand's edges
};

static const char *element_name(const cmm_text *t) {
  return t->p->p.elem_bytes == 8 ? "f64" : "f32";
}

static bool ragged(int64_t size, int64_t tile) {
  return size == 0 || size % tile != 0;
}

// --- where a block is -----------------------------------------------------------------------
// Consecutive tiles go down a few rows, then to the next column: what runs at a time shares its
// operands in the second cache.
static void put_tile_place(const cmm_text *t) {
  const cmm_plan *g = t->plan;
  long long rows = ll(g->row_tiles), cols = ll(g->col_tiles);
  if (g->row_tiles <= ROWS_TOGETHER || g->col_tiles == 1) {
    ir_buf_printf(t->out, "  const %s m0 = tile %% %lld * %d, n0 = tile / %lld * %d;\n", t->index,
                  rows, g->bm, rows, g->bn);
    return;
  }
  ir_buf_printf(t->out,
                "  const %s band = tile / %lld * %d;\n"
                "  const %s band_rows = %lld - band < %d ? %lld - band : %d;\n"
                "  const %s m0 = (band + tile %% %lld %% band_rows) * %d, "
                "n0 = tile %% %lld / band_rows * %d;\n",
                t->index, cols * ROWS_TOGETHER, ROWS_TOGETHER, t->index, rows, ROWS_TOGETHER, rows,
                ROWS_TOGETHER, t->index, cols * ROWS_TOGETHER, g->bm, cols * ROWS_TOGETHER, g->bn);
}

// `task` counts items, then tiles, then pieces; in the second phase vectors instead of pieces.
static void put_task(const cmm_text *t, const char *inner, int64_t num_inner) {
  const cmm_plan *g = t->plan;
  long long tiles = ll(g->row_tiles * g->col_tiles);
  const char *all = "task";
  if (num_inner > 1) {
    ir_buf_printf(t->out, "  const int %s = (int)(task %% %lld);\n", inner, ll(num_inner));
    all = ir_format(t->p->p.arena, "(task / %lld)", ll(num_inner));
  }
  if (t->p->p.batch > 1)
    ir_buf_printf(t->out, "  const %s batch = (%s)(%s / %lld), tile = (%s)(%s %% %lld);\n",
                  t->index, t->index, all, tiles, t->index, all, tiles);
  else
    ir_buf_printf(t->out, "  const %s batch = 0, tile = (%s)%s;\n", t->index, t->index, all);
  put_tile_place(t);
}

static void put_operand(const cmm_text *t, const char *name, const mm_operand *o) {
  const char *type = o->ctype;
  ir_buf_printf(t->out, "  const %s *const %s = (const %s *)args[%d]%s", type, name, type, o->arg,
                mm_offset_text(t->p->p.arena, o));
  if (o->batch.num)
    ir_buf_printf(t->out, " + (%s)", mm_offset(t->p->p.arena, &o->batch, "batch"));
  ir_buf_puts(t->out, ";\n");
}

// --- which steps ----------------------------------------------------------------------------
// Whole steps are taken: what a step has beyond its band is 0 in memory.
static void put_bands(const cmm_text *t) {
  const mm_problem *p = &t->p->p;
  const cmm_plan *g = t->plan;
  ir_buf *out = t->out;
  ir_buf_printf(out,
                "  const %s m1 = m0 + %d < %lld ? m0 + %d : %lld;\n"
                "  const %s n1 = n0 + %d < %lld ? n0 + %d : %lld;\n"
                "  %s begin = 0, stop = %lld; // what this tile needs of k\n",
                t->index, g->bm - 1, ll(p->m - 1), g->bm - 1, ll(p->m - 1), t->index, g->bn - 1,
                ll(p->n - 1), g->bn - 1, ll(p->n - 1), t->index, ll(p->k));
  mm_emit_bands(p, "begin", out);
}

static void put_steps(const cmm_text *t) {
  const cmm_plan *g = t->plan;
  bool bands = t->p->p.bands.limited;
  if (bands)
    put_bands(t);
  if (g->pieces > 1) {
    ir_buf_printf(t->out, "  %s first = piece * %lld, last = first + %lld;\n", t->step,
                  ll(g->piece_tiles), ll(g->piece_tiles));
    if (g->pieces * g->piece_tiles > g->k_tiles)
      ir_buf_printf(t->out, "  last = last < %lld ? last : %lld;\n", ll(g->k_tiles),
                    ll(g->k_tiles));
  } else if (bands) {
    ir_buf_printf(t->out, "  %s first = 0, last = %lld;\n", t->step, ll(g->k_tiles));
  } else {
    ir_buf_printf(t->out, "  const %s first = 0, last = %lld;\n", t->step, ll(g->k_tiles));
  }
  if (bands)
    ir_buf_printf(t->out,
                  "  first = begin > first * %d ? (%s)(begin / %d) : first;\n"
                  "  last = stop < last * %d ? (%s)((stop + %d) / %d) : last;\n"
                  "  last = begin < stop ? last : first;\n",
                  g->bk, t->step, g->bk, g->bk, t->step, g->bk - 1, g->bk);
}

// --- sums -----------------------------------------------------------------------------------
// The lines of `text`, two columns further in.
static void put_further_in(ir_buf *out, const char *text) {
  while (*text) {
    size_t length = strcspn(text, "\n");
    ir_buf_puts(out, length > 0 ? "  " : "");
    ir_buf_write(out, text, length);
    ir_buf_puts(out, "\n");
    text += length + (text[length] == '\n');
  }
}

// The next place of a step in shared memory, after the last one the first.
static void put_turn(ir_buf *out, const cmm_plan *g, const char *place) {
  ir_buf_printf(out, "    %s = %s == %d ? 0 : %s + 1;\n", place, place, g->stages - 1, place);
}

static void put_products(const cmm_text *t, bool further_in) {
  ir_buf step = ir_buf_new(t->out->arena);
  cmm_text in = *t;
  in.out = further_in ? &step : t->out;
  cmm_emit_step(&in);
  put_turn(in.out, t->plan, "slot");
  if (further_in)
    put_further_in(t->out, ir_buf_str(&step));
}

static void put_held(const cmm_text *t, bool is_b) {
  int held = cmm_held(t, is_b);
  if (held > 0)
    ir_buf_printf(t->out, "    %s %s_next[%d];\n", cmm_element(t), is_b ? "b" : "a", held);
}

// Copies that pass no registers go first: they are under way while others are waited for.
static void put_copies(const cmm_text *t) {
  bool b_first = cmm_held(t, false) > 0;
  cmm_emit_copy(t, b_first);
  cmm_emit_copy(t, !b_first);
}

// After the products, or before there are any.
static void put_arrivals(const cmm_text *t) {
  ir_buf_puts(t->out, "    if (next < last) {\n");
  cmm_emit_arrival(t, false);
  cmm_emit_arrival(t, true);
  ir_buf_puts(t->out, "    }\n");
}

// Steps begin `ahead` of the first that is multiplied: their copies.
static void open_loop(const cmm_text *t, int ahead) {
  ir_buf_printf(
      t->out,
      "  int put = 0, slot = 0; // places in shared memory: to copy to, to multiply from\n"
      "  for (%s t = first - %d; t < last; t++) {\n"
      "    if (t >= first) {\n"
      "      k_async_wait<%d>();\n",
      t->step, ahead, ahead - 1);
}

static void put_next_step(const cmm_text *t, int ahead) {
  ir_buf_printf(t->out, "    const %s next = t + %d;\n", t->step, ahead);
  put_held(t, false);
  put_held(t, true);
  ir_buf_puts(t->out, "    if (next < last) {\n");
  put_copies(t);
  ir_buf_puts(t->out, "    }\n"
                      "    k_async_commit();\n");
}

static bool holds_elements(const cmm_text *t) {
  return cmm_held(t, false) + cmm_held(t, true) > 0;
}

static void put_loop(const cmm_text *t) {
  const cmm_plan *g = t->plan;
  bool held = holds_elements(t);
  open_loop(t, g->stages - 1);
  ir_buf_puts(t->out, "      __syncthreads();\n"
                      "    }\n");
  put_next_step(t, g->stages - 1);
  if (held) {
    ir_buf_puts(t->out, "    if (t >= first) {\n");
  } else {
    put_turn(t->out, g, "put");
    ir_buf_puts(t->out, "    if (t < first)\n      continue;\n");
  }
  put_products(t, held);
  if (held) {
    ir_buf_puts(t->out, "    }\n");
    put_arrivals(t);
    put_turn(t->out, g, "put");
  }
  ir_buf_puts(t->out, "  }\n");
}

// By wgmma: products of a step are under way while the next one's begin.
static void put_wgmma_loop(const cmm_text *t) {
  const cmm_plan *g = t->plan;
  open_loop(t, g->stages - 2);
  ir_buf_puts(t->out, "      k_wgmma_ready();\n"
                      "      __syncthreads();\n");
  cmm_emit_wgmma_step(t);
  ir_buf_puts(t->out, "  ");
  put_turn(t->out, g, "slot");
  ir_buf_puts(t->out, "    }\n");
  put_next_step(t, g->stages - 2);
  ir_buf_puts(t->out, "    if (t >= first)\n"
                      "      k_wgmma_wait<1>();\n");
  if (holds_elements(t))
    put_arrivals(t);
  put_turn(t->out, g, "put");
  ir_buf_puts(t->out, "  }\n");
  cmm_emit_wgmma_end(t);
}

// --- finishing ------------------------------------------------------------------------------
// For the vector of row `line` at `column`: the epilogue, unless it lies outside.
static void put_finish(const cmm_text *t, const char *value, int indent) {
  const cmm_plan *g = t->plan;
  ir_buf_printf(t->out, "%*sconst %s line = m0 + %s, column = n0 + %s;\n", indent, "", t->index,
                cmm_row(t, "i"), cmm_column(t, "j"));
  bool rows = ragged(t->p->p.m, g->bm), cols = ragged(t->p->p.n, g->bn);
  if (rows || cols) {
    ir_buf_printf(t->out, "%*sif (", indent, "");
    if (rows)
      ir_buf_printf(t->out, "line < %lld%s", ll(t->p->p.m), cols ? " && " : "");
    if (cols)
      ir_buf_printf(t->out, "column < %lld", ll(t->p->p.n));
    ir_buf_puts(t->out, ") {\n");
    indent += 2;
  }
  if (value)
    ir_buf_printf(t->out, "%*sconst %s product = %s;\n", indent, "", cmm_vector(t), value);
  else
    ir_buf_printf(t->out,
                  "%*s%s product = k_load_%s(partial);\n"
                  "%*sfor (int p = 1; p < %lld; p++)\n"
                  "%*s  product += k_load_%s(partial + p * (int64_t)%lld);\n",
                  indent, "", cmm_vector(t), element_name(t), indent, "", ll(g->pieces), indent, "",
                  element_name(t), ll(t->p->p.batch * g->row_tiles * g->col_tiles * g->bm * g->bn));
  t->p->emit_finish(t->p, t->out, indent);
  if (rows || cols)
    ir_buf_printf(t->out, "%*s}\n", indent - 2, "");
}

// Rows that begin anywhere, as those of 50257 floats do, are not stored by 16 bytes: each store of threads
// that have four neighbours would write 4 bytes in 16 of 8 rows. So 8 rows of each row of warps go
// through shared memory at a time, and a warp finishes a row: neighbouring threads have neighbouring columns.
static void put_spread_finish(const cmm_text *t) {
  const cmm_plan *g = t->plan;
  int pitch = cmm_rows_pitch(g), group = CMM_SPREAD * CMM_VL;
  ir_buf_printf(t->out,
                "  #pragma unroll\n"
                "  for (int i = 0; i < %d; i++) {\n"
                "    __syncthreads();\n"
                "    #pragma unroll\n"
                "    for (int j = 0; j < %d; j++) {\n"
                "      const vf product = %s;\n"
                "      c_rows.store4((warp / %d * 8 + ty) * %d + %s, product);\n"
                "    }\n"
                "    __syncthreads();\n"
                "    for (int r = warp; r < %d; r += %d) {\n"
                "      const int a_row = %s;\n"
                "      #pragma unroll\n"
                "      for (int j = 0; j < %d; j++) {\n"
                "        const %s line = m0 + %s, column = n0 + j * %d + thread %% %d;\n",
                g->tm, g->tv, cmm_sums(t), g->warps_n, pitch, cmm_column(t, "j"),
                CMM_WARP_ROWS * g->warps_m, g->threads / 32, cmm_first_row(t, "r / 8", "r % 8"),
                g->bn / group, t->index, cmm_row(t, "i"), group, CMM_SPREAD);
  const char *rows =
      ragged(t->p->p.m, g->bm) ? ir_format(t->p->p.arena, "line < %lld && ", ll(t->p->p.m)) : "";
  ir_buf_printf(t->out,
                "        if (%scolumn < %lld) {\n"
                "          vf product;\n"
                "          #pragma unroll\n"
                "          for (int e = 0; e < VL; e++)\n"
                "            product[e] = c_rows[r * %d + j * %d + e * %d + thread %% %d];\n",
                rows, ll(t->p->p.n), pitch, group, CMM_SPREAD, CMM_SPREAD);
  t->p->emit_finish(t->p, t->out, 10);
  ir_buf_puts(t->out, "        }\n      }\n    }\n  }\n");
}

static void put_vector_loops(const cmm_text *t) {
  ir_buf_printf(t->out,
                "  #pragma unroll\n"
                "  for (int i = 0; i < %d; i++) {\n"
                "    #pragma unroll\n"
                "    for (int j = 0; j < %d; j++) {\n",
                t->plan->tm, t->plan->tv);
}

// Where the partial sums of a thread begin. What the block is, is worked out again: kept over the
// loop, it costs sums their registers.
static void put_partial(const cmm_text *t) {
  const cmm_plan *g = t->plan;
  const char *type = cmm_scalar(t);
  ir_buf_printf(t->out,
                "  int again = (int)task; // not kept in a register until here\n"
                "  asm volatile(\"\" : \"+r\"(again));\n"
                "  %s *const partial = (%s *)args[%d] +\n"
                "      ((int64_t)(again %% %lld) * %lld + again / %lld) * %d + "
                "(int)threadIdx.x * %d;\n",
                type, type, t->p->p.workspace_arg, ll(g->pieces),
                ll(t->p->p.batch * g->row_tiles * g->col_tiles), ll(g->pieces), g->bm * g->bn,
                CMM_VL);
}

static void put_sums_away(const cmm_text *t) {
  put_partial(t);
  put_vector_loops(t);
  ir_buf_printf(t->out,
                "      const %s product = %s;\n"
                "      k_store_%s(partial + (i * %d + j) * %d, product);\n"
                "    }\n  }\n",
                cmm_vector(t), cmm_sums(t), element_name(t), t->plan->tv,
                t->plan->threads * CMM_VL);
}

static void put_begin(const cmm_text *t, bool is_b) {
  const char *name = is_b ? "b" : "a";
  ir_buf_printf(t->out, "  const k_place<%s> %s_begin = %s_tiles.begin();\n", cmm_element(t), name,
                name);
}

// The kernel's first line, and its arrays in shared memory.
static void put_kernel(const cmm_text *t) {
  const cmm_plan *g = t->plan;
  const char *type = cmm_element(t);
  int width = t->p->width + (g->workspace > 0), phase = cmm_product_phase(g);
  int a_elems = g->a.elems * g->stages, b_elems = g->b.elems * g->stages;
  int given = cmm_given_shared(t->p, g);
  if (given > 0)
    ir_buf_printf(t->out,
                  "K_KERNEL_SHARED(%s_%d, %d, %d, %d, %d) {\n"
                  "  K_SHARED(a_tiles, %s, %d, 0); // %d steps of k\n"
                  "  K_SHARED(b_tiles, %s, %d, %lld);\n",
                  t->name, phase, g->threads, g->resident, given, width, type, a_elems, g->stages,
                  type, b_elems, ll(g->b_shared));
  else
    ir_buf_printf(t->out,
                  "K_KERNEL_ROOM(%s_%d, %d, %d, %d) {\n"
                  "  __shared__ k_array<%s, %d> a_tiles; // %d steps of k\n"
                  "  __shared__ k_array<%s, %d> b_tiles;\n",
                  t->name, phase, g->threads, g->resident, width, type, a_elems, g->stages, type,
                  b_elems);
  if (g->spread && given > 0)
    ir_buf_printf(t->out, "  K_SHARED(c_rows, float, %d, %lld);\n", cmm_rows_elems(g),
                  ll(g->rows_shared));
  else if (g->spread)
    ir_buf_printf(t->out, "  __shared__ k_array<float, %d> c_rows;\n", cmm_rows_elems(g));
}

static void emit_compute(const cmm_text *t) {
  const cmm_plan *g = t->plan;
  BUG_IF(g->wgmma && (g->b_shared % 1024 || g->a.elems % 512 || g->b.elems % 512),
         "tiles of %d and %d elements", g->a.elems, g->b.elems);
  put_kernel(t);
  put_begin(t, false);
  put_begin(t, true);
  if (g->pieces == 1)
    t->p->emit_args(t->p, t->out);
  put_task(t, "piece", g->pieces);
  put_operand(t, "a", &t->p->p.a);
  put_operand(t, "b", &t->p->p.b);
  cmm_emit_places(t);
  put_steps(t);
  cmm_emit_read_places(t);
  cmm_emit_copy_places(t, false);
  cmm_emit_copy_places(t, true);
  cmm_emit_sums(t);
  if (g->wgmma)
    put_wgmma_loop(t);
  else
    put_loop(t);
  cmm_emit_exchange(t);
  if (g->pieces > 1) {
    put_sums_away(t);
  } else if (g->spread) {
    put_spread_finish(t);
  } else {
    put_vector_loops(t);
    put_finish(t, cmm_sums(t), 6);
    ir_buf_puts(t->out, "    }\n  }\n");
  }
  ir_buf_puts(t->out, "}\n\n");
}

static void emit_add(const cmm_text *t) {
  const cmm_plan *g = t->plan;
  ir_buf_printf(t->out, "// Adds the %lld pieces of k, in order.\n", ll(g->pieces));
  ir_buf_printf(t->out, "K_KERNEL(%s_%d, %d, %d) {\n", t->name, cmm_product_phase(g) + 1,
                g->threads, t->p->width + 1);
  t->p->emit_args(t->p, t->out);
  put_task(t, "vector", g->tm * g->tv);
  cmm_emit_places(t);
  const char *vector = g->tm * g->tv > 1 ? "vector" : "0";
  if (g->tv > 1)
    ir_buf_printf(t->out, "  const int i = %s / %d, j = %s %% %d;\n", vector, g->tv, vector, g->tv);
  else
    ir_buf_printf(t->out, "  const int i = %s;\n", vector);
  ir_buf_printf(t->out,
                "  const %s *const partial = (const %s *)args[%d] + task * %d + thread * %d;\n",
                cmm_scalar(t), cmm_scalar(t), t->p->p.workspace_arg, g->threads * CMM_VL, CMM_VL);
  put_finish(t, NULL, 2);
  ir_buf_puts(t->out, "}\n\n");
}

// --- the whole kernel -----------------------------------------------------------------------
static void emit_head(const cmm_text *t) {
  const cmm_plan *g = t->plan;
  const mm_problem *p = &t->p->p;
  static const char *const products[] = {"", ", products in tf32", ", products in bf16",
                                         ", products in f16"};
  static const char *const layouts[] = {"[k][x]", "[x][k]"};
  ir_buf_printf(t->out, "// c[%lld,%lld] = a[%lld,%lld] b[%lld,%lld]", ll(p->m), ll(p->n), ll(p->m),
                ll(p->k), ll(p->k), ll(p->n));
  if (p->batch > 1)
    ir_buf_printf(t->out, ", %lld times", ll(p->batch));
  ir_buf_printf(t->out, "%s%s: tiles of %d x %d, %d x %d of a thread; %d k at a time, ",
                products[g->math], g->wgmma ? " by wgmma" : "", g->bm, g->bn, g->tm, g->tv * CMM_VL,
                g->bk);
  if (g->pieces > 1)
    ir_buf_printf(t->out, "%lld pieces of %lld, ", ll(g->pieces), ll(g->piece_tiles * g->bk));
  ir_buf_printf(t->out, "%d in shared memory;\n// a as %s, b as %s, copied by %d and %d bytes\n",
                g->stages, layouts[g->a.layout], layouts[g->b.layout], g->a.vec * p->a.elem_bytes,
                g->b.vec * p->b.elem_bytes);
}

static int64_t extent(const mm_axes *axes) {
  int64_t e = 0;
  for (int i = 0; i < axes->num; i++)
    e += (axes->size[i] - 1) * axes->stride[i];
  return e;
}

// Offsets that are reckoned with, beyond the edges, too.
static bool fits_int(const mm_operand *o, int64_t steps) {
  int64_t most = o->offset + extent(&o->batch) + extent(&o->x) + extent(&o->k), widest = 0;
  for (int i = 0; i < o->x.num; i++)
    widest = o->x.stride[i] > widest ? o->x.stride[i] : widest;
  for (int i = 0; i < o->k.num; i++)
    widest = o->k.stride[i] > widest ? o->k.stride[i] : widest;
  return most + widest * MOST_BEYOND < INT32_MAX && steps < INT32_MAX;
}

void cmm_emit(const cmm_problem *as_it_is, const cmm_plan *plan, const char *name, ir_buf *out) {
  cmm_problem turned = cmm_turn(as_it_is, plan->turned, plan->turned_at), *p = &turned;
  const mm_problem *q = &p->p;
  bool small = fits_int(&q->a, q->k) && fits_int(&q->b, q->k) && q->batch < INT32_MAX &&
               plan->row_tiles * plan->bm < INT32_MAX / 2 &&
               plan->col_tiles * plan->bn < INT32_MAX / 2 &&
               plan->row_tiles * plan->col_tiles < INT32_MAX / 2;
  bool few = plan->pieces * plan->piece_tiles * plan->bk < INT32_MAX;
  cmm_text t = {.p = p,
                .plan = plan,
                .name = name,
                .out = out,
                .index = small ? "int" : "int64_t",
                .step = few ? "int" : "int64_t"};
  emit_head(&t);
  cmm_emit_turns(&t, as_it_is);
  emit_compute(&t);
  if (plan->pieces > 1)
    emit_add(&t);
}
