// schedule_under.c: what a kernel may compute its outputs over, found out once for all kernels of one form.
//
//   layer.0.h = relu (add layer.0.p, layer.0.b)     the domain says: over layer.0.p
//   layer.1.h = relu (add layer.1.p, layer.1.b)     the same kernel of other operands: over its first operand
//
// The answer hangs on what is written down here as the form of a kernel and on nothing else: members in order, by
// operation, type and attributes; for each operand the member, the operand of the kernel or the constant that it is, and
// the views on the way; and of the kernel's operands which are in one memory. Forms are compared number by number.
// Without this, a deep network spends most of the time that an order takes on building the domains of equal layers.
#include <string.h>

#include "ir/row_update.h"
#include "passes/plan_parts.h"
#include "passes/schedule_parts.h"

typedef struct form {
  const uint64_t *words;
  size_t num;
  uint64_t hash;
  sched_under answer;
  struct form *next; // of those at one place in the table
} form;

enum { NUM_PLACES = 4096 };

struct sched_forms {
  form *at[NUM_PLACES];
  IR_VEC(uint64_t) words; // of the kernel at hand
};

// --- the form of a kernel ------------------------------------------------------------------------
typedef struct writer {
  sched *s;
  const sched_kernel *x;
} writer;

static void put(const writer *w, uint64_t word) {
  IR_PUSH(w->s->arena, w->s->forms->words, word);
}

static void put_attr(const writer *w, const ir_attr *a) {
  uint64_t bits;
  put(w, a->key);
  if (ir_attr_infos[a->key].kind != IR_AK_INTS) {
    memcpy(&bits, &a->as, sizeof bits);
    put(w, bits);
    return;
  }
  put(w, (uint64_t)a->as.ints.num);
  for (int i = 0; i < a->as.ints.num; i++)
    put(w, (uint64_t)a->as.ints.at[i]);
}

static void put_node(const writer *w, const ir_node *n) {
  put(w, (uint64_t)n->op << 32 | (uint64_t)n->type.dtype << 16 | (uint64_t)n->type.rank << 8 |
             (uint64_t)n->num_attrs << 1 | (uint64_t)n->folded);
  for (int i = 0; i < n->type.rank; i++)
    put(w, (uint64_t)n->type.dims[i]);
  for (int i = 0; i < n->num_attrs; i++)
    put_attr(w, &n->attrs[i]);
}

// Of members and operands of the kernel, from 1 on; 0: it is neither. Marks of other nodes may be anything.
static size_t number_of(const writer *w, const ir_node *n) {
  const ir_node_list *members = &w->x->k->nodes;
  size_t i = n->mark;
  bool member = i > 0 && i <= members->num && members->at[i - 1] == n;
  bool operand = i > members->num && i <= members->num + (size_t)w->x->num_in &&
                 w->x->in[i - members->num - 1].node == n;
  return member || operand ? i : 0;
}

// Through views to a node that has a number, or a constant.
static void put_operand(const writer *w, const ir_node *n) {
  for (; number_of(w, n) == 0 && ir_is_seen_through(n); n = n->in[0])
    put_node(w, n);
  put(w, number_of(w, n));
  if (number_of(w, n) == 0)
    put_node(w, n);
}

static void put_member(const writer *w, const ir_node *n) {
  put_node(w, n);
  put(w, (uint64_t)n->num_in);
  for (int i = 0; i < n->num_in; i++)
    put_operand(w, n->in[i]);
}

// The first operand of the kernel that is in the memory of `n`; all: there is none.
static int find_memory(const writer *w, const ir_node *n) {
  int i = 0;
  while (i < w->x->num_in && !plan_same_memory(w->x->in[i].node, n))
    i++;
  return i;
}

// Where a stretch begins hangs on all that it is a view of.
static void put_stretch(const writer *w, const ir_node *n) {
  put(w, (uint64_t)find_memory(w, dom_owner(n)));
  for (; n->stretch_of || ir_is_seen_through(n); n = n->in[0]) {
    put_node(w, n);
    put(w, (uint64_t)n->stretch_at);
    put(w, (uint64_t)n->stretch_bytes);
  }
  put_node(w, n);
}

// The output that goes to the state which operand `in` reads; -1: none does. Of several operands that read it the first
// stands for it.
static int output_to_state(const writer *w, int in) {
  int state = w->x->in[in].state, value = state < 0 ? -1 : w->s->written_to[state];
  for (int i = 0; i < in && value >= 0; i++)
    if (w->x->in[i].state == state)
      return -1;
  bool own = value >= w->x->first_value && value < w->x->first_value + w->x->num_values;
  return own ? value - w->x->first_value : -1;
}

static void put_operand_of_kernel(const writer *w, int i) {
  const sched_in *in = &w->x->in[i];
  put_node(w, in->node);
  put(w, (uint64_t)(output_to_state(w, i) + 1) << 2 | (uint64_t)in->stretch << 1 |
             (uint64_t)(in->value >= 0));
  if (in->stretch)
    put_stretch(w, in->node);
  else if (in->state >= 0)
    put(w, (uint64_t)find_memory(w, in->node));
}

