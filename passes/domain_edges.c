// domain_edges.c: maps travel along operand edges in both directions, through views as layouts.
//
//   x [12,128], v = reshape x [12,4,32], used by a member
//   user known     v: [a] [b] [c]   strides a 128, b 32, c 1       x: [a] [b c]
//   operand known  x: [a] [d]       d (128) is split: d 4, e 32    v: [a] [d] [e]
//   x [12,4,32], v = reshape x [12,128]
//   user known     v: [a] [b]       b (128) is split: b 4, c 32    x: [a] [b] [c]
#include "passes/domain_parts.h"

#include <string.h>

// --- modes -------------------------------------------------------------------------------------
// Those of one dimension of a layout, most significant first.
typedef struct modes {
  int num;
  int64_t size[DOM_MAX_AXES], stride[DOM_MAX_AXES];
} modes;

static bool mode_split(modes *s, int j, int64_t inner) {
  if (s->num == DOM_MAX_AXES)
    return false;
  memmove(&s->size[j + 1], &s->size[j], sizeof(int64_t) * (size_t)(s->num - j));
  memmove(&s->stride[j + 1], &s->stride[j], sizeof(int64_t) * (size_t)(s->num - j));
  s->num++;
  s->size[j + 1] = inner;
  s->size[j] /= inner;
  s->stride[j] *= inner;
  return true;
}

// Cuts `list` (of some map; passed by address so that splits are seen) and the modes so that both
// have the same boundaries. Modes are refined in place with their strides. False: uneven.
static bool align(dom_work *w, const dom_axes *list, modes *s) {
  int i = list->num - 1, j = s->num - 1;
  while (i >= 0 && j >= 0) {
    int64_t a = w->size[list->at[i]], m = s->size[j];
    if (a > m) {
      if (a % m || dom_split_axis(w, list->at[i], m) < 0)
        return false;
      i++; // the list grew at i: its inner part is now at i + 1
    } else if (a < m) {
      if (m % a || !mode_split(s, j, a))
        return false;
      j++;
    }
    i--;
    j--;
  }
  return i < 0 && j < 0;
}

// The modes of dimension `dim`, with neighbours joined where memory allows it.
static modes modes_of(const dom_layout *l, int dim) {
  modes s = {0};
  for (int m = 0; m < l->num; m++) {
    if (l->dim[m] != dim)
      continue;
    int last = s.num - 1;
    if (last >= 0 && s.stride[last] == l->stride[m] * l->size[m]) {
      s.size[last] *= l->size[m];
      s.stride[last] = l->stride[m];
    } else {
      s.size[s.num] = l->size[m];
      s.stride[s.num++] = l->stride[m];
    }
  }
  return s;
}

// The dimension of `t` that an element stride belongs to, or -1.
static int dim_of_stride(const ir_type *t, const int64_t *row, int64_t stride) {
  for (int d = 0; d < t->rank; d++)
    if (t->dims[d] > 1 && stride >= row[d] && stride < row[d] * t->dims[d] && stride % row[d] == 0)
      return d;
  return -1;
}

// --- user known --------------------------------------------------------------------------------
// `use` is the map of the operand position (the shape that the user sees). Every axis of it gets
// its stride in the operand's base; then the base's coordinates are read off the strides.
static bool strides_for(dom_work *w, const ir_type *seen, const dom_map *use, const dom_layout *l,
                        dom_strides *out) {
  out->num = 0;
  for (int d = 0; d < seen->rank; d++) {
    modes s = modes_of(l, d);
    if (seen->dims[d] > 1 && s.num == 0) // nothing below varies here (cannot happen: broadcasts
      return false;                      // give a mode of stride 0)
    if (!align(w, &use->dim[d], &s))
      return false;
    for (int i = 0; i < s.num; i++) {
      if (out->num == DOM_MAX_AXES)
        return false;
      out->axis[out->num] = use->dim[d].at[i];
      out->stride[out->num++] = s.stride[i];
    }
  }
  return true;
}

// Splits an axis that goes on from one dimension of the base into the next, as where a reshape merges
// them for the user. False: unevenly.
static bool cut_at_dims(dom_work *w, const ir_type *base, const dom_strides *s) {
  int64_t row[IR_MAX_RANK];
  ir_row_major(base, row);
  for (int i = 0; i < s->num; i++) {
    int d = s->stride[i] ? dim_of_stride(base, row, s->stride[i]) : -1;
    int64_t size = w->size[s->axis[i]], whole = d < 0 ? 0 : base->dims[d] * row[d];
    if (size * s->stride[i] <= whole || d < 0)
      continue;
    int64_t inner = whole / s->stride[i];
    return whole % s->stride[i] == 0 && size % inner == 0 &&
           dom_split_axis(w, s->axis[i], inner) >= 0;
  }
  return true;
}

// With `base`, no axis crosses its dimensions. A split makes earlier entries stale: asks again until
// nothing splits.
static bool find_strides(dom_work *w, const ir_type *seen, const dom_map *use, const dom_layout *l,
                         const ir_type *base, dom_strides *out) {
  dom_map mine = *use; // `use` may be a copy that splits do not reach
  mine.known = true;
  w->temp = &mine;
  int before;
  bool ok;
  do {
    before = w->num_axes;
    ok = strides_for(w, seen, &mine, l, out) && (!base || cut_at_dims(w, base, out));
  } while (ok && w->num_axes != before);
  w->temp = NULL;
  return ok;
}

bool dom_strides_of(dom_work *w, const ir_type *seen, const dom_map *use, const dom_layout *l,
                    dom_strides *out) {
  return find_strides(w, seen, use, l, NULL, out);
}

