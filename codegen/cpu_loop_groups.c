// cpu_loop_groups.c: vectors over two axes, where the inner one is much shorter than a vector.
//
//   norm of groups of two channels       x [784,4,2], mean [4,1]
//     by axis     2 of 16 lanes work
//     in groups   both axes are one of size 8; lanes 0 and 1 are of group 0, 2 and 3 of group 1, ...
//       load x        k_load_f32(p_x + i0 * 8 + j)
//       load mean     k_load_f32_each(p_mean + j / 2, 2, 8)       an element for each group
//       sum           lane by lane; at its end k_sum_groups(x_sum, 2): that of a group, in its lanes
//       store mean    k_store_f32_each(p_mean + j / 2, mean, 2, 8)
//
// A vector holds whole groups, so that a group is in one vector wherever that begins.
//
// A candidate considered and left: a pass that stores means once for each channel and sums up channels
// before groups. Elements would lie side by side again, but it makes three kernels of one.
#include "codegen/cpu_loop.h"

typedef struct grouping {
  int outer, inner; // axes
  int64_t width;    // of a group: size of the inner axis
} grouping;

static bool walked_as_one(const dom_access *at, const grouping *g) {
  return at->stride[g->outer] == at->stride[g->inner] * g->width;
}

static bool walked_in_groups(const dom_access *at, const grouping *g) {
  return at->stride[g->outer] == 1 && at->stride[g->inner] == 0;
}

static bool accesses_fit(const domain *d, const grouping *g) {
  for (size_t i = 0; i < d->loads.num; i++) {
    const dom_load *l = &d->loads.at[i];
    if (!walked_as_one(&l->access, g) && !(dom_is_in_memory(l) && walked_in_groups(&l->access, g)))
      return false;
  }
  for (size_t i = 0; i < d->stores.num; i++) {
    const dom_access *at = &d->stores.at[i].access;
    if (!walked_as_one(at, g) && !walked_in_groups(at, g))
      return false;
  }
  return true;
}

// An index that says where to load, or where a maximum was, is one of lanes side by side.
static bool members_fit(const ir_kernel *k) {
  for (size_t i = 0; i < k->nodes.num; i++) {
    ir_op op = k->nodes.at[i]->op;
    if (op == IR_GATHER || op == IR_ARGMAX || op == IR_ARGMIN)
      return false;
  }
  return true;
}

static bool can_group(const domain *d, int lanes, const grouping *g) {
  return !d->axis[g->outer].reduced && g->width < lanes && lanes % g->width == 0 &&
         accesses_fit(d, g);
}

static void join_access(dom_access *at, const grouping *g) {
  if (walked_as_one(at, g))
    at->stride[g->outer] = at->stride[g->inner];
  else
    at->group = g->width;
}

static domain *join_axes(const cg_kernel *k, const domain *apart, const grouping *g) {
  size_t members = k->k->nodes.num;
  domain *d = loop_copy_domain(k->arena, apart, members);
  for (size_t i = 0; i < d->loads.num; i++)
    join_access(&d->loads.at[i].access, g);
  for (size_t i = 0; i < d->stores.num; i++)
    join_access(&d->stores.at[i].access, g);
  for (size_t i = 0; i < members; i++)
    d->varies[i * DOM_MAX_AXES + (size_t)g->outer] |=
        d->varies[i * DOM_MAX_AXES + (size_t)g->inner];
  d->axis[g->outer].size *= g->width;
  loop_remove_axis(d, members, g->inner);
  return d;
}

// The axes of a group are neighbours in memory, so they are neighbours in the domain.
void loop_group_lanes(loop_plan *p, cg_kernel *k) {
  int lanes = k->target->vector_bytes / 4;
  const domain *apart = k->dom;
  double best = 0, cost = 0;
  loop_choose_vector_axis(k, apart, lanes, &best);
  for (int i = apart->num_axes - 1; i > 0 && members_fit(k->k); i--) {
    grouping g = {.outer = i - 1, .inner = i, .width = apart->axis[i].size};
    if (!can_group(apart, lanes, &g))
      continue;
    domain *joined = join_axes(k, apart, &g);
    if (loop_choose_vector_axis(k, joined, lanes, &cost) != g.outer || cost >= best)
      continue;
    best = cost;
    p->fold = apart->axis[i].reduced ? (int)g.width : 0;
    k->dom = joined;
  }
}
