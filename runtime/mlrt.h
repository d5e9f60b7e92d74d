// mlrt.h: what a generated trainer and the runtime agree on. The runtime stands alone:
// it includes nothing of the compiler. The generated C file defines `mlrt_program` and
// the runtime's main() does the rest.
//
// Units: sizes in bytes, counts in elements. All pointers point to constants in the binary.
#ifndef MLRT_H
#define MLRT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MLRT_ABI = 10, MLRT_MAX_RANK = 8, MLRT_MAX_THREADS = 256 };

typedef enum mlrt_dtype { // same order as the compiler's dtypes.def
  MLRT_BOOL,
  MLRT_U8,
  MLRT_I8,
  MLRT_U16,
  MLRT_I32,
  MLRT_U32,
  MLRT_I64,
  MLRT_BF16,
  MLRT_F16,
  MLRT_F32,
  MLRT_F64,
  MLRT_NUM_DTYPES
} mlrt_dtype;

typedef enum mlrt_role { // same order as the compiler's ir_role
  MLRT_PARAM,
  MLRT_FROZEN,
  MLRT_BUFFER,
  MLRT_MOMENT,
  MLRT_COUNTER,
  MLRT_SEED,
  MLRT_FLAG,
  MLRT_ACCUM
} mlrt_role;

typedef struct mlrt_tensor {
  const char *name;
  mlrt_dtype dtype;
  int rank;
  int64_t dims[MLRT_MAX_RANK];
  int64_t offset; // in the arena
  int64_t bytes;
  mlrt_role role;
  double value;      // FLAG: default
  const char *where; // "mlp.graph:4"
  const char *as;    // the state as which it begins where weights lack it; NULL: none
} mlrt_tensor;

// One input of a batch. Slot s of it is at offset + s * program->staging_slot_bytes.
typedef struct mlrt_input {
  const char *name; // "image"
  mlrt_dtype dtype;
  int rank;
  int64_t dims[MLRT_MAX_RANK]; // dims[0] is the batch
  int64_t offset, bytes;
  int64_t limit; // ids, classes: the data's values must be in [0, limit); 0: any that fit the dtype
  int64_t besides; // one more value that they may have: the label that a loss ignores
  const int64_t *
      limits; // of each element of a sample, where they differ (`limit` is the least then); NULL: `limit`
} mlrt_input;

// A setting of data or of the loop: a number, a text, or the present value of a flag.
typedef enum mlrt_setting_kind { MLRT_SET_NUM, MLRT_SET_STR, MLRT_SET_FLAG } mlrt_setting_kind;
typedef struct mlrt_setting {
  const char *key;
  mlrt_setting_kind kind;
  double num;
  const char *str; // text, or the flag's name
} mlrt_setting;

typedef struct mlrt_data {
  const char *name;   // "train"
  const char *format; // "idx", "csv", "npy", "text", "tokens"
  const char *const *files;
  int num_files;
  const mlrt_setting *settings; // range_lo, range_hi (fractions 0..1), window, vocab, ...
  int num_settings;
} mlrt_data;

// A file carried inside the binary, found before --data-dir is looked at (small examples).
typedef struct mlrt_embedded {
  const char *name;
  const unsigned char *data;
  size_t len;
} mlrt_embedded;

typedef enum mlrt_result_kind { MLRT_LOSS, MLRT_METRIC, MLRT_OUTPUT } mlrt_result_kind;
typedef struct mlrt_result {
  const char *name;
  mlrt_result_kind kind;
  mlrt_dtype dtype;
  int rank;
  int64_t dims[MLRT_MAX_RANK];
  int64_t offset;
} mlrt_result;

// --- the team ------------------------------------------------------------------------
// Generated code runs on all threads of the team at once: each calls fn(arena, slot, team, tid).
typedef struct mlrt_team mlrt_team;
int mlrt_team_size(const mlrt_team *t);
// All threads of the team wait for each other. Spins briefly, then sleeps.
void mlrt_barrier(mlrt_team *t, int tid);

typedef void (*mlrt_step_fn)(char *arena, int slot, mlrt_team *team, int tid);

