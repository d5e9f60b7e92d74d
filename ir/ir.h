// ir.h: the tensor IR. SSA over whole tensors with static shapes.
//
// A module has state (parameters, moments, counters, flags), data bindings,
// loop configuration and functions. A function is a list of nodes in execution
// order: every operand comes before its users. Text form: docs/ir.md.
//
// Effects: `read @s` gives the value that @s had when the function began;
// `write @s, x` takes effect when the function ends. At most one write per
// state and function.
#ifndef IR_IR_H
#define IR_IR_H

#include "ir/base.h"
#include "ir/diag.h"

enum { IR_MAX_RANK = 8 };
enum { IR_MAX_FUNCS = 8 }; // of a module: init, step, eval, predict, accum and a few more

typedef enum ir_dtype {
#define DTYPE(NAME, text, bytes, ctype, kind) IR_##NAME,
#include "ir/dtypes.def"
#undef DTYPE
  IR_NUM_DTYPES
} ir_dtype;

typedef enum ir_dtype_kind {
  IR_KIND_BOOL,
  IR_KIND_UINT,
  IR_KIND_SINT,
  IR_KIND_FLOAT
} ir_dtype_kind;

typedef struct ir_dtype_info {
  const char *name; // "f32"
  int bytes;
  const char *ctype;
  ir_dtype_kind kind;
} ir_dtype_info;
extern const ir_dtype_info ir_dtypes[IR_NUM_DTYPES];
bool ir_dtype_from_name(const char *name, ir_dtype *out); // false: none is called so
bool ir_is_float(ir_dtype t);
bool ir_is_integer(ir_dtype t); // signed or not
// BF16, F16: they are stored and moved; arithmetic is done on what they are cast to.
bool ir_is_narrow(ir_dtype t);

typedef struct ir_type {
  ir_dtype dtype;
  int rank;
  int64_t dims[IR_MAX_RANK]; // unused ones are 0
} ir_type;
ir_type ir_scalar(ir_dtype t); // of rank 0
// Copies `rank` dims, IR_MAX_RANK at most.
ir_type ir_tensor(ir_dtype t, int rank, const int64_t *dims);
int64_t ir_elements(const ir_type *t); // product of dims; 1 for rank 0
int64_t ir_bytes(const ir_type *t);    // of all elements, packed
// Elements from one index of each dimension to the next, where the last runs fastest: stride[0..rank) is set.
void ir_row_major(const ir_type *t, int64_t *stride);
bool ir_same_shape(const ir_type *a, const ir_type *b); // rank and dims
bool ir_same_type(const ir_type *a, const ir_type *b);  // the dtype, too
const char *ir_type_str(ir_arena *a, const ir_type *t); // "f32[64,784]"

// --- ops -----------------------------------------------------------------------
typedef enum ir_op {
#define OP(NAME, text, arity, cls, attrs, shape, grad, interp, flops, spell) IR_##NAME,
#include "ir/ops.def"
#undef OP
  IR_NUM_OPS
} ir_op;

typedef enum ir_op_class {
  IR_CLASS_LEAF,
  IR_CLASS_POINTWISE,
  IR_CLASS_REDUCE,
  IR_CLASS_VIEW,
  IR_CLASS_MOVE,
  IR_CLASS_INDEX,
  IR_CLASS_CONTRACT,
  IR_CLASS_EFFECT,
  IR_CLASS_SYMBOLIC,
} ir_op_class;

typedef enum ir_attr_key {
#define ATTR(NAME, text, kind) IR_ATTR_##NAME,
#include "ir/attrs.def"
#undef ATTR
  IR_NUM_ATTRS
} ir_attr_key;

typedef enum ir_attr_kind { IR_AK_INT, IR_AK_NUM, IR_AK_INTS, IR_AK_BOOL } ir_attr_kind;

