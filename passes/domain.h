// domain.h: the loop axes of a kernel and how each tensor is reached from them.
//
// A kernel runs over one domain: a list of axes with sizes. Reshapes that split
// or merge dimensions refine the axes; transposes permute; broadcasts leave axes
// out; slices add an offset. Every tensor that a kernel loads or stores is then
//     element = offset + sum over axes of index[axis] * stride[axis]
// and emitters need to know nothing else about views.
#ifndef PASSES_DOMAIN_H
#define PASSES_DOMAIN_H

#include "ir/ir.h"

enum {
  DOM_MAX_AXES = 16,
  DOM_MAX_PRODUCTS = 4, // in, and out, of an ATTENTION kernel
};

typedef struct dom_axis {
  int64_t size;
  bool reduced; // LOOP kernels: the kernel's reductions run over exactly these axes
} dom_axis;

// How a buffer is walked. stride 0: the axis does not matter.
typedef struct dom_access {
  int64_t offset; // elements
  int64_t stride[DOM_MAX_AXES];
  // So many neighbours along the vector axis reach the same element, the next as many the next one; 0: no groups.
  // Only a CPU's LOOP kernels make any (codegen/cpu_loop_groups.c). As wide as the rest: accesses are compared
  // byte by byte.
  int64_t group;
} dom_access;

// One member (or member's operand) value inside the kernel.
typedef struct dom_load {
  ir_node *user;     // member that uses it
  int operand;       // which operand of user
  ir_node *buffer;   // the materialised node that memory holds: a member of another kernel, INPUT
                     // or READ; or a CONST/IOTA leaf (no memory: see `access` for iota)
  dom_access access; // into the buffer's row-major elements. IOTA: the value itself is the
                     // affine form (offset + sum index*stride)
} dom_load;

// Two kinds of member need one more thing, given as loads:
//   GATHER, operand 0: `access` reaches row 0 (the dimensions after the first); the row stride is
//     dom_view's strides[0] of the operand.
//   UNIFORM and NORMAL have an extra load with operand -1 and buffer == user: no memory; `access`
//     is the element's row-major index in the node's own shape (what Philox counts by).

// It comes from memory; not made anew, as constants and random elements are.
static inline bool dom_is_in_memory(const dom_load *l) {
  return l->operand >= 0 && !ir_is_generated(l->buffer);
}

typedef struct dom_store {
  ir_node *node;   // the value computed in the kernel (a member)
  ir_node *buffer; // the node that memory holds: `node` itself, or the concat that it is a part of
  dom_access access; // into buffer's row-major elements
} dom_store;

typedef struct domain {
  int num_axes;
  dom_axis axis[DOM_MAX_AXES]; // order: as in the widest tensor, row-major (last is innermost)
  IR_VEC(dom_load) loads;      // operands that come from outside the kernel
  IR_VEC(dom_store) stores;    // outputs: values needed outside the kernel
  bool *varies; // [member index * DOM_MAX_AXES + axis]: does the member's value vary along axis
  // By member: which axes its last two dimensions are; -1: none, or several.
  struct dom_matrix {
    int row, column;
  } * matrix;
} domain;

static inline bool dom_has_reduced(const domain *d) {
  for (int i = 0; i < d->num_axes; i++)
    if (d->axis[i].reduced)
      return true;
  return false;
}

// LOOP: the domain of the kernel's members. MATMUL: axes are batch..., then M, then N (each may
// be refined to several axes: dom_matmul says which); covers the epilogue only. So does that of a
// SCATTER kernel of several members (ir/row_update.h); others of the family have none, nor has
// COPY. BUG when the kernel was not built by pass_fuse's rules.
domain *dom_build(ir_arena *a, const ir_kernel *k);
// Whether dom_build has one for this kernel.
bool dom_has_domain(const ir_kernel *k);

// The load that gives this operand of a member (-1: of a random one); NULL: another member does.
const dom_load *dom_find_load(const domain *d, const ir_node *user, int operand);
// Which member of the kernel a node is, -1: none.
int dom_member_index(const ir_kernel *k, const ir_node *n);

// Where operands a and b of a matmul kernel live: element strides over the domain's axes plus k.
typedef struct dom_matmul {
  int64_t m, n, k;                            // sizes
  int64_t batch;                              // product of batch axes
  int num_batch_axes, num_m_axes, num_n_axes; // domain axes in that order
  ir_node *a, *b;                             // buffers
  const ir_node *a_conversion, *b_conversion; // of their elements (dom_conversion); NULL: none
  dom_access a_access, b_access;              // over the domain's axes
  int num_k_axes; // K may also be refined (a reshape of a strided operand)
  int64_t k_size[DOM_MAX_AXES], a_k[DOM_MAX_AXES], b_k[DOM_MAX_AXES]; // strides per K axis
} dom_matmul;
dom_matmul *dom_build_matmul(ir_arena *a, const ir_kernel *k, const domain *d);

