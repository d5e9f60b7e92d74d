// plan_edit_transfers.c: sends and fetches of a plan that was edited by hand (plan_edit.h) become moves
// of offload.h.
//
//   {"name": "h", "writes": ["h"], ..}                                         step 0
//   {"name": "y", ..}                                                          step 1
//   {"name": "h.send", "family": "send", "reads": ["h"], "writes": ["h.2"]}    before step 2
//   ..
//   {"name": "h.fetch", "family": "fetch", "reads": ["h.2"], "begin": "z"}     before step 9, since z
//
// Names of buffers are those of the file: what the kernel writes that stands at the same place.
#include "passes/plan_edit_parts.h"

#include <string.h>

#include "passes/offload.h"

typedef struct mover {
  plan_edit_site at;
  int *step; // [entry] its step; of a transfer the step that it stands before
  offload_choice out;
  IR_VEC(const char *) sent; // [move] the name of what the send makes
  IR_VEC(size_t) entries;    // [move] of the send
} mover;

static bool fault(const mover *x, size_t entry, const char *what) {
  plan_edit_fault(&x->at, entry, what);
  return false;
}

static const char *only(const plan_edit_names *names) {
  return names->num == 1 ? names->at[0] : NULL;
}

// The value that the last kernel before `entry` makes under that name of the file; -1: none does.
static int find_value(const mover *x, size_t entry, const char *name, int *made) {
  while (entry-- > 0) {
    const plan_edit_kernel *e = &x->at.func->kernels.at[entry];
    *made = x->step[entry];
    for (size_t j = 0; !e->transfer && j < e->writes.num; j++)
      if (!strcmp(e->writes.at[j], name) && (int)j < x->at.s->kernels[*made].num_values)
        return x->at.s->kernels[*made].first_value + (int)j;
  }
  return -1;
}

static bool add_send(mover *x, size_t entry) {
  const plan_edit_kernel *e = &x->at.func->kernels.at[entry];
  const char *name = only(&e->reads), *sent = only(&e->writes);
  int made = 0, value = name && sent ? find_value(x, entry, name, &made) : -1;
  if (value < 0)
    return fault(x, entry, "a send reads what one kernel before it writes, and writes one buffer");
  if (x->at.s->values[value].result || x->at.s->values[value].written)
    return fault(x, entry,
                 ir_format(x->at.arena, "'%s' is needed at the end: it cannot wait", name));
  offload_move m = {
      .value = value, .made = made, .sent = x->step[entry], .begin = -1, .needed = -1};
  IR_PUSH(x->at.arena, x->out.moves, m);
  IR_PUSH(x->at.arena, x->sent, sent);
  IR_PUSH(x->at.arena, x->entries, entry);
  return true;
}

static int find_sent(const mover *x, const char *name) {
  for (size_t i = 0; name && i < x->sent.num; i++)
    if (!strcmp(x->sent.at[i], name))
      return (int)i;
  return -1;
}

// The step of the kernel of that name, which is no transfer; -1: there is none.
static int find_begin(const mover *x, const char *name) {
  for (size_t i = 0; i < x->at.func->kernels.num; i++)
    if (!x->at.func->kernels.at[i].transfer && !strcmp(x->at.func->kernels.at[i].name, name))
      return x->step[i];
  return -1;
}

// Before anything makes the value again.
static bool is_read_from(const mover *x, int value, int step) {
  for (; step < x->at.s->num_kernels; step++)
    for (int i = 0; i < x->at.s->kernels[step].num_in; i++)
      if (x->at.s->kernels[step].in[i].value == value)
        return true;
  return false;
}

static bool add_fetch(mover *x, size_t entry) {
  const plan_edit_kernel *e = &x->at.func->kernels.at[entry];
  int i = find_sent(x, only(&e->reads)), here = x->step[entry];
  if (i < 0)
    return fault(x, entry, "a fetch reads what one send before it writes");
  offload_move *m = &x->out.moves.at[i];
  if (m->needed >= 0)
    return fault(x, entry, "a fetch of what has been fetched");
  m->begin = e->begin ? find_begin(x, e->begin) : here;
  m->needed = here;
  if (m->begin < m->sent || m->begin > here)
    return fault(x, entry,
                 ir_format(x->at.arena, "\"begin\" must name a kernel between '%s' and this one",
                           x->sent.at[i]));
  return is_read_from(x, m->value, here) ||
         fault(x, entry,
               ir_format(x->at.arena, "nothing behind it reads what is fetched: '%s'",
                         x->at.s->values[m->value].node->name));
}

static bool all_are_fetched(const mover *x) {
  for (size_t i = 0; i < x->out.moves.num; i++)
    if (x->out.moves.at[i].needed < 0)
      return fault(x, x->entries.at[i],
                   ir_format(x->at.arena, "'%s' is sent and never fetched", x->sent.at[i]));
  return true;
}

static bool find_moves(mover *x) {
  int step = 0;
  for (size_t i = 0; i < x->at.func->kernels.num; i++) {
    x->step[i] = step;
    step += x->at.func->kernels.at[i].transfer == PLAN_EDIT_NONE;
  }
  for (size_t i = 0; i < x->at.func->kernels.num; i++) {
    plan_edit_transfer t = x->at.func->kernels.at[i].transfer;
    if ((t == PLAN_EDIT_SEND && !add_send(x, i)) || (t == PLAN_EDIT_FETCH && !add_fetch(x, i)))
      return false;
  }
  return all_are_fetched(x);
}

bool plan_edit_transfers(ir_func *f, const plan_edit *e, size_t index, ir_diags *d) {
  ir_arena *a = ir_arena_new();
  mover x = {.at = plan_edit_open(a, f, e, index, d)};
  x.step = IR_NEW_ARRAY(a, int, x.at.func->kernels.num + 1);
  bool ok = find_moves(&x);
  if (ok && x.out.moves.num)
    offload_apply(x.at.s, &x.out);
  ir_arena_free(a);
  return ok;
}
