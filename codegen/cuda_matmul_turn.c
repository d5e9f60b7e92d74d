// cuda_matmul_turn.c: operands that lie along k, turned by a kernel of their own.
//
//   c[8192,3072] = a[8192,768] b[768,3072], b as [x][k] in memory (NT: gradients of activations)
//     NAME_0    b turned, to the workspace: [768][3072]                        a hundredth of the time
//     NAME_1    the product, of a as [x][k] and b as [k][x]
//
// FMAs are fed best when both operands lie along their rows and columns: a thread then holds operands of one k
// at a time, in few registers, and ptxas finds more of them where the FMA before has left them
// (cuda_matmul_tile.c). NN takes 7% longer than TN on an H100, NT 21%, whatever is tried with their tiles. To turn
// an operand takes as long as to read and write it once, and the others of its product read it that often: 1/60
// of a product's time per thousand rows of the other operand. Copies that turn it on the way to shared memory, 4
// bytes at a time, took 6 cycles of the SM for each warp: more than there was to win.
//
// What is turned takes memory: as much as stays in the second cache of a large chip until the product reads it, or an
// eighth of the product's own (logits, of an embedding with many rows).
#include "codegen/cuda_matmul.h"

enum {
  TURN = 32,             // rows and columns of a block
  TURN_THREADS = 256,    // of which each has TURN * TURN / TURN_THREADS elements
  MOST_BYTES = 32 << 20, // of an operand
  OF_PRODUCT = 8,        // or this part of the product
};
static const double BYTES_PER_CYCLE = 12; // of an SM, read and written

static const mm_operand *operand(const mm_problem *p, int side) {
  return side ? &p->b : &p->a;
}

static int64_t size_of(const mm_problem *p, int side) {
  return side ? p->n : p->m;
}

// Elements of a row when it is turned: whole vectors, the last one filled up with zeros.
static int64_t row_of(const mm_problem *p, int side) {
  return ir_ceil_div(size_of(p, side), CMM_VL) * CMM_VL;
}

static int64_t bytes_of(const mm_problem *p, int side) {
  return row_of(p, side) * p->k * p->elem_bytes;
}

// Up to where something else may begin.
static int64_t whole(int64_t bytes) {
  return ir_ceil_div(bytes, CMM_TURN_ALIGN) * CMM_TURN_ALIGN;
}

static int64_t most_bytes(const cmm_problem *p) {
  int64_t of_product = p->p.m * p->p.n * p->p.elem_bytes / OF_PRODUCT;
  return of_product > MOST_BYTES ? of_product : MOST_BYTES;
}

// Neighbours are neighbours along k.
static bool may_turn(const cmm_problem *p, int side) {
  const mm_operand *o = operand(&p->p, side);
  bool lies_along_k = o->x.num == 1 && o->k.num == 1 && o->k.stride[0] == 1 && o->x.stride[0] > 1;
  return p->math == MM_F32 && p->p.elem_bytes == 4 && p->p.batch == 1 && lies_along_k &&
         bytes_of(&p->p, side) <= most_bytes(p);
}

double cmm_turn_cycles(const cmm_problem *p, const bool turned[2]) {
  double cycles = 0;
  for (int side = 0; side < 2; side++)
    if (turned[side])
      cycles += CMM_LAUNCH_CYCLES +
                2 * (double)bytes_of(&p->p, side) / BYTES_PER_CYCLE / p->p.target->cuda->sms;
  return cycles;
}

cmm_problem cmm_turn(const cmm_problem *p, const bool turned[2], int64_t at) {
  cmm_problem q = *p;
  for (int side = 0; side < 2; side++) {
    if (!turned[side])
      continue;
    mm_operand *o = side ? &q.p.b : &q.p.a;
    o->arg = p->p.workspace_arg;
    o->offset = at / p->p.elem_bytes;
    o->begin = 0;
    o->begin_text = NULL;
    o->x.stride[0] = 1;
    o->x.size[0] = o->k.stride[0] = row_of(&p->p, side);
    at += whole(bytes_of(&p->p, side));
  }
  return q;
}

