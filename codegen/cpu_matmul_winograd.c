// cpu_matmul_winograd.c: products of 3 x 3 windows, one at each place of images, with 16 multiplications where 36 would
// be: F(2 x 2, 3 x 3) of A. Lavin and S. Gray, "Fast Algorithms for Convolutional Neural Networks" (2016), section 4.1,
// after S. Winograd, "Arithmetic Complexity of Computations" (1980).
//
//   a patch of 4 x 4 places   its 16 numbers   products         2 x 2 results
//     d d d d                   v v v v          m m m m          y y
//     d d d d      ->           v v v v    ->    m m m m    ->    y y
//     d d d d   additions       v v v v   x u    m m m m   add.
//     d d d d                   v v v v          m m m m
//
// For each of the 16 numbers there is one product of patches by channels with channels by results, whose k is nine times
// shorter than that of windows; there are four times fewer rows, and 16 of them. Filters get their 16 numbers (u) in
// phase 0, once for the whole team. Then each task takes a block of patches after the other, all on its stack:
//
//   for a few lines of patches: v
//     for a tile of columns: m = v u, 16 times; y
//     and then these rows are finished
//
// The sums are those of other chains than of a product of windows, so the last bits are others; they are the same for any
// number of threads, as blocks do not depend on it. A result is made of the places of its own window only: the first of the
// two of a line is m0 + m1 + m2, which the fourth place is no part of, the second m1 - m2 - m3, without the first.
//
// Patches at the end of an odd width or height have a last line or column that does not exist. What it would be counts
// for results that do not exist either: the one before is read instead.
#include "codegen/cpu_matmul_patch.h"

typedef struct text {
  const mm_text *t;
  mm_windows w;
} text;

// --- filters --------------------------------------------------------------------------------------
// u = G g G^T, for the columns of a tile: G has the rows  1 0 0,  1/2 1/2 1/2,  1/2 -1/2 1/2,  0 0 1.
static void put_filter(const text *x) {
  const mm_text *t = x->t;
  const char *k = ir_format(t->p->arena, "(i * C + c)");
  ir_buf_printf(
      t->out,
      "// The 16 numbers of each filter of channels [c, stop), for the columns of a tile.\n"
      "static void %s_filter(const float *b_all, int64_t n, int64_t cols, float *u, int64_t c, "
      "int64_t stop) {\n"
      "  enum { NR = %lld, C = %lld };\n"
      "  for (; c < stop; c++) {\n"
      "    float g[9][NR] = {0}, h[4][3][NR];\n"
      "    for (int64_t i = 0; i < 9; i++) {\n"
      "      const float *const b = b_all + %s;\n"
      "      for (int64_t j = 0; j < cols; j++)\n"
      "        g[i][j] = b[%s];\n"
      "    }\n",
      t->name, (long long)t->plan->nr, (long long)x->w.channels,
      mm_offset(t->p->arena, &t->p->b.k, k), mm_offset(t->p->arena, &t->p->b.x, "(n + j)"));
  ir_buf_puts(t->out, "    for (int i = 0; i < 3; i++)\n"
                      "      for (int64_t j = 0; j < NR; j++) {\n"
                      "        const float ends = g[i][j] + g[6 + i][j], middle = g[3 + i][j];\n"
                      "        h[0][i][j] = g[i][j];\n"
                      "        h[1][i][j] = 0.5f * (ends + middle);\n"
                      "        h[2][i][j] = 0.5f * (ends - middle);\n"
                      "        h[3][i][j] = g[6 + i][j];\n"
                      "      }\n"
                      "    for (int64_t i = 0; i < 4; i++)\n"
                      "      for (int64_t j = 0; j < NR; j++) {\n"
                      "        const float ends = h[i][0][j] + h[i][2][j], middle = h[i][1][j];\n"
                      "        float *const to = u + 4 * i * (C * NR) + c * NR + j;\n"
                      "        to[0] = h[i][0][j];\n"
                      "        to[C * NR] = 0.5f * (ends + middle);\n"
                      "        to[2 * C * NR] = 0.5f * (ends - middle);\n"
                      "        to[3 * C * NR] = h[i][2][j];\n"
                      "      }\n"
                      "  }\n"
                      "}\n\n");
}

