// cpu_loop_axes.c: which axes a LOOP kernel walks, in which role.
//
//   x[12,64,128] + b[128]   axes 12, 64, 128   ->   768, 128     (12 and 64 are walked as one)
//   x * 2                   axes 12, 64, 128   ->   98304
#include "codegen/cpu_loop.h"

#include <string.h>

// --- simpler domains -------------------------------------------------------------------------
static bool walked_as_one(const dom_access *at, const domain *d, int axis) {
  return at->stride[axis] == at->stride[axis + 1] * d->axis[axis + 1].size;
}

static bool can_join(const domain *d, size_t members, int axis) {
  if (d->axis[axis].reduced != d->axis[axis + 1].reduced)
    return false;
  for (size_t i = 0; i < members; i++)
    if (d->varies[i * DOM_MAX_AXES + (size_t)axis] !=
        d->varies[i * DOM_MAX_AXES + (size_t)axis + 1])
      return false;
  for (size_t i = 0; i < d->loads.num; i++)
    if (!walked_as_one(&d->loads.at[i].access, d, axis))
      return false;
  for (size_t i = 0; i < d->stores.num; i++)
    if (!walked_as_one(&d->stores.at[i].access, d, axis))
      return false;
  return true;
}

static void remove_from(int64_t *stride, int axis) {
  memmove(stride + axis, stride + axis + 1, sizeof *stride * (size_t)(DOM_MAX_AXES - 1 - axis));
  stride[DOM_MAX_AXES - 1] = 0;
}

static int position_without(int at, int axis) {
  return at == axis ? -1 : at > axis ? at - 1 : at;
}

void loop_remove_axis(domain *d, size_t members, int axis) {
  for (size_t i = 0; i < d->loads.num; i++)
    remove_from(d->loads.at[i].access.stride, axis);
  for (size_t i = 0; i < d->stores.num; i++)
    remove_from(d->stores.at[i].access.stride, axis);
  for (size_t i = 0; i < members; i++) {
    bool *v = d->varies + i * DOM_MAX_AXES;
    memmove(v + axis, v + axis + 1, (size_t)(DOM_MAX_AXES - 1 - axis));
    v[DOM_MAX_AXES - 1] = false;
    d->matrix[i].row = position_without(d->matrix[i].row, axis);
    d->matrix[i].column = position_without(d->matrix[i].column, axis);
  }
  memmove(d->axis + axis, d->axis + axis + 1, sizeof *d->axis * (size_t)(DOM_MAX_AXES - 1 - axis));
  d->num_axes--;
}

domain *loop_copy_domain(ir_arena *a, const domain *d, size_t members) {
  domain *c = IR_NEW(a, domain);
  *c = *d;
  memset(&c->loads, 0, sizeof c->loads);
  memset(&c->stores, 0, sizeof c->stores);
  for (size_t i = 0; i < d->loads.num; i++)
    IR_PUSH(a, c->loads, d->loads.at[i]);
  for (size_t i = 0; i < d->stores.num; i++)
    IR_PUSH(a, c->stores, d->stores.at[i]);
  c->varies = IR_NEW_ARRAY(a, bool, members *DOM_MAX_AXES);
  memcpy(c->varies, d->varies, members * DOM_MAX_AXES);
  c->matrix = IR_NEW_ARRAY(a, struct dom_matrix, members);
  memcpy(c->matrix, d->matrix, members * sizeof *d->matrix);
  return c;
}

domain *loop_simplify(ir_arena *a, const ir_kernel *k, const domain *d) {
  domain *c = loop_copy_domain(a, d, k->nodes.num);
  for (int i = c->num_axes - 1; i >= 0; i--)
    if (c->axis[i].size == 1)
      loop_remove_axis(c, k->nodes.num, i);
  for (int i = c->num_axes - 2; i >= 0; i--)
    if (can_join(c, k->nodes.num, i)) {
      c->axis[i + 1].size *= c->axis[i].size;
      loop_remove_axis(c, k->nodes.num, i);
    }
  return c;
}

// --- the vector axis -------------------------------------------------------------------------
// What one vector costs on this access when lanes run along `axis`, in loads of a whole vector.
static double access_cost(const dom_access *at, int axis, int lanes) {
  int64_t s = at->stride[axis];
  return s == 1 ? 1.0 : s == 0 ? 0.3 : lanes;
}

