// support_kernels.h: generated kernels, compiled, loaded and compared with the oracle: CPU kernels
// as they are, CUDA kernels on the emulator (tests/emulator).
#ifndef TESTS_SUPPORT_KERNELS_H
#define TESTS_SUPPORT_KERNELS_H

#include "codegen/codegen.h"
#include "tests/unit/support_passes.h"

// The instruction sets that this machine can run; ends with name == NULL. The first is the widest.
const cg_target *test_targets(void);

// `m` has been through pass_fuse. Makes C of every LOOP, COPY and SCATTER kernel (for a GPU: every
// kernel) of function `func` for `target`, compiles it and runs each kernel three times, with its
// tasks split in different ways, on the oracle's values of its inputs. Checks that all runs give
// the same bits (so do outputs in the memory of inputs, where plans allow that), that nothing is
// written outside the outputs, and that the values are the oracle's within `tolerance` (relative to
// the largest element). For a GPU the three runs have blocks and threads in different orders, and
// all accesses are watched. Returns the generated text.
const char *test_kernels(ir_arena *a, const char *what, ir_module *m, const char *func,
                         const cg_target *target, double tolerance, uint64_t seed);
// Compiles C text to a shared object and loads it; NULL (counted as a failure) when it does not
// compile.
void *test_load(ir_arena *a, const char *text, const cg_target *target);
// Element i of a tensor in memory, as numbers.
void test_put(char *p, ir_dtype t, int64_t i, double v);
double test_get(const char *p, ir_dtype t, int64_t i);
void test_put_tensor(char *p, const ir_tensor_value *v);
// Largest difference of a tensor in memory, relative to the largest element of `v`; 0 for equal NaN
// and infinities.
double test_distance(const char *p, const ir_tensor_value *v);

#endif
