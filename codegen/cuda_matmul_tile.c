// cuda_matmul_tile.c: text: one step of k of a block's tile, from shared memory to sums.
//
//   f32, a as [x][k], b as [k][x]: a thread's 8 x 8 sums
//     for (int u = 0; u < 16; u += 4) {
//       vf a_k[8];                                   // four k of each row
//       for (int i...) a_k[i] = k_load4(a_at + (i * 164 + u));
//       for (int k = 0; k < 4; k++) {
//         float x[8], y[8];                          // one k: x from a_k, y by k_load4 along n
//         for (int i...) for (int j...) c[i][j] += x[i] * y[j];
//       } }
//
// Neighbouring threads are neighbours along m, pairs of them along n. So each thread and its neighbour, or the
// next but one, read the same of an operand, and 16-byte loads of a warp take 2 cycles of shared memory
// instead of 4. With lanes dealt as for mma.sync those of b took 4: 5% of products of NT.
//
// FMAs that find none of their operands where the one before has left it take two cycles to read registers.
// Rows are walked to and fro, so that the last column of a row is the first of the next: 4% of NN. ptxas is told
// to leave them so (cmm_in_order); with both operands as [k][x] plain order is then as fast, and without that faster. Behind
// long epilogues, of which ptxas makes more in an order of its own, to and fro leads it to fewer such FMAs.
#include "codegen/cuda_matmul.h"

// Products of a thread in straight-line code: long enough to hide what a turn costs; longer code is
// compiled slowly, and, where ptxas chooses the order, loads so far ahead that registers run out.
enum { MAX_UNROLLED = 512, MAX_UNROLLED_IN_ORDER = 1024 };

// Operations that wait for each other longer than the order of FMAs saves.
static bool has_long_epilogue(const cmm_problem *p) {
  enum { LONG_EPILOGUE = 32 };
  return p->worked >= LONG_EPILOGUE;
}

bool cmm_in_order(const cmm_problem *p, const cmm_plan *g) {
  int64_t warps = g->tasks[cmm_product_phase(g)] * g->warps_m * g->warps_n;
  return p->math == MM_F32 && p->p.elem_bytes == 4 && !has_long_epilogue(p) &&
         cg_hides_latencies(p->p.target->cuda, warps);
}

const char *cmm_scalar(const cmm_text *t) {
  return t->p->p.ctype;
}

const char *cmm_element(const cmm_text *t) {
  return t->p->p.a.ctype;
}

const char *cmm_vector(const cmm_text *t) {
  return t->p->p.elem_bytes == 8 ? "vd" : "vf";
}

// --- places ---------------------------------------------------------------------------------
// Rows of a thread that lie side by side.
static int rows_together(const cmm_plan *g) {
  return g->a.layout == CMM_XK || cmm_is_half(g->math) ? 1 : g->tm < 4 ? g->tm : 4;
}

const char *cmm_row(const cmm_text *t, const char *i) {
  const cmm_plan *g = t->plan;
  int together = rows_together(g);
  if (g->tm == 1)
    return "a_row";
  if (together == g->tm)
    return ir_format(t->p->p.arena, "a_row + %s", i);
  if (g->wgmma)
    return ir_format(t->p->p.arena, "a_row + %s / 2 * %d + %s %% 2 * %d", i, CMM_ROW, i,
                     CMM_WARP_ROWS);
  if (together == 1)
    return ir_format(t->p->p.arena, "a_row + %s * %d", i, CMM_WARP_ROWS);
  return ir_format(t->p->p.arena, "a_row + %s / %d * %d + %s %% %d", i, together,
                   together * CMM_WARP_ROWS, i, together);
}

// Columns of a thread that lie side by side.
static int columns_together(const cmm_plan *g) {
  return g->math == MM_TF32 && g->b.layout == CMM_KX ? 2 * CMM_VL : CMM_VL;
}

const char *cmm_column(const cmm_text *t, const char *j) {
  if (t->plan->tv == 1)
    return "b_col";
  if (columns_together(t->plan) > CMM_VL)
    return ir_format(t->p->p.arena, "b_col + %s / 2 * %d + %s %% 2 * %d", j,
                     2 * CMM_WARP_COLS * CMM_VL, j, CMM_VL);
  return ir_format(t->p->p.arena, "b_col + %s * %d", j, CMM_WARP_COLS * CMM_VL);
}

