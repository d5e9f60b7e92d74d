// cpu_matmul_amx_pack.c: copies of operands for a matrix unit.
//
// A block of a panel is 32 rows (columns of b) x 32 steps of k. Mostly memory holds it in lines that are equally far
// apart, along k or across it, and k_put_panel copies it as it is, or turned. Windows of images, whose lines are runs of channels
// here and there, are gathered first, a line from whatever parts of runs are in it:
//
//   static void mm_put_a(const uint16_t *all, int64_t line, int64_t count, int64_t first, int64_t steps, uint32_t *panel) {
//     int64_t lines[32], num;
//     k_part parts[3];
//     for lines of the panel: lines[i] = where line i begins
//     for (int64_t k = first; k < first + steps; k += 32, panel += K_BLOCK_WORDS) {
//       for runs of the block: parts[num++] = how far it lies from there, and which 32nds it is
//       k_gather(all, lines, count, parts, num, edge);
//       k_put_block(edge, 32, K_ALONG, 0, panel);
#include "codegen/cpu_matmul_amx.h"

#include <string.h>

enum { LEAST_RUN = 3 }; // others take longer to gather than vectors do to multiply
// Measured: to pack a number, one that must be turned, one of a line that must be gathered, for each part of the line.
static const double PACK_CYCLES = 0.15, TURN_CYCLES = 0.2, PART_CYCLES = 0.12;

static const char *const layout_names[] = {"K_ALONG", "K_ACROSS", "K_PAIRED"};

// --- how memory holds an operand ---------------------------------------------------------------------------------
// Of the last part of an axis, or one before it.
static int64_t stride_of(const mm_axes *axes, int before) {
  int i = axes->num - 1 - before;
  return i >= 0 ? axes->stride[i] : 0;
}

// Blocks that begin at a multiple of `size` stay in one run of this part.
static bool is_even(const mm_axes *axes, int before, int64_t size) {
  int i = axes->num - 1 - before;
  return i <= 0 || axes->size[i] % size == 0;
}

// As pass_pair_panels puts them: two steps of k side by side.
static bool is_paired(const mm_operand *o) {
  int last = o->k.num - 1;
  return last > 0 && o->k.size[last] == 2 && o->k.stride[last] == 1 && stride_of(&o->x, 0) == 2 &&
         is_even(&o->k, 1, MM_AMX_TILE / 2);
}

// Neighbours in memory, as far as a block looks.
static int64_t run_of(const mm_axes *axes) {
  int64_t size = axes->num > 1 ? axes->size[axes->num - 1] : MM_AMX_TILE;
  return size < MM_AMX_TILE ? size : MM_AMX_TILE;
}

// Parts of runs that a line of a block may have.
static int64_t most_parts(const mm_axes *axes) {
  int64_t run = axes->num ? axes->size[axes->num - 1] : 1;
  return run % MM_AMX_TILE == 0 || axes->num <= 1 ? 1
         : MM_AMX_TILE % run == 0                 ? MM_AMX_TILE / run
                                                  : (MM_AMX_TILE - 2) / run + 2;
}

bool mm_amx_find_side(const mm_operand *o, amx_side *s) {
  if (!o->convert || strcmp(o->convert, "bf16") != 0)
    return false;
  if (is_paired(o)) {
    *s = (amx_side){AMX_PAIRED, stride_of(&o->k, 1), MM_AMX_TILE};
    return is_even(&o->x, 0, MM_AMX_TILE);
  }
  int64_t x = stride_of(&o->x, 0), k = stride_of(&o->k, 0);
  bool even = is_even(&o->x, 0, MM_AMX_TILE) && is_even(&o->k, 0, MM_AMX_TILE);
  if (k == 1)
    *s = (amx_side){AMX_ALONG, even ? x : 0, run_of(&o->k)};
  else
    *s = (amx_side){AMX_ACROSS, even ? k : 0, run_of(&o->x)};
  return (k == 1 || x == 1) && s->run >= LEAST_RUN;
}

// Lines in memory become lines of tiles: rows of a, steps of b.
static bool is_turned(const amx_side *s, bool of_b) {
  return of_b == (s->how == AMX_ALONG);
}

double mm_amx_pack_cycles(const mm_operand *o, bool of_b) {
  amx_side s = {0};
  mm_amx_find_side(o, &s);
  double parts = s.pitch ? 0 : (double)most_parts(s.how == AMX_ALONG ? &o->k : &o->x);
  return PACK_CYCLES + (is_turned(&s, of_b) ? TURN_CYCLES : 0) + PART_CYCLES * parts;
}

