// cuda_matmul_copy.c: text: operands from global to shared memory.
//
// Each thread has the same part in every step, and each round of a step lies at the same distance from
// the one before. Both are found once, in front of the loop (a[500,784] as [x][k], 256 threads):
//
//   const int a_x = thread / 4, a_k = thread % 4 * 4;
//   const k_place<float> a_to = a_begin + (a_x * 20 + a_x / 8 * 4 + a_k);
//   const float *a_from = a + (m0 + a_x) * 784 + (first * 16 + a_k);
//   const int a_left = 500 - m0 - a_x;
//   ...
//     for (int s = 0; s < 2; s++) {
//       const bool in = s * 64 < a_left;
//       k_async_16(a_to + (put * 2624 + s * 1312), in ? a_from + s * 50176 : a, in);
//     }
//     a_from += 16;
//
// Worked out in each step, they were a hundred instructions of it, up to a fifth of the time of products in
// f32. Only an operand whose rows or steps of k do not follow on each other (windows, heads), or whose
// rounds do not, has its places worked out each time.
//
// Neighbouring threads copy neighbours in memory. What lies outside the operand becomes zeros, so
// that products need no tests.
//
// There is no asynchronous copy of 2 bytes, nor of one f64. Such elements are loaded to registers where
// others begin their copies, and stored after the products of the step, which hide the way from memory:
//
//     a_next[s] = in ? k_take(a_from + s * 1608224) : (uint16_t)0;
//     ...
//     a_tiles[a_at + (put * 2624 + s * 1312)] = a_next[s];
//
// The place is free then: it was last read in the step before this one, and the barrier at the begin of
// this step stands between.
#include "codegen/cuda_matmul.h"

// What the copies of one operand are made of.
typedef struct copy_text {
  const cmm_text *t;
  const cmm_side *side;
  const mm_operand *o;
  const char *name, *x0; // "a", "m0"
  int64_t size;          // of x: m or n
  int per_row, rounds;   // copies of a row of the tile, of a thread
  bool ragged;           // not all threads have a copy in the last round
  bool regular;          // rounds are the same number of rows apart, in memory, too
  int apart;             // then: that number
  int per_eight;         // turned: rounds until all rows have their copies of eight k
  int per_block;         // wgmma, as [k][x]: rounds of 64 neighbours along x; 0: not so
  int kinds; // wgmma, rounds of fewer than 8 rows: until units are exchanged as in the first; 0: always so
} copy_text;

enum { TURNED_K = 8 }; // of a row, copied by neighbouring threads

int cmm_rounds(const cmm_plan *g, const cmm_side *s) {
  return (int)ir_ceil_div((int64_t)s->x * g->bk / s->vec, g->threads);
}

bool cmm_is_held(const cmm_problem *p, const cmm_side *s) {
  int bytes = s->vec * cmm_element_bytes(p);
  return bytes == 8 || bytes == 2;
}

// By wgmma: a row of 128 bytes is copied by neighbouring threads, whatever lies along it.
static void deal_rows(copy_text *c) {
  const cmm_plan *g = c->t->plan;
  c->per_row = CMM_ROW / c->side->vec;
  c->apart = g->threads / c->per_row;
  c->per_block = c->side->layout == CMM_KX ? g->bk / c->apart : 0;
  c->kinds = c->apart < 8 ? 8 / c->apart : 0;
  c->regular = true;
}

