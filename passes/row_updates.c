// row_updates.c: of a table that is read by rows, only the rows that a batch has named are updated.
//
//   before   %d.t = scatter_add %i, %u : f32[1000000,16]
//            %s = mul %rate, %d.t
//            %t.new = sub %t, %s
//            write @t, %t.new
//   after    kernel t.new scatter anchor=%d.t {
//              %d.t = scatter_add %i, %u : f32[1000000,16]
//              %s = mul %rate, %d.t
//              %t.new = sub %t, %s
//            }
//            write @t, %t.new
//
// A sum of rows is 0 where no index points. When all that is computed from it is written to states,
// element by element, and such rows of these states stay as they are (ir/row_update.h), one kernel
// takes it all: nothing of the table's size is stored or walked. This holds for any optimiser that
// does nothing where the gradient is 0: SGD, Adagrad, sums of gradients (`accumulate`). It does not
// for momentum, Adam and weight decay, nor for a gradient that clipping takes the norm of: those
// update all rows, as before.
//
// Several reads of one table give a sum of scatter_adds. It becomes one, if there are then no more
// updates than rows:
//
//   before   %a = scatter_add %i, %u     after   %ij = concat %i, %j
//            %b = scatter_add %j, %v             %uv = concat %u, %v
//            %d.t = add %a, %b                   %d.t = scatter_add %ij, %uv
//
// A sum of rows that is added to another value of the table's size, as where a table is also a matrix
// that something is multiplied by, changes those rows of it:
//
//   before   %p = matmul %g, %x               after   %p = matmul %g, %x
//            %s = scatter_add %i, %u                  kernel d.t scatter anchor=%s {
//            %d.t = add %p, %s                          %s = scatter_add %i, %u
//                                                       %d.t = add %p, %s
//                                                     }                        # over %p
//
// The numbers are those of the whole table: a row's updates are summed first, in their order, then
// the members follow.
//
// Needs: writes own their operand (pass_own_outputs); no later pass that looks into these kernels.
#include "ir/builder.h"
#include "ir/row_update.h"
#include "passes/domain.h"
#include "passes/pass.h"
#include "passes/users.h"

enum {
  MAX_MEMBERS = 64,
  MAX_KEY_BITS = 62, // of a row and a position: generators sort by both in one number
};

typedef struct row_updates {
  ir_func *f;
  ir_arena *arena; // scratch
  pass_users users;
  int64_t *summed; // [id] updates of this sum of scatter_adds; 0: it is none
} row_updates;

// --- sums of rows -----------------------------------------------------------------------------
static bool is_used_once(const row_updates *r, const ir_node *n) {
  return r->users.of[n->id].num == 1 && !r->users.is_result[n->id];
}

static int64_t count_updates(const row_updates *r, const ir_node *n) {
  if (n->op == IR_SCATTER_ADD && !n->kernel)
    return ir_elements(&n->in[0]->type);
  if (n->op != IR_ADD)
    return 0;
  int64_t a = r->summed[n->in[0]->id], b = r->summed[n->in[1]->id];
  bool both = a && b && is_used_once(r, n->in[0]) && is_used_once(r, n->in[1]);
  return both ? a + b : 0;
}

static row_updates look_at(ir_func *f, ir_arena *scratch) {
  row_updates r = {.f = f, .arena = scratch};
  r.users = pass_find_users(scratch, f);
  r.summed = IR_NEW_ARRAY(scratch, int64_t, f->next_id);
  for (size_t i = 0; i < f->nodes.num; i++)
    r.summed[f->nodes.at[i]->id] = count_updates(&r, f->nodes.at[i]);
  return r;
}

// --- what is computed from a sum ----------------------------------------------------------------
static void insert_in_order(const row_updates *r, ir_node_list *l, ir_node *n) {
  IR_PUSH(r->arena, *l, n);
  for (size_t i = l->num - 1;
       i > 0 && r->users.position[l->at[i - 1]->id] > r->users.position[n->id]; i--) {
    l->at[i] = l->at[i - 1];
    l->at[i - 1] = n;
  }
}

// All users of `sum` and of its users but writes, in order; none: there are too many, or some that
// no row update has.
static ir_node_list members_from(const row_updates *r, ir_node *sum) {
  ir_node_list members = {0}, queue = {0};
  insert_in_order(r, &members, sum);
  IR_PUSH(r->arena, queue, sum);
  for (size_t at = 0; at < queue.num; at++) {
    const ir_node_list *users = &r->users.of[queue.at[at]->id];
    if (r->users.is_result[queue.at[at]->id] || members.num + users->num > MAX_MEMBERS)
      return (ir_node_list){0};
    for (size_t i = 0; i < users->num; i++) {
      ir_node *user = users->at[i];
      if (user->op == IR_WRITE || ir_has_node(&members, user))
        continue;
      if (user->kernel || ir_ops[user->op].cls != IR_CLASS_POINTWISE)
        return (ir_node_list){0};
      insert_in_order(r, &members, user);
      IR_PUSH(r->arena, queue, user);
    }
  }
  return members;
}