// How a phase of a kernel does tasks [begin, end).
typedef void (*mlrt_phase_fn)(int64_t begin, int64_t end, char *const *args);

// What a thread tells of its shares of kernels, where somebody asks how long they take (--kernel-times): before and
// behind its share of each phase, be it empty. `calls`: of the kernel, at once.
typedef struct mlrt_watch mlrt_watch;
mlrt_watch *mlrt_team_watch(const mlrt_team *t, int tid); // NULL: nobody asks
void mlrt_watch_begin(mlrt_watch *w, mlrt_phase_fn fast);
void mlrt_watch_end(mlrt_watch *w, int calls);

// What generated functions call (runtime/calls.c). One thread of the team, as they know it:
typedef struct mlrt_member {
  mlrt_team *team;
  int tid, threads;
  mlrt_watch *watch;
} mlrt_member;
mlrt_member mlrt_member_of(mlrt_team *team, int tid);
// This thread's share of a kernel's tasks: that of the thread `shift` places on, so that several kernels of few tasks
// are not all done by the first threads.
void mlrt_run(const mlrt_member *me, mlrt_phase_fn kernel, int64_t tasks, int shift,
              char *const *args);
// The same, where all threads wait for each other before and behind it: who is through with his share does tasks of
// those who are not.
void mlrt_run_shared(const mlrt_member *me, mlrt_phase_fn kernel, int64_t tasks, int shift,
                     char *const *args);
// This thread's share of many calls of a kernel. A row has the offsets of the buffers in the arena, then numbers, then
// tasks; the tasks of all rows are one range.
void mlrt_run_rows(const mlrt_member *me, mlrt_phase_fn kernel, const int64_t *row, int rows,
                   int buffers, int numbers, char *arena);
// The same as of mlrt_run_shared.
void mlrt_run_rows_shared(const mlrt_member *me, mlrt_phase_fn kernel, const int64_t *row, int rows,
                          int buffers, int numbers, char *arena);
// This thread's share of a copy.
void mlrt_copy(const mlrt_member *me, char *to, const char *from, int64_t bytes);
void mlrt_wait(const mlrt_member *me); // for all of the team
// Bit T of `teams`: in a team of T threads, some go on with what others have written. (31: and in larger ones.)
void mlrt_wait_if(const mlrt_member *me, uint32_t teams);

// --- the GPU ---------------------------------------------------------------------------
// Generated code for a GPU runs on one thread of the host and lists launches, all into one stream:
// fn(gpu, arena, slot), with the arena's address on the device.
typedef struct mlrt_gpu mlrt_gpu;
// `blocks` blocks of an entry point; its one parameter has `bytes` bytes and is copied.
void mlrt_gpu_launch(mlrt_gpu *gpu, int entry, int64_t blocks, const void *parameter, size_t bytes);
// Whether the device is the one chip of the program's list that has kernels of its own.
bool mlrt_gpu_is_own(const mlrt_gpu *gpu);
// From one place of the arena to another.
void mlrt_gpu_copy(mlrt_gpu *gpu, char *to, const char *from, int64_t bytes);
// Copies beside the launches that follow, up to mlrt_gpu_join of the same number (from 0, less than
// mlrt_program.num_transfers): of `bytes` bytes, to an offset of what waits in memory of the
// host, and from it.
void mlrt_gpu_send(mlrt_gpu *gpu, int transfer, int64_t to, const char *from, int64_t bytes);
void mlrt_gpu_fetch(mlrt_gpu *gpu, int transfer, char *to, int64_t from, int64_t bytes);
void mlrt_gpu_join(mlrt_gpu *gpu, int transfer);
typedef void (*mlrt_launch_fn)(mlrt_gpu *gpu, char *arena, int slot);

typedef struct mlrt_gpu_entry {
  const char *symbol; // its name in the images: "loop_div_0"
  int unit;    // which source file it is from: unit u of every architecture has it, or of one
  int threads; // of a block
  int shared;  // bytes of shared memory that a launch gives a block, beside the kernel's own
  const char *ops, *where; // for messages: "cast, div  f32[64,28,28]", "mlp.graph:6"
} mlrt_gpu_entry;

