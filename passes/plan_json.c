// plan_json.c: see plan_json.h.
#include "passes/plan_json.h"

#include <limits.h>

#include "ir/json.h"
#include "passes/pass.h"
#include "passes/plan_facts.h"
#include "passes/plan_sort.h"
#include "passes/plan_text.h"

typedef struct writer {
  ir_arena *arena;
  const plan *p;
  const ir_module *m;
  plan_facts facts;
} writer;

// --- fields --------------------------------------------------------------------------------------
// Plans of deep networks have a million fields: keys are ours, stay where they are, and come once in each object.
static void put(json_object *o, const char *key, json_object *v) {
  json_object_object_add_ex(o, key, v,
                            JSON_C_OBJECT_ADD_KEY_IS_NEW | JSON_C_OBJECT_KEY_IS_CONSTANT);
}

static void put_int(json_object *o, const char *key, int64_t v) {
  put(o, key, json_object_new_int64(v));
}

// NULL: null.
static void put_str(json_object *o, const char *key, const char *v) {
  put(o, key, ir_json_text(v));
}

// -1: null.
static void put_index(json_object *o, const char *key, int v) {
  put(o, key, v < 0 ? NULL : json_object_new_int(v));
}

static void put_num(const writer *w, json_object *o, const char *key, double v) {
  put(o, key, json_object_new_double_s(v, ir_format(w->arena, "%.6f", v)));
}

static json_object *put_list(json_object *o, const char *key) {
  json_object *list = json_object_new_array();
  put(o, key, list);
  return list;
}

static json_object *put_object(json_object *o, const char *key) {
  json_object *inner = json_object_new_object();
  put(o, key, inner);
  return inner;
}

static void put_shares(json_object *o, const int64_t *shares) {
  json_object *list = put_object(o, "shares");
  for (int s = 0; s < PLAN_NUM_SHARES; s++)
    put_int(list, plan_share_names[s], shares[s]);
}

// --- kernels -------------------------------------------------------------------------------------
// The buffer that a kernel reads or writes the value in: "h", "@w" for a state, "x[0]" for an input.
static const char *memory_of(const writer *w, const ir_func *f, const ir_node *n) {
  int64_t at = n->stretch_of ? -1 : plan_offset(w->p, f, n);
  if (n->op == IR_INPUT)
    return ir_format(w->arena, "%s[0]", n->name);
  if (at >= 0 && at < w->p->state_bytes)
    return ir_format(w->arena, "@%s", plan_state_at(w->p, at)->name);
  return dom_owner(n)->name;
}

static void put_memory(const writer *w, json_object *list, const ir_func *f, const ir_node *n) {
  json_object_array_add(list, ir_json_text(memory_of(w, f, n)));
}

static void put_io(const writer *w, json_object *o, const ir_func *f, const ir_kernel *k) {
  dom_io io = dom_kernel_io(w->arena, k);
  json_object *reads = put_list(o, "reads"), *writes = put_list(o, "writes");
  for (size_t i = 0; i < io.in.num; i++)
    put_memory(w, reads, f, io.in.at[i]);
  for (size_t i = 0; i < io.out.num; i++)
    put_memory(w, writes, f, io.out.at[i]);
}

static json_object *kernel_json(const writer *w, const ir_func *f, const ir_kernel *k) {
  cost c = cost_kernel(w->arena, k);
  json_object *o = json_object_new_object();
  put_str(o, "name", k->name);
  put_str(o, "family", ir_family_names[k->family]);
  json_object *ops = put_list(o, "ops");
  for (size_t i = 0; i < k->nodes.num; i++)
    json_object_array_add(ops, json_object_new_string(ir_ops[k->nodes.at[i]->op].name));
  put_int(o, "flops", c.flops);
  put_int(o, "bytes_read", c.bytes_read);
  put_int(o, "bytes_written", c.bytes_written);
  put_io(w, o, f, k);
  put_str(o, "clone_of", k->clone_of ? k->clone_of->name : NULL);
  if (ir_is_transfer(k))
    put_str(o, "begin", k->begin ? k->begin->name : NULL);
  put_str(o, "source", ir_place(w->arena, k->anchor->loc));
  return o;
}