typedef struct ir_attr {
  ir_attr_key key;
  union {
    int64_t i;  // INT, BOOL
    double num; // NUM
    struct {
      const int64_t *at;
      int num;
    } ints;
  } as;
} ir_attr;

typedef struct ir_attr_info {
  const char *name;
  ir_attr_kind kind;
} ir_attr_info;
extern const ir_attr_info ir_attr_infos[IR_NUM_ATTRS];

enum { IR_VARIADIC = -1 };
typedef struct ir_op_info {
  const char *name;
  int arity; // or IR_VARIADIC
  ir_op_class cls;
  uint32_t attrs; // bit per ir_attr_key
  int flops;
  const char *spell;
} ir_op_info;
extern const ir_op_info ir_ops[IR_NUM_OPS];
bool ir_op_from_name(const char *name, ir_op *out); // false: none is called so

// --- state, nodes, functions, modules ----------------------------------------------
typedef struct ir_node ir_node;
typedef struct ir_func ir_func;
typedef struct ir_module ir_module;
typedef struct ir_kernel ir_kernel;
typedef struct ir_state ir_state;

// What a state is for. Text names in ir_role_names.
typedef enum ir_role {
  IR_ROLE_PARAM,   // trained; init writes it
  IR_ROLE_FROZEN,  // parameter that is not trained
  IR_ROLE_BUFFER,  // running statistics and the like, written by step
  IR_ROLE_MOMENT,  // optimiser state
  IR_ROLE_COUNTER, // step counters: i64[]; "step" is the one the loop reads
  IR_ROLE_SEED,    // i64[]; set from --seed
  IR_ROLE_FLAG,    // set by ./trainer --name=value; not in checkpoints; read-only
  IR_ROLE_ACCUM,   // gradient accumulators
  IR_NUM_ROLES
} ir_role;
extern const char *const ir_role_names[IR_NUM_ROLES];
// Where a safetensors file has what is no tensor: no state can be called so.
#define IR_METADATA_NAME "__metadata__"

struct ir_state {
  const char *name; // "layer.3.attn.linear.w"
  ir_type type;
  ir_role role;
  double value; // FLAG: default; SEED/COUNTER: initial value when init does not write it
  ir_loc loc;
  uint32_t id; // position in module->states
  // An earlier one of this type, as which it begins in init, and where weights are read that lack it; NULL: none
  const ir_state *as;
};

// The part of a matrix (the last two axes of a value) where lower <= column - row <= upper. Nothing
// when lower > upper.
typedef struct ir_band {
  int64_t lower, upper;
} ir_band;

struct ir_node {
  ir_op op;
  ir_type type;
  uint32_t id;      // unique in the function; dense enough for arrays of func->next_id
  const char *name; // unique in the function, printed as %name: "layer.0.attn.q", "d.logits"
  ir_node **in;
  int num_in;
  const ir_attr *attrs;
  int num_attrs;
  ir_state *state;   // READ, WRITE
  ir_loc loc;        // where in the graph file it comes from
  ir_kernel *kernel; // after fusion; NULL: computed by whoever uses it (leaves, views)
  bool folded;   // after fusion: a conversion that the matmuls which use it compute; kernel NULL
  bool stored;   // after fusion: its kernel stores it though nothing reads it (pass_alike)
  uint32_t mark; // scratch for one pass at a time
  // When kernels are scheduled: something is compared with it, or with its largest element, so that it must be
  // the same bits wherever it is computed (codegen/exact.c).
  bool exact;
  // When kernels are scheduled: a slice that is an argument of its own, all of it in these bytes of
  // another kernel's value. NULL: it is none.
  ir_node *stretch_of;
  int64_t stretch_at, stretch_bytes;
  // What pass_bands found out, printed as a comment. NULL: everywhere.
  const ir_band *nonzero; // outside it every element is exactly 0
  const ir_band *needed;  // outside it no element makes a difference to any result or state
};

