// support_kernels.h: generated kernels, compiled, loaded and compared with the oracle: CPU kernels
// as they are, CUDA kernels on the emulator (tests/emulator).
#ifndef TESTS_SUPPORT_KERNELS_H
#define TESTS_SUPPORT_KERNELS_H

#include "codegen/codegen.h"
#include "tests/unit/support_passes.h"

// The instruction sets that this machine can run; ends with name == NULL. The first is the widest.
const cg_target *test_targets(void);

// Kernels of several modules, compiled at once and run one by one. Each kernel runs three times,
// with its tasks split in different ways, on the oracle's values of its inputs; for a GPU with
// blocks and threads in different orders, and all accesses watched. Checked: all runs give the same
// bits (so do outputs in the memory of inputs, where plans allow that), nothing is written outside
// the outputs, and values are the oracle's within `tolerance` (relative to the largest element); for a
// CPU also that tasks touch no other bytes than cg_generator.touches says.
typedef struct test_suite test_suite;
// families: 1u << IR_FAMILY_... of those to test.
test_suite *test_suite_new(ir_arena *a, const cg_target *target, unsigned families);
// `m` has been through pass_fuse. The number of kernels of function `func` that were added.
int test_suite_add(test_suite *s, const char *what, const ir_module *m, const char *func,
                   double tolerance, uint64_t seed);
// Returns the generated text. In a build with sanitizers a CPU other than the first of test_targets runs nothing of it.
const char *test_suite_run(test_suite *s);
// Phases of the kernel that has most.
int test_suite_phases(const test_suite *s);

// One module: every kernel; for a CPU without matmuls, which compile slowly and have
// test_cpu_matmul*.c.
const char *test_kernels(ir_arena *a, const char *what, const ir_module *m, const char *func,
                         const cg_target *target, double tolerance, uint64_t seed);

// The body of a function f of IR, with the module's states.
typedef struct test_case {
  const char *what, *states, *body;
  double tolerance; // 0: 2e-6
} test_case;
// Through fusion, unless the text has kernels; NULL, counted as a failure, when a pass fails.
ir_module *test_case_module(ir_arena *a, const test_case *c);
// A kernel with its schedule, which points back to it.
cg_kernel *test_scheduled(ir_arena *a, ir_kernel *k, const ir_func *f, const cg_target *target);
// The kernels of all cases (`only`: of one; NULL: all) but matmuls, in one compile.
void test_run_cases(const test_case *cases, size_t num, const cg_target *target, const char *only,
                    bool show);
// Their text, to be compiled for a GPU: nothing is run, so that sizes may be real ones.
const char *test_cases_text(ir_arena *a, const test_case *cases, size_t num,
                            const cg_target *target);
// Random graphs of seeds first, first + step, ... last through the whole pipeline, their kernels as
// one suite. The second form tests one seed and prints its IR and its kernels.
void test_random_graphs(const cg_target *target, uint64_t first, uint64_t last, uint64_t step);
void test_random_graph(uint64_t seed, const cg_target *target);
// The level of optimisation for many kernels: 2, what trainers have, for the best of test_targets; for the others none,
// which takes a quarter of the time, and 1 where MLTC_SLOW is set.
int test_level(const cg_target *t);
// Compiles C text to a shared object and loads it; NULL (counted as a failure) when it does not
// compile. Optimised as the -O1 or -O2 of mltc, `level`, but in a build with sanitizers not at all: the second one
// always is, for what holds ulps.
void *test_load(ir_arena *a, const char *text, const cg_target *target, int level);
void *test_load_optimised(ir_arena *a, const char *text, const cg_target *target);
// CUDA text for the emulator. Unrolled loops make the compiler of the host slow, and nothing else.
const char *test_without_unrolling(ir_arena *a, const char *text);
// Element i of a tensor in memory, as numbers.
void test_put(char *p, ir_dtype t, int64_t i, double v);
double test_get(const char *p, ir_dtype t, int64_t i);
void test_put_tensor(char *p, const ir_tensor_value *v);
// Largest difference of a tensor in memory, relative to the largest element of `v`; 0 for equal NaN
// and infinities.
double test_distance(const char *p, const ir_tensor_value *v);

#endif
