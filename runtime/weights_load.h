// weights_load.h: `--weights=FILE`: a run begins with the values of a file.
#ifndef RUNTIME_WEIGHTS_LOAD_H
#define RUNTIME_WEIGHTS_LOAD_H

#include "runtime/trainer.h"

// Initial states from `seed`, then the file that the options name over them; says what was loaded
// and what was not. Ends the process through mlrt_fail when the file will not do.
void mlrt_weights_begin(mlrt_trainer *t, uint64_t seed);
// Before data are opened: characters of texts have the ids that they have in that file, if it says. In a new run others
// may follow. Ends the process through mlrt_fail where the metadata are damaged; what else is wrong with the file is left
// for mlrt_weights_begin to say.
void mlrt_weights_characters(mlrt_options *o);

#endif
