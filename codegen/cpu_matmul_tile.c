// cpu_matmul_tile.c: the register tile, printed once per distinct shape.
//
//   static void mm_tile_2x1(const float *a, const float *b, float *c) {
//     mm_vec c0_0 = {0};
//     mm_vec c1_0 = {0};
//   #pragma GCC unroll 4
//     for (int64_t k = 0; k < 784; k++) {
//       const mm_vec b0 = *(const mm_mem *)(b + 0);
//       c0_0 += a[0] * b0;
//       c1_0 += a[784] * b0;
//       a += 1, b += 16;
//     }
//     *(mm_mem *)c = c0_0; ...
//
// Where a lies in runs of k (windows: a row of each after the other), the loop has another around
// it:
//
//     for (int64_t run = 0; run < 3; run++) {
//       const float *a = a_runs + run * 672, *b = b_runs + run * 96 * 16;
//       for (int64_t k = 0; k < 96; k++) { ...
//
// Where it goes through a list of steps (cpu_matmul_list.c):
//
//     for (int64_t i = 0; i < steps; i++) {
//       const int64_t k = list[i];
//       const float *a = a_all + k, *b = b_all + k * 16; ...
//
// But for the list of all steps, which dense data have: that is the loop over steps again.
//
// Tiles of one vector load an element of a with each FMA. Intel's cores split such an instruction in two
// where its address is a sum of two registers: so a and b are kept from becoming base + index, which makes
// these tiles 5 to 8% faster. The same keeps compilers from remembering, from step to step, elements that are next
// to be some other row's, where rows of a are windows that begin a step or two apart: sums need those registers.
//
// Sums are named variables, so that each gets a register; `a[..] * b0` spreads one element of a
// over the lanes, and compilers make one FMA of each line.
#include "codegen/cpu_matmul.h"

enum { MOST_UNROLLED = 4 }; // steps of k that are written out together

int64_t mm_a_row_stride(const mm_text *t) {
  int64_t stride;
  if (t->plan->a != MM_DIRECT)
    return t->plan->a_pitch ? t->plan->a_pitch : 1;
  mm_is_flat(&t->p->a.x, &stride);
  return stride;
}

int64_t mm_a_k_stride(const mm_text *t) {
  int64_t stride;
  if (t->plan->a != MM_DIRECT)
    return t->plan->a_pitch ? 1 : t->plan->mr;
  mm_is_flat(&t->p->a.k, &stride);
  return stride;
}

// Tiles read a in place, and go through the last part of k only: run by run.
static bool a_has_runs(const mm_text *t) {
  return t->plan->a == MM_DIRECT && t->p->a.k.num > 1;
}

bool mm_cuts_runs(const mm_problem *p, const mm_plan *plan) {
  return p->a.k.num > 1 && plan->k_block < p->a.k.size[p->a.k.num - 1];
}

// A full load at the end of the last row could leave the buffer.
static bool is_ragged_in_place(const mm_plan *plan) {
  return plan->b == MM_DIRECT && plan->tail_cols % plan->lanes != 0;
}

bool mm_packs_tail(const mm_plan *plan) {
  return is_ragged_in_place(plan) && !plan->masks;
}

int64_t mm_b_k_stride(const mm_text *t, bool tail) {
  int64_t stride;
  if (t->plan->b != MM_DIRECT || (tail && mm_packs_tail(t->plan)))
    return tail ? t->plan->tail_nv * t->plan->lanes : t->plan->nr;
  mm_is_flat(&t->p->b.k, &stride);
  return stride;
}

bool mm_stores_plain(const mm_text *t, bool tail_cols) {
  return t->p->plain && !t->plan->split_k &&
         (!tail_cols || t->plan->tail_cols % t->plan->lanes == 0);
}

bool mm_pieces_wait(const mm_plan *plan) {
  return plan->split_k ? plan->by_pieces && plan->piece < plan->k_block : plan->k_blocks > 1;
}

// Parts of k that are tasks come from memory, each by itself. Where a step's products take no longer than its loads, there
// is no room to ask for more.
static bool asks_in_parts(const mm_plan *plan) {
  bool room = plan->mr * plan->nv > plan->mr + 2 * plan->nv;
  return plan->split_k && !mm_pieces_wait(plan) && !plan->lists && room;
}