typedef enum ir_result_kind { IR_RESULT_LOSS, IR_RESULT_METRIC, IR_RESULT_OUTPUT } ir_result_kind;
typedef struct ir_result {
  const char *name; // "loss", "accuracy", "logits"
  ir_result_kind kind;
  ir_node *node; // LOSS and METRIC: f32[]
} ir_result;

static inline bool ir_is_comparison(ir_op op) {
  return op == IR_EQ || op == IR_NE || op == IR_LT || op == IR_LE || op == IR_GT || op == IR_GE;
}

// uniform and normal: elements that only their place, the seed and the step decide.
static inline bool ir_is_random(const ir_node *n) {
  return n->op == IR_UNIFORM || n->op == IR_NORMAL;
}

// Equal but for the operands: op, type, attributes, state. Constants compare by their bits.
bool ir_same_work(const ir_node *x, const ir_node *y);
// Whether the function has such a node.
bool ir_has_op(const ir_func *f, ir_op op);
// Whether all that is computed has a kernel, but for conversions on operands of matmuls. There may be attention
// kernels before fusion: then other nodes have none yet.
bool ir_is_fused(const ir_func *f);
// Of what ir_same_work compares: the same for nodes that it holds for, in every run.
uint64_t ir_hash_work(const ir_node *n);
// By id, for each value of the function by what it is computed from, through kernels and copies to the host: of the same
// computation the same.
uint64_t *ir_value_hashes(ir_arena *a, const ir_func *f);

// What a reduction (sum, reduce_max, ..., argmin) or a scatter of elements of this type starts from,
// and what no elements come to: 0, or the far end of the type. A double near it for 64-bit integers.
double ir_start_value(ir_op op, ir_dtype t);

// Of one operand, and 0 where that is 0.
static inline bool ir_keeps_zero(ir_op op) {
  return op == IR_COPY || op == IR_STOP || op == IR_CAST || op == IR_TF32 || op == IR_NEG ||
         op == IR_ABS || op == IR_SIGN || op == IR_FLOOR || op == IR_SQRT;
}

// One number for all of some axes, by an operation that may take them in any grouping; so not argmax.
static inline bool ir_is_fold(const ir_node *n) {
  return n->op == IR_SUM || n->op == IR_REDUCE_MAX || n->op == IR_REDUCE_MIN;
}
static inline bool ir_is_scatter(const ir_node *n) {
  return n->op == IR_SCATTER_ADD || n->op == IR_SCATTER_MAX;
}

// A constant with this value everywhere.
bool ir_is_const(const ir_node *n, double value);

// It is in no memory: whoever uses it makes the elements anew.
static inline bool ir_is_generated(const ir_node *n) {
  return n->op == IR_CONST || n->op == IR_IOTA;
}

// A copy of something with zeros around it.
bool ir_is_zero_pad(const ir_node *n);

// A sum, max or min over the last axis, in f32: one number for each row.
bool ir_is_row_reduction(const ir_node *n);

// What a matmul of [m, k] and [k, n] sums over: k.
int64_t ir_matmul_steps(const ir_node *matmul);

typedef IR_VEC(ir_node *) ir_node_list;
static inline bool ir_has_node(const ir_node_list *l, const ir_node *n) {
  for (size_t i = 0; i < l->num; i++)
    if (l->at[i] == n)
      return true;
  return false;
}

// What an operand is a view of, through all views.
ir_node *ir_below_views(const ir_node *n);

// It has no memory of its own, and whoever uses it reaches through it to what is below.
static inline bool ir_is_seen_through(const ir_node *n) {
  return (ir_ops[n->op].cls == IR_CLASS_VIEW && !n->stretch_of) || n->folded;
}

// What takes a kernel to compute: no leaf, view or effect, nor an op that passes replace.
static inline bool ir_is_computed(const ir_node *n) {
  ir_op_class cls = ir_ops[n->op].cls;
  return cls != IR_CLASS_LEAF && cls != IR_CLASS_VIEW && cls != IR_CLASS_EFFECT &&
         cls != IR_CLASS_SYMBOLIC;
}

