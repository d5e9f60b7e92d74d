// emulator.h: runs generated CUDA kernels on the CPU, watching every access. The C interface.
//
// A kernel file (codegen/cuda_prelude.h and what follows it) compiled as C++17,
//     clang++ -std=c++17 -O2 -fno-threadsafe-statics -shared -fPIC -I tests/emulator -o k.so k.cpp
// (emu_build below does that), has for each K_KERNEL(name, ...) and K_JOINT(name, ...) one object
//     extern "C" const emu_entry NAME_entry
// that emu_find looks up. emu_launch runs a grid of it: blocks one after the other, the threads of
// a block as fibers that are switched where they wait for each other. The library needs nothing
// from the program that loads it: entries reach the emulator through tables.
//
//     emu_machine *m = emu_new();
//     void *lib = emu_build(text, NULL);
//     emu_buffer(m, x, sizeof x, false);
//     emu_buffer(m, y, sizeof y, true);
//     char *args[2] = {(char *)x, (char *)y};
//     emu_report r;
//     if (!emu_launch(m, emu_find(lib, "loop_0"), 12, args, sizeof args, NULL, &r))
//       puts(r.text);
//
// The parameter bytes are what the driver would be given: k_args<width> is char *[width].
// A launch ends at its first fault; outputs are then unspecified, but nothing was written outside
// the buffers. One launch at a time per library: calls from several threads take turns by their
// caller's lock.
#ifndef TESTS_EMULATOR_H
#define TESTS_EMULATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct emu_entry {
  const char *name;
  int threads;                        // of a block, as K_KERNEL says
  int shared;                         // bytes that a launch must give each block
  size_t parameter;                   // bytes
  void (*run)(const void *parameter); // one thread; called by the emulator
  struct emu_unit *unit;              // what the library shares with the emulator
} emu_entry;

typedef enum emu_fault {
  EMU_NONE,
  EMU_LAUNCH,        // wrong parameter size, no blocks, ...
  EMU_OUT_OF_BOUNDS, // global memory: outside every buffer, or across the end of one
  EMU_SHARED_BOUNDS, // index outside a k_array
  EMU_MISALIGNED,
  EMU_READ_ONLY,   // a store to a buffer that is not writable
  EMU_RACE,        // shared memory: two threads, one writes, nothing orders them
  EMU_UNWRITTEN,   // a read of shared memory that the block has not written
  EMU_GLOBAL_RACE, // the same in global memory, between threads of a block or between blocks
  EMU_DEADLOCK,    // threads wait that nobody can wake
  EMU_DIVERGENCE,  // threads of a warp at different collectives, of a block at different barriers
  EMU_IN_FLIGHT,   // touches the destination of an asynchronous copy that nobody waited for
  EMU_NUM_FAULTS
} emu_fault;
const char *emu_fault_name(emu_fault f); // "race", "deadlock", ...

typedef struct emu_report {
  emu_fault fault;
  int64_t block;  // -1: not inside a block
  int thread;     // -1: no single thread
  char text[768]; // "kernel loop_0, block 3, thread 17: reads ... (k.cpp:812)"
} emu_report;

typedef struct emu_options {
  // 0: blocks, threads and copies first to last; 1: last to first; others: seeds of random orders.
  unsigned order;
  // No checks and no race tracking, for training whole programs. Deadlock and divergence are still
  // reported; shared memory is still poisoned.
  bool fast;
  size_t stack; // bytes for each thread, below which is a page that faults; 0: 64 KiB
} emu_options;

typedef struct emu_machine emu_machine;
emu_machine *emu_new(void); // aborts when out of memory, as all of this does
void emu_free(emu_machine *m);

// Memory that kernels may touch; a buffer that begins at the same address is replaced.
void emu_buffer(emu_machine *m, const void *at, size_t bytes, bool writable);
void emu_forget(emu_machine *m, const void *at); // a buffer that was given before
void emu_forget_all(emu_machine *m);

// NULL when the library has no such entry.
const emu_entry *emu_find(void *library, const char *name);

// options may be NULL: all zero. False: *report says what went wrong.
bool emu_launch(emu_machine *m, const emu_entry *e, int64_t blocks, const void *parameter,
                size_t parameter_bytes, const emu_options *options, emu_report *report);

// Compiles kernel text (prelude included) with clang++ ($MLTC_CXX when set) and loads it; NULL and
// the compiler's words on stderr when that fails. `keep`: where to leave the source and the library
// (a folder that exists), or NULL: a temporary folder that is removed.
void *emu_build(const char *text, const char *keep);

#ifdef __cplusplus
}
#endif
#endif
