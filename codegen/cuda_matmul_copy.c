// cuda_matmul_copy.c: text: operands from global to shared memory.
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
//
// There is no asynchronous copy of 2 bytes, nor of one f64. Such elements are loaded to registers where
// others begin their copies, and stored after the products of the step, which hide the way from memory:
//
//     a_next[s] = in ? k_take(a + at_x * 50257 + at_k) : (uint16_t)0;
//     ...
//     a_tiles[slot * 2624 + x * 40 + x / 8 * 8 + k] = a_next[s];
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

// Where in the tile.
static void put_place(const copy_text *c) {
  const char *inner = c->side->layout == CMM_XK ? "k" : "x";
  const char *outer = c->side->layout == CMM_XK ? "x" : "k";
  const char *times = c->side->vec > 1 ? ir_format(c->t->p->p.arena, " * %d", c->side->vec) : "";
  ir_buf_printf(c->t->out, "        const int %s = i / %d, %s = i %% %d%s;\n", outer, c->per_row,
                inner, c->per_row, times);
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

// From the tile's begin, where that has a register (put_begin in cuda_matmul_core.c).
static const char *shared_place(const copy_text *c) {
  ir_arena *a = c->t->p->p.arena;
  return c->t->plan->math == MM_F32 ? ir_format(a, "%s_tiles.at(%s)", c->name, place(c))
                                    : ir_format(a, "%s_begin + (%s)", c->name, place(c));
}

int cmm_held(const cmm_text *t, bool is_b) {
  copy_text c = describe(t, is_b);
  int bytes = c.side->vec * cmm_element_bytes(t->p);
  return bytes == 8 || bytes == 2 ? c.rounds : 0;
}

// From memory: to the tile, or to registers.
static void put_copy(const copy_text *c, bool held) {
  ir_arena *a = c->t->p->p.arena;
  const char *in = inside(c), *from = source(c);
  int bytes = cmm_element_bytes(c->t->p);
  ir_buf_printf(c->t->out, "        const %s at_x = %s + x, at_k = next * %d + k;\n", c->t->index,
                c->x0, c->t->plan->bk);
  if (in)
    ir_buf_printf(c->t->out, "        const bool in = %s;\n", in);
  if (held)
    ir_buf_printf(c->t->out, "        %s_next[s] = %sk_take(%s)%s;\n", c->name, in ? "in ? " : "",
                  from,
                  !in          ? ""
                  : bytes == 2 ? " : (uint16_t)0"
                               : " : 0");
  else
    ir_buf_printf(c->t->out, "        k_async_%d(%s, %s, %s);\n", c->side->vec * bytes,
                  shared_place(c), in ? ir_format(a, "in ? %s : %s", from, c->name) : from,
                  in ? "in" : "true");
}

// How far copies are unrolled: all the way, but that an operand whose rows or steps of k do not
// follow on each other (windows, heads) has places to work out, which would take the registers of
// the sums. Registers that hold elements have constant indices.
static const char *unrolled(const copy_text *c, bool held) {
  enum { MAX_WORKED_OUT = 8 };
  bool worked_out = c->o->x.num > 1 || c->o->k.num > 1;
  return worked_out && !held && c->rounds > MAX_WORKED_OUT
             ? ir_format(c->t->p->p.arena, " %d", MAX_WORKED_OUT)
             : "";
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

void cmm_emit_copy(const cmm_text *t, bool is_b) {
  copy_text c = describe(t, is_b);
  bool held = cmm_held(t, is_b) > 0;
  open_rounds(&c, held);
  put_copy(&c, held);
  ir_buf_puts(t->out, "      }\n");
}

void cmm_emit_arrival(const cmm_text *t, bool is_b) {
  copy_text c = describe(t, is_b);
  if (cmm_held(t, is_b) == 0)
    return;
  open_rounds(&c, true);
  ir_buf_printf(t->out, "        %s_tiles[%s] = %s_next[s];\n      }\n", c.name, place(&c), c.name);
}
