// cuda_attention_tensor.c: text: whole tiles to shared memory, and their products by mma.sync.
//
// Thread (ty, tx) = (lane / 4, lane % 4) of a warp holds of a product's sums, 16 rows x 8 columns,
// rows ty and ty + 8, columns 2 tx and 2 tx + 1; of the left operand the same rows, of the right
// one column ty; of 16-bit operands k 2 tx, 2 tx + 1 and 8 on, of tf32 k tx and tx + 4. Which
// streamed row is "column c" of a product in, and "k" of a product out, may be chosen freely, as
// long as all agree:
//   products in    two share 16 streamed rows; column 2 t + i of product h is row 4 t + 2 h + i. So
//                  thread tx has rows 4 tx .. 4 tx + 3: a vector, as expressions want it
//   products out   k 2 t + i, and 8 on, are rows 4 t + i, 4 t + 2 + i (tf32: k t, and t + 4, of
//                  half h are rows 4 t + 2 h, and the next): the weights that a thread has are the
//                  left operand that it needs. Nothing goes through shared memory
// ldmatrix then takes rows 0, 1, 4, 5, 8, 9, 12, 13 together, and the same of 2 on. Of values in 32
// bits it cannot turn a matrix: they are read one by one.
//
// Sums of products out are columns 2 tx, 2 tx + 1 of two products; threads tx and tx + 1 (tx even)
// exchange halves, once, at the end, and have four neighbours each.
#include "codegen/cuda_attention.h"

static int eight_rows(const catt_text *x, int pitch) {
  return catt_tile_elems(x->t, 8, pitch);
}

// Of elements in shared memory, and in memory.
static const char *type_of(const catt_text *x) {
  return x->t->in[0].own.ctype;
}

// Elements of 16 bytes, of which an mma takes two along k.
static int unit_of(const catt_text *x) {
  return 16 / x->t->elem_bytes;
}

// --- copies --------------------------------------------------------------------------------------
static const char *place_of(const catt_text *x, const char *slot, int at, int pitch) {
  return ir_format(x->arena, "%s%d + line * %d + line / 8 * %d + inner", slot, at, pitch,
                   2 * unit_of(x));
}

static void put_copy_own(const catt_text *x) {
  const catt *t = x->t;
  ir_buf_printf(x->out, "K_IN void %s_copy_own(k_array<%s, %d> &own", x->name, type_of(x),
                t->own_elems);
  for (int i = 0; i < t->num_in; i++)
    ir_buf_printf(x->out, ", const %s *own%d", type_of(x), i);
  ir_buf_printf(x->out, ", %s x0) {\n", x->index);
  for (int i = 0; i < t->num_in; i++) {
    const catt_in *in = &t->in[i];
    catt_piece p = {.from = ir_format(x->arena, "own%d", i),
                    .o = &in->own,
                    .line = &in->own.x,
                    .inner = &in->own.k,
                    .line0 = "x0",
                    .inner0 = "0",
                    .lines = t->bx,
                    .length = catt_padded(in->width),
                    .num_lines = t->x,
                    .num_inner = in->width,
                    .to = "own",
                    .place = place_of(x, "", in->own_at, in->pitch)};
    catt_emit_copies(x, &p);
  }
  ir_buf_puts(x->out, "}\n");
}

// The tiles at y0 of products in, or of those values of products out that are not among them.
static void open_copies(const catt_text *x, const char *what) {
  ir_buf_printf(x->out, "K_IN void %s_copy_%s(k_array<%s, %d> &tiles, int slot", x->name, what,
                type_of(x), x->t->slots * x->t->slot_elems);
}

static void put_piece(const catt_text *x, catt_piece p, int at, int pitch) {
  p.line0 = "y0";
  p.inner0 = "0";
  p.lines = x->t->by;
  p.length = catt_padded(p.num_inner);
  p.num_lines = x->t->y;
  p.to = "tiles";
  p.place = place_of(x, ir_format(x->arena, "slot * %d + ", x->t->slot_elems), at, pitch);
  catt_emit_copies(x, &p);
}

