// codegen.h: from ordered kernels to C text.
//
// Each family is one generator. It is asked twice: `schedule` (before memory planning) fixes
// the number of tasks, phases and workspace; `emit` prints the specialised C function(s).
//
// A kernel becomes, per phase p,
//     void NAME_p(int64_t begin, int64_t end, char *const *args)
// that runs tasks [begin, end) of cg_kernel.tasks[p]. The host splits tasks statically over the
// threads of the team and puts a barrier between phases. Results must not depend on how tasks are
// split: a task owns its outputs, sums inside it have a fixed order.
// args: cg_kernel.in buffers, then cg_kernel.out buffers, then workspace when it has any, then one
// entry per cg_kernel.numbers that holds the number itself: (char *)(uintptr_t)number.
//
// Kernels of equal text are emitted once. Names do not count (program.c compares texts in which
// all tensors have one name), nor do numbers: what a family can take at run time at no cost is no
// constant of its text. So one function updates all parameters, whatever their sizes, and one
// draws all first weights, whatever their streams.
#ifndef CODEGEN_CODEGEN_H
#define CODEGEN_CODEGEN_H

#include "passes/domain.h"
#include "ir/ir.h"

enum {
  CG_MAX_PHASES = 16, // no fewer than the most of any family (sorting by long keys)
  CG_MAX_ARCHS = 5,
};

// What kernels for NVIDIA's GPUs may count on: of several architectures, the least of each. A
// kernel that keeps to it is right on all of them (codegen/target_cuda.c has the table).
typedef struct cg_cuda {
  const char *const *archs; // "sm_80", "sm_90a": oldest first, each once
  int num_archs;
  int compute;              // of the oldest: 80 when sm_80 is there
  int warp;                 // threads
  int threads_per_sm;       // at most resident
  int blocks_per_sm;        // at most resident
  int registers_per_sm;     // of 4 bytes
  int registers_per_thread; // at most
  int64_t shared_per_block; // bytes of a block, at most, that a kernel may have of its own
  int64_t shared_asked_for; // the same, where a launch gives them
  int64_t shared_per_sm;    // bytes, of which each resident block takes its own and 1 KiB more
  int sms;                  // to fill
  int64_t l2_bytes;         // of the second cache
  bool wgmma;               // products of four warps, from shared memory: sm_90a alone has them
  // The one of several that has wgmma, by itself: kernels that it helps are there twice. NULL: none.
  const struct cg_cuda *own;
} cg_cuda;

// Blocks that one SM holds at a time: of so many threads, which take so many registers each, and so
// many bytes of shared memory. 0: not even one.
int cg_resident_blocks(const cg_cuda *chip, int threads, int registers, int64_t shared);

// Whether a launch of so many warps has enough on each SM for what one waits to be hidden by others. Where not,
// loads had better stand far in front of what needs them (cg_kernel.in_order: small products took 4% longer).
bool cg_hides_latencies(const cg_cuda *chip, int64_t warps);

// What schedules have decided for a target, so that equal problems are decided once: of a deep network
// nearly all are. By what was decided from, as text.
typedef struct cg_memo {
  ir_arena *arena;
  ir_map *matmuls; // -> mm_plan (cpu_matmul.c) or cmm_plan (cuda_matmul.c)
} cg_memo;
// Fills a plan of so many bytes with what `key` was decided to be; false: nothing yet. And keeps it.
bool cg_recall(const cg_memo *m, const char *key, void *plan, size_t bytes);
void cg_remember(cg_memo *m, const char *key, const void *plan, size_t bytes);

// What the C compiler is told, and what schedules may use.
typedef struct cg_target {
  const char *name;   // "cpu:x86-64-v4", "cuda:sm_80,sm_90a"
  const char *march;  // "native", "x86-64-v3", ... ; NULL: the compiler's default
  const char *triple; // cross: "aarch64-linux-gnu"; NULL: this machine
  bool
      bare; // cross: nothing of that machine's C library or runtime is here, so that objects must do
  int vector_bytes;     // 64 (AVX-512), 32 (AVX2), 16 (NEON, SSE; one thread of a GPU)
  int vector_registers; // 32 or 16
  bool fma;
  bool dots_bf16; // adds products of two pairs of bf16 to each f32 of a vector (AVX512-BF16)
  bool amx;       // has a unit that multiplies tiles of bf16 (AMX-BF16)
  int64_t l1_bytes, l2_bytes; // per core
  const cg_cuda *cuda;        // NULL: a CPU
  cg_memo *memo;              // NULL: each problem is decided anew
} cg_target;

