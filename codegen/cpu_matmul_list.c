// cpu_matmul_list.c: products of data that are full of zeros (passes/zeros.h): steps of k at which all of a tile's
// rows of a are 0 are left out.
//
//   a, 4 rows of a tile                  list of this row of tiles
//     . . 3 . . . 1 . . .                  2 3 6        of 10 steps; each tile of the row takes these:
//     . . 2 4 . . . . . .                    sum += a[.., 2] * b[2, ..]
//     . . . 1 . . 5 . . .                    sum += a[.., 3] * b[3, ..]
//     . . . 7 . . . . . .                    sum += a[.., 6] * b[6, ..]
//
// A list is made when a row of tiles begins: a's rows are read once for it, and lie in the first cache when the
// tiles come. Tiles read them there; or, where elements must be converted or are far apart, what is on the list
// is packed first, and nothing else (MM_LISTED). The black border of an image is left out of the layer that
// reads it, and of this layer's gradient (there k is the batch, and a tile's rows a few neighbouring pixels); of
// bags of words nearly everything is.
//
// The other way, a sparse format of the data, would pay for single zeros what this does for whole columns of a
// tile only, and ask the user for what most data have not; and it would come with kernels of its own. Here
// a step that is taken is the same as in any other tile. (Samples, whose rows have little in common, may be taken one by
// one all the same: cpu_matmul_single.c.)
//
// Results are those of all steps, to the bit, where k is in the same pieces. A sum to which 0 is added stays what it
// is, but for two cases: 0 times infinity is NaN, so that nothing is left out beside columns of b that are not
// finite; and -0, which a product too small for the type may leave, would become 0: so tiles of this kind end by
// adding 0. Other tiles may store that -0, and no other bits than these.
#include "codegen/cpu_matmul.h"

#include <string.h>

// Fewer steps are not worth a list.
enum { LEAST_STEPS = 16 };

// Elements between lists; what lies behind a list's end is asked for, and never taken.
static int64_t list_pitch(const mm_text *t) {
  return t->plan->k_block + mm_list_ahead(t) + MM_LIST_ROOM;
}

// From row to row, and from step to step; false: there is no such number.
static bool strides(const mm_operand *a, int64_t *row, int64_t *k) {
  bool of_rows = mm_is_flat(&a->x, row);
  return mm_is_flat(&a->k, k) && of_rows;
}

bool mm_may_list(const mm_problem *p) {
  int64_t row, k;
  bool flat = strides(&p->a, &row, &k);
  return p->zeros && p->elem_bytes == 4 && flat && !mm_limits_steps(p) && p->k >= LEAST_STEPS;
}

// --- lists -----------------------------------------------------------------------------------------
// What is 0 whatever it is: signs of numbers that have one.
static bool has_sign(const mm_operand *a) {
  return !a->convert || !strcmp(a->convert, "tf32") || !strcmp(a->convert, "bf16") ||
         !strcmp(a->convert, "f16");
}

// How a list gets its steps: vectors of AVX-512 are compressed, those of AVX make masks, four bits of which choose
// from a table; others go one by one.
static bool is_avx512(const mm_text *t) {
  return t->p->target->vector_bytes == 64;
}

static bool is_avx(const mm_text *t) {
  return t->p->target->vector_bytes == 32 && t->p->a.elem_bytes != 2;
}

static void put_compressed(const mm_text *t) {
  const mm_operand *a = &t->p->a;
  const char *n = t->name, *twice = a->elem_bytes == 2 ? " << 17" : " << 1";
  ir_buf_printf(
      t->out,
      "      for (int64_t j = 0; j < L; j += 16) {\n"
      "        const %s_ints some = __builtin_convertvector(*(const %s_few *)(any + j), "
      "%s_ints)%s;\n"
      "        const %s_ints at = (int32_t)(first + j) + (%s_ints){0, 1, 2, 3, 4, 5, 6, 7, "
      "8, 9, 10, 11, 12, 13, 14, 15};\n"
      "        const uint16_t mask = (uint16_t)__builtin_ia32_cmpd512_mask(some, "
      "(%s_ints){0}, 4, (uint16_t)(keep >> j));\n"
      "        const %s_steps chosen = __builtin_convertvector(\n"
      "            __builtin_ia32_compresssi512_mask(at, at, mask), %s_steps);\n"
      "        __builtin_memcpy(list + num, &chosen, sizeof chosen);\n"
      "        num += __builtin_popcount(mask);\n"
      "      }\n",
      n, n, n, has_sign(a) ? twice : "", n, n, n, n, n);
}

