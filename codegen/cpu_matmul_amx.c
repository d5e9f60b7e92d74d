// cpu_matmul_amx.c: products of bf16 on the matrix unit of a processor (AMX-BF16).
//
//   c[m,n] += a[m,k] * b[k,n]      in tiles of 32 x 32, 32 steps of k at a time: four instructions, of 8192 products each
//
// Sixteen times as many products as the vector units do: what remains to be saved are copies. All of a and b is copied:
// panels of 32 rows or columns hold a piece of k in pairs of bf16, in the order in which tiles read them
// (cpu_amx_prelude.h). So tiles are taken in large blocks: for each block and piece of k a task packs its rows and
// columns on its stack, where they stay in the second cache; sums of a block wait there, too.
//
//   for blocks of columns, for blocks of rows, for pieces of k:
//     pack columns of b; pack rows of a
//     for rows, for columns: a tile's sums go on; after the last piece they are stored or finished
//
// The other design, tiles of a read in place where its rows lie along k, would save those copies only: of both operands
// of a weight's gradient, and of every b, pairs must be put together.
//
// Seen on Sapphire Rapids: an instruction takes 16 cycles, a load is hidden behind it. Where a neighbour uses the other
// half of the core, it takes 33, and a load 25 more that nothing hides. Products of f32 as six products of three bf16 parts
// each (Henry, Tang and Heinecke, ARITH 2019) were tried twice, on Emerald Rapids with one load less for each pair of
// parts: the products alone are 2.5 times as fast as FMAs on a core alone and 0.87 times beside a neighbour, but panels of
// three parts take as long to fill as half of what that saves, and a step of a small GPT took 0.85 to 1.2 times as long.
// Those of tf32, of two parts and four products, took 0.9 times as long as FMAs beside a neighbour; bf16 takes 0.5 times.
#include "codegen/cpu_matmul_amx.h"

int64_t mm_amx_panel_words(const mm_plan *g) {
  return ir_ceil_div(g->amx_steps, MM_AMX_TILE) * (MM_AMX_TILE * MM_AMX_TILE / 2);
}

bool mm_amx_sums_wait(const mm_plan *g) {
  return g->k_block > g->amx_steps;
}

static void emit_tile(const mm_text *t, bool two_rows, bool two_columns) {
  ir_buf_printf(t->out,
                "static __attribute__((noinline)) void %s_tile_%dx%d(const uint32_t *a, const "
                "uint32_t *b, int64_t "
                "blocks, const float *from, float *to, int64_t pitch) {\n"
                "  k_multiply_panels(a, b, blocks, from, to, pitch, %d, %d);\n"
                "}\n\n",
                t->name, two_rows ? 32 : 16, two_columns ? 32 : 16, two_rows, two_columns);
}

// Whether tiles of half the size are the last of this side, and whether there are others.
static bool has_half(int64_t size) {
  return size % MM_AMX_TILE > 0 && size % MM_AMX_TILE <= MM_AMX_TILE / 2;
}
static bool has_whole(int64_t size) {
  return size > MM_AMX_TILE / 2;
}

static void emit_tiles(const mm_text *t) {
  for (int rows = 0; rows < 2; rows++)
    for (int columns = 0; columns < 2; columns++)
      if ((rows ? has_whole : has_half)(t->p->m) && (columns ? has_whole : has_half)(t->p->n))
        emit_tile(t, rows, columns);
}

static void put_call(const mm_text *t, bool two_rows, bool two_columns) {
  ir_buf_printf(t->out, "%s_tile_%dx%d(a, b, blocks, more ? at : 0, to, pitch);\n", t->name,
                two_rows ? 32 : 16, two_columns ? 32 : 16);
}

static void put_calls_of(const mm_text *t, bool two_rows) {
  bool half = has_half(t->p->n), whole = has_whole(t->p->n);
  if (half && whole)
    ir_buf_puts(t->out, "if (cols > 16)\n            ");
  if (whole)
    put_call(t, two_rows, true);
  if (half && whole)
    ir_buf_puts(t->out, "          else\n            ");
  if (half)
    put_call(t, two_rows, false);
}

