// cg_begin.c: where a kernel begins in its arguments.
//
//   repeat t in T shared { h = cell(x[:, t], h) }         T kernels of one text, but for t:
//
//     k_load_f32(p0_x + i0 * 384 + i1 + 24)     ->        const float *const p0_x = (const float *)args[0] + (int64_t)args[3];
//                                                         k_load_f32(p0_x + i0 * 384 + i1)
//
// A family notes each place from which it walks an argument, and then settles: what begins behind the first element
// gets a number.
#include "codegen/codegen.h"

void cg_note_begin(cg_kernel *k, int arg, int64_t offset) {
  size_t num = k->in.num + k->out.num;
  if (!k->begin) {
    k->begin = IR_NEW_ARRAY(k->arena, int64_t, num);
    for (size_t i = 0; i < num; i++)
      k->begin[i] = INT64_MAX;
  }
  if (offset < k->begin[arg])
    k->begin[arg] = offset;
}

void cg_note_domain_begins(cg_kernel *k) {
  for (size_t i = 0; i < k->dom->loads.num; i++) {
    const dom_load *l = &k->dom->loads.at[i];
    bool factor = k->k->family == IR_FAMILY_MATMUL && l->user == k->k->anchor;
    if (dom_is_in_memory(l) && !factor)
      cg_note_begin(k, cg_arg_index(k, l->buffer), l->access.offset);
  }
  for (size_t i = 0; i < k->dom->stores.num; i++) {
    const dom_store *s = &k->dom->stores.at[i];
    cg_note_begin(k, cg_arg_index(k, s->buffer), s->access.offset);
  }
}

// An argument may be one that nobody walks; an access of no elements may begin before the first.
void cg_settle_begins(cg_kernel *k, int64_t multiple) {
  for (size_t i = 0; k->begin && i < k->in.num + k->out.num; i++) {
    if (k->begin[i] == INT64_MAX || k->begin[i] < 0)
      k->begin[i] = 0;
    k->begin[i] -= k->begin[i] % multiple;
    if (k->begin[i])
      IR_PUSH(k->arena, k->numbers, k->begin[i]);
  }
}

int64_t cg_begin(const cg_kernel *k, int arg) {
  return k->begin ? k->begin[arg] : 0;
}

// That many numbers are the begins of arguments `from` and further ones.
static size_t begins_from(const cg_kernel *k, size_t from) {
  size_t num = 0;
  for (size_t i = from; k->begin && i < k->in.num + k->out.num; i++)
    num += k->begin[i] != 0;
  return num;
}

size_t cg_num_begins(const cg_kernel *k) {
  return begins_from(k, 0);
}

const char *cg_begin_text(const cg_kernel *k, int arg) {
  if (cg_begin(k, arg) == 0)
    return "";
  size_t at = k->numbers.num - begins_from(k, (size_t)arg);
  return ir_format(k->arena, " + (int64_t)args[%zu]",
                   k->in.num + k->out.num + (k->workspace > 0) + at);
}
