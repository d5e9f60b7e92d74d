// cuda_matmul_tensor.c: text: one step of k by the tensor cores, from shared memory to sums.
//
// A warp's sums, 16 x 8 at a time, by mma.sync; thread (ty, tx) holds of each
//   tf32   a: rows ty, ty + 8, k tx, tx + 4     b: k tx, tx + 4, column ty
//   16 bits, two in a word
//          a: rows ty, ty + 8, k 2 tx, 2 tx + 1, and 8 on     b: the same k, column ty
//   sums   rows ty, ty + 8, columns 2 tx, 2 tx + 1
// Which row of the tile is "row r" of a product may be chosen freely, as long as the epilogue
// knows; columns, too. So a thread's four sums of a vector are neighbours, as in f32:
//   a as [x][k]         rows as they are; ldmatrix reads them
//   b as [x][k]         two products share 16 columns: column q of product j is 2 q + j of them
//   tf32, a as [k][x]   rows 4 ty .. 4 ty + 3 of 32 are rows ty, ty + 8 of two products: one load
//   tf32, b as [k][x]   four products share 32: column q of product j is 4 q + j, and what a thread
//                       wants of one k for all four is one 16-byte load
//   16 bits, [k][x]     ldmatrix.trans reads 8 neighbours along x: rows and columns as they are.
//                       Neighbouring threads then exchange halves of their sums, once, at the end
//                       (shared memory could be filled in another order, but not by 16-byte copies)
#include "codegen/cuda_matmul.h"

// Elements of 16 bytes, and k of one mma.
static int unit_of(const cmm_text *t) {
  return 16 / cmm_element_bytes(t->p);
}

static int k_of(const cmm_text *t) {
  return 2 * unit_of(t);
}

// --- operands -------------------------------------------------------------------------------
static void put_round(const cmm_text *t, int indent, const char *x) {
  ir_buf_printf(t->out,
                "%*sfor (int r = 0; r < 4; r++)\n%*s  %s[r] = k_tf32_operand(k_of_bits(%s[r]));\n",
                indent, "", indent, "", x, x);
}

// From [x][k]: matrices of 8 rows and 16 bytes of k. Of a: rows and rows + 8, then the same of the
// next k; of b: two times k of the even columns of 16, then of the odd ones.
static void put_matrices(const cmm_text *t, bool is_b) {
  const cmm_plan *g = t->plan;
  const cmm_side *s = is_b ? &g->b : &g->a;
  const char *x = is_b ? "y" : "x";
  int num = is_b ? g->tv : g->tm / 2;
  ir_buf_printf(t->out, "      uint32_t %s[%d][4];\n", x, num);
  cuda_put_loop(t->out, 6, "i", num);
  const char *load = ir_format(t->p->p.arena, "k_ldmatrix_x4(%s[i], %s_at + (i * %d + u));", x,
                               is_b ? "b" : "a", 2 * cmm_eight_rows(s));
  if (cmm_is_half(g->math)) {
    ir_buf_printf(t->out, "        %s\n", load);
    return;
  }
  ir_buf_printf(t->out,
                "      {\n"
                "        %s\n"
                "        #pragma unroll\n",
                load);
  put_round(t, 8, ir_format(t->p->p.arena, "%s[i]", x));
  ir_buf_puts(t->out, "      }\n");
}

// 16 bits from [k][x]: matrices of 8 k and 8 neighbours along x, turned on the way. Of a: x and
// x + 8, then the same of the next 8 k; of b: two times 8 k of 8 columns, then of the next 8.
static void put_turned_matrices(const cmm_text *t, bool is_b) {
  const cmm_plan *g = t->plan;
  const char *x = is_b ? "y" : "x";
  int num = is_b ? g->tv : g->tm / 2;
  ir_buf_printf(t->out, "      uint32_t %s[%d][4];\n", x, num);
  cuda_put_loop(t->out, 6, "i", num);
  ir_buf_printf(t->out, "        k_ldmatrix_x4_trans(%s[i], %s_at + (u * %d + i * 16));\n", x,
                is_b ? "b" : "a", (is_b ? &g->b : &g->a)->pitch);
}

// From [k][x]: of a, 4 rows of two k are half of two products each.
static void put_a_groups(const cmm_text *t) {
  const cmm_plan *g = t->plan;
  ir_buf_printf(t->out, "      uint32_t x[%d][4];\n", g->tm / 2);
  cuda_put_loop(t->out, 6, "i", g->tm / 4);
  ir_buf_printf(t->out,
                "      {\n"
                "        const vf low = k_load4(a_at + (u * %d + i * 32));\n"
                "        const vf high = k_load4(a_at + ((u + 4) * %d + i * 32));\n"
                "        #pragma unroll\n"
                "        for (int h = 0; h < 2; h++) {\n"
                "          x[2 * i + h][0] = k_tf32_operand(low[2 * h]);\n"
                "          x[2 * i + h][1] = k_tf32_operand(low[2 * h + 1]);\n"
                "          x[2 * i + h][2] = k_tf32_operand(high[2 * h]);\n"
                "          x[2 * i + h][3] = k_tf32_operand(high[2 * h + 1]);\n"
                "        }\n"
                "      }\n",
                g->a.pitch, g->a.pitch);
}

