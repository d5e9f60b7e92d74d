// domain_parts.h: what the files of the domain builder share; nobody else includes it.
//
//   domain_axes.c    axes: lists of them, and splitting one everywhere
//   domain_edges.c   maps along one operand edge, downwards and upwards
//   domain_spread.c  maps for all members, reductions; the first axes
//   domain.c         loads, the result, the matmul's own operands; entry points
//
// Every member gets a map: for each of its dimensions the axes whose mixed-radix
// number is the coordinate.
//
//   tensor      dims          map
//   e           [64,10]       [a1 a2] [b]      a (64) was split for the line below:
//   reshape e   [8,80]        [a1] [a2 b]      a1: 8, a2: 8
#ifndef PASSES_DOMAIN_PARTS_H
#define PASSES_DOMAIN_PARTS_H

#include "passes/domain.h"

// A list of axes. No axis is twice in a list, nor in two lists of one map.
typedef struct dom_axes {
  uint8_t num;
  uint8_t at[DOM_MAX_AXES]; // most significant first
} dom_axes;

// Dimensions of size 1 have an empty list.
typedef struct dom_map {
  bool known;
  dom_axes dim[IR_MAX_RANK];
} dom_map;

typedef struct dom_member {
  ir_node *n;
  dom_map out; // of the value
  dom_map in;  // REDUCE: of the operand; others: unused (never known)
} dom_member;

// A domain being built. Axes only ever get more and smaller: whoever holds axis numbers or strides
// while num_axes grows asks again, unless splits reach them (members' maps, the lists here, temp).
typedef struct dom_work {
  ir_arena *arena;
  dom_member *m;
  size_t num;
  ir_node *anchor;
  dom_member *seed; // its dimensions were the first axes
  int num_axes;
  int64_t size[DOM_MAX_AXES];
  bool reduced[DOM_MAX_AXES];
  bool has_reduced;
  dom_axes reduced_axes; // in order, once known
  dom_axes order;        // all axes, outermost first
  bool too_many;
  dom_axes k_axes; // MATMUL: the summed axes; they are in no map and not in `order`
  dom_map *temp;   // a map being worked on that belongs to no member: splits must reach it too
} dom_work;

// How a tensor's elements are reached: one stride (in elements of the buffer) per axis.
typedef struct dom_strides {
  int num;
  int axis[DOM_MAX_AXES];
  int64_t stride[DOM_MAX_AXES];
} dom_strides;

// True for reductions, which have a second map: of their operand.
static inline bool dom_is_reduce(const ir_node *n) {
  return ir_ops[n->op].cls == IR_CLASS_REDUCE;
}

// Its operands are not in the loop nest: the family's generator computes it, for the others to use.
static inline bool dom_is_made_apart(const ir_node *n) {
  return n->op == IR_MATMUL || ir_is_scatter(n);
}

// The member of a node, or NULL. Members are found by node->mark = index + 1 while a domain is
// built.
static inline dom_member *dom_member_of(const dom_work *w, const ir_node *n) {
  if (n->mark == 0 || n->mark > w->num || w->m[n->mark - 1].n != n)
    return NULL;
  return &w->m[n->mark - 1];
}

// --- domain_axes.c ------------------------------------------------------------------------------
// A new axis, in no list yet. -1 and w->too_many when there are DOM_MAX_AXES already.
int dom_new_axis(dom_work *w, int64_t size);
// Axis a of size s becomes (a: s/inner, new: inner), everywhere. The new axis, or -1.
int dom_split_axis(dom_work *w, int a, int64_t inner);
// Appends an axis as the innermost one; -1 (of dom_new_axis) is left out.
void dom_push(dom_axes *l, int a);
// The product of the sizes; 1 for an empty list.
int64_t dom_list_size(const dom_work *w, const dom_axes *l);
// True when some dimension of the map has the axis.
bool dom_uses_axis(const dom_map *m, int rank, int axis);
// True when all dimensions have the same axes in the same order.
bool dom_same_map(const dom_map *a, const dom_map *b, int rank);

// --- domain_edges.c -----------------------------------------------------------------------------
// The strides of every axis of `use` in the buffer of `l`. `use` is the map of an operand position
// (the shape `seen`), `l` the layout of the operand. Splits axes; `use` itself may then be stale.
// False: cut unevenly, or too many axes.
bool dom_strides_of(dom_work *w, const ir_type *seen, const dom_map *use, const dom_layout *l,
                    dom_strides *out);
// What `user` knows of its operand position i, told to the member below (if it is one). False: a
// conflict with what is known there, or a view that no map goes through.
bool dom_tell_operand(dom_work *w, const ir_node *user, int i, const dom_map *use);
// Map of what the user sees at operand i, from the member below it. False: nothing can be said
// (yet); `out` is then undefined.
bool dom_map_seen(dom_work *w, const ir_node *user, int i, dom_map *out);

// --- domain_spread.c ----------------------------------------------------------------------------
// One axis per dimension of the anchor, or else of the widest member, which gets its map.
void dom_seed_axes(dom_work *w);
// Maps for all members, from those that have one. False: they do not fit one domain.
bool dom_spread(dom_work *w);
// GATHER: result [i..., rest...]; index sees the leading dimensions. `out`: map of the result.
dom_map dom_gather_index_map(const ir_node *n, const dom_map *out);

#endif
