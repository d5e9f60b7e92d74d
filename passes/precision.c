// precision.c: what matmuls multiply, narrowed to what tensor cores take.
//
//   config precision = "bf16"
//   before   %y = matmul %x, %w                  after   %x_bf16 = cast %x : bf16[64,128]
//                                                        %x_f32 = cast %x_bf16 : f32[64,128]
//                                                        (the same of %w)
//                                                        %y = matmul %x_f32, %w_f32
//   with "tf32"                                  after   %x_tf32 = tf32 %x : f32[64,128]  ...
//
// A product of two numbers of at most 11 significant bits is exact in f32: so a tensor core may
// compute such a matmul, and the IR says what it computes. All else stays f32: the parameters, from
// which the narrow ones are made anew in each step, sums, softmax, norms, losses, the optimiser.
//
// The conversion goes below the views of an operand, to where a kernel stores the value: transposed
// and sliced uses share one, and it is made where the value is made. And it goes below zeros around a
// value, which bf16 has, too: what is padded is half as much then, and its border is known. What is below
// is converted once for all matmuls. Operands that hold few digits already (a cast of the graph's own,
// text that this pass has been over) stay as they are.
//
// Matmuls of the initialisers and of the optimiser keep their digits: an orthogonal matrix is made of
// hundreds of them, and errors of bf16 grow from one to the next. Those of the network lead to a result,
// or are its gradients: then one operand is one of the network's (the other is an adjoint).
//
// Needs: autodiff (gradients are those of the f32 network, taken at the narrowed values: a
// conversion passes them on as it is). After the simplifications: what they remove needs no
// conversion. After what uses equations between products, such as row_sums: they hold for the
// network, and not for what rounding makes of it. Breaks: nothing; algebra and cse know these
// casts.
#include <string.h>

#include "ir/builder.h"
#include "ir/narrow.h"
#include "passes/domain.h"
#include "passes/losses.h"
#include "passes/pass.h"

typedef struct narrowing {
  ir_rewrite rw;
  ir_dtype to;         // BF16; F32: tf32
  ir_node **converted; // by id of the value
  uint32_t num_ids;
  bool *leads, *network; // by id: to a result; it is a value of the network
} narrowing;

const char *pass_precision_of(const ir_module *m) {
  const ir_setting *s = ir_find_config(m, "precision");
  return !s ? "f32" : s->kind == IR_SET_STR ? s->str : "";
}

void pass_set_precision(ir_module *m, const char *precision) {
  if (ir_find_config(m, "precision") || strcmp(precision, "f32") != 0)
    ir_set_config(m, (ir_setting){"precision", IR_SET_STR, 0, precision});
}

static const char *named(const narrowing *x, const ir_node *n, const char *suffix) {
  return ir_format(x->rw.b.func->module->arena, "%s_%s", n->name, suffix);
}

static ir_node *build(narrowing *x, ir_op op, const char *name, const ir_node *like, ir_node *in,
                      ir_dtype dtype) {
  ir_type type = like->type;
  type.dtype = dtype;
  bool moves = op == like->op; // where to is in its attributes
  x->rw.b.loc = like->loc;
  x->rw.b.scope = NULL;
  return ir_build(&x->rw.b, op, name, 1, &in, moves ? like->num_attrs : 0,
                  moves ? like->attrs : NULL, &type);
}

static ir_node *converted(narrowing *x, ir_node *n);

// `n` in bf16, below views.
static ir_node *narrowed(narrowing *x, ir_node *n) {
  if (ir_ops[n->op].cls != IR_CLASS_VIEW)
    return converted(x, n)->in[0];
  return build(x, n->op, named(x, n, "bf16"), n, narrowed(x, n->in[0]), IR_BF16);
}

static ir_node *convert(narrowing *x, ir_node *n) {
  if (x->to == IR_F32)
    return build(x, IR_TF32, named(x, n, "tf32"), n, n, IR_F32);
  bool pad = ir_is_zero_pad(n);
  ir_node *small = build(x, pad ? IR_PAD : IR_CAST, named(x, n, "bf16"), n,
                         pad ? narrowed(x, n->in[0]) : n, IR_BF16);
  return build(x, IR_CAST, named(x, n, "f32"), n, small, IR_F32);
}

static ir_node *converted(narrowing *x, ir_node *n) {
  ir_node **known = n->id < x->num_ids ? &x->converted[n->id] : NULL;
  if (known && *known)
    return *known;
  ir_node *c = convert(x, n);
  if (known)
    *known = c;
  return c;
}

