// support_matmul.h: random matrix products for the tests of both matmul families: axes and the
// ways that they lie in memory, bands, and what an element's address is.
#ifndef TESTS_SUPPORT_MATMUL_H
#define TESTS_SUPPORT_MATMUL_H

#include "codegen/cpu_matmul.h"

// Vectors of so many bits, and caches that problems of tests do not fit, or hardly; the last has as good as none.
typedef enum test_vector { TEST_512, TEST_256, TEST_128, TEST_TINY, TEST_NUM_VECTORS } test_vector;
extern const cg_target test_vectors[TEST_NUM_VECTORS];

// The results of a problem, wherever they lie in memory.
typedef struct test_output {
  mm_axes batch, m, n;
} test_output;

// The next number of a fixed sequence, in [0, limit).
uint64_t test_draw(uint64_t limit);
// A size that is at, around or far from multiples of tiles, at most `most`.
int64_t test_random_size(int64_t most);
// One axis of `size`, or two where it can be split by 4 or by a small number.
mm_axes test_parts_of(int64_t size, bool two);
// Strides, the last list innermost; `gaps` between rows now and then. `interleave`: the inner parts
// of all lists lie inside all outer ones.
void test_lay_out(mm_axes *const *order, int num, bool gaps, bool interleave);
// Operand `arg` of p, with `x` rows (a) or columns (b). `odd`: any offset, gaps and order of axes.
mm_operand test_random_operand(int arg, const mm_problem *p, int64_t x, bool odd);
ir_band test_random_band(int64_t rows, int64_t columns);

// Lays out the results of p, argument 2, and tells p where they lie. `plain`: in rows, which tiles may store themselves.
void test_set_output(mm_problem *p, test_output *o, bool plain);

// Elements from the first to the last of them.
int64_t test_extent(const mm_axes *axes);
int64_t test_at(const mm_axes *axes, int64_t index);
// test_at of 0 .. num - 1.
int64_t *test_offsets(ir_arena *a, const mm_axes *axes, int64_t num);
// What element `i` of an operand's buffer counts as.
typedef double (*test_element_fn)(const void *data, const mm_operand *o, const char *buffer,
                                  int64_t i);
// Lines of k of rows (of b: columns) [first, first + num), side by side; malloc'd. What is read once for each product, and
// not once for each of its sums: under the sanitizers reading took three quarters of the time.
double *test_lines(const mm_problem *p, const mm_operand *o, const char *buffer, int64_t batch,
                   int64_t first, int64_t num, test_element_fn element, const void *data);
int64_t test_output_at(const test_output *o, int64_t batch, int64_t m, int64_t n);
// `bytes` that end where a forbidden page begins. What nobody touches takes no memory.
char *test_guarded(size_t bytes);
void test_unguard(char *at, size_t bytes);
// Element `i` of a buffer of doubles (elem_bytes 8), floats (4) or unsigned bytes.
double test_element(int elem_bytes, const char *buffer, int64_t i);
bool test_is_outside(ir_band b, int64_t row, int64_t column);
// Operands as the bands promise them: 0 outside.
void test_clear_outside(const mm_problem *p, char *const *args);
// Elements of c that somebody needs and that two runs disagree on.
int64_t test_count_different(const mm_problem *p, const test_output *o, const char *x,
                             const char *y);

// --- kernels of the CPU's generator, as tests compile and run them
typedef void (*test_phase_fn)(int64_t begin, int64_t end, char *const *args);
// NAME_finish: c = 3 + sum / 2, wherever `o` says; plain edges: the sum itself.
void test_emit_finish(const mm_problem *p, const test_output *o, const char *name, ir_buf *out);
// Kernel `index` of a text, called mm0, mm1, ..., and where its phases are found.
void test_emit_matmul(const mm_problem *p, const mm_plan *plan, int index, ir_buf *out);
void test_find_phases(const mm_plan *plan, void *library, int index, test_phase_fn *phases);
// Compiles a text, with these flags besides those that all kernels of tests have, and opens it; NULL: it does not compile.
void *test_library(ir_arena *a, const char *base, ir_buf *text, const char *flags);
// Runs all tasks in order, and again from last to first, three at a time: the wrong results of both runs, as `count` finds them. What
// kernels write begins as no numbers each time; `bytes` of all arguments.
typedef int64_t (*test_count_fn)(const void *data, char *const *args);
typedef struct test_wrong {
  int64_t in_order, backwards;
} test_wrong;
test_wrong test_run_both(const mm_plan *plan, void *library, int index, char *const *args,
                         const size_t *bytes, test_count_fn count, const void *data);
// All tasks at once (piece 0), or so many at a time, from the last to the first.
void test_run_phases(const mm_plan *plan, const test_phase_fn *phases, char *const *args,
                     int64_t piece);
double test_bf16_element(const char *buffer, int64_t i);

#endif
