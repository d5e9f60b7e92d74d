// check_plain.h: the step's loss and gradients in double precision, on one thread.
#ifndef RUNTIME_CHECK_PLAIN_H
#define RUNTIME_CHECK_PLAIN_H

#include "runtime/mlrt.h"

// Bytes of an element in an argument of a plain version: all float types are doubles there.
int64_t mlrt_plain_bytes(mlrt_dtype t);
void mlrt_plain_widen(char *to, const char *from, mlrt_dtype t, int64_t elements);

// A point (states and batch) with all that was computed at it.
typedef struct mlrt_plain_point {
  const mlrt_plain_step *step;
  char **buffer; // by buffer
  double **tap;  // by tap
  double *loss;  // by loss
} mlrt_plain_point;

// Evaluates loss and gradients with the states and the batch that lie in `arena` as planned.
mlrt_plain_point mlrt_plain_open(const mlrt_program *p, const char *arena);
// The same in buffers of its own, with all choices as they are there: in another rounding mode of this thread it is
// what rounding makes of loss and gradients.
mlrt_plain_point mlrt_plain_again(const mlrt_plain_point *at);
void mlrt_plain_close(mlrt_plain_point *x);
// Buffer of a state; -1: the loss and the gradients do not read it.
int mlrt_plain_state(const mlrt_plain_step *s, int state);

// Losses near a point. Several may share one point, each on a thread of its own.
typedef struct mlrt_plain_probe {
  const mlrt_plain_point *at;
  char **buffer; // what differs from the point; NULL until it is needed
  bool *moved;   // by buffer
} mlrt_plain_probe;

mlrt_plain_probe mlrt_plain_probe_open(const mlrt_plain_point *at);
void mlrt_plain_probe_close(mlrt_plain_probe *x);
// That loss when buffer `moved` is `value` there and all else is as at the point. Computes only
// what depends on that buffer; values without gradient stay what they are at the point.
double mlrt_plain_loss(mlrt_plain_probe *x, int loss, int moved, const double *value);
// Other rounding modes of this thread: they tell what rounding makes of a result. As a sample of what it can do, so
// many times the change is called rounding.
enum { MLRT_ROUNDINGS = 2, MLRT_ROUNDING_SAFETY = 4 };
// Returns the mode before, for fesetround().
int mlrt_round_otherwise(int number);

// Floating-point operations of mlrt_plain_loss.
int64_t mlrt_plain_flops(const mlrt_plain_step *s, int moved);

#endif
