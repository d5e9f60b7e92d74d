// cost.c: floating-point operations and memory traffic of a kernel. A matmul of [m,k] and [k,n]
// is 2*m*n*k, less what bands leave out (passes/band.h: whole tiles at a time, so a little more
// than this is really done); a pointwise op is its column of ops.def times its elements; a
// reduction times the elements that go in. Traffic counts each buffer once: caches keep what is
// read twice.
#include "passes/cost.h"
#include "ir/row_update.h"
#include "passes/band.h"
#include "passes/domain.h"

// Of tensors that may have 2^48 elements: what cannot be counted is `most`.
static int64_t matmul_flops(const ir_node *n) {
  static const int64_t most = (int64_t)1 << 58;
  int64_t k = ir_matmul_steps(n), sums = ir_elements(&n->type);
  band_product bands = band_of_matmul(n);
  if (sums > most / 2 / k)
    return most;
  if (!bands.limited)
    return 2 * sums * k;
  int64_t rows = band_rows(&n->type), columns = band_columns(&n->type);
  int64_t batch = sums / (rows * columns);
  return 2 * batch * band_count_products(&bands, rows, columns, k);
}

// What a kernel has made a part is inserted into where it lies, as far as can be told here.
static bool inserts_in_place(const ir_kernel *k) {
  return k && k->anchor->op == IR_INSERT && dom_base(k->anchor->in[0])->kernel;
}

// Of `x`, which has a row per row of the table: all, or in a row update at most one row per index.
static int64_t elements_in(const ir_kernel *k, const ir_node *x) {
  int64_t all = ir_elements(&x->type);
  if (inserts_in_place(k) && x == k->anchor)
    return ir_elements(&x->in[1]->type);
  if (!k || !ir_is_row_update(k) || all != ir_elements(&k->anchor->type))
    return all;
  int64_t named = ir_elements(&k->anchor->in[0]->type) * (all / k->anchor->type.dims[0]);
  return named < all ? named : all;
}

int64_t cost_flops(const ir_node *n) {
  const ir_op_info *op = &ir_ops[n->op];
  switch (op->cls) {
  case IR_CLASS_CONTRACT:
    return matmul_flops(n);
  case IR_CLASS_REDUCE:
    return op->flops * ir_elements(&n->in[0]->type);
  case IR_CLASS_INDEX: // per element that moves: the update of a scatter
    return op->flops * ir_elements(&n->in[n->num_in - 1]->type);
  case IR_CLASS_POINTWISE:
    return op->flops * elements_in(n->kernel, n);
  default:
    return 0;
  }
}

static int64_t bytes_in(const ir_kernel *k, const ir_node *x) {
  return elements_in(k, x) * ir_dtypes[x->type.dtype].bytes;
}

static bool feeds_anchor(const ir_kernel *k, const ir_node *x) {
  return dom_base(k->anchor->in[0]) == x || dom_base(k->anchor->in[1]) == x;
}

// Of a gathered table, and of one that a row update changes, only the rows that are named.
static int64_t bytes_read_of(const ir_kernel *k, const ir_node *in) {
  if (ir_is_row_update(k) && !feeds_anchor(k, in))
    return bytes_in(k, in);
  int64_t bytes = ir_bytes(&in->type);
  if (inserts_in_place(k) && dom_base(k->anchor->in[0]) == in)
    return 0;
  for (size_t i = 0; i < k->nodes.num; i++) {
    const ir_node *n = k->nodes.at[i];
    if (n->op == IR_GATHER && n->in[0] == in && ir_bytes(&n->type) < bytes)
      bytes = ir_bytes(&n->type);
  }
  return bytes;
}

cost cost_kernel(ir_arena *a, const ir_kernel *k) {
  cost c = {0};
  for (size_t i = 0; i < k->nodes.num; i++)
    c.flops = cost_plus(c.flops, cost_flops(k->nodes.at[i]));
  dom_io io = dom_kernel_io(a, k);
  for (size_t i = 0; i < io.in.num; i++)
    c.bytes_read = cost_plus(c.bytes_read, bytes_read_of(k, io.in.at[i]));
  for (size_t i = 0; i < io.out.num; i++)
    c.bytes_written = cost_plus(c.bytes_written, bytes_in(k, io.out.at[i]));
  return c;
}

typedef struct rates {
  double products, flops, bandwidth, start;
  double near; // bytes in a second from and to the caches
  double
      windows; // time of a product of 3 x 3 windows, in parts of what its FLOPs take; 0: all of that
} rates;

// A core of 2020 and its share of the memory: products at 100 GFLOP/s, other arithmetic at 20, 10 GB/s;
// 20 GB/s from and to the caches. Windows as codegen/cpu_matmul_winograd.c takes them.
static const rates core = {100e9, 20e9, 10e9, 1e-6, 20e9, 0};
static const double PATCHES = 0.55;
// What two of them hold there.
enum { NEAR_BYTES = 4 << 20 };

