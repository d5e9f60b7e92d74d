// cuda_matmul_wgmma.c: text: one step of k by four warps together, from shared memory to sums.
//
//   const k_operand a_read = k_operand_at(a_begin + warp / 4 * 8192, 16, 1024);
//   const k_operand b_read = k_operand_at(b_begin, 8192, 1024);
//   ...
//       k_wgmma_begin();
//       for (int u = 0; u < 4; u++)                       // 16 k at a time
//         for (int i = 0; i < 2; i++)                     // 64 rows at a time
//           k_wgmma_bf16<false, true>(c[i], a_read + (slot * 16384 + u * 16 + i * 4096), b_read + (...));
//       k_wgmma_commit();
//
// mma.sync reads operands from registers: ldmatrix brings each of them as often as warps want it, and warps issue an
// instruction for 16 x 8 sums. Here the tensor cores read shared memory themselves, 64 x 256 sums at an instruction,
// while warps go on to copy what comes later. Steps are of 64 k, which is a row of 128 bytes of operands as [x][k];
// those as [k][x] stand in blocks of 64 x, [x / 64][k][x % 64]. (cuda_wgmma_prelude.h has the layouts.)
//
// Elements of rows that begin anywhere, of which there are no asynchronous copies of 2 bytes, pass through registers, as by
// mma.sync: loaded while the step before is multiplied, stored when that is done (50,257 columns: 1.5 ms instead of 2.3).
//
// A step's place is free again when its products are done, in all warps: a step later than by mma.sync. So the copies of
// step t go to where step t - STAGES was, which all warps have waited for in front of the barrier of step t - STAGES + 2.
#include "codegen/cuda_matmul.h"

enum { K = 16, EIGHT_ROWS = 8 * 2 * CMM_ROW };

const char *cmm_wgmma_place(const cmm_text *t, const cmm_side *s, const char *x, const char *k) {
  ir_arena *a = t->p->p.arena;
  const char *along = s->layout == CMM_XK ? k : x; // one element: its place in the unit
  const char *in_unit = s->vec == 1 ? ir_format(a, " + %s %% 8", along) : "";
  if (s->layout == CMM_XK)
    return ir_format(a, "%s * %d + (%s / 8 ^ %s %% 8) * 8%s", x, CMM_ROW, k, x, in_unit);
  const char *block = ir_format(a, "%s / %d * %d + ", x, CMM_ROW, t->plan->bk * CMM_ROW);
  return ir_format(a, "%s%s * %d + (%s %% %d / 8 ^ %s %% 8) * 8%s", s->x > CMM_ROW ? block : "", k,
                   CMM_ROW, x, CMM_ROW, k, in_unit);
}

// Elements from 64 rows or columns to the next 64, and from 16 k to the next 16.
static int block_of(const cmm_text *t) {
  return t->plan->bk * CMM_ROW;
}

static int k_step(const cmm_side *s) {
  return s->layout == CMM_XK ? K : K * CMM_ROW;
}

static void put_operand(const cmm_text *t, bool is_b) {
  const cmm_plan *g = t->plan;
  const cmm_side *s = is_b ? &g->b : &g->a;
  const char *n = is_b ? "b" : "a", *at = "";
  int blocks = g->tm / 2; // of 64 rows, of a group of warps
  if (!is_b && g->warps_m > 4)
    at = ir_format(t->p->p.arena, " + warp / 4 * %d", blocks * block_of(t));
  ir_buf_printf(t->out, "  const k_operand %s_read = k_operand_at(%s_begin%s, %d, %d);\n", n, n, at,
                s->layout == CMM_XK ? 16 : 2 * block_of(t), EIGHT_ROWS);
}

void cmm_emit_wgmma_read_places(const cmm_text *t) {
  put_operand(t, false);
  put_operand(t, true);
}

void cmm_emit_wgmma_step(const cmm_text *t) {
  const cmm_plan *g = t->plan;
  int blocks = g->tm / 2;
  ir_buf_puts(t->out, "      k_wgmma_begin();\n");
  cuda_put_loop(t->out, 6, "u", g->bk / K);
  cuda_put_loop(t->out, 8, "i", blocks);
  ir_buf_printf(t->out,
                "          k_wgmma_%s<%s, %s>(c[i], a_read + (slot * %d + u * %d + i * %d), "
                "b_read + (slot * %d + u * %d));\n"
                "      k_wgmma_commit();\n",
                g->math == MM_BF16 ? "bf16" : "f16", g->a.layout == CMM_KX ? "true" : "false",
                g->b.layout == CMM_KX ? "true" : "false", g->a.elems, k_step(&g->a), block_of(t),
                g->b.elems, k_step(&g->b));
}

void cmm_emit_wgmma_end(const cmm_text *t) {
  ir_buf_puts(t->out, "  k_wgmma_wait<0>();\n");
  cuda_put_loop(t->out, 2, "i", t->plan->tm / 2);
  ir_buf_puts(t->out, "    k_wgmma_hold(c[i]);\n");
}
