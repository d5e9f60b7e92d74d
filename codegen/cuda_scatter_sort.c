// cuda_scatter_sort.c: text: SCATTER kernels that sort (cuda_scatter.h).
//
//   index  3 0 3 3 1 0     sorted rows       0 0 1 3 | 3 3      pieces of 4
//                          their positions   1 5 4 0 | 2 3
//
//   phases 1, 2; 3, 4   sorting by some bits of the row each: blocks count the digits of their
//                       chunks; then they know where positions go, and put them there. Of few
//                       positions one block does all of that, in phase 0
//   the last but one    a group of threads per piece: row 0 = u[1] + u[5], row 1 = u[4]; row 3
//                       goes on: its sum here, u[0], is the piece's tail; u[2] + u[3] the head
//                       of the next one
//   the last            row 3 = tail of piece 0 + heads of the pieces behind it
//
// Two designs for the sort: counting sort by whole rows (one pass; but a counter per row and chunk:
// 26 MB for 50,257 rows in 128 chunks), or by digits, as here (a pass per 8 bits, 256 counters).
// The latter moves 12 bytes per index and pass, and any number of rows will do.
//
// Sums inside a piece are in index order, to the bit as on the CPU. A row in several pieces is the
// sum of their sums: where pieces end depends on the data and on nothing else, so that equal
// batches give equal bits; against the CPU it is within rounding.
#include "codegen/cuda_scatter.h"

static const cuda_scatter *plan_of(const cuda_text *t) {
  return t->k->schedule;
}

// --- the workspace ---------------------------------------------------------------------------
static void put_pointer(cuda_text *t, const char *type, const char *name, int64_t offset) {
  size_t arg = t->k->in.num + t->k->out.num;
  cuda_line(t, "%s *const %s = (%s *)(args[%zu] + %lld);", type, name, type, arg, ll(offset));
}

// The list that pass `pass` has sorted: rows and, where there is a name for them, positions.
static void put_list(cuda_text *t, int pass, const char *rows, const char *places) {
  const cuda_scatter *p = plan_of(t);
  int64_t at = p->sorted[pass % 2];
  put_pointer(t, p->place, rows, at);
  if (places)
    cuda_line(t, "%s *const %s = %s + %lld;", p->place, places, rows,
              ll((p->indices * p->place_bytes + 63) / 64 * 64 / p->place_bytes));
}

// --- sorting ---------------------------------------------------------------------------------
static void put_source(cuda_text *t, int pass, const char *places) {
  const cuda_scatter *p = plan_of(t);
  int shift = pass * p->bits;
  const char *row = "row_at(at)";
  if (pass == 0) {
    cuda_scatter_put_row_at(t);
  } else {
    put_list(t, pass - 1, "rows", places);
    row = "k_take(rows + at)";
  }
  const char *bits = shift ? ir_format(t->k->arena, "%s >> %d", row, shift) : row;
  cuda_line(t, "const auto digit_at = [&](int64_t at) { return %s & %d; };", bits,
            (1 << p->bits) - 1);
}

static void put_move(cuda_text *t, int pass) {
  const cuda_scatter *p = plan_of(t);
  put_list(t, pass, "to_rows", "to_places");
  cuda_line(t, "const auto move = [&](int64_t at, int64_t to) {");
  cuda_line(t, "  k_put(to_rows + to, (%s)%s);", p->place,
            pass ? "k_take(rows + at)" : "row_at(at)");
  cuda_line(t, "  k_put(to_places + to, (%s)%s);", p->place, pass ? "k_take(places + at)" : "at");
  cuda_line(t, "};");
}

static void emit_count(cuda_text *t, const char *name, int pass) {
  const cuda_scatter *p = plan_of(t);
  cuda_scatter_open(t, name, 1 + 2 * pass, SCATTER_SORT_THREADS);
  put_source(t, pass, NULL);
  put_pointer(t, p->place, "counts", p->counts);
  cuda_line(t, "k_sort_count<%d, %d>(task, %lld, %lld, counts, digit_at);", p->bits,
            SCATTER_SORT_THREADS / 32, ll(p->chunk), ll(p->indices));
  ir_buf_puts(t->out, "}\n");
}

