// row_update.c: see row_update.h.
#include "codegen/row_update.h"

int row_update_base(const cg_kernel *k, size_t out) {
  const ir_node *table = ir_row_table(k->arena, k->k, k->out.at[out]);
  for (size_t i = 0; i < k->in.num; i++)
    if (ir_is_same_table(k->in.at[i], table))
      return (int)i;
  BUG("kernel '%s' does not read the table that it updates", k->k->name);
}

// Axes of size 1 are in no domain: the first is that of rows, where there are several.
static const char *index_of(void *data, int axis) {
  const cg_kernel *k = data;
  return axis == 0 && k->k->anchor->type.dims[0] > 1 ? "row" : "column";
}

// Identifiers of the text around the statements.
static void reserve(cg_expr *e) {
  static const char *const used[] = {
      "row",     "rows",   "column", "sum",   "at",        "i",       "num",     "list",  "places",
      "sorted",  "spare",  "before", "first", "last",      "lanes",   "piece",   "part",  "slice",
      "partial", "hit",    "same",   "tile",  "update_at", "row_at",  "kind",    "share", "from",
      "to",      "counts", "lists",  "next",  "digit_at",  "to_rows", "to_list", "own"};
  for (size_t i = 0; i < sizeof used / sizeof *used; i++)
    cg_scope_name(e->k->arena, e->names, used[i]);
}

void row_update_emit(const cg_kernel *k, ir_buf *out, int indent, const char *sum, bool vectors,
                     const char *lanes) {
  cg_expr e = {.k = k,
               .out = out,
               .indent = indent,
               .names = ir_map_new(k->arena),
               .vector_axis = vectors ? k->dom->num_axes - 1 : -1,
               .index = index_of,
               .data = (void *)(uintptr_t)k,
               .lanes = lanes};
  reserve(&e);
  cg_scope_bind(k->arena, e.names, k->k->anchor, sum);
  cg_emit_stores(&e);
}
