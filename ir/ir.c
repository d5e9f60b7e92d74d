// ir.c: the tables expanded from dtypes.def, attrs.def and ops.def, and the small
// questions asked of types, ops and attributes everywhere.
#include "ir/internal.h"

#include <math.h>
#include <string.h>

// --- tables ------------------------------------------------------------------------
const ir_dtype_info ir_dtypes[IR_NUM_DTYPES] = {
#define DTYPE(NAME, text, bytes, ctype, kind) {text, bytes, ctype, IR_KIND_##kind},
#include "ir/dtypes.def"
#undef DTYPE
};

const ir_attr_info ir_attr_infos[IR_NUM_ATTRS] = {
#define ATTR(NAME, text, kind) {text, IR_AK_##kind},
#include "ir/attrs.def"
#undef ATTR
};

enum {
#define ATTR(NAME, text, kind) A_##NAME = 1 << IR_ATTR_##NAME,
#include "ir/attrs.def"
#undef ATTR
};

#define VARIADIC IR_VARIADIC
const ir_op_info ir_ops[IR_NUM_OPS] = {
#define OP(NAME, text, arity, cls, attrs, shape, grad, interp, flops, spell)                       \
  {text, arity, IR_CLASS_##cls, attrs, flops, spell},
#include "ir/ops.def"
#undef OP
};

const char *const ir_role_names[IR_NUM_ROLES] = {
    [IR_ROLE_PARAM] = "param",   [IR_ROLE_FROZEN] = "frozen",   [IR_ROLE_BUFFER] = "buffer",
    [IR_ROLE_MOMENT] = "moment", [IR_ROLE_COUNTER] = "counter", [IR_ROLE_SEED] = "seed",
    [IR_ROLE_FLAG] = "flag",     [IR_ROLE_ACCUM] = "accum",
};

const char *const ir_family_names[IR_NUM_FAMILIES] = {
    [IR_FAMILY_LOOP] = "loop",       [IR_FAMILY_MATMUL] = "matmul",       [IR_FAMILY_COPY] = "copy",
    [IR_FAMILY_SCATTER] = "scatter", [IR_FAMILY_ATTENTION] = "attention", [IR_FAMILY_SEND] = "send",
    [IR_FAMILY_FETCH] = "fetch",
};

// --- types ---------------------------------------------------------------------------
bool ir_dtype_from_name(const char *name, ir_dtype *out) {
  for (int i = 0; i < IR_NUM_DTYPES; i++)
    if (strcmp(ir_dtypes[i].name, name) == 0) {
      *out = (ir_dtype)i;
      return true;
    }
  return false;
}

bool ir_is_float(ir_dtype t) {
  return ir_dtypes[t].kind == IR_KIND_FLOAT;
}

bool ir_is_integer(ir_dtype t) {
  return ir_dtypes[t].kind == IR_KIND_SINT || ir_dtypes[t].kind == IR_KIND_UINT;
}

bool ir_is_const(const ir_node *n, double value) {
  return n->op == IR_CONST && ir_attr_num(n, IR_ATTR_VALUE) == value;
}

int64_t ir_matmul_steps(const ir_node *matmul) {
  const ir_type *a = &matmul->in[0]->type;
  return a->dims[a->rank - (ir_attr_bool(matmul, IR_ATTR_TRANS_A) ? 2 : 1)];
}

bool ir_is_row_reduction(const ir_node *n) {
  if (n->type.dtype != IR_F32 ||
      (n->op != IR_SUM && n->op != IR_REDUCE_MAX && n->op != IR_REDUCE_MIN))
    return false;
  int num;
  const int64_t *axes = ir_attr_ints(n, IR_ATTR_AXES, &num);
  return num == 1 && axes[0] == n->in[0]->type.rank - 1;
}

bool ir_is_narrow(ir_dtype t) {
  return ir_is_float(t) && ir_dtypes[t].bytes == 2;
}

ir_type ir_scalar(ir_dtype t) {
  return (ir_type){.dtype = t};
}

ir_type ir_tensor(ir_dtype t, int rank, const int64_t *dims) {
  BUG_IF(rank < 0 || rank > IR_MAX_RANK, "rank %d", rank);
  ir_type type = {.dtype = t, .rank = rank};
  for (int i = 0; i < rank; i++)
    type.dims[i] = dims[i];
  return type;
}

int64_t ir_elements(const ir_type *t) {
  int64_t n = 1;
  for (int i = 0; i < t->rank; i++)
    n *= t->dims[i];
  return n;
}

int64_t ir_bytes(const ir_type *t) {
  return ir_elements(t) * ir_dtypes[t->dtype].bytes;
}

void ir_row_major(const ir_type *t, int64_t *stride) {
  int64_t next = 1;
  for (int i = t->rank - 1; i >= 0; i--) {
    stride[i] = next;
    next *= t->dims[i];
  }
}

bool ir_same_shape(const ir_type *a, const ir_type *b) {
  if (a->rank != b->rank)
    return false;
  for (int i = 0; i < a->rank; i++)
    if (a->dims[i] != b->dims[i])
      return false;
  return true;
}

bool ir_same_type(const ir_type *a, const ir_type *b) {
  return a->dtype == b->dtype && ir_same_shape(a, b);
}

static bool same_attr(const ir_attr *x, const ir_attr *y) {
  switch (ir_attr_infos[x->key].kind) {
  case IR_AK_INTS:
    return x->as.ints.num == y->as.ints.num &&
           (x->as.ints.num == 0 ||
            memcmp(x->as.ints.at, y->as.ints.at, sizeof(int64_t) * (size_t)x->as.ints.num) == 0);
  default:
    return memcmp(&x->as, &y->as, sizeof(int64_t)) == 0;
  }
}

static bool same_attrs(const ir_node *x, const ir_node *y) {
  for (int i = 0; i < x->num_attrs; i++) {
    const ir_attr *other = ir_find_attr(y, x->attrs[i].key);
    if (!other || !same_attr(&x->attrs[i], other))
      return false;
  }
  return x->num_attrs == y->num_attrs;
}

bool ir_reduces(const ir_kernel *k) {
  bool any = false;
  for (size_t i = 0; i < k->nodes.num; i++)
    any |= ir_ops[k->nodes.at[i]->op].cls == IR_CLASS_REDUCE;
  return any;
}

bool ir_has_clones(const ir_func *f) {
  for (size_t i = 0; i < f->kernels.num; i++)
    if (f->kernels.at[i]->clone_of)
      return true;
  return false;
}

bool ir_has_transfers(const ir_func *f) {
  for (size_t i = 0; i < f->kernels.num; i++)
    if (ir_is_transfer(f->kernels.at[i]))
      return true;
  return false;
}

ir_begins ir_find_begins(ir_arena *a, const ir_func *f) {
  size_t num = f->kernels.num;
  ir_begins b = {IR_NEW_ARRAY(a, const ir_kernel *, num + 1),
                 IR_NEW_ARRAY(a, const ir_kernel *, num + 1)};
  for (size_t i = num; i-- > 0;) {
    const ir_kernel *k = f->kernels.at[i], *at = k->begin ? k->begin : k;
    if (!ir_is_transfer(k))
      continue;
    b.next[i] = b.first[at->id];
    b.first[at->id] = k;
  }
  return b;
}

double ir_start_value(ir_op op, ir_dtype t) {
  if (op == IR_SUM || op == IR_SCATTER_ADD)
    return 0;
  bool high = op == IR_REDUCE_MIN || op == IR_ARGMIN;
  if (ir_is_float(t))
    return high ? INFINITY : -INFINITY;
  bool is_signed = ir_dtypes[t].kind == IR_KIND_SINT;
  int bits = ir_dtypes[t].bytes * 8 - is_signed;
  return high ? ldexp(1, bits) - 1 : is_signed ? -ldexp(1, bits) : 0;
}

bool ir_same_work(const ir_node *x, const ir_node *y) {
  return x->op == y->op && x->num_in == y->num_in && x->state == y->state &&
         ir_same_type(&x->type, &y->type) && same_attrs(x, y);
}

bool ir_has_op(const ir_func *f, ir_op op) {
  for (size_t i = 0; i < f->nodes.num; i++)
    if (f->nodes.at[i]->op == op)
      return true;
  return false;
}

bool ir_is_fused(const ir_func *f) {
  for (size_t i = 0; i < f->nodes.num; i++) {
    const ir_node *n = f->nodes.at[i];
    if (ir_is_computed(n) && !ir_is_conversion(n) && !n->kernel)
      return false;
  }
  return f->kernels.num > 0;
}

static uint64_t hash_attr(uint64_t h, const ir_attr *a) {
  switch (ir_attr_infos[a->key].kind) {
  case IR_AK_INTS:
    for (int i = 0; i < a->as.ints.num; i++)
      h = ir_hash_mix(h, (uint64_t)a->as.ints.at[i]);
    return h;
  default: {
    uint64_t bits;
    memcpy(&bits, &a->as, sizeof bits);
    return ir_hash_mix(h, bits);
  }
  }
}

uint64_t ir_hash_work(const ir_node *n) {
  uint64_t h = ir_hash_mix(n->op, (uint64_t)n->type.dtype);
  for (int i = 0; i < n->type.rank; i++)
    h = ir_hash_mix(h, (uint64_t)n->type.dims[i]);
  for (int key = 0; key < IR_NUM_ATTRS; key++) // by key: the order of a node's list is no matter
    if (ir_ops[n->op].attrs >> key & 1)
      h = hash_attr(h, ir_find_attr(n, (ir_attr_key)key));
  return ir_hash_mix(h, n->state ? n->state->id + 1 : 0);
}

uint64_t *ir_value_hashes(ir_arena *a, const ir_func *f) {
  uint64_t *of = IR_NEW_ARRAY(a, uint64_t, f->next_id + 1);
  for (size_t i = 0; i < f->nodes.num; i++) {
    const ir_node *n = f->nodes.at[i];
    if (n->kernel && ir_is_transfer(n->kernel)) {
      of[n->id] = of[n->in[0]->id];
      continue;
    }
    of[n->id] = ir_hash_work(n);
    for (int k = 0; k < n->num_in; k++)
      of[n->id] = ir_hash_mix(of[n->id], of[n->in[k]->id]);
  }
  return of;
}

const char *ir_type_str(ir_arena *a, const ir_type *t) {
  char text[16 + IR_MAX_RANK * 22];
  size_t at = (size_t)snprintf(text, sizeof text, "%s[", ir_dtypes[t->dtype].name);
  for (int i = 0; i < t->rank; i++)
    at += (size_t)snprintf(text + at, sizeof text - at, "%s%lld", i ? "," : "",
                           (long long)t->dims[i]);
  snprintf(text + at, sizeof text - at, "]");
  return ir_strdup(a, text);
}

// --- ops and attributes ----------------------------------------------------------------
bool ir_op_from_name(const char *name, ir_op *out) {
  for (int i = 0; i < IR_NUM_OPS; i++)
    if (strcmp(ir_ops[i].name, name) == 0) {
      *out = (ir_op)i;
      return true;
    }
  return false;
}

bool ir_is_zero_pad(const ir_node *n) {
  return n->op == IR_PAD && ir_attr_num(n, IR_ATTR_VALUE) == 0;
}

ir_node *ir_below_views(const ir_node *n) {
  while (ir_ops[n->op].cls == IR_CLASS_VIEW)
    n = n->in[0];
  return (ir_node *)n;
}

const ir_attr *ir_find_attr(const ir_node *n, ir_attr_key key) {
  for (int i = 0; i < n->num_attrs; i++)
    if (n->attrs[i].key == key)
      return &n->attrs[i];
  return NULL;
}

static const ir_attr *need_attr(const ir_node *n, ir_attr_key key, ir_attr_kind kind) {
  const ir_attr *a = ir_find_attr(n, key);
  BUG_IF(!a, "%%%s (%s) has no attribute '%s'", n->name, ir_ops[n->op].name,
         ir_attr_infos[key].name);
  BUG_IF(ir_attr_infos[key].kind != kind, "attribute '%s' read as another kind",
         ir_attr_infos[key].name);
  return a;
}

int64_t ir_attr_int(const ir_node *n, ir_attr_key key) {
  return need_attr(n, key, IR_AK_INT)->as.i;
}

double ir_attr_num(const ir_node *n, ir_attr_key key) {
  return need_attr(n, key, IR_AK_NUM)->as.num;
}

const int64_t *ir_attr_ints(const ir_node *n, ir_attr_key key, int *num) {
  const ir_attr *a = need_attr(n, key, IR_AK_INTS);
  if (num)
    *num = a->as.ints.num;
  return a->as.ints.at;
}

bool ir_attr_bool(const ir_node *n, ir_attr_key key) {
  return need_attr(n, key, IR_AK_BOOL)->as.i != 0;
}

void ir_sort_attrs(ir_attr *attrs, int num) {
  for (int i = 1; i < num; i++)
    for (int k = i; k > 0 && attrs[k - 1].key > attrs[k].key; k--) {
      ir_attr t = attrs[k];
      attrs[k] = attrs[k - 1];
      attrs[k - 1] = t;
    }
}
