// cpu_matmul_pack.c: copies panels of a and b into the order in which tiles read them.
//
//   a panel: mr rows.     [k][mr], or [mr][pitch] when k lies in contiguous runs
//   b panel: nr columns. [k][width], width a whole number of vectors; missing columns are 0
//
// b with contiguous k (b^T of a row-major matrix) is transposed in blocks of lanes x lanes by
// shuffles: reading it element by element would touch a line per element.
//
// An operand that memory holds otherwise than tiles multiply it (16 bits, f32 for tf32, or bf16 that are to be pairs)
// is converted on the way, run by run (k_take_*, k_one_* of the prelude).
#include "codegen/cpu_matmul.h"

// How far the other halves of pairs are, which begin at this step of k's last part: ", 128"; 0 for half a pair.
static const char *other_half(const mm_text *t, const mm_operand *o, const char *step) {
  if (!o->apart)
    return "";
  long long apart = (long long)o->apart, last = (long long)o->k.size[o->k.num - 1] - 1;
  return o->odd ? ir_format(t->p->arena, ", %s == %lld ? 0 : %lld", step, last, apart)
                : ir_format(t->p->arena, ", %lld", apart);
}

// The statement that copies `count` neighbours (a text that begins with a blank or a new line) of this step of k.
static const char *run(const mm_text *t, const mm_operand *o, const char *to, const char *from,
                       const char *count, const char *step) {
  ir_arena *a = t->p->arena;
  if (o->convert)
    return ir_format(a, "k_take_%s(%s, %s,%s%s);", o->convert, to, from, count,
                     other_half(t, o, step));
  return ir_format(a, "__builtin_memcpy(%s, %s,%s * sizeof(%s));", to, from, count, t->p->ctype);
}

// The same of neighbours along k, which pairs are already.
static const char *run_of_k(const mm_text *t, const mm_operand *o, const char *to, const char *from,
                            int64_t count) {
  if (o->apart == 1)
    return ir_format(t->p->arena, "k_take_numbers(%s, %s, %lld);", to, from,
                     (long long)(2 * count - o->odd));
  return run(t, o, to, from, ir_format(t->p->arena, " %lld", (long long)count), "");
}

static const char *one(const mm_text *t, const mm_operand *o, const char *array, const char *at,
                       const char *step) {
  if (o->convert)
    return ir_format(t->p->arena, "k_one_%s(%s + %s%s)", o->convert, array, at,
                     other_half(t, o, step));
  return ir_format(t->p->arena, "%s[%s]", array, at);
}

static const char *count_of(const mm_text *t, int64_t v) {
  return ir_format(t->p->arena, " %lld", (long long)v);
}

// Loops over the parts of k; `from` follows. Returns the number of braces to close.
static int open_k_loops(const mm_text *t, const mm_operand *o, const char *base) {
  const mm_axes *k = &o->k;
  ir_buf at = ir_buf_new(t->p->arena);
  for (int i = 0; i < k->num; i++) {
    ir_buf_printf(t->out, "%*sfor (int64_t k%d = 0; k%d < %lld; k%d++) {\n", 2 + 2 * i, "", i, i,
                  (long long)k->size[i], i);
    ir_buf_printf(&at, " + k%d * %lld", i, (long long)k->stride[i]);
  }
  ir_buf_printf(t->out, "%*sconst %s *from = %s%s;\n", 2 + 2 * k->num, "", o->ctype, base,
                ir_buf_str(&at));
  return k->num;
}

static void close_loops(const mm_text *t, int braces) {
  for (int i = braces; i > 0; i--)
    ir_buf_printf(t->out, "%*s}\n", 2 * i, "");
}