static void put_filter_phase(const text *x, int phase) {
  const mm_text *t = x->t;
  ir_buf_printf(
      t->out,
      "// A task is a few channels of a tile's columns%s.\n"
      "void %s_%d(int64_t begin, int64_t end, char *const *args) {\n"
      "  enum { C = %lld, SLICE = %d, SLICES = %lld, N = %lld, NR = %lld, COL_TILES = %lld };\n"
      "  for (int64_t task = begin; task < end; task++) {\n"
      "    const int64_t c = task %% SLICES * SLICE, col = task / SLICES %% COL_TILES;\n"
      "    const int64_t batch = task / (SLICES * COL_TILES);\n    ",
      t->p->batch > 1 ? " of one batch item" : "", t->name, phase, (long long)x->w.channels,
      MM_FILTER_CHANNELS, (long long)ir_ceil_div(x->w.channels, MM_FILTER_CHANNELS),
      (long long)t->p->n, (long long)t->plan->nr, (long long)t->plan->col_tiles);
  mm_emit_operand(t, "b_all", &t->p->b, "const ");
  ir_buf_printf(t->out,
                "    float *const u = (float *)args[%d] + (batch * COL_TILES + col) * %lld;\n"
                "    %s_filter(b_all, col * NR, N - col * NR < NR ? N - col * NR : NR, u, c, C - c "
                "< SLICE ? C : c + SLICE);\n"
                "  }\n"
                "}\n\n",
                t->p->workspace_arg, (long long)t->plan->b_panel, t->name);
}

// --- products -------------------------------------------------------------------------------------
static void put_tile(const text *x, int rows, int vectors) {
  const mm_text *t = x->t;
  mm_patch_tile tile = {rows, vectors, .a_row = x->w.channels, .a_step = 1};
  ir_buf_printf(t->out,
                "static __attribute__((noinline)) void %s_tiles_%dx%d(const float *a, const float "
                "*b, float *c, int64_t num) {\n"
                "  enum { C = %lld, NR = %lld };\n"
                "  for (; num > 0; num--, a += %d * C, c += %d * NR) {\n",
                t->name, rows, vectors, (long long)x->w.channels, (long long)t->plan->nr, rows,
                rows);
  mm_emit_patch_sums(t, &tile, "    ");
  ir_buf_puts(t->out, "#pragma GCC unroll 4\n"
                      "    for (int64_t k = 0; k < C; k++) {\n");
  mm_emit_patch_step(t, &tile, "      ");
  ir_buf_puts(t->out, "    }\n");
  mm_emit_patch_moves(t, &tile, false, "    ");
  ir_buf_puts(t->out, "  }\n}\n\n");
}

// Rows of the last register tile of a block, of each kind that has one; gives how many kinds have others.
static int last_rows(const text *x, int *rows) {
  mm_patch_kind kinds[MM_PATCH_KINDS];
  int all = mm_patch_kinds(&x->w, x->t->plan, kinds), num = 0;
  for (int i = 0; i < all; i++) {
    int rest = (int)(kinds[i].patches % x->t->plan->patch_rows), j = 0;
    while (j < num && rows[j] != rest)
      j++;
    if (j == num && rest)
      rows[num++] = rest;
  }
  return num;
}

static void put_tiles_of(const void *data, int vectors) {
  const text *x = data;
  int rows[MM_PATCH_KINDS], num = last_rows(x, rows);
  put_tile(x, x->t->plan->patch_rows, vectors);
  for (int i = 0; i < num; i++)
    put_tile(x, rows[i], vectors);
}

static void put_calls(const void *data, int vectors, const char *in) {
  const text *x = data;
  int rows[MM_PATCH_KINDS], num = last_rows(x, rows), most = x->t->plan->patch_rows;
  ir_buf_printf(x->t->out,
                "%sconst int64_t num = patches / ROWS, rest = patches %% ROWS;\n"
                "%s(void)rest;\n"
                "%s%s_tiles_%dx%d(a, b, c, num);\n",
                in, in, in, x->t->name, most, vectors);
  for (int i = 0; i < num; i++)
    ir_buf_printf(x->t->out,
                  "%sif (rest == %d)\n"
                  "%s  %s_tiles_%dx%d(a + num * %d * C, b, c + num * %d * NR, 1);\n",
                  in, rows[i], in, x->t->name, rows[i], vectors, most, most);
}