const char *cmm_first_row(const cmm_text *t, const char *warp_row, const char *ty) {
  int rows = CMM_WARP_ROWS * t->plan->tm, together = rows_together(t->plan);
  if (t->plan->wgmma) // 16 rows of a warp, of each 64
    return ir_format(t->p->p.arena, "%s / 4 * %d + %s %% 4 * 16 + %s", warp_row, 4 * rows, warp_row,
                     ty);
  const char *times = together > 1 ? ir_format(t->p->p.arena, " * %d", together) : "";
  return ir_format(t->p->p.arena, "%s * %d + %s%s", warp_row, rows, ty, times);
}

void cmm_emit_places(const cmm_text *t) {
  const cmm_plan *g = t->plan;
  int cols = CMM_WARP_COLS * CMM_VL * g->tv;
  ir_buf_puts(t->out, "  const int thread = (int)threadIdx.x, warp = thread / 32;\n");
  if (g->math == MM_F32)
    ir_buf_puts(t->out,
                "  const int ty = thread % 32 / 8 * 2 + thread % 2, tx = thread % 8 / 2;\n");
  else
    ir_buf_puts(t->out, "  const int ty = thread % 32 / 4, tx = thread % 4;\n");
  const char *warp_row = ir_format(t->p->p.arena, "warp / %d", g->warps_n);
  ir_buf_printf(t->out, "  const int a_row = %s;\n", cmm_first_row(t, warp_row, "ty"));
  ir_buf_printf(t->out, "  const int b_col = warp %% %d * %d + ", g->warps_n, cols);
  if (cmm_exchanges(g))
    ir_buf_puts(t->out, "tx % 2 * 8 + tx / 2 * 4;\n"); // cmm_emit_exchange
  else
    ir_buf_printf(t->out, "tx * %d;\n", columns_together(g));
}

// --- f32, f64 -------------------------------------------------------------------------------
int cmm_eight_rows(const cmm_side *s) {
  return 8 * s->pitch + s->skew;
}

// Four k of `num` rows, of each column.
static void put_a_vectors(const cmm_text *t, int num, const char *row) {
  ir_buf_printf(t->out, "      %s a_k[%d];\n", cmm_vector(t), num);
  cuda_put_loop(t->out, 6, "i", num);
  ir_buf_printf(t->out, "        a_k[i] = k_load4(a_at + (%s * %d + u));\n", row,
                cmm_eight_rows(&t->plan->a));
}

static void put_b_vectors(const cmm_text *t) {
  const cmm_plan *g = t->plan;
  ir_buf_printf(t->out, "      %s b_k[%d];\n", cmm_vector(t), g->tv * CMM_VL);
  cuda_put_loop(t->out, 6, "j", g->tv * CMM_VL);
  ir_buf_printf(t->out, "        b_k[j] = k_load4(b_at + (j / 4 * %d + j %% 4 * %d + u));\n",
                2 * cmm_eight_rows(&g->b), g->b.pitch);
}

// Elements of one k side by side in [k][x]: `num` of them in groups of 4 that are `step` apart.
static void put_row_loads(const cmm_text *t, const char *to, char from, int num, int step,
                          int pitch) {
  if (num < 4) {
    cuda_put_loop(t->out, 8, "i", num);
    ir_buf_printf(t->out, "          %s[i] = k_load1(%c_at + ((u + k) * %d + i));\n", to, from,
                  pitch);
    return;
  }
  cuda_put_loop(t->out, 8, "i", num / 4);
  ir_buf_printf(t->out,
                "        {\n"
                "          const %s q = k_load4(%c_at + ((u + k) * %d + i * %d));\n"
                "          %s[4 * i] = q[0], %s[4 * i + 1] = q[1], %s[4 * i + 2] = q[2], "
                "%s[4 * i + 3] = q[3];\n"
                "        }\n",
                cmm_vector(t), from, pitch, step, to, to, to, to);
}

static void put_turned(const cmm_text *t, const char *to, char from, int num) {
  cuda_put_loop(t->out, 8, "i", num);
  ir_buf_printf(t->out, "          %s[i] = %c_k[i][k];\n", to, from);
}

static void put_turns(const cmm_text *t) {
  const cmm_plan *g = t->plan;
  int most = cmm_in_order(t->p, g) ? MAX_UNROLLED_IN_ORDER : MAX_UNROLLED;
  int turns = most / (4 * g->tm * g->tv * CMM_VL);
  turns = turns < 1 ? 1 : turns > g->bk / 4 ? g->bk / 4 : turns;
  ir_buf_printf(t->out,
                "    #pragma unroll %d\n"
                "    for (int u = 0; u < %d; u += 4) {\n",
                turns, g->bk);
}