static copy_text describe(const cmm_text *t, bool is_b) {
  const cmm_plan *g = t->plan;
  copy_text c = {.t = t,
                 .side = is_b ? &g->b : &g->a,
                 .o = is_b ? &t->p->p.b : &t->p->p.a,
                 .name = is_b ? "b" : "a",
                 .x0 = is_b ? "n0" : "m0",
                 .size = is_b ? t->p->p.n : t->p->p.m};
  int copies = c.side->x * g->bk / c.side->vec;
  c.per_row = (c.side->layout == CMM_XK ? g->bk : c.side->x) / c.side->vec;
  c.rounds = cmm_rounds(g, c.side);
  c.ragged = copies % g->threads != 0;
  c.apart = g->threads / c.per_row;
  // Of [x][k], groups of 8 rows, or equal parts of one.
  bool in_groups = c.apart > 0 && (c.apart % 8 == 0 || 8 % c.apart == 0);
  bool rows = c.o->x.num <= 1 && c.o->k.num <= 1;
  c.regular =
      rows && !g->wgmma && g->threads % c.per_row == 0 && (c.side->layout == CMM_KX || in_groups);
  if (rows && g->wgmma)
    deal_rows(&c);
  if (c.side->turned) {
    c.per_row = TURNED_K;
    c.apart = g->threads / TURNED_K;
    c.per_eight = c.apart < c.side->x ? c.side->x / c.apart : 1;
    c.regular = true;
  }
  return c;
}

// Where in the tile.
static void put_place(const copy_text *c) {
  const char *inner = c->side->layout == CMM_XK ? "k" : "x";
  const char *outer = c->side->layout == CMM_XK ? "x" : "k";
  const char *times = c->side->vec > 1 ? ir_format(c->t->p->p.arena, " * %d", c->side->vec) : "";
  ir_buf_printf(c->t->out, "        const int %s = i / %d, %s = i %% %d%s;\n", outer, c->per_row,
                inner, c->per_row, times);
}

// Tiles, or steps of k, reach beyond the operand.
static bool cut_along_x(const copy_text *c) {
  return c->size == 0 || c->size % c->side->x != 0;
}

static bool cut_along_k(const copy_text *c) {
  return c->t->p->p.k % c->t->plan->bk != 0;
}

// Those of two tests that are needed; NULL: none.
static const char *inside(const copy_text *c, const char *x, const char *k) {
  bool in_x = cut_along_x(c), in_k = cut_along_k(c);
  return in_x && in_k ? ir_format(c->t->p->p.arena, "%s && %s", x, k) : in_x ? x : in_k ? k : NULL;
}

// Of row and column `x` and `k` of a tile: "x * 20 + x / 8 * 4 + k"
static const char *place_in_tile(const copy_text *c, const char *x, const char *k) {
  const cmm_side *s = c->side;
  ir_arena *a = c->t->p->p.arena;
  if (c->t->plan->wgmma)
    return cmm_wgmma_place(c->t, s, x, k);
  if (s->layout == CMM_KX)
    return ir_format(a, "%s * %d + %s", k, s->pitch, x);
  return ir_format(a, "%s * %d + %s / 8 * %d + %s", x, s->pitch, x, s->skew, k);
}

// "put * 2624 + x * 20 + x / 8 * 4 + k"
static const char *place(const copy_text *c) {
  return ir_format(c->t->p->p.arena, "put * %d + %s", c->side->elems, place_in_tile(c, "x", "k"));
}

static const char *source(const copy_text *c) {
  ir_arena *a = c->t->p->p.arena;
  return ir_format(a, "%s + (%s + %s)", c->name, mm_offset(a, &c->o->x, "at_x"),
                   mm_offset(a, &c->o->k, "at_k"));
}

int cmm_held(const cmm_text *t, bool is_b) {
  const cmm_side *s = is_b ? &t->plan->b : &t->plan->a;
  return cmm_is_held(t->p, s) ? cmm_rounds(t->plan, s) : 0;
}

// One copy from memory, if `in` (NULL: in any case): to that place of the tile, or to a register.
static void put_copy(const copy_text *c, bool held, const char *in, const char *from,
                     const char *to) {
  ir_arena *a = c->t->p->p.arena;
  int bytes = cmm_element_bytes(c->t->p);
  if (in)
    ir_buf_printf(c->t->out, "        const bool in = %s;\n", in);
  if (held)
    ir_buf_printf(c->t->out, "        %s_next[s] = %sk_take(%s)%s;\n", c->name, in ? "in ? " : "",
                  from,
                  !in          ? ""
                  : bytes == 2 ? " : (uint16_t)0"
                               : " : 0");
  else
    ir_buf_printf(c->t->out, "        k_async_%d(%s, %s, %s);\n", c->side->vec * bytes, to,
                  in ? ir_format(a, "in ? %s : %s", from, c->name) : from, in ? "in" : "true");
}

