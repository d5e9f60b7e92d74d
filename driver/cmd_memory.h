// cmd_memory.h: `mltc memory FILE`.
#ifndef DRIVER_CMD_MEMORY_H
#define DRIVER_CMD_MEMORY_H

#include "driver/draft.h"

// Prints what a trainer would need, under each policy. Returns the exit code: 3 when nothing fits.
int cmd_memory(const draft_subject *s);

#endif