// f32 from integers that are all exact in it.
static inline bool ir_is_integer_conversion(const ir_node *n) {
  ir_dtype from = n->op == IR_CAST ? n->in[0]->type.dtype : IR_F32;
  bool small = from == IR_BOOL || from == IR_U8 || from == IR_I8 || from == IR_U16;
  return small && n->type.dtype == IR_F32;
}

// f32 from bf16 or f16, or tf32.
static inline bool ir_is_narrow_conversion(const ir_node *n) {
  return n->op == IR_TF32 ||
         (n->op == IR_CAST && n->type.dtype == IR_F32 && ir_is_narrow(n->in[0]->type.dtype));
}

// A matmul may compute it on its operand (node->folded); of integers, those for processors.
static inline bool ir_is_conversion(const ir_node *n) {
  return ir_is_narrow_conversion(n) || ir_is_integer_conversion(n);
}

// Kernel families. A kernel is a group of nodes computed by one generated function.
typedef enum ir_family {
  IR_FAMILY_LOOP,    // pointwise chains with at most one set of reduced axes
  IR_FAMILY_MATMUL,  // one matmul and its pointwise epilogue
  IR_FAMILY_COPY,    // pad, concat
  IR_FAMILY_SCATTER, // scatter_add, scatter_max
  // Matmuls whose results [b..., m, n] stay inside, pointwise ops and row reductions on them, and
  // matmuls that sum over n (or all over m): the anchor is the last of these.
  IR_FAMILY_ATTENTION,
  // One `copy`, while other kernels run: to memory of the host, and back. Only on devices.
  IR_FAMILY_SEND,
  IR_FAMILY_FETCH,
  IR_NUM_FAMILIES
} ir_family;
extern const char *const ir_family_names[IR_NUM_FAMILIES];

struct ir_kernel {
  const char *name; // unique in the function
  ir_family family;
  uint32_t id;               // position in func->kernels
  ir_node *anchor;           // the matmul, pad, ...; LOOP: its last node
  ir_node_list nodes;        // members, operands first
  ir_node_list outputs;      // members needed outside, in member order (dom_find_outputs)
  int64_t workspace;         // bytes of scratch, set when the kernel is scheduled
  const ir_kernel *clone_of; // earlier kernel that this one runs again: member by member the same
                             // computation, and the same outputs (pass_checkpoint); NULL: none
  // SEND, FETCH: the copy begins before this earlier kernel, and is done where its own kernel stands
  // (pass_offload). NULL: it begins there, too.
  const ir_kernel *begin;
};

static inline bool ir_is_transfer(const ir_kernel *k) {
  return k->family == IR_FAMILY_SEND || k->family == IR_FAMILY_FETCH;
}

// Some kernels of it run again: pass_checkpoint has put them where they are.
bool ir_has_clones(const ir_func *f);
bool ir_reduces(const ir_kernel *k); // a member of it is a reduction
// Values wait in memory of the host: pass_offload has put sends and fetches where they are.
bool ir_has_transfers(const ir_func *f);
// The transfers of a function by where they begin: for (t = first[k->id]; t; t = next[t->id]) are those that
// begin before kernel k, or are k, in the order in which they are done.
typedef struct ir_begins {
  const ir_kernel **first, **next; // [kernel id]
} ir_begins;
ir_begins ir_find_begins(ir_arena *a, const ir_func *f);

struct ir_func {
  const char *name; // "init", "step", "eval", "predict", "accum"
  ir_module *module;
  IR_VEC(ir_node *) nodes; // execution order
  IR_VEC(ir_result) results;
  IR_VEC(ir_kernel *) kernels; // after fusion: execution order
  bool ordered;                // which is final: "func NAME ordered {"
  uint32_t next_id;
  ir_map *names;       // node name -> node
  ir_map *name_counts; // "relu" -> next number to try for relu.N (ir/names.c)
};