// How far copies are unrolled: all the way, but that an operand whose rows or steps of k do not
// follow on each other (windows, heads) has places to work out, which would take the registers of
// the sums. Registers that hold elements have constant indices.
static const char *unrolled(const copy_text *c, bool held) {
  enum { MAX_WORKED_OUT = 8, MAX_BY_WGMMA = 2 }; // which has more sums
  bool worked_out = c->o->x.num > 1 || c->o->k.num > 1;
  int most = c->t->plan->wgmma ? MAX_BY_WGMMA : MAX_WORKED_OUT;
  return worked_out && !held && c->rounds > most ? ir_format(c->t->p->p.arena, " %d", most) : "";
}

static void open_rounds(const copy_text *c, bool held) {
  ir_buf_printf(c->t->out,
                "      #pragma unroll%s\n"
                "      for (int s = 0; s < %d; s++) {\n"
                "        const int i = thread + s * %d;\n",
                unrolled(c, held), c->rounds, c->t->plan->threads);
  if (c->ragged)
    ir_buf_printf(c->t->out, "        if (i >= %d)\n          break;\n",
                  c->side->x * c->t->plan->bk / c->side->vec);
  put_place(c);
}

static void put_worked_out_copies(const copy_text *c, bool held) {
  ir_arena *a = c->t->p->p.arena;
  const cmm_text *t = c->t;
  open_rounds(c, held);
  ir_buf_printf(t->out, "        const %s at_x = %s + x, at_k = next * %d + k;\n", t->index, c->x0,
                t->plan->bk);
  put_copy(c, held,
           inside(c, ir_format(a, "at_x < %lld", ll(c->size)),
                  ir_format(a, "at_k < %lld", ll(t->p->p.k))),
           source(c), ir_format(a, "%s_begin + (%s)", c->name, place(c)));
  ir_buf_puts(t->out, "      }\n");
}

// --- regular copies ---------------------------------------------------------------------------
static int64_t stride_of(const mm_axes *axes) {
  return axes->num ? axes->stride[0] : 0;
}

// Elements of memory from a round to the next.
static int64_t memory_step(const copy_text *c) {
  return c->apart * stride_of(c->side->layout == CMM_XK ? &c->o->x : &c->o->k);
}

// Of turned rows: how far round s is from the first one along x, and along k.
static const char *turned_x(const copy_text *c) {
  return c->per_eight > 1 ? ir_format(c->t->p->p.arena, "s %% %d * %d", c->per_eight, c->apart)
                          : "0";
}

static const char *turned_k(const copy_text *c) {
  int rows = c->apart > c->side->x ? c->apart / c->side->x : 1; // groups of eight k in a round
  return c->per_eight > 1 ? ir_format(c->t->p->p.arena, "s / %d * %d", c->per_eight, TURNED_K)
                          : ir_format(c->t->p->p.arena, "s * %d", rows * TURNED_K);
}

// From the first round to round s of the tile: "s * 1312"; of rounds shorter than a group of 8 rows
// "s * 160 + s / 2 * 4".
static const char *round_place(const copy_text *c) {
  ir_arena *a = c->t->p->p.arena;
  if (c->side->turned)
    return ir_format(a, "%s + %s * %d", turned_x(c), turned_k(c), c->side->pitch);
  int rows = c->apart * c->side->pitch, skew = c->side->layout == CMM_XK ? c->side->skew : 0;
  if (skew == 0 || c->apart % 8 == 0)
    return ir_format(a, "s * %d", rows + c->apart / 8 * skew);
  return ir_format(a, "s * %d + s / %d * %d", rows, 8 / c->apart, skew);
}