static void put_chosen_by_fours(const mm_text *t) {
  const mm_operand *a = &t->p->a;
  const char *n = t->name;
  const char *mask =
      a->elem_bytes == 1 ? "pmovmskb256((%s_chars)none)" : "movmskps256((%s_vec)none)";
  ir_buf_printf(t->out, "      const %s_some none = (%s_some)((*(const %s_some *)any%s) == 0);\n",
                n, n, n, has_sign(a) ? " << 1" : "");
  ir_buf_puts(t->out, "      uint32_t mask = (uint32_t)keep & ~(uint32_t)__builtin_ia32_");
  ir_buf_printf(t->out, mask, n);
  ir_buf_printf(t->out,
                ";\n"
                "      for (int64_t j = 0; j < L; j += 4, mask >>= 4) {\n"
                "        const %s_four chosen = *(const %s_four *)%s_fours[mask & 15] + "
                "(uint16_t)(first + j);\n"
                "        __builtin_memcpy(list + num, &chosen, sizeof chosen);\n"
                "        num += __builtin_popcount(mask & 15);\n"
                "      }\n",
                n, n, n);
}

// Puts those of steps [first + from, first + L) on the list of which any[] is not 0.
static void put_chosen(const mm_text *t, const char *from, const char *end) {
  ir_buf_printf(t->out,
                "    for (int64_t j = %s; j < %s; j++) {\n"
                "      list[num] = (uint16_t)(first + j);\n"
                "      num += (%s_bit)(any[j]%s) != 0;\n"
                "    }\n",
                from, end, t->name, has_sign(&t->p->a) ? " << 1" : "");
}

// What is written behind a list's end is of no list yet.
static void put_choice(const mm_text *t) {
  if (!is_avx512(t) && !is_avx(t)) {
    put_chosen(t, "done - first", "L");
    return;
  }
  ir_buf_puts(t->out, "    const uint64_t keep = ~(uint64_t)0 << (done - first);\n");
  if (is_avx512(t))
    put_compressed(t);
  else
    put_chosen_by_fours(t);
}

static void put_choice_types(const mm_text *t) {
  int bytes = t->p->a.elem_bytes;
  if (is_avx512(t))
    ir_buf_printf(
        t->out,
        "typedef int32_t %s_ints __attribute__((vector_size(64)));\n"
        "typedef uint16_t %s_steps __attribute__((vector_size(32)));\n"
        "typedef uint%d_t %s_few __attribute__((vector_size(%d), aligned(%d), may_alias));\n\n",
        t->name, t->name, 8 * bytes, t->name, 16 * bytes, bytes);
  if (is_avx(t))
    ir_buf_printf(
        t->out,
        "typedef char %s_chars __attribute__((vector_size(32)));\n"
        "typedef uint16_t %s_four __attribute__((vector_size(8), aligned(2), may_alias));\n"
        "// The bits of a number.\n"
        "static const uint16_t %s_fours[16][4] = {\n"
        "    {0}, {0}, {1}, {0, 1}, {2}, {0, 2}, {1, 2}, {0, 1, 2}, {3}, {0, 3}, {1, 3}, {0, 1, "
        "3},\n"
        "    {2, 3}, {0, 2, 3}, {1, 2, 3}, {0, 1, 2, 3}};\n\n",
        t->name, t->name, t->name);
}