// What multiplies in a kernel's matmuls: arithmetic units for its type, or the tensor cores.
typedef enum cg_products { CG_BY_FMA, CG_BY_TF32, CG_BY_HALF } cg_products;

typedef struct cg_kernel {
  ir_kernel *k;
  const ir_func *func;
  const cg_target *target;
  ir_arena *arena;
  domain *dom;           // LOOP, MATMUL; ATTENTION: of its scores, once scheduled; NULL otherwise
  IR_VEC(ir_node *) in;  // buffers read, each once  (dom_kernel_io's order)
  IR_VEC(ir_node *) out; // buffers written
  int num_phases;
  int64_t tasks[CG_MAX_PHASES]; // GPU: blocks
  int threads[CG_MAX_PHASES];   // GPU: of a block
  int shared[CG_MAX_PHASES];    // GPU: bytes of shared memory that a launch gives a block
  int64_t workspace;            // bytes
  bool keeps;                   // CPU: what a call of several tasks finds out serves all of them
  cg_products products;         // GPU: for estimates
  bool in_order;                // GPU: its text is in the best order, which ptxas shall keep
  bool one_chip;                // GPU: only one chip has what it uses (cg_cuda.own)
  struct cg_kernel *own;        // GPU: what that chip runs in its place; NULL: the same
  // GPU: kernels that may share a launch with others (cuda_launches.h): registers of a thread,
  // estimated; 0: it may not. Whether blocks of any size will do, as one thread works; and whether
  // it reduces.
  int registers;
  bool any_threads;
  bool reduces;
  // Numbers that kernels of equal text may differ in. LOOP: the element count of a kernel with
  // one axis; the bits of cg_numbered_constants; the stream of each random member. Then begins (below).
  IR_VEC(int64_t) numbers;
  // LOOP and MATMUL: the first element of each argument that the kernel touches, a number where it is not 0.
  // Places count from there: steps of an unrolled loop that read another slice each are one function (cg_begin.c).
  // NULL: places count from 0.
  int64_t *begin;
  void *schedule; // the family's own decisions, from schedule to emit
} cg_kernel;

// Bytes [from, to) of a buffer; nothing when from == to.
typedef struct cg_bytes {
  int64_t from, to;
} cg_bytes;
typedef struct cg_spans {
  cg_bytes *at;
  size_t num, cap;
} cg_spans; // an IR_VEC

typedef struct cg_generator {
  void (*schedule)(cg_kernel *k);
  // Functions are called `name` with suffix _0, _1, ... per phase.
  void (*emit)(const cg_kernel *k, const char *name, ir_buf *out);
  // Bytes of args[arg], counted from its begin, that tasks [begin, end) of a phase may read or
  // write: at least those, as few as can be said easily. Where threads turn out to touch nothing
  // that others write, they need not wait for each other (program_sync.c). NULL: any byte.
  cg_bytes (*touches)(const cg_kernel *k, int phase, int arg, int64_t begin, int64_t end);
} cg_generator;
// codegen/families.c. BUG where the target has no such generator.
const cg_generator *cg_generator_for(const cg_target *t, ir_family family);
// Families that the target has generators for: 1u << IR_FAMILY_..., for pass_options.families.
unsigned cg_families(const cg_target *t);
// Finds the values that must be the same bits wherever they are computed (ir_node.exact).
void cg_find_exact(ir_module *m);
// A kernel of a family that the target lacks, in IR text that was made for another one; or NULL.
const ir_kernel *cg_find_foreign(const cg_target *t, const ir_module *m);
// A matmul whose kernel makes f32 of integers, on a target whose kernels do not; NULL: there is none.
const ir_node *cg_find_foreign_operand(const cg_target *t, const ir_module *m);

