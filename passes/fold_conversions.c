// fold_conversions.c: second step of fusion. Conversions of operands that matmuls compute by
// themselves, while they copy the operands to where they multiply them.
//
//   before   %a = cast %x16 : f32[64,128]          after   the same, %a and %b in no kernel:
//            %b = cast %w16 : f32[128,10]                  the matmul reads %x16 and %w16
//            %y = matmul %a, %b
//
// An f32 from bf16 or f16, and tf32, are such conversions; those of integers have been folded by then, where the
// target takes them (integer_operands.c). A matmul takes both operands in or none:
// two of one 16-bit type; or tf32, when the other operand has no more digits either. Otherwise
// (one narrow operand, two types) the conversion is an ordinary node and is stored as f32.
//
// The products of an attention kernel share what is in shared memory, and weights go from one to
// the next: so they take in all conversions or none, all from one 16-bit type. Weights are narrowed
// inside; that conversion is a member.
//
// A conversion that others use, too, is made once more for matmuls. One whose views cannot be
// walked in what lies below it stays a node of its own: that is tried, and undone.
//
// Needs: fuse_make_viewable. Breaks: nothing; nodes that it marks (node->folded) get no kernel.
#include "ir/narrow.h"
#include "passes/fuse.h"
#include "passes/users.h"

typedef struct folder {
  ir_func *f;
  ir_arena *arena; // scratch
  bool *elsewhere; // by id: a use that cannot take it in
} folder;

static bool may_convert(const ir_node *n) {
  return n->op == IR_MATMUL && (!n->kernel || ir_products_from(n->kernel) != IR_F32);
}

// A conversion of something that is in memory; NULL: none.
static ir_node *conversion_of(ir_node *operand) {
  ir_node *n = ir_below_views(operand);
  bool outside = ir_is_narrow_conversion(n) && !n->kernel;
  return outside && !ir_is_generated(ir_below_views(n->in[0])) ? n : NULL;
}

// --- one conversion for matmuls, one for others ------------------------------------------------
typedef struct copies {
  ir_node **of; // by id
  uint32_t num;
} copies;

// The operand again, down to its conversion: other users keep what they have.
static ir_node *again(copies *c, ir_builder *b, ir_node *n) {
  ir_node *known = n->id < c->num ? c->of[n->id] : NULL;
  if (known)
    return known;
  ir_node *in = ir_ops[n->op].cls == IR_CLASS_VIEW ? again(c, b, n->in[0]) : n->in[0];
  ir_node *copy = ir_build(b, n->op, n->name, 1, &in, n->num_attrs, n->attrs, &n->type);
  if (n->id < c->num)
    c->of[n->id] = copy;
  return copy;
}

static void separate(folder *x) {
  ir_rewrite rw = ir_rewrite_begin(x->f);
  copies c = {IR_NEW_ARRAY(x->arena, ir_node *, x->f->next_id), x->f->next_id};
  for (size_t i = 0; i < rw.num_old; i++) {
    ir_node *n = ir_rewrite_next(&rw, i);
    for (int j = 0; may_convert(n) && j < 2; j++) {
      ir_node *conversion = conversion_of(n->in[j]);
      if (conversion && conversion->id < c.num && x->elsewhere[conversion->id])
        n->in[j] = again(&c, &rw.b, n->in[j]);
    }
    ir_rewrite_done(&rw, i, n);
  }
  ir_rewrite_end(&rw);
}

// --- which matmuls take them in ----------------------------------------------------------------
// The 16-bit type that an operand is read as; F32: no such.
static ir_dtype read_as(const ir_node *conversion) {
  bool narrow = conversion && conversion->folded && conversion->op == IR_CAST;
  return narrow ? conversion->in[0]->type.dtype : IR_F32;
}

// All operands that come from outside are converted.
static bool all_folded(const ir_kernel *k) {
  for (size_t i = 0; i < k->nodes.num; i++) {
    const ir_node *n = k->nodes.at[i];
    for (int j = 0; n->op == IR_MATMUL && j < 2; j++) {
      const ir_node *conversion = conversion_of(n->in[j]);
      if (n->in[j]->kernel != k && !(conversion && conversion->folded))
        return false;
    }
  }
  return true;
}

static bool agree(const ir_node *n, ir_node *const *conversion) {
  if (n->kernel)
    return all_folded(n->kernel);
  if (read_as(conversion[0]) != read_as(conversion[1]))
    return false;
  for (int j = 0; j < 2; j++)
    if (conversion[j] && conversion[j]->folded && conversion[j]->op == IR_TF32 &&
        ir_known_digits(n->in[1 - j]) > 11)
      return false;
  return true;
}

// One round: false when some matmul could not take in what it has.
static bool settle(folder *x) {
  bool settled = true;
  for (size_t i = 0; i < x->f->nodes.num; i++) {
    ir_node *n = x->f->nodes.at[i];
    if (!may_convert(n))
      continue;
    ir_node *conversion[2] = {conversion_of(n->in[0]), conversion_of(n->in[1])};
    bool any = false;
    for (int j = 0; j < 2; j++)
      any = any || (conversion[j] && conversion[j]->folded);
    if (!any || (agree(n, conversion) && dom_can_walk_operands(x->arena, n)))
      continue;
    settled = false;
    for (int j = 0; j < 2; j++)
      if (conversion[j])
        conversion[j]->folded = false;
  }
  return settled;
}

static void fold_all(ir_func *f) {
  for (size_t i = 0; i < f->nodes.num; i++)
    for (int j = 0; may_convert(f->nodes.at[i]) && j < 2; j++) {
      ir_node *conversion = conversion_of(f->nodes.at[i]->in[j]);
      if (conversion)
        conversion->folded = true;
    }
}

static bool has_conversions(const ir_func *f) {
  for (size_t i = 0; i < f->nodes.num; i++)
    if (ir_is_narrow_conversion(f->nodes.at[i]))
      return true;
  return false;
}

void fuse_fold_conversions(ir_func *f) {
  if (!has_conversions(f))
    return;
  folder x = {.f = f, .arena = ir_arena_new()};
  x.elsewhere = pass_find_other_uses(x.arena, f, may_convert);
  separate(&x);
  for (size_t i = 0; i < f->nodes.num; i++)
    f->nodes.at[i]->mark = 0; // dom_try's
  fold_all(f);
  while (!settle(&x)) // each round leaves fewer
    ;
  ir_arena_free(x.arena);
}