// --- buffers -------------------------------------------------------------------------------------
static ir_loc buffer_place(const plan_buffer *b) {
  return b->state ? b->state->loc : b->node ? b->node->loc : b->kernel->anchor->loc;
}

static const ir_type *buffer_type(const plan_buffer *b) {
  return b->state ? &b->state->type : b->node ? &b->node->type : NULL;
}

// "first" and "last" are kernel indices; null means the whole run.
static json_object *buffer_json(const writer *w, size_t i) {
  const plan_buffer *b = &w->p->buffers.at[i];
  const ir_type *type = buffer_type(b);
  json_object *o = json_object_new_object();
  bool whole = b->last == INT_MAX;
  put_str(o, "name", b->name);
  put_str(o, "kind", plan_kind_names[b->kind]);
  if (b->state)
    put_str(o, "role", ir_role_names[b->state->role]);
  put_int(o, "bytes", b->bytes);
  put_int(o, "offset", b->offset);
  put_index(o, "first", whole ? -1 : b->first);
  put_index(o, "last", whole ? -1 : b->last);
  if (b->reuses >= 0)
    put_str(o, "in_place_of", w->p->buffers.at[b->reuses].name);
  put_str(o, "share", plan_share_names[w->facts.share[i]]);
  put_str(o, "type", type ? ir_type_str(w->arena, type) : NULL);
  put_str(o, "source", ir_place(w->arena, buffer_place(b)));
  return o;
}

static json_object *copies_json(const plan *p, const ir_func *f) {
  json_object *list = json_object_new_array();
  for (size_t i = 0; i < p->copies.num; i++) {
    const plan_copy *c = &p->copies.at[i];
    if (c->func != f)
      continue;
    json_object *o = json_object_new_object();
    put_str(o, "state", c->state->name);
    put_str(o, "value", c->node->name);
    put_int(o, "from", c->from);
    put_int(o, "to", c->to);
    put_int(o, "bytes", c->bytes);
    json_object_array_add(list, o);
  }
  return list;
}

// Those of a function in memory of the host; NULL: it has none there.
static json_object *host_json(const writer *w, const ir_func *f) {
  json_object *list = NULL;
  for (size_t i = 0; i < w->p->buffers.num; i++) {
    if (w->p->buffers.at[i].kind != PLAN_HOST || w->p->buffers.at[i].func != f)
      continue;
    list = list ? list : json_object_new_array();
    json_object_array_add(list, buffer_json(w, i));
  }
  return list;
}

// Buffers of one function, or (NULL) those of the whole run, by their first kernels: the plan has them by the kernels
// that make them, before which wishes (plan_wishes.c) let some begin.
static json_object *buffers_json(const writer *w, const ir_func *f) {
  json_object *list = json_object_new_array();
  IR_VEC(plan_sized) found = {0};
  for (size_t i = 0; i < w->p->buffers.num; i++) {
    const plan_buffer *b = &w->p->buffers.at[i];
    plan_sized x = {-(int64_t)b->first, (int)i}; // sorted largest first
    if (f ? plan_is_temp_of(b, f) : b->last == INT_MAX)
      IR_PUSH(w->arena, found, x);
  }
  plan_sort_sizes(found.at, found.num);
  for (size_t i = 0; i < found.num; i++)
    json_object_array_add(list, buffer_json(w, (size_t)found.at[i].index));
  return list;
}

// --- functions -----------------------------------------------------------------------------------
static void put_recomputed(const writer *w, json_object *o, const plan_func_facts *x) {
  json_object *again = put_object(o, "recomputed");
  put_int(again, "kernels", x->clones);
  put_int(again, "flops", x->cloned.flops);
  put_int(again, "bytes", x->cloned.bytes_read + x->cloned.bytes_written);
  put_num(w, again, "time", plan_ratio(x->time, x->time - x->cloned_time));
}

