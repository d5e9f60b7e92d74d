// emu_state.h: what the files of the emulator share. A launch is one emu_launch_state; a machine
// keeps what lasts: buffers, stacks.
//
//   emu_launch.c   the grid: blocks in turn, the queue of threads that can run
//   emu_sync.c     barriers and collectives: parking and waking; what orders memory
//   emu_mma.c      products of the tensor cores
//   emu_wgmma.c    those of four warps together
//   emu_memory.c   buffers: bounds, alignment, what may be written
//   emu_global.c   races in global memory
//   emu_shared.c   shared arrays: bounds, alignment, races
//   emu_async.c    asynchronous copies
//   emu_report.c   words for faults
//   emu_build.c    libraries from text
#ifndef TESTS_EMU_STATE_H
#define TESTS_EMU_STATE_H

#include "tests/emulator/emu_fiber.h"
#include "tests/emulator/emu_unit.h"
#include "tests/emulator/emulator.h"

enum { EMU_MAX_THREADS = 1024, EMU_MAX_WARPS = EMU_MAX_THREADS / EMU_WARP, EMU_CALLS = 16 };

// Where a thread stands.
typedef enum emu_standing { EMU_RUNS, EMU_AT_BARRIER, EMU_AT_COLLECTIVE, EMU_ENDED } emu_standing;

typedef struct emu_thread {
  emu_launch_state *launch;
  emu_fiber *fiber;
  int index;
  emu_standing standing;
  struct emu_copies *copies;     // asynchronous, of this thread: emu_async.c
  struct emu_products *products; // asynchronous, too: emu_wgmma.c
  uint32_t writes, ready;        // to shared memory, so far; of which wgmma may see so many
} emu_thread;

typedef struct emu_warp {
  int lanes;   // that the block has
  int arrived; // at the collective
  emu_collective what;
  int detail;
  int turn; // which half of payload is being filled
  emu_payload payload[2][EMU_WARP];
  // Vector clock: `seen[w]` is the last period of warp w whose accesses are all ordered before what
  // this warp does now. A period ends where something orders memory.
  uint32_t period, seen[EMU_MAX_WARPS];
} emu_warp;

// A buffer that kernels may touch.
typedef struct emu_region {
  uintptr_t at;
  size_t bytes;
  bool writable;
} emu_region;

struct emu_machine {
  emu_region *region; // by address
  int num, room;
  emu_stacks *stacks;
};

struct emu_launch_state {
  emu_machine *machine;
  const emu_entry *entry;
  emu_unit *unit;
  const void *parameter;
  emu_options options;
  emu_report *report;

  int threads, warps;
  int64_t blocks, block;
  emu_thread *thread;
  emu_warp *warp;
  int running; // the thread that has the processor; -1: none
  int ended;

  int *queue; // threads that can run: a ring of `threads` entries
  int head, waiting;
  uint64_t random;

  int at_barrier, barrier_line;
  const emu_region *last;      // region of the last access
  struct emu_touched *touched; // global memory in this launch: emu_global.c
  struct emu_shadow *shadows;  // emu_shared.c
  struct emu_shadow *given;    // one of them: of what the launch gives
  // Addresses in the kernel's code, of a call and of those around it, innermost first; 0: none.
  void *fault_from[EMU_CALLS];
};

// --- emu_launch.c
uint64_t emu_random(emu_launch_state *l, uint64_t below);
void emu_wake(emu_launch_state *l, int thread);
// The running thread, whose standing says what for, gives the processor away until it is woken.
void emu_park(emu_launch_state *l);
// Ends the launch; called on a fiber. Does not return.
void emu_give_up(emu_launch_state *l) __attribute__((noreturn));
static inline int emu_warp_of(int thread) {
  return thread / EMU_WARP;
}