static rates rates_of(const ir_module *m) {
  rates r = {.products = (double)ir_config_count(m, "device_products"),
             .flops = (double)ir_config_count(m, "device_flops"),
             .bandwidth = (double)ir_config_count(m, "device_bandwidth"),
             .start = 2e-6};
  if (r.products > 0 && r.flops > 0 && r.bandwidth > 0)
    return r;
  r = core;
  r.windows = PATCHES;
  return r;
}

static double max2(double x, double y) {
  return x > y ? x : y;
}

static double seconds_of(const rates *r, double arithmetic, int64_t bytes) {
  return r->start + max2(arithmetic, (double)bytes / r->bandwidth);
}

enum { VECTOR = 8 }; // channels and results of which there must be as many

// 3 x 3 windows, one at each place.
static bool are_patches(const ir_node *x) {
  while (ir_ops[x->op].cls == IR_CLASS_VIEW && x->op != IR_WINDOWS)
    x = x->in[0];
  if (x->op != IR_WINDOWS || x->type.dtype != IR_F32)
    return false;
  int num;
  const int64_t *size = ir_attr_ints(x, IR_ATTR_SIZE, &num),
                *step = ir_attr_ints(x, IR_ATTR_STEP, NULL),
                *dilate = ir_attr_ints(x, IR_ATTR_DILATE, NULL);
  const ir_type *images = &x->in[0]->type;
  bool squares = num == 2 && images->dims[images->rank - 1] >= VECTOR;
  for (int i = 0; squares && i < num; i++)
    squares = size[i] == 3 && step[i] == 1 && dilate[i] == 1;
  return squares;
}

static double product_seconds(const rates *r, const ir_node *n) {
  double seconds = (double)cost_flops(n) / r->products;
  bool fewer = r->windows > 0 && n->type.dims[n->type.rank - 1] >= VECTOR && are_patches(n->in[0]);
  return fewer ? r->windows * seconds : seconds;
}

static double arithmetic_seconds(const rates *r, const ir_kernel *k) {
  double seconds = 0;
  for (size_t i = 0; i < k->nodes.num; i++) {
    const ir_node *n = k->nodes.at[i];
    seconds += ir_ops[n->op].cls == IR_CLASS_CONTRACT ? product_seconds(r, n)
                                                      : (double)cost_flops(n) / r->flops;
  }
  return seconds;
}

static double kernel_seconds(ir_arena *a, const rates *r, const ir_kernel *k) {
  cost c = cost_kernel(a, k);
  return seconds_of(r, arithmetic_seconds(r, k), c.bytes_read + c.bytes_written);
}

// What it makes is read at once and from a cache; kept, it would have gone to memory and come back. That is
// less than its time by the way that it saves, and no less than from caches alone.
static double again_seconds(ir_arena *a, const rates *r, const ir_kernel *k) {
  cost c = cost_kernel(a, k);
  double made = (double)c.bytes_written, read = (double)c.bytes_read;
  double arithmetic = arithmetic_seconds(r, k);
  if (r->near == 0 || c.bytes_written > NEAR_BYTES)
    return r->start + max2(arithmetic, (read + made) / r->bandwidth);
  double least = max2(arithmetic, (read + made) / r->near);
  double most = max2(arithmetic, read / r->bandwidth + made / r->near);
  double saved = 2 * made * (1 / r->bandwidth - 1 / r->near);
  return r->start + max2(least, most - saved);
}

double cost_seconds(ir_arena *a, const ir_kernel *k) {
  return kernel_seconds(a, &core, k);
}

double *cost_of_kernels(ir_arena *a, const ir_func *f) {
  rates r = rates_of(f->module);
  double *seconds = IR_NEW_ARRAY(a, double, f->kernels.num + 1);
  for (size_t i = 0; i < f->kernels.num; i++) {
    const ir_kernel *k = f->kernels.at[i];
    if (!ir_is_transfer(k))
      seconds[i] = k->clone_of ? again_seconds(a, &r, k) : kernel_seconds(a, &r, k);
  }
  return seconds;
}

double *cost_of_again(ir_arena *a, const ir_func *f) {
  rates r = rates_of(f->module);
  double *seconds = IR_NEW_ARRAY(a, double, f->kernels.num + 1);
  for (size_t i = 0; i < f->kernels.num; i++)
    if (!ir_is_transfer(f->kernels.at[i]))
      seconds[i] = again_seconds(a, &r, f->kernels.at[i]);
  return seconds;
}

double cost_seconds_loop(ir_node *const *nodes, size_t num, ir_node *const *in, size_t num_in) {
  int64_t flops = 0, bytes = ir_bytes(&nodes[num - 1]->type);
  for (size_t i = 0; i < num; i++)
    flops = cost_plus(flops, cost_flops(nodes[i]));
  for (size_t i = 0; i < num_in; i++)
    bytes += ir_bytes(&in[i]->type);
  return seconds_of(&core, (double)flops / core.flops, bytes);
}
