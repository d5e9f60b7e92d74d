// emu_sync.c: where threads wait for each other, and which accesses that orders.
//
// Time of a warp is cut into periods, which end where something orders memory. A warp knows of each
// other warp up to which period everything it did comes before (vector clocks, as in FastTrack;
// Flanagan and Freund, 2009):
//   __syncwarp      the warp's own period ends: its threads see each other's accesses
//   __syncthreads   the periods of all warps end, and all know of all
// Shuffles, ldmatrix, mma and wgmma order no memory (CUDA programming guide, "warp shuffle functions"), so
// they end nothing. Named barriers and mbarriers will be partial joins of the same clocks.
#include "tests/emulator/emu_state.h"

#include <string.h>

static const char *const names[] = {
    [EMU_SYNCWARP] = "__syncwarp",     [EMU_SHUFFLE_XOR] = "k_shuffle_xor",
    [EMU_LDMATRIX] = "k_ldmatrix_x4",  [EMU_LDMATRIX_TRANS] = "k_ldmatrix_x4_trans",
    [EMU_MMA_TF32] = "k_mma_tf32",     [EMU_MMA_BF16] = "k_mma_bf16",
    [EMU_MMA_F16] = "k_mma_f16",       [EMU_MATCH_ANY] = "k_match_any",
    [EMU_WGMMA_BF16] = "k_wgmma_bf16", [EMU_WGMMA_F16] = "k_wgmma_f16",
};

// --- clocks ----------------------------------------------------------------------------------
static void all_know_of_all(emu_launch_state *l) {
  for (int w = 0; w < l->warps; w++)
    for (int v = 0; v < l->warps; v++)
      l->warp[w].seen[v] = l->warp[v].period;
  for (int w = 0; w < l->warps; w++)
    l->warp[w].period++;
}

void emu_sync_begin_launch(emu_launch_state *l) {
  for (int w = 0; w < l->warps; w++) {
    int left = l->threads - w * EMU_WARP;
    l->warp[w].lanes = left < EMU_WARP ? left : EMU_WARP;
    l->warp[w].period = 1; // 0 is "never"
  }
}

// One block after the other: for shared memory that is as good as a barrier.
void emu_sync_begin_block(emu_launch_state *l) {
  all_know_of_all(l);
  l->at_barrier = 0;
  for (int w = 0; w < l->warps; w++)
    l->warp[w].arrived = 0;
}

// --- barriers --------------------------------------------------------------------------------
static void open_barrier(emu_launch_state *l) {
  l->at_barrier = 0;
  all_know_of_all(l);
  for (int i = 0; i < l->threads; i++)
    emu_wake(l, i);
}

void emu_barrier(emu_launch_state *l, int line) {
  if (l->at_barrier > 0 && line != l->barrier_line)
    emu_stop(l, EMU_DIVERGENCE, __builtin_return_address(0),
             "waits at the barrier in line %d, other threads of the block at that in line %d", line,
             l->barrier_line);
  l->barrier_line = line;
  l->thread[l->running].standing = EMU_AT_BARRIER;
  if (++l->at_barrier == l->threads)
    open_barrier(l); // and queue up like all others
  emu_park(l);
}

// --- collectives -----------------------------------------------------------------------------
static int first_at_collective(const emu_launch_state *l, int warp) {
  for (int i = 0; i < l->warp[warp].lanes; i++)
    if (l->thread[warp * EMU_WARP + i].standing == EMU_AT_COLLECTIVE)
      return warp * EMU_WARP + i;
  return -1;
}

static void must_agree(emu_launch_state *l, const emu_warp *w, emu_collective what, int detail,
                       void *from) {
  if (w->arrived == 0 || (w->what == what && w->detail == detail))
    return;
  int other = first_at_collective(l, emu_warp_of(l->running));
  if (w->what != what)
    emu_stop(l, EMU_DIVERGENCE, from, "calls %s while thread %d of its warp calls %s", names[what],
             other, names[w->what]);
  emu_stop(l, EMU_DIVERGENCE, from, "calls %s with %d, thread %d of its warp with %d", names[what],
           detail, other, w->detail);
}

static void complete(emu_launch_state *l, emu_warp *w, int first) {
  w->arrived = 0;
  w->turn ^= 1; // the other half stays readable until the next collective is complete
  if (w->what == EMU_SYNCWARP) {
    int index = emu_warp_of(first);
    w->seen[index] = w->period++;
  }
  for (int i = 0; i < w->lanes; i++)
    emu_wake(l, first + i);
}

const emu_payload *emu_meet(emu_launch_state *l, emu_collective what, int detail, const void *mine,
                            size_t bytes, void *from) {
  int me = l->running, warp = emu_warp_of(me);
  emu_warp *w = &l->warp[warp];
  must_agree(l, w, what, detail, from);
  emu_payload *all = w->payload[w->turn];
  if (bytes)
    memcpy(&all[me % EMU_WARP], mine, bytes);
  w->what = what;
  w->detail = detail;
  l->thread[me].standing = EMU_AT_COLLECTIVE;
  if (++w->arrived == w->lanes)
    complete(l, w, warp * EMU_WARP);
  emu_park(l);
  return all;
}

const emu_payload *emu_collective_of(emu_launch_state *l, emu_collective what, int detail,
                                     const void *mine, size_t bytes) {
  return emu_meet(l, what, detail, mine, bytes, __builtin_return_address(0));
}

// --- nobody can run --------------------------------------------------------------------------
static int find(const emu_launch_state *l, emu_standing how, int from, int to) {
  for (int i = from; i < to; i++)
    if (l->thread[i].standing == how)
      return i;
  return -1;
}

// A warp part of whose threads wait in a collective for the rest.
static bool broken_warp(emu_launch_state *l) {
  for (int w = 0; w < l->warps; w++) {
    int from = w * EMU_WARP, to = from + l->warp[w].lanes;
    int here = find(l, EMU_AT_COLLECTIVE, from, to);
    if (here < 0)
      continue;
    int barrier = find(l, EMU_AT_BARRIER, from, to), gone = find(l, EMU_ENDED, from, to);
    emu_fault_in(l, EMU_DIVERGENCE, here, "waits in %s for its whole warp, of which thread %d %s",
                 names[l->warp[w].what], barrier >= 0 ? barrier : gone,
                 barrier >= 0 ? "waits at a barrier" : "has ended");
    return true;
  }
  return false;
}

void emu_stuck(emu_launch_state *l) {
  if (broken_warp(l))
    return;
  int here = find(l, EMU_AT_BARRIER, 0, l->threads), gone = find(l, EMU_ENDED, 0, l->threads);
  emu_fault_in(l, EMU_DEADLOCK, here,
               "waits with %d of %d threads at the barrier in line %d; thread %d has ended",
               l->at_barrier, l->threads, l->barrier_line, gone);
}
