// cost.h: what a kernel costs, from the columns of ops.def.
#ifndef PASSES_COST_H
#define PASSES_COST_H

#include "ir/ir.h"

typedef struct cost {
  int64_t flops;
  int64_t bytes_read, bytes_written; // each buffer once, from and to memory
} cost;

// x + y of two counts; as much as 64 bits hold where it is more: what may be said of tensors of 2^48 elements is no
// step of any machine, and is counted all the same.
static inline int64_t cost_plus(int64_t x, int64_t y) {
  return x > INT64_MAX - y ? INT64_MAX : x + y;
}

int64_t cost_flops(const ir_node *n);
cost cost_kernel(ir_arena *a, const ir_kernel *k);
// How long the kernel takes, to compare kernels with each other: the longer of its arithmetic and
// its traffic, on a machine of which only the proportions count (a roofline: docs/memory.md).
double cost_seconds(ir_arena *a, const ir_kernel *k);
// [kernel] the same for all kernels of a function, on the device that the module's settings describe,
// where they do: `device_products` and `device_flops`, operations in a second of products and of other
// arithmetic, and `device_bandwidth`, bytes in a second. Transfers take none of its time. Of a kernel that runs again it
// is what the step takes longer than if its results had been kept.
double *cost_of_kernels(ir_arena *a, const ir_func *f);
// [kernel] that for all kernels, as if each ran again.
double *cost_of_again(ir_arena *a, const ir_func *f);
// Of a kernel of these ops without products that reads `in` and stores the last of them.
double cost_seconds_loop(ir_node *const *nodes, size_t num, ir_node *const *in, size_t num_in);

#endif
