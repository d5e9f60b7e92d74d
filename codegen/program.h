// program.h: the whole program as C text: distinct kernels, the functions as straight-line calls,
// and the tables that the runtime reads (runtime/mlrt.h).
#ifndef CODEGEN_PROGRAM_H
#define CODEGEN_PROGRAM_H

#include "codegen/codegen.h"
#include "codegen/cuda_resources.h"
#include "passes/plan.h"

struct cg_joint;
// A generated function that one or more kernels of the program share.
typedef struct cg_distinct {
  const char *name;     // C identifier without the phase suffix: "matmul_relu"
  const char *text;     // its C source
  const char *plain;    // name of the plain version for `check`; NULL: none
  int64_t flops, bytes; // per call of the first use
  int unit;             // GPU: number of the file
  // GPU, of cg_program_emit: the first entry that calls it, and its number there, if all launches of it are by
  // such entries, and it has none of its own; else NULL.
  const struct cg_joint *only_in;
  size_t part;
  IR_VEC(const cg_kernel *) uses;
} cg_distinct;

typedef struct cg_parts {
  cg_distinct **at;
  size_t num, cap;
} cg_parts; // an IR_VEC
// GPU: an entry for calls of several functions side by side (codegen/cuda_launches.h).
typedef struct cg_joint {
  const char *name; // C identifier: "joint_new"
  cg_parts parts;
  int threads;                 // of a block
  int registers;               // of a thread, estimated: the widest
  int64_t blocks;              // of its largest launch
  size_t widest;               // arguments of a call
  ir_buf rows;                 // text of the table: all launches, one after the other
  size_t num_words, num_calls; // of it
  int unit;                    // number of the file, which has the functions, too
} cg_joint;

// A data file carried inside the program.
typedef struct cg_embedded {
  const char *name;
  const unsigned char *data;
  size_t len;
} cg_embedded;

typedef struct cg_program {
  ir_arena *arena;
  ir_module *module;
  const cg_target *target;
  const cg_target *own; // GPU: with the limits of cg_cuda.own; NULL: there is none
  const char *prefix;   // of the names of generated functions; "" unless set
  bool scheduled;       // kernels are there
  cg_kernel **kernels
      [IR_MAX_FUNCS]; // [function][kernel id], after cg_share (for a GPU: from the beginning)
  cg_distinct **shared[IR_MAX_FUNCS]; // [function][kernel id], after cg_share; transfers have none
  cg_distinct **own_shared[IR_MAX_FUNCS]; // GPU: the same of cg_kernel.own, where there is one
  IR_VEC(cg_distinct *) distinct;
  IR_VEC(cg_joint *) joints;        // GPU: of cg_program_emit
  struct cuda_launches *launches;   // GPU: by function; of cg_program_emit
  IR_VEC(cg_embedded) embedded;     // put there by the driver before cg_program_emit
  struct cg_plain_step *plain_step; // of cg_program_emit (codegen/plain_step.h); NULL: none
} cg_program;

// Where the program came from, for `info` and the banner of generated files.
typedef struct cg_origin {
  const char *path, *compiler, *options;
  uint64_t source_hash;
  // Of C kernels that are not optimised: reading what each file begins with takes most of the time.
  bool few_files;
} cg_origin;

typedef enum cg_source_kind {
  CG_SOURCE_C,
  CG_SOURCE_CUDA, // a unit of the images (mlrt_gpu_image.unit): the first is 0, in their order
} cg_source_kind;

// How much of the C compiler's effort a file is worth.
typedef enum cg_source_use {
  CG_USE_STEPS, // kernels
  CG_USE_ONCE,  // its speed does not matter: compiled for size
  CG_USE_CALLS, // straight lines of calls, and tables: nothing to optimise, and compilers try for long
  CG_USE_CHECK, // plain versions: likewise, and by -O1, which is asked for to compile fast, not optimised
} cg_source_use;
typedef struct cg_source {
  const char *name; // "kernels_0.c", "kernels_0.cu"
  const char *text;
  size_t len;
  cg_source_use use;
  cg_source_kind kind;
  bool one_chip; // CUDA: some of it is only there for one architecture (wgmma, of sm_90a)
  bool in_order; // CUDA: instructions are in the best order, which ptxas shall keep
} cg_source;
typedef IR_VEC(cg_source) cg_sources;

