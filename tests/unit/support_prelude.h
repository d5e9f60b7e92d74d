// support_prelude.h: one text of small functions over vectors, each an expression that both
// preludes must mean the same by; as functions (C and C++: test_cuda_prelude.c) or as kernels (for
// a GPU: tests/bench/gpu/wrapper_results.c), with odd values to run them on.
#ifndef SUPPORT_PRELUDE_H
#define SUPPORT_PRELUDE_H

#include "ir/base.h"

// COUNT elements are computed; buffers have BYTES, for some is read and written behind them.
enum { PRELUDE_COUNT = 4096, PRELUDE_BYTES = PRELUDE_COUNT * 8 + 4096, PRELUDE_THREADS = 128 };

typedef enum prelude_compare {
  PRELUDE_BITS,
  PRELUDE_NUMBERS, // -0 is as good as 0
  PRELUDE_FUSED,   // bits where no compiler fuses a product with a sum
  PRELUDE_CLOSE,
} prelude_compare;

typedef struct prelude_row {
  const char *types;  // each of them is x's and y's type, by first letters: "f d i u l"
  const char *expr;   // $ is the name of the type
  const char *result; // NULL: the same type
  prelude_compare how;
} prelude_row;
extern const prelude_row prelude_rows[];
extern const int prelude_num_rows;

// Beside the rows: memory_TYPE for each of these, which loads and stores in every way there is.
enum { PRELUDE_NUM_TYPES = 9 };
extern const char *const prelude_types[PRELUDE_NUM_TYPES];

// Functions row_I_TYPE(a, b, c, r, n), memory_TYPE(...): with elements of a and b, bools c, result
// r. Or kernels of these names, with a, b, c, r as arguments, on prelude_blocks() blocks.
const char *prelude_functions(ir_arena *a);
const char *prelude_kernels(ir_arena *a);
int prelude_blocks(bool memory);

const char *prelude_type_name(char letter); // 'f' -> "f32"
int prelude_type_bytes(const char *type);
// Element i of a (which 0) or b (1): all pairs of odd values first, then random ones.
void prelude_put_value(char *p, const char *type, int i, int which, uint64_t *seed);

#endif
