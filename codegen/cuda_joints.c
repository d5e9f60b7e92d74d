// cuda_joints.c: entries for calls side by side, and the tables of their calls.
//
//   K_ROWS_NEAR(joint_new) = {
//     9, 17, 18,                      // step: wte.new and 2 more: blocks so far
//     0, 606700, ..., 8320,           // wte.new
//     1, 158708, ..., 8192, 0,        // wpe.new
//     2, ...
//   };
//   // 3 calls of loop_new, loop_new_2, loop_new_3
//   K_JOINT(joint_new, 256, 13) {
//     K_CALLS(0, loop_new_0, 12, 1)
//     K_CALLS(1, loop_new_2_0, 11, 1)
//     K_CALLS(2, loop_new_3_0, 11, 1)
//   }
//
// The table is part of the file's image: a launch is not cut, however many calls it has (as
// parameters it has 4 KiB), and costs three numbers. Launches that have functions in common share
// an entry: all layers have one for the sums of their biases.
#include "codegen/cuda_launches.h"

#include <string.h>

enum { PLACE_BYTES = PLAN_ALIGN }; // K_PLACE of the prelude
static const uint32_t IN_BATCH = 0x80000000u;

static size_t num_buffers(const cg_kernel *c) {
  return c->in.num + c->out.num + (c->workspace > 0);
}

// --- which functions -------------------------------------------------------------------------
// What a launch asks of its entry.
typedef struct wanted {
  cg_parts parts;
  int threads, registers;
  int64_t blocks;
} wanted;

// Its number; that of all parts if it is none.
static size_t find_part(const cg_parts *parts, const cg_distinct *d) {
  size_t i = 0;
  while (i < parts->num && parts->at[i] != d)
    i++;
  return i;
}

static bool has_part(const cg_parts *parts, const cg_distinct *d) {
  return find_part(parts, d) < parts->num;
}

static void find_caller(const cg_program *p, cg_distinct *d) {
  for (size_t i = 0; i < p->joints.num && !d->only_in; i++)
    if (cuda_joint_has(p->joints.at[i], d)) {
      d->only_in = p->joints.at[i];
      d->part = find_part(&p->joints.at[i]->parts, d);
    }
}

// What no launch asks for would be compiled for nothing, by two compilers and for each architecture.
void cuda_find_called(cg_program *p) {
  for (size_t i = 0; i < p->distinct.num; i++)
    find_caller(p, p->distinct.at[i]);
  for (size_t i = 0; i < p->module->funcs.num; i++)
    for (size_t j = 0; j < p->launches[i].num; j++) {
      const cuda_launch *x = &p->launches[i].at[j];
      if (!x->transfer && !x->joint)
        p->shared[i][x->calls.at[0]->k->id]->only_in = NULL;
    }
}

bool cuda_joint_has(const cg_joint *j, const cg_distinct *d) {
  return has_part(&j->parts, d);
}

static wanted wanted_by(const cg_program *p, size_t func, const cuda_launch *x) {
  wanted w = {.threads = x->threads, .registers = x->registers, .blocks = x->blocks};
  for (size_t i = 0; i < x->calls.num; i++) {
    cg_distinct *d = p->shared[func][x->calls.at[i]->k->id];
    if (!has_part(&w.parts, d))
      IR_PUSH(p->arena, w.parts, d);
  }
  return w;
}

static size_t num_common(const cg_joint *j, const wanted *w) {
  size_t n = 0;
  for (size_t i = 0; i < w->parts.num; i++)
    n += has_part(&j->parts, w->parts.at[i]);
  return n;
}

// An entry that has some of the functions gets the others, too, so that bodies are compiled once
// more and not as often as launches combine them; unless one would take registers that others miss.
static bool will_do(const cg_program *p, const cg_joint *j, const wanted *w) {
  int registers = j->registers > w->registers ? j->registers : w->registers;
  int64_t blocks = j->blocks > w->blocks ? j->blocks : w->blocks;
  size_t common = num_common(j, w);
  bool same = common == w->parts.num && common == j->parts.num;
  return j->threads == w->threads && common > 0 &&
         (same || cuda_has_room(p->target->cuda, w->threads, registers, blocks));
}