static void put_list_of_few(const mm_text *t) {
  ir_buf_printf(t->out,
                "  if (steps < L) {\n"
                "    const int64_t first = 0;\n"
                "    %s_bit any[L] = {0};\n"
                "    for (int64_t i = 0; i < rows; i++)\n"
                "      for (int64_t j = 0; j < steps; j++)\n"
                "        any[j] |= *(const %s_bit *)(a + i * ROW + j);\n",
                t->name, t->name);
  put_chosen(t, "0", "steps");
  ir_buf_puts(t->out, "    return num;\n"
                      "  }\n");
}

// Elements side by side, of lines so far apart: rows that lie along k, or (cpu_matmul_outer.c) samples along rows. A vector at
// a time; the last one ends where they do, and leaves out what the one before has seen. Lines that the next calls look
// at are asked for: pieces of long lines are no prefetcher's.
static void put_list_along(const mm_text *t, int64_t apart) {
  ir_buf_printf(t->out, "  enum { L = %d, ROW = %lld, AHEAD = 8 };\n",
                t->p->target->vector_bytes / t->p->a.elem_bytes, (long long)apart);
  put_list_of_few(t);
  ir_buf_printf(t->out,
                "  for (int64_t done = 0; done < steps; done += L) {\n"
                "    const int64_t first = steps - done < L ? steps - L : done;\n"
                "    %s_some all = {0};\n"
                "    for (int64_t i = 0; i < rows; i++) {\n"
                "      all |= *(const %s_some *)(a + i * ROW + first);\n"
                "      __builtin_prefetch(a + (i + AHEAD) * ROW + first);\n"
                "    }\n"
                "    %s_bit any[L];\n"
                "    __builtin_memcpy(any, &all, sizeof any);\n",
                t->name, t->name, t->name);
  put_choice(t);
  ir_buf_puts(t->out, "  }\n");
}

// "0x7fff7fff7fff7fffu": eight bytes of elements but for their signs.
static const char *without_signs(const mm_operand *a) {
  if (!has_sign(a))
    return "~(uint64_t)0";
  return a->elem_bytes == 2 ? "0x7fff7fff7fff7fffu" : "0x7fffffff7fffffffu";
}

// `any`: whether `bytes` of a, those of a tile's rows side by side from `at` on, are not all 0. Eight at a time.
static void put_any_of_bytes(const mm_text *t, const char *in, const char *bytes) {
  ir_buf_printf(t->out,
                "%suint64_t any = 0, some = 0;\n"
                "%sfor (int64_t j = 0; j + 8 <= %s; j += 8) {\n"
                "%s  __builtin_memcpy(&some, at + j, 8);\n"
                "%s  any |= some;\n"
                "%s}\n"
                "%ssome = 0;\n"
                "%s__builtin_memcpy(&some, at + %s / 8 * 8, (size_t)(%s %% 8));\n"
                "%sany = (any | some) & %s;\n",
                in, in, bytes, in, in, in, in, in, bytes, bytes, in, without_signs(&t->p->a));
}

static void put_list_by_steps(const mm_text *t, int64_t k) {
  ir_buf_printf(t->out,
                "  const int64_t bytes = rows * %d;\n"
                "  for (int64_t k = 0; k < steps; k++) {\n"
                "    const char *at = (const char *)(a + k * %lld);\n",
                t->p->a.elem_bytes, (long long)k);
  put_any_of_bytes(t, "    ", "bytes");
  ir_buf_puts(t->out, "    list[num] = (uint16_t)k;\n"
                      "    num += any != 0;\n"
                      "  }\n");
}

// A task's rows of tiles, at most.
static int64_t task_rows(const mm_plan *plan) {
  return ir_ceil_div(plan->row_tiles, plan->group_rows);
}

int64_t mm_task_blocks(const mm_plan *plan) {
  return ir_ceil_div(ir_ceil_div(plan->col_tiles, plan->group_cols), plan->block_cols);
}

// What a thread's next task has, too. Pieces of k have lists and columns of their own.
static bool next_has_rows(const mm_plan *plan) {
  return plan->group_cols > 1 && (!plan->by_columns || plan->group_rows == 1);
}