// ATTENTION: products in give scores [b..., m, n]; products out are matmul (score, v), which have
// no epilogue. The domain is that of all other members; its axes are batch..., then m, then n.
typedef struct dom_attention {
  IR_VEC(ir_node *) in;
  IR_VEC(ir_node *) out;
  ir_kernel scores; // all members but the products out, and those of them that memory needs
  domain *dom;      // of `scores`; products in have no loads
  bool columns;     // products out sum over m; otherwise over n
  int64_t batch, m, n;
  int num_batch_axes, num_m_axes, num_n_axes; // domain axes in that order
} dom_attention;
dom_attention *dom_build_attention(ir_arena *a, const ir_kernel *k);
// The matmul is a member of k that takes a score.
bool dom_is_product_out(const ir_node *n, const ir_kernel *k);
// Whether scores of this type, in a group that is no kernel yet, fit one domain, in which a vector
// of four lies within one row of the last axis of m, and of n.
bool dom_try_attention(ir_arena *a, ir_node *const *scores, size_t num, const ir_type *type);

// A tensor reached through views: one buffer walked by modes. A dimension of the tensor is a list
// of modes, most significant first (the nested layouts of CuTe); reshape splits and regroups
// modes, broadcast gives stride 0, slice an offset. Modes of size 1 are left out.
typedef struct dom_layout {
  ir_node *buffer; // first node below that is no view
  int64_t offset;  // elements
  int num;
  int64_t size[DOM_MAX_AXES], stride[DOM_MAX_AXES];
  int dim[DOM_MAX_AXES]; // dimension of the tensor that the mode belongs to; ascending
} dom_layout;
// False when a reshape on the way cuts through modes unevenly. IOTA leaves: the affine form is the
// value. Such reshapes do not exist after pass_fuse (it copies their operand first).
bool dom_layout_of(const ir_node *n, dom_layout *out);
// A member that is nothing but the places of its operands, which are members too, in one buffer: it has no
// map and no value; each operand is stored at its offset, with the strides of the whole.
static inline bool dom_is_joint(const ir_node *n) {
  return n->op == IR_CONCAT;
}
// True when `n` has one stride per dimension: fills the buffer, the offset and the strides.
bool dom_view(const ir_node *n, ir_node **buffer, int64_t *offset, int64_t *strides);
// Row-major, offset 0, every element of the buffer: a plain pointer will do.
bool dom_contiguous(const ir_node *n);
// Its elements are neighbours, in row-major order.
bool dom_dense(const dom_layout *l);
// The node below all views (and below conversions that matmuls compute: ir_is_seen_through).
ir_node *dom_base(const ir_node *n);
// Looks through copies, too: what computes these elements.
const ir_node *dom_below_copies(const ir_node *n);
// Marks slices that become arguments of their own (ir_node.stretch_of; passes/stretches.c). Once,
// when kernels are final: whoever looks at the kernels afterwards takes such slices for buffers.
void dom_find_stretches(ir_module *m);
void dom_forget_stretches(ir_module *m); // before kernels change
// The node whose kernel has computed the memory of `n`, a buffer or a stretch of one.
static inline const ir_node *dom_owner(const ir_node *n) {
  return n->stretch_of ? n->stretch_of : n;
}
// Of an argument, from its begin.
static inline int64_t dom_bytes(const ir_node *n) {
  return n->stretch_of ? n->stretch_bytes : ir_bytes(&n->type);
}
// The conversion between an operand of a matmul and its buffer; NULL: there is none.
const ir_node *dom_conversion(const ir_node *n);

// Like dom_build for a group that is no kernel yet: NULL when its members do not fit one domain
// (stores are left empty). `anchor` is the matmul or NULL.
domain *dom_try(ir_arena *a, ir_node *const *members, size_t num, ir_node *anchor);
// Whether a kernel of matmul `n` alone could walk its operands, as they are folded now, where they lie. Marks as dom_try
// does; `a` is scratch.
bool dom_can_walk_operands(ir_arena *a, ir_node *n);
// Fills kernel->outputs for all kernels: members that another kernel, a write or a result needs.
void dom_find_outputs(ir_func *f);

// Inputs (buffers read) and outputs (buffers written) of any kernel, each once, in a fixed order:
// MATMUL a, b, then epilogue operands; others in order of members and operands. No CONST, no IOTA.
typedef struct dom_io {
  IR_VEC(ir_node *) in;
  IR_VEC(ir_node *) out;
} dom_io;
dom_io dom_kernel_io(ir_arena *a, const ir_kernel *k);

#endif