// One step of k after another: `width` elements per step, `count` of them from the operand.
// Where x is no run of neighbours, its offsets are worked out once per panel.
static void emit_pack_steps(const mm_text *t, const mm_operand *o, int64_t most) {
  int64_t stride;
  bool unit = mm_is_flat(&o->x, &stride) && (stride == 1 || o->x.num == 0);
  if (!unit)
    ir_buf_printf(t->out,
                  "  int64_t at[%lld];\n"
                  "  for (int64_t j = 0; j < count; j++)\n"
                  "    at[j] = %s;\n",
                  (long long)most, mm_offset(t->p->arena, &o->x, "(first + j)"));
  int braces = open_k_loops(t, o, unit ? "source + first" : "source"), in = 2 + 2 * braces;
  const char *step = ir_format(t->p->arena, "k%d", braces - 1); // pairs have a last part
  if (unit && o->convert)
    ir_buf_printf(t->out, "%*s%s\n", in, "", run(t, o, "panel", "from", " count", step));
  else
    ir_buf_printf(t->out, "%*sfor (int64_t j = 0; j < count; j++)\n%*spanel[j] = %s;\n", in, "",
                  in + 2, "", one(t, o, "from", unit ? "j" : "at[j]", step));
  ir_buf_printf(t->out, "%*sfor (int64_t j = count; j < width; j++)\n%*spanel[j] = 0;\n", in, "",
                in + 2, "");
  ir_buf_printf(t->out, "%*spanel += width;\n", in, "");
  close_loops(t, braces);
}

static void open_packing(const mm_text *t, const mm_operand *o, const char *which) {
  ir_buf_printf(
      t->out,
      "static inline __attribute__((always_inline)) void %s_pack_%s_steps(const %s *source, "
      "%s *panel, int64_t first, int64_t count, int64_t width) {\n",
      t->name, which, o->ctype, t->p->ctype);
}

// Panels have `count` elements, the last one `tail` (0: as many). Each case gets constants, which
// make the inner loops a few moves; variables would be unswitched at -O3 into tens of kilobytes.
static void emit_pack_by_steps(const mm_text *t, const mm_operand *o, const char *which,
                               int64_t count, int64_t width, int64_t tail) {
  open_packing(t, o, which);
  emit_pack_steps(t, o, width);
  ir_buf_puts(t->out, "}\n\n");
  ir_buf_printf(t->out,
                "static __attribute__((noinline)) void %s_pack_%s(const %s *source, %s *panel, "
                "int64_t first, "
                "int64_t count, int64_t width) {\n"
                "  if (count == %lld)\n"
                "    %s_pack_%s_steps(source, panel, first, %lld, %lld);\n",
                t->name, which, o->ctype, t->p->ctype, (long long)count, t->name, which,
                (long long)count, (long long)width);
  if (tail && tail != count)
    ir_buf_printf(t->out,
                  "  else\n"
                  "    %s_pack_%s_steps(source, panel, first, %lld, width);\n",
                  t->name, which, (long long)tail);
  ir_buf_puts(t->out, "}\n\n");
}

// Rows of a in runs of contiguous k: plain copies.
static void emit_pack_a_rows(const mm_text *t) {
  const mm_axes *k = &t->p->a.k;
  int64_t length = k->size[k->num - 1];
  mm_axes outer = *k;
  outer.num--;
  const char *to = ir_format(t->p->arena, "panel + i * %lld + j * %lld",
                             (long long)t->plan->a_pitch, (long long)length);
  const char *from =
      ir_format(t->p->arena, "source + %s + %s", mm_offset(t->p->arena, &t->p->a.x, "(first + i)"),
                mm_offset(t->p->arena, &outer, "j"));
  ir_buf_printf(t->out,
                "static __attribute__((noinline)) void %s_pack_a(const %s *source, %s *panel, "
                "int64_t first, int64_t count, int64_t width) {\n"
                "  (void)width;\n"
                "  for (int64_t i = 0; i < count; i++)\n"
                "    for (int64_t j = 0; j < %lld; j++)\n"
                "      %s\n"
                "}\n\n",
                t->name, t->p->a.ctype, t->p->ctype, (long long)(t->p->k / length),
                run_of_k(t, &t->p->a, to, from, length));
}

// Of two vectors, every other piece of `piece` elements within spans of `span`, from piece `odd` on; of the first
// vector and then of the second, span by span.
static const char *every_other(const mm_text *t, int piece, int span, int odd) {
  int lanes = t->plan->lanes;
  ir_buf text = ir_buf_new(t->p->arena);
  for (int from = 0; from < lanes; from += span)
    for (int vector = 0; vector < 2; vector++)
      for (int at = from + odd * piece; at < from + span; at += 2 * piece)
        for (int i = 0; i < piece; i++)
          ir_buf_printf(&text, ", %d", vector * lanes + at + i);
  return ir_buf_str(&text);
}