static bool knows_columns(const mm_plan *plan) {
  bool next = plan->group_rows > 1 && (plan->by_columns || plan->group_cols == 1);
  return plan->lists && plan->k_blocks == 1 && next && mm_task_blocks(plan) == 1;
}

bool mm_remembers(const mm_plan *plan) {
  return plan->kept_lists > 0 || knows_columns(plan);
}

// Lists are the same for all columns: where a thread takes rows with several blocks of those, in a task or in tasks
// that follow each other, and there is room for all their lists, it makes them once.
int64_t mm_kept_lists(const mm_problem *p, const mm_plan *plan) {
  enum { MOST_BYTES = 131072 }; // of a stack, and of the second cache
  if (!plan->lists || plan->k_blocks > 1 || !(next_has_rows(plan) || mm_task_blocks(plan) > 1))
    return 0;
  const mm_text t = {.p = p, .plan = plan};
  int64_t bytes = task_rows(plan) * list_pitch(&t) * MM_LIST_BYTES;
  return bytes <= MOST_BYTES ? task_rows(plan) : 0;
}

int64_t mm_list_rounds(const mm_problem *p, const mm_plan *plan, int64_t n) {
  if (!mm_kept_lists(p, plan))
    return n * mm_task_blocks(plan);
  return next_has_rows(plan) ? ir_ceil_div(n, plan->group_cols) : n;
}

int64_t mm_column_rounds(const mm_plan *plan, int64_t n) {
  return knows_columns(plan) ? ir_ceil_div(n, plan->group_rows) : n;
}

// Where lines of a are so many that the first cache does not hold them for the next row of tiles, the tiles that
// share a line have their lists made together.
int64_t mm_list_tiles(const mm_problem *p, const mm_plan *plan) {
  enum { LINE = 64 };
  int64_t row, k, bytes = plan->mr * p->a.elem_bytes;
  strides(&p->a, &row, &k);
  bool side_by_side = row == 1 && k * p->a.elem_bytes >= LINE;
  bool stay = plan->k_block * LINE <= p->target->l1_bytes / 2;
  if (!side_by_side || stay || bytes >= LINE || p->m < plan->mr)
    return 1;
  return LINE / bytes < p->m / plan->mr ? LINE / bytes : p->m / plan->mr;
}

// Lines so far apart are no prefetcher's, and the work on one too long for the next to begin beside it.
static void put_lists_of_line(const mm_text *t) {
  enum { AHEAD = 24 }; // steps
  const mm_operand *a = &t->p->a;
  long long tiles = (long long)t->plan->list_tiles;
  int64_t k;
  mm_is_flat(&a->k, &k);
  ir_buf_printf(
      t->out,
      "static inline __attribute__((always_inline)) void %s_lists_of(int64_t tiles, const %s *a, "
      "int64_t steps, uint16_t *lists, int64_t *lives) {\n"
      "  enum { BYTES = %d, PITCH = %lld };\n"
      "  int64_t num[%lld] = {0};\n"
      "  for (int64_t k = 0; k < steps; k++) {\n"
      "    const char *soon = (const char *)(a + (k + %d) * %lld);\n"
      "    __builtin_prefetch(soon);\n"
      "    __builtin_prefetch(soon + tiles * BYTES - 1);\n"
      "    for (int64_t i = 0; i < tiles; i++) {\n"
      "      const char *at = (const char *)(a + k * %lld) + i * BYTES;\n",
      t->name, a->ctype, t->plan->mr * a->elem_bytes, (long long)list_pitch(t), tiles, AHEAD,
      (long long)k, (long long)k);
  put_any_of_bytes(t, "      ", "BYTES");
  ir_buf_printf(
      t->out,
      "      lists[i * PITCH + num[i]] = (uint16_t)k;\n"
      "      num[i] += any != 0;\n"
      "    }\n"
      "  }\n"
      "  for (int64_t i = 0; i < tiles; i++)\n"
      "    lives[i] = num[i];\n"
      "}\n\n"
      "// The lists of so many whole rows of tiles.\n"
      "static __attribute__((noinline)) void %s_lists(int64_t tiles, const %s *a, int64_t steps, "
      "uint16_t *lists, int64_t *lives) {\n"
      "  if (tiles >= %lld)\n"
      "    %s_lists_of(%lld, a, steps, lists, lives);\n"
      "  else\n"
      "    %s_lists_of(tiles, a, steps, lists, lives);\n"
      "}\n\n",
      t->name, a->ctype, tiles, t->name, tiles, t->name);
}

