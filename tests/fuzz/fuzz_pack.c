// fuzz_pack.c: any bytes as a file of mltc-pack. Either there are errors, or it is packed without
// overlaps, no lower than its bound, and what is written reads back as the same intervals.
#include <string.h>

#include "fuzz_compiler.h"
#include "passes/pack/csv.h"

enum { MOST_INTERVALS = 300, STEPS = 200000 };

static void check_packing(ir_arena *a, pack_file *f) {
  plan_packing r = plan_pack_within(f->at, f->num, &(plan_pack_limits){.steps = STEPS});
  BUG_IF(plan_pack_check(a, f->at, f->num) != 0, "intervals overlap");
  BUG_IF(r.height < r.proved || r.proved < r.bound, "bounds in disorder");
  BUG_IF(r.bound != plan_pack_bound(a, f->at, f->num), "the bound is another");
  for (size_t i = 0; i < f->num; i++)
    BUG_IF(f->at[i].offset < 0 || f->at[i].offset + f->at[i].size > r.height, "out of place");
}

static void check_text(ir_arena *a, const pack_file *f) {
  ir_buf text = ir_buf_new(a);
  pack_write_csv(f, &text);
  ir_source source = {"out.csv", ir_buf_str(&text), text.len};
  ir_diags *d = diag_new(a);
  pack_file again;
  BUG_IF(!pack_read_csv(a, &source, d, &again), "what is written cannot be read");
  BUG_IF(again.num != f->num, "%zu intervals became %zu", f->num, again.num);
  for (size_t i = 0; i < f->num; i++) {
    const plan_interval *x = &f->at[i], *y = &again.at[i];
    BUG_IF(x->lower != y->lower || x->upper != y->upper || x->size != y->size ||
               strcmp(f->id[i], again.id[i]) != 0,
           "interval %zu became another", i);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ir_arena *a = ir_arena_new();
  ir_source source = {"fuzz.csv", ir_strndup(a, (const char *)data, size), size};
  ir_diags *d = diag_new(a);
  pack_file f;
  bool ok = pack_read_csv(a, &source, d, &f);
  BUG_IF(ok != (diag_num_errors(d) == 0), "errors and the result disagree");
  if (ok && f.num <= MOST_INTERVALS) {
    check_packing(a, &f);
    check_text(a, &f);
  }
  fuzz_print_diags(d);
  ir_arena_free(a);
  return 0;
}