// One stage for each bit of a row's number, which becomes that bit of a column's: rows i and i + bit give the even
// pieces, in i, and the odd ones. Pieces are elements as long as they stay within 16 bytes, and then these as a whole:
// moves of either kind are one instruction everywhere, across all of a vector they are not.
static void emit_turn(const mm_text *t) {
  const char *n = t->name;
  int lanes = t->plan->lanes, within = 16 / t->p->elem_bytes, stage = 0;
  ir_buf_printf(
      t->out,
      "// Transposes a block of %d x %d.\n"
      "static __attribute__((noinline)) void %s_turn(const %s *from, int64_t from_pitch, %s *to, "
      "int64_t to_pitch) {\n",
      lanes, lanes, n, t->p->ctype, t->p->ctype);
  for (int i = 0; i < lanes; i++)
    ir_buf_printf(t->out, "  const %s_vec r0_%d = *(const %s_mem *)(from + %d * from_pitch);\n", n,
                  i, n, i);
  for (int bit = 1; bit < lanes; bit *= 2, stage++) {
    int piece = bit < within ? 1 : within, span = bit < within ? within : lanes;
    for (int i = 0; i < lanes; i++)
      ir_buf_printf(t->out, "  const %s_vec r%d_%d = __builtin_shufflevector(r%d_%d, r%d_%d%s);\n",
                    n, stage + 1, i, stage, i & ~bit, stage, i | bit,
                    every_other(t, piece, span, (i & bit) != 0));
  }
  for (int i = 0; i < lanes; i++)
    ir_buf_printf(t->out, "  *(%s_mem *)(to + %d * to_pitch) = r%d_%d;\n", n, i, stage, i);
  ir_buf_puts(t->out, "}\n\n");
}

static void emit_turn_part(const mm_text *t, int64_t pitch) {
  const char *c = t->p->ctype;
  const mm_operand *o = &t->p->b;
  int lanes = t->plan->lanes;
  ir_buf_printf(
      t->out,
      "// A block at an edge: `cols` of its columns and `steps` of k exist.\n"
      "static inline __attribute__((always_inline)) void %s_turn_part(const %s *from, %s *to, "
      "int64_t to_pitch, int64_t cols, int64_t steps) {\n"
      "  %s in[%d] __attribute__((aligned(64))) = {0}, out[%d] __attribute__((aligned(64)));\n"
      "  for (int64_t j = 0; j < cols; j++)\n"
      "    %s\n"
      "  %s_turn(in, %d, out, %d);\n"
      "  for (int64_t k = 0; k < steps; k++)\n"
      "    __builtin_memcpy(to + k * to_pitch, out + k * %d, %d * sizeof(%s));\n"
      "}\n\n",
      t->name, o->ctype, c, c, lanes * lanes, lanes * lanes,
      run(t, o, ir_format(t->p->arena, "in + j * %d", lanes),
          ir_format(t->p->arena, "from + j * %lld", (long long)pitch), " (size_t)steps", ""),
      t->name, lanes, lanes, lanes, lanes, c);
}

static void emit_pack_b_turned(const mm_text *t) {
  int64_t pitch, k = t->p->k;
  const mm_operand *o = &t->p->b;
  int lanes = t->plan->lanes;
  mm_is_flat(&t->p->b.x, &pitch);
  emit_turn(t);
  emit_turn_part(t, pitch);
  ir_buf_printf(
      t->out,
      "static __attribute__((noinline)) void %s_pack_b(const %s *source, %s *panel, int64_t first, "
      "int64_t count, int64_t width) {\n"
      "  enum { L = %d, K = %lld, K_FULL = %lld };\n"
      "  for (int64_t j = 0; j < count; j += L) {\n"
      "    const %s *from = source + (first + j) * %lld;\n"
      "    const int64_t cols = count - j < L ? count - j : L;\n"
      "    for (int64_t k = 0; k < K_FULL; k += L)\n",
      t->name, o->ctype, t->p->ctype, lanes, (long long)k, (long long)(k / lanes * lanes), o->ctype,
      (long long)pitch);
  if (!o->convert) // whole blocks lie ready
    ir_buf_printf(t->out,
                  "      if (cols == L)\n"
                  "        %s_turn(from + k, %lld, panel + k * width + j, width);\n"
                  "      else\n  ",
                  t->name, (long long)pitch);
  ir_buf_printf(t->out, "      %s_turn_part(from + k, panel + k * width + j, width, cols, L);\n",
                t->name);
  if (k % lanes)
    ir_buf_printf(t->out,
                  "    %s_turn_part(from + K_FULL, panel + K_FULL * width + j, width, cols, K - "
                  "K_FULL);\n",
                  t->name);
  ir_buf_puts(t->out, "  }\n}\n\n");
}