// LOOP, MATMUL, COPY, SCATTER: codegen/cpu_loop.c, cpu_matmul.c, cpu_copy.c, cpu_scatter.c
void cpu_loop_schedule(cg_kernel *k);
void cpu_loop_emit(const cg_kernel *k, const char *name, ir_buf *out);
void cpu_matmul_schedule(cg_kernel *k);
void cpu_matmul_emit(const cg_kernel *k, const char *name, ir_buf *out);
void cpu_copy_schedule(cg_kernel *k);
void cpu_copy_emit(const cg_kernel *k, const char *name, ir_buf *out);
cg_bytes cpu_loop_touches(const cg_kernel *k, int phase, int arg, int64_t begin, int64_t end);
cg_bytes cpu_matmul_touches(const cg_kernel *k, int phase, int arg, int64_t begin, int64_t end);
cg_bytes cpu_copy_touches(const cg_kernel *k, int phase, int arg, int64_t begin, int64_t end);
void cpu_scatter_schedule(cg_kernel *k);
void cpu_scatter_emit(const cg_kernel *k, const char *name, ir_buf *out);
// SCATTER kernels that are row updates (ir/row_update.h): codegen/cpu_row_update.c
void cpu_row_update_schedule(cg_kernel *k);
void cpu_row_update_emit(const cg_kernel *k, const char *name, ir_buf *out);
// The same for a GPU (docs/cuda.md): tasks are blocks of threads.
void cuda_loop_schedule(cg_kernel *k);
void cuda_loop_emit(const cg_kernel *k, const char *name, ir_buf *out);
void cuda_matmul_schedule(cg_kernel *k);
void cuda_matmul_emit(const cg_kernel *k, const char *name, ir_buf *out);
void cuda_copy_schedule(cg_kernel *k);
void cuda_copy_emit(const cg_kernel *k, const char *name, ir_buf *out);
void cuda_scatter_schedule(cg_kernel *k);
void cuda_scatter_emit(const cg_kernel *k, const char *name, ir_buf *out);
void cuda_attention_schedule(cg_kernel *k);
void cuda_attention_emit(const cg_kernel *k, const char *name, ir_buf *out);
void cuda_transfer_schedule(cg_kernel *k);
void cuda_transfer_emit(const cg_kernel *k, const char *name, ir_buf *out);

// Prints an indented line.
void cg_vline(ir_buf *out, int indent, const char *fmt, va_list ap);
void cg_line(ir_buf *out, int indent, const char *fmt, ...) IR_PRINTF(3, 4);

// Bytes of the whole argument, or of the workspace.
int64_t cg_arg_bytes(const cg_kernel *k, int arg);
// Elements that a walk touches: it goes through positions [first, end) of a row-major list of axes.
typedef struct cg_walk {
  int num;
  int64_t size[2 * DOM_MAX_AXES], stride[2 * DOM_MAX_AXES];
} cg_walk;
void cg_walk_add(cg_walk *w, int64_t size, int64_t stride);
// Widens *least and *most, inclusive, by the offsets of that walk; end > first.
void cg_walk_reach(const cg_walk *w, int64_t first, int64_t end, int64_t *least, int64_t *most);
// They have a byte in common; some of them have.
bool cg_overlap(cg_bytes a, cg_bytes b);
bool cg_spans_overlap(const cg_spans *a, const cg_spans *b);
// The smallest range that has both.
cg_bytes cg_join(cg_bytes a, cg_bytes b);

// A C identifier from the last word of a node's name ("layer.0.attn.q" -> "q", "d.logits" ->
// "d_logits"), unique inside one kernel (names is that kernel's table).
const char *cg_local_name(ir_arena *a, ir_map *names, const ir_node *n);
// Declares the indices of `num` axes of these sizes from their row-major number:
// "const int64_t i0 = unit / 64 % 12;", the outermost without a remainder.
void cg_emit_indices(ir_buf *out, int indent, const char *flat, int num, const int64_t *size,
                     const char *const *name);
// For "%lld".
static inline long long ll(int64_t v) {
  return (long long)v;
}
// "#pragma unroll", "for (int i = 0; i < num; i++)": two lines.
void cuda_put_loop(ir_buf *out, int indent, const char *i, int num);
// Prints loops over row i and column `at` around a statement, rows to and fro: the last column of a row is the first of
// the next, so that each FMA finds one of its operands where the one before has left it (cuda_matmul_tile.c).
void cuda_put_to_and_fro(ir_buf *out, int indent, int rows, int columns, const char *statement);
// Index of a buffer in args; -1 when it is no argument.
int cg_arg_index(const cg_kernel *k, const ir_node *buffer);
// `x` is a whole buffer, in order, whose argument is the num-th behind that of `first`: equal parts of a
// concat (the steps of a sequence) are a loop over arguments.
bool cg_follows(const cg_kernel *k, const ir_node *first, const ir_node *x, int num);