// Rows that are apart in both directions.
static void put_list_one_by_one(const mm_text *t, int64_t row, int64_t k) {
  ir_buf_printf(t->out,
                "  for (int64_t k = 0; k < steps; k++) {\n"
                "    %s_bit any = 0;\n"
                "    for (int64_t i = 0; i < rows; i++)\n"
                "      any |= *(const %s_bit *)(a + k * %lld + i * %lld);\n"
                "    list[num] = (uint16_t)k;\n"
                "    num += (%s_bit)(any%s) != 0;\n"
                "  }\n",
                t->name, t->name, (long long)k, (long long)row, t->name,
                has_sign(&t->p->a) ? " << 1" : "");
}

static void put_list_rows(const mm_text *t) {
  const mm_operand *a = &t->p->a;
  int64_t row, k;
  strides(a, &row, &k);
  bool across = t->plan->outer, along = across || k == 1;
  if (along)
    put_choice_types(t);
  ir_buf_printf(t->out,
                "static inline __attribute__((always_inline)) int64_t %s_list_rows(const %s *a, "
                "int64_t rows, int64_t steps, uint16_t *list) {\n"
                "  int64_t num = 0;\n",
                t->name, a->ctype);
  if (along)
    put_list_along(t, across ? k : row);
  else if (row == 1 || t->p->m == 1)
    put_list_by_steps(t, k);
  else
    put_list_one_by_one(t, row, k);
  ir_buf_puts(t->out, "  return num;\n}\n\n");
}

// (A call for one row's list took a twentieth of the kernel's time.)
void mm_emit_list_of(const mm_text *t, int rows, int last_rows) {
  put_list_rows(t);
  ir_buf_printf(
      t->out,
      "// The steps at which some of a tile's rows is not 0, or all of them: their number.\n"
      "static %s int64_t %s_list(const %s *a, int64_t row, "
      "int64_t steps, int may_leave_out, uint16_t *list) {\n"
      "  (void)row;\n"
      "  if (!may_leave_out) {\n"
      "    for (int64_t k = 0; k < steps; k++)\n"
      "      list[k] = (uint16_t)k;\n"
      "    return steps;\n"
      "  }\n",
      rows == 1 ? "inline __attribute__((always_inline))" : "__attribute__((noinline))", t->name,
      t->p->a.ctype);
  if (last_rows)
    ir_buf_printf(t->out, "  if (row == %lld)\n    return %s_list_rows(a, %d, steps, list);\n",
                  (long long)t->plan->row_tiles - 1, t->name, last_rows);
  ir_buf_printf(t->out, "  return %s_list_rows(a, %d, steps, list);\n}\n\n", t->name, rows);
}

void mm_emit_list_across(const mm_text *t) {
  put_list_rows(t);
  ir_buf_printf(
      t->out,
      "// The rows of which some of so many steps is not 0, or all of them: their number.\n"
      "static inline __attribute__((always_inline)) int64_t %s_list(const %s *a, int64_t "
      "steps, int64_t rows, int may_leave_out, uint16_t *list) {\n"
      "  if (may_leave_out)\n"
      "    return %s_list_rows(a, steps, rows, list);\n"
      "  for (int64_t i = 0; i < rows; i++)\n"
      "    list[i] = (uint16_t)i;\n"
      "  return rows;\n"
      "}\n\n",
      t->name, t->p->a.ctype, t->name);
}

static void put_list(const mm_text *t) {
  const mm_plan *plan = t->plan;
  bool full = t->p->m >= plan->mr;
  mm_emit_list_of(t, full ? plan->mr : plan->tail_rows, full ? plan->tail_rows : 0);
}

