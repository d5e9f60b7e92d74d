// cpu_matmul_winograd_weights.c: gradients of 3 x 3 filters, with 16 multiplications where 36 would be.
//
// The results of a patch are  y = A^T [(G g G^T) x (B^T d B)] A  (cpu_matmul_winograd.c), so what comes back to its filter
// is  dg = G^T [(A dy A^T) x (B^T d B)] G: the same 16 numbers of a patch, and 16 of its 2 x 2 gradients. Those of all
// patches are added up before they become nine:
//
//   for a few lines of patches: v
//     for a tile of columns: their gradients' numbers, 16 products  s += v^T dy
//
// Tasks are pieces of all patches, and groups of columns; the last phase adds the pieces up in order. What does not exist
// of a patch at the end of an odd width or height has gradients of 0.
#include "codegen/cpu_matmul_patch.h"

typedef struct text {
  const mm_text *t;
  mm_places x;
} text;

static text text_of(const mm_text *t) {
  text x = {.t = t};
  mm_find_places(t->p, &x.x);
  return x;
}

static bool ends_in_vector(const mm_text *t) {
  return t->p->n % t->plan->lanes;
}

// --- gradients ------------------------------------------------------------------------------------
static void put_load(const text *x, const char *name, const char *at, const char *exists) {
  const mm_text *t = x->t;
  ir_buf_printf(t->out, "        const %s_vec %s = ", t->name, name);
  if (exists)
    ir_buf_printf(t->out, "!(%s) ? (%s_vec){0} : ", exists, t->name);
  if (ends_in_vector(t))
    ir_buf_printf(t->out, "cols - n < LANES ? %s_part(%s, cols - n) : ", t->name, at);
  ir_buf_printf(t->out, "*(const %s_mem *)(%s);\n", t->name, at);
}

static void put_loads(const text *x) {
  ir_arena *a = x->t->p->arena;
  const mm_windows *w = &x->x.windows;
  const char *right = w->width % 2 ? "x + i < WIDE - 1" : NULL;
  const char *below = w->height % 2 ? "line % HIGH < HIGH - 1" : NULL;
  const char *both = right && below ? ir_format(a, "%s && %s", right, below)
                     : right        ? right
                                    : below;
  long long place = (long long)x->x.place, line = (long long)x->x.line;
  put_load(x, "d00", "from + n", NULL);
  put_load(x, "d01", ir_format(a, "from + n + %lld", place), right);
  put_load(x, "d10", ir_format(a, "from + n + %lld", line), below);
  put_load(x, "d11", ir_format(a, "from + n + %lld", line + place), both);
}

// A dy A^T: A has the rows  1 0,  1 1,  1 -1,  0 -1.
static void put_numbers(const mm_text *t) {
  ir_buf_printf(t->out, "        const %s_vec", t->name);
  for (int j = 0; j < 2; j++)
    ir_buf_printf(t->out, "%s h0%d = d0%d, h1%d = d0%d + d1%d, h2%d = d0%d - d1%d, h3%d = -d1%d",
                  j ? "," : "", j, j, j, j, j, j, j, j, j, j);
  ir_buf_puts(t->out, ";\n");
  for (int i = 0; i < 4; i++) {
    static const char *const numbers[] = {"h%d0", "h%d0 + h%d1", "h%d0 - h%d1", "-h%d1"};
    for (int j = 0; j < 4; j++)
      ir_buf_printf(t->out, "        *(%s_mem *)(y + n + %d * PITCH) = %s;\n", t->name, 4 * i + j,
                    ir_format(t->p->arena, numbers[j], i, i));
  }
}

static void put_part(const mm_text *t) {
  ir_buf_printf(t->out,
                "static %s_vec %s_part(const float *from, int64_t lanes) {\n"
                "  %s_vec x = {0};\n"
                "  for (int64_t i = 0; i < lanes; i++)\n"
                "    x[i] = from[i];\n"
                "  return x;\n"
                "}\n\n",
                t->name, t->name, t->name);
}