bool mm_looks_ahead(const mm_text *t) {
  // Windows overlap: the next rows are there, for the most part, and prefetching takes the loads'
  // ports.
  return (t->plan->k_blocks == 1 || asks_in_parts(t->plan)) && !a_has_runs(t);
}

// Of the most frequent kind.
static bool is_frequent(const mm_text *t, bool tail_rows, bool tail_cols) {
  return tail_rows == (t->p->m < t->plan->mr) && tail_cols == (t->p->n < t->plan->nr);
}

// Such tiles have a second version that asks for the next ones' memory.
static bool has_ahead(const mm_text *t, bool tail_rows, bool tail_cols) {
  return mm_looks_ahead(t) && is_frequent(t, tail_rows, tail_cols);
}

// Those of lists have a third one, for lists of all steps: what is no list's need not be looked up, nor written out one
// by one, and lies where processors expect it.
static bool has_dense(const mm_text *t, bool tail_rows, bool tail_cols) {
  return t->plan->lists && is_frequent(t, tail_rows, tail_cols);
}

typedef enum tile_version { USUAL, AHEAD, DENSE } tile_version;
static const char *const version_names[] = {"", "_ahead", "_dense"};

typedef struct tile_shape {
  int rows, vectors;
  int64_t pitch; // of c
  bool masked;   // the last vector is not whole in b
  int64_t b_k;
  bool ahead; // asks for the next tiles' memory
  bool lists; // goes through a list
} tile_shape;

// " + 12": nothing for 0
static const char *plus(const mm_text *t, int64_t v) {
  return v ? ir_format(t->p->arena, " + %lld", (long long)v) : "";
}

// "k * 128 + 16", "k + 16"
static const char *step_at(const mm_text *t, int64_t stride, int64_t offset) {
  const char *times = stride == 1 ? "" : ir_format(t->p->arena, " * %lld", (long long)stride);
  return ir_format(t->p->arena, "k%s%s", times, plus(t, offset));
}

// The lanes of the last vector that exist, as AVX-512 and AVX name them.
static const char *masked_load(const mm_text *t, const char *at) {
  int lanes = t->plan->lanes, valid = (int)(t->plan->tail_cols % lanes);
  if (t->p->target->vector_bytes == 64)
    return ir_format(t->p->arena, "__builtin_ia32_loadups512_mask(b + %s, (%s_vec){0}, 0x%x)", at,
                     t->name, (1u << valid) - 1);
  ir_buf mask = ir_buf_new(t->p->arena);
  for (int i = 0; i < valid; i++)
    ir_buf_puts(&mask, i ? ", -1" : "-1");
  return ir_format(t->p->arena,
                   "__builtin_ia32_maskloadps256((const %s_vec *)(b + %s), (%s_mask){%s})", t->name,
                   at, t->name, ir_buf_str(&mask));
}

// Pointers of unrolled loops go along, those of lists are found in each step; those that look ahead count.
static const char *place_at(const mm_text *t, const tile_shape *s, int64_t stride, int64_t offset) {
  bool counts = s->ahead && !t->plan->lists;
  return counts ? step_at(t, stride, offset) : ir_format(t->p->arena, "%lld", (long long)offset);
}

// Row i's element of a: a number, which its product spreads over the lanes, or a pair, which is a vector's by then.
static void put_element(const mm_text *t, int i, const char *at) {
  if (t->p->pairs)
    ir_buf_printf(t->out, "    const %s_vec a%d = k_spread(a + %s);\n   ", t->name, i, at);
  else
    ir_buf_printf(t->out, "    const %s a%d = a[%s];\n   ", t->p->ctype, i, at);
}

static void put_product(const mm_text *t, int i, int j) {
  if (t->p->pairs)
    ir_buf_printf(t->out, " c%d_%d = k_dot(c%d_%d, a%d, b%d);", i, j, i, j, i, j);
  else
    ir_buf_printf(t->out, " c%d_%d += a%d * b%d;", i, j, i, j);
}