// Works out what each kernel needs (sets ir_kernel.workspace). Before plan_build_for.
cg_program *cg_program_new(ir_arena *a, ir_module *m, const cg_target *t);
// Follows passes that have put kernels in another order, or run some again (pass_run_memory_pipeline).
void cg_program_update(cg_program *p);
// The memory plan for how the target calls kernels, with the places of a file or NULL (plan_build_for).
plan *cg_plan(const cg_program *p, const plan_edit *e, ir_diags *d);
// Schedules every kernel (tasks, phases), if that is still to be done. Part of cg_share.
void cg_program_schedule(cg_program *p);
// Emits each kernel; equal texts become one cg_distinct (codegen/program_share.c).
void cg_share(cg_program *p);
// All files, in a fixed order, those that take long to compile first: plain.c, kernels_*.c,
// program.c. After cg_share.
cg_sources cg_program_emit(cg_program *p, const plan *plan, const cg_origin *o);

// --- parts (codegen/program_*.c)
void cg_emit_functions(const cg_program *p, const plan *plan, ir_buf *out);
void cuda_emit_functions(cg_program *p, const plan *plan, ir_buf *out); // sets joints, launches
void cg_emit_tables(const cg_program *p, const plan *plan, const cg_origin *o, ir_buf *out);
// What decides the numbers, after all passes: two programs of one hash have the same bits.
uint64_t cg_program_hash(ir_arena *scratch, const ir_module *m);
// Arena offsets of the kernels' workspaces, by kernel id; -1: it has none.
int64_t *cg_workspaces(ir_arena *a, const plan *p, const ir_func *f);
// Adds the bytes of the arena that a kernel reads, without the batch, which nothing in a step
// writes; and those that it writes, its workspace among them.
void cg_kernel_spans(ir_arena *a, const plan *p, const int64_t *workspaces, const cg_kernel *c,
                     cg_spans *reads, cg_spans *writes);
// What C functions and tables of a function are called after: "step"; or "other_2_my_func", of one that IR text
// calls my.func. Only those that a trainer runs (docs/ir.md) keep their names as they are: others may have
// characters that C does not take, or be called as a part of another one (program_functions.c).
const char *cg_function_name(const cg_program *p, size_t func);
// "PREFIXfamily_word", a C identifier with the last word of a kernel's name.
const char *cg_identifier(const cg_program *p, const char *family, const ir_kernel *k);
// Ops and sizes of a kernel in one line, "matmul, add, max  f32[64,128]", and its place after them:
// "matmul, add, max  f32[64,128]  mlp.graph:7".
const char *cg_describe_ops(ir_arena *a, const ir_kernel *k);
const char *cg_describe(ir_arena *a, const ir_kernel *k);
const char *cg_dtype_constant(ir_dtype t); // "MLRT_F32"
// "text" as a C string literal.
void cg_put_string(ir_buf *out, const char *s);
// Values that the graph allows in integer nodes, by node id: rows of the table that they index,
// classes that they are compared with; 0 where nothing is known.
int64_t *cg_integer_limits(ir_arena *a, const ir_func *f);
// The same for the elements of a sample of an input, where columns index different tables, say; NULL: all of them have
// that of the input.
int64_t *cg_element_limits(ir_arena *a, const ir_func *f, const ir_node *input);
// A constant outside of 0 to limit-1 that an integer input is compared with: its data may hold it,
// too. 0, which is within every limit, when there is none.
int64_t cg_integer_besides(const ir_func *f, const ir_node *input, int64_t limit);