const char *mm_one_of_a(const mm_text *t, const char *at) {
  const char *convert = t->p->a.convert;
  return convert ? ir_format(t->p->arena, "k_one_%s(a + %s)", convert, at)
                 : ir_format(t->p->arena, "a[%s]", at);
}

// What is on a list, [i][mr], where tiles do not read it in place.
static void put_packing(const mm_text *t) {
  const mm_operand *a = &t->p->a;
  int64_t row, k;
  strides(a, &row, &k);
  const char *at =
      ir_format(t->p->arena, "(int64_t)list[i] * %lld + j * %lld", (long long)k, (long long)row);
  const char *one = mm_one_of_a(t, at);
  ir_buf_printf(
      t->out,
      "// The listed steps of a tile's rows.\n"
      "static __attribute__((noinline)) void %s_pack_list(const %s *a, int64_t rows, const "
      "uint16_t *list, int64_t live, %s *panel) {\n"
      "  if (rows == %d)\n"
      "    for (int64_t i = 0; i < live; i++)\n"
      "      for (int64_t j = 0; j < %d; j++)\n"
      "        panel[i * %d + j] = %s;\n"
      "  else\n"
      "    for (int64_t i = 0; i < live; i++)\n"
      "      for (int64_t j = 0; j < rows; j++)\n"
      "        panel[i * %d + j] = %s;\n"
      "}\n\n",
      t->name, a->ctype, t->p->ctype, t->plan->mr, t->plan->mr, t->plan->mr, one, t->plan->mr, one);
}

// --- what b must be ----------------------------------------------------------------------------------
static void put_finite(const mm_text *t) {
  const mm_plan *plan = t->plan;
  bool full = t->p->n >= plan->nr;
  ir_buf_printf(t->out,
                "// Whether steps [k, k + steps) of a tile's columns of b are finite.\n"
                "static __attribute__((noinline)) int %s_finite(const float *b, int64_t k, int64_t "
                "steps, int64_t cols) {\n"
                "  enum { L = %d, NR = %lld };\n"
                "  uint32_t any = 0;\n",
                t->name, plan->lanes, (long long)plan->nr);
  if (full) {
    ir_buf_printf(t->out, "  if (cols == NR) {\n    %s_bits all[%d] = {{0}};\n", t->name, plan->nv);
    ir_buf_printf(t->out,
                  "    for (const float *at = b + k * %lld; steps > 0; steps--, at += %lld) {\n",
                  (long long)mm_b_k_stride(t, false), (long long)mm_b_k_stride(t, false));
    for (int j = 0; j < plan->nv; j++)
      ir_buf_printf(t->out, "      all[%d] |= (*(const %s_bits *)(at + %d) " MM_FINITE_BITS ";\n",
                    j, t->name, j * plan->lanes);
    ir_buf_printf(t->out,
                  "    }\n"
                  "    for (int i = 0; i < %d; i++)\n"
                  "      for (int j = 0; j < L; j++)\n"
                  "        any |= all[i][j];\n"
                  "  }\n",
                  plan->nv);
  }
  if (plan->tail_cols)
    ir_buf_printf(t->out,
                  "  if (cols < NR)\n"
                  "    for (const float *at = b + k * %lld; steps > 0; steps--, at += %lld)\n"
                  "      for (int64_t j = 0; j < cols; j++)\n"
                  "        any |= (*(const %s_word *)(at + j) " MM_FINITE_BITS ";\n",
                  (long long)mm_b_k_stride(t, true), (long long)mm_b_k_stride(t, true), t->name);
  ir_buf_puts(t->out, "  return any >> 31 == 0;\n}\n\n");
}