static void emit_place(cuda_text *t, const char *name, int pass) {
  const cuda_scatter *p = plan_of(t);
  cuda_scatter_open(t, name, 2 + 2 * pass, SCATTER_SORT_THREADS);
  put_source(t, pass, "places");
  put_pointer(t, p->place, "counts", p->counts);
  put_move(t, pass);
  cuda_line(t, "k_sort_place<%d, %d>(task, %lld, %lld, %lld, counts, digit_at, move);", p->bits,
            SCATTER_SORT_THREADS / 32, ll(p->chunk), ll(p->chunks), ll(p->indices));
  ir_buf_puts(t->out, "}\n");
}

// A block that has all positions needs nobody's counts, and can go on with the next pass.
void cuda_scatter_put_sort(cuda_text *t) {
  const cuda_scatter *p = plan_of(t);
  for (int pass = 0; pass < p->passes; pass++) {
    cuda_line(t, "{");
    t->indent += 2;
    put_source(t, pass, "places");
    put_move(t, pass);
    cuda_line(t, "k_sort_alone<%d, %d, %s>(%lld, %lld, digit_at, move);", p->bits,
              SCATTER_SORT_THREADS / 32, p->place, ll(p->chunk), ll(p->indices));
    t->indent -= 2;
    cuda_line(t, "}");
  }
}

// --- sums ------------------------------------------------------------------------------------
static void put_sorted(cuda_text *t, const char *places) {
  const cuda_scatter *p = plan_of(t);
  put_list(t, p->passes - 1, "rows", places);
  put_pointer(t, ir_dtypes[t->k->k->anchor->type.dtype].ctype, "partial", p->partial);
}

// "piece" and "column" of this thread; threads without either leave.
static void put_place(cuda_text *t) {
  const cuda_scatter *p = plan_of(t);
  int groups = p->sum_threads / p->group;
  const char *group =
      groups == 1 ? "task"
                  : ir_format(t->k->arena, "(task * %d + threadIdx.x / %d)", groups, p->group);
  const char *lane =
      groups == 1 ? "threadIdx.x" : ir_format(t->k->arena, "threadIdx.x %% %d", p->group);
  if (p->sum_parts > 1) {
    cuda_line(t, "const int64_t piece = %s / %lld;", group, ll(p->sum_parts));
    cuda_line(t, "const int64_t unit = %s %% %lld * %d + %s;", group, ll(p->sum_parts), p->group,
              lane);
  } else {
    cuda_line(t, "const int64_t piece = %s;", group);
    cuda_line(t, "const int64_t unit = %s;", lane);
  }
  cuda_line(t, "if (piece >= %lld || unit >= %lld)", ll(p->pieces), ll(p->units));
  cuda_line(t, "  return;");
  cuda_line(t, "const int64_t column = unit%s;", p->wide ? " * VL" : "");
}

static void emit_sums(cuda_text *t, const char *name) {
  const cuda_scatter *p = plan_of(t);
  ir_dtype type = t->k->k->anchor->type.dtype;
  const char *value = p->wide ? cpu_register(type) : ir_dtypes[type].ctype;
  const char *start = cuda_scatter_start(t->k, p->wide);
  const char *put = p->wide ? ir_format(t->k->arena, "k_store_%s", ir_dtypes[type].name) : "k_put";
  cuda_scatter_open(t, name, 1 + p->sort_launches, p->sum_threads);
  put_sorted(t, "places");
  cuda_scatter_put_update_at(t);
  put_place(t);
  cuda_line(t,
            "const int64_t begin = piece * %lld, end = begin + %lld < %lld ? begin + %lld : %lld;",
            ll(p->piece), ll(p->piece), ll(p->indices), ll(p->piece), ll(p->indices));
  cuda_line(t, "k_sum_piece(rows, places, begin, end, %lld, (%s)%s,", ll(p->indices), value, start);
  cuda_line(t, "            [&](int64_t at) { return update_at(at, column); },");
  cuda_line(t, "            [&](%s sum, %s x) { return %s; },", value, value,
            cuda_scatter_step(t->k, p->wide, "sum", "x"));
  cuda_line(t, "            [&](int64_t row, k_segment kind, %s sum) {", value);
  cuda_line(t, "  if (kind == K_WHOLE) {");
  t->indent += 4;
  cuda_scatter_put_row(t, p->wide, NULL);
  t->indent -= 4;
  cuda_line(t, "  } else {");
  cuda_line(t, "    %s(partial + (2 * piece + (kind == K_TAIL)) * %lld + column, sum);", put,
            ll(p->pitch));
  cuda_line(t, "  }");
  cuda_line(t, "});");
  ir_buf_puts(t->out, "}\n");
}

