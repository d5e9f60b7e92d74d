// fuzz_compiler.h: what the harnesses of both parsers share.
//
// Any bytes give diagnostics or a program: never a crash, a hang, or BUG(). In this build BUG()
// ends in fuzz_exit (see CMakeLists.txt), which aborts, so that the input is kept.
#ifndef FUZZ_COMPILER_H
#define FUZZ_COMPILER_H

#include "ir/ir.h"

// Larger modules are only parsed: a run must stay fast.
enum { FUZZ_MAX_NODES = 600, FUZZ_MAX_ELEMENTS = 1 << 26 };

// Diagnostics point into the text: printing them reads it.
void fuzz_print_diags(const ir_diags *d);
// The module verifies, prints, and reads back to the same text.
void fuzz_check_sound(ir_arena *a, const ir_module *m);
// All passes, the verifier after each, schedules, plan, plan check, and the text of the program.
void fuzz_compile(ir_arena *a, ir_module *m, ir_diags *d);

#endif