// By wgmma, as [k][x]: the same of blocks of 64 neighbours along x, one after the other.
static const char *block_x(const copy_text *c) {
  return c->side->x > CMM_ROW ? ir_format(c->t->p->p.arena, "s / %d * %d", c->per_block, CMM_ROW)
                              : "0";
}

static const char *block_k(const copy_text *c) {
  return ir_format(c->t->p->p.arena, "s %% %d * %d", c->per_block, c->apart);
}

// Whether round s lies in the operand; NULL: it does. Rounds go along x or along k.
static const char *round_inside(const copy_text *c) {
  ir_arena *a = c->t->p->p.arena;
  bool along_x = c->side->layout == CMM_XK;
  const char *n = c->name, *s = ir_format(a, "s * %d < ", c->apart);
  if (c->per_block)
    return inside(c, ir_format(a, "%s < %s_left", block_x(c), n),
                  ir_format(a, "%s < %lld - next * %d - %s_k", block_k(c), ll(c->t->p->p.k),
                            c->t->plan->bk, n));
  if (c->side->turned)
    return inside(c, ir_format(a, "%s < %s_left", turned_x(c), n),
                  ir_format(a, "%s < %lld - next * %d - %s_k", turned_k(c), ll(c->t->p->p.k),
                            c->t->plan->bk, n));
  return inside(c, ir_format(a, "%s%s_left", along_x ? s : "0 < ", n),
                ir_format(a, "%s%lld - next * %d - %s_k", along_x ? "0 < " : s, ll(c->t->p->p.k),
                          c->t->plan->bk, n));
}

// Eight threads copy eight k of a row, which is 32 bytes of memory, a warp those of four rows: 32 banks.
static void put_turned_place(const copy_text *c) {
  ir_buf *out = c->t->out;
  const char *n = c->name;
  if (c->apart <= c->side->x)
    ir_buf_printf(out, "  const int %s_x = thread / %d, %s_k = thread %% %d;\n", n, TURNED_K, n,
                  TURNED_K);
  else
    ir_buf_printf(out,
                  "  const int %s_x = thread / %d %% %d, %s_k = thread / %d * %d + thread %% %d;\n",
                  n, TURNED_K, c->side->x, n, TURNED_K * c->side->x, TURNED_K, TURNED_K);
}

// From the first round to round s in memory, in elements.
static const char *round_from(const copy_text *c) {
  ir_arena *a = c->t->p->p.arena;
  if (c->per_block)
    return ir_format(a, "%s * %lldll + %s * %lldll", block_x(c), ll(stride_of(&c->o->x)),
                     block_k(c), ll(stride_of(&c->o->k)));
  if (!c->side->turned)
    return ir_format(a, "s * %lldll", ll(memory_step(c)));
  return ir_format(a, "%s * %lldll + %s * %lldll", turned_x(c), ll(stride_of(&c->o->x)),
                   turned_k(c), ll(stride_of(&c->o->k)));
}

// By wgmma, elements on their way: rows that are fewer than eight apart have their units exchanged otherwise.
//   const int a_at[2] = {a_x * 64 + (a_k / 8 ^ a_x % 8) * 8 + a_k % 8, (a_x + 4) * 64 + ...};
static void put_kinds(const copy_text *c, const char *x, const char *k) {
  ir_arena *a = c->t->p->p.arena;
  bool along_k = c->side->layout == CMM_XK;
  ir_buf_printf(c->t->out, "  const int %s_at[%d] = {", c->name, c->kinds);
  for (int i = 0; i < c->kinds; i++) {
    const char *row = ir_format(a, "(%s + %d)", along_k ? x : k, i * c->apart);
    ir_buf_printf(c->t->out, "%s%s", i ? ", " : "",
                  along_k ? place_in_tile(c, row, k) : place_in_tile(c, x, row));
  }
  ir_buf_puts(c->t->out, "};\n");
}