static void put_copy_in(const catt_text *x) {
  const catt *t = x->t;
  open_copies(x, "in");
  for (int i = 0; i < t->num_in; i++)
    ir_buf_printf(x->out, ", const %s *streamed%d", type_of(x), i);
  ir_buf_printf(x->out, ", %s y0) {\n", x->index);
  for (int i = 0; i < t->num_in; i++) {
    const catt_in *in = &t->in[i];
    const mm_operand *o = &in->streamed;
    catt_piece p = {.from = ir_format(x->arena, "streamed%d", i),
                    .o = o,
                    .line = &o->x,
                    .inner = &o->k,
                    .num_inner = in->width};
    put_piece(x, p, in->at, in->pitch);
  }
  ir_buf_puts(x->out, "}\n");
}

static bool copies_values(const catt *t) {
  bool copies = false;
  for (int i = 0; i < t->num_out; i++)
    copies |= t->out[i].copied;
  return copies;
}

static void put_copy_out(const catt_text *x) {
  const catt *t = x->t;
  if (!copies_values(t))
    return;
  open_copies(x, "out");
  for (int i = 0; i < t->num_out; i++)
    if (t->out[i].copied)
      ir_buf_printf(x->out, ", const %s *values%d", type_of(x), i);
  ir_buf_printf(x->out, ", %s y0) {\n", x->index);
  for (int i = 0; i < t->num_out; i++) {
    const catt_out *out = &t->out[i];
    const mm_operand *o = &out->values;
    catt_piece p = {.from = ir_format(x->arena, "values%d", i),
                    .o = o,
                    .line = &o->k,
                    .inner = &o->x,
                    .num_inner = out->width};
    if (out->copied)
      put_piece(x, p, out->at, out->pitch);
  }
  ir_buf_puts(x->out, "}\n");
}

void catt_emit_tensor_own(const catt_text *x) {
  ir_buf_printf(x->out, "    %s_copy_own(own", x->name);
  for (int i = 0; i < x->t->num_in; i++)
    ir_buf_printf(x->out, ", own%d", i);
  ir_buf_puts(x->out, ", x0);\n");
}

void catt_emit_tensor_copies(const catt_text *x, const char *indent, const char *y0,
                             const char *slot) {
  const catt *t = x->t;
  ir_buf_printf(x->out, "%s%s_copy_in(tiles, %s", indent, x->name, slot);
  for (int i = 0; i < t->num_in; i++)
    ir_buf_printf(x->out, ", streamed%d", i);
  ir_buf_printf(x->out, ", %s);\n", y0);
  if (x->sweep + 1 < t->sweeps || !copies_values(t))
    return;
  ir_buf_printf(x->out, "%s%s_copy_out(tiles, %s", indent, x->name, slot);
  for (int i = 0; i < t->num_out; i++)
    if (t->out[i].copied)
      ir_buf_printf(x->out, ", values%d", i);
  ir_buf_printf(x->out, ", %s);\n", y0);
}

// --- products ------------------------------------------------------------------------------------
// Rows `low` and `high`, 8 apart, of 16 columns: lanes 0 and 1 are of one product, 2 and 3 of
// another.
static void put_multiply(const catt_text *x) {
  ir_buf_printf(
      x->out,
      "K_IN void %s_multiply(vf &low, vf &high, const uint32_t (&a)[4], const uint32_t (&b)[4]) {\n"
      "  #pragma unroll\n"
      "  for (int h = 0; h < 2; h++) {\n"
      "    float c[4] = {low[2 * h], low[2 * h + 1], high[2 * h], high[2 * h + 1]};\n"
      "    k_mma_%s(c, a, b[2 * h], b[2 * h + 1]);\n"
      "    low[2 * h] = c[0], low[2 * h + 1] = c[1], high[2 * h] = c[2], high[2 * h + 1] = c[3];\n"
      "  }\n"
      "}\n",
      x->name, x->t->mma);
}