typedef struct mlrt_gpu_image {
  const char *arch; // "sm_90a": a cubin for it; "compute_90": PTX for this and newer ones
  int unit;
  const unsigned char *data; // NULL: the unit is of kernels that this architecture does not run
  size_t packed;             // bytes at data, as zlib packs them; 0: they are as they are
  size_t len;                // bytes of the image; PTX ends with a 0 byte, which counts
} mlrt_gpu_image;

// How the runtime uses a GPU (device.h). A program for a CPU does not name it and is linked
// without that part of the runtime.
typedef struct mlrt_device_calls mlrt_device_calls;
extern const mlrt_device_calls mlrt_gpu_calls;

typedef struct mlrt_gpu_code {
  const mlrt_device_calls *calls; // &mlrt_gpu_calls
  const mlrt_gpu_image *images;   // of each architecture all units, in order
  const int *num_images;
  const mlrt_gpu_entry *entries;
  int num_entries, num_units;
} mlrt_gpu_code;

typedef struct mlrt_func {
  mlrt_step_fn run;      // NULL: the program has no such function, or is for a GPU
  mlrt_launch_fn launch; // the same for a GPU
  const mlrt_result *results;
  int num_results;
} mlrt_func;

// One distinct kernel for `./trainer check`: fast and plain versions run on random arguments.
// Its arguments are inputs, outputs, workspace and numbers, in this order; an argument that is a
// number holds it in place of an address.
typedef enum mlrt_arg_kind {
  MLRT_ARG_IN,
  MLRT_ARG_OUT,
  MLRT_ARG_WORKSPACE,
  MLRT_ARG_NUMBER
} mlrt_arg_kind;

// Diagonals of the matrices (last two axes) of an argument: lower <= column - row <= upper.
typedef struct mlrt_band {
  int64_t rows, columns; // of a matrix
  int64_t lower, upper;
} mlrt_band;

// Along one dimension of a padded argument: element i is 0 where i / apart % lines is not in [low, high).
typedef struct mlrt_border {
  int64_t apart, lines; // apart 0: ends a list
  int64_t low, high;
} mlrt_border;

typedef struct mlrt_arg {
  uint8_t kind;   // mlrt_arg_kind
  uint8_t dtype;  // mlrt_dtype of its elements
  uint8_t digits; // OUT: the fewest significant bits to which the kernel narrows a value that it is
                  // made of; 0: it narrows none. IN, f32: those that elements have, where the
                  // program has rounded them; 0: 24
  // One bit each: a program has thousands of arguments, and 500 KB.
  uint8_t positive : 1; // IN, floats: the program makes it so that no element is below 0
  uint8_t zeros : 1; // IN: data that are likely to be 0 in many places, which the kernel leaves out
  int32_t limit;     // integer inputs: values are drawn from [0, limit); 0: any
  int64_t size;      // bytes; NUMBER: the number
  const mlrt_band *band; // IN: it is always 0 outside; OUT: what is outside makes no difference to
                         // anyone; NULL: it has none
  const mlrt_border *borders; // IN: a list of those that it has; NULL: none
} mlrt_arg;

// A kernel by one thread, in double precision. args as for the fast versions, but that buffers of
// all floats hold doubles. taps[i]: the elements of tap i (mlrt_plain_tap); unused while nothing is
// held.
typedef enum mlrt_hold {
  MLRT_HOLD_NOTHING,
  MLRT_HOLD_RECORD, // taps get their elements
  MLRT_HOLD_REPLAY, // values without gradient are as recorded, whatever the arguments are
} mlrt_hold;
typedef void (*mlrt_plain_fn)(char *const *args, double *const *taps, int hold);

typedef struct mlrt_kernel_phase {
  mlrt_phase_fn fast; // GPU: NULL
  int64_t tasks;      // it runs tasks [0, tasks)
} mlrt_kernel_phase;

