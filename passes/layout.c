// layout.c: views as nested layouts (dom_layout in domain.h).
//
// From the buffer up, each view rewrites a list of modes (size, stride):
//   buffer [12,64,384]         (12,24576) (64,384) (384,1)
//   slice  [:, :, 128:256]     (12,24576) (64,384) (128,1)   offset 128
//   reshape [12,64,4,32]       (12,24576) (64,384) (4,32) (32,1)
//   transpose [12,4,64,32]     (12,24576) (4,32) (64,384) (32,1)
//   windows 3 of axis 2        (12,24576) (4,32) (62,384) (32,1) (3,384)
// Nothing is copied as long as every cut falls between modes or divides one.
// The idea of nested modes is CuTe's (NVIDIA CUTLASS 3, "Layouts").
#include "passes/domain.h"

#include <string.h>

enum { MAX_VIEW_CHAIN = 64 };

ir_node *dom_base(const ir_node *n) {
  while (ir_is_seen_through(n))
    n = n->in[0];
  return (ir_node *)(uintptr_t)n;
}

const ir_node *dom_below_copies(const ir_node *n) {
  while (n->op == IR_COPY || ir_ops[n->op].cls == IR_CLASS_VIEW)
    n = n->in[0];
  return n;
}

const ir_node *dom_conversion(const ir_node *n) {
  while (ir_ops[n->op].cls == IR_CLASS_VIEW && !n->folded)
    n = n->in[0];
  return n->folded ? n : NULL;
}

static bool push_mode(dom_layout *l, int64_t size, int64_t stride, int dim) {
  if (size == 1)
    return true;
  if (l->num == DOM_MAX_AXES)
    return false;
  l->size[l->num] = size;
  l->stride[l->num] = stride;
  l->dim[l->num++] = dim;
  return true;
}

static bool layout_leaf(ir_node *n, dom_layout *l) {
  *l = (dom_layout){.buffer = n};
  int64_t stride[IR_MAX_RANK], next = 1;
  for (int i = n->type.rank - 1; i >= 0; i--) {
    stride[i] = n->op == IR_CONST ? 0 : next;
    if (n->op == IR_IOTA)
      stride[i] = i == (int)ir_attr_int(n, IR_ATTR_AXIS);
    next *= n->type.dims[i];
  }
  for (int i = 0; i < n->type.rank; i++)
    if (!push_mode(l, n->type.dims[i], stride[i], i))
      return false;
  return true;
}

static bool layout_transpose(const ir_node *n, const dom_layout *in, dom_layout *out) {
  int rank;
  const int64_t *perm = ir_attr_ints(n, IR_ATTR_PERM, &rank);
  for (int i = 0; i < rank; i++)
    for (int m = 0; m < in->num; m++)
      if (in->dim[m] == perm[i] && !push_mode(out, in->size[m], in->stride[m], i))
        return false;
  return true;
}

static bool layout_broadcast(const ir_node *n, const dom_layout *in, dom_layout *out) {
  for (int i = 0; i < n->type.rank; i++) {
    if (n->in[0]->type.dims[i] != n->type.dims[i]) {
      if (!push_mode(out, n->type.dims[i], 0, i))
        return false;
      continue;
    }
    for (int m = 0; m < in->num; m++)
      if (in->dim[m] == i && !push_mode(out, in->size[m], in->stride[m], i))
        return false;
  }
  return true;
}

// A dimension that windows slide along has to be one mode.
static bool layout_windows(const ir_node *n, const dom_layout *in, dom_layout *out) {
  int num, rank = n->in[0]->type.rank;
  const int64_t *axes = ir_attr_ints(n, IR_ATTR_AXES, &num);
  const int64_t *step = ir_attr_ints(n, IR_ATTR_STEP, NULL);
  const int64_t *dilate = ir_attr_ints(n, IR_ATTR_DILATE, NULL);
  int64_t along[IR_MAX_RANK] = {0};
  bool seen[IR_MAX_RANK] = {false};
  for (int m = 0; m < in->num; m++) {
    int d = in->dim[m], i = 0;
    while (i < num && axes[i] != d)
      i++;
    if (i == num) {
      if (!push_mode(out, in->size[m], in->stride[m], d))
        return false;
      continue;
    }
    if (seen[i])
      return false;
    seen[i] = true;
    along[i] = in->stride[m];
    if (!push_mode(out, n->type.dims[d], along[i] * step[i], d))
      return false;
  }
  for (int i = 0; i < num; i++)
    if (!push_mode(out, n->type.dims[rank + i], along[i] * dilate[i], rank + i))
      return false;
  return true;
}

// One dimension made of several modes: the slice may cut the outermost one only, or pick one
// index of it.
static bool slice_modes(const dom_layout *in, int first, int count, int64_t start, int64_t len,
                        int dim, dom_layout *out) {
  if (count == 0)
    return true;
  int64_t inner = 1;
  for (int m = first + 1; m < first + count; m++)
    inner *= in->size[m];
  out->offset += start / inner * in->stride[first];
  if (start % inner == 0 && len % inner == 0) {
    if (!push_mode(out, len / inner, in->stride[first], dim))
      return false;
    for (int m = first + 1; m < first + count; m++)
      if (!push_mode(out, in->size[m], in->stride[m], dim))
        return false;
    return true;
  }
  if (start / inner != (start + len - 1) / inner)
    return false;
  return slice_modes(in, first + 1, count - 1, start % inner, len, dim, out);
}