// `data train = idx("a.gz", "b.gz") {range=0..90}`: opaque to the compiler, read by the runtime.
typedef struct ir_setting {
  const char *key;
  enum { IR_SET_NUM, IR_SET_STR, IR_SET_FLAG } kind;
  double num;
  const char *str; // text, or the flag's name
} ir_setting;

typedef struct ir_data {
  const char *name;   // "train", "test", "val"
  const char *format; // "idx", "csv", "npy", "text", "tokens"
  IR_VEC(const char *) files;
  IR_VEC(ir_setting) settings;
  ir_loc loc;
} ir_data;

struct ir_module {
  ir_arena *arena;
  const char *name;
  IR_VEC(ir_state *) states;
  ir_map *state_names;
  IR_VEC(ir_func *) funcs;
  IR_VEC(ir_data *) data;
  IR_VEC(ir_setting) config; // the training loop: steps, epochs, batch, eval, save, ...
};

// Empty ones. All that a module has lies in its arena; names are copied. The new function is the module's last.
ir_module *ir_module_new(ir_arena *a, const char *name);
ir_func *ir_func_new(ir_module *m, const char *name);
ir_func *ir_find_func(const ir_module *m, const char *name); // NULL when absent
// The function whose inputs batches fill, at one place in memory for all: step, or eval without one. NULL: neither.
ir_func *ir_batch_func(const ir_module *m);
// Whether a trainer runs it: init, step, eval, predict, accum.
bool ir_is_run(const ir_func *f);
// Samples of a batch: rows of the first input. 0: there is none, or it is one number.
int64_t ir_batch_size(const ir_func *f);
// Whether an output of type `t` has a row for each of them; predict leaves out what has none.
bool ir_has_rows(const ir_type *t, int64_t samples);
// What a line of --metrics has beside a program's results: no result of such a function has that name.
bool ir_is_in_metrics(const char *name);
// The name must be new in the module.
ir_state *ir_state_new(ir_module *m, const char *name, ir_type type, ir_role role, ir_loc loc);
ir_state *ir_find_state(const ir_module *m, const char *name); // NULL when absent

const ir_setting *ir_find_config(const ir_module *m, const char *key); // NULL when absent
const char *ir_setting_text(ir_arena *a,
                            const ir_setting *s); // its value, as texts of the IR have it
void ir_set_config(ir_module *m, ir_setting s);   // in place of one of its key
// The whole number above 0 that a setting is; INT64_MAX when it is larger. 0: it is absent, or no such
// number (texts of the IR may say anything).
int64_t ir_config_count(const ir_module *m, const char *key);

// --- attributes of a node -------------------------------------------------------------
const ir_attr *ir_find_attr(const ir_node *n, ir_attr_key key); // NULL when absent
// BUG when absent, or of another kind. Of integers *num is how many there are; it may be NULL.
int64_t ir_attr_int(const ir_node *n, ir_attr_key key);
double ir_attr_num(const ir_node *n, ir_attr_key key);
const int64_t *ir_attr_ints(const ir_node *n, ir_attr_key key, int *num);
bool ir_attr_bool(const ir_node *n, ir_attr_key key);

// --- text, checking, running ----------------------------------------------------------
// Appends the text that ir_parse reads; comments in it say what passes have found out.
void ir_print(const ir_module *m, ir_buf *out);
// NULL when there were errors. The result is verified.
ir_module *ir_parse(ir_arena *a, const ir_source *src, ir_diags *d);
// Every violated rule, one line each, appended to `out` (with the function printed and annotated);
// returns their number.
int ir_verify(const ir_module *m, ir_buf *out);
// Deep copy into the same arena; kernels included.
ir_module *ir_clone(const ir_module *m);

#endif