// --- target and toolchain
// "cpu", "cpu:native", "cpu:x86-64-v3", "cpu:x86-64-v4", "cpu:aarch64", "cuda",
// "cuda:sm_90a,sm_80", ...; NULL when unknown.
const cg_target *cg_target_find(ir_arena *a, const char *name);
// What is wrong with a name that is unknown: "did you mean 'sm_80'? it can be sm_80, ...".
const char *cg_target_why_not(ir_arena *a, const char *name);
// A list such as "sm_90a,sm_80" (codegen/target_cuda.c). NULL with the unknown word in *wrong.
const cg_cuda *cg_cuda_find(ir_arena *a, const char *list, const char **wrong);
extern const char *const cg_cuda_names[]; // oldest first; ends with NULL
// An architecture: limits of an SM, and the rates of one chip of it, for estimates.
typedef struct cg_chip {
  const char *name;    // "A100"
  int compute;         // 80
  int threads, blocks; // resident on an SM
  int shared_sm;       // KiB
  int shared_block;    // KiB that a launch may give a block: wherever cubins of it run
  int sms;             // of the chip
  int l2;              // MiB of its second cache
  double f32, f64;     // TFLOP/s, without tensor cores
  double tf32, half;   // TFLOP/s of the tensor cores, summed in f32, no sparsity
  double bandwidth;    // TB/s of its memory
  double host;         // GB/s to memory of the host, each way, as copies of some megabytes reach
} cg_chip;
const cg_chip *cg_cuda_chip(const char *arch); // one of cg_cuda_names
// The target with another chip, which is copied.
const cg_target *cg_cuda_with(ir_arena *a, const cg_target *t, cg_cuda chip);
// The target where clang compiles: PTX only, of what all GPUs from an architecture on have.
const cg_target *cg_cuda_by_clang(ir_arena *a, const cg_target *t);

// In a second: operations of products and of other arithmetic, bytes of memory, and bytes that cross
// between a device and the host. Of several architectures the chip whose kernels leave copies the least
// time. All 0 for a CPU.
typedef struct cg_rates {
  double products, flops, bandwidth, host_bandwidth;
} cg_rates;
cg_rates cg_rates_of(const cg_target *t, const char *precision);

typedef enum cg_cuda_compiler { CG_NVRTC, CG_CUDA_CLANG } cg_cuda_compiler;

typedef struct cg_build {
  const char *out;      // trainer, or object when the target is another machine
  const char *keep_dir; // sources and objects stay here; NULL: a temporary folder
  int opt_level;        // 0..3
  bool verbose;         // commands on stderr
  cg_cuda_compiler cuda_compiler;
  bool no_cache; // of compiled CUDA sources
} cg_build;
// Compiles (in parallel) and links. For a CUDA target the trainer gets the images of the CUDA
// sources, too, which C sources find as (mlrt.h)
//     extern const mlrt_gpu_image mlrt_gpu_images[];  of each architecture all units, in order
//     extern const int mlrt_num_gpu_images;
// False with a message in *why.
bool cg_compile(ir_arena *a, const cg_sources *s, const cg_target *t, const cg_build *b,
                const char **why);
// How hard the C compiler tries with kernels at an opt_level: its options, between spaces.
const char *cg_effort(int level);
// Compiler output for one kind: "llvm" or "asm", all C sources in turn; "ptx", all CUDA sources.
// NULL with *why.
const char *cg_disassemble(ir_arena *a, const cg_sources *s, const cg_target *t, const cg_build *b,
                           const char *kind, const char **why);
// What the kernels of a CUDA target take of each architecture, in the order of t->cuda->archs;
// empty lists with clang, which leaves the choice of registers to the driver. False with *why.
typedef struct cg_arch_resources {
  cg_resource_list of[CG_MAX_ARCHS];
} cg_arch_resources;
bool cg_find_resources(ir_arena *a, const cg_sources *s, const cg_target *t, const cg_build *b,
                       cg_arch_resources *out, const char **why);

#endif
