// emu_unit.h: what a compiled kernel file and the emulator say to each other (C and C++).
//
//   kernel file                              emulator
//   emu_here.engine->barrier(launch, line)   parks the fiber until all threads of the block are
//   there emu_here.thread.x                        written whenever a fiber gets the processor
// Everything goes through emu_unit, of which each kernel file has one: no symbol of the emulator is
// named in it, so that it can be loaded by any program in any way.
#ifndef TESTS_EMU_UNIT_H
#define TESTS_EMU_UNIT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { EMU_WARP = 32, EMU_PAYLOAD = 64, EMU_MOST_GIVEN = 227 * 1024 };

typedef struct emu_dim3 {
  unsigned x, y, z;
} emu_dim3;

typedef struct emu_launch_state emu_launch_state;

// Shared memory: one array. Elements are what races are tracked by.
typedef struct emu_array {
  struct emu_array *next; // in the unit's list
  void *data;
  size_t count, element; // bytes of an element
  int64_t begin;         // byte of what the launch gives; -1: the kernel's own
  void *shadow;          // the emulator's; NULL outside launches
} emu_array;

typedef enum emu_access { EMU_READ, EMU_WRITE } emu_access;

// What the 32 threads of a warp do together. Threads that meet must do the same.
typedef enum emu_collective {
  EMU_SYNCWARP,
  EMU_SHUFFLE_XOR,
  EMU_MATCH_ANY,
  EMU_LDMATRIX,
  EMU_LDMATRIX_TRANS,
  EMU_MMA_TF32,
  EMU_MMA_BF16,
  EMU_MMA_F16,
  EMU_WGMMA_BF16,
  EMU_WGMMA_F16,
} emu_collective;

// What a thread brings to a collective; all 32 of a warp are handed to each of them.
typedef struct emu_payload {
  uint32_t word[EMU_PAYLOAD / 4];
} emu_payload;

// What a thread holds of the matrices of an mma.
typedef struct emu_fragments {
  uint32_t a[4], b[2];
} emu_fragments;

// An operand of wgmma: where it begins in an array of 16-bit elements, whose element 0 is at a multiple of 1024 bytes;
// bytes from 64 elements of a row to the next 64, from eight rows to the next eight. turned: rows are along x.
typedef struct emu_operand {
  emu_array *array;
  int64_t index;
  int lead, stride;
  int turned;
} emu_operand;

typedef struct emu_engine {
  // All threads of the block; `line` says which barrier of the source this is.
  void (*barrier)(emu_launch_state *l, int line);
  // All threads of the warp. Gives the payloads by lane, valid until this thread's next collective.
  // `detail` must agree, too (the shuffle's distance).
  const emu_payload *(*collective)(emu_launch_state *l, emu_collective what, int detail,
                                   const void *mine, size_t bytes);
  // EMU_MMA_*: adds to the thread's four elements of c their part of a * b.
  void (*mma)(emu_launch_state *l, emu_collective what, const emu_fragments *mine, float *c);
  // Global memory: bytes at `at`, which must be a multiple of `align`.
  void (*global)(emu_launch_state *l, const void *at, size_t bytes, size_t align, emu_access how);
  // An argument that is a buffer, which must begin at a multiple of `align`.
  void (*buffer)(emu_launch_state *l, const void *begin, size_t align);
  // Shared memory: elements [first, first + count), first a multiple of `align` elements.
  void (*shared)(emu_launch_state *l, emu_array *a, int64_t first, int64_t count, int64_t align,
                 emu_access how);
  // A copy of `bytes` to element `first` that may come to pass any time from now to the wait for
  // it; from == NULL: zeros.
  void (*async_copy)(emu_launch_state *l, emu_array *a, int64_t first, const void *from,
                     size_t bytes);
  void (*async_commit)(emu_launch_state *l);
  void (*async_wait)(emu_launch_state *l, int newer); // for all groups but the `newer` youngest
  // EMU_WGMMA_*: c[64, 8 columns] += a * b, of which the thread has columns * 4 elements, some time from now to the
  // wait for it.
  void (*wgmma)(emu_launch_state *l, emu_collective what, float *c, int columns,
                const emu_operand *a, const emu_operand *b);
  void (*wgmma_ready)(
      emu_launch_state *l); // what this thread has written to shared memory may be multiplied
  void (*wgmma_begin)(emu_launch_state *l);
  void (*wgmma_commit)(emu_launch_state *l);
  void (*wgmma_wait)(emu_launch_state *l, int newer);
} emu_engine;

typedef struct emu_unit {
  emu_dim3 thread, block, block_dim, grid_dim; // of the thread that runs
  int checked;                                 // 0: accesses need not be reported
  const emu_engine *engine;
  emu_launch_state *launch; // NULL outside launches
  emu_array *arrays;        // those that a thread has come by
} emu_unit;

#ifdef __cplusplus
}
#endif
#endif
