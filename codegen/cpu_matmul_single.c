// cpu_matmul_single.c: products of samples that are full of zeros (passes/zeros.h), such as a first layer's: each row
// goes through a list of its own, of the steps of k at which it is not 0.
//
//   a, a piece of k        lists        sums of a row, a vector of b at a time
//     . . 3 . . . 1 .       2 6           sum += 3 * b[2, ..], sum += 1 * b[6, ..]
//     . . 2 4 . . . .       2 3           ...
//
// A tile of several rows (cpu_matmul_list.c) takes what any of them has: of four handwritten digits twice as many steps
// as of one. But it reads a line of b for four rows, and this one for one; so b must come from the first cache. A task
// packs a piece of k for one tile of columns, looks whether it is finite meanwhile, and takes all of its rows through it
// before the next piece comes. Sums wait.
//
//   for tiles of columns, for blocks of rows, for pieces of k:
//     pack b
//     for groups of rows: their lists; all at once where all steps are on all of them, else each by its list
//   and then all rows of the block are finished
//
// Data that have no zeros find tiles of all rows of a group there, as fast as others but for sums that wait.
//
// Lists are made again for each tile of columns, a twentieth of the time: of all pieces of k they would not stay near.
//
// A sum is one chain over all of k, of whatever steps are taken. What may be left out, and why sums end with + 0:
// cpu_matmul_list.c.
#include "codegen/cpu_matmul.h"

int64_t mm_b_step(const mm_text *t) {
  int64_t k;
  mm_is_flat(&t->p->b.k, &k);
  return k;
}

static bool packs(const mm_text *t) {
  return t->plan->b == MM_PIECES;
}

// Elements of a as tiles read them: where they lie; or, if they must be converted, those of a list one after the other.
static bool converts(const mm_text *t) {
  return t->p->a.convert;
}

// --- tiles -----------------------------------------------------------------------------------------
// Sums of some rows, of vectors [first, last).
typedef struct sums {
  int rows, first, last;
} sums;

static long long place(const mm_text *t, int i, int j) {
  return (long long)(i * t->plan->nr + j * t->plan->lanes);
}

static void put_sums(const mm_text *t, sums s, const char *in) {
  for (int i = 0; i < s.rows; i++) {
    ir_buf_printf(t->out, "%s%s_vec", in, t->name);
    for (int j = s.first; j < s.last; j++)
      ir_buf_printf(t->out, "%s c%d_%d = {0}", j > s.first ? "," : "", i, j);
    ir_buf_puts(t->out, ";\n");
  }
  if (t->plan->k_blocks == 1)
    return;
  ir_buf_printf(t->out, "%sif (more) {\n", in);
  for (int i = 0; i < s.rows; i++)
    for (int j = s.first; j < s.last; j++)
      ir_buf_printf(t->out, "%s  c%d_%d = *(const %s_mem *)(c + %lld);\n", in, i, j, t->name,
                    place(t, i, j));
  ir_buf_printf(t->out, "%s}\n", in);
}

static void put_products(const mm_text *t, sums s, const char *in) {
  for (int j = s.first; j < s.last; j++) {
    ir_buf_printf(t->out, "%sconst %s_vec b%d = *(const %s_mem *)(b + %d);\n%s", in, t->name, j,
                  t->name, j * t->plan->lanes, in);
    for (int i = 0; i < s.rows; i++)
      ir_buf_printf(t->out, "%sc%d_%d += a%d * b%d;", i ? " " : "", i, j, i, j);
    ir_buf_puts(t->out, "\n");
  }
}

static void put_stores(const mm_text *t, sums s, const char *in) {
  for (int i = 0; i < s.rows; i++)
    for (int j = s.first; j < s.last; j++)
      ir_buf_printf(t->out, "%s*(%s_mem *)(c + %lld) = c%d_%d + (%s_vec){0};\n", in, t->name,
                    place(t, i, j), i, j, t->name);
}

static const char *more(const mm_text *t, const char *text) {
  return t->plan->k_blocks > 1 ? text : "";
}

