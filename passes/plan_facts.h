// plan_facts.h: figures about a plan that all its printed forms show.
#ifndef PASSES_PLAN_FACTS_H
#define PASSES_PLAN_FACTS_H

#include "passes/cost.h"
#include "passes/plan_share.h"

typedef struct plan_func_facts {
  int peak; // the kernel at which most temporary bytes are live; -1: no kernels
  int64_t peak_bytes;
  int64_t shares[PLAN_NUM_SHARES]; // of peak_bytes
  int64_t kernel_bytes;            // the most that one kernel reads, writes and works in
  int clones;                      // kernels that compute again what memory does not keep
  cost cloned;                     // by them
  double time, cloned_time;        // of all kernels, and of clones: cost_of_kernels
  int sends;                       // values that wait in memory of the host
  int64_t sent_bytes;              // of them
  double waiting;                  // for their copies: offload_waiting
} plan_func_facts;

typedef struct plan_facts {
  plan_share *share;               // by buffer
  plan_func_facts *func;           // by function
  const ir_func *largest;          // the function with the highest peak; NULL: none has kernels
  plan_func_facts most;            // of it
  int64_t shares[PLAN_NUM_SHARES]; // whole run, and at the peak of `largest`: together bound_bytes
  int64_t bound_ws;                // no order and no recomputation of these kernels needs less
  int64_t parameters;              // numbers in states of that share
  double recompute_time;           // with clones, against without: the most of any function
} plan_facts;

plan_facts plan_find_facts(ir_arena *a, const plan *p, const ir_module *m);
// bound_ws of whatever these kernels will be planned as: in another order, with some that run again or copies to the
// host. Needs their workspaces, and no plan.
int64_t plan_least_bytes(ir_module *m);
// a / b; 1 when b is 0.
double plan_ratio(double a, double b);

#endif
