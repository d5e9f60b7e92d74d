// plan_diff_print.c: differences of plans, for people and as JSON.
//
//   gpt: keep.json -> sqrt.json                   before            after       difference
//     arena                                   40,447,808       21,012,800      -19,435,008  -48.0%
//   function step
//     kernels                                        265              292              +27  +10.2%
//     kernels by FLOPs, the greatest change first: 27 new, 0 gone, 0 changed
//     + layer.3.linear.matmul.again                    -      110,493,696     +110,493,696  runs layer.3.linear.matmul again
#include <string.h>

#include "driver/plan_diff.h"
#include "ir/json.h"

enum { NAME_WIDTH = 40 };

typedef struct printer {
  ir_arena *a;
  ir_buf *out;
} printer;

// --- text ----------------------------------------------------------------------------------------
static const char *size_text(const printer *p, const plan_item *x) {
  return x ? ir_grouped(p->a, x->size) : "-";
}

static void print_change(const printer *p, const plan_change *c) {
  int64_t before = c->a ? c->a->size : 0, after = c->b ? c->b->size : 0, more = after - before;
  const plan_item *x = c->b ? c->b : c->a;
  ir_buf_printf(p->out, "  %c %-*s %16s %16s %16s",
                !c->a   ? '+'
                : !c->b ? '-'
                        : ' ',
                NAME_WIDTH, x->name, size_text(p, c->a), size_text(p, c->b),
                ir_format(p->a, "%s%s", more > 0 ? "+" : "", ir_grouped(p->a, more)));
  if (before > 0 && c->b)
    ir_buf_printf(p->out, "  %+.1f%%", 100 * (double)more / (double)before);
  if (x->again)
    ir_buf_printf(p->out, "  runs %s again", x->again);
  ir_buf_puts(p->out, "\n");
}

static void print_all(const printer *p, const plan_changes *c) {
  for (size_t i = 0; i < c->list.num; i++)
    print_change(p, &c->list.at[i]);
}

static void print_some(const printer *p, const char *what, const plan_changes *c) {
  size_t added = 0, gone = 0, num = c->list.num;
  for (size_t i = 0; i < num; i++) {
    added += !c->list.at[i].a;
    gone += !c->list.at[i].b;
  }
  if (num)
    ir_buf_printf(p->out, "  %s, the greatest change first: %zu new, %zu gone, %zu changed\n", what,
                  added, gone, num - added - gone);
  for (size_t i = 0; i < num && i < PLAN_DIFF_SHOWN; i++)
    print_change(p, &c->list.at[i]);
  if (num > PLAN_DIFF_SHOWN)
    ir_buf_printf(p->out, "    ... and %zu more\n", num - PLAN_DIFF_SHOWN);
}

static void print_shares(const printer *p, const plan_changes *c) {
  if (c->list.num)
    ir_buf_puts(p->out, "  at the peak\n");
  print_all(p, c);
}

static void print_buffers(const printer *p, const plan_changes *c) {
  print_some(p, "buffers by bytes", c);
  if (c->others)
    ir_buf_printf(p->out, "  %zu buffers of one size have another place, life or share\n",
                  c->others);
  if (c->reordered)
    ir_buf_puts(p->out, "  buffers are listed in another order\n");
}

static void print_host(const printer *p, const plan_changes *c) {
  print_some(p, "on the host by bytes", c);
  if (c->others)
    ir_buf_printf(p->out, "  %zu buffers of one size have another place or life on the host\n",
                  c->others);
}

static void print_copies(const printer *p, const plan_changes *c) {
  print_some(p, "copies to states by bytes", c);
  if (c->others)
    ir_buf_printf(p->out, "  %zu copies of one size are of another value or place\n", c->others);
}

