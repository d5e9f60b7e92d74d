// emu_fiber.h: fibers: functions with a stack of their own that hand the processor to each other.
#ifndef TESTS_EMU_FIBER_H
#define TESTS_EMU_FIBER_H

#include <stdbool.h>
#include <stddef.h>

typedef struct emu_fiber emu_fiber;

typedef struct emu_stacks emu_stacks; // stacks of one size, each with a page below it that faults

emu_stacks *emu_stacks_new(int count, size_t bytes);
void emu_stacks_free(emu_stacks *s);
int emu_stacks_count(const emu_stacks *s);
size_t emu_stacks_bytes(const emu_stacks *s);

// The fiber on stack i, made ready to run body(data) from the start when it is switched to for the
// first time. body never returns: it switches away for good.
emu_fiber *emu_fiber_start(emu_stacks *s, int i, void (*body)(void *data), void *data);
// From the fiber (or, `home`, from the thread that began) to another.
void emu_fiber_switch(emu_fiber *from, emu_fiber *to);
emu_fiber *emu_fiber_home(emu_stacks *s);
// Whether `bytes` at `at` are of the fiber's stack.
bool emu_fiber_has(const emu_fiber *f, const void *at, size_t bytes);

#endif
