// evaluate.h: the eval function over a whole data set.
#ifndef RUNTIME_EVALUATE_H
#define RUNTIME_EVALUATE_H

#include "runtime/trainer.h"

typedef struct mlrt_means {
  double value[MLRT_MAX_RESULTS]; // by result of MLRT_EVAL; 0 for outputs
  int64_t samples;
} mlrt_means;

// False when a signal asked to stop before the end. Leaves `b` at the end of `data`.
bool mlrt_evaluate(mlrt_trainer *t, mlrt_batches *b, const mlrt_dataset *data, mlrt_means *out);

#endif