static void emit_step(const mm_text *t, const tile_shape *s) {
  int64_t row = mm_a_row_stride(t), k = mm_a_k_stride(t);
  for (int j = 0; j < s->vectors; j++) {
    const char *at = place_at(t, s, s->b_k, (int64_t)j * t->plan->lanes);
    bool masked = s->masked && j == s->vectors - 1;
    const char *load = masked ? masked_load(t, at)
                              : ir_format(t->p->arena, "*(const %s_mem *)(b + %s)", t->name, at);
    ir_buf_printf(t->out, "    const %s_vec b%d = %s;\n", t->name, j, load);
  }
  for (int i = 0; i < s->rows; i++) {
    put_element(t, i, place_at(t, s, k, i * row));
    for (int j = 0; j < s->vectors; j++)
      put_product(t, i, j);
    ir_buf_puts(t->out, "\n");
  }
}

// Steps between asking for a line and its use: as long as one takes from beyond the second cache.
static int64_t steps_ahead(const mm_text *t, const tile_shape *s) {
  enum { WAIT_CYCLES = 400 };
  int line = 64 / t->p->elem_bytes;
  int64_t lines = (int64_t)(WAIT_CYCLES / mm_tile_cycles(s->rows, s->vectors)) / line + 1;
  return lines * line < t->p->k ? lines * line : t->p->k;
}

int64_t mm_list_ahead(const mm_text *t) {
  tile_shape s = {.rows = t->plan->mr, .vectors = t->plan->nv};
  return mm_looks_ahead(t) ? steps_ahead(t, &s) : 0;
}

// Tiles of one vector spread each element of a into a register which only that row needs, and compilers let the sum
// go on there: of several steps written out, sums that fill half of 16 registers are put on the stack between them.
// (AVX-512 and NEON spread an element as they multiply.)
static bool is_crowded(const mm_text *t, const tile_shape *s) {
  enum { FEW_REGISTERS = 16 };
  return t->p->target->vector_registers <= FEW_REGISTERS && s->vectors == 1 &&
         2 * s->rows >= FEW_REGISTERS;
}

// Steps of k that are written out together: a loop's own instructions take slots of a core that a neighbour may
// have half of. They are few beside those of a large tile, of which the text of several steps is long.
static int unrolled_steps(const mm_text *t, const tile_shape *s, int64_t steps) {
  enum { LARGE = 20 };
  if (s->rows * s->vectors >= LARGE || is_crowded(t, s))
    return 1;
  return s->ahead || steps % MOST_UNROLLED != 0 ? MOST_UNROLLED / 2 : MOST_UNROLLED;
}

static void put_unrolling(const mm_text *t, const tile_shape *s, int64_t steps) {
  enum { FEW = 16 };
  if (!s->ahead && steps >= FEW)
    ir_buf_printf(t->out, "#pragma GCC unroll %d\n", unrolled_steps(t, s, steps));
}

// The loop over steps of a tile that looks ahead: first for its own lines, in the last steps for those
// that the next tiles begin with.
//
//   int64_t k = 0;
//   for (int next = 0; next < 2; next++) {
//     const float *soon_a = next ? next_a - 736 : a + 48, ...;
//     #pragma GCC unroll 2
//     for (const int64_t stop = next ? 784 : 736; k < stop; k++) {
static void open_steps_ahead(const mm_text *t, const tile_shape *s) {
  int64_t ahead = steps_ahead(t, s), a_k = mm_a_k_stride(t);
  const char *all =
      mm_counts_steps(t) ? "steps" : ir_format(t->p->arena, "%lld", (long long)t->p->k);
  const char *own = mm_counts_steps(t)
                        ? ir_format(t->p->arena, "(steps > %lld ? steps - %lld : 0)",
                                    (long long)ahead, (long long)ahead)
                        : ir_format(t->p->arena, "%lld", (long long)(t->p->k - ahead));
  ir_buf_printf(t->out,
                "  const int64_t own = %s;\n"
                "  int64_t k = 0;\n"
                "#pragma GCC unroll 1\n"
                "  for (int next = 0; next < 2; next++) {\n"
                "  const %s *soon_a = next ? next_a - own * %lld : a + %lld;\n"
                "  const %s *soon_b = next ? next_b - own * %lld : b + %lld;\n"
                "#pragma GCC unroll %d\n"
                "  for (const int64_t stop = next ? %s : own; k < stop; k++) {\n",
                own, t->p->ctype, (long long)a_k, (long long)(ahead * a_k), t->p->ctype,
                (long long)s->b_k, (long long)(ahead * s->b_k), unrolled_steps(t, s, t->p->k), all);
}