// --- from task to task -----------------------------------------------------------------------------
static void put_seen(const mm_text *t) {
  long long kept = (long long)t->plan->kept_lists;
  ir_buf_puts(
      t->out,
      "// What a thread finds out of the groups of rows and columns of a task, for the next one.\n"
      "typedef struct {\n");
  if (kept)
    ir_buf_printf(
        t->out,
        "  int64_t rows;\n  int same_rows;\n  int64_t lives[%lld];\n  uint16_t lists[%lld];\n",
        kept, kept * (long long)list_pitch(t));
  if (knows_columns(t->plan))
    ir_buf_puts(t->out, "  int64_t cols;\n  int same_cols, may_leave_out;\n");
  ir_buf_printf(t->out, "} %s_seen;\n\n", t->name);
}

void mm_emit_seen(const mm_text *t) {
  ir_buf_printf(t->out, "  %s_seen seen;\n", t->name);
  if (t->plan->kept_lists)
    ir_buf_puts(t->out, "  seen.rows = -1;\n");
  if (knows_columns(t->plan))
    ir_buf_puts(t->out, "  seen.cols = -1;\n");
}

void mm_emit_look(const mm_text *t, const char *in) {
  if (t->plan->kept_lists)
    ir_buf_printf(t->out,
                  "%sseen.same_rows = seen.rows == batch * GROUP_ROWS + row;\n"
                  "%sseen.rows = batch * GROUP_ROWS + row;\n",
                  in, in);
  if (knows_columns(t->plan))
    ir_buf_printf(t->out,
                  "%sseen.same_cols = seen.cols == batch * GROUP_COLS + col;\n"
                  "%sseen.cols = batch * GROUP_COLS + col;\n",
                  in, in);
}

void mm_emit_list_types(const mm_text *t) {
  int vector = t->p->target->vector_bytes, bytes = t->p->a.elem_bytes;
  ir_buf_printf(
      t->out,
      "typedef uint%d_t %s_some __attribute__((vector_size(%d), aligned(%d), may_alias));\n"
      "typedef uint%d_t %s_bit __attribute__((may_alias));\n"
      "typedef uint32_t %s_bits __attribute__((vector_size(%d), aligned(4), may_alias));\n"
      "typedef uint32_t %s_word __attribute__((may_alias));\n\n",
      8 * bytes, t->name, vector, bytes, 8 * bytes, t->name, t->name, vector, t->name);
}

void mm_emit_lists(const mm_text *t) {
  mm_emit_list_types(t);
  put_list(t);
  if (t->plan->list_tiles > 1)
    put_lists_of_line(t);
  if (t->plan->a == MM_LISTED)
    put_packing(t);
  put_finite(t);
  if (mm_remembers(t->plan))
    put_seen(t);
}

// --- in a task -----------------------------------------------------------------------------------
void mm_emit_may_leave_out(const mm_text *t) {
  bool known = knows_columns(t->plan);
  const char *steps =
      t->plan->split_k ? "k, steps" : ir_format(t->p->arena, "0, %lld", (long long)t->p->k);
  ir_buf_printf(t->out,
                "    int may_leave_out = %s;\n"
                "    for (int64_t col = col_block; %smay_leave_out && col < col_stop; col++) {\n"
                "      ",
                known ? "seen->same_cols ? seen->may_leave_out : 1" : "1",
                known ? "!seen->same_cols && " : "");
  mm_emit_b_pointer(t);
  ir_buf_printf(t->out,
                "      may_leave_out = %s_finite(b, %s, N - col * NR < NR ? N - col * NR : NR);\n"
                "    }\n",
                t->name, steps);
  if (known)
    ir_buf_puts(t->out, "    seen->may_leave_out = may_leave_out;\n");
}

// Kept lists are made when they are first asked for; where nothing may be left out, all steps are listed aside.
void mm_emit_list_buffer(const mm_text *t) {
  long long lists = t->plan->kept_lists ? 1 : (long long)t->plan->list_tiles;
  ir_buf_printf(t->out, "  uint16_t lists[%lld];\n", lists * (long long)list_pitch(t));
  if (t->plan->kept_lists)
    ir_buf_puts(t->out, "  if (!seen->same_rows)\n"
                        "    __builtin_memset(seen->lives, -1, sizeof seen->lives);\n");
  else
    ir_buf_printf(t->out, "  int64_t lives[%lld];\n", lists);
  if (t->plan->a == MM_LISTED)
    ir_buf_printf(t->out, "  %s listed[%lld] __attribute__((aligned(64)));\n", t->p->ctype,
                  (long long)(t->plan->k_block * t->plan->mr));
}