static void put_b_groups(const cmm_text *t) {
  const cmm_plan *g = t->plan;
  ir_buf_printf(t->out, "      uint32_t y[%d][4]; // as from [x][k]: two products in a row\n",
                g->tv);
  cuda_put_loop(t->out, 6, "h", g->tv / 2);
  ir_buf_printf(t->out,
                "      {\n"
                "        const vf low = k_load4(b_at + (u * %d + h * 32));\n"
                "        const vf high = k_load4(b_at + ((u + 4) * %d + h * 32));\n",
                g->b.pitch, g->b.pitch);
  cuda_put_loop(t->out, 8, "j", 4);
  ir_buf_puts(t->out, "          y[2 * h + j / 2][j % 2 * 2] = k_tf32_operand(low[j]), "
                      "y[2 * h + j / 2][j % 2 * 2 + 1] = k_tf32_operand(high[j]);\n"
                      "      }\n");
}

// --- where this thread reads: elements of its own, or the row that it names to ldmatrix ----------
static void put_a_place(const cmm_text *t) {
  const cmm_side *a = &t->plan->a;
  ir_buf_printf(t->out, "  const k_place<%s> a_read = a_begin + (", cmm_element(t));
  if (a->layout == CMM_XK)
    ir_buf_printf(t->out,
                  "(a_row - ty) / 8 * %d + thread / 8 %% 2 * %d + "
                  "thread %% 8 * %d + thread / 16 %% 2 * %d);\n",
                  cmm_eight_rows(a), cmm_eight_rows(a), a->pitch, unit_of(t));
  else if (cmm_is_half(t->plan->math))
    ir_buf_printf(
        t->out, "(thread / 16 %% 2 * 8 + thread %% 8) * %d + a_row - ty + thread / 8 %% 2 * 8);\n",
        a->pitch);
  else
    ir_buf_printf(t->out, "tx * %d + a_row);\n", a->pitch);
}

static void put_b_place(const cmm_text *t) {
  const cmm_side *b = &t->plan->b;
  ir_buf_printf(t->out, "  const k_place<%s> b_read = b_begin + (", cmm_element(t));
  if (b->layout == CMM_XK)
    ir_buf_printf(t->out,
                  "(b_col - tx * 4) / 8 * %d + thread %% 8 / 4 * %d "
                  "+ (thread %% 4 * 2 + thread / 16 %% 2) * %d + thread / 8 %% 2 * %d);\n",
                  cmm_eight_rows(b), cmm_eight_rows(b), b->pitch, unit_of(t));
  else if (cmm_is_half(t->plan->math))
    ir_buf_printf(t->out,
                  "(thread / 8 %% 2 * 8 + thread %% 8) * %d + b_col / 16 * 16 + "
                  "thread / 16 %% 2 * 8);\n",
                  b->pitch);
  else
    ir_buf_printf(t->out, "tx * %d + b_col - tx * 8 + ty * 4);\n", b->pitch);
}

// --- a step ---------------------------------------------------------------------------------
static void put_operand(const cmm_text *t, bool is_b) {
  const cmm_plan *g = t->plan;
  if ((is_b ? g->b : g->a).layout == CMM_XK)
    put_matrices(t, is_b);
  else if (cmm_is_half(g->math))
    put_turned_matrices(t, is_b);
  else if (is_b)
    put_b_groups(t);
  else
    put_a_groups(t);
}

void cmm_emit_tensor_read_places(const cmm_text *t) {
  put_a_place(t);
  put_b_place(t);
}

void cmm_emit_tensor_step(const cmm_text *t) {
  const cmm_plan *g = t->plan;
  static const char *const names[] = {"f32", "tf32", "bf16", "f16"};
  ir_buf_puts(t->out, "    #pragma unroll\n");
  ir_buf_printf(t->out, "    for (int u = 0; u < %d; u += %d) {\n", g->bk, k_of(t));
  put_operand(t, false);
  put_operand(t, true);
  cuda_put_loop(t->out, 6, "i", g->tm / 2);
  cuda_put_loop(t->out, 8, "j", g->tv * 2);
  ir_buf_printf(t->out,
                "          k_mma_%s(c[i][j], x[i], y[j / 2][j %% 2 * 2], "
                "y[j / 2][j %% 2 * 2 + 1]);\n    }\n",
                names[g->math]);
}

// --- whole vectors --------------------------------------------------------------------------
// Threads tx and tx + 1 (tx even) hold columns 2 tx .. 2 tx + 3 of two products between them: one
// takes those of the first, the other those of the second.
void cmm_emit_exchange(const cmm_text *t) {
  const cmm_plan *g = t->plan;
  if (!cmm_exchanges(g))
    return;
  cuda_put_loop(t->out, 2, "i", g->tm / 2);
  cuda_put_loop(t->out, 4, "j", g->tv * 2);
  cuda_put_loop(t->out, 6, "q", 2);
  ir_buf_puts(t->out, "        {\n"
                      "          const float x = c[i][j / 2 * 2][j % 2 * 2 + q];\n"
                      "          const float y = c[i][j / 2 * 2 + 1][j % 2 * 2 + q];\n"
                      "          const float got = k_shuffle_xor(tx % 2 ? x : y, 1);\n"
                      "          c[i][j / 2 * 2][j % 2 * 2 + q] = tx % 2 ? got : x;\n"
                      "          c[i][j / 2 * 2 + 1][j % 2 * 2 + q] = tx % 2 ? y : got;\n"
                      "        }\n");
}