// A slice of k of every panel, read row by row: neighbours in memory are read together, which
// caches and page tables prefer to one narrow column of panels at a time. Eight steps at a time, so
// that whole lines of a panel are written.
static void emit_pack_slice(const mm_text *t, const mm_operand *o, const char *which, bool b) {
  const mm_plan *plan = t->plan;
  long long step = b ? (long long)plan->nr : plan->mr;
  long long tail = b ? (long long)plan->tail_cols : plan->tail_rows;
  long long tail_pitch = b ? plan->tail_nv * (long long)plan->lanes : plan->mr;
  long long full = (long long)(b ? plan->col_tiles : plan->row_tiles) - (tail > 0);
  long long panel = (long long)(b ? plan->b_panel : plan->a_panel);
  int64_t stride;
  mm_is_flat(&o->k, &stride);
  ir_arena *a = t->p->arena;
  const char *c = t->p->ctype;
  ir_buf_printf(t->out,
                "static void %s_pack_%s_slice(const %s *source, %s *panels, int64_t begin, "
                "int64_t end) {\n"
                "  for (int64_t k = begin; k < end; k += 8) {\n"
                "    const int64_t stop = end - k < 8 ? end : k + 8;\n"
                "    for (int64_t j = 0; j < %lld; j++)\n"
                "      for (int64_t i = k; i < stop; i++)\n"
                "        %s\n",
                t->name, which, o->ctype, c, full,
                run(t, o, ir_format(a, "panels + j * %lld + i * %lld", panel, step),
                    ir_format(a, "source + i * %lld + j * %lld", (long long)stride, step),
                    ir_format(a, "\n                         %lld", step), "i"));
  if (tail)
    ir_buf_printf(t->out,
                  "    for (int64_t i = k; i < stop; i++) {\n"
                  "      %s *const last = panels + %lld + i * %lld;\n"
                  "      %s\n",
                  c, full * panel, tail_pitch,
                  run(t, o, "last",
                      ir_format(a, "source + i * %lld + %lld", (long long)stride, full * step),
                      count_of(t, tail), "i"));
  if (tail && b && tail < tail_pitch)
    ir_buf_printf(t->out, "      __builtin_memset(last + %lld, 0, %lld * sizeof(%s));\n", tail,
                  tail_pitch - tail, c);
  ir_buf_puts(t->out, tail ? "    }\n  }\n}\n\n" : "  }\n}\n\n");
}

bool mm_packs_slices(const mm_operand *o) {
  int64_t x, k;
  return mm_is_flat(&o->x, &x) && x == 1 && mm_is_flat(&o->k, &k) && k > 1 && o->apart != 1;
}

// No prefetcher of a processor follows lines of bytes so far apart: what comes some steps later, or in the
// next piece, is asked for.
enum { STEPS_AHEAD = 16 };

// A function that packs steps [k, k + steps) of whole tiles of rows; of all of these, [first, last).
static void open_pack_piece(const mm_text *t) {
  ir_buf_printf(
      t->out,
      "static __attribute__((noinline)) void %s_pack_a(const %s *source, %s *panels, "
      "int64_t row_block, int64_t row_stop, int64_t k, int64_t steps) {\n"
      "  enum { MR = %d, M = %lld };\n"
      "  const int64_t first = row_block * MR, last = row_stop * MR < M ? row_stop * MR : M;\n",
      t->name, t->p->a.ctype, t->p->ctype, t->plan->mr, (long long)t->p->m);
}

