// insert_parts.c: what is put together to be padded is put into the room at once, one part after the other.
//
//   before   %c = concat %a, %b {axis=3}                      after   %p = pad %a {lo=[0,1,1,0], hi=[0,1,1,8]}
//            %r = pad %c {lo=[0,1,1,0], hi=[0,1,1,0]}                 %r = insert %p, %b {lo=[0,1,1,8]}
//
// A convolution of a concat reads this: the last blocks of a U-Net. Each part is moved once instead of twice, and only
// one of them has to be in memory beside the room, where before all of them, or the concat, were: `insert` goes over %p
// (plan_overwrite.c).

// The part that is there first comes first, so that it need not wait for the others.
//
// Considered and left: one kernel that moves all parts. It is no faster, and needs all of them at a time.
//
// Needs: precision, which makes pads of pads with numbers of half the size. Breaks: nothing.
#include "ir/builder.h"
#include "passes/domain.h"
#include "passes/pass.h"
#include "passes/users.h"

enum {
  LEAST_BYTES = 65536, // of a room for which a second kernel is no matter
  MOST_PARTS = 4,      // each is a kernel
};

typedef struct parts {
  ir_rewrite rw;
  pass_users users; // of old nodes
} parts;

static bool is_used_once(const parts *x, const ir_node *n) {
  return n->id < x->rw.map_size && x->users.of[n->id].num == 1 && !x->users.is_result[n->id];
}

// The concat that is padded, perhaps as numbers of another type.
static const ir_node *concat_of(const parts *x, const ir_node *pad) {
  const ir_node *n = pad->in[0];
  if (n->op == IR_CAST && is_used_once(x, n))
    n = n->in[0];
  return n->op == IR_CONCAT && is_used_once(x, n) && n->num_in > 1 && n->num_in <= MOST_PARTS
             ? n
             : NULL;
}

static size_t place_of(const parts *x, const ir_node *n) {
  n = dom_base(n);
  return n->id < x->rw.map_size ? x->users.position[n->id] : x->rw.num_old;
}

static int find_first(const parts *x, const ir_node *concat) {
  int first = 0;
  for (int i = 1; i < concat->num_in; i++)
    if (place_of(x, concat->in[i]) < place_of(x, concat->in[first]))
      first = i;
  return first;
}

static ir_node *as_padded(parts *x, const ir_node *pad, ir_node *part) {
  return part->type.dtype == pad->type.dtype ? part : ir_cast(&x->rw.b, part, pad->type.dtype);
}

static ir_node *put_together(parts *x, const ir_node *pad, const ir_node *concat) {
  int axis = (int)ir_attr_int(concat, IR_ATTR_AXIS), rank = pad->type.rank;
  int first = find_first(x, concat);
  const int64_t *before = ir_attr_ints(pad, IR_ATTR_LO, NULL);
  int64_t at[MOST_PARTS], lo[IR_MAX_RANK], hi[IR_MAX_RANK], next = before[axis];
  for (int i = 0; i < concat->num_in; i++) {
    at[i] = next;
    next += concat->in[i]->type.dims[axis];
  }
  const ir_type *t = &concat->in[first]->type;
  for (int i = 0; i < rank; i++) {
    lo[i] = i == axis ? at[first] : before[i];
    hi[i] = pad->type.dims[i] - lo[i] - t->dims[i];
  }
  ir_node *n = ir_pad(&x->rw.b, as_padded(x, pad, concat->in[first]), lo, hi,
                      ir_attr_num(pad, IR_ATTR_VALUE));
  for (int i = 0; i < concat->num_in; i++) {
    lo[axis] = at[i];
    if (i != first)
      n = ir_insert(&x->rw.b, n, as_padded(x, pad, concat->in[i]), lo);
  }
  return n;
}

static bool insert_func(ir_func *f) {
  ir_arena *a = ir_arena_new();
  parts x = {.users = pass_find_users(a, f)};
  x.rw = ir_rewrite_begin(f);

  for (size_t i = 0; i < x.rw.num_old; i++) {
    ir_node *n = ir_rewrite_next(&x.rw, i);
    bool large = n->op == IR_PAD && ir_bytes(&n->type) >= LEAST_BYTES;
    const ir_node *concat = large ? concat_of(&x, n) : NULL;
    x.rw.b.scope = n->name;
    ir_rewrite_done(&x.rw, i, concat ? put_together(&x, n, concat) : n);
  }
  bool changed = ir_rewrite_end(&x.rw);
  ir_arena_free(a);
  if (changed)
    ir_drop_dead(f);
  return changed;
}

bool pass_insert_parts(ir_module *m, ir_diags *d) {
  (void)d;
  return pass_each_func(m, insert_func);
}
