// cuda_attention_tile.c: text: operands of a step to shared memory, and the products of a step.
//
//   [x][k]   both operands of a product in: 16 of the width, 20 floats a row, 4 more every 8 rows
//   [y][e]   values of a product out: 16 streamed rows
// What lies outside an operand is 0, so that products need no tests.
#include "codegen/cuda_attention.h"

// --- copies --------------------------------------------------------------------------------------
// Elements of a copy: 16 bytes of them, where they lie side by side in memory, aligned; or one.
static int elements_of_copy(const catt_piece *p) {
  const mm_axes *in = p->inner;
  int last = in->num - 1, unit = 16 / p->o->elem_bytes;
  bool fits = last >= 0 && in->stride[last] == 1 && in->size[last] % unit == 0 &&
              p->o->offset % unit == 0 && mm_all_multiples(in, last, unit) &&
              mm_all_multiples(p->line, p->line->num, unit) &&
              mm_all_multiples(&p->o->batch, p->o->batch.num, unit);
  return fits ? unit : 1;
}

static bool lies_along_lines(const catt_piece *p) {
  return p->line->num && p->line->stride[p->line->num - 1] == 1;
}

static void put_element(const catt_text *x, const catt_piece *p, int vec) {
  const char *times = vec > 1 ? ir_format(x->arena, " * %d", vec) : "";
  int per_line = p->length / vec;
  if (vec == 1 && lies_along_lines(p))
    ir_buf_printf(x->out, "    const int line = i %% %d, inner = i / %d;\n", p->lines, p->lines);
  else
    ir_buf_printf(x->out, "    const int line = i / %d, inner = i %% %d%s;\n", per_line, per_line,
                  times);
}

// Whether an element lies in the operand; NULL: all do.
static const char *inside(const catt_text *x, const catt_piece *p) {
  const char *line = p->num_lines % (p->apart ? p->apart : p->lines)
                         ? ir_format(x->arena, "at < %lld", ll(p->num_lines))
                         : NULL;
  const char *inner =
      p->num_inner % p->length ? ir_format(x->arena, "at_inner < %lld", ll(p->num_inner)) : NULL;
  return line && inner ? ir_format(x->arena, "%s && %s", line, inner) : line ? line : inner;
}

// There is no asynchronous copy of 2 bytes. Offsets are added up before they become addresses, which
// have twice their width.
static void put_copy(const catt_text *x, const catt_piece *p, int bytes) {
  const char *in = inside(x, p);
  const char *from =
      ir_format(x->arena, "%s + (%s + %s)", p->from, mm_offset(x->arena, p->line, "at"),
                mm_offset(x->arena, p->inner, "at_inner"));
  if (in)
    ir_buf_printf(x->out, "    const bool in = %s;\n", in);
  if (bytes == 2)
    ir_buf_printf(x->out, "    %s[%s] = %sk_take(%s)%s;\n", p->to, p->place, in ? "in ? " : "",
                  from, in ? " : (uint16_t)0" : "");
  else
    ir_buf_printf(x->out, "    k_async_%d(%s.at(0) + (%s), %s, %s);\n", bytes, p->to, p->place,
                  in ? ir_format(x->arena, "in ? %s : %s", from, p->from) : from,
                  in ? "in" : "true");
}

// Whole tiles take many copies: a few at a time, or their addresses take all registers.
void catt_emit_copies(const catt_text *x, const catt_piece *p) {
  int vec = elements_of_copy(p), copies = p->lines * p->length / vec, threads = x->t->threads;
  int rounds = (copies + threads - 1) / threads;
  ir_buf_printf(x->out, "  #pragma unroll%s\n  for (int s = 0; s < %d; s++) {\n",
                x->t->mma && rounds > 4 ? " 4" : "", rounds);
  ir_buf_printf(x->out, "    const int i = (int)threadIdx.x + s * %d;\n", threads);
  if (copies % threads)
    ir_buf_printf(x->out, "    if (i >= %d)\n      break;\n", copies);
  put_element(x, p, vec);
  ir_buf_printf(x->out, "    const %s at = %s + line, at_inner = %s + inner;\n", x->index, p->line0,
                p->inner0);
  put_copy(x, p, vec * p->o->elem_bytes);
  ir_buf_puts(x->out, "  }\n");
}

static void put_copy_in(const catt_text *x, int i) {
  const catt *t = x->t;
  const catt_in *in = &t->in[i];
  ir_buf_printf(x->out,
                "K_IN void %s_copy_in%d(k_array<float, %d> &steps, int slot, const float *own,\n"
                "    const float *streamed, %s x0, %s y0, int k0) {\n",
                x->name, i, 2 * t->step_elems, x->index, x->index);
  for (int side = 0; side < 2; side++) {
    const mm_operand *o = side ? &in->streamed : &in->own;
    catt_piece p = {.from = side ? "streamed" : "own",
                    .o = o,
                    .line = &o->x,
                    .inner = &o->k,
                    .line0 = side ? "y0" : "x0",
                    .inner0 = "k0",
                    .lines = side ? t->by : t->bx,
                    .length = CATT_STEP,
                    .num_lines = side ? t->y : t->x,
                    .num_inner = in->width,
                    .to = "steps"};
    p.place = ir_format(x->arena, "slot * %d + %d + line * %d + line / 8 * 4 + inner",
                        t->step_elems, side ? t->side_elems : 0, CATT_PITCH);
    catt_emit_copies(x, &p);
  }
  ir_buf_puts(x->out, "}\n");
}