void cmm_emit_copy_places(const cmm_text *t, bool is_b) {
  copy_text c = describe(t, is_b);
  if (!c.regular)
    return;
  ir_arena *a = t->p->p.arena;
  bool held = cmm_held(t, is_b) > 0, along_k = c.side->layout == CMM_XK;
  const char *n = c.name, *x = ir_format(a, "%s_x", n), *k = ir_format(a, "%s_k", n);
  const char *times = c.side->vec > 1 ? ir_format(a, " * %d", c.side->vec) : "";
  if (c.side->turned)
    put_turned_place(&c);
  else
    ir_buf_printf(t->out, "  const int %s_%c = thread / %d, %s_%c = thread %% %d%s;\n", n,
                  along_k ? 'x' : 'k', c.per_row, n, along_k ? 'k' : 'x', c.per_row, times);
  if (c.kinds)
    put_kinds(&c, x, k);
  else if (held)
    ir_buf_printf(t->out, "  const int %s_at = %s;\n", n, place_in_tile(&c, x, k));
  else
    ir_buf_printf(t->out, "  const k_place<%s> %s_to = %s_begin + (%s);\n", cmm_element(t), n, n,
                  place_in_tile(&c, x, k));
  ir_buf_printf(t->out,
                "  const %s *%s_from = %s + (%s + %s) * %lld + (%s)(first * %d + %s) * %lld;\n",
                c.o->ctype, n, n, c.x0, x, ll(stride_of(&c.o->x)), t->index, t->plan->bk, k,
                ll(stride_of(&c.o->k)));
  const char *left = c.size < INT32_MAX ? "int" : "int64_t";
  if (cut_along_x(&c))
    ir_buf_printf(t->out, "  const %s %s_left = (%s)(%lld - %s - %s);\n", left, n, left, ll(c.size),
                  c.x0, x);
}

static void open_regular_rounds(const copy_text *c) {
  ir_buf_printf(c->t->out,
                "      #pragma unroll\n"
                "      for (int s = 0; s < %d; s++) {\n",
                c->rounds);
  if (c->ragged)
    ir_buf_printf(c->t->out, "        if (thread + s * %d >= %d)\n          break;\n",
                  c->t->plan->threads, c->side->x * c->t->plan->bk / c->side->vec);
}

static void put_regular_copies(const copy_text *c, bool held) {
  ir_arena *a = c->t->p->p.arena;
  const char *n = c->name;
  open_regular_rounds(c);
  put_copy(c, held, round_inside(c), ir_format(a, "%s_from + (%s)", n, round_from(c)),
           ir_format(a, "%s_to + (put * %d + %s)", n, c->side->elems, round_place(c)));
  ir_buf_printf(c->t->out, "      }\n      %s_from += %lldll;\n", n,
                ll(c->t->plan->bk * stride_of(&c->o->k)));
}

// --- both -------------------------------------------------------------------------------------
void cmm_emit_copy(const cmm_text *t, bool is_b) {
  copy_text c = describe(t, is_b);
  bool held = cmm_held(t, is_b) > 0;
  if (c.regular) {
    put_regular_copies(&c, held);
    return;
  }
  put_worked_out_copies(&c, held);
}

void cmm_emit_arrival(const cmm_text *t, bool is_b) {
  copy_text c = describe(t, is_b);
  if (cmm_held(t, is_b) == 0)
    return;
  if (c.regular) {
    open_regular_rounds(&c);
    if (c.kinds)
      ir_buf_printf(
          t->out,
          "        %s_tiles[%s_at[s %% %d] + (put * %d + s / %d * %d)] = %s_next[s];\n      }\n",
          c.name, c.name, c.kinds, c.side->elems, c.kinds, 8 * CMM_ROW, c.name);
    else
      ir_buf_printf(t->out, "        %s_tiles[%s_at + (put * %d + %s)] = %s_next[s];\n      }\n",
                    c.name, c.name, c.side->elems, round_place(&c), c.name);
    return;
  }
  open_rounds(&c, true);
  ir_buf_printf(t->out, "        %s_tiles[%s] = %s_next[s];\n      }\n", c.name, place(&c), c.name);
}
