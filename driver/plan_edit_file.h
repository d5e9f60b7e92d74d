// plan_edit_file.h: --plan=FILE.json.
#ifndef DRIVER_PLAN_EDIT_FILE_H
#define DRIVER_PLAN_EDIT_FILE_H

#include "passes/plan_edit.h"

// Reads what --emit=plan.json has printed, and somebody may have edited. NULL with the reason in *why.
const plan_edit *plan_edit_read(ir_arena *a, const char *path, const char **why);

#endif
