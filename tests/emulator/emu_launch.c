// emu_launch.c: a grid: blocks one after the other, the threads of a block as fibers.
//
//   for each block, in the order of the options
//     poison shared memory; queue all threads
//     while somebody can run: switch to the next of the queue
// A thread that waits is parked (emu_sync.c) and queued again when what it waits for has come. At
// the first fault all fibers are left where they are: the next block's begin on the same stacks.
#include "tests/emulator/emu_state.h"

#include <stdlib.h>
#include <string.h>

enum { DEFAULT_STACK = 64 * 1024 };

static const emu_engine engine = {
    .barrier = emu_barrier,
    .collective = emu_collective_of,
    .mma = emu_mma,
    .global = emu_global,
    .buffer = emu_argument,
    .shared = emu_shared,
    .async_copy = emu_async_copy,
    .async_commit = emu_async_commit,
    .async_wait = emu_async_wait,
    .wgmma = emu_wgmma,
    .wgmma_ready = emu_wgmma_ready,
    .wgmma_begin = emu_wgmma_begin,
    .wgmma_commit = emu_wgmma_commit,
    .wgmma_wait = emu_wgmma_wait,
};

// --- order -----------------------------------------------------------------------------------
// splitmix64
uint64_t emu_random(emu_launch_state *l, uint64_t below) {
  uint64_t z = (l->random += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (z ^ (z >> 31)) % below;
}

static int *queue_at(emu_launch_state *l, int i) {
  return &l->queue[(l->head + i) % l->threads];
}

void emu_wake(emu_launch_state *l, int thread) {
  l->thread[thread].standing = EMU_RUNS;
  *queue_at(l, l->waiting++) = thread;
}

// Order 0: first in, first out. 1: the other way round. Others: any of them.
static int next_thread(emu_launch_state *l) {
  l->waiting--;
  if (l->options.order == 1)
    return *queue_at(l, l->waiting);
  if (l->options.order > 1) {
    int *any = queue_at(l, (int)emu_random(l, (uint64_t)l->waiting + 1));
    int first = *queue_at(l, 0), chosen = *any;
    *any = first;
    l->head = (l->head + 1) % l->threads;
    return chosen;
  }
  int first = *queue_at(l, 0);
  l->head = (l->head + 1) % l->threads;
  return first;
}

// Number i of the blocks: a random order steps through them by a stride that reaches all.
static int64_t common_divisor(int64_t a, int64_t b) {
  return b ? common_divisor(b, a % b) : a;
}

static int64_t block_stride(emu_launch_state *l) {
  for (;;) {
    int64_t stride = 1 + (int64_t)emu_random(l, (uint64_t)l->blocks);
    if (common_divisor(stride, l->blocks) == 1)
      return stride;
  }
}

// --- switching -------------------------------------------------------------------------------
static void switch_to(emu_launch_state *l, emu_fiber *from, int thread) {
  l->running = thread;
  l->unit->thread.x = (unsigned)thread;
  emu_fiber_switch(from, l->thread[thread].fiber);
}

// The running thread stops here: on to the next one that can run, else back to run_block.
static void leave(emu_launch_state *l) {
  emu_fiber *from = l->thread[l->running].fiber;
  if (l->waiting == 0 || l->report->fault != EMU_NONE) {
    emu_fiber_switch(from, emu_fiber_home(l->machine->stacks));
    return;
  }
  int next = next_thread(l);
  if (next != l->running)
    switch_to(l, from, next);
}

void emu_park(emu_launch_state *l) {
  leave(l);
}

void emu_give_up(emu_launch_state *l) {
  leave(l);
  abort(); // nobody switches to a thread that has ended, or whose launch has failed
}

static void thread_body(void *data) {
  emu_thread *t = data;
  emu_launch_state *l = t->launch;
  l->entry->run(l->parameter);
  t->standing = EMU_ENDED;
  l->ended++;
  emu_give_up(l); // for good, since it is not queued again
}

// --- blocks ----------------------------------------------------------------------------------
static void begin_block(emu_launch_state *l, int64_t block) {
  l->block = block;
  l->unit->block = (emu_dim3){(unsigned)block, 0, 0};
  l->ended = l->head = l->waiting = 0;
  emu_sync_begin_block(l);
  emu_async_begin_block(l);
  emu_wgmma_begin_block(l);
  emu_shared_poison(l);
  for (int i = 0; i < l->threads; i++) {
    l->thread[i].fiber = emu_fiber_start(l->machine->stacks, i, thread_body, &l->thread[i]);
    emu_wake(l, i);
  }
}

static bool run_block(emu_launch_state *l, int64_t block) {
  begin_block(l, block);
  switch_to(l, emu_fiber_home(l->machine->stacks), next_thread(l)); // until all wait or have ended
  l->running = -1;
  if (l->report->fault == EMU_NONE && l->ended < l->threads)
    emu_stuck(l);
  return l->report->fault == EMU_NONE;
}

static void run_grid(emu_launch_state *l) {
  int64_t stride = l->options.order > 1 ? block_stride(l) : 1;
  int64_t block = l->options.order > 1 ? (int64_t)emu_random(l, (uint64_t)l->blocks) : 0;
  for (int64_t i = 0; i < l->blocks; i++, block = (block + stride) % l->blocks)
    if (!run_block(l, l->options.order == 1 ? l->blocks - 1 - block : block))
      return;
}

// --- a launch --------------------------------------------------------------------------------
static bool check_launch(emu_launch_state *l, size_t parameter_bytes) {
  const emu_entry *e = l->entry;
  l->block = -1;
  if (e->threads < 1 || e->threads > EMU_MAX_THREADS)
    emu_fault_in(l, EMU_LAUNCH, -1, "a block of %d threads", e->threads);
  else if (l->blocks < 1 || l->blocks > INT32_MAX)
    emu_fault_in(l, EMU_LAUNCH, -1, "a grid of %lld blocks", (long long)l->blocks);
  else if (parameter_bytes != e->parameter)
    emu_fault_in(l, EMU_LAUNCH, -1, "%zu bytes of parameters for a kernel that takes %zu",
                 parameter_bytes, e->parameter);
  else if (e->unit->launch)
    emu_fault_in(l, EMU_LAUNCH, -1, "a kernel of the same file is running");
  return l->report->fault == EMU_NONE;
}

static void ready_stacks(emu_machine *m, int threads, size_t bytes) {
  bytes = bytes ? bytes : DEFAULT_STACK;
  if (m->stacks && emu_stacks_count(m->stacks) >= threads && emu_stacks_bytes(m->stacks) >= bytes)
    return;
  emu_stacks_free(m->stacks);
  m->stacks = emu_stacks_new(threads, bytes);
}

static void open_launch(emu_launch_state *l) {
  l->threads = l->entry->threads;
  l->warps = (l->threads + EMU_WARP - 1) / EMU_WARP;
  l->running = -1;
  l->random = l->options.order;
  l->thread = calloc((size_t)l->threads, sizeof *l->thread);
  l->warp = calloc((size_t)l->warps, sizeof *l->warp);
  l->queue = calloc((size_t)l->threads, sizeof *l->queue);
  for (int i = 0; i < l->threads; i++)
    l->thread[i] = (emu_thread){.launch = l, .index = i};
  ready_stacks(l->machine, l->threads, l->options.stack);
  emu_sync_begin_launch(l);
  emu_unit *u = l->unit;
  u->engine = &engine;
  u->launch = l;
  u->checked = !l->options.fast;
  u->thread = u->block = (emu_dim3){0, 0, 0};
  u->block_dim = (emu_dim3){(unsigned)l->threads, 1, 1};
  u->grid_dim = (emu_dim3){(unsigned)l->blocks, 1, 1};
}

static void close_launch(emu_launch_state *l) {
  emu_async_end(l);
  emu_wgmma_end(l);
  emu_global_end(l);
  emu_shared_end(l);
  l->unit->launch = NULL;
  l->unit->engine = NULL;
  free(l->thread);
  free(l->warp);
  free(l->queue);
}

bool emu_launch(emu_machine *m, const emu_entry *e, int64_t blocks, const void *parameter,
                size_t parameter_bytes, const emu_options *options, emu_report *report) {
  emu_report own;
  emu_launch_state l = {.machine = m, .entry = e, .unit = e->unit, .blocks = blocks};
  l.parameter = parameter;
  l.report = report ? report : &own;
  *l.report = (emu_report){.block = -1, .thread = -1};
  if (options)
    l.options = *options;
  if (!check_launch(&l, parameter_bytes))
    return false;
  open_launch(&l);
  run_grid(&l);
  emu_report_place(&l);
  close_launch(&l);
  return l.report->fault == EMU_NONE;
}

emu_machine *emu_new(void) {
  return calloc(1, sizeof(emu_machine));
}

void emu_free(emu_machine *m) {
  if (!m)
    return;
  emu_stacks_free(m->stacks);
  free(m->region);
  free(m);
}
