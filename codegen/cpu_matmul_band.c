// cpu_matmul_band.c: matmuls of matrices that a mask has left a band of, and of windows that look at a border
// of zeros (matmul_border.c).
//
// Tiles are whole: each takes the steps of k that some of its elements needs, from the first to the
// last, and those of the others multiply zeros:
//
//   a (0 above the diagonal)       tile rows 0-3: k = 0..3       sums of 4 products
//     x                            tile rows 4-7: k = 0..7       sums of 8 products
//     x x
//     x x x
//
// A tile of c that nobody needs, or whose products are all 0, takes no steps: its sums are 0, as
// they would be in the second case, and the epilogue runs as for any other. Without an epilogue, one that
// nobody needs is not stored either.
#include "codegen/cpu_matmul.h"

band_product mm_turn_bands(const band_product *b) {
  return (band_product){
      .a = band_turn(b->b), .b = band_turn(b->a), .c = band_turn(b->c), .limited = b->limited};
}

static int64_t last_of(int64_t tile, int64_t size, int64_t all) {
  return (tile + 1) * size < all ? (tile + 1) * size - 1 : all - 1;
}

// The steps of the tile of this row and column of tiles.
static int64_t tile_steps(const mm_problem *p, int64_t mr, int64_t nr, int64_t row, int64_t col) {
  int64_t first, last;
  band_steps(&p->bands, row * mr, last_of(row, mr, p->m), col * nr, last_of(col, nr, p->n),
             mm_numbers_of_k(p), &first, &last);
  return first <= last ? last - first + 1 : 0;
}

double mm_band_share(const mm_problem *p, int64_t mr, int64_t nr) {
  enum { MOST = 256 }; // tiles of an axis that are looked at; of more, so many at equal distances
  if (!p->bands.limited)
    return 1;
  int64_t rows = ir_ceil_div(p->m, mr), cols = ir_ceil_div(p->n, nr);
  int64_t some_rows = rows < MOST ? rows : MOST, some_cols = cols < MOST ? cols : MOST;
  double steps = 0;
  for (int64_t i = 0; i < some_rows; i++)
    for (int64_t j = 0; j < some_cols; j++)
      steps += (double)tile_steps(p, mr, nr, i * rows / some_rows, j * cols / some_cols);
  return steps / ((double)(some_rows * some_cols) * (double)mm_numbers_of_k(p));
}

// "x / by": "x" for 1
static const char *scaled(ir_arena *a, const char *x, char how, int64_t by) {
  return by == 1 ? x : ir_format(a, "%s %c %lld", x, how, (long long)by);
}

// The first step of k that looks at a line so far behind that of row `from`, or at a later one.
static const char *step_of_line(const mm_border *b, ir_arena *a, const char *from, int64_t line) {
  const char *apart = ir_format(a, "(%lld - %s)", (long long)(line + b->apart - 1), from);
  const char *runs = scaled(a, scaled(a, apart, '/', b->apart), '*', b->run);
  return ir_format(a, "%s < %lld ? %s : 0", from, (long long)line, runs);
}

// mm_border_steps
static void put_border(const mm_border *b, ir_buf *out) {
  ir_arena *a = out->arena;
  if (!b->limited)
    return;
  const char *image = ir_format(a, "%lld", (long long)(b->below * b->lines));
  const char *line = scaled(
      a, ir_format(a, "/ %lld %% %lld", (long long)b->below, (long long)b->lines), '*', b->step);
  ir_buf_printf(
      out,
      "  if (m0 / %s == m1 / %s) { // rows of one image: zeros but for lines %lld to %lld\n"
      "    const int64_t near = m0 %s, far = m1 %s;\n"
      "    const int64_t begin = %s;\n"
      "    const int64_t end = %s;\n"
      "    first = first < begin ? begin : first;\n"
      "    stop = stop > end ? end : stop;\n"
      "  }\n",
      image, image, (long long)b->low, (long long)b->high - 1, line, line,
      step_of_line(b, a, "far", b->low), step_of_line(b, a, "near", b->high));
}