// --- emu_report.c
// Records the launch's fault; the first one counts. thread -1: no single one.
void emu_fault_in(emu_launch_state *l, emu_fault f, int thread, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
// A fault of the running thread in what it is doing: records it, says where in the kernel's text
// (`from`: an address in its code) and ends the launch.
void emu_stop(emu_launch_state *l, emu_fault f, void *from, const char *fmt, ...)
    __attribute__((format(printf, 4, 5), noreturn));

// --- emu_sync.c
void emu_sync_begin_launch(emu_launch_state *l);
void emu_sync_begin_block(emu_launch_state *l);
void emu_barrier(emu_launch_state *l, int line);
const emu_payload *emu_collective_of(emu_launch_state *l, emu_collective what, int detail,
                                     const void *mine, size_t bytes);
// The same for one that is made in the name of `from`, an address in the kernel's code.
const emu_payload *emu_meet(emu_launch_state *l, emu_collective what, int detail, const void *mine,
                            size_t bytes, void *from);
// Says why nobody can run any more.
void emu_stuck(emu_launch_state *l);
// Whether an access in that period of that warp comes before what the running thread does now.
static inline bool emu_is_before(const emu_launch_state *l, int warp, uint32_t period) {
  return l->warp[emu_warp_of(l->running)].seen[warp] >= period;
}

// Adds the place in the kernel's text to the report, after the launch.
void emu_report_place(emu_launch_state *l);

// --- emu_build.c
// A library that has debug lines for the code of the one that was loaded from `path`: what emu_build
// makes is compiled again, once; `path` itself for others.
const char *emu_lines_of(const char *path);

// --- emu_mma.c
void emu_mma(emu_launch_state *l, emu_collective what, const emu_fragments *mine, float *c);

// --- emu_wgmma.c
void emu_wgmma(emu_launch_state *l, emu_collective what, float *c, int columns,
               const emu_operand *a, const emu_operand *b);
void emu_wgmma_begin(emu_launch_state *l);
void emu_wgmma_commit(emu_launch_state *l);
void emu_wgmma_wait(emu_launch_state *l, int newer);
void emu_wgmma_begin_block(emu_launch_state *l);
void emu_wgmma_end(emu_launch_state *l);

// --- emu_memory.c
void emu_global(emu_launch_state *l, const void *at, size_t bytes, size_t align, emu_access how);
void emu_argument(emu_launch_state *l, const void *begin, size_t align);
// The same for an access that is made in the name of `from`, an address in the kernel's code.
void emu_global_check(emu_launch_state *l, const void *at, size_t bytes, size_t align,
                      emu_access how, void *from);

// --- emu_global.c
// An access of the running thread to [at, at + bytes), which lies in a buffer.
void emu_global_touch(emu_launch_state *l, uintptr_t at, size_t bytes, emu_access how, void *from);
void emu_global_end(emu_launch_state *l);

// --- emu_shared.c
void emu_shared(emu_launch_state *l, emu_array *a, int64_t first, int64_t count, int64_t align,
                emu_access how);
// The elements become untouchable; then touchable again, written by the running thread.
void emu_shared_take_away(emu_launch_state *l, emu_array *a, int64_t first, int64_t count,
                          void *from);
void emu_shared_give_back(emu_launch_state *l, emu_array *a, int64_t first, int64_t count,
                          void *from);
void emu_shared_check(emu_launch_state *l, const emu_array *a, int64_t first, int64_t count,
                      int64_t align, const char *does, void *from);
// wgmma reads element `at`: as others do, and whoever wrote it has called k_wgmma_ready.
void emu_shared_see(emu_launch_state *l, emu_array *a, int64_t at, void *from);
void emu_wgmma_ready(emu_launch_state *l);
void emu_shared_poison(emu_launch_state *l);
void emu_shared_end(emu_launch_state *l);

// --- emu_async.c
void emu_async_copy(emu_launch_state *l, emu_array *a, int64_t first, const void *from,
                    size_t bytes);
void emu_async_commit(emu_launch_state *l);
void emu_async_wait(emu_launch_state *l, int newer);
void emu_async_begin_block(emu_launch_state *l);
void emu_async_end(emu_launch_state *l);

#endif