// Where a step of a panel that is read in place ends; and one line after the other before that, where its rows lie side
// by side and steps so far apart that a page has two of them: too few for the processor to foresee the next. The tile
// before this one has read the first line, but no more. (At 512 bytes, what is asked for costs loads 8% of the time.)
static void put_lines_of_step(const mm_text *t, const tile_shape *s, int64_t row, int64_t k) {
  enum { FAR_BYTES = 2048 };
  int line = 64 / t->p->elem_bytes, last = t->plan->a == MM_DIRECT ? s->rows - 1 : 0;
  bool all = row == 1 && k * t->p->elem_bytes >= FAR_BYTES;
  for (int i = last; i >= 0 && (i == last || all); i -= line)
    ir_buf_printf(t->out, "    __builtin_prefetch(soon_a + %s);\n", step_at(t, k, row * i));
}

static void put_lines_of_b(const mm_text *t, const tile_shape *s, const char *soon) {
  for (int j = 0; j < s->vectors; j++)
    ir_buf_printf(t->out, "    __builtin_prefetch(%s%s);\n", soon,
                  plus(t, (int64_t)j * t->plan->lanes));
}

// One step's share of the lines that are wanted so many steps later: where they come from beyond the
// second cache, a tile of cold lines takes twice its time.
static void emit_ahead(const mm_text *t, const tile_shape *s) {
  int64_t row = mm_a_row_stride(t), k = mm_a_k_stride(t);
  if (t->plan->lists) { // which has read the rows of a
    put_lines_of_b(t, s,
                   ir_format(t->p->arena, "b_all + (int64_t)list[i + %lld] * %lld",
                             (long long)mm_list_ahead(t), (long long)s->b_k));
    return;
  }
  int line = 64 / t->p->elem_bytes;
  if (k == 1) // rows of neighbours along k: line by line
    for (int i = 0; i < s->rows; i += line)
      ir_buf_printf(t->out,
                    "    __builtin_prefetch(soon_a + (k %% %d + %d) * %lld + k / %d * %d);\n", line,
                    i, (long long)row, line, line);
  else
    put_lines_of_step(t, s, row, k);
  for (int j = 0; j < s->vectors; j++)
    ir_buf_printf(t->out, "    __builtin_prefetch(soon_b + %s);\n",
                  step_at(t, s->b_k, (int64_t)j * t->plan->lanes));
}

static const char *place(const mm_text *t, const tile_shape *s, int i, int j) {
  return plus(t, i * s->pitch + (int64_t)j * t->plan->lanes);
}

// Sums begin at 0; those of a later piece of k where the piece before ended.
static void emit_sums(const mm_text *t, const tile_shape *s) {
  bool go_on = mm_pieces_wait(t->plan);
  for (int i = 0; i < s->rows; i++) {
    ir_buf_printf(t->out, "  %s_vec", t->name);
    for (int j = 0; j < s->vectors; j++)
      ir_buf_printf(t->out, "%s c%d_%d = {0}", j ? "," : "", i, j);
    ir_buf_puts(t->out, ";\n");
  }
  if (!go_on)
    return;
  ir_buf_puts(t->out, "  if (more) {\n");
  for (int i = 0; i < s->rows; i++)
    for (int j = 0; j < s->vectors; j++)
      ir_buf_printf(t->out, "    c%d_%d = *(const %s_mem *)(c%s);\n", i, j, t->name,
                    place(t, s, i, j));
  ir_buf_puts(t->out, "  }\n");
}

// Of lists: never -0 (cpu_matmul_list.c).
static void emit_stores(const mm_text *t, const tile_shape *s) {
  const char *zero = t->plan->lists ? ir_format(t->p->arena, " + (%s_vec){0}", t->name) : "";
  for (int i = 0; i < s->rows; i++)
    for (int j = 0; j < s->vectors; j++)
      ir_buf_printf(t->out, "  *(%s_mem *)(c%s) = c%d_%d%s;\n", t->name, place(t, s, i, j), i, j,
                    zero);
}