// What memory holds side by side in each step: [k][mr].
static void emit_pack_a_piece_of_steps(const mm_text *t) {
  const mm_plan *plan = t->plan;
  const mm_operand *o = &t->p->a;
  int64_t k;
  mm_is_flat(&o->k, &k);
  long long panel = (long long)plan->a_panel, mr = plan->mr;
  ir_arena *a = t->p->arena;
  open_pack_piece(t);
  ir_buf_printf(t->out,
                "  const int64_t full = last / MR;\n"
                "  for (int64_t j = 0; j < steps; j++) {\n"
                "    const %s *from = source + (k + j) * %lld;\n"
                "    for (int64_t i = first; i < last; i += 64)\n"
                "      __builtin_prefetch(from + %lld + i);\n"
                "    for (int64_t row = row_block; row < full; row++)\n"
                "      %s\n",
                o->ctype, (long long)k, (long long)(STEPS_AHEAD * k),
                run(t, o, ir_format(a, "panels + (row - row_block) * %lld + j * %lld", panel, mr),
                    ir_format(a, "from + row * %lld", mr), count_of(t, mr), "k + j"));
  if (plan->tail_rows)
    ir_buf_printf(
        t->out, "    if (full < row_stop)\n      %s\n",
        run(t, o, ir_format(a, "panels + (full - row_block) * %lld + j * %lld", panel, mr),
            ir_format(a, "from + full * %lld", mr), count_of(t, plan->tail_rows), "k + j"));
  ir_buf_puts(t->out, "  }\n}\n\n");
}

// The statement that copies `count` steps from step `at` on of a run of so many, which pairs are already if they are pairs.
static const char *part_of_run(const mm_text *t, const mm_operand *o, const char *from,
                               int64_t length) {
  ir_arena *a = t->p->arena;
  if (o->apart != 1)
    return run(t, o, "to + (at - k)", ir_format(a, "%s + at %% %lld", from, (long long)length),
               " count", "");
  return ir_format(a, "k_take_numbers(to + (at - k), %s + at %% %lld * 2, 2 * count%s);", from,
                   (long long)length, o->odd ? " - (count == left)" : "");
}

// The statements that copy steps [k, k + steps) of a row in runs: whole ones, whose length is a constant; or, where they
// are longer than pieces, whatever is left of each.
static void put_runs_of_piece(const mm_text *t) {
  const mm_operand *o = &t->p->a;
  ir_arena *a = t->p->arena;
  mm_axes outer = o->k;
  int64_t length = outer.size[--outer.num];
  if (t->plan->piece % length == 0 && t->plan->k_block % length == 0) {
    const char *to = ir_format(a, "to + j * %lld - k", (long long)length);
    const char *from = ir_format(a, "row + %s", mm_offset(a, &outer, "j"));
    ir_buf_printf(t->out,
                  "    for (int64_t j = k / %lld; j < (k + steps) / %lld; j++)\n"
                  "      %s\n",
                  (long long)length, (long long)length, run_of_k(t, o, to, from, length));
    return;
  }
  ir_buf_printf(t->out,
                "    for (int64_t at = k, count; at < k + steps; at += count) {\n"
                "      const int64_t run = at / %lld, left = %lld - at %% %lld;\n"
                "      (void)run;\n"
                "      count = left < k + steps - at ? left : k + steps - at;\n"
                "      %s\n"
                "    }\n",
                (long long)length, (long long)length, (long long)length,
                part_of_run(t, o, ir_format(a, "row + %s", mm_offset(a, &outer, "run")), length));
}

// Each row by itself: [mr][pitch], of a k that is one run, or lies in several: windows.
static void emit_pack_a_piece_of_rows(const mm_text *t, bool one_run) {
  const mm_plan *plan = t->plan;
  const mm_operand *o = &t->p->a;
  open_pack_piece(t);
  ir_buf_printf(t->out,
                "  for (int64_t i = first; i < last; i++) {\n"
                "    const %s *const row = source + %s;\n"
                "    %s *const to = panels + (i - first) / MR * %lld + (i - first) %% MR * %lld;\n",
                o->ctype, mm_offset(t->p->arena, &o->x, "i"), t->p->ctype, (long long)plan->a_panel,
                (long long)plan->a_pitch);
  if (one_run)
    ir_buf_printf(t->out,
                  "    for (int64_t j = 0; j < steps; j += 64)\n"
                  "      __builtin_prefetch(row + k + steps + j);\n"
                  "    %s\n",
                  run(t, o, "to", "row + k", " steps", ""));
  else
    put_runs_of_piece(t);
  ir_buf_puts(t->out, "  }\n}\n\n");
}