// The steps on a row's list.
static void put_row(const mm_text *t, int vectors) {
  const char *c = t->p->ctype;
  sums s = {1, 0, vectors};
  ir_buf_printf(t->out,
                "static __attribute__((noinline)) void %s_row_%d(const %s *a, const %s *b_all, %s "
                "*c, const uint16_t *list, int64_t num%s) {\n",
                t->name, vectors, c, c, c, more(t, ", int more"));
  put_sums(t, s, "  ");
  ir_buf_printf(t->out,
                "#pragma GCC unroll 1\n"
                "  for (int64_t i = 0; i < num; i++) {\n"
                "    const int64_t k = list[i];\n"
                "    const %s a0 = a[%s], *b = b_all + k * %lld;\n"
                "    __asm__(\"\" : \"+r\"(b));\n", // see cpu_matmul_tile.c
                c, converts(t) ? "i" : "k", (long long)t->plan->nr);
  put_products(t, s, "    ");
  ir_buf_puts(t->out, "  }\n");
  put_stores(t, s, "  ");
  ir_buf_puts(t->out, "}\n\n");
}

// All steps of a group of rows, for some of its vectors: as many sums as there are registers for.
static void put_dense_part(const mm_text *t, sums s) {
  ir_buf_puts(t->out, "  {\n");
  put_sums(t, s, "    ");
  ir_buf_printf(t->out,
                "    const %s *b = b_all;\n"
                "#pragma GCC unroll 2\n"
                "    for (int64_t k = 0; k < steps; k++, b += %lld) {\n",
                t->p->ctype, (long long)t->plan->nr);
  for (int i = 0; i < s.rows; i++)
    ir_buf_printf(t->out, "      const %s a%d = a[k + %lld];\n", t->p->ctype, i,
                  (long long)i * (converts(t) ? (long long)t->plan->k_block : mm_a_row_stride(t)));
  put_products(t, s, "      ");
  ir_buf_puts(t->out, "    }\n");
  put_stores(t, s, "    ");
  ir_buf_puts(t->out, "  }\n");
}

static void put_dense(const mm_text *t, int vectors) {
  enum { MOST = 4 };
  const char *c = t->p->ctype;
  int parts = (vectors + MOST - 1) / MOST;
  ir_buf_printf(t->out,
                "static __attribute__((noinline)) void %s_dense_%d(const %s *a, const %s *b_all, "
                "%s *c, int64_t steps%s) {\n",
                t->name, vectors, c, c, c, more(t, ", int more"));
  for (int i = 0; i < parts; i++)
    put_dense_part(t, (sums){t->plan->mr, vectors * i / parts, vectors * (i + 1) / parts});
  ir_buf_puts(t->out, "}\n\n");
}

static void put_tiles_of(const mm_text *t, int vectors) {
  put_row(t, vectors);
  if (t->p->m >= t->plan->mr)
    put_dense(t, vectors);
}

// Whether tiles of all vectors are needed; and some of fewer, for the last columns.
static bool has_wide(const mm_text *t) {
  return t->p->n >= t->plan->nr;
}
static bool has_narrow(const mm_text *t) {
  return t->plan->tail_cols && !(has_wide(t) && t->plan->tail_nv == t->plan->nv);
}

static void put_tiles(const mm_text *t) {
  if (has_wide(t))
    put_tiles_of(t, t->plan->nv);
  if (has_narrow(t))
    put_tiles_of(t, t->plan->tail_nv);
}

// --- a piece of b ----------------------------------------------------------------------------------
// Columns of a last tile by themselves: up to whole vectors, of which the rest are zeros.
static void put_last_columns(const mm_text *t) {
  const mm_plan *g = t->plan;
  ir_buf_printf(t->out,
                "  if (cols < %lld)\n"
                "    for (int64_t k = 0; k < steps; k++)\n"
                "      for (int64_t j = 0; j < %lld; j++) {\n"
                "        panel[k * %lld + j] = j < cols ? b[k * %lld + j] : 0;\n"
                "        any |= (*(const %s_word *)(panel + k * %lld + j) " MM_FINITE_BITS ";\n"
                "      }\n",
                (long long)g->nr, (long long)g->tail_nv * g->lanes, (long long)g->nr,
                (long long)mm_b_step(t), t->name, (long long)g->nr);
}

