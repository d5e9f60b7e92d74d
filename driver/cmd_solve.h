// cmd_solve.h: --max-batch and --max=NAME.
#ifndef DRIVER_CMD_SOLVE_H
#define DRIVER_CMD_SOLVE_H

#include "driver/draft.h"

// Finds the largest value that fits the memory budget, and prints it. Returns the exit code; with 0,
// *define is "NAME=VALUE", in arena `a`, for whoever goes on to compile it.
int cmd_solve(ir_arena *a, const draft_subject *s, const char **define);

#endif
