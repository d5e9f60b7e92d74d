// stretches.c: slices that are arguments of their own.
//
//   before   %z : f32[256,32,512], stored by a kernel      p_z[49152 + i * 512 + j]
//            %s = slice %z {start=[3,0,0],stop=[4,32,512]}
//   after    %s->stretch_of = %z, ->stretch_at = 196608    p_s[i * 512 + j], as for any other row
//
// Kernels of equal text are one function (program_share.c). Where a slice begins is no part of the
// text then, but of the call, and 256 steps of a recurrent network share the kernels of one step.
// The slice lies in its buffer's memory, which lives as long as any of its stretches (plan_live.c).
//
// A stretch begins where a buffer may begin, at a multiple of PLAN_ALIGN; what is left of the
// slice's offset stays in the text. Not done where the kernel that makes the buffer reads the
// slice, where a band of zeros is known (its place is said in terms of the whole), nor where a
// kernel reads several slices of one buffer, which the text then sees together: each would be an
// argument. Slices in one piece may be up to four.
//
// A kernel that runs again is the function that ran before, whose text says which slices are arguments. So slices at one
// place of the two share one answer, though other kernels read more slices of one buffer than of the other's.
//
// Needs: kernels in their final form. Breaks: nothing; it is no pass, as it changes no IR.
#include "passes/domain.h"
#include "passes/plan.h"

enum { MAX_DENSE = 4 };

typedef struct finder {
  bool *own;         // by node id of a slice: the kernel that makes the buffer reads it
  int *read, *most;  // by node id of a buffer: slices that the kernel at hand reads; of a slice:
                     // the most that a kernel which reads it reads of its buffer
  uint32_t *seen_by; // by node id of a slice: round
  uint32_t *like;    // by node id of a slice: another one that answers for it, or itself
  bool *refused;     // by node id of a slice that answers for some
} finder;

static const ir_node *next_slice(const ir_node *n) {
  while (n->op != IR_SLICE && ir_is_seen_through(n))
    n = n->in[0];
  return n->op == IR_SLICE ? n : NULL;
}

typedef void (*slice_fn)(finder *x, const ir_kernel *k, const ir_node *slice);

// The slices below the operands of the kernel's members, each once.
static void each_slice(finder *x, const ir_kernel *k, uint32_t round, slice_fn f) {
  for (size_t i = 0; i < k->nodes.num; i++)
    for (int j = 0; j < k->nodes.at[i]->num_in; j++)
      for (const ir_node *s = next_slice(k->nodes.at[i]->in[j]); s; s = next_slice(s->in[0]))
        if (x->seen_by[s->id] != round) {
          x->seen_by[s->id] = round;
          f(x, k, s);
        }
}

static void count(finder *x, const ir_kernel *k, const ir_node *slice) {
  const ir_node *buffer = dom_base(slice);
  x->read[buffer->id]++;
  x->own[slice->id] |= buffer->kernel == k;
}

static void keep_most(finder *x, const ir_kernel *k, const ir_node *slice) {
  (void)k;
  int num = x->read[dom_base(slice)->id];
  if (num > x->most[slice->id])
    x->most[slice->id] = num;
}

static void forget(finder *x, const ir_kernel *k, const ir_node *slice) {
  (void)k;
  x->read[dom_base(slice)->id] = 0;
}

static uint32_t answers_for(finder *x, uint32_t slice) {
  for (; x->like[slice] != slice; slice = x->like[slice])
    x->like[slice] = x->like[x->like[slice]];
  return slice;
}

static void join_operands(finder *x, const ir_node *a, const ir_node *b) {
  a = next_slice(a), b = next_slice(b);
  for (; a && b && a != b; a = next_slice(a->in[0]), b = next_slice(b->in[0]))
    x->like[answers_for(x, a->id)] = answers_for(x, b->id);
}

static void join_kernel(finder *x, const ir_kernel *k) {
  for (size_t i = 0; k->clone_of && i < k->nodes.num; i++) {
    const ir_node *a = k->nodes.at[i], *b = k->clone_of->nodes.at[i];
    for (int j = 0; j < a->num_in; j++)
      join_operands(x, a->in[j], b->in[j]);
  }
}

static bool has_conversion(const ir_node *n) {
  while (ir_is_seen_through(n) && !n->folded)
    n = n->in[0];
  return n->folded;
}

static bool may_be(const finder *x, const ir_node *n, const dom_layout *l) {
  bool few = x->most[n->id] == 1 || (x->most[n->id] <= MAX_DENSE && dom_dense(l));
  return few && l->buffer->kernel && !x->own[n->id] && !n->nonzero && !has_conversion(n);
}

static void try_stretch(finder *x, ir_node *n) {
  dom_layout l;
  if (!dom_layout_of(n, &l) || !may_be(x, n, &l)) {
    x->refused[answers_for(x, n->id)] = true;
    return;
  }
  int64_t bytes = ir_dtypes[n->type.dtype].bytes, end = l.offset + 1;
  for (int m = 0; m < l.num; m++)
    end += (l.size[m] - 1) * l.stride[m];
  n->stretch_at = l.offset * bytes / PLAN_ALIGN * PLAN_ALIGN;
  n->stretch_bytes = end * bytes - n->stretch_at;
  n->stretch_of = l.buffer;
}

static bool has_slices(const ir_func *f) {
  for (size_t i = 0; i < f->nodes.num; i++)
    if (f->nodes.at[i]->op == IR_SLICE)
      return true;
  return false;
}

static void find_in_func(ir_func *f) {
  if (!has_slices(f))
    return;
  ir_arena *a = ir_arena_new();
  finder x = {.own = IR_NEW_ARRAY(a, bool, f->next_id),
              .read = IR_NEW_ARRAY(a, int, f->next_id),
              .most = IR_NEW_ARRAY(a, int, f->next_id),
              .seen_by = IR_NEW_ARRAY(a, uint32_t, f->next_id),
              .like = IR_NEW_ARRAY(a, uint32_t, f->next_id),
              .refused = IR_NEW_ARRAY(a, bool, f->next_id)};
  for (uint32_t i = 0; i < f->next_id; i++)
    x.like[i] = i;
  for (size_t i = 0; i < f->kernels.num; i++) {
    const ir_kernel *k = f->kernels.at[i];
    uint32_t round = 3 * (uint32_t)i + 1;
    each_slice(&x, k, round, count);
    each_slice(&x, k, round + 1, keep_most);
    each_slice(&x, k, round + 2, forget);
    join_kernel(&x, k);
  }
  for (size_t i = f->nodes.num; i-- > 0;) // from the last: below, everything is as it was
    if (f->nodes.at[i]->op == IR_SLICE)
      try_stretch(&x, f->nodes.at[i]);
  for (size_t i = 0; i < f->nodes.num; i++)
    if (f->nodes.at[i]->stretch_of && x.refused[answers_for(&x, f->nodes.at[i]->id)])
      f->nodes.at[i]->stretch_of = NULL;
  ir_arena_free(a);
}

void dom_forget_stretches(ir_module *m) {
  for (size_t i = 0; i < m->funcs.num; i++)
    for (size_t j = 0; j < m->funcs.at[i]->nodes.num; j++)
      if (m->funcs.at[i]
              ->nodes.at[j]
              ->stretch_of) // pages that are not written stay shared (mltc memory)
        m->funcs.at[i]->nodes.at[j]->stretch_of = NULL;
}

void dom_find_stretches(ir_module *m) {
  dom_forget_stretches(m);
  for (size_t i = 0; i < m->funcs.num; i++)
    find_in_func(m->funcs.at[i]);
}