static void put_calls(const mm_text *t) {
  bool half = has_half(t->p->m), whole = has_whole(t->p->m);
  ir_buf_puts(t->out, "          ");
  if (half && whole)
    ir_buf_puts(t->out, "if (rows > 16) {\n          ");
  if (whole)
    put_calls_of(t, true);
  if (half && whole)
    ir_buf_puts(t->out, "          } else {\n          ");
  if (half)
    put_calls_of(t, false);
  if (half && whole)
    ir_buf_puts(t->out, "          }\n");
}

static bool stores_whole_tiles(const mm_text *t) {
  return t->p->plain && !t->plan->split_k && t->p->m >= MM_AMX_TILE && t->p->n >= MM_AMX_TILE;
}

static bool finishes_tiles(const mm_text *t) {
  return !t->plan->split_k && (!t->p->plain || t->plan->tail_rows || t->plan->tail_cols);
}

// Where a tile's operands are, and how many blocks of them it takes: all of this piece, or those that hold a step which
// bands leave.
static void put_panels(const mm_text *t) {
  if (!mm_limits_steps(t->p)) {
    ir_buf_puts(t->out,
                "          const int64_t blocks = (steps + 31) / 32;\n"
                "          const uint32_t *const a = a_panels + (row - row_block) * PANEL;\n"
                "          const uint32_t *const b = b_panels + (col - col_block) * PANEL;\n");
    return;
  }
  ir_buf_printf(
      t->out,
      "          int64_t from = k;\n"
      "          const int64_t some = %s_span(row, col, &from, steps);\n"
      "          const int64_t skipped = some ? (from - k) / 32 : 0;\n"
      "          const int64_t blocks = some ? (from - k + some + 31) / 32 - skipped : 0;\n"
      "          const uint32_t *const a = a_panels + (row - row_block) * PANEL + skipped * "
      "K_BLOCK_WORDS;\n"
      "          const uint32_t *const b = b_panels + (col - col_block) * PANEL + skipped * "
      "K_BLOCK_WORDS;\n",
      t->name);
}

// Where sums go: tiles that are whole may store those of the last steps themselves.
static void put_target(const mm_text *t) {
  int64_t pitch = 0;
  mm_is_flat(&t->p->c.x, &pitch);
  bool waits = mm_amx_sums_wait(t->plan);
  if (stores_whole_tiles(t))
    ir_buf_printf(t->out,
                  "          const int whole = %srows == MR && cols == NR;\n"
                  "          float *const to = whole ? c_all + row * MR * %lld + col * NR : at;\n"
                  "          const int64_t pitch = whole ? %lld : NR;\n",
                  waits ? "k + steps == stop && " : "", (long long)pitch, (long long)pitch);
  else if (t->plan->split_k)
    ir_buf_printf(t->out,
                  "          float *const to = %spartial + (((piece * %lld + batch) * ROW_TILES + "
                  "row) * COL_TILES + "
                  "col) * (MR * NR);\n"
                  "          const int64_t pitch = NR;\n",
                  waits ? "k + steps < stop ? at : " : "", (long long)t->p->batch);
  else
    ir_buf_puts(t->out, "          float *const to = at;\n"
                        "          const int64_t pitch = NR;\n");
}

static void put_finish(const mm_text *t) {
  bool waits = mm_amx_sums_wait(t->plan), some = stores_whole_tiles(t);
  if (!finishes_tiles(t))
    return;
  const char *indent = "          ";
  if (waits || some) {
    ir_buf_printf(t->out, "%sif (%s%s%s)\n", indent, waits ? "k + steps == stop" : "",
                  waits && some ? " && " : "", some ? "!whole" : "");
    indent = "            ";
  }
  ir_buf_printf(t->out, "%s%s_finish(args, at, NR, batch, row * MR, rows, col * NR, cols);\n",
                indent, t->name);
}

static void put_packing(const mm_text *t, const char *which, const char *line, const char *size) {
  ir_buf_printf(
      t->out,
      "        for (int64_t %s = %s_block; %s < %s_stop; %s++)\n"
      "          %s_put_%s(%s_all, %s * 32, %s - %s * 32 < 32 ? %s - %s * 32 : 32, k, steps,\n"
      "              %s_panels + (%s - %s_block) * PANEL);\n",
      line, line, line, line, line, t->name, which, which, line, size, line, size, line, which,
      line, line);
}