static void open_list(const mm_text *t, const tile_shape *s) {
  const char *c = t->p->ctype;
  bool packed = t->plan->a == MM_LISTED; // one after the other
  ir_buf_printf(
      t->out,
      "#pragma GCC unroll 1\n" // of several steps no registers would be left for sums
      "  for (int64_t i = 0; i < steps; i++) {\n"
      "    const int64_t k = list[i];\n"
      "    const %s *a = a_all + %s * %lld, *b = b_all + k * %lld;\n"
      "    __asm__(\"\" : \"+r\"(a), \"+r\"(b));\n", // or all of a would be loaded before b
      c, packed ? "i" : "k", (long long)mm_a_k_stride(t), (long long)s->b_k);
}

// The loop over what pieces of k take of runs, `steps` steps from step `first` on: some may begin, or end, within a run.
static void open_parts_of_runs(const mm_text *t, const tile_shape *s, const char *at, int64_t run) {
  long long of_run = (long long)run;
  ir_buf_printf(t->out,
                "  for (int64_t done = 0, part; done < steps; done += part) {\n"
                "  const int64_t run = (first + done) / %lld, from = (first + done) %% %lld;\n"
                "  part = steps - done < %lld - from ? steps - done : %lld - from;\n"
                "  const %s *a = a_runs + %s + from * %lld, *b = b_runs + done * %lld;\n",
                of_run, of_run, of_run, of_run, t->p->ctype, at, (long long)mm_a_k_stride(t),
                (long long)s->b_k);
  put_unrolling(t, s, run);
  ir_buf_puts(t->out, "  for (int64_t k = 0; k < part; k++) {\n");
}

// The loop over runs, and this run's places in the operands; `counts`: from step `first` on.
static void open_runs(const mm_text *t, const tile_shape *s, bool counts) {
  const mm_axes *k = &t->p->a.k;
  mm_axes outer = *k;
  long long run = (long long)k->size[--outer.num], b_run = run * (long long)s->b_k;
  const char *c = t->p->ctype, *at = mm_offset(t->p->arena, &outer, "run");
  const char *since = counts ? ir_format(t->p->arena, "(run - first / %lld)", run) : "run";
  if (mm_cuts_runs(t->p, t->plan)) {
    open_parts_of_runs(t, s, at, run);
    return;
  }
  if (counts)
    ir_buf_printf(t->out,
                  "  for (int64_t run = first / %lld; run < (first + steps) / %lld; run++) {\n",
                  run, run);
  else
    ir_buf_printf(t->out, "  for (int64_t run = 0; run < %lld; run++) {\n",
                  (long long)t->p->k / run);
  ir_buf_printf(t->out, "  const %s *a = a_runs + %s, *b = b_runs + %s * %lld;\n", c, at, since,
                b_run);
  put_unrolling(t, s, run);
  ir_buf_printf(t->out, "  for (int64_t k = 0; k < %lld; k++) {\n", run);
}

static void open_steps(const mm_text *t, const tile_shape *s, bool counts) {
  if (s->lists) {
    open_list(t, s);
    return;
  }
  if (a_has_runs(t)) {
    open_runs(t, s, counts);
    return;
  }
  if (s->ahead) {
    open_steps_ahead(t, s);
    return;
  }
  put_unrolling(t, s, t->plan->k_block);
  if (counts)
    ir_buf_puts(t->out, "  for (int64_t k = 0; k < steps; k++) {\n");
  else
    ir_buf_printf(t->out, "  for (int64_t k = 0; k < %lld; k++) {\n", (long long)t->p->k);
}

static tile_shape shape_of(const mm_text *t, bool tail_rows, bool tail_cols, tile_version v) {
  const mm_plan *plan = t->plan;
  tile_shape s = {.rows = tail_rows ? plan->tail_rows : plan->mr,
                  .vectors = tail_cols ? plan->tail_nv : plan->nv,
                  .pitch = plan->nr,
                  .masked = tail_cols && plan->masks && is_ragged_in_place(plan),
                  .b_k = mm_b_k_stride(t, tail_cols),
                  .ahead = v == AHEAD,
                  .lists = plan->lists && v != DENSE};
  if (mm_stores_plain(t, tail_cols))
    mm_is_flat(&t->p->c.x, &s.pitch);
  return s;
}

