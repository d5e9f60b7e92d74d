// support_slopes.h: the gradients of a model against the slope of its loss.
#ifndef TESTS_SUPPORT_SLOPES_H
#define TESTS_SUPPORT_SLOPES_H

#include "support_ir.h"

// What a step takes from random parameters along a random direction is the slope of the loss, by dual numbers and by
// finite differences, to 1e-6, and is not 0. The module has gone through autodiff; its recipe is sgd(1).
void support_check_slopes(ir_arena *a, ir_module *m, uint64_t seed, const char *what);

#endif