static const char *new_name(const cg_program *p, const ir_kernel *k) {
  const char *base = cg_identifier(p, "joint", k), *name = base;
  for (size_t i = 0, n = 2; i < p->joints.num; i++)
    if (!strcmp(p->joints.at[i]->name, name)) {
      name = ir_format(p->arena, "%s_%zu", base, n++);
      i = (size_t)-1; // from the first again
    }
  return name;
}

static cg_joint *new_joint(cg_program *p, const wanted *w, const ir_kernel *k) {
  cg_joint *j = IR_NEW(p->arena, cg_joint);
  *j = (cg_joint){.name = new_name(p, k), .threads = w->threads, .rows = ir_buf_new(p->arena)};
  IR_PUSH(p->arena, p->joints, j);
  return j;
}

static cg_joint *find_joint(const cg_program *p, const wanted *w) {
  for (size_t i = 0; i < p->joints.num; i++)
    if (will_do(p, p->joints.at[i], w))
      return p->joints.at[i];
  return NULL;
}

void cuda_choose_joint(cg_program *p, size_t func, cuda_launch *x) {
  wanted w = wanted_by(p, func, x);
  cg_joint *j = find_joint(p, &w);
  x->joint = j = j ? j : new_joint(p, &w, x->calls.at[0]->k);
  j->num_calls += x->calls.num;
  j->registers = w.registers > j->registers ? w.registers : j->registers;
  j->blocks = w.blocks > j->blocks ? w.blocks : j->blocks;
  for (size_t i = 0; i < w.parts.num; i++) {
    const cg_kernel *c = w.parts.at[i]->uses.at[0];
    size_t width = num_buffers(c) + c->numbers.num;
    j->widest = width > j->widest ? width : j->widest;
    if (!has_part(&j->parts, w.parts.at[i]))
      IR_PUSH(p->arena, j->parts, w.parts.at[i]);
  }
}

// --- rows ------------------------------------------------------------------------------------
typedef struct table {
  const cg_program *p;
  const plan *plan;
  const ir_func *f;
  size_t func;
  const int64_t *workspace;
  cg_joint *j;
} table;

static void put_word(table *t, uint32_t word) {
  ir_buf_printf(&t->j->rows, " %u,", (unsigned)word);
  t->j->num_words++;
}

static void put_place(table *t, int64_t at, bool in_batch) {
  BUG_IF(at < 0 || at % PLACE_BYTES || at / PLACE_BYTES >= IN_BATCH, "a buffer at %lld",
         (long long)at);
  put_word(t, (uint32_t)(at / PLACE_BYTES) | (in_batch ? IN_BATCH : 0));
}

static void put_node(table *t, const ir_node *n) {
  put_place(t, plan_offset(t->plan, t->f, n), n->op == IR_INPUT);
}

static uint32_t part_of(const table *t, const cg_kernel *c) {
  size_t part = find_part(&t->j->parts, t->p->shared[t->func][c->k->id]);
  BUG_IF(part == t->j->parts.num, "%s is not in %s", c->k->name, t->j->name);
  return (uint32_t)part;
}

static void put_row(table *t, const cg_kernel *c) {
  size_t first = t->j->num_words;
  ir_buf_puts(&t->j->rows, " ");
  put_word(t, part_of(t, c));
  for (size_t i = 0; i < c->in.num; i++)
    put_node(t, c->in.at[i]);
  for (size_t i = 0; i < c->out.num; i++)
    put_node(t, c->out.at[i]);
  if (c->workspace > 0)
    put_place(t, t->workspace[c->k->id], false);
  for (size_t i = 0; i < c->numbers.num; i++)
    put_word(t, (uint32_t)c->numbers.at[i]);
  while (t->j->num_words - first < 1 + t->j->widest)
    put_word(t, 0);
  ir_buf_printf(&t->j->rows, " // %s\n", c->k->name);
}