static void put_gradients(const text *x) {
  const mm_text *t = x->t;
  const mm_windows *w = &x->x.windows;
  if (ends_in_vector(t))
    put_part(t);
  ir_buf_printf(
      t->out,
      "// The 16 numbers of the gradients of these patches, for a tile of columns.\n"
      "static __attribute__((noinline)) void %s_gradients(const float *b, float *y, int64_t line, "
      "int64_t lines, int64_t x, int64_t wide, int64_t cols) {\n"
      "  enum { NR = %lld, LANES = %d, WIDE = %lld, HIGH = %lld, PITCH = %lld };\n"
      "  (void)WIDE;\n"
      "  for (const int64_t stop = line + lines; line < stop; line++) {\n"
      "    const float *from = b + line / HIGH * %lld + line %% HIGH * %lld + x * %lld;\n"
      "    for (int64_t i = 0; i < wide; i++, from += %lld, y += NR)\n"
      "      for (int64_t n = 0; n < cols; n += LANES) {\n",
      t->name, (long long)t->plan->nr, t->plan->lanes, (long long)mm_patches_of_line(w),
      (long long)mm_patch_lines(w), (long long)mm_patch_pitch(t->plan, t->plan->nr),
      (long long)x->x.image, 2 * (long long)x->x.line, 2 * (long long)x->x.place,
      2 * (long long)x->x.place);
  put_loads(x);
  put_numbers(t);
  ir_buf_puts(t->out, "      }\n  }\n}\n\n");
}

// --- products -------------------------------------------------------------------------------------
static void put_tile(const text *x, int rows, int vectors) {
  const mm_text *t = x->t;
  mm_patch_tile tile = {rows, vectors, .a_row = 1, .a_step = x->x.windows.channels};
  ir_buf_printf(
      t->out,
      "static __attribute__((noinline)) void %s_tile_%dx%d(const float *a, const float *b, "
      "float *c, int64_t patches, int later) {\n"
      "  enum { NR = %lld };\n",
      t->name, rows, vectors, (long long)t->plan->nr);
  mm_emit_patch_sums(t, &tile, "  ");
  ir_buf_puts(t->out, "  if (later) {\n");
  mm_emit_patch_moves(t, &tile, true, "    ");
  ir_buf_puts(t->out, "  }\n"
                      "#pragma GCC unroll 2\n"
                      "  for (int64_t k = 0; k < patches; k++) {\n");
  mm_emit_patch_step(t, &tile, "    ");
  ir_buf_puts(t->out, "  }\n");
  mm_emit_patch_moves(t, &tile, false, "  ");
  ir_buf_puts(t->out, "}\n\n");
}

static int last_rows(const text *x) {
  return (int)(x->x.windows.channels % x->t->plan->patch_rows);
}

static void put_tiles_of(const void *data, int vectors) {
  const text *x = data;
  put_tile(x, x->t->plan->patch_rows, vectors);
  if (last_rows(x))
    put_tile(x, last_rows(x), vectors);
}

static void put_calls(const void *data, int vectors, const char *in) {
  const text *x = data;
  const mm_text *t = x->t;
  ir_buf_printf(t->out,
                "%sfor (int64_t row = 0; row + ROWS <= C; row += ROWS)\n"
                "%s  %s_tile_%dx%d(a + row, b, c + row * NR, patches, later);\n",
                in, in, t->name, t->plan->patch_rows, vectors);
  if (last_rows(x))
    ir_buf_printf(t->out,
                  "%s%s_tile_%dx%d(a + C / ROWS * ROWS, b, c + C / ROWS * ROWS * NR, patches, "
                  "later);\n",
                  in, t->name, last_rows(x), vectors);
}