static void put_products(const text *x) {
  const mm_plan *g = x->t->plan;
  mm_patch_products products = {.channels = x->w.channels,
                                .b_plane = x->w.channels * g->nr,
                                .c_plane = mm_patch_pitch(g, g->nr),
                                .more = "",
                                .put_tiles = put_tiles_of,
                                .put_calls = put_calls,
                                .data = x};
  mm_emit_patch_products(x->t, &products);
}

// --- results --------------------------------------------------------------------------------------
// Where a line of patches has its first result, among those of its block. Images of an odd height end with half a line.
static const char *first_row(const text *x) {
  bool images = x->w.height % 2 && !x->t->plan->patch_within;
  return images ? "(2 * i - i / HIGH) * width" : "2 * i * width";
}

static void put_stores(const text *x, const char *in, const char *row, const char *to) {
  ir_buf_printf(x->t->out, "%s*(%s_mem *)(%s) = %s0 + %s1 + %s2;\n", in, x->t->name, to, row, row,
                row);
  if (x->w.width % 2)
    ir_buf_printf(x->t->out, "%sif (2 * j + 1 < width)\n  ", in);
  ir_buf_printf(x->t->out, "%s*(%s_mem *)(%s + PITCH) = %s1 - %s2 - %s3;\n", in, x->t->name, to,
                row, row, row);
}

// y = A^T m A: A^T has the rows  1 1 1 0,  0 1 -1 -1.
static void put_results(const text *x) {
  const mm_text *t = x->t;
  const mm_plan *g = t->plan;
  ir_buf_printf(
      t->out,
      "// The results of so many lines of patches, each of them `width`, for a tile of columns.\n"
      "static __attribute__((noinline)) void %s_results(const float *m, float *sums, "
      "int64_t line, int64_t lines, int64_t width, int64_t cols) {\n"
      "  enum { NR = %lld, LANES = %d, HIGH = %lld, PITCH = %lld };\n"
      "  (void)line, (void)HIGH;\n"
      "  for (int64_t i = 0; i < lines; i++)\n"
      "    for (int64_t j = 0; 2 * j < width; j++, m += NR)\n"
      "      for (int64_t n = 0; n < cols; n += LANES) {\n"
      "        float *const to = sums + (%s + 2 * j) * PITCH + n;\n"
      "        const %s_vec",
      t->name, (long long)g->nr, g->lanes, (long long)mm_patch_lines(&x->w),
      (long long)(g->block_cols * g->nr), first_row(x), t->name);
  for (int i = 0; i < MM_PLANES; i++)
    ir_buf_printf(t->out, "%s m%d = *(const %s_mem *)(m + n + %lld)", i ? "," : "", i, t->name,
                  (long long)(i * mm_patch_pitch(g, g->nr)));
  ir_buf_printf(t->out, ";\n        const %s_vec", t->name);
  for (int j = 0; j < 4; j++)
    ir_buf_printf(t->out, "%s h%d = m%d + m%d + m%d, l%d = m%d - m%d - m%d", j ? "," : "", j, j,
                  4 + j, 8 + j, j, 4 + j, 8 + j, 12 + j);
  ir_buf_puts(t->out, ";\n");
  put_stores(x, "        ", "h", "to");
  if (x->w.height % 2)
    ir_buf_puts(t->out, "        if ((line + i) % HIGH == HIGH - 1)\n"
                        "          continue;\n");
  put_stores(x, "        ", "l", "to + width * PITCH");
  ir_buf_puts(t->out, "      }\n}\n\n");
}

// --- a task ---------------------------------------------------------------------------------------
// What of all patches a block has, and its first row. Blocks go on from one image to the next where each line of patches is two of
// rows, or a block is whole images; else they are parts of an image, of some lines or of one.
static void put_block(const text *x) {
  const mm_plan *g = x->t->plan;
  long long high = (long long)mm_patch_lines(&x->w), wide = (long long)mm_patches_of_line(&x->w);
  if (!g->patch_within) {
    ir_buf_printf(
        x->t->out,
        "    const int64_t line = row * LINES, rest = %lld - line;\n"
        "    const int64_t lines = rest < LINES ? rest : LINES, x = 0, wide = %lld, width = W;\n"
        "    const int64_t m0 = row * MR, rows = M - m0 < MR ? M - m0 : MR;\n",
        (long long)x->w.images * high, wide);
    return;
  }
  ir_buf_printf(
      x->t->out,
      "    const int64_t image = row / BLOCKS, first = row %% BLOCKS / PARTS * LINES;\n"
      "    const int64_t lines = %lld - first < LINES ? %lld - first : LINES;\n"
      "    const int64_t x = row %% PARTS * %lld, wide = %lld - x < %lld ? %lld - x : %lld;\n"
      "    const int64_t width = W - 2 * x < 2 * wide ? W - 2 * x : 2 * wide;\n"
      "    const int64_t line = image * %lld + first;\n"
      "    const int64_t m0 = (image * H + 2 * first) * W + 2 * x;\n"
      "    const int64_t rows = (H - 2 * first < 2 * lines ? H - 2 * first : 2 * lines) * width;\n",
      high, high, (long long)g->patch_wide, wide, (long long)g->patch_wide, wide,
      (long long)g->patch_wide, high);
}

