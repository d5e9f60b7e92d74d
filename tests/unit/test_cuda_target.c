// test_cuda_target.c: --target=cuda:...: any order is the same target; limits are the least of each
// architecture named; what is unknown is named, with what may be meant.
#include "codegen/program.h"
#include "support_ir.h"

#include <string.h>

static const cg_cuda *find(ir_arena *a, const char *name, const char *canonical) {
  const cg_target *t = cg_target_find(a, name);
  CHECK(t && t->cuda && !strcmp(t->name, canonical), "%s is %s", name, t ? t->name : "unknown");
  CHECK(t && t->vector_bytes == 16 && !t->triple, "%s: a thread's vector is four floats", name);
  return t ? t->cuda : NULL;
}

static void test_lists(ir_arena *a) {
  find(a, "cuda", "cuda:sm_80,sm_90a");
  find(a, "cuda:sm_90a,sm_80", "cuda:sm_80,sm_90a");
  find(a, "cuda:sm_80,sm_90a,sm_80", "cuda:sm_80,sm_90a");
  const cg_cuda *all =
      find(a, "cuda:sm_100,sm_90a,sm_89,sm_86,sm_80", "cuda:sm_80,sm_86,sm_89,sm_90a,sm_100");
  CHECK(all && all->num_archs == 5 && all->compute == 80, "the oldest of all");
}

// Of each pair: no limit is above that of either, and each is that of one of them.
static void test_least(ir_arena *a) {
  for (int i = 0; cg_cuda_names[i]; i++)
    for (int j = 0; cg_cuda_names[j]; j++) {
      const char *wrong, *list = ir_format(a, "%s,%s", cg_cuda_names[i], cg_cuda_names[j]);
      const cg_cuda *x = cg_cuda_find(a, cg_cuda_names[i], &wrong);
      const cg_cuda *y = cg_cuda_find(a, cg_cuda_names[j], &wrong);
      const cg_cuda *both = cg_cuda_find(a, list, &wrong);
#define LEAST(field)                                                                               \
  CHECK(both->field == (x->field < y->field ? x->field : y->field), "%s: " #field " %lld", list,   \
        (long long)both->field)
      LEAST(compute);
      LEAST(threads_per_sm);
      LEAST(blocks_per_sm);
      LEAST(registers_per_sm);
      LEAST(shared_per_block);
      LEAST(shared_per_sm);
      LEAST(shared_asked_for);
      LEAST(sms);
      CHECK(both->shared_per_block == 48 * 1024 &&
                both->shared_per_block < both->shared_asked_for &&
                both->shared_asked_for < both->shared_per_sm &&
                both->threads_per_sm % both->warp == 0,
            "%s: limits that cannot be", list);
    }
}

static void test_wrong(ir_arena *a, const char *name, const char *said) {
  CHECK(!cg_target_find(a, name), "%s is known", name);
  const char *why = cg_target_why_not(a, name);
  CHECK(strstr(why, said), "%s: %s", name, why);
}

int main(void) {
  ir_arena *a = ir_arena_new();
  test_lists(a);
  test_least(a);
  test_wrong(a, "cuda:sm_90", "architecture 'sm_90': did you mean 'sm_90a'?");
  test_wrong(a, "cuda:sm_80,,sm_86", "architecture ''");
  test_wrong(a, "cuda:sm_80,", "architecture ''");
  test_wrong(a, "cuda:sm_8", "did you mean 'sm_80'?");
  test_wrong(a, "cuda:SM_80", "it can be sm_80, sm_86, sm_89, sm_90a, sm_100");
  test_wrong(a, "cudax", "did you mean 'cuda'?");
  CHECK(!cg_target_find(a, "cpu")->cuda, "the CPU is a GPU");
  ir_arena_free(a);
  return support_finish("test_cuda_target");
}