// Each element lies behind those before it.
static bool is_rising(const mm_axes *x) {
  for (int i = 0; i + 1 < x->num; i++)
    if (x->stride[i] < x->size[i + 1] * x->stride[i + 1])
      return false;
  return x->num == 0 || x->stride[x->num - 1] > 0;
}

// Steps [k, k + steps) of whole tiles of rows, each [k][mr], where neither rows nor steps lie evenly: the gradients of
// weights. Mostly a tile's rows lie side by side.
static void emit_pack_a_piece_of_places(const mm_text *t) {
  const mm_plan *plan = t->plan;
  const mm_operand *o = &t->p->a;
  ir_arena *a = t->p->arena;
  const char *step = ir_format(a, "j %% %lld", (long long)(o->k.num ? o->k.size[o->k.num - 1] : 1));
  open_pack_piece(t);
  ir_buf_printf(t->out,
                "  int64_t at[%lld];\n"
                "  for (int64_t i = first; i < last; i++)\n"
                "    at[i - first] = %s;\n"
                "  for (int64_t j = k; j < k + steps; j++) {\n"
                "    const %s *const from = source + %s;\n"
                "    for (int64_t i = 0; i < last - first; i += MR) {\n"
                "      %s *const to = panels + i / MR * %lld + (j - k) * MR;\n"
                "      const int64_t count = last - first - i < MR ? last - first - i : MR;\n",
                (long long)(plan->block_rows * plan->mr), mm_offset(a, &o->x, "i"), o->ctype,
                mm_offset(a, &o->k, "j"), t->p->ctype, (long long)plan->a_panel);
  if (is_rising(&o->x))
    ir_buf_printf(t->out,
                  "      if (count == MR && at[i + MR - 1] == at[i] + MR - 1)\n"
                  "        %s\n"
                  "      else\n  ",
                  run(t, o, "to", "from + at[i]", " MR", step));
  ir_buf_printf(t->out,
                "      for (int64_t r = 0; r < count; r++)\n"
                "  %s        to[r] = %s;\n"
                "    }\n  }\n}\n\n",
                is_rising(&o->x) ? "  " : "", one(t, o, "from", "at[i + r]", step));
}

bool mm_packs_side_by_side(const mm_problem *p, const mm_plan *g) {
  return g->a == MM_PIECES || (g->a == MM_LOCAL && mm_packs_slices(&p->a));
}

static void emit_piece(const mm_text *t) {
  int64_t x, k;
  bool flat = mm_is_flat(&t->p->a.x, &x) && mm_is_flat(&t->p->a.k, &k);
  if (t->plan->a_pitch)
    emit_pack_a_piece_of_rows(t, flat);
  else if (flat)
    emit_pack_a_piece_of_steps(t);
  else
    emit_pack_a_piece_of_places(t);
}

static void emit_pack_a(const mm_text *t) {
  if (mm_packs_side_by_side(t->p, t->plan))
    emit_piece(t);
  else if (t->plan->a_pitch)
    emit_pack_a_rows(t);
  else if (t->plan->a == MM_SHARED && mm_packs_slices(&t->p->a))
    emit_pack_slice(t, &t->p->a, "a", false);
  else
    emit_pack_by_steps(t, &t->p->a, "a", t->plan->mr, t->plan->mr, t->plan->tail_rows);
}

static void emit_pack_b(const mm_text *t) {
  int64_t k, n;
  bool turned = mm_is_flat(&t->p->b.k, &k) && mm_is_flat(&t->p->b.x, &n) && k == 1 && n > 1;
  if (turned)
    emit_pack_b_turned(t);
  else if (t->plan->b == MM_SHARED && mm_packs_slices(&t->p->b))
    emit_pack_slice(t, &t->p->b, "b", true);
  else if (t->plan->b != MM_DIRECT)
    emit_pack_by_steps(t, &t->p->b, "b", t->plan->nr, t->plan->nr, t->plan->tail_cols);
  else
    emit_pack_by_steps(t, &t->p->b, "b", t->plan->tail_cols, t->plan->tail_nv * t->plan->lanes, 0);
}

void mm_emit_packing(const mm_text *t) {
  if (t->plan->a != MM_DIRECT && t->plan->a != MM_LISTED)
    emit_pack_a(t);
  if (t->plan->b != MM_DIRECT || mm_packs_tail(t->plan))
    emit_pack_b(t);
}
