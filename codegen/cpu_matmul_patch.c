// cpu_matmul_patch.c: the text that products of windows (cpu_matmul_winograd.c) and the gradients of their filters
// (cpu_matmul_winograd_weights.c) have in common: the 16 numbers of patches, and register tiles.
#include "codegen/cpu_matmul_patch.h"

// --- patches --------------------------------------------------------------------------------------
// Loads a column of a patch and adds its places up, into  NAME0 ... NAME3.
static void put_column(const mm_text *t, const char *in, const char *name, const char *at) {
  ir_buf_printf(t->out, "%s{\n%s  const int64_t at = %s;\n%s  const %s_vec", in, in, at, in,
                t->name);
  for (int i = 0; i < 4; i++)
    ir_buf_printf(t->out, " d%d = *(const %s_mem *)(r%d + at)%s", i, t->name, i,
                  i < 3 ? "," : ";\n");
  ir_buf_printf(t->out,
                "%s  %s0 = d0 - d2, %s1 = d1 + d2, %s2 = d2 - d1, %s3 = d1 - d3;\n"
                "%s}\n",
                in, name, name, name, name, in);
}

static void put_patch_line(const mm_text *t, const mm_windows *w) {
  long long place = (long long)w->place;
  bool odd = w->width % 2;
  ir_buf_printf(t->out,
                "      %s_vec p0, p1, p2, p3, q0, q1, q2, q3, x0, x1, x2, x3, y0, y1, y2, y3;\n",
                t->name);
  put_column(t, "      ", "p", "c");
  put_column(t, "      ", "q", ir_format(t->p->arena, "c + %lld", place));
  ir_buf_puts(t->out, "#pragma GCC unroll 1\n"
                      "      for (int64_t i = 0; i < wide; i++, to += C) {\n");
  put_column(t, "        ", "x", ir_format(t->p->arena, "c + (2 * i + 2) * %lld", place));
  put_column(t, "        ", "y",
             ir_format(t->p->arena, "c + (2 * i + %s) * %lld",
                       odd ? "(x + i < WIDE - 1 ? 3 : 2)" : "3", place));
  for (int i = 0; i < 4; i++) {
    static const char *const sums[] = {"p%d - x%d", "q%d + x%d", "x%d - q%d", "q%d - y%d"};
    for (int j = 0; j < 4; j++)
      ir_buf_printf(t->out, "        *(%s_mem *)(to + %d * PITCH) = %s;\n", t->name, 4 * i + j,
                    ir_format(t->p->arena, sums[j], i, i));
  }
  ir_buf_puts(t->out, "        p0 = x0, p1 = x1, p2 = x2, p3 = x3;\n"
                      "        q0 = y0, q1 = y1, q2 = y2, q3 = y3;\n"
                      "      }\n");
}

// v = B^T d B: B^T has the rows  1 0 -1 0,  0 1 1 0,  0 -1 1 0,  0 1 0 -1. Neighbours have two columns in common.
void mm_emit_patches(const mm_text *t, const mm_windows *w) {
  bool odd = w->height % 2;
  ir_buf_printf(
      t->out,
      "// The 16 numbers of each patch, so many from x on in each of some lines of them, for each "
      "channel.\n"
      "static __attribute__((noinline)) void %s_patches(const float *a, float *v, int64_t line, "
      "int64_t lines, int64_t x, int64_t wide) {\n"
      "  enum { C = %lld, LANES = %d, WIDE = %lld, HIGH = %lld, PITCH = %lld };\n"
      "  for (const int64_t stop = line + lines;line < stop; line++, v += wide * C) {\n"
      "    const float *const r0 = a + line / HIGH * %lld + line %% HIGH * %lld + x * %lld;\n"
      "    const float *const r1 = r0 + %lld, *const r2 = r1 + %lld;\n",
      t->name, (long long)w->channels, t->plan->lanes, (long long)mm_patches_of_line(w),
      (long long)mm_patch_lines(w), (long long)mm_patch_pitch(t->plan, w->channels),
      (long long)w->image, 2 * (long long)w->line, 2 * (long long)w->place, (long long)w->line,
      (long long)w->line);
  ir_buf_puts(t->out, w->width % 2 ? "" : "    (void)WIDE;\n");
  if (odd)
    ir_buf_printf(t->out, "    const float *const r3 = line %% HIGH < HIGH - 1 ? r2 + %lld : r2;\n",
                  (long long)w->line);
  else
    ir_buf_printf(t->out, "    const float *const r3 = r2 + %lld;\n", (long long)w->line);
  ir_buf_puts(t->out, "    for (int64_t begin = 0; begin < C; begin += LANES) {\n");
  ir_buf_puts(t->out, w->channels % t->plan->lanes
                          ? "      const int64_t c = C - begin < LANES ? C - LANES : begin;\n"
                          : "      const int64_t c = begin;\n");
  ir_buf_puts(t->out, "      float *to = v + c;\n");
  put_patch_line(t, w);
  ir_buf_puts(t->out, "    }\n"
                      "  }\n"
                      "}\n\n");
}