static void put_ends(table *t, const cuda_launch *x) {
  int64_t end = 0;
  ir_buf_printf(&t->j->rows, "  // %s: %s and %zu more; blocks so far, then a row for each\n ",
                t->f->name, x->calls.at[0]->k->name, x->calls.num - 1);
  for (size_t i = 0; i < x->calls.num; i++) {
    end += x->calls.at[i]->tasks[0];
    put_word(t, (uint32_t)end);
  }
  ir_buf_puts(&t->j->rows, "\n");
}

void cuda_put_rows(const cg_program *p, const plan *plan, const int64_t *workspaces, size_t func,
                   cuda_launch *x) {
  table t = {.p = p,
             .plan = plan,
             .f = p->module->funcs.at[func],
             .func = func,
             .workspace = workspaces,
             .j = x->joint};
  x->first = t.j->num_words;
  put_ends(&t, x);
  for (size_t i = 0; i < x->calls.num; i++)
    put_row(&t, x->calls.at[i]);
}

// --- text ------------------------------------------------------------------------------------
const char *cuda_describe_joint(const cg_program *p, const cg_joint *j) {
  enum { SHOWN = 4 };
  ir_buf b = ir_buf_new(p->arena);
  ir_buf_printf(&b, "%zu calls of", j->num_calls);
  for (size_t i = 0; i < j->parts.num && i < SHOWN; i++)
    ir_buf_printf(&b, "%s %s", i ? "," : "", j->parts.at[i]->name);
  if (j->parts.num > SHOWN)
    ir_buf_printf(&b, " and %zu more", j->parts.num - SHOWN);
  return ir_buf_str(&b);
}

// Entries of reductions ptxas squeezes, if left to itself, into what five blocks of 256 threads have
// room for, and spills: they have the 64 registers that 1,024 threads of a multiprocessor can have.
// The others need fewer, and are faster the more threads there are.
static bool is_given_room(const cg_joint *j) {
  enum { ROOM = 64 };
  bool reduces = false;
  for (size_t i = 0; i < j->parts.num && !reduces; i++)
    reduces = j->parts.at[i]->uses.at[0]->reduces;
  return reduces && j->registers <= ROOM;
}

// Of small blocks no more than a multiprocessor takes: ptxas leaves aside what asks for more of them.
static int blocks_with_room(const cg_cuda *chip, int threads) {
  enum { RESIDENT = 1024 };
  int blocks = RESIDENT / threads;
  return blocks < chip->blocks_per_sm ? blocks : chip->blocks_per_sm;
}

static void open_joint(const cg_program *p, const cg_joint *j, ir_buf *out) {
  if (is_given_room(j))
    ir_buf_printf(out, "K_JOINT_ROOM(%s, %d, %d, %zu) {\n", j->name, j->threads,
                  blocks_with_room(p->target->cuda, j->threads), j->widest);
  else
    ir_buf_printf(out, "K_JOINT(%s, %d, %zu) {\n", j->name, j->threads, j->widest);
}

void cuda_emit_joint(const cg_program *p, const cg_joint *j, bool near, ir_buf *out) {
  ir_buf_printf(out, "\nK_ROWS_%s(%s) = {\n%s};\n// %s\n", near ? "NEAR" : "FAR", j->name,
                ir_buf_str(&j->rows), cuda_describe_joint(p, j));
  open_joint(p, j, out);
  for (size_t i = 0; i < j->parts.num; i++) {
    const cg_kernel *c = j->parts.at[i]->uses.at[0];
    ir_buf_printf(out, "  K_CALLS(%zu, %s_0, %zu, %zu)\n", i, j->parts.at[i]->name, num_buffers(c),
                  c->numbers.num);
  }
  ir_buf_puts(out, "}\n");
}
