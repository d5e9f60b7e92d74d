// cuda_launches.h: which calls of a function run in one launch.
//
//   kernels in their order                   launches
//     a.new = a - lr d.a                       a.new, b.new, c.new   side by side
//     b.new = b - lr (d.b + d.b2)              x
//     x = y @ w
//     c.new = c - lr d.c
//
// A step has many kernels that take less than the microseconds that a launch costs. Calls of which
// none touches what another one writes may run side by side, whatever they compute: blocks of one
// launch work for different kernels. Such a launch has an entry of its own, a joint (K_JOINT of
// cuda_memory_prelude.h): each block looks up its row in a table, and branches to the body of that
// row's kernel. No bit depends on it.
//
// Two designs were on the table: what differs little, such as updates with and without decay, could
// become one text, with the difference as a number in the table; or a launch has several texts. We
// took the second. It joins any kernels, where the first joins what it was made for, and would have
// an update without decay read what it then multiplies by 0.
#ifndef CODEGEN_CUDA_LAUNCHES_H
#define CODEGEN_CUDA_LAUNCHES_H

#include "codegen/program.h"

// Calls side by side, each of one phase; or one call. Or the place where a transfer begins, or where
// it is waited for: it reads what it sends, and writes what it fetches, at both.
typedef struct cuda_launch {
  const ir_kernel *transfer;       // NULL: a launch
  bool done;                       // transfer: it is waited for
  int number;                      // of the transfer, in the order of kernels
  IR_VEC(const cg_kernel *) calls; // in the order of kernels
  cg_spans reads, writes;          // bytes of the arena, without the batch
  const cg_distinct *only;         // the function of all calls; NULL: there are several
  int64_t blocks;                  // of the first phase
  int threads;                     // of a block
  int registers;    // of a thread, estimated, the widest; 0: no other functions beside it
  bool any_threads; // one thread works: blocks of other sizes will do
  bool shared;      // others may join
  bool pinned;      // a later launch has to do with it: it stays before that one
  uint32_t at;      // the kernel whose place in their order it has
  cg_joint *joint;  // of several calls (cuda_joints.c)
  size_t first;     // then: the word of its table that the rows begin with
} cuda_launch;
typedef struct cuda_launches {
  cuda_launch *at;
  size_t num, cap;
} cuda_launches; // an IR_VEC

// The launches of function `func`, in their order.
cuda_launches cuda_find_launches(const cg_program *p, const plan *plan, size_t func);
// Lives that values need for the launches that there could be if no two values shared memory.
plan_wishes cuda_wish_lives(const cg_program *p);

// Whether blocks of so many threads, of which there are so many in a launch, may take so many
// registers without being slower for it.
bool cuda_has_room(const cg_cuda *chip, int threads, int registers, int64_t blocks);

// --- joints (codegen/cuda_joints.c)
// Sets x->joint, for several calls: an entry that there is, which may get further functions, or a
// new one.
void cuda_choose_joint(cg_program *p, size_t func, cuda_launch *x);
// When all launches have theirs: sets cg_distinct.only_in.
void cuda_find_called(cg_program *p);
bool cuda_joint_has(const cg_joint *j, const cg_distinct *d);
// Then: adds rows for the calls to its table, from word x->first on.
void cuda_put_rows(const cg_program *p, const plan *plan, const int64_t *workspaces, size_t func,
                   cuda_launch *x);
// "52 calls of loop_new, loop_new_2, loop_new_3".
const char *cuda_describe_joint(const cg_program *p, const cg_joint *j);
// The table and the entry as text. In constant memory, or not.
void cuda_emit_joint(const cg_program *p, const cg_joint *j, bool near, ir_buf *out);

#endif
