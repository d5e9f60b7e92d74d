// report_page.c: see report_page.h. The page's own text is in report_page/: in report.html @STYLE@,
// @SCRIPT@ and @DATA@ stand for the style, the scripts and the JSON.
#include "codegen/report_page.h"

#include <string.h>

#include "ir/json.h"
#include "passes/plan_json.h"
#include "text_report_css.h"
#include "text_report_data_js.h"
#include "text_report_html.h"
#include "text_report_memory_js.h"
#include "text_report_page_js.h"
#include "text_report_roofline_js.h"

// --- members of kernels --------------------------------------------------------------------------
static void add_text(json_object *list, const char *text) {
  json_object_array_add(list, ir_json_text(text));
}

static json_object *group_json(ir_arena *a, const ir_kernel *k) {
  json_object *group = json_object_new_array();
  for (size_t i = 0; i < k->nodes.num; i++) {
    const ir_node *n = k->nodes.at[i];
    json_object *member = json_object_new_array();
    add_text(member, ir_ops[n->op].name);
    add_text(member, ir_type_str(a, &n->type));
    add_text(member, ir_place(a, n->loc));
    json_object_array_add(group, member);
  }
  return group;
}

// Equal layers have equal lists: `known` has the number, from 1, of each list's text.
static int find_group(ir_arena *a, ir_map *known, json_object *groups, const ir_kernel *k) {
  json_object *group = group_json(a, k);
  const char *text = json_object_to_json_string_ext(group, JSON_C_TO_STRING_PLAIN);
  size_t number = (size_t)(uintptr_t)ir_map_get(known, text);
  if (number) {
    json_object_put(group);
    return (int)number - 1;
  }
  number = json_object_array_length(groups) + 1;
  ir_map_put(known, text, (void *)(uintptr_t)number);
  json_object_array_add(groups, group);
  return (int)number - 1;
}

static void put_groups(const cg_program *p, json_object *o) {
  ir_map *known = ir_map_new(p->arena);
  json_object *groups = json_object_new_array(), *members = json_object_new_array();
  for (size_t i = 0; i < p->module->funcs.num; i++) {
    const ir_func *f = p->module->funcs.at[i];
    json_object *of = json_object_new_array();
    for (size_t k = 0; k < f->kernels.num; k++) {
      int group = find_group(p->arena, known, groups, f->kernels.at[k]);
      json_object_array_add(of, json_object_new_int(group));
    }
    json_object_array_add(members, of);
  }
  json_object_object_add(o, "groups", groups);
  json_object_object_add(o, "members", members);
}

// --- rooflines -----------------------------------------------------------------------------------
static json_object *machine_json(const char *name, const char *assumed, int64_t gbytes) {
  json_object *o = json_object_new_object();
  json_object_object_add(o, "name", ir_json_text(name));
  json_object_object_add(o, "assumed", ir_json_text(assumed));
  json_object_object_add(o, "gbytes", json_object_new_int64(gbytes));
  json_object_object_add(o, "rates", json_object_new_object());
  return o;
}

static void put_rate(json_object *machine, const char *unit, double gflops) {
  json_object *rates = json_object_object_get(machine, "rates");
  json_object_object_add(rates, unit, json_object_new_int64((int64_t)(gflops + 0.5)));
}

// Of a data sheet.
static json_object *chip_json(ir_arena *a, const char *arch) {
  const cg_chip *c = cg_cuda_chip(arch);
  const char *name = ir_format(a, "%s (%s)", c->name, arch);
  json_object *o = machine_json(name, NULL, (int64_t)(1000 * c->bandwidth + 0.5));
  put_rate(o, "f32", 1000 * c->f32);
  put_rate(o, "tf32", 1000 * c->tf32);
  put_rate(o, "bf16", 1000 * c->half);
  return o;
}

// What is known of a core is how wide its vectors are; the rest is a guess, and the page says so.
static json_object *core_json(ir_arena *a, const cg_target *t) {
  enum { GHZ = 3, UNITS = 2, GBYTES = 12 };
  int lanes = t->vector_bytes / 4, flops = t->fma ? 2 : 1;
  const char *assumed = ir_format(
      a, "one core: %d units of %d floats, %s, at %d GHz; %d GB/s of memory", (int)UNITS, lanes,
      t->fma ? "multiply and add at once" : "multiply or add", (int)GHZ, (int)GBYTES);
  json_object *o = machine_json(t->name, assumed, GBYTES);
  put_rate(o, "f32", (double)(GHZ * UNITS * lanes * flops));
  return o;
}

static void put_machines(const cg_program *p, json_object *o) {
  json_object *list = json_object_new_array();
  const cg_cuda *cuda = p->target->cuda;
  for (int i = 0; cuda && i < cuda->num_archs; i++)
    json_object_array_add(list, chip_json(p->arena, cuda->archs[i]));
  if (!cuda)
    json_object_array_add(list, core_json(p->arena, p->target));
  json_object_object_add(o, "machines", list);
}

// --- the page ------------------------------------------------------------------------------------
// Inside <script>, only "<" could end the text or begin a comment; in JSON it is in strings alone.
static void put_data(ir_buf *out, json_object *o) {
  const char *s =
      json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
  for (size_t n; *s; s += n) {
    n = strcspn(s, "<");
    ir_buf_write(out, s, n);
    if (s[n] == '<') {
      ir_buf_puts(out, "\\u003c");
      n++;
    }
  }
}

static void put_scripts(ir_buf *out) {
  static const char *const scripts[] = {text_report_data_js, text_report_memory_js,
                                        text_report_roofline_js, text_report_page_js};
  ir_buf_puts(out, "\"use strict\";\n");
  for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
    ir_buf_puts(out, scripts[i]);
}

static void put_slot(ir_buf *out, const char *slot, json_object *data) {
  if (!strncmp(slot, "@STYLE@", 7))
    ir_buf_puts(out, text_report_css);
  else if (!strncmp(slot, "@SCRIPT@", 8))
    put_scripts(out);
  else if (!strncmp(slot, "@DATA@", 6))
    put_data(out, data);
  else
    BUG("no such slot: %.20s", slot);
}

void cg_print_report(const cg_program *p, const plan *pl, ir_buf *out) {
  json_object *data = json_object_new_object();
  json_object_object_add(data, "plan", plan_to_json(pl, p->module));
  put_groups(p, data);
  put_machines(p, data);
  const char *s = text_report_html;
  for (const char *slot = strchr(s, '@'); slot; slot = strchr(s, '@')) {
    ir_buf_write(out, s, (size_t)(slot - s));
    put_slot(out, slot, data);
    s = strchr(slot + 1, '@') + 1;
  }
  ir_buf_puts(out, s);
  json_object_put(data);
}