static void put_buffers(const mm_text *t) {
  const mm_plan *g = t->plan;
  int64_t sums = mm_amx_sums_wait(g) ? g->block_rows * g->block_cols : 1;
  mm_emit_constants(t);
  ir_buf_printf(
      t->out,
      "  enum { K = %lld, STEPS = %lld, PANEL = %lld, BLOCK_ROWS = %lld, BLOCK_COLS = %lld };\n"
      "  (void)batch, (void)first;\n  ",
      (long long)t->p->k, (long long)g->amx_steps, (long long)mm_amx_panel_words(g),
      (long long)g->block_rows, (long long)g->block_cols);
  mm_emit_operand(t, "a_all", &t->p->a, "const ");
  ir_buf_puts(t->out, "  ");
  mm_emit_operand(t, "b_all", &t->p->b, "const ");
  if (stores_whole_tiles(t)) {
    ir_buf_puts(t->out, "  ");
    mm_emit_operand(t, "c_all", &t->p->c, "");
  }
  if (g->split_k)
    ir_buf_printf(
        t->out,
        "  float *const partial = (float *)args[%d];\n"
        "  const int64_t start = piece * %lld, stop = K - start < %lld ? K : start + %lld;\n",
        t->p->workspace_arg, (long long)g->k_block, (long long)g->k_block, (long long)g->k_block);
  else
    ir_buf_puts(t->out, "  const int64_t start = 0, stop = K;\n");
  ir_buf_printf(t->out,
                "  uint32_t a_panels[BLOCK_ROWS * PANEL] __attribute__((aligned(64)));\n"
                "  uint32_t b_panels[BLOCK_COLS * PANEL] __attribute__((aligned(64)));\n"
                "  float sums[%lld * MR * NR + %d] __attribute__((aligned(64)));\n",
                (long long)sums, g->lanes); // the last row, too, may be read in full vectors
}

void mm_emit_amx(const mm_text *t) {
  mm_amx_emit_put(t, false);
  mm_amx_emit_put(t, true);
  emit_tiles(t);
  if (mm_limits_steps(t->p))
    mm_emit_span(t);
  mm_emit_group_begin(t, "The tiles of rows [row_begin, row_end) and columns [col_begin, col_end)",
                      t->plan->split_k ? ", int64_t piece" : "");
  put_buffers(t);
  ir_buf_puts(
      t->out,
      "  for (int64_t col_block = col_begin; col_block < col_end; col_block += BLOCK_COLS) {\n"
      "    const int64_t col_stop = col_end - col_block < BLOCK_COLS ? col_end : col_block + "
      "BLOCK_COLS;\n"
      "    for (int64_t row_block = row_begin; row_block < row_end; row_block += BLOCK_ROWS) {\n"
      "      const int64_t row_stop = row_end - row_block < BLOCK_ROWS ? row_end : row_block + "
      "BLOCK_ROWS;\n"
      "      for (int64_t k = start; k < stop; k += STEPS) {\n"
      "        const int64_t steps = stop - k < STEPS ? stop - k : STEPS;\n"
      "        const int more = k > start;\n");
  put_packing(t, "b", "col", "N");
  put_packing(t, "a", "row", "M");
  ir_buf_printf(t->out,
                "        for (int64_t row = row_block; row < row_stop; row++)\n"
                "        for (int64_t col = col_block; col < col_stop; col++) {\n"
                "          const int64_t rows = M - row * MR < MR ? M - row * MR : MR;\n"
                "          const int64_t cols = N - col * NR < NR ? N - col * NR : NR;\n"
                "          float *const at = sums%s;\n"
                "          (void)rows, (void)cols;\n",
                mm_amx_sums_wait(t->plan)
                    ? " + ((row - row_block) * BLOCK_COLS + col - col_block) * (MR * NR)"
                    : "");
  put_panels(t);
  if (t->fetches)
    ir_buf_printf(t->out, "          %s_fetch(args, batch, row * MR, rows, col * NR);\n", t->name);
  put_target(t);
  put_calls(t);
  put_finish(t);
  ir_buf_puts(t->out, "        }\n      }\n    }\n  }\n}\n\n");
}