static void put_copy_out(const catt_text *x, int i) {
  const catt *t = x->t;
  const catt_out *out = &t->out[i];
  int length = out->vectors * CATT_TX * CATT_VL;
  ir_buf_printf(
      x->out,
      "K_IN void %s_copy_out%d(k_array<float, %d> &steps, int slot, const float *values,\n"
      "    %s y0) {\n",
      x->name, i, 2 * t->step_elems, x->index);
  catt_piece p = {.from = "values",
                  .o = &out->values,
                  .line = &out->values.k,
                  .inner = &out->values.x,
                  .line0 = "y0",
                  .inner0 = "0",
                  .lines = CATT_STEP,
                  .apart = t->by,
                  .length = length,
                  .num_lines = t->y,
                  .num_inner = out->width,
                  .to = "steps"};
  p.place = ir_format(x->arena, "slot * %d + line * %d + inner", t->step_elems, length);
  catt_emit_copies(x, &p);
  ir_buf_puts(x->out, "}\n");
}

// --- products ------------------------------------------------------------------------------------
// Of four steps' turns, so that about so many products are straight-line code: longer code is
// compiled slowly, and loads so far ahead that registers run out.
static int unrolled(int vectors) {
  enum { MAX_UNROLLED = 512 };
  int turns = MAX_UNROLLED / (vectors * CATT_VL * 4);
  return turns < 1 ? 1 : turns > 4 ? 4 : turns;
}

static void put_scores(const catt_text *x) {
  const catt *t = x->t;
  int rows = CATT_TY * CATT_PITCH + CATT_TY / 8 * 4, columns = CATT_TX * CATT_VL;
  ir_buf_printf(
      x->out,
      "K_IN void %s_scores(vf (&s)[%d][%d], k_array<float, %d> &steps, int slot, int ty,"
      " int tx) {\n"
      "  const k_place<float> x_at = (steps.at(0) + (slot * %d + ty * %d + ty / 8 * 4)).held();\n"
      "  const k_place<float> y_at =\n"
      "      (steps.at(0) + (slot * %d + %d + tx * %d + tx / 2 * 4)).held();\n"
      "  #pragma unroll %d\n"
      "  for (int u = 0; u < %d; u += 4) {\n"
      "    vf x[%d];\n",
      x->name, t->rx, t->ry, 2 * t->step_elems, t->step_elems, CATT_PITCH, t->step_elems,
      t->side_elems, CATT_VL * CATT_PITCH, unrolled(t->rx * t->ry), CATT_STEP, t->rx);
  cuda_put_loop(x->out, 4, "i", t->rx);
  ir_buf_printf(x->out, "      x[i] = k_load4(x_at + (i * %d + u));\n", rows);
  ir_buf_printf(x->out, "    vf y[%d];\n", t->ry * CATT_VL);
  cuda_put_loop(x->out, 4, "j", t->ry * CATT_VL);
  ir_buf_printf(x->out, "      y[j] = k_load4(y_at + (j / 4 * %d + j %% 4 * %d + u));\n",
                columns * CATT_PITCH + columns / 8 * 4, CATT_PITCH);
  cuda_put_loop(x->out, 4, "k", 4);
  cuda_put_to_and_fro(x->out, 6, t->rx, t->ry * CATT_VL,
                      "s[i][at / 4][at % 4] += x[i][k] * y[at][k];");
  ir_buf_puts(x->out, "  }\n}\n");
}

static void put_out(const catt_text *x, int i) {
  const catt *t = x->t;
  int vectors = t->out[i].vectors, columns = CATT_TX * CATT_VL;
  ir_buf_printf(x->out,
                "K_IN void %s_out%d(vf (&out)[%d][%d], k_array<float, %d> &steps, int slot,\n"
                "    k_array<float, %d> &weights, int k0, int ty, int tx) {\n"
                "  const k_place<float> w_at = (weights.at(0) + (ty * %d + k0)).held();\n"
                "  const k_place<float> v_at = (steps.at(0) + (slot * %d + tx * %d)).held();\n"
                "  #pragma unroll %d\n"
                "  for (int u = 0; u < %d; u += 4) {\n"
                "    vf w[%d];\n",
                x->name, i, t->rx, vectors, 2 * t->step_elems, t->bx * t->weights_pitch,
                t->weights_pitch, t->step_elems, CATT_VL, unrolled(t->rx * vectors), CATT_STEP,
                t->rx);
  cuda_put_loop(x->out, 4, "i", t->rx);
  ir_buf_printf(x->out, "      w[i] = k_load4(w_at + (i * %d + u));\n", CATT_TY * t->weights_pitch);
  cuda_put_loop(x->out, 4, "k", 4);
  ir_buf_printf(x->out, "    {\n      vf v[%d];\n", vectors);
  cuda_put_loop(x->out, 6, "j", vectors);
  ir_buf_printf(x->out, "        v[j] = k_load4(v_at + ((u + k) * %d + j * %d));\n",
                vectors * columns, columns);
  cuda_put_to_and_fro(x->out, 6, t->rx, vectors * CATT_VL,
                      "out[i][at / 4][at % 4] += w[i][k] * v[at / 4][at % 4];");
  ir_buf_puts(x->out, "    }\n  }\n}\n");
}

void catt_emit_functions(const catt_text *x) {
  if (x->t->mma) {
    catt_emit_tensor_functions(x);
    return;
  }
  for (int i = 0; i < x->t->num_in; i++)
    put_copy_in(x, i);
  for (int i = 0; i < x->t->num_out; i++)
    put_copy_out(x, i);
  put_scores(x);
  for (int i = 0; i < x->t->num_out; i++)
    put_out(x, i);
}