// --- codegen/cg_begin.c: cg_kernel.begin
// A place, in elements, from which the kernel walks an argument; those of all loads and stores of its domain but the
// operands of its product. Then cg_settle_begins, once, when k->workspace and all other numbers are there: begins
// become multiples of `multiple` elements.
void cg_note_begin(cg_kernel *k, int arg, int64_t offset);
void cg_note_domain_begins(cg_kernel *k);
void cg_settle_begins(cg_kernel *k, int64_t multiple);
int64_t cg_begin(const cg_kernel *k, int arg);
// That many of the kernel's numbers, the last ones, are begins, in the order of the arguments.
size_t cg_num_begins(const cg_kernel *k);
// What the argument's pointer is advanced by: " + (int64_t)args[5]", or "".
const char *cg_begin_text(const cg_kernel *k, int arg);

// --- expression emission shared by LOOP and the MATMUL epilogue (codegen/cpu_expr.c) ------------
// Values are vectors of `lanes` elements along the vector axis (or splats). Emits one statement
// per member that is not yet emitted: `const vf q = (a + b);`.
// Types in the prelude (codegen/cpu_prelude.h, text placed before the kernels of a file):
//   vf: vector of VL floats; vi: of VL int32; masks are vi with lanes 0 or -1.
typedef struct cg_expr {
  const cg_kernel *k;
  ir_buf *out;
  int indent;
  ir_map *names;     // local names
  int vector_axis;   // domain axis along the lanes; -1: scalar code
  int lane_step;     // along it from lane to lane; 0: 1
  int multiple;      // of which the vector axis's index is one; 0: it may be any number
  const char *lanes; // NULL: full vectors; else a C expression: number of valid lanes (tail)
  // C expression for the current index of a domain axis (vector axis: of lane 0).
  const char *(*index)(void *data, int axis);
  void *data;
  // C expression of a member value that the caller already has (the matmul's tile, a row total,
  // a cached row); NULL when it must be computed.
  const char *(*have)(void *data, const ir_node *n);
  // Another spelling of an op for this member than that of ops.def; NULL, also as its answer: that one.
  const char *(*spell)(void *data, const ir_node *n);
} cg_expr;
// Emits what is needed for member `n` and returns its C expression (a vf/vi variable, or a
// splat variable when the value does not vary along the vector axis).
const char *cg_emit_value(cg_expr *e, const ir_node *n);
// Stores member s->node to s->buffer.
void cg_emit_store(cg_expr *e, const dom_store *s);
// All stores of the kernel, where one piece of text has them all. Every value comes before the
// first store: an output may lie over what another value is computed from (plan_overwrite.c).
void cg_emit_stores(cg_expr *e);

// cg_expr.names is the C scope: the values emitted so far (by node) and the identifiers taken. A
// fresh map is a scope that knows nothing; an inner block that may use what is outside, and whose
// own values end with it, gets a copy.
ir_map *cg_scope_copy(ir_arena *a, const ir_map *names);
// Makes `expr` the value of member n from here on in this scope.
void cg_scope_bind(ir_arena *a, ir_map *names, const ir_node *n, const char *expr);
// Its expression in this scope, or NULL.
const char *cg_scope_value(ir_arena *a, const ir_map *names, const ir_node *n);
// Takes `hint` or, when it is taken, hint_2, hint_3, ...
const char *cg_scope_name(ir_arena *a, ir_map *names, const char *hint);
// Loads and stores are written in terms of one pointer per argument, declared at the top of the
// function by cg_emit_args:   const float *const p0_x = (const float *)args[0];
void cg_emit_args(const cg_kernel *k, ir_buf *out, int indent);
const char *cg_arg_name(const cg_kernel *k, int arg); // "p0_x": args[0]
bool cg_runs_once(const ir_func *f); // init: its kernels take longer to compile than to run
// f32 constants, in the order of their first users, that are numbers of a LOOP kernel: of those that run once and draw
// first values, so that weights have one function whatever they are scaled by.
ir_node_list cg_numbered_constants(const cg_kernel *k);
// Declares `const TYPE NAME = number i`:   const int64_t count = (int64_t)(uintptr_t)args[9];
void cg_emit_number(const cg_kernel *k, int i, const char *type, const char *name, ir_buf *out,
                    int indent);

// The text that every generated kernel file begins with; `doubles`: with functions of f64, which take time to compile.
const char *cg_cpu_prelude(ir_arena *a, const cg_target *t, bool doubles);
const char *cg_cuda_prelude(ir_arena *a); // the same for all architectures, and for the emulator

#endif
