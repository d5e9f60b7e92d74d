// device.h: where a program's functions run: a team of threads on memory of the host, or a GPU.
//
// One table of functions per kind. The CPU's is device_cpu.c; the GPU's is gpu.c, which a program
// for a GPU brings in through mlrt_gpu_code.calls, so that other programs are linked without it.
//
//   open        finds the device; no memory of the plan is taken
//   allocate    the arena of the plan, all of it 0, and what the host needs beside it
//   run, ...    see below; all calls come from one thread
//   close       also after open alone
//
// What cannot be done ends the process through mlrt_fail.
#ifndef RUNTIME_DEVICE_H
#define RUNTIME_DEVICE_H

#include "runtime/arena.h"
#include "runtime/args.h"
#include "runtime/kernel_times.h"
#include "runtime/team.h"

// One piece of a range of the arena, in order; false: no more of them.
typedef bool (*mlrt_take_fn)(void *data, const char *from, size_t bytes);
typedef bool (*mlrt_give_fn)(void *data, char *to, size_t bytes);

typedef struct mlrt_device mlrt_device;
struct mlrt_device_calls {
  // The results of a run may be read while the next one, on the other slot, is under way. The loop
  // then takes them one run later, so that the device always has work.
  bool lags;
  int most_threads; // of the team, where --threads does not say; 0: one per processor
  void (*open)(mlrt_device *d, const mlrt_options *o);
  void (*allocate)(mlrt_device *d, const mlrt_options *o);
  void (*close)(mlrt_device *d);

  // Runs funcs[func] on the batch in `slot` of d->staging. May return before it is done; pieces of
  // `beside` (NULL: none) are done on return.
  void (*run)(mlrt_device *d, int func, int slot, const mlrt_spare *beside);
  // Waits until no run needs what lies in d->staging: new batches may be made there.
  void (*staged)(mlrt_device *d);
  // A scalar result of the last run on `slot`, once that run is done. r: in that function's table.
  const char *(*result)(mlrt_device *d, int slot, const mlrt_result *r);

  // Bytes [offset, offset + bytes) of the arena as all runs so far leave them, in one or more
  // pieces. Return false as soon as `take` or `give` does.
  bool (*read)(mlrt_device *d, int64_t offset, int64_t bytes, mlrt_take_fn take, void *data);
  bool (*write)(mlrt_device *d, int64_t offset, int64_t bytes, mlrt_give_fn give, void *data);
  void (*fill)(mlrt_device *d, int64_t offset, int64_t bytes, int byte);

  // For `check`: runs one kernel on arguments in the host's memory. Outputs and workspace are as
  // given before it. `split`: 0 to 2, other orders of its tasks where the host can choose one.
  void (*call)(mlrt_device *d, const mlrt_kernel *k, char *const *args, int split);
  // Whether it can; NULL: always. A program for several GPUs may have kernels for one of them.
  bool (*has)(mlrt_device *d, const mlrt_kernel *k);
  // For `info`: what is inside, without a device.
  void (*print_code)(const mlrt_program *p);
};

struct mlrt_device {
  const mlrt_device_calls *calls;
  const mlrt_program *program;
  mlrt_team *team;          // of the trainer
  char *staging;            // input i of slot s: + offset - state_bytes + s * staging_slot_bytes
  char name[96];            // "NVIDIA H100 (sm_90)"; empty: the host
  int64_t host_bytes;       // taken beside the arena
  mlrt_arena arena;         // the CPU's
  mlrt_kernel_times *times; // the CPU's; NULL: nobody asks
  mlrt_gpu *gpu;            // the GPU's
};

extern const mlrt_device_calls mlrt_cpu_calls; // device_cpu.c

// The kind that `p` is for. Nothing is opened.
mlrt_device mlrt_device_for(const mlrt_program *p);
// An arena that is there already: read, write and fill only.
mlrt_device mlrt_device_memory(char *arena);

// All at once, from and to memory of the host.
void mlrt_device_get(mlrt_device *d, int64_t offset, void *to, int64_t bytes);
void mlrt_device_put(mlrt_device *d, int64_t offset, const void *from, int64_t bytes);

// Whether the program has the function: for the CPU or for a GPU.
bool mlrt_has_func(const mlrt_program *p, int func);
const char *mlrt_func_name(int func); // "step"
// Where input i of a slot lies.
char *mlrt_staged_input(const mlrt_device *d, int input, int slot);

#endif