// Whether these operands can be turned.
bool cmm_try_turn(const cmm_problem *p, int which, bool turned[2]) {
  for (int side = 0; side < 2; side++) {
    turned[side] = which >> side & 1;
    if (turned[side] && !may_turn(p, side))
      return false;
  }
  return true;
}

void cmm_set_turn_phases(const cmm_problem *p, cmm_plan *g) {
  int num = g->turned[0] + g->turned[1];
  for (int i = g->num_phases - 1; i >= 0; i--) {
    g->tasks[i + num] = g->tasks[i];
    g->phase_threads[i + num] = g->phase_threads[i];
  }
  g->num_phases += num;
  g->turned_at = whole(g->workspace);
  for (int side = 0, phase = 0; side < 2; side++) {
    if (!g->turned[side])
      continue;
    g->tasks[phase] = ir_ceil_div(row_of(&p->p, side), TURN) * ir_ceil_div(p->p.k, TURN);
    g->phase_threads[phase++] = TURN_THREADS;
    g->workspace = whole(g->workspace) + whole(bytes_of(&p->p, side));
  }
}

// Rows of the tile are one element longer than they are: columns then lie in 32 banks.
static void emit_turn(const cmm_text *t, const mm_operand *from, const mm_operand *to, int64_t size,
                      int64_t row, const char *what, int phase) {
  const mm_problem *p = &t->p->p;
  int rows = TURN_THREADS / TURN, width = t->p->width + 1;
  long long blocks = ll(ir_ceil_div(row, TURN));
  ir_buf_printf(t->out,
                "// %s turned, for the product\n"
                "K_KERNEL(%s_%d, %d, %d) {\n"
                "  __shared__ k_array<float, %d> tile;\n"
                "  const float *const from = (const float *)args[%d]%s;\n"
                "  float *const to = (float *)args[%d] + %lld;\n"
                "  const int64_t x0 = task %% %lld * %d, k0 = task / %lld * %d;\n"
                "  const int row = (int)threadIdx.x / %d, lane = (int)threadIdx.x %% %d;\n",
                what, t->name, phase, TURN_THREADS, width, TURN * (TURN + 1), from->arg,
                mm_offset_text(p->arena, from), to->arg, ll(to->offset), blocks, TURN, blocks, TURN,
                TURN, TURN);
  ir_buf_printf(t->out,
                "  #pragma unroll\n"
                "  for (int i = row; i < %d; i += %d)\n"
                "    if (x0 + i < %lld && k0 + lane < %lld)\n"
                "      tile[i * %d + lane] = %sk_take(from + ((x0 + i) * %lld + k0 + lane));\n"
                "  __syncthreads();\n",
                TURN, rows, ll(row), ll(p->k), TURN + 1,
                size < row ? ir_format(p->arena, "x0 + i >= %lld ? 0 : ", ll(size)) : "",
                ll(from->x.stride[0]));
  ir_buf_printf(t->out,
                "  #pragma unroll\n"
                "  for (int i = row; i < %d; i += %d)\n"
                "    if (k0 + i < %lld && x0 + lane < %lld) {\n"
                "      const float x = tile[lane * %d + i];\n"
                "      k_put(to + ((k0 + i) * %lld + x0 + lane), x);\n"
                "    }\n"
                "}\n\n",
                TURN, rows, ll(p->k), ll(row), TURN + 1, ll(row));
}

void cmm_emit_turns(const cmm_text *t, const cmm_problem *as_it_is) {
  for (int side = 0, phase = 0; side < 2; side++)
    if (t->plan->turned[side])
      emit_turn(t, operand(&as_it_is->p, side), operand(&t->p->p, side),
                size_of(&as_it_is->p, side), row_of(&as_it_is->p, side), side ? "b" : "a", phase++);
}
