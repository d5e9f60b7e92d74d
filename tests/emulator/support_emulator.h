// support_emulator.h: what the emulator's own tests share.
#ifndef TESTS_SUPPORT_EMULATOR_H
#define TESTS_SUPPORT_EMULATOR_H

#include "codegen/codegen.h"
#include "tests/emulator/emulator.h"

// The CUDA prelude and, after it, a file of this folder.
const char *test_kernel_text(ir_arena *a, const char *file);

#endif
