// evaluate.h: the eval function over a whole data set.
#ifndef RUNTIME_EVALUATE_H
#define RUNTIME_EVALUATE_H

#include "runtime/trainer.h"

typedef struct mlrt_means {
  double value[MLRT_MAX_RESULTS]; // by result of MLRT_EVAL; 0 for outputs
  int64_t samples;
} mlrt_means;

typedef enum mlrt_evaluated {
  MLRT_EVAL_WHOLE,
  MLRT_EVAL_STOPPED, // a signal asked to stop before the end
  MLRT_EVAL_BAD,     // a sample cannot be used: `e` says why
} mlrt_evaluated;

// Leaves `b` in `data`, whose means are in *out when it was whole. States are what they were, whatever comes out.
mlrt_evaluated mlrt_evaluate(mlrt_trainer *t, mlrt_batches *b, const mlrt_dataset *data,
                             mlrt_means *out, mlrt_error *e);

#endif
