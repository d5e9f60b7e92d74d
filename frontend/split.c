// split.c: one optimiser step as several micro-batches, when a search asks for it (fe_split).
//
//   let B = 64, P = B * T                      the model sees B = 16, P = 16 T
//   optim { sgd(0.1 * B / 256) }               sees B = 64, as do flags, data and train
//   train { accumulate = 2 }                   becomes 8, and says so: micro_batches = 4, batch = 64
//
// Every constant is evaluated twice for that. What a step is does not change: its samples, its
// learning rate, how many there are.
#include "frontend/check.h"

#include <string.h>

const fe_value *fe_split_value(fe *c, const char *name, const fe_value *v) {
  const fe_split *s = &c->options->split;
  bool divided = s->batch && c->lets != c->file_lets && strcmp(name, s->batch) == 0;
  if (!divided || fe_is_bad(v))
    return v;
  BUG_IF(v->kind != FE_NUM || !v->is_int || v->i % s->parts, "'%s' has no %lld parts", name,
         (long long)s->parts);
  return fe_int(c, v->i / s->parts);
}

ir_map *fe_use_file_lets(fe *c) {
  ir_map *before = c->lets;
  c->lets = c->file_lets;
  return before;
}

static void set_config(fe *c, const char *key, int64_t value) {
  ir_set_config(c->module, (ir_setting){key, IR_SET_NUM, (double)value, NULL});
}

void fe_split_steps(fe *c) {
  const fe_split *s = &c->options->split;
  const fe_value *batch = s->batch ? ir_map_get(c->file_lets, s->batch) : NULL;
  if (!batch || fe_is_bad(batch))
    return;
  c->accumulate *= s->parts;
  set_config(c, "accumulate", c->accumulate);
  set_config(c, "micro_batches", s->parts);
  set_config(c, "batch", batch->i);
}
