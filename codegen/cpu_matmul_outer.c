// cpu_matmul_outer.c: gradients of the weights of a narrow layer whose samples are full of zeros (passes/zeros.h): k, which
// is all samples, is the outermost loop, and a few of them at a time add to the rows at which one of them is not 0.
//
//   a, four samples of k     list          sums, in a near cache
//     . . 3 . . . 1 . . .     2 3 6          sum[2] += 3 * b[0, ..], sum[2] += 2 * b[1, ..]
//     . . 2 4 . . . . . .                    sum[3] += 4 * b[1, ..], sum[3] += 1 * b[2, ..]
//     . . . 1 . . 5 . . .                    sum[6] += 1 * b[0, ..], sum[6] += 5 * b[2, ..]
//     . . . . . . . . . .
//
// A tile (cpu_matmul_list.c) would keep sums in registers and go through k for them. It finds a few bytes of each sample,
// looks at them one step after the other, and comes back for the next ones: of bags of words, of which hardly any
// is taken, that is all of its time. Here samples are read from end to end, and a vector of them makes a list at once. The
// price: a row's sums are loaded and stored for each few samples, so columns must be few, those of one tile. Two
// samples at a time, or one, would put fewer steps of 0 on the list and move sums more often; four of them make data without
// zeros as fast as a tile is.
//
//   for blocks of rows:
//     for a few steps of k: copy b, look whether it is finite; the list; add to its rows
//     and then all rows of the block are finished
//
// A sum is one chain over all of k, of whatever steps are taken. What may be left out, and why sums end with + 0:
// cpu_matmul_list.c.
#include "codegen/cpu_matmul.h"

// --- adding to rows --------------------------------------------------------------------------------
static void put_row(const mm_text *t, int steps) {
  for (int i = 0; i < steps; i++) {
    const char *at = ir_format(t->p->arena, "m + %lld", i * (long long)mm_a_k_stride(t));
    ir_buf_printf(t->out, "    const %s a%d = %s;\n", t->p->ctype, i, mm_one_of_a(t, at));
  }
  for (int j = 0; j < t->plan->nv; j++)
    ir_buf_printf(t->out, "    %s_vec c%d = *(const %s_mem *)(row + %d);\n", t->name, j, t->name,
                  j * t->plan->lanes);
  for (int i = 0; i < steps; i++) {
    ir_buf_puts(t->out, "   ");
    for (int j = 0; j < t->plan->nv; j++)
      ir_buf_printf(t->out, " c%d += a%d * b%d_%d;", j, i, i, j);
    ir_buf_puts(t->out, "\n");
  }
  for (int j = 0; j < t->plan->nv; j++)
    ir_buf_printf(t->out, "    *(%s_mem *)(row + %d) = c%d;\n", t->name, j * t->plan->lanes, j);
}

static void put_add(const mm_text *t, int steps) {
  const char *c = t->p->ctype;
  ir_buf_printf(t->out,
                "static __attribute__((noinline)) void %s_add_%d(const %s *a, const %s *b, %s *c, "
                "const uint16_t *list, int64_t num) {\n",
                t->name, steps, t->p->a.ctype, c, c);
  for (int i = 0; i < steps; i++)
    for (int j = 0; j < t->plan->nv; j++)
      ir_buf_printf(t->out, "  const %s_vec b%d_%d = *(const %s_mem *)(b + %lld);\n", t->name, i, j,
                    t->name, (long long)(i * t->plan->nr + j * t->plan->lanes));
  ir_buf_printf(t->out,
                "#pragma GCC unroll 1\n"
                "  for (int64_t i = 0; i < num; i++) {\n"
                "    const int64_t m = list[i];\n"
                "    %s *const row = c + m * %lld;\n",
                c, (long long)t->plan->nr);
  put_row(t, steps);
  ir_buf_puts(t->out, "  }\n}\n\n");
}

// Steps of the last few; 0: as many as all others.
static int last_steps(const mm_text *t) {
  return (int)(t->p->k % t->plan->together);
}

// --- a task ----------------------------------------------------------------------------------------
static void put_buffers(const mm_text *t) {
  ir_buf_puts(t->out, "  (void)batch, (void)first, (void)col_begin, (void)col_end;\n");
  mm_emit_operands(t);
  ir_buf_printf(t->out,
                "  float panel[STEPS * NR] __attribute__((aligned(64)));\n"
                "  uint16_t list[BLOCK * MR + %d];\n"
                // the last row, too, may be read in full vectors
                "  float sums[BLOCK * MR * NR + %d] __attribute__((aligned(64)));\n",
                MM_LIST_ROOM, t->plan->lanes);
}

static void put_calls(const mm_text *t) {
  int last = last_steps(t);
  if (last)
    ir_buf_printf(t->out,
                  "      if (steps == %d)\n"
                  "        %s_add_%d(a, panel, sums, list, num);\n"
                  "      else\n  ",
                  last, t->name, last);
  ir_buf_printf(t->out, "      %s_add_%d(a, panel, sums, list, num);\n", t->name,
                t->plan->together);
}

static void put_block(const mm_text *t) {
  ir_buf_printf(
      t->out,
      "    const int64_t row_stop = row_end - row < BLOCK ? row_end : row + BLOCK, m = row * MR;\n"
      "    const int64_t rows = (row_stop * MR < M ? row_stop * MR : M) - m;\n"
      "    __builtin_memset(sums, 0, sizeof *sums * (size_t)(rows * NR));\n"
      "    for (int64_t k = 0; k < K; k += STEPS) {\n"
      "      const int64_t steps = K - k < STEPS ? K - k : STEPS;\n"
      "      const %s *const a = a_all + m + k * %lld;\n"
      "      const int finite = %s_piece(b_all + k * %lld, steps, N, panel);\n"
      "      const int64_t num = %s_list(a, steps, rows, finite, list);\n",
      t->p->a.ctype, (long long)mm_a_k_stride(t), t->name, (long long)mm_b_step(t), t->name);
  put_calls(t);
  ir_buf_printf(t->out,
                "    }\n"
                "    for (int64_t i = 0; i < rows * NR; i += %d)\n"
                "      *(%s_mem *)(sums + i) += (%s_vec){0};\n"
                "    %s_finish(args, sums, NR, batch, m, rows, 0, N);\n",
                t->plan->lanes, t->name, t->name, t->name);
}

static void put_group(const mm_text *t) {
  const mm_plan *g = t->plan;
  mm_emit_group_begin(t, "The groups of rows [row_begin, row_end), and all columns", "");
  ir_buf_printf(t->out, "  enum { K = %lld, STEPS = %d, BLOCK = %lld };\n", (long long)t->p->k,
                g->together, (long long)g->block_rows);
  put_buffers(t);
  ir_buf_puts(t->out, "  for (int64_t row = row_begin; row < row_end; row += BLOCK) {\n");
  put_block(t);
  ir_buf_puts(t->out, "  }\n"
                      "}\n\n");
}

void mm_emit_outer(const mm_text *t) {
  mm_emit_list_types(t);
  mm_emit_list_across(t);
  put_add(t, t->plan->together);
  if (last_steps(t))
    put_add(t, last_steps(t));
  mm_emit_piece(t);
  put_group(t);
}