// Vector steps for one value of what the reduced axes are summed up to, be that a vector of results or a single one.
static double reduced_steps(const domain *d, int axis, int lanes) {
  double steps = 1;
  for (int i = 0; i < d->num_axes; i++)
    if (d->axis[i].reduced)
      steps *= (double)(i == axis ? ir_ceil_div(d->axis[i].size, lanes) : d->axis[i].size);
  return steps < 1 ? 1 : steps;
}

static bool access_is_inner(const domain *d, const dom_access *at) {
  for (int i = 0; i < d->num_axes; i++)
    if (d->axis[i].reduced && at->stride[i])
      return true;
  return !dom_has_reduced(d);
}

static bool member_is_inner(const domain *d, size_t member) {
  for (int i = 0; i < d->num_axes; i++)
    if (d->axis[i].reduced && d->varies[member * DOM_MAX_AXES + (size_t)i])
      return true;
  return !dom_has_reduced(d);
}

// What is computed in a vector step, in loads of a whole vector. Sums over lanes take several steps, each of which waits
// for the one before it.
static double work_cost(const cg_kernel *k, const domain *d, int axis, int lanes) {
  const double of_lanes = 16;
  double inner = 0.5, outer = 0;
  for (size_t i = 0; i < k->k->nodes.num; i++) {
    const ir_node *n = k->k->nodes.at[i];
    double flops = ir_ops[n->op].flops;
    if (ir_ops[n->op].cls == IR_CLASS_REDUCE) {
      inner += 1;
      outer += d->axis[axis].reduced ? of_lanes : 0;
    } else if (member_is_inner(d, i)) {
      inner += flops;
    } else {
      outer += flops;
    }
  }
  return inner + outer / reduced_steps(d, axis, lanes);
}

// Sums of few vectors of results wait for each other: no others are added to in between (choose_block).
static double waiting_cost(const domain *d, int axis, int lanes) {
  enum { CHAINS = 4 };
  int64_t vectors = d->axis[axis].size / lanes;
  if (!dom_has_reduced(d) || d->axis[axis].reduced || vectors >= CHAINS)
    return 0;
  return 2.0 / (double)(vectors > 1 ? vectors : 1);
}

// Vectors that an axis takes. Of a row that is summed, what 16 lanes are not full of is stored in pieces, and such rows lie
// across lines of the cache: half a vector more.
static double steps_along(const cg_kernel *k, const domain *d, int axis, int lanes) {
  int64_t size = d->axis[axis].size;
  bool pieces = !k->target->cuda && lanes > 8 && d->axis[axis].reduced && size % lanes;
  return (double)ir_ceil_div(size, lanes) + (pieces ? 0.5 : 0);
}

// Vector steps for the whole kernel, each weighed by what it computes, and by its accesses; stores count twice. What knows
// nothing of the reduced axes is done once for all of them.
static double axis_cost(const cg_kernel *k, const domain *d, int axis, int lanes) {
  // A GPU's other threads hide what lanes of a processor wait for; its accesses all count alike.
  bool gpu = k->target->cuda != NULL;
  double cost = gpu ? 0.5 : work_cost(k, d, axis, lanes), wait = waiting_cost(d, axis, lanes);
  double outer = gpu ? 1 : 1 / reduced_steps(d, axis, lanes);
  cost = gpu || cost > wait ? cost : wait;
  for (size_t i = 0; i < d->loads.num; i++) {
    const dom_access *at = &d->loads.at[i].access;
    if (dom_is_in_memory(&d->loads.at[i]))
      cost += access_cost(at, axis, lanes) * (access_is_inner(d, at) ? 1 : outer);
  }
  for (size_t i = 0; i < d->stores.num; i++) {
    const dom_access *at = &d->stores.at[i].access;
    cost += 2 * access_cost(at, axis, lanes) * (access_is_inner(d, at) ? 1 : outer);
  }
  int64_t size = d->axis[axis].size;
  return cost * steps_along(k, d, axis, lanes) * lanes / (double)(size > 0 ? size : 1);
}

int loop_choose_vector_axis(const cg_kernel *k, const domain *d, int lanes, double *cost) {
  int best = -1;
  for (int i = d->num_axes - 1; i >= 0; i--) { // the innermost wins a tie
    double here = axis_cost(k, d, i, lanes);
    if (best >= 0 && here >= *cost * 0.999)
      continue;
    best = i;
    *cost = here;
  }
  return best;
}

