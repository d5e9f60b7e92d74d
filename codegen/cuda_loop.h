// cuda_loop.h: what the parts of the LOOP generator for GPUs share.
//
//   cuda_loop.c        decisions: which threads work on what; the frame of the kernel
//   cuda_loop_keep.c   what threads keep in registers between sweeps over a row
//   cuda_loop_body.c   text: a unit of work
//
// The decisions on axes and members are the CPU's (cpu_loop.h), with vectors of 4 elements. A unit
// is one iteration of the parallel axes: of all of them (across), or of one vector (along).
//
//   no reductions   a thread has a unit                        neighbours have neighbours: a warp
//                                                              reads 512 bytes in a row
//   across          a group of neighbouring threads has one    they take its vectors in turns
//   along           threads that lie `threads / group` apart   they take iterations of R in turns,
//                   have one                                   neighbours still read neighbours
//
// Sums of the threads of a group are added in a fixed tree (k_group_sum, k_slice_sum).
#ifndef CODEGEN_CUDA_LOOP_H
#define CODEGEN_CUDA_LOOP_H

#include "codegen/cpu_loop.h"

enum { CUDA_WARP = 32 };

typedef struct cuda_loop {
  loop_plan p;      // first: the shared code sees this part
  int threads;      // of a block
  bool spread;      // across: lanes of a vector lie a warp apart, so that threads read neighbours
  int group;        // threads that share a unit; a power of two
  int64_t vectors;  // of a unit, over which its threads take turns
  int kept;         // registers of one vector of what threads keep between phases
  int turns;        // of a thread; 0: it keeps nothing, so that their number may be anything
  int side_by_side; // then: turns of a sweep that is unrolled
} cuda_loop;

// Vectors of one row, with those of a last warp that are empty.
int64_t cuda_loop_vectors_of_row(const cuda_loop *c);

static inline const cuda_loop *cuda_loop_of(const loop_emit *m) {
  return (const cuda_loop *)m->p;
}

// Which loads a thread keeps from one phase to the next (loop_plan.kept): how many registers a
// vector of everything takes, that is kept at a time.
int cuda_loop_keep(loop_plan *p, const cg_kernel *k);
// Registers of what a turn loads from rows.
int cuda_loop_loaded(const loop_plan *p, const cg_kernel *k);
// Registers that a turn takes besides what is kept, estimated.
int cuda_loop_busy(const loop_plan *p, const cg_kernel *k);
// The same with what does not run along rows: all values of a turn at a time, rather more than
// ptxas finds necessary.
int cuda_loop_takes(const loop_plan *p, const cg_kernel *k);
// Rows are too long: members anew, without scratch rows, and in as few phases as that allows.
void cuda_loop_keep_nothing(loop_plan *p, const cg_kernel *k);
void cuda_loop_declare_kept(loop_emit *m, int turns);
// In a turn: what earlier phases have kept; what this one keeps.
void cuda_loop_bind_kept(loop_emit *m);
void cuda_loop_fill_kept(loop_emit *m);
// From "unit" (a variable of the block) to stores.
void cuda_loop_emit_unit(loop_emit *m);

#endif
