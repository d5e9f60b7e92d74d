// verify_transfers.c: what SEND and FETCH kernels (ir.h) may be:
//   - one member, a `copy`: of a value that another kernel has made, or of what a send has made;
//   - what a send makes is in the host's memory: fetches read it, directly, and nobody else;
//   - somebody reads what is copied;
//   - while the copy is under way nothing of it changes: its operand is made before it begins.
#include "ir/verify.h"

static const ir_kernel *maker_of(const ir_kernel *k) {
  const ir_node *x =
      k->nodes.num == 1 && k->nodes.at[0]->num_in == 1 ? k->nodes.at[0]->in[0] : NULL;
  return x ? x->kernel : NULL;
}

static void check_transfer(ir_checker *c, const ir_kernel *k) {
  const ir_kernel *maker = maker_of(k), *begin = k->begin ? k->begin : k;
  if (!maker || k->nodes.at[0]->op != IR_COPY) {
    ir_fault_add(c, k->anchor, "kernel '%s' is no copy of what a kernel has made", k->name);
    return;
  }
  if (k->family == IR_FAMILY_FETCH ? maker->family != IR_FAMILY_SEND : ir_is_transfer(maker))
    ir_fault_add(c, k->anchor, "a %s cannot copy what kernel '%s' makes, a %s",
                 ir_family_names[k->family], maker->name, ir_family_names[maker->family]);
  if (begin->id > k->id || maker->id >= begin->id)
    ir_fault_add(c, k->anchor, "kernel '%s' begins before '%s', which must be between '%s' and it",
                 k->name, begin->name, maker->name);
}

static bool is_sent(const ir_checker *c, const ir_node *n) {
  return n->id < c->f->next_id && c->by_id[n->id] == n && n->kernel &&
         n->kernel->family == IR_FAMILY_SEND;
}

static void check_readers(ir_checker *c) {
  for (size_t i = 0; i < c->f->nodes.num; i++) {
    const ir_node *n = c->f->nodes.at[i];
    for (int j = 0; j < n->num_in; j++)
      if (is_sent(c, n->in[j]) && !(n->kernel && n->kernel->family == IR_FAMILY_FETCH))
        ir_fault_add(c, n, "operand %%%s is in memory of the host: only a fetch reads it",
                     n->in[j]->name);
  }
  for (size_t i = 0; i < c->f->results.num; i++)
    if (is_sent(c, c->f->results.at[i].node))
      ir_fault_add(c, c->f->results.at[i].node, "the result '%s' is in memory of the host",
                   c->f->results.at[i].name);
}

// What a kernel, a write or a result reads, directly or through views. [node id]
static bool *find_read(const ir_checker *c) {
  uint32_t ids = c->f->next_id;
  bool *read = IR_NEW_ARRAY(c->faults->arena, bool, ids + 1);
  for (size_t i = 0; i < c->f->results.num; i++)
    if (c->f->results.at[i].node->id < ids)
      read[c->f->results.at[i].node->id] = true;
  for (size_t i = c->f->nodes.num; i-- > 0;) {
    const ir_node *n = c->f->nodes.at[i];
    for (int j = 0; j < n->num_in; j++)
      if ((n->kernel || n->op == IR_WRITE || (n->id < ids && read[n->id])) && n->in[j]->id < ids)
        read[n->in[j]->id] = true;
  }
  return read;
}

// A copy that nobody reads has no memory.
static void check_use(ir_checker *c) {
  const bool *read = ir_has_transfers(c->f) ? find_read(c) : NULL;
  for (size_t i = 0; read && i < c->f->kernels.num; i++) {
    const ir_kernel *k = c->f->kernels.at[i];
    if (ir_is_transfer(k) && k->nodes.num == 1 && k->nodes.at[0]->id < c->f->next_id &&
        !read[k->nodes.at[0]->id])
      ir_fault_add(c, k->anchor, "nobody reads what kernel '%s' copies", k->name);
  }
}

void verify_transfers(ir_checker *c) {
  for (size_t i = 0; i < c->f->kernels.num; i++) {
    const ir_kernel *k = c->f->kernels.at[i];
    if (ir_is_transfer(k))
      check_transfer(c, k);
    else if (k->begin)
      ir_fault_add(c, k->anchor, "kernel '%s' begins where it stands: it is no send or fetch",
                   k->name);
  }
  check_readers(c);
  check_use(c);
}