typedef struct mlrt_kernel {
  const char *name, *ops, *where;
  const mlrt_kernel_phase *phases;
  int first_entry;     // GPU: in place of `fast` of phase p, entry first_entry + p of mlrt_gpu_code
  mlrt_plain_fn plain; // NULL: none
  const mlrt_arg *args;
  int num_args, num_phases;
  int64_t flops, bytes; // per call
  int part; // GPU: 1 + its number in first_entry, which calls several by rows of a table; 0: the entry is its own
} mlrt_kernel;

// The step's loss and gradients as calls of plain versions, for the finite differences of `check`.
// Each tensor between calls has a buffer of its own, or is a stretch of one.
typedef enum mlrt_source {
  MLRT_FROM_STATE,
  MLRT_FROM_BATCH,
  MLRT_FROM_CALL,
  MLRT_FROM_BUFFER, // elements of an earlier buffer
} mlrt_source;

typedef struct mlrt_plain_buffer {
  uint8_t source; // mlrt_source
  uint8_t dtype;  // mlrt_dtype; of floats it holds doubles
  int32_t index;  // of the state, input or buffer
  int64_t elements;
  int64_t first; // FROM_BUFFER: element of the other that is its first
} mlrt_plain_buffer;

typedef struct mlrt_plain_tap {
  int64_t elements;
  int32_t param; // state whose gradient it is; -1: a value without gradient
  bool guess;    // it is another parameter's gradient, and perhaps of this one, too
} mlrt_plain_tap;

typedef struct mlrt_plain_call {
  mlrt_plain_fn run;
  // In plain_step.args: buffers read, buffers written, then numbers that are passed as they are.
  int32_t first_arg, num_in, num_out, num_args;
  int32_t first_tap, num_taps;
  bool for_loss; // the loss depends on it (the others are for gradients)
  int64_t flops;
} mlrt_plain_call;

typedef struct mlrt_plain_step {
  const mlrt_plain_buffer *buffers;
  const int64_t *args;
  const mlrt_plain_tap *taps;
  const mlrt_plain_call *calls; // in order
  int num_buffers, num_args, num_taps, num_calls;
  const int32_t *losses; // buffers, one element each
  int num_losses;
} mlrt_plain_step;

enum { MLRT_INIT, MLRT_STEP, MLRT_EVAL, MLRT_PREDICT, MLRT_ACCUMULATE, MLRT_NUM_FUNCS };

typedef struct mlrt_program {
  int abi; // MLRT_ABI
  const char *model, *source_path, *compiler, *target, *options;
  uint64_t source_hash, plan_hash;
  int64_t arena_bytes, state_bytes, staging_bytes, temp_bytes;
  int64_t staging_slot_bytes;
  int64_t host_bytes; // GPU: of values that wait in memory of the host
  int num_transfers;  // GPU: most of any function
  const mlrt_tensor *states;
  int num_states;
  const mlrt_input *inputs; // of step and eval, in the order in which data fields fill them
  int num_inputs;
  const mlrt_data *data;
  int num_data;
  // The loop: steps | epochs, seed, shuffle, eval (data name), eval_every (steps; 0: every epoch),
  // save_every, accumulate, log_every. Absent keys have the defaults of docs/runtime.md.
  const mlrt_setting *config;
  int num_config;
  mlrt_func funcs[MLRT_NUM_FUNCS];
  bool amx;                 // kernels use the matrix unit of processors with AMX-BF16
  const mlrt_gpu_code *gpu; // NULL: a program for the CPU
  const mlrt_kernel *kernels;
  int num_kernels;
  const mlrt_embedded *embedded;
  int num_embedded;
  const mlrt_plain_step *plain_step; // NULL: none
  // What `info` prints: text of plan_len bytes, packed by zlib (plans of large programs are long).
  const unsigned char *plan_packed;
  size_t plan_packed_len, plan_len;
} mlrt_program;

extern const mlrt_program mlrt_the_program; // defined by the generated file

// The whole trainer. Returns the exit code (docs/runtime.md).
int mlrt_main(const mlrt_program *p, int argc, char **argv);

#endif
