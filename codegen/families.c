// families.c: which generator makes which kernel family, on which kind of target. Every family has
// a row in one of two lists: those that all targets have, and those that only GPUs have. Passes
// make kernels of the latter only for targets that have them (cg_families, pass_info.families).
#include "codegen/codegen.h"

#define FAMILIES(ROW)                                                                              \
  ROW(LOOP, loop, cpu_loop_touches)                                                                \
  ROW(MATMUL, matmul, cpu_matmul_touches)                                                          \
  ROW(COPY, copy, cpu_copy_touches)                                                                \
  ROW(SCATTER, scatter, NULL)
#define CUDA_FAMILIES(ROW)                                                                         \
  ROW(ATTENTION, attention, NULL)                                                                  \
  ROW(SEND, transfer, NULL)                                                                        \
  ROW(FETCH, transfer, NULL)

#define CPU_ROW(NAME, name, touches)                                                               \
  [IR_FAMILY_##NAME] = {cpu_##name##_schedule, cpu_##name##_emit, touches},
#define CUDA_ROW(NAME, name, touches)                                                              \
  [IR_FAMILY_##NAME] = {cuda_##name##_schedule, cuda_##name##_emit, NULL},
#define BIT_ROW(NAME, name, touches)   | 1u << IR_FAMILY_##NAME
#define COUNT_ROW(NAME, name, touches) +1

static const cg_generator cpu_generators[IR_NUM_FAMILIES] = {FAMILIES(CPU_ROW)};
static const cg_generator cuda_generators[IR_NUM_FAMILIES] = {FAMILIES(CUDA_ROW)
                                                                  CUDA_FAMILIES(CUDA_ROW)};
_Static_assert(FAMILIES(COUNT_ROW) CUDA_FAMILIES(COUNT_ROW) == IR_NUM_FAMILIES,
               "a family has no row");

unsigned cg_families(const cg_target *t) {
  unsigned all = 0 FAMILIES(BIT_ROW);
  return t->cuda ? all CUDA_FAMILIES(BIT_ROW) : all;
}

const cg_generator *cg_generator_for(const cg_target *t, ir_family family) {
  BUG_IF(!(cg_families(t) >> family & 1), "%s kernels on %s", ir_family_names[family], t->name);
  return t->cuda ? &cuda_generators[family] : &cpu_generators[family];
}

const ir_node *cg_find_foreign_operand(const cg_target *t, const ir_module *m) {
  for (size_t i = 0; t->cuda && i < m->funcs.num; i++) {
    const ir_func *f = m->funcs.at[i];
    for (size_t j = 0; j < f->nodes.num; j++) {
      const ir_node *n = f->nodes.at[j];
      for (int k = 0; n->op == IR_MATMUL && n->kernel && k < n->num_in; k++) {
        const ir_node *c = dom_conversion(n->in[k]);
        if (c && ir_is_integer_conversion(c))
          return n;
      }
    }
  }
  return NULL;
}

const ir_kernel *cg_find_foreign(const cg_target *t, const ir_module *m) {
  for (size_t i = 0; i < m->funcs.num; i++)
    for (size_t j = 0; j < m->funcs.at[i]->kernels.num; j++) {
      const ir_kernel *k = m->funcs.at[i]->kernels.at[j];
      if (!(cg_families(t) >> k->family & 1))
        return k;
    }
  return NULL;
}