static void put_products(const text *x) {
  const mm_plan *g = x->t->plan;
  mm_patch_products products = {.channels = x->x.windows.channels,
                                .b_plane = mm_patch_pitch(g, g->nr),
                                .c_plane = x->x.windows.channels * g->nr,
                                .more = ", int later",
                                .put_tiles = put_tiles_of,
                                .put_calls = put_calls,
                                .data = x};
  mm_emit_patch_products(x->t, &products);
}

// --- a task ---------------------------------------------------------------------------------------
static void put_buffers(const text *x) {
  const mm_text *t = x->t;
  const mm_plan *g = t->plan;
  const mm_windows *w = &x->x.windows;
  ir_buf_printf(t->out,
                "  enum { N = %lld, NR = %lld, LINES = %lld, ALL_LINES = %lld, ALL_WIDE = %lld, "
                "WIDE = %lld,\n"
                "    COL_TILES = %lld, PIECES = %lld };\n"
                "  (void)batch, (void)first, (void)row_begin, (void)row_end;\n  ",
                (long long)t->p->n, (long long)g->nr, (long long)g->patch_lines,
                (long long)(w->images * mm_patch_lines(w)), (long long)mm_patches_of_line(w),
                (long long)g->patch_wide, (long long)g->col_tiles, (long long)g->k_blocks);
  mm_emit_operand(t, "a_all", &t->p->a, "const ");
  ir_buf_puts(t->out, "  ");
  mm_emit_operand(t, "b_all", &t->p->b, "const ");
  ir_buf_printf(
      t->out,
      "  float *const all = (float *)args[%d] + (piece * %lld + batch) * (COL_TILES * %lld);\n"
      "  float v[%lld] __attribute__((aligned(64)));\n"
      "  float y[%lld] __attribute__((aligned(64)));\n"
      "  const int64_t begin = piece * ALL_LINES / PIECES, end = (piece + 1) * ALL_LINES / "
      "PIECES;\n",
      t->p->workspace_arg, (long long)t->p->batch, (long long)g->b_panel,
      (long long)(MM_PLANES * mm_patch_pitch(g, w->channels)),
      (long long)(MM_PLANES * mm_patch_pitch(g, g->nr)));
}

static void put_group(const text *x) {
  const mm_text *t = x->t;
  mm_emit_group_begin(t, "A piece of all patches, tiles of columns [col_begin, col_end)",
                      ", int64_t piece");
  put_buffers(x);
  ir_buf_printf(t->out,
                "  for (int64_t line = begin; line < end; line += LINES)\n"
                "    for (int64_t x = 0; x < ALL_WIDE; x += WIDE) {\n"
                "      const int64_t lines = end - line < LINES ? end - line : LINES;\n"
                "      const int64_t wide = ALL_WIDE - x < WIDE ? ALL_WIDE - x : WIDE;\n"
                "      %s_patches(a_all, v, line, lines, x, wide);\n"
                "      for (int64_t col = col_begin; col < col_end; col++) {\n"
                "        const int64_t cols = N - col * NR < NR ? N - col * NR : NR;\n"
                "        %s_gradients(b_all + col * NR, y, line, lines, x, wide, cols);\n"
                "        %s_products(v, y, all + col * %lld, lines * wide, cols == NR, line > "
                "begin || x > 0);\n"
                "      }\n"
                "    }\n"
                "}\n\n",
                t->name, t->name, t->name, (long long)t->plan->b_panel);
}

void mm_emit_winograd_weights(const mm_text *t) {
  text x = text_of(t);
  mm_emit_patches(t, &x.x.windows);
  put_gradients(&x);
  put_products(&x);
  put_group(&x);
}

