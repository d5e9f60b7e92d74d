// weights_load.h: `--weights=FILE`: a run begins with the values of a file.
#ifndef RUNTIME_WEIGHTS_LOAD_H
#define RUNTIME_WEIGHTS_LOAD_H

#include "runtime/trainer.h"

// Initial states from `seed`, then the file that the options name over them; says what was loaded
// and what was not. Ends the process through mlrt_fail when the file will not do.
void mlrt_weights_begin(mlrt_trainer *t, uint64_t seed);

#endif