static void put_whole_columns(const mm_text *t) {
  const mm_plan *g = t->plan;
  ir_buf_printf(t->out,
                "  if (cols == %lld) {\n"
                "    %s_bits all[%d] = {{0}};\n"
                "    for (int64_t k = 0; k < steps; k++)\n"
                "      for (int j = 0; j < %d; j++) {\n"
                "        const %s_bits some = *(const %s_bits *)(b + k * %lld + j * %d);\n"
                "        all[j] |= (some " MM_FINITE_BITS ";\n",
                (long long)g->nr, t->name, g->nv, g->nv, t->name, t->name, (long long)mm_b_step(t),
                g->lanes);
  if (packs(t))
    ir_buf_printf(t->out, "        *(%s_bits *)(panel + k * %lld + j * %d) = some;\n", t->name,
                  (long long)g->nr, g->lanes);
  ir_buf_printf(t->out,
                "      }\n"
                "    for (int i = 0; i < %d; i++)\n"
                "      for (int j = 0; j < %d; j++)\n"
                "        any |= all[i][j];\n"
                "  }\n",
                g->nv, g->lanes);
}

void mm_emit_piece(const mm_text *t) {
  ir_buf_printf(t->out,
                "// Whether so many steps of a tile's columns of b are finite%s.\n"
                "static __attribute__((noinline)) int %s_piece(const float *b, int64_t steps, "
                "int64_t cols%s) {\n"
                "  uint32_t any = 0;\n",
                packs(t) ? "; and a copy of them" : "", t->name, packs(t) ? ", float *panel" : "");
  if (has_wide(t))
    put_whole_columns(t);
  if (t->plan->tail_cols)
    put_last_columns(t);
  ir_buf_puts(t->out, "  return any >> 31 == 0;\n}\n\n");
}

// --- a task ----------------------------------------------------------------------------------------
static void put_buffers(const mm_text *t) {
  const mm_plan *g = t->plan;
  ir_buf_puts(t->out, "  (void)batch, (void)first;\n");
  mm_emit_operands(t);
  if (packs(t))
    ir_buf_printf(t->out, "  float panel[%lld] __attribute__((aligned(64)));\n",
                  (long long)(g->k_block * g->nr));
  if (converts(t))
    ir_buf_printf(t->out, "  float values[%lld];\n", g->mr * (long long)g->k_block);
  ir_buf_printf(t->out,
                "  uint16_t list[MR][%lld];\n"
                "  float sums[%lld] __attribute__((aligned(64)));\n",
                (long long)(g->k_block + MM_LIST_ROOM),
                // the last row, too, may be read in full vectors
                (long long)(g->block_rows * g->mr * g->nr + g->lanes));
}

static void put_call(const mm_text *t, const char *in, const char *what, const char *arguments) {
  const mm_plan *g = t->plan;
  const char *later = more(t, ", k > 0");
  bool wide = has_wide(t), narrow = has_narrow(t);
  if (wide && narrow)
    ir_buf_printf(t->out, "%sif (cols == NR)\n  ", in);
  if (wide)
    ir_buf_printf(t->out, "%s%s_%s%d(%s%s);\n", in, t->name, what, g->nv, arguments, later);
  if (wide && narrow)
    ir_buf_printf(t->out, "%selse\n  ", in);
  if (narrow)
    ir_buf_printf(t->out, "%s%s_%s%d(%s%s);\n", in, t->name, what, g->tail_nv, arguments, later);
}

