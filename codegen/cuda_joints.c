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
// parameters it has 4 KiB), and costs three numbers. Launches of the same functions share an
// entry: all layers have one for the sums of their biases.
#include "codegen/cuda_launches.h"

#include <string.h>

enum { PLACE_BYTES = PLAN_ALIGN }; // K_PLACE of the prelude
static const uint32_t IN_BATCH = 0x80000000u;

static size_t num_buffers(const cg_kernel *c) {
  return c->in.num + c->out.num + (c->workspace > 0);
}

// --- which functions -------------------------------------------------------------------------
static void add_part(const cg_program *p, cg_joint *j, cg_distinct *d) {
  const cg_kernel *c = d->uses.at[0];
  size_t width = num_buffers(c) + c->numbers.num;
  j->widest = width > j->widest ? width : j->widest;
  IR_PUSH(p->arena, j->parts, d);
}

static bool has_call_of(const cg_program *p, size_t func, const cuda_launch *x,
                        const cg_distinct *d) {
  for (size_t i = 0; i < x->calls.num; i++)
    if (p->shared[func][x->calls.at[i]->k->id] == d)
      return true;
  return false;
}

static bool same_parts(const cg_joint *a, const cg_joint *b) {
  return a->threads == b->threads && a->parts.num == b->parts.num &&
         memcmp(a->parts.at, b->parts.at, a->parts.num * sizeof *a->parts.at) == 0;
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

static cg_joint *joint_for(cg_program *p, size_t func, const cuda_launch *x) {
  cg_joint like = {.threads = x->threads};
  for (size_t i = 0; i < p->distinct.num; i++)
    if (has_call_of(p, func, x, p->distinct.at[i]))
      add_part(p, &like, p->distinct.at[i]);
  for (size_t i = 0; i < p->joints.num; i++)
    if (same_parts(p->joints.at[i], &like))
      return p->joints.at[i];
  cg_joint *j = IR_NEW(p->arena, cg_joint);
  *j = like;
  j->name = new_name(p, x->calls.at[0]->k);
  j->rows = ir_buf_new(p->arena);
  IR_PUSH(p->arena, p->joints, j);
  return j;
}

// --- rows ------------------------------------------------------------------------------------
typedef struct table {
  cg_program *p;
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
  for (size_t i = 0; i < t->j->parts.num; i++)
    if (t->j->parts.at[i] == t->p->shared[t->func][c->k->id])
      return (uint32_t)i;
  BUG("%s is not in %s", c->k->name, t->j->name);
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

cg_joint *cuda_join_calls(cg_program *p, const plan *plan, size_t func, const cuda_launch *x,
                          size_t *first) {
  table t = {.p = p, .plan = plan, .f = p->module->funcs.at[func], .func = func};
  t.workspace = cg_workspaces(p->arena, plan, t.f);
  t.j = joint_for(p, func, x);
  *first = t.j->num_words;
  t.j->num_calls += x->calls.num;
  put_ends(&t, x);
  for (size_t i = 0; i < x->calls.num; i++)
    put_row(&t, x->calls.at[i]);
  return t.j;
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

void cuda_emit_joint(const cg_program *p, const cg_joint *j, bool near, ir_buf *out) {
  ir_buf_printf(out, "\nK_ROWS_%s(%s) = {\n%s};\n// %s\nK_JOINT(%s, %d, %zu) {\n",
                near ? "NEAR" : "FAR", j->name, ir_buf_str(&j->rows), cuda_describe_joint(p, j),
                j->name, j->threads, j->widest);
  for (size_t i = 0; i < j->parts.num; i++) {
    const cg_kernel *c = j->parts.at[i]->uses.at[0];
    ir_buf_printf(out, "  K_CALLS(%zu, %s_0, %zu, %zu)\n", i, j->parts.at[i]->name, num_buffers(c),
                  c->numbers.num);
  }
  ir_buf_puts(out, "}\n");
}