static void print_func(const printer *p, const plan_func_diff *f) {
  const char *where = !f->in_a ? ": new" : !f->in_b ? ": gone" : "";
  ir_buf_printf(p->out, "function %s%s\n", f->name, where);
  print_all(p, &f->figures);
  print_shares(p, &f->shares);
  print_some(p, "kernels by FLOPs", &f->kernels);
  if (f->kernels.others)
    ir_buf_printf(p->out, "  %zu kernels of as many FLOPs differ otherwise\n", f->kernels.others);
  if (f->kernels.reordered)
    ir_buf_puts(p->out, "  kernels run in another order\n");
  print_buffers(p, &f->buffers);
  print_host(p, &f->host);
  print_copies(p, &f->copies);
}

void plan_diff_print(const plan_diff *d, ir_buf *out) {
  printer p = {out->arena, out};
  bool one = strcmp(d->a->model, d->b->model) == 0;
  ir_buf_printf(out, "%s: %s -> %s%s%s\n", d->a->model, d->a->path, one ? "" : d->b->model,
                one ? "" : ": ", d->b->path);
  if (d->same) {
    ir_buf_puts(out, "the plans are the same\n");
    return;
  }
  ir_buf_printf(out, "    %-*s %16s %16s %16s\n", NAME_WIDTH, "", "before", "after", "difference");
  print_all(&p, &d->figures);
  print_shares(&p, &d->shares);
  print_buffers(&p, &d->buffers);
  for (size_t i = 0; i < d->funcs.num; i++)
    print_func(&p, &d->funcs.at[i]);
}

// --- JSON ----------------------------------------------------------------------------------------
static json_object *size_json(const plan_item *x) {
  return x ? json_object_new_int64(x->size) : NULL;
}

static json_object *change_json(const plan_change *c) {
  const plan_item *x = c->b ? c->b : c->a;
  json_object *o = json_object_new_object();
  json_object_object_add(o, "name", ir_json_text(x->name));
  json_object_object_add(o, "a", size_json(c->a));
  json_object_object_add(o, "b", size_json(c->b));
  if (x->again)
    json_object_object_add(o, "clone_of", ir_json_text(x->again));
  return o;
}

static void put_changes(json_object *o, const char *key, const plan_changes *c) {
  json_object *inner = json_object_new_object(), *list = json_object_new_array();
  for (size_t i = 0; i < c->list.num; i++)
    json_object_array_add(list, change_json(&c->list.at[i]));
  json_object_object_add(inner, "changed", list);
  json_object_object_add(inner, "others", json_object_new_int64((int64_t)c->others));
  json_object_object_add(inner, "reordered", json_object_new_boolean(c->reordered));
  json_object_object_add(o, key, inner);
}

static json_object *func_json(const plan_func_diff *f) {
  json_object *o = json_object_new_object();
  json_object_object_add(o, "name", ir_json_text(f->name));
  json_object_object_add(o, "in_a", json_object_new_boolean(f->in_a));
  json_object_object_add(o, "in_b", json_object_new_boolean(f->in_b));
  put_changes(o, "figures", &f->figures);
  put_changes(o, "shares", &f->shares);
  put_changes(o, "kernels", &f->kernels);
  put_changes(o, "buffers", &f->buffers);
  put_changes(o, "host", &f->host);
  put_changes(o, "copies", &f->copies);
  return o;
}

void plan_diff_print_json(const plan_diff *d, ir_buf *out) {
  json_object *o = json_object_new_object(), *funcs = json_object_new_array();
  json_object_object_add(o, "schema", json_object_new_string("mltc-plan-diff"));
  json_object_object_add(o, "version", json_object_new_int(1));
  json_object_object_add(o, "same", json_object_new_boolean(d->same));
  json_object_object_add(o, "model_a", ir_json_text(d->a->model));
  json_object_object_add(o, "model_b", ir_json_text(d->b->model));
  put_changes(o, "figures", &d->figures);
  put_changes(o, "shares", &d->shares);
  put_changes(o, "buffers", &d->buffers);
  for (size_t i = 0; i < d->funcs.num; i++)
    json_object_array_add(funcs, func_json(&d->funcs.at[i]));
  json_object_object_add(o, "functions", funcs);
  ir_buf_puts(out, json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY |
                                                         JSON_C_TO_STRING_NOSLASHESCAPE));
  ir_buf_puts(out, "\n");
  json_object_put(o);
}