static bool layout_slice(const ir_node *n, const dom_layout *in, dom_layout *out) {
  int rank;
  const int64_t *start = ir_attr_ints(n, IR_ATTR_START, &rank);
  const int64_t *step = ir_attr_ints(n, IR_ATTR_STEP, &rank);
  int m = 0;
  for (int i = 0; i < rank; i++) {
    int first = m;
    while (m < in->num && in->dim[m] == i)
      m++;
    if (m - first == 1) {
      out->offset += start[i] * in->stride[first];
      if (!push_mode(out, n->type.dims[i], in->stride[first] * step[i], i))
        return false;
    } else if (step[i] != 1 && n->type.dims[i] > 1) {
      return false;
    } else if (!slice_modes(in, first, m - first, start[i], n->type.dims[i], i, out)) {
      return false;
    }
  }
  return true;
}

// Neighbours that walk memory as one mode become one.
static void coalesce(const dom_layout *in, dom_layout *out) {
  for (int m = 0; m < in->num; m++) {
    int last = out->num - 1;
    if (last >= 0 && out->stride[last] == in->stride[m] * in->size[m]) {
      out->size[last] *= in->size[m];
      out->stride[last] = in->stride[m];
    } else {
      push_mode(out, in->size[m], in->stride[m], 0);
    }
  }
}

static bool layout_reshape(const ir_node *n, const dom_layout *in, dom_layout *out) {
  dom_layout flat = {0}, reversed = {0};
  coalesce(in, &flat);
  int m = flat.num - 1;
  for (int i = n->type.rank - 1; i >= 0; i--) {
    for (int64_t need = n->type.dims[i]; need > 1;) {
      int64_t have = flat.size[m], take = have < need ? have : need;
      if (have % take || need % take || !push_mode(&reversed, take, flat.stride[m], i))
        return false;
      flat.size[m] = have / take;
      flat.stride[m] *= take;
      need /= take;
      m -= flat.size[m] == 1;
    }
  }
  for (m = reversed.num - 1; m >= 0; m--)
    push_mode(out, reversed.size[m], reversed.stride[m], reversed.dim[m]);
  return true;
}

static bool layout_step(const ir_node *view, const dom_layout *in, dom_layout *out) {
  if (view->folded) { // the same elements, otherwise written
    *out = *in;
    return true;
  }
  *out = (dom_layout){.buffer = in->buffer, .offset = in->offset};
  switch (view->op) {
  case IR_TRANSPOSE:
    return layout_transpose(view, in, out);
  case IR_BROADCAST:
    return layout_broadcast(view, in, out);
  case IR_SLICE:
    return layout_slice(view, in, out);
  case IR_RESHAPE:
    return layout_reshape(view, in, out);
  case IR_WINDOWS:
    return layout_windows(view, in, out);
  default:
    BUG("'%s' is no view", ir_ops[view->op].name);
  }
}

// As in the buffer that it lies in, but from its own begin.
static bool layout_stretch(ir_node *n, dom_layout *out) {
  dom_layout in;
  if (!dom_layout_of(n->in[0], &in) || !layout_step(n, &in, out))
    return false;
  int64_t bytes = ir_dtypes[n->type.dtype].bytes;
  out->offset += (in.buffer->stretch_at - n->stretch_at) / bytes;
  out->buffer = n;
  return true;
}

bool dom_layout_of(const ir_node *n, dom_layout *out) {
  const ir_node *chain[MAX_VIEW_CHAIN];
  int depth = 0;
  for (; ir_is_seen_through(n); n = n->in[0]) {
    if (depth == MAX_VIEW_CHAIN)
      return false;
    chain[depth++] = n;
  }
  ir_node *buffer = (ir_node *)(uintptr_t)n;
  if (!(n->stretch_of ? layout_stretch(buffer, out) : layout_leaf(buffer, out)))
    return false;
  while (depth > 0) {
    dom_layout in = *out;
    if (!layout_step(chain[--depth], &in, out))
      return false;
  }
  return true;
}

bool dom_view(const ir_node *n, ir_node **buffer, int64_t *offset, int64_t *strides) {
  dom_layout l;
  if (!dom_layout_of(n, &l))
    return false;
  memset(strides, 0, sizeof(int64_t) * (size_t)n->type.rank);
  bool seen[IR_MAX_RANK] = {false};
  for (int m = 0; m < l.num; m++) {
    int d = l.dim[m], before = m - 1;
    bool joins = seen[d] && l.stride[before] == l.stride[m] * l.size[m];
    if (seen[d] && !joins)
      return false;
    seen[d] = true;
    strides[d] = l.stride[m];
  }
  *buffer = l.buffer;
  *offset = l.offset;
  return true;
}

bool dom_dense(const dom_layout *l) {
  dom_layout flat = {0};
  coalesce(l, &flat);
  return flat.num == 0 || (flat.num == 1 && flat.stride[0] == 1);
}

bool dom_contiguous(const ir_node *n) {
  dom_layout l;
  return dom_layout_of(n, &l) && l.offset == 0 &&
         ir_elements(&n->type) == ir_elements(&l.buffer->type) && dom_dense(&l);
}