// --- register tiles -------------------------------------------------------------------------------
void mm_emit_patch_sums(const mm_text *t, const mm_patch_tile *x, const char *in) {
  for (int i = 0; i < x->rows; i++) {
    ir_buf_printf(t->out, "%s%s_vec", in, t->name);
    for (int j = 0; j < x->vectors; j++)
      ir_buf_printf(t->out, "%s c%d_%d = {0}", j ? "," : "", i, j);
    ir_buf_puts(t->out, ";\n");
  }
}

void mm_emit_patch_step(const mm_text *t, const mm_patch_tile *x, const char *in) {
  for (int j = 0; j < x->vectors; j++)
    ir_buf_printf(t->out, "%sconst %s_vec b%d = *(const %s_mem *)(b + k * NR + %d);\n", in, t->name,
                  j, t->name, j * t->plan->lanes);
  for (int i = 0; i < x->rows; i++) {
    ir_buf_printf(t->out, "%sconst float a%d = a[k * %lld + %lld];\n%s", in, i,
                  (long long)x->a_step, (long long)(i * x->a_row), in);
    for (int j = 0; j < x->vectors; j++)
      ir_buf_printf(t->out, "%sc%d_%d += a%d * b%d;", j ? " " : "", i, j, i, j);
    ir_buf_puts(t->out, "\n");
  }
}

void mm_emit_patch_moves(const mm_text *t, const mm_patch_tile *x, bool load, const char *in) {
  for (int i = 0; i < x->rows; i++)
    for (int j = 0; j < x->vectors; j++) {
      const char *sum = ir_format(t->p->arena, "c%d_%d", i, j);
      const char *at = ir_format(t->p->arena, "*(%s%s_mem *)(c + %d * NR + %d)",
                                 load ? "const " : "", t->name, i, j * t->plan->lanes);
      ir_buf_printf(t->out, "%s%s = %s;\n", in, load ? sum : at, load ? at : sum);
    }
}

// --- products -------------------------------------------------------------------------------------
// Vectors of full tiles of columns, and of the last one where it has fewer; gives how many of these two there are.
static int find_widths(const mm_text *t, int *vectors) {
  const mm_plan *g = t->plan;
  bool narrow = g->tail_nv && g->tail_nv < g->nv;
  int num = 0;
  if (!narrow || t->p->n >= g->nr)
    vectors[num++] = g->nv;
  if (narrow)
    vectors[num++] = g->tail_nv;
  return num;
}

void mm_emit_patch_products(const mm_text *t, const mm_patch_products *x) {
  int vectors[2], num = find_widths(t, vectors);
  for (int i = 0; i < num; i++)
    x->put_tiles(x->data, vectors[i]);
  ir_buf_printf(t->out,
                "static void %s_products(const float *a_all, const float *b_all, float *c_all, "
                "int64_t patches, int full%s) {\n"
                "  enum { C = %lld, NR = %lld, ROWS = %d };\n"
                "  (void)full;\n"
                "  for (int i = 0; i < %d; i++) {\n"
                "    const float *const a = a_all + i * %lld, *const b = b_all + i * %lld;\n"
                "    float *const c = c_all + i * %lld;\n",
                t->name, x->more, (long long)x->channels, (long long)t->plan->nr,
                t->plan->patch_rows, MM_PLANES, (long long)mm_patch_pitch(t->plan, x->channels),
                (long long)x->b_plane, (long long)x->c_plane);
  for (int i = 0; i < num; i++) {
    if (num == 2)
      ir_buf_puts(t->out, i == 0 ? "    if (full) {\n" : "    } else {\n");
    x->put_calls(x->data, vectors[i], num == 2 ? "      " : "    ");
  }
  ir_buf_puts(t->out, num == 2 ? "    }\n  }\n}\n\n" : "  }\n}\n\n");
}