// --- adding the pieces up -------------------------------------------------------------------------
// G^T s G: G^T has the rows  1 1/2 1/2 0,  0 1/2 -1/2 0,  0 1/2 1/2 1.
static void put_nine(const mm_text *t) {
  for (int j = 0; j < 4; j++)
    ir_buf_printf(
        t->out,
        "        const %s_vec e%d = 0.5f * (s[%d] + s[%d]), o%d = 0.5f * (s[%d] - s[%d]);\n",
        t->name, j, 4 + j, 8 + j, j, 4 + j, 8 + j);
  for (int i = 0; i < 3; i++) {
    ir_buf_printf(t->out, "        const %s_vec", t->name);
    for (int j = 0; j < 4; j++)
      ir_buf_printf(t->out, "%s h%d%d = %s", j ? "," : "", i, j,
                    i == 0   ? ir_format(t->p->arena, "s[%d] + e%d", j, j)
                    : i == 1 ? ir_format(t->p->arena, "o%d", j)
                             : ir_format(t->p->arena, "e%d + s[%d]", j, 12 + j));
    ir_buf_printf(t->out,
                  ";\n"
                  "        const %s_vec f%d = 0.5f * (h%d1 + h%d2);\n"
                  "        *(%s_mem *)(to + %d * PITCH) = h%d0 + f%d;\n"
                  "        *(%s_mem *)(to + %d * PITCH) = 0.5f * (h%d1 - h%d2);\n"
                  "        *(%s_mem *)(to + %d * PITCH) = f%d + h%d3;\n",
                  t->name, i, i, i, t->name, 3 * i, i, i, t->name, 3 * i + 1, i, i, t->name,
                  3 * i + 2, i, i);
  }
}

void mm_emit_winograd_sums(const mm_text *t, int phase) {
  text x = text_of(t);
  const mm_plan *g = t->plan;
  long long panel = (long long)g->b_panel, tiles = (long long)g->col_tiles;
  ir_buf_printf(
      t->out,
      "// Adds the pieces up, in order, for a few channels and a tile of columns.\n"
      "void %s_%d(int64_t begin, int64_t end, char *const *args) {\n"
      "  enum { C = %lld, SLICE = %d, SLICES = %lld, N = %lld, NR = %lld, COL_TILES = %lld, PIECES "
      "= "
      "%lld, LANES = %d, PITCH = SLICE * NR };\n"
      "  float sums[9 * PITCH + LANES] __attribute__((aligned(64)));\n"
      "  for (int64_t task = begin; task < end; task++) {\n"
      "    const int64_t start = task %% SLICES * SLICE, col = task / SLICES %% COL_TILES;\n"
      "    const int64_t batch = task / (SLICES * COL_TILES);\n"
      "    const int64_t rows = C - start < SLICE ? C - start : SLICE;\n"
      "    const int64_t cols = N - col * NR < NR ? N - col * NR : NR;\n"
      "    const float *const all = (const float *)args[%d] + (batch * COL_TILES + col) * %lld;\n"
      "    for (int64_t c = 0; c < rows; c++)\n"
      "      for (int64_t n = 0; n < cols; n += LANES) {\n"
      "        const float *const from = all + (start + c) * NR + n;\n"
      "        float *const to = sums + c * NR + n;\n"
      "        %s_vec s[%d];\n"
      "        for (int i = 0; i < %d; i++) {\n"
      "          s[i] = *(const %s_mem *)(from + i * (C * NR));\n"
      "          for (int64_t piece = 1; piece < PIECES; piece++)\n"
      "            s[i] += *(const %s_mem *)(from + i * (C * NR) + piece * %lld);\n"
      "        }\n",
      t->name, phase, (long long)x.x.windows.channels, MM_SUM_CHANNELS,
      (long long)ir_ceil_div(x.x.windows.channels, MM_SUM_CHANNELS), (long long)t->p->n,
      (long long)g->nr, tiles, (long long)g->k_blocks, g->lanes, t->p->workspace_arg, panel,
      t->name, MM_PLANES, MM_PLANES, t->name, t->name, (long long)t->p->batch * tiles * panel);
  put_nine(t);
  ir_buf_printf(t->out,
                "      }\n"
                "    for (int64_t i = 0; i < 9; i++)\n"
                "      %s_finish(args, sums + i * PITCH, NR, batch, i * C + start, rows, col * NR, "
                "cols);\n"
                "  }\n"
                "}\n\n",
                t->name);
}