// For vector j: one load of the right operand, and a product with each 16 rows of the left one.
static void put_products(const catt_text *x, const char *load, const char *to, int vectors) {
  cuda_put_loop(x->out, 4, "j", vectors);
  ir_buf_printf(x->out, "    {\n      uint32_t b[4];\n      %s\n", load);
  cuda_put_loop(x->out, 6, "i", x->t->rx / 2);
  ir_buf_printf(x->out,
                "        %s_multiply(%s[2 * i][j], %s[2 * i + 1][j], a[i], b);\n"
                "    }\n  }\n}\n",
                x->name, to, to);
}

// Matrices of 8 rows and 16 bytes. Of own: rows, rows + 8, then the same of the next 8 k. Of
// streamed: the next 8 k second.
static void put_scores(const catt_text *x, int i) {
  const catt *t = x->t;
  const catt_in *in = &t->in[i];
  int eight = eight_rows(x, in->pitch);
  ir_buf_printf(x->out,
                "K_IN void %s_scores%d(vf (&s)[%d][%d], k_array<%s, %d> &own,\n"
                "    k_array<%s, %d> &tiles, int slot) {\n"
                "  const int lane = (int)threadIdx.x %% 32, warp = (int)threadIdx.x / 32;\n"
                "  const k_place<%s> own_begin = own.begin(), tiles_begin = tiles.begin();\n"
                "  const int x_at = %d + (warp * %d + lane / 8 %% 2) * %d + lane %% 8 * %d + lane "
                "/ 16 * %d;\n"
                "  const int y_at = slot * %d + %d + lane %% 8 / 4 * %d +\n"
                "      (lane %% 4 / 2 * 4 + lane / 16 * 2 + lane %% 2) * %d + lane / 8 %% 2 * %d;\n"
                "  #pragma unroll\n"
                "  for (int u = 0; u < %d; u += %d) {\n"
                "    uint32_t a[%d][4];\n",
                x->name, i, t->rx, t->ry, type_of(x), t->own_elems, type_of(x),
                t->slots * t->slot_elems, type_of(x), in->own_at, t->rx, eight, in->pitch,
                unit_of(x), t->slot_elems, in->at, eight, in->pitch, unit_of(x),
                catt_padded(in->width), 2 * unit_of(x), t->rx / 2);
  cuda_put_loop(x->out, 4, "i", t->rx / 2);
  ir_buf_printf(x->out, "      k_ldmatrix_x4(a[i], own_begin + (x_at + i * %d + u));\n", 2 * eight);
  const char *load =
      ir_format(x->arena, "k_ldmatrix_x4(b, tiles_begin + (y_at + j * %d + u));", 2 * eight);
  put_products(x, load, "s", t->ry);
}

static void open_out(const catt_text *x, int i) {
  const catt *t = x->t;
  ir_buf_printf(x->out,
                "K_IN void %s_out%d(vf (&out)[%d][%d], const vf (&w)[%d][%d],\n"
                "    k_array<%s, %d> &tiles, int slot) {\n"
                "  const int lane = (int)threadIdx.x %% 32;\n",
                x->name, i, t->rx, t->out[i].vectors, t->rx, t->ry, type_of(x),
                t->slots * t->slot_elems);
}

static void put_out_half(const catt_text *x, int i) {
  const catt *t = x->t;
  const catt_out *out = &t->out[i];
  int eight = eight_rows(x, out->pitch);
  open_out(x, i);
  ir_buf_printf(x->out,
                "  const k_place<%s> tiles_begin = tiles.begin();\n"
                "  const int v_at = slot * %d + %d + lane %% 8 / 4 * %d +\n"
                "      (lane %% 4 / 2 * 4 + lane / 8 %% 2 * 2 + lane %% 2) * %d + lane / 16 * 8;\n"
                "  #pragma unroll\n"
                "  for (int u = 0; u < %d; u++) {\n"
                "    uint32_t a[%d][4];\n",
                type_of(x), t->slot_elems, out->at, eight, out->pitch, t->ry, t->rx / 2);
  cuda_put_loop(x->out, 4, "i", t->rx / 2);
  cuda_put_loop(x->out, 6, "q", 4);
  ir_buf_printf(x->out,
                "        a[i][q] = k_%sx2(w[2 * i + q %% 2][u][q / 2 * 2], "
                "w[2 * i + q %% 2][u][q / 2 * 2 + 1]);\n",
                t->mma);
  const char *load =
      ir_format(x->arena, "k_ldmatrix_x4_trans(b, tiles_begin + (v_at + u * %d + j * %d));",
                2 * eight, CATT_MMA);
  put_products(x, load, "out", out->vectors);
}

