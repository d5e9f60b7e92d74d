// plan_json.c: the plan for programs. Schema "mltc-plan", version 1, described in
// docs/memory.md; fields are only ever added within a version.
#include <json-c/json.h>
#include <limits.h>

#include "passes/cost.h"
#include "passes/plan_text.h"

static void put_int(json_object *o, const char *key, int64_t v) {
  json_object_object_add(o, key, json_object_new_int64(v));
}

static void put_str(json_object *o, const char *key, const char *v) {
  json_object_object_add(o, key, json_object_new_string(v));
}

static json_object *kernel_json(ir_arena *a, const ir_kernel *k) {
  cost c = cost_kernel(a, k);
  json_object *o = json_object_new_object();
  put_str(o, "name", k->name);
  put_str(o, "family", ir_family_names[k->family]);
  json_object *ops = json_object_new_array();
  for (size_t i = 0; i < k->nodes.num; i++)
    json_object_array_add(ops, json_object_new_string(ir_ops[k->nodes.at[i]->op].name));
  json_object_object_add(o, "ops", ops);
  put_int(o, "flops", c.flops);
  put_int(o, "bytes_read", c.bytes_read);
  put_int(o, "bytes_written", c.bytes_written);
  return o;
}

// "first" and "last" are kernel indices; null means the whole run.
static json_object *buffer_json(const plan *p, const plan_buffer *b) {
  json_object *o = json_object_new_object();
  bool whole = b->last == INT_MAX;
  put_str(o, "name", b->name);
  put_str(o, "kind", plan_kind_names[b->kind]);
  if (b->state)
    put_str(o, "role", ir_role_names[b->state->role]);
  put_int(o, "bytes", b->bytes);
  put_int(o, "offset", b->offset);
  json_object_object_add(o, "first", whole ? NULL : json_object_new_int(b->first));
  json_object_object_add(o, "last", whole ? NULL : json_object_new_int(b->last));
  if (b->reuses >= 0)
    put_str(o, "in_place_of", p->buffers.at[b->reuses].name);
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

// Buffers of one function, or (NULL) those of the whole run.
static json_object *buffers_json(const plan *p, const ir_func *f) {
  json_object *list = json_object_new_array();
  for (size_t i = 0; i < p->buffers.num; i++) {
    const plan_buffer *b = &p->buffers.at[i];
    if (f ? plan_is_temp_of(b, f) : b->last == INT_MAX)
      json_object_array_add(list, buffer_json(p, b));
  }
  return list;
}

static json_object *func_json(ir_arena *a, const plan *p, const ir_func *f) {
  json_object *o = json_object_new_object();
  put_str(o, "name", f->name);
  json_object *kernels = json_object_new_array();
  for (size_t i = 0; i < f->kernels.num; i++)
    json_object_array_add(kernels, kernel_json(a, f->kernels.at[i]));
  json_object_object_add(o, "kernels", kernels);
  json_object_object_add(o, "buffers", buffers_json(p, f));
  json_object_object_add(o, "copies", copies_json(p, f));
  int64_t bytes;
  int peak = plan_peak(a, p, f, &bytes);
  json_object_object_add(o, "peak_kernel", peak < 0 ? NULL : json_object_new_int(peak));
  put_int(o, "peak_bytes", bytes);
  return o;
}

static json_object *totals_json(const plan *p) {
  json_object *o = json_object_new_object();
  put_int(o, "arena", p->arena_bytes);
  put_int(o, "states", p->state_bytes);
  put_int(o, "staging", p->staging_bytes);
  put_int(o, "temporaries", p->temp_bytes);
  return o;
}

void plan_print_json(const plan *p, const ir_module *m, ir_buf *out) {
  ir_arena *a = ir_arena_new();
  json_object *o = json_object_new_object();
  put_str(o, "schema", "mltc-plan");
  put_int(o, "version", 1);
  put_str(o, "model", m->name);
  put_int(o, "alignment", PLAN_ALIGN);
  json_object_object_add(o, "totals", totals_json(p));
  put_int(o, "bound", p->bound_bytes);
  json_object_object_add(o, "buffers", buffers_json(p, NULL));
  json_object *funcs = json_object_new_array();
  for (size_t i = 0; i < m->funcs.num; i++)
    json_object_array_add(funcs, func_json(a, p, m->funcs.at[i]));
  json_object_object_add(o, "functions", funcs);
  ir_buf_puts(out, json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY |
                                                         JSON_C_TO_STRING_NOSLASHESCAPE));
  ir_buf_puts(out, "\n");
  json_object_put(o);
  ir_arena_free(a);
}