// An element that a row takes is another row's a few steps later, in the same text.
static bool rows_overlap(const mm_text *t) {
  int64_t row = mm_a_row_stride(t), k = mm_a_k_stride(t);
  return k > 0 && row > 0 && row % k == 0 && row / k < MOST_UNROLLED;
}

static void emit_tile(const mm_text *t, bool tail_rows, bool tail_cols, tile_version v) {
  const mm_plan *plan = t->plan;
  tile_shape s = shape_of(t, tail_rows, tail_cols, v);
  bool counts = mm_counts_steps(t), more = mm_pieces_wait(plan), lists = s.lists, ahead = s.ahead;
  bool runs = a_has_runs(t);
  const char *c = t->p->ctype, *suffix = runs ? "_runs" : lists ? "_all" : "";
  ir_buf_printf(
      t->out,
      "static __attribute__((noinline)) void %s_tile_%dx%d%s%s(const %s *a%s, const %s *b%s, "
      "%s *c%s%s%s%s) {\n",
      t->name, s.rows, s.vectors, tail_cols ? "_tail" : "", version_names[v], c, suffix, c, suffix,
      c,
      ahead && !lists ? ir_format(t->p->arena, ", const %s *next_a, const %s *next_b", c, c) : "",
      lists            ? ", const uint16_t *list"
      : counts && runs ? ", int64_t first"
                       : "",
      counts ? ", int64_t steps" : "", counts && more ? ", int more" : "");
  emit_sums(t, &s);
  open_steps(t, &s, counts);
  emit_step(t, &s);
  if (ahead)
    emit_ahead(t, &s);
  else if (v == DENSE && mm_looks_ahead(t))
    put_lines_of_b(t, &s, ir_format(t->p->arena, "b + %lld", mm_list_ahead(t) * (long long)s.b_k));
  if (!ahead && !lists)
    ir_buf_printf(t->out, "    a += %lld, b += %lld;\n", (long long)mm_a_k_stride(t),
                  (long long)s.b_k);
  if (!ahead && !lists && (s.vectors == 1 || rows_overlap(t))) // see the head
    ir_buf_puts(t->out, "    __asm__(\"\" : \"+r\"(a), \"+r\"(b));\n");
  ir_buf_puts(t->out, runs || (ahead && !lists) ? "  }\n  }\n" : "  }\n");
  emit_stores(t, &s);
  ir_buf_puts(t->out, "}\n\n");
}

static void emit_tile_versions(const mm_text *t, bool tail_rows, bool tail_cols) {
  emit_tile(t, tail_rows, tail_cols, USUAL);
  if (has_ahead(t, tail_rows, tail_cols))
    emit_tile(t, tail_rows, tail_cols, AHEAD);
  if (has_dense(t, tail_rows, tail_cols))
    emit_tile(t, tail_rows, tail_cols, DENSE);
}

// --- the tile for a place ---------------------------------------------------------------------

static void emit_tile_call(const mm_text *t, bool tail_rows, bool tail_cols, tile_version v) {
  const mm_plan *plan = t->plan;
  bool ahead = v == AHEAD;
  ir_buf_printf(t->out, "%s_tile_%dx%d%s%s(", t->name, tail_rows ? plan->tail_rows : plan->mr,
                tail_cols ? plan->tail_nv : plan->nv, tail_cols ? "_tail" : "", version_names[v]);
  long long a_k = (long long)mm_a_k_stride(t), b_k = (long long)mm_b_k_stride(t, tail_cols);
  if (!mm_counts_steps(t)) {
    ir_buf_printf(t->out, "a, b, c%s);\n", ahead ? ", next_a, next_b" : "");
    return;
  }
  bool runs = a_has_runs(t); // those find their own place in a
  bool placed = runs || plan->a == MM_PIECES || plan->lists;
  const char *a = placed ? "" : ir_format(t->p->arena, " + k * %lld", a_k);
  ir_buf_printf(t->out, "a%s, b + k * %lld, c", a, b_k);
  if (ahead && !plan->lists)
    ir_buf_printf(t->out, ", next_a%s, next_b + k * %lld", a, b_k);
  ir_buf_printf(t->out, "%s, steps%s);\n",
                v == DENSE    ? ""
                : plan->lists ? ", list"
                : runs        ? ", k"
                              : "",
                mm_pieces_wait(plan) ? ", more" : "");
}

