// families.c: which generator makes which kernel family. One row per family; a family
// without a row is a NULL call in the first test that meets it.
#include "codegen/codegen.h"

const cg_generator cg_generators[IR_NUM_FAMILIES] = {
    [IR_FAMILY_LOOP] = {cpu_loop_schedule, cpu_loop_emit, cpu_loop_touches},
    [IR_FAMILY_MATMUL] = {cpu_matmul_schedule, cpu_matmul_emit, cpu_matmul_touches},
    [IR_FAMILY_COPY] = {cpu_copy_schedule, cpu_copy_emit, cpu_copy_touches},
    [IR_FAMILY_SCATTER] = {cpu_scatter_schedule, cpu_scatter_emit, NULL},
};