// The list of row `line + i`, or all steps; and what is on it, converted.
static void put_lists(const mm_text *t) {
  ir_buf_printf(t->out,
                "          for (int64_t i = 0; i < rows; i++) {\n"
                "            num[i] = %s_list(a + i * %lld, row, steps, finite, list[i]);\n",
                t->name, (long long)mm_a_row_stride(t));
  if (converts(t))
    ir_buf_printf(t->out,
                  "            for (int64_t j = 0; j < num[i]; j++)\n"
                  "              values[i * %lld + j] = k_one_%s(a + i * %lld + list[i][j]);\n",
                  (long long)t->plan->k_block, t->p->a.convert, (long long)mm_a_row_stride(t));
  ir_buf_puts(t->out, "            all += num[i];\n          }\n");
}

static void put_rows(const mm_text *t) {
  long long row = (long long)mm_a_row_stride(t);
  ir_buf_printf(t->out,
                "        for (int64_t row = row_block; row < row_stop; row++) {\n"
                "          const int64_t line = row * MR, rows = M - line < MR ? M - line : MR;\n"
                "          const %s *const a = a_all + line * %lld + k;\n"
                "          float *const c = sums + (row - row_block) * (MR * NR);\n"
                "          int64_t num[MR] = {0}, all = 0;\n",
                t->p->a.ctype, row);
  put_lists(t);
  const char *a = converts(t) ? "values" : "a";
  if (t->p->m >= t->plan->mr) {
    ir_buf_puts(t->out, "          if (all == MR * steps) {\n");
    put_call(t, "            ", "dense_", ir_format(t->p->arena, "%s, b, c, steps", a));
    ir_buf_puts(t->out, "            continue;\n          }\n");
  }
  ir_buf_puts(t->out, "          for (int64_t i = 0; i < rows; i++) {\n");
  if (t->plan->k_blocks > 1)
    ir_buf_puts(t->out, "            if (num[i] == 0 && k > 0)\n              continue;\n");
  put_call(t, "            ", "row_",
           ir_format(t->p->arena, "%s + i * %lld, b, c + i * NR, list[i], num[i]", a,
                     converts(t) ? (long long)t->plan->k_block : row));
  ir_buf_puts(t->out, "          }\n        }\n");
}

static void put_group(const mm_text *t) {
  const mm_plan *g = t->plan;
  mm_emit_group_begin(
      t, "The groups of rows [row_begin, row_end) and tiles of columns [col_begin, col_end)", "");
  ir_buf_printf(t->out, "  enum { K = %lld, STEPS = %lld, BLOCK = %lld };\n", (long long)t->p->k,
                (long long)g->k_block, (long long)g->block_rows);
  put_buffers(t);
  ir_buf_printf(
      t->out,
      "  for (int64_t col = col_begin; col < col_end; col++) {\n"
      "    const int64_t cols = N - col * NR < NR ? N - col * NR : NR;\n"
      "    for (int64_t row_block = row_begin; row_block < row_end; row_block += BLOCK) {\n"
      "      const int64_t row_stop = row_end - row_block < BLOCK ? row_end : row_block + BLOCK;\n"
      "      for (int64_t k = 0; k < K; k += STEPS) {\n"
      "        const int64_t steps = K - k < STEPS ? K - k : STEPS;\n"
      "        const float *const from = b_all + k * %lld + col * NR, *const b = %s;\n"
      "        const int finite = %s_piece(from, steps, cols%s);\n",
      (long long)mm_b_step(t), packs(t) ? "panel" : "from", t->name, packs(t) ? ", panel" : "");
  put_rows(t);
  ir_buf_printf(t->out,
                "      }\n"
                "      const int64_t end = row_stop * MR < M ? row_stop * MR : M;\n"
                "      %s_finish(args, sums, NR, batch, row_block * MR, end - row_block * MR, col "
                "* NR, cols);\n"
                "    }\n"
                "  }\n"
                "}\n\n",
                t->name);
}

void mm_emit_single(const mm_text *t) {
  mm_emit_list_types(t);
  mm_emit_list_of(t, 1, 0);
  put_tiles(t);
  mm_emit_piece(t);
  put_group(t);
}