// Rows of written states stay as they are where nothing is added.
static bool writes_keep_rows(const row_updates *r, const ir_node_list *members,
                             const ir_row_value *values) {
  size_t writes = 0;
  for (size_t i = 0; i < members->num; i++) {
    const ir_node_list *users = &r->users.of[members->at[i]->id];
    for (size_t k = 0; k < users->num; k++) {
      if (users->at[k]->op != IR_WRITE)
        continue;
      writes++;
      if (values[i].kind != IR_ROW_KEPT || values[i].table->state != users->at[k]->state)
        return false;
    }
  }
  return writes > 0;
}

static bool fits_keys(const row_updates *r, const ir_node *sum) {
  return ir_bits_below(sum->type.dims[0]) + ir_bits_below(r->summed[sum->id]) <= MAX_KEY_BITS;
}

// The members of the row update from `sum`; none: it is no row update.
static ir_node_list find_update(const row_updates *r, ir_node *sum) {
  ir_row_value values[MAX_MEMBERS];
  const ir_node *fault;
  ir_node_list members = members_from(r, sum);
  bool fits = members.num > 1 && members.at[0] == sum && fits_keys(r, sum) &&
              !ir_row_values(members.at, members.num, values, &fault) &&
              writes_keep_rows(r, &members, values);
  return fits ? members : (ir_node_list){0};
}

// What becomes of `n` is one kernel's output, and nobody else needs `n`.
static bool is_spare_table(const row_updates *r, const ir_node *n) {
  bool made = n->kernel ? ir_is_row_update(n->kernel)
                        : ir_ops[n->op].cls == IR_CLASS_CONTRACT || n->op == IR_SCATTER_ADD;
  return made && is_used_once(r, n);
}

// `sum` and what adds it to a table that is not needed afterwards; none: nothing does.
static ir_node_list find_addition(const row_updates *r, ir_node *sum) {
  ir_node_list members = {0};
  ir_node *add = is_used_once(r, sum) ? r->users.of[sum->id].at[0] : sum;
  if (add->op != IR_ADD || add->kernel || r->users.is_result[add->id] || !fits_keys(r, sum) ||
      !is_spare_table(r, add->in[add->in[0] == sum]))
    return members;
  IR_PUSH(r->arena, members, sum);
  IR_PUSH(r->arena, members, add);
  ir_row_value values[2];
  const ir_node *fault;
  bool fits = !ir_row_values(members.at, 2, values, &fault) && values[1].kind == IR_ROW_KEPT;
  return fits ? members : (ir_node_list){0};
}

// --- one scatter_add for several ----------------------------------------------------------------
static void collect(const row_updates *r, ir_node *n, ir_node_list *sums) {
  if (n->op == IR_SCATTER_ADD) {
    IR_PUSH(r->arena, *sums, n);
    return;
  }
  collect(r, n->in[0], sums);
  collect(r, n->in[1], sums);
}

typedef struct joint {
  bool cast; // indices have several types
  bool flat; // and shapes that differ in more than the first dimension
} joint;

static joint joint_of(const ir_node_list *sums) {
  const ir_type *first = &sums->at[0]->in[0]->type;
  joint j = {.flat = first->rank == 0};
  for (size_t i = 1; i < sums->num; i++) {
    const ir_type *t = &sums->at[i]->in[0]->type;
    j.cast |= t->dtype != first->dtype;
    j.flat |= t->rank != first->rank;
    for (int d = 1; !j.flat && d < t->rank; d++)
      j.flat |= t->dims[d] != first->dims[d];
  }
  return j;
}

static ir_node *index_of(ir_builder *b, const ir_node *sum, joint j) {
  ir_node *index = j.cast ? ir_cast(b, sum->in[0], IR_I64) : sum->in[0];
  int64_t num = ir_elements(&index->type);
  return j.flat ? ir_reshape(b, index, 1, &num) : index;
}

static ir_node *update_of(ir_builder *b, const ir_node *sum, joint j) {
  ir_type t = sum->type;
  t.dims[0] = ir_elements(&sum->in[0]->type);
  return j.flat ? ir_reshape(b, sum->in[1], t.rank, t.dims) : sum->in[1];
}