// Only where values wait there.
static void put_sent(const writer *w, json_object *o, const plan_func_facts *x) {
  if (!x->sends)
    return;
  json_object *sent = put_object(o, "sent");
  put_int(sent, "values", x->sends);
  put_int(sent, "bytes", x->sent_bytes);
  put_num(w, sent, "waiting", plan_ratio(x->waiting, x->time - x->cloned_time));
}

static json_object *func_json(const writer *w, size_t index) {
  const ir_func *f = w->m->funcs.at[index];
  const plan_func_facts *x = &w->facts.func[index];
  json_object *o = json_object_new_object();
  put_str(o, "name", f->name);
  json_object *kernels = put_list(o, "kernels");
  for (size_t i = 0; i < f->kernels.num; i++)
    json_object_array_add(kernels, kernel_json(w, f, f->kernels.at[i]));
  put(o, "buffers", buffers_json(w, f));
  json_object *host = host_json(w, f);
  if (host)
    put(o, "host", host);
  put(o, "copies", copies_json(w->p, f));
  put_index(o, "peak_kernel", x->peak);
  put_int(o, "peak_bytes", x->peak_bytes);
  put_shares(o, x->shares);
  put_recomputed(w, o, x);
  put_sent(w, o, x);
  return o;
}

// --- the whole -----------------------------------------------------------------------------------
static void put_totals(const writer *w, json_object *o) {
  json_object *totals = put_object(o, "totals");
  put_int(totals, "arena", w->p->arena_bytes);
  put_int(totals, "states", w->p->state_bytes);
  put_int(totals, "staging", w->p->staging_bytes);
  put_int(totals, "temporaries", w->p->temp_bytes);
  if (w->p->host_bytes)
    put_int(totals, "host", w->p->host_bytes);
  put_int(totals, "parameters", w->facts.parameters);
  put_shares(totals, w->facts.shares);
}

static void put_ratios(const writer *w, json_object *o) {
  double arena = (double)w->p->arena_bytes;
  json_object *ratios = put_object(o, "ratios");
  put_num(w, ratios, "arena_bound", plan_ratio(arena, (double)w->p->bound_bytes));
  put_num(w, ratios, "arena_bound_ws", plan_ratio(arena, (double)w->facts.bound_ws));
  put_num(w, ratios, "recompute_time", w->facts.recompute_time);
}

// Only where the batch was divided.
static void put_config(json_object *o, const ir_module *m, const char *key) {
  int64_t count = ir_config_count(m, key);
  if (count)
    put_int(o, key, count);
}

struct json_object *plan_to_json(const plan *p, const ir_module *m) {
  ir_arena *a = ir_arena_new();
  writer w = {.arena = a, .p = p, .m = m, .facts = plan_find_facts(a, p, m)};
  json_object *o = json_object_new_object();
  put_str(o, "schema", "mltc-plan");
  put_int(o, "version", 1);
  put_str(o, "model", m->name);
  put_int(o, "alignment", PLAN_ALIGN);
  put_config(o, m, "micro_batches");
  put_config(o, m, "batch");
  if (pass_remakes_little(m))
    put_str(o, "remake", PASS_REMAKE_LITTLE);
  put_totals(&w, o);
  put_int(o, "bound", p->bound_bytes);
  put_int(o, "bound_ws", w.facts.bound_ws);
  put_ratios(&w, o);
  put(o, "buffers", buffers_json(&w, NULL));
  json_object *funcs = put_list(o, "functions");
  for (size_t i = 0; i < m->funcs.num; i++)
    json_object_array_add(funcs, func_json(&w, i));
  ir_arena_free(a);
  return o;
}

void plan_print_json(const plan *p, const ir_module *m, ir_buf *out) {
  json_object *o = plan_to_json(p, m);
  ir_buf_puts(out, json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY |
                                                         JSON_C_TO_STRING_NOSLASHESCAPE));
  ir_buf_puts(out, "\n");
  json_object_put(o);
}
