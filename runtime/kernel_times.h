// kernel_times.h: --kernel-times=FILE of a program for the CPU: how long each of its kernels took.
//
// Generated code tells a thread's watch (mlrt.h) when it begins and ends its share of a phase of a kernel. What goes
// by between the end of one and the beginning of the next is waiting for other threads, and copies of states. So each
// thread's time is accounted for:
//
//   thread 0   | wait | h_0 ...... | wait | logits_0 .. | wait | ...
//   thread 1   | h_0 .... | wait .. | logits_0 ... | ...
//
// A watch is one thread's own. Reading the clock twice for each share takes some 50 ns.
#ifndef RUNTIME_KERNEL_TIMES_H
#define RUNTIME_KERNEL_TIMES_H

#include "runtime/mlrt.h"

typedef struct mlrt_kernel_times mlrt_kernel_times;

// NULL for a path of NULL. Fails when the file cannot be written.
mlrt_kernel_times *mlrt_kernel_times_open(const mlrt_program *p, const char *path);
// Around a run of a function by the team. Do nothing for NULL.
void mlrt_kernel_times_begin(mlrt_kernel_times *t, mlrt_team *team, int func);
void mlrt_kernel_times_end(mlrt_kernel_times *t);
// Writes the file; nothing runs any more.
void mlrt_kernel_times_close(mlrt_kernel_times *t);

#endif