static void put_out_tf32(const catt_text *x, int i) {
  const catt *t = x->t;
  const catt_out *out = &t->out[i];
  open_out(x, i);
  ir_buf_printf(x->out,
                "  const int v_at = slot * %d + %d + lane %% 4 / 2 * %d + lane %% 2 * 4 * %d + "
                "lane / 4;\n"
                "  #pragma unroll\n"
                "  for (int u = 0; u < %d; u++) {\n"
                "    uint32_t a[%d][4];\n",
                t->slot_elems, out->at, eight_rows(x, out->pitch), out->pitch, 2 * t->ry,
                t->rx / 2);
  cuda_put_loop(x->out, 4, "i", t->rx / 2);
  cuda_put_loop(x->out, 6, "q", 4);
  ir_buf_puts(x->out,
              "        a[i][q] = k_tf32_operand(w[2 * i + q % 2][u / 2][u % 2 * 2 + q / 2]);\n");
  const char *load =
      ir_format(x->arena,
                "for (int q = 0; q < 4; q++)\n"
                "        b[q] = k_tf32_operand(tiles[v_at + u / 2 * %d + (u %% 2 * 2 + q %% "
                "2) * %d + j * %d + q / 2 * 8]);",
                2 * eight_rows(x, out->pitch), out->pitch, CATT_MMA);
  put_products(x, ir_format(x->arena, "#pragma unroll\n      %s", load), "out", out->vectors);
}

static void put_out(const catt_text *x, int i) {
  (x->t->elem_bytes == 2 ? put_out_half : put_out_tf32)(x, i);
}

void catt_emit_tensor_in(const catt_text *x, int i) {
  const catt *t = x->t;
  ir_buf_printf(x->out,
                "    vf s%d[%d][%d] = {}; // %s\n"
                "    %s_scores%d(s%d, own, tiles, slot);\n",
                i, t->rx, t->ry, cg_local_name(x->arena, ir_map_new(x->arena), t->in[i].n), x->name,
                i, i);
}

void catt_emit_tensor_out(const catt_text *x, int i) {
  ir_buf_printf(x->out, "    %s_out%d(out%d, w%d, tiles, slot);\n", x->name, i, i, i);
}

// --- whole vectors -------------------------------------------------------------------------------
void catt_emit_tensor_exchange(const catt_text *x, int out) {
  cuda_put_loop(x->out, 2, "i", x->t->rx);
  cuda_put_loop(x->out, 4, "j", x->t->out[out].vectors);
  cuda_put_loop(x->out, 6, "q", 2);
  ir_buf_printf(x->out,
                "        {\n"
                "          const float x = out%d[i][j][q], y = out%d[i][j][2 + q];\n"
                "          const float got = k_shuffle_xor(tx %% 2 ? x : y, 1);\n"
                "          out%d[i][j][q] = tx %% 2 ? got : x;\n"
                "          out%d[i][j][2 + q] = tx %% 2 ? y : got;\n"
                "        }\n",
                out, out, out, out);
}

void catt_emit_tensor_functions(const catt_text *x) {
  put_copy_own(x);
  put_copy_in(x);
  put_copy_out(x);
  put_multiply(x);
  for (int i = 0; i < x->t->num_in; i++)
    put_scores(x, i);
  for (int i = 0; i < x->t->num_out; i++)
    put_out(x, i);
}