// Slices of threads add heads side by side, each its share of them in order; then the slices' sums
// are added in a fixed tree.
static void put_join(cuda_text *t) {
  const cuda_scatter *p = plan_of(t);
  ir_dtype type = t->k->k->anchor->type.dtype;
  int slices = SCATTER_JOIN_THREADS / p->join_side;
  const char *vector = cpu_register(type), *dtype = ir_dtypes[type].name;
  cuda_line(t, "const int64_t unit = part * %d + threadIdx.x %% %d, slice = threadIdx.x / %d;",
            p->join_side, p->join_side, p->join_side);
  cuda_line(t, "const int64_t column = (unit < %lld ? unit : %lld) * VL;",
            ll(p->pitch / SCATTER_LANES), ll(p->pitch / SCATTER_LANES - 1));
  cuda_line(t, "const int64_t num = last - piece + 1, share = (num + %d) / %d;", slices - 1,
            slices);
  cuda_line(t, "const int64_t from = slice * share, to = from + share < num ? from + share : num;");
  cuda_line(t, "%s sum = %s;", vector, cuda_scatter_start(t->k, true));
  // Of 8 bytes half as many at a time: ptxas keeps to 48 registers here, and would spill.
  cuda_line(t, "_Pragma(\"unroll %d\")", p->element_bytes < 8 ? 4 : 2);
  cuda_line(t, "for (int64_t i = from; i < to; i++)");
  const char *part =
      ir_format(t->k->arena, "k_load_%s(partial + (2 * (piece + i) + (i == 0)) * %lld + column)",
                dtype, ll(p->pitch));
  cuda_line(t, "  sum = %s;", cuda_scatter_step(t->k, true, "sum", part));
  cuda_line(t, "sum = k_slice_%s<%d, %d>(sum);",
            t->k->k->anchor->op == IR_SCATTER_ADD ? "sum" : "max", slices, SCATTER_JOIN_THREADS);
  cuda_line(t, "if (slice > 0 || unit >= %lld)", ll(p->pitch / SCATTER_LANES));
  cuda_line(t, "  return;");
}

static void emit_join(cuda_text *t, const char *name) {
  const cuda_scatter *p = plan_of(t);
  cuda_scatter_open(t, name, 2 + p->sort_launches, SCATTER_JOIN_THREADS);
  put_sorted(t, NULL);
  if (p->join_parts > 1)
    cuda_line(t, "const int64_t piece = task / %lld, part = task %% %lld;", ll(p->join_parts),
              ll(p->join_parts));
  else
    cuda_line(t, "const int64_t piece = task, part = 0;");
  cuda_line(t, "const int64_t last = k_last_piece(rows, piece, %lld, %lld);", ll(p->piece),
            ll(p->indices));
  cuda_line(t, "if (last < 0)");
  cuda_line(t, "  return;");
  put_join(t);
  cuda_line(t, "const int64_t row = (int64_t)k_take(rows + piece * %lld + %lld);", ll(p->piece),
            ll(p->piece - 1));
  bool whole = p->columns % SCATTER_LANES == 0;
  if (!whole)
    cuda_line(t, "const int lanes = %lld - column < VL ? (int)(%lld - column) : VL;",
              ll(p->columns), ll(p->columns));
  cuda_scatter_put_row(t, true, whole ? NULL : "lanes");
  ir_buf_puts(t->out, "}\n");
}

void cuda_scatter_emit_sorted(cuda_text *t, const char *name) {
  const cuda_scatter *p = plan_of(t);
  for (int pass = 0; pass < p->passes && !p->alone; pass++) {
    emit_count(t, name, pass);
    emit_place(t, name, pass);
  }
  emit_sums(t, name);
  emit_join(t, name);
}