static bool map_from_strides(const dom_work *w, const ir_node *base, const dom_strides *s,
                             dom_map *out) {
  int64_t row[IR_MAX_RANK], covered[IR_MAX_RANK];
  ir_row_major(&base->type, row);
  memset(out, 0, sizeof *out);
  for (int d = 0; d < base->type.rank; d++)
    covered[d] = 1;
  // Smallest stride first, so that each dimension is built from its innermost axis outwards.
  bool used[DOM_MAX_AXES] = {false};
  for (int done = 0; done < s->num; done++) {
    int best = -1;
    for (int i = 0; i < s->num; i++)
      if (!used[i] && (best < 0 || s->stride[i] < s->stride[best]))
        best = i;
    used[best] = true;
    if (s->stride[best] == 0)
      continue;
    int d = dim_of_stride(&base->type, row, s->stride[best]);
    if (d < 0 || s->stride[best] != row[d] * covered[d])
      return false;
    dom_axes *l = &out->dim[d];
    memmove(&l->at[1], &l->at[0], l->num);
    l->at[0] = (uint8_t)s->axis[best];
    l->num++;
    covered[d] *= w->size[s->axis[best]];
  }
  for (int d = 0; d < base->type.rank; d++)
    if (covered[d] != base->type.dims[d])
      return false;
  out->known = true;
  return true;
}

static bool covers(const dom_work *w, const dom_map *m, const ir_type *t) {
  for (int d = 0; d < t->rank; d++)
    if (dom_list_size(w, &m->dim[d]) != t->dims[d])
      return false;
  return true;
}

static bool tell(dom_member *below, const dom_map *map) {
  if (below->out.known)
    return dom_same_map(&below->out, map, below->n->type.rank);
  below->out = *map;
  return true;
}

bool dom_tell_operand(dom_work *w, const ir_node *user, int i, const dom_map *use) {
  ir_node *seen = user->in[i], *base = dom_base(seen);
  dom_member *below = dom_member_of(w, base);
  if (!below)
    return true;
  if (seen == base) // most operands: through no view, the map is the same
    return covers(w, use, &base->type) && tell(below, use);
  dom_layout l;
  dom_strides s;
  dom_map map;
  if (!dom_layout_of(seen, &l) || l.offset != 0 ||
      !find_strides(w, &seen->type, use, &l, &base->type, &s) ||
      !map_from_strides(w, base, &s, &map))
    return false;
  return tell(below, &map);
}

// --- operand known -----------------------------------------------------------------------------
// The axes of the base that make up mode (size, stride), as a list.
static bool axes_of_mode(dom_work *w, const dom_member *below, int64_t size, int64_t stride,
                         dom_axes *out) {
  const ir_type *t = &below->n->type;
  int64_t row[IR_MAX_RANK];
  ir_row_major(t, row);
  int d = dim_of_stride(t, row, stride);
  if (d < 0)
    return false;
  const dom_axes *list = &below->out.dim[d];
  int64_t skip = stride / row[d], need = size;
  for (int i = list->num - 1; i >= 0 && need > 1; i--) {
    int64_t a = w->size[list->at[i]];
    if (skip > 1) {
      if (a <= skip && skip % a == 0) {
        skip /= a;
        continue;
      }
      if (a % skip || dom_split_axis(w, list->at[i], skip) < 0)
        return false;
      skip = 1;
      i++; // look again at the outer part, now at i
      continue;
    }
    if (a > need) {
      if (a % need || dom_split_axis(w, list->at[i], need) < 0)
        return false;
      out->at[out->num++] = list->at[i + 1]; // the inner part
      break;
    }
    if (need % a)
      return false;
    out->at[out->num++] = list->at[i];
    need /= a;
  }
  for (int i = 0, j = out->num - 1; i < j; i++, j--) {
    uint8_t outer = out->at[j];
    out->at[j] = out->at[i];
    out->at[i] = outer;
  }
  return dom_list_size(w, out) == size;
}

// Axes for a broadcast position of the given size: those of the domain, in order, that `map`
// does not use yet. A guess that the other operands confirm or refuse.
static bool axes_for_broadcast(const dom_work *w, const dom_map *map, int rank, int64_t size,
                               dom_axes *out) {
  int64_t total = 1;
  for (int i = 0; i < w->order.num && total < size; i++) {
    int a = w->order.at[i];
    if (dom_uses_axis(map, rank, a))
      continue;
    dom_push(out, a);
    total *= w->size[a];
  }
  return total == size;
}

bool dom_map_seen(dom_work *w, const ir_node *user, int i, dom_map *out) {
  ir_node *seen = user->in[i];
  dom_member *below = dom_member_of(w, dom_base(seen));
  dom_layout l;
  if (!below || !below->out.known)
    return false;
  if (seen == below->n) {
    *out = below->out;
    return true;
  }
  if (!dom_layout_of(seen, &l) || l.offset != 0)
    return false;
  memset(out, 0, sizeof *out);
  int before = w->num_axes;
  for (int m = 0; m < l.num; m++) {
    dom_axes part = {0};
    if (l.stride[m] == 0)
      continue;
    if (!axes_of_mode(w, below, l.size[m], l.stride[m], &part))
      return false;
    for (int k = 0; k < part.num; k++)
      dom_push(&out->dim[l.dim[m]], part.at[k]);
  }
  if (w->num_axes != before) // lists above may miss the new inner axes: once more
    return dom_map_seen(w, user, i, out);
  for (int m = 0; m < l.num; m++)
    if (l.stride[m] == 0 &&
        !axes_for_broadcast(w, out, seen->type.rank, l.size[m], &out->dim[l.dim[m]]))
      return false;
  out->known = true;
  return true;
}
