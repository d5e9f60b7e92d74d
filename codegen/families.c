// families.c: which generator makes which kernel family, on which kind of target. Every family has
// a row and every row both columns: what one target lacks does not compile.
#include "codegen/codegen.h"

#define FAMILIES(ROW)                                                                              \
  ROW(LOOP, loop, cpu_loop_touches)                                                                \
  ROW(MATMUL, matmul, cpu_matmul_touches)                                                          \
  ROW(COPY, copy, cpu_copy_touches)                                                                \
  ROW(SCATTER, scatter, NULL)

#define CPU_ROW(NAME, name, touches)                                                               \
  [IR_FAMILY_##NAME] = {cpu_##name##_schedule, cpu_##name##_emit, touches},
#define CUDA_ROW(NAME, name, touches)                                                              \
  [IR_FAMILY_##NAME] = {cuda_##name##_schedule, cuda_##name##_emit, NULL},
#define COUNT_ROW(NAME, name, touches) +1

static const cg_generator cpu_generators[IR_NUM_FAMILIES] = {FAMILIES(CPU_ROW)};
static const cg_generator cuda_generators[IR_NUM_FAMILIES] = {FAMILIES(CUDA_ROW)};
_Static_assert(FAMILIES(COUNT_ROW) == IR_NUM_FAMILIES, "a family has no row");

const cg_generator *cg_generator_for(const cg_target *t, ir_family family) {
  return t->cuda ? &cuda_generators[family] : &cpu_generators[family];
}