static void put_keeping(const mm_text *t, const char *in, const char *steps) {
  ir_buf_printf(t->out,
                "%sconst int64_t at = row - row_begin;\n"
                "%suint16_t *list = may_leave_out ? seen->lists + at * %lld : lists;\n"
                "%sint64_t live = may_leave_out ? seen->lives[at] : -1;\n",
                in, in, (long long)list_pitch(t), in);
  if (t->plan->list_tiles > 1)
    ir_buf_printf(t->out,
                  "%sconst int64_t whole = row_stop < M / MR ? row_stop : M / MR;\n"
                  "%sif (live < 0 && may_leave_out && row < whole) {\n"
                  "%s  %s_lists(whole - row, rows, %s, list, seen->lives + at);\n"
                  "%s  live = seen->lives[at];\n"
                  "%s}\n",
                  in, in, in, t->name, steps, in, in);
  ir_buf_printf(t->out,
                "%sif (live < 0) {\n"
                "%s  live = %s_list(rows, row, %s, may_leave_out, list);\n"
                "%s  if (may_leave_out)\n"
                "%s    seen->lives[at] = live;\n"
                "%s}\n",
                in, in, t->name, steps, in, in, in);
}

// Lists of the next rows of tiles, if they are made together; else this one's.
static void put_making(const mm_text *t, const char *in, const char *steps) {
  long long tiles = (long long)t->plan->list_tiles;
  if (t->plan->kept_lists) {
    put_keeping(t, in, steps);
    return;
  }
  if (tiles == 1) {
    ir_buf_printf(
        t->out,
        "%suint16_t *list = lists;\n"
        "%sconst int64_t live = lives[0] = %s_list(rows, row, %s, may_leave_out, lists);\n",
        in, in, t->name, steps);
    return;
  }
  ir_buf_printf(t->out,
                "%sconst int64_t of_line = (row - row_block) %% %lld, whole = row_stop < M / MR ? "
                "row_stop : M / MR;\n"
                "%suint16_t *list = lists + of_line * %lld;\n"
                "%sif (!may_leave_out || row >= whole)\n"
                "%s  lives[of_line] = %s_list(rows, row, %s, may_leave_out, list);\n"
                "%selse if (of_line == 0)\n"
                "%s  %s_lists(whole - row, rows, %s, lists, lives);\n"
                "%sconst int64_t live = lives[of_line];\n",
                in, tiles, in, (long long)list_pitch(t), in, in, t->name, steps, in, in, t->name,
                steps, in);
}

void mm_emit_list(const mm_text *t, const char *indent) {
  bool pieces = t->plan->k_blocks > 1;
  const mm_operand *a = &t->p->a;
  int64_t row, k;
  strides(a, &row, &k);
  const char *from = pieces ? ir_format(t->p->arena, " + k * %lld", (long long)k) : "";
  ir_buf_printf(t->out, "%sconst %s *rows = a_all + row * MR * %lld%s;\n", indent, a->ctype,
                (long long)row, from);
  put_making(t, indent, pieces ? "steps" : ir_format(t->p->arena, "%lld", (long long)t->p->k));
  if (mm_list_ahead(t) > 0)
    ir_buf_printf(
        t->out, "%s__builtin_memset(list + live, 0, %lld); // asked for, never taken: some step\n",
        indent, MM_LIST_BYTES * (long long)mm_list_ahead(t));
  if (t->plan->a == MM_LISTED)
    ir_buf_printf(
        t->out,
        "%s%s_pack_list(rows, M - row * MR < MR ? M - row * MR : MR, list, live, listed);\n",
        indent, t->name);
  ir_buf_printf(t->out, "%sconst %s *a = %s;\n", indent, t->p->ctype,
                t->plan->a == MM_LISTED ? "listed" : "rows");
}