// --- text ----------------------------------------------------------------------------------------------------------
static void put_offsets(const mm_text *t, const char *indent, const char *num, const mm_axes *axes,
                        const char *first) {
  const char *index = ir_format(t->p->arena, "(%s + i)", first);
  ir_buf_printf(t->out, "%sfor (int64_t i = 0; i < %s; i++)\n%s  lines[i] = %s;\n", indent, num,
                indent, mm_offset(t->p->arena, axes, index));
}

// The parts of runs that numbers [first, first + count) along an axis are.
static void put_parts(const mm_text *t, const char *in, const mm_axes *axes, const char *first,
                      const char *count) {
  mm_axes outer = *axes;
  long long run = axes->num ? (long long)outer.size[--outer.num] : 1;
  ir_buf_printf(t->out,
                "%snum = 0;\n"
                "%sfor (int64_t i = 0, some; i < %s; i += some, num++) {\n"
                "%s  const int64_t run = (%s + i) / %lld, at = (%s + i) %% %lld;\n"
                "%s  some = %lld - at < %s - i ? %lld - at : %s - i;\n"
                "%s  parts[num] = (k_part){%s + at - i, k_part_mask(i, some)};\n"
                "%s}\n",
                in, in, count, in, first, run, first, run, in, run, count, run, count, in,
                outer.num ? mm_offset(t->p->arena, &outer, "run") : "run * 0", in);
}

// Rows along k have lines of their own, and parts of runs in each block; steps across it the other way round.
static void put_gathering(const mm_text *t, const mm_operand *o, const amx_side *s, bool of_b) {
  bool along = s->how == AMX_ALONG;
  ir_buf_printf(t->out,
                "  uint16_t edge[32 * 32] __attribute__((aligned(64)));\n"
                "  int64_t lines[32], num;\n"
                "  k_part parts[%lld];\n",
                (long long)most_parts(along ? &o->k : &o->x));
  if (along)
    put_offsets(t, "  ", "count", &o->x, "line");
  else
    put_parts(t, "  ", &o->x, "line", "count");
  ir_buf_puts(t->out,
              "  for (int64_t k = first; k < first + steps; k += 32, panel += K_BLOCK_WORDS) {\n"
              "    const int64_t left = first + steps - k < 32 ? first + steps - k : 32;\n");
  if (along)
    put_parts(t, "    ", &o->k, "k", "left");
  else
    put_offsets(t, "    ", "left", &o->k, "k");
  ir_buf_printf(t->out,
                "    k_gather(all, lines, %s, parts, num, edge);\n"
                "    k_put_block(edge, 32, %s, %d, panel);\n"
                "  }\n",
                along ? "count" : "left", layout_names[s->how], is_turned(s, of_b));
}

static void put_lines(const mm_text *t, const mm_operand *o, const amx_side *s, bool of_b) {
  ir_arena *a = t->p->arena;
  const char *how = ir_format(a, "%lld, %s, %d, count", (long long)s->pitch, layout_names[s->how],
                              is_turned(s, of_b));
  ir_buf_printf(t->out, "  const uint16_t *const from = all + %s;\n", mm_offset(a, &o->x, "line"));
  if (o->k.num <= 1)
    ir_buf_printf(t->out, "  k_put_panel(from + first * %lld, %s, steps, panel);\n",
                  (long long)stride_of(&o->k, 0), how);
  else // in parts: block by block
    ir_buf_printf(
        t->out,
        "  for (int64_t k = first; k < first + steps; k += 32, panel += K_BLOCK_WORDS)\n"
        "    k_put_panel(from + %s, %s, first + steps - k < 32 ? first + steps - k : 32, panel);\n",
        mm_offset(a, &o->k, "k"), how);
}

void mm_amx_emit_put(const mm_text *t, bool of_b) {
  const mm_operand *o = of_b ? &t->p->b : &t->p->a;
  amx_side s;
  mm_amx_find_side(o, &s);
  ir_buf_printf(t->out,
                "static __attribute__((noinline)) void %s_put_%s(const uint16_t *all, int64_t "
                "line, int64_t count, "
                "int64_t first, int64_t steps, uint32_t *panel) {\n",
                t->name, of_b ? "b" : "a");
  if (s.pitch)
    put_lines(t, o, &s, of_b);
  else
    put_gathering(t, o, &s, of_b);
  ir_buf_puts(t->out, "}\n\n");
}