// The operand with its value below the views converted.
static ir_node *operand(narrowing *x, ir_node *n) {
  if (ir_ops[n->op].cls != IR_CLASS_VIEW)
    return converted(x, n);
  return build(x, n->op, n->name, n, operand(x, n->in[0]), IR_F32);
}

// --- what belongs to the network -----------------------------------------------------------------
// By id: what a parameter becomes.
static bool *find_updates(const ir_func *f) {
  bool *updates = IR_NEW_ARRAY(f->module->arena, bool, f->next_id);
  for (size_t i = 0; i < f->nodes.num; i++) {
    const ir_node *n = f->nodes.at[i];
    if (n->op != IR_WRITE || n->state->role != IR_ROLE_PARAM)
      continue;
    updates[dom_below_copies(n->in[0])->id] = true;
  }
  return updates;
}

static bool *find_leading(const ir_func *f) {
  bool *leads = IR_NEW_ARRAY(f->module->arena, bool, f->next_id), *updates = find_updates(f);
  losses l = losses_find(f->module->arena, f);
  for (size_t i = 0; i < l.at.num; i++)
    leads[l.at.at[i]->id] = true;
  for (size_t i = 0; i < f->results.num; i++)
    leads[f->results.at[i].node->id] = true;
  for (size_t i = f->nodes.num; i-- > 0;) {
    const ir_node *n = f->nodes.at[i];
    for (int k = 0; leads[n->id] && !updates[n->id] && k < n->num_in; k++)
      leads[n->in[k]->id] = true;
  }
  return leads;
}

static bool only_moves(const ir_node *n) {
  ir_op_class cls = ir_ops[n->op].cls;
  return cls == IR_CLASS_VIEW || cls == IR_CLASS_MOVE || n->op == IR_GATHER || n->op == IR_COPY ||
         n->op == IR_CAST;
}

static bool has_such_operands(const ir_node *n, const bool *network) {
  int num = n->op == IR_GATHER ? 1 : n->num_in; // rows, by whatever index
  for (int i = 0; i < num; i++)
    if (!network[n->in[i]->id])
      return false;
  return true;
}

// By id: values of the network, and such values side by side.
static bool *find_network(const ir_func *f, const bool *leads) {
  bool *network = IR_NEW_ARRAY(f->module->arena, bool, f->next_id);
  for (size_t i = 0; i < f->nodes.num; i++) {
    const ir_node *n = f->nodes.at[i];
    bool leaf = ir_ops[n->op].cls == IR_CLASS_LEAF &&
                !(n->op == IR_READ && n->state->role == IR_ROLE_MOMENT);
    network[n->id] = leads[n->id] || (only_moves(n) ? has_such_operands(n, network) : leaf);
  }
  return network;
}

static bool is_of_network(const narrowing *x, const ir_node *n) {
  return n->id >= x->num_ids || x->network[n->id]; // what has been converted is
}

static bool is_narrowed(const narrowing *x, const ir_node *n) {
  return n->op == IR_MATMUL && n->type.dtype == IR_F32 &&
         (x->leads[n->id] || is_of_network(x, n->in[0]) || is_of_network(x, n->in[1]));
}

static bool narrow_func(ir_func *f, ir_dtype to) {
  if (f->kernels.num)
    return false;
  narrowing x = {.to = to, .num_ids = f->next_id, .leads = find_leading(f)};
  x.network = find_network(f, x.leads);
  x.converted = IR_NEW_ARRAY(f->module->arena, ir_node *, f->next_id);
  x.rw = ir_rewrite_begin(f);
  bool changed = false;
  for (size_t i = 0; i < x.rw.num_old; i++) {
    ir_node *n = ir_rewrite_next(&x.rw, i);
    bool narrow = is_narrowed(&x, n);
    for (int j = 0; narrow && j < 2; j++)
      if (ir_known_digits(n->in[j]) > 11) {
        n->in[j] = operand(&x, n->in[j]);
        changed = true;
      }
    ir_rewrite_done(&x.rw, i, n);
  }
  return ir_rewrite_end(&x.rw) || changed;
}

bool pass_precision(ir_module *m, ir_diags *d) {
  const char *precision = pass_precision_of(m);
  bool changed = false, bf16 = !strcmp(precision, "bf16");
  if (!strcmp(precision, "f32"))
    return false;
  if (!bf16 && strcmp(precision, "tf32") != 0) {
    diag_error(d, (ir_loc){0}, "E0506", "config precision is %s: it can be f32, tf32 or bf16",
               ir_setting_text(m->arena, ir_find_config(m, "precision")));
    return false;
  }
  for (size_t i = 0; i < m->funcs.num; i++)
    changed |= narrow_func(m->funcs.at[i], bf16 ? IR_BF16 : IR_F32);
  return changed;
}