// Bands count numbers, of which a step of pairs has two.
static void put_bands(const mm_problem *p, ir_buf *out) {
  if (!p->bands.limited)
    return;
  if (p->pairs)
    ir_buf_puts(out, "  first *= 2, stop *= 2;\n");
  mm_emit_bands(p, "first", out);
  if (p->pairs)
    ir_buf_puts(out, "  if (first >= stop)\n"
                     "    return 0;\n"
                     "  first /= 2, stop = (stop + 1) / 2;\n");
}

// Sums that go to memory as they are need not go there where nobody needs them. What an epilogue makes of them may be
// needed: zeros where a mask has put them.
void mm_emit_skip(const mm_text *t, const char *indent) {
  const mm_problem *p = t->p;
  ir_band c = p->bands.c;
  if (!p->plain || t->plan->split_k || !p->bands.limited || band_is_empty(c) ||
      (c.lower <= 1 - p->m && c.upper >= p->n - 1))
    return;
  ir_buf_printf(t->out, "%sif (", indent);
  if (c.lower > 1 - p->m)
    ir_buf_printf(t->out, "col * NR + NR - 1 - row * MR < %lld%s", (long long)c.lower,
                  c.upper < p->n - 1 ? " || " : "");
  if (c.upper < p->n - 1)
    ir_buf_printf(t->out, "col * NR - (row * MR + MR - 1) > %lld", (long long)c.upper);
  ir_buf_printf(t->out, ") // nobody needs this tile\n%s  continue;\n", indent);
}

// What bands and border leave, with what they are as constants.
void mm_emit_span(const mm_text *t) {
  const mm_problem *p = t->p;
  ir_buf *out = t->out;
  ir_buf_printf(
      out,
      "// The steps of [*k, *k + steps) that a tile needs: *k becomes the first; gives their "
      "number.\n"
      "static inline int64_t %s_span(int64_t row, int64_t col, int64_t *k, int64_t steps) {\n"
      "  enum { M = %lld, N = %lld, MR = %d, NR = %lld };\n"
      "  const int64_t m0 = row * MR, m1 = M - m0 < MR ? M - 1 : m0 + MR - 1;\n"
      "  const int64_t n0 = col * NR, n1 = N - n0 < NR ? N - 1 : n0 + NR - 1;\n"
      "  int64_t first = *k, stop = *k + steps;\n"
      "  (void)m0, (void)m1, (void)n0, (void)n1;\n",
      t->name, (long long)p->m, (long long)p->n, t->plan->mr, (long long)t->plan->nr);
  put_bands(p, out);
  put_border(&p->border, out);
  ir_buf_puts(out, "  if (first >= stop)\n"
                   "    return 0;\n"
                   "  *k = first;\n"
                   "  return stop - first;\n"
                   "}\n\n");
}

bool mm_limits_steps(const mm_problem *p) {
  return p->bands.limited || p->border.limited;
}

bool mm_counts_steps(const mm_text *t) {
  return t->plan->k_blocks > 1 || t->plan->lists || mm_limits_steps(t->p);
}

const char *mm_emit_steps(const mm_text *t, const char *indent) {
  bool pieces = t->plan->k_blocks > 1, limits = mm_limits_steps(t->p);
  const char *more = !mm_pieces_wait(t->plan) ? "" : t->plan->split_k ? ", k > start" : ", k > 0";
  const char *all = pieces ? "steps" : ir_format(t->p->arena, "%lld", (long long)t->p->k);
  if (limits)
    ir_buf_printf(t->out,
                  "%sint64_t from = %s;\n"
                  "%sconst int64_t count = %s_span(row, col, &from, %s);\n",
                  indent, pieces ? "k" : "0", indent, t->name, all);
  if (t->plan->lists)
    return ir_format(t->p->arena, ", list, live == %s, %s, live%s", all, pieces ? "k" : "0", more);
  return limits   ? ir_format(t->p->arena, ", from, count%s", more)
         : pieces ? ir_format(t->p->arena, ", k, steps%s", more)
                  : "";
}