// A transposed load is contiguous along a parallel axis other than the vector axis. With that axis
// as the innermost loop each of its cache lines is used up at once: y[i,j] = x[j,i] goes
// for j in vectors, for i. -1 when there is none, or when too little would be left to split.
static bool splits_without(const domain *d, int axis, int vector_axis, int lanes) {
  enum { ENOUGH_PARTS = 16 };
  int64_t parts = d->axis[vector_axis].size / lanes;
  for (int i = 0; i < d->num_axes; i++)
    if (i != axis && i != vector_axis)
      parts *= d->axis[i].size;
  return parts >= ENOUGH_PARTS;
}

static int transposed_axis(const loop_plan *p, const domain *d) {
  int vector_axis = p->vector_axis, lanes = p->lanes;
  if (p->fold) // no axis is reduced, and yet there are sums
    return -1;
  for (int i = 0; i < d->num_axes; i++)
    if (d->axis[i].reduced)
      return -1;
  for (size_t i = 0; vector_axis >= 0 && i < d->loads.num; i++) {
    const dom_load *l = &d->loads.at[i];
    bool memory = dom_is_in_memory(l);
    for (int a = 0; memory && l->access.stride[vector_axis] > 1 && a < d->num_axes; a++)
      if (l->access.stride[a] == 1 && splits_without(d, a, vector_axis, lanes))
        return a;
  }
  return -1;
}

void loop_plan_axes(loop_plan *p, const cg_kernel *k) {
  const domain *d = k->dom;
  p->lanes = k->target->vector_bytes / 4;
  double cost = 0;
  p->vector_axis = loop_choose_vector_axis(k, d, p->lanes, &cost);
  p->extent = p->vector_axis < 0 ? 1 : d->axis[p->vector_axis].size;
  p->across = p->vector_axis >= 0 && d->axis[p->vector_axis].reduced;
  p->rows = p->red_rows = 1;
  p->turned_axis = k->target->cuda ? -1 : transposed_axis(p, d);
  for (int i = 0; i < d->num_axes; i++) {
    if (i == p->vector_axis)
      continue;
    if (d->axis[i].reduced || i == p->turned_axis) {
      p->red_axis[p->num_red++] = i;
      p->red_rows *= d->axis[i].size;
    } else {
      p->row_axis[p->num_rows++] = i;
      p->rows *= d->axis[i].size;
    }
  }
}

// --- tasks -----------------------------------------------------------------------------------
enum { MAX_TASKS = 64, OPS_PER_TASK = 16384 };

static int64_t element_ops(const cg_kernel *k) {
  int64_t ops = (int64_t)(k->dom->loads.num + k->dom->stores.num);
  for (size_t i = 0; i < k->k->nodes.num; i++)
    ops += ir_ops[k->k->nodes.at[i]->op].flops;
  return ops > 0 ? ops : 1;
}

static int64_t all_ops(const loop_plan *p, const cg_kernel *k) {
  double ops = (double)element_ops(k) * (double)p->extent * (double)p->rows * (double)p->red_rows;
  return ops > 1e15 ? (int64_t)1e15 : (int64_t)ops;
}

// Blocks whose size depends on the work per element alone. Whole cache lines of any dtype.
static void plan_flat_tasks(loop_plan *p, const cg_kernel *k) {
  enum { LINE = 64 };
  p->task_elements = ir_ceil_div(ir_ceil_div(OPS_PER_TASK, element_ops(k)), LINE) * LINE;
  p->tasks = p->across ? 1 : ir_ceil_div(p->extent, p->task_elements);
  p->rows = p->chunks = p->units = 1;
  p->tasks = p->tasks < 1 ? 1 : p->tasks;
}

// Rows are split first; when there are too few of them the vector axis is cut into chunks of whole
// vector steps, so that the partial vector comes last and every chunk starts a step.
void loop_plan_tasks(loop_plan *p, const cg_kernel *k) {
  if (p->flat) {
    plan_flat_tasks(p, k);
    return;
  }
  int64_t want = all_ops(p, k) / OPS_PER_TASK;
  want = want < 1 ? 1 : want > MAX_TASKS ? MAX_TASKS : want;
  p->chunks = 1;
  p->chunk = p->extent;
  if (!p->across && p->vector_axis >= 0 && p->rows < want) {
    int64_t step = (int64_t)p->lanes * p->block;
    p->chunk = ir_ceil_div(ir_ceil_div(p->extent, ir_ceil_div(want, p->rows)), step) * step;
    p->chunks = ir_ceil_div(p->extent, p->chunk);
  }
  p->units = p->rows * p->chunks;
  p->tasks = p->units < want ? p->units : want;
  if (p->tasks < 1)
    p->tasks = 1;
}