// Rows of a part of a line are apart.
static void put_finish(const text *x) {
  bool parts = x->t->plan->patch_wide < mm_patches_of_line(&x->w);
  ir_buf_printf(
      x->t->out,
      parts ? "    for (int64_t i = 0; i < rows; i += width)\n"
              "      %s_finish(args, sums + i * PITCH, PITCH, batch, m0 + i / width * W, width, n, "
              "stop - n);\n"
            : "    %s_finish(args, sums, PITCH, batch, m0, rows, n, stop - n);\n",
      x->t->name);
}

static void put_buffers(const text *x) {
  const mm_text *t = x->t;
  const mm_plan *g = t->plan;
  int64_t parts = ir_ceil_div(mm_patches_of_line(&x->w), g->patch_wide);
  ir_buf_printf(
      t->out,
      "  enum { H = %lld, W = %lld, LINES = %lld, PARTS = %lld, BLOCKS = %lld, PITCH = %lld };\n"
      "  (void)batch, (void)first, (void)H, (void)BLOCKS;\n  ",
      (long long)x->w.height, (long long)x->w.width, (long long)g->patch_lines, (long long)parts,
      (long long)(parts * ir_ceil_div(mm_patch_lines(&x->w), g->patch_lines)),
      (long long)(g->block_cols * g->nr));
  mm_emit_operand(t, "a_all", &t->p->a, "const ");
  ir_buf_printf(t->out,
                "  const float *const u = (const float *)args[%d] + batch * (COL_TILES * %lld);\n"
                "  float v[%lld] __attribute__((aligned(64)));\n"
                "  float m[%lld] __attribute__((aligned(64)));\n"
                // the last row, too, may be read in full vectors
                "  float sums[MR * PITCH + %d] __attribute__((aligned(64)));\n",
                t->p->workspace_arg, (long long)g->b_panel,
                (long long)(MM_PLANES * mm_patch_pitch(g, x->w.channels)),
                (long long)(MM_PLANES * mm_patch_pitch(g, g->nr)), g->lanes);
}

static void put_group(const text *x) {
  const mm_text *t = x->t;
  mm_emit_group_begin(
      t, "The blocks of rows [row_begin, row_end) and tiles of columns [col_begin, col_end)", "");
  mm_emit_constants(t);
  put_buffers(x);
  ir_buf_puts(t->out,
              "  const int64_t n = col_begin * NR, stop = col_end * NR < N ? col_end * NR : N;\n"
              "  for (int64_t row = row_begin; row < row_end; row++) {\n");
  put_block(x);
  ir_buf_printf(t->out,
                "    %s_patches(a_all, v, line, lines, x, wide);\n"
                "    for (int64_t col = col_begin; col < col_end; col++) {\n"
                "      const int64_t cols = N - col * NR < NR ? N - col * NR : NR;\n"
                "      %s_products(v, u + col * %lld, m, lines * wide, cols == NR);\n"
                "      %s_results(m, sums + (col - col_begin) * NR, line, lines, width, cols);\n"
                "    }\n",
                t->name, t->name, (long long)t->plan->b_panel, t->name);
  put_finish(x);
  ir_buf_puts(t->out, "  }\n"
                      "}\n\n");
}

void mm_emit_filters(const mm_text *t, int phase) {
  text x = {.t = t};
  mm_find_windows(&t->p->a.x, &t->p->a.k, &x.w);
  put_filter(&x);
  put_filter_phase(&x, phase);
}

void mm_emit_winograd(const mm_text *t) {
  text x = {.t = t};
  mm_find_windows(&t->p->a.x, &t->p->a.k, &x.w);
  mm_emit_patches(t, &x.w);
  put_products(&x);
  put_results(&x);
  put_group(&x);
}
