// cuda_matmul_copy.c: text: operands from global to shared memory, without passing registers.
//
//   for (int s = 0; s < 2; s++) {                        // a[512,784] as [x][k], 256 threads
//     const int i = thread + s * 256, x = i / 4, k = i % 4 * 4;
//     const int at_x = m0 + x, at_k = next * 16 + k;
//     const bool in = at_x < 512;
//     k_async_16(a_tiles.at(slot * 2624 + x * 20 + x / 8 * 4 + k), a + at_x * 784 + at_k, in);
//   }
//
// Neighbouring threads copy neighbours in memory. What lies outside the operand becomes zeros, so
// that products need no tests.
#include "codegen/cuda_matmul.h"

static long long ll(int64_t v) {
  return (long long)v;
}

// What the copies of one operand are made of.
typedef struct copy_text {
  const cmm_text *t;
  const cmm_side *side;
  const mm_operand *o;
  const char *name, *x0; // "a", "m0"
  int64_t size;          // of x: m or n
  int per_row, rounds;   // copies of a row of the tile, of a thread
  bool ragged;           // not all threads have a copy in the last round
} copy_text;

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
  c.rounds = (copies + g->threads - 1) / g->threads;
  c.ragged = copies % g->threads != 0;
  return c;
}

// Where in the tile, and where in the operand.
static void put_place(const copy_text *c) {
  const char *inner = c->side->layout == CMM_XK ? "k" : "x";
  const char *outer = c->side->layout == CMM_XK ? "x" : "k";
  const char *times = c->side->vec > 1 ? ir_format(c->t->p->p.arena, " * %d", c->side->vec) : "";
  ir_buf_printf(c->t->out,
                "        const int %s = i / %d, %s = i %% %d%s;\n"
                "        const %s at_x = %s + x, at_k = next * %d + k;\n",
                outer, c->per_row, inner, c->per_row, times, c->t->index, c->x0, c->t->plan->bk);
}

// "at_x < 500 && at_k < 784"; NULL: it always is.
static const char *inside(const copy_text *c) {
  ir_arena *a = c->t->p->p.arena;
  int64_t k = c->t->p->p.k;
  const char *x =
      c->size == 0 || c->size % c->side->x ? ir_format(a, "at_x < %lld", ll(c->size)) : NULL;
  const char *in_k = k % c->t->plan->bk ? ir_format(a, "at_k < %lld", ll(k)) : NULL;
  return x && in_k ? ir_format(a, "%s && %s", x, in_k) : x ? x : in_k;
}

// "slot * 2624 + x * 20 + x / 8 * 4 + k"
static const char *place(const copy_text *c) {
  const cmm_side *s = c->side;
  ir_arena *a = c->t->p->p.arena;
  if (s->layout == CMM_KX)
    return ir_format(a, "slot * %d + k * %d + x", s->elems, s->pitch);
  return ir_format(a, "slot * %d + x * %d + x / 8 * %d + k", s->elems, s->pitch, s->skew);
}

static const char *source(const copy_text *c) {
  ir_arena *a = c->t->p->p.arena;
  return ir_format(a, "%s + %s + %s", c->name, mm_offset(a, &c->o->x, "at_x"),
                   mm_offset(a, &c->o->k, "at_k"));
}

// There is no asynchronous copy of one f64, nor of 2 bytes.
static void put_copy(const copy_text *c) {
  ir_arena *a = c->t->p->p.arena;
  const char *in = inside(c), *from = source(c), *to = place(c);
  int bytes = c->side->vec * cmm_element_bytes(c->t->p);
  const char *zero = bytes == 2 ? " : (uint16_t)0" : " : 0";
  if (in)
    ir_buf_printf(c->t->out, "        const bool in = %s;\n", in);
  if (bytes == 8 || bytes == 2)
    ir_buf_printf(c->t->out, "        %s_tiles[%s] = %sk_take(%s)%s;\n", c->name, to,
                  in ? "in ? " : "", from, in ? zero : "");
  else
    ir_buf_printf(c->t->out, "        k_async_%d(%s_tiles.at(%s), %s, %s);\n", bytes, c->name, to,
                  in ? ir_format(a, "in ? %s : %s", from, c->name) : from, in ? "in" : "true");
}

// How far copies are unrolled: all the way, but that an operand whose rows or steps of k do not
// follow on each other (windows, heads) has places to work out, which would take the registers of
// the sums.
static const char *unrolled(const copy_text *c) {
  enum { MAX_WORKED_OUT = 8 };
  bool worked_out = c->o->x.num > 1 || c->o->k.num > 1;
  return worked_out && c->rounds > MAX_WORKED_OUT
             ? ir_format(c->t->p->p.arena, " %d", MAX_WORKED_OUT)
             : "";
}

void cmm_emit_copy(const cmm_text *t, bool is_b) {
  copy_text c = describe(t, is_b);
  ir_buf_printf(t->out,
                "      #pragma unroll%s\n"
                "      for (int s = 0; s < %d; s++) {\n"
                "        const int i = thread + s * %d;\n",
                unrolled(&c), c.rounds, t->plan->threads);
  if (c.ragged)
    ir_buf_printf(t->out, "        if (i >= %d)\n          break;\n",
                  c.side->x * t->plan->bk / c.side->vec);
  put_place(&c);
  put_copy(&c);
  ir_buf_puts(t->out, "      }\n");
}