static ir_node *merged(const row_updates *r, ir_builder *b, ir_node *n) {
  ir_node_list sums = {0}, index = {0}, update = {0};
  collect(r, n, &sums);
  joint j = joint_of(&sums);
  for (size_t i = 0; i < sums.num; i++) {
    IR_PUSH(r->arena, index, index_of(b, sums.at[i], j));
    IR_PUSH(r->arena, update, update_of(b, sums.at[i], j));
  }
  ir_node *all = ir_concat(b, (int)sums.num, index.at, 0);
  return ir_scatter_add(b, all, ir_concat(b, (int)sums.num, update.at, 0), n->type.dims[0]);
}

static bool is_inside_sum(const row_updates *r, const ir_node *n) {
  return is_used_once(r, n) && r->summed[r->users.of[n->id].at[0]->id];
}

static bool should_merge(const row_updates *r, ir_node *n) {
  return n->op == IR_ADD && r->summed[n->id] && r->summed[n->id] <= n->type.dims[0] &&
         !is_inside_sum(r, n) && find_update(r, n).num;
}

static bool merge_sums(ir_func *f, ir_arena *scratch) {
  row_updates r = look_at(f, scratch);
  bool *merge = IR_NEW_ARRAY(scratch, bool, f->nodes.num + 1), any = false;
  for (size_t i = 0; i < f->nodes.num; i++)
    any |= merge[i] = should_merge(&r, f->nodes.at[i]);
  if (!any)
    return false;
  ir_rewrite rw = ir_rewrite_begin(f);
  for (size_t i = 0; i < rw.num_old; i++) {
    ir_node *n = ir_rewrite_next(&rw, i);
    ir_rewrite_done(&rw, i, merge[i] ? merged(&r, &rw.b, n) : n);
  }
  return ir_rewrite_end(&rw);
}

// --- kernels ------------------------------------------------------------------------------------
static bool make_kernel(const row_updates *r, ir_node *sum) {
  ir_node_list members = find_update(r, sum);
  if (!members.num)
    members = find_addition(r, sum);
  if (!members.num)
    return false;
  ir_arena *a = r->f->module->arena;
  ir_kernel *k = IR_NEW(a, ir_kernel);
  *k = (ir_kernel){.family = IR_FAMILY_SCATTER, .anchor = sum};
  for (size_t i = 0; i < members.num; i++) {
    IR_PUSH(a, k->nodes, members.at[i]);
    members.at[i]->kernel = k;
  }
  k->name = members.at[members.num - 1]->name;
  k->id = (uint32_t)r->f->kernels.num;
  IR_PUSH(a, r->f->kernels, k);
  return true;
}

// Members stand where the last of them stood: nobody else needs them earlier but writes, which go to
// the end.
static void list_together(ir_func *f) {
  ir_arena *a = f->module->arena;
  ir_node_list nodes = {0}, writes = {0};
  for (size_t i = 0; i < f->nodes.num; i++) {
    ir_node *n = f->nodes.at[i];
    const ir_kernel *k = n->kernel && ir_is_row_update(n->kernel) ? n->kernel : NULL;
    if (n->op == IR_WRITE)
      IR_PUSH(a, writes, n);
    else if (!k)
      IR_PUSH(a, nodes, n);
    for (size_t j = 0; k && n == k->nodes.at[k->nodes.num - 1] && j < k->nodes.num; j++)
      IR_PUSH(a, nodes, k->nodes.at[j]);
  }
  for (size_t i = 0; i < writes.num; i++)
    IR_PUSH(a, nodes, writes.at[i]);
  f->nodes.at = nodes.at;
  f->nodes.num = nodes.num;
  f->nodes.cap = nodes.cap;
}

// Kernels in the order of their members: what is made over a value may be used before other kernels.
static void list_kernels(ir_func *f) {
  size_t num = 0;
  for (size_t i = 0; i < f->nodes.num; i++) {
    ir_kernel *k = f->nodes.at[i]->kernel;
    if (!k || k->nodes.at[k->nodes.num - 1] != f->nodes.at[i])
      continue;
    k->id = (uint32_t)num;
    f->kernels.at[num++] = k;
  }
}

static bool update_func(ir_func *f) {
  ir_arena *scratch = ir_arena_new();
  bool changed = merge_sums(f, scratch), made = false;
  row_updates r = look_at(f, scratch);
  for (size_t i = 0; i < f->nodes.num; i++)
    if (f->nodes.at[i]->op == IR_SCATTER_ADD && !f->nodes.at[i]->kernel)
      made |= make_kernel(&r, f->nodes.at[i]);
  if (made) {
    list_together(f);
    list_kernels(f);
    dom_find_outputs(f);
  }
  ir_arena_free(scratch);
  return changed || made;
}

bool pass_row_updates(ir_module *m, ir_diags *d) {
  (void)d;
  return pass_each_func(m, update_func);
}