static void put_products(const cmm_text *t) {
  const cmm_plan *g = t->plan;
  int columns = g->tv * CMM_VL;
  if (g->a.layout == CMM_XK || g->b.layout == CMM_XK || has_long_epilogue(t->p)) {
    cuda_put_to_and_fro(t->out, 8, g->tm, columns, "c[i][at] += x[i] * y[at];");
    return;
  }
  cuda_put_loop(t->out, 8, "i", g->tm);
  cuda_put_loop(t->out, 10, "j", columns);
  ir_buf_puts(t->out, "            c[i][j] += x[i] * y[j];\n");
}

static void emit_fma_step(const cmm_text *t) {
  const cmm_plan *g = t->plan;
  int columns = g->tv * CMM_VL;
  put_turns(t);
  if (g->a.layout == CMM_XK)
    put_a_vectors(t, g->tm, "i");
  if (g->b.layout == CMM_XK)
    put_b_vectors(t);
  ir_buf_printf(t->out,
                "      #pragma unroll\n"
                "      for (int k = 0; k < 4; k++) {\n"
                "        %s x[%d], y[%d];\n",
                cmm_scalar(t), g->tm, columns);
  if (g->a.layout == CMM_XK)
    put_turned(t, "x", 'a', g->tm);
  else
    put_row_loads(t, "x", 'a', g->tm, 4 * CMM_WARP_ROWS, g->a.pitch);
  if (g->b.layout == CMM_XK)
    put_turned(t, "y", 'b', columns);
  else
    put_row_loads(t, "y", 'b', columns, CMM_VL * CMM_WARP_COLS, g->b.pitch);
  put_products(t);
  ir_buf_puts(t->out, "      }\n    }\n");
}

// --- both -----------------------------------------------------------------------------------
static void put_place(const cmm_text *t, bool is_b) {
  const cmm_side *s = is_b ? &t->plan->b : &t->plan->a;
  const char *n = is_b ? "b" : "a", *x = is_b ? "b_col" : "a_row";
  ir_buf_printf(t->out, "  const k_place<%s> %s_read = %s_begin + (%s", cmm_element(t), n, n, x);
  if (s->layout == CMM_XK)
    ir_buf_printf(t->out, " * %d + %s / 8 * %d", s->pitch, x, s->skew);
  ir_buf_puts(t->out, ");\n");
}

void cmm_emit_read_places(const cmm_text *t) {
  if (t->plan->wgmma) {
    cmm_emit_wgmma_read_places(t);
    return;
  }
  if (t->plan->math != MM_F32) {
    cmm_emit_tensor_read_places(t);
    return;
  }
  put_place(t, false);
  put_place(t, true);
}

void cmm_emit_step(const cmm_text *t) {
  ir_buf_printf(t->out,
                "    const k_place<%s> a_at = (a_read + slot * %d).held();\n"
                "    const k_place<%s> b_at = (b_read + slot * %d).held();\n",
                cmm_element(t), t->plan->a.elems, cmm_element(t), t->plan->b.elems);
  if (t->plan->math != MM_F32) {
    cmm_emit_tensor_step(t);
    return;
  }
  emit_fma_step(t);
}

void cmm_emit_sums(const cmm_text *t) {
  const cmm_plan *g = t->plan;
  if (g->math != MM_F32)
    ir_buf_printf(t->out, "  float c[%d][%d][4] = {};\n", g->tm / 2, g->tv * 2);
  else
    ir_buf_printf(t->out, "  %s c[%d][%d] = {};\n", cmm_scalar(t), g->tm, g->tv * CMM_VL);
}

const char *cmm_sums(const cmm_text *t) {
  const cmm_plan *g = t->plan;
  if (g->math == MM_F32)
    return "{{c[i][4 * j], c[i][4 * j + 1], c[i][4 * j + 2], c[i][4 * j + 3]}}";
  if (cmm_exchanges(g))
    return "{{c[i / 2][2 * j][i % 2 * 2], c[i / 2][2 * j][i % 2 * 2 + 1],\n"
           "                           c[i / 2][2 * j + 1][i % 2 * 2],"
           " c[i / 2][2 * j + 1][i % 2 * 2 + 1]}}";
  if (g->b.layout == CMM_KX)
    return "{{c[i / 2][j / 2 * 4][i % 2 * 2 + j % 2],\n"
           "                           c[i / 2][j / 2 * 4 + 1][i % 2 * 2 + j % 2],\n"
           "                           c[i / 2][j / 2 * 4 + 2][i % 2 * 2 + j % 2],\n"
           "                           c[i / 2][j / 2 * 4 + 3][i % 2 * 2 + j % 2]}}";
  return "{{c[i / 2][2 * j][i % 2 * 2], c[i / 2][2 * j + 1][i % 2 * 2],\n"
         "                           c[i / 2][2 * j][i % 2 * 2 + 1],"
         " c[i / 2][2 * j + 1][i % 2 * 2 + 1]}}";
}
