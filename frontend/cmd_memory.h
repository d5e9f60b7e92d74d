// cmd_memory.h: `mltc memory FILE`.
#ifndef FRONTEND_CMD_MEMORY_H
#define FRONTEND_CMD_MEMORY_H

#include "frontend/trial.h"

// Prints what a trainer would need, under each policy. Returns the exit code: 3 when nothing fits.
int cmd_memory(const trial_subject *s);

#endif