static void number_nodes(const writer *w) {
  const ir_node_list *members = &w->x->k->nodes;
  for (size_t i = 0; i < members->num; i++)
    members->at[i]->mark = (uint32_t)i + 1;
  for (int i = 0; i < w->x->num_in; i++)
    w->x->in[i].node->mark = (uint32_t)members->num + 1 + (uint32_t)i;
}

static void forget_numbers(const writer *w) {
  for (size_t i = 0; i < w->x->k->nodes.num; i++)
    w->x->k->nodes.at[i]->mark = 0;
  for (int i = 0; i < w->x->num_in; i++)
    w->x->in[i].node->mark = 0;
}

static void put_kernel(const writer *w) {
  const ir_kernel *k = w->x->k;
  w->s->forms->words.num = 0;
  number_nodes(w);
  put(w, k->family);
  put(w, k->anchor ? k->anchor->mark : 0);
  put(w, k->nodes.num);
  put(w, (uint64_t)w->x->num_in);
  put(w, k->outputs.num);
  for (int i = 0; i < w->x->num_in; i++)
    put_operand_of_kernel(w, i);
  for (size_t i = 0; i < k->nodes.num; i++)
    put_member(w, k->nodes.at[i]);
  for (size_t i = 0; i < k->outputs.num; i++)
    put(w, k->outputs.at[i]->mark);
  forget_numbers(w);
}

// --- the answer ----------------------------------------------------------------------------------
// Whole values of as many bytes.
static bool may_lie_under(const writer *w, plan_overwrites *may, int in, int out) {
  const sched_in *from = &w->x->in[in];
  const sched_value *to = &w->s->values[w->x->first_value + out];
  return from->value >= 0 && !from->stretch && w->s->values[from->value].bytes == to->bytes &&
         plan_overwrites_ask(may, from->node, to->node);
}

static bool may_lie_under_state(const writer *w, plan_overwrites *may, int in) {
  int out = output_to_state(w, in);
  return out >= 0 &&
         plan_overwrites_ask(may, w->x->in[in].node, w->s->values[w->x->first_value + out].node);
}

// All at once: the kernel's domain is large, and nobody wants it afterwards.
static sched_under find_answer(const writer *w) {
  const sched_kernel *x = w->x;
  ir_arena *a = w->s->arena;
  sched_under u = {IR_NEW_ARRAY(a, sched_ins, x->num_values + 1),
                   IR_NEW_ARRAY(a, bool, x->num_in + 1)};
  if (!plan_overwrites_any(x->k))
    return u;
  int *at = IR_NEW_ARRAY(a, int, (size_t)x->num_in *(size_t)x->num_values + 1);
  ir_arena_mark here = ir_arena_here(a);
  plan_overwrites *may = plan_overwrites_new(a, x->k);
  for (int out = 0; out < x->num_values; out++) {
    int num = 0;
    for (int in = 0; in < x->num_in; in++)
      if (may_lie_under(w, may, in, out))
        at[num++] = in;
    u.of[out] = (sched_ins){at, num};
    at += num;
  }
  for (int in = 0; in < x->num_in; in++)
    u.own[in] = may_lie_under_state(w, may, in);
  ir_arena_back(a, here);
  return u;
}

// --- forms that were met -------------------------------------------------------------------------
static form *find_form(sched *s, uint64_t hash) {
  const struct sched_forms *f = s->forms;
  form *x = f->at[hash % NUM_PLACES];
  while (x && (x->hash != hash || x->num != f->words.num ||
               memcmp(x->words, f->words.at, x->num * sizeof *x->words) != 0))
    x = x->next;
  return x;
}

static form *add_form(const writer *w, uint64_t hash) {
  struct sched_forms *f = w->s->forms;
  form *x = IR_NEW(w->s->arena, form), **place = &f->at[hash % NUM_PLACES];
  uint64_t *words = IR_NEW_ARRAY(w->s->arena, uint64_t, f->words.num);
  memcpy(words, f->words.at, f->words.num * sizeof *words);
  *x = (form){words, f->words.num, hash, find_answer(w), *place};
  *place = x;
  return x;
}

const sched_under *sched_find_all_under(sched *s, int k) {
  sched_kernel *x = &s->kernels[k];
  if (x->under)
    return x->under;
  if (!s->forms)
    s->forms = IR_NEW(s->arena, struct sched_forms);
  writer w = {s, x};
  put_kernel(&w);
  uint64_t hash = 0;
  for (size_t i = 0; i < s->forms->words.num; i++)
    hash = ir_hash_mix(hash, s->forms->words.at[i]);
  form *known = find_form(s, hash);
  x->under = &(known ? known : add_form(&w, hash))->answer;
  return x->under;
}

sched_ins sched_find_under(sched *s, int k, int out) {
  return sched_find_all_under(s, k)->of[out];
}