static void emit_version_choice(const mm_text *t, const char *indent, bool tail_rows,
                                bool tail_cols) {
  bool ahead = has_ahead(t, tail_rows, tail_cols), dense = has_dense(t, tail_rows, tail_cols);
  if (dense) {
    ir_buf_printf(t->out, "%sif (dense)\n%s  ", indent, indent);
    emit_tile_call(t, tail_rows, tail_cols, DENSE);
    ir_buf_printf(t->out, "%selse", indent);
  }
  if (ahead) {
    ir_buf_printf(t->out, "%sif (ahead)\n%s  ", dense ? " " : indent, indent);
    emit_tile_call(t, tail_rows, tail_cols, AHEAD);
    ir_buf_printf(t->out, "%selse", indent);
  }
  ir_buf_printf(t->out, "%s%s", dense || ahead ? "\n  " : "", indent);
  emit_tile_call(t, tail_rows, tail_cols, USUAL);
}

static void emit_rows_choice(const mm_text *t, const char *indent, bool tail_cols) {
  const mm_plan *plan = t->plan;
  bool full = t->p->m >= plan->mr, tail = plan->tail_rows > 0;
  const char *inner = full && tail ? ir_format(t->p->arena, "%s  ", indent) : indent;
  if (full && tail)
    ir_buf_printf(t->out, "%sif (row < ROW_TILES - 1) {\n", indent);
  if (full)
    emit_version_choice(t, inner, false, tail_cols);
  if (full && tail)
    ir_buf_printf(t->out, "%s} else {\n", indent);
  if (tail)
    emit_version_choice(t, inner, true, tail_cols);
  if (full && tail)
    ir_buf_printf(t->out, "%s}\n", indent);
}

// What the tile for a place is told beside its operands and the place.
static const char *extra_parameters(const mm_text *t) {
  const mm_plan *plan = t->plan;
  const char *c = t->p->ctype;
  const char *next =
      plan->lists ? ", int ahead"
                  : ir_format(t->p->arena, ", const %s *next_a, const %s *next_b, int ahead", c, c);
  return ir_format(t->p->arena, "%s%s%s%s", mm_looks_ahead(t) ? next : "",
                   plan->lists ? ", const uint16_t *list, int dense" : "",
                   mm_counts_steps(t) ? ", int64_t k, int64_t steps" : "",
                   mm_pieces_wait(plan) ? ", int more" : "");
}

// The tile function for a place: edges have their own.
static void emit_tile_choice(const mm_text *t) {
  const mm_plan *plan = t->plan;
  const char *c = t->p->ctype;
  bool full = t->p->n >= plan->nr, tail = plan->tail_cols > 0;
  ir_buf_printf(
      t->out,
      "static inline void %s_tile(const %s *a, const %s *b, %s *c, int64_t row, int64_t col%s) "
      "{\n"
      "  enum { ROW_TILES = %lld, COL_TILES = %lld };\n"
      "  (void)row, (void)col;\n",
      t->name, c, c, c, extra_parameters(t), (long long)plan->row_tiles,
      (long long)plan->col_tiles);
  if (full && tail)
    ir_buf_puts(t->out, "  if (col < COL_TILES - 1) {\n");
  const char *indent = full && tail ? "    " : "  ";
  if (full)
    emit_rows_choice(t, indent, false);
  if (full && tail)
    ir_buf_puts(t->out, "  } else {\n");
  if (tail)
    emit_rows_choice(t, indent, true);
  if (full && tail)
    ir_buf_puts(t->out, "  }\n");
  ir_buf_puts(t->out, "}\n\n");
}

void mm_emit_tiles(const mm_text *t) {
  const mm_plan *plan = t->plan;
  bool full_rows = t->p->m >= plan->mr, full_cols = t->p->n >= plan->nr;
  for (int cols = 0; cols < 2; cols++)
    for (int rows = 0; rows < 2; rows++)
      if ((rows ? plan->tail_rows > 0 : full_rows) && (cols ? plan->tail_cols > 0 : full_cols))
        emit_tile_versions(t, rows, cols);
  emit_tile_choice(t);
}
