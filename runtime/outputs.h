// outputs.h: files that a command writes, held against those that it reads, before any of them is opened.
#ifndef RUNTIME_OUTPUTS_H
#define RUNTIME_OUTPUTS_H

#include "runtime/args.h"

// All that the options name. Ends the process (wrong usage) where writing one would destroy data, weights, a
// checkpoint or the program itself, or where two are one file. Only a checkpoint may take the place of the one
// that the run began with: that is read by then, and replaced as a whole.
void mlrt_check_outputs(const mlrt_program *p, const mlrt_options *o);
// One more, which no option names by itself: for what `option` says.
void mlrt_check_output(const mlrt_program *p, const mlrt_options *o, const char *option,
                       const char *path);

#endif
