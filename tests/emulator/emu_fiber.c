// emu_fiber.c: see emu_fiber.h. x86-64 and aarch64 save the registers that a call preserves and
// change the stack pointer (a switch costs a few nanoseconds); elsewhere ucontext does it.
#include "tests/emulator/emu_fiber.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBER_ASAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define FIBER_ASAN 1
#endif
#ifdef FIBER_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if !defined(__x86_64__) && !defined(__aarch64__)
#define FIBER_UCONTEXT 1
#include <ucontext.h>
#endif

struct emu_fiber {
#ifdef FIBER_UCONTEXT
  ucontext_t context;
#else
  void *sp;
#endif
  char *stack; // lowest address; NULL: the thread's own
  size_t bytes;
  void (*body)(void *data);
  void *data;
  emu_fiber *home;
};

struct emu_stacks {
  int count;
  size_t bytes, page;
  char *memory;
  emu_fiber home;
  emu_fiber *fiber;
};

// --- the switch ------------------------------------------------------------------------------
#if defined(__x86_64__)
__asm__(".text\n"
        ".p2align 4\n"
        ".type emu_fiber_swap, @function\n"
        "emu_fiber_swap:\n" // (void **save, void *sp)
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  ret\n"
        ".size emu_fiber_swap, .-emu_fiber_swap\n"
        ".type emu_fiber_entry, @function\n"
        "emu_fiber_entry:\n" // first return of a fiber: rbx is its argument, r12 the function
        "  movq %rbx, %rdi\n"
        "  xorl %ebp, %ebp\n"
        "  callq *%r12\n"
        "  ud2\n"
        ".size emu_fiber_entry, .-emu_fiber_entry\n");
#elif defined(__aarch64__)
__asm__(".text\n"
        ".p2align 4\n"
        ".type emu_fiber_swap, %function\n"
        "emu_fiber_swap:\n"
        "  sub sp, sp, #160\n"
        "  stp x19, x20, [sp, #0]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n"
        "  stp x25, x26, [sp, #48]\n  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
        "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n  stp d12, d13, [sp, #128]\n"
        "  stp d14, d15, [sp, #144]\n"
        "  mov x9, sp\n  str x9, [x0]\n  mov sp, x1\n"
        "  ldp x19, x20, [sp, #0]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n"
        "  ldp x25, x26, [sp, #48]\n  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
        "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n  ldp d12, d13, [sp, #128]\n"
        "  ldp d14, d15, [sp, #144]\n"
        "  add sp, sp, #160\n"
        "  ret\n"
        ".size emu_fiber_swap, .-emu_fiber_swap\n"
        ".type emu_fiber_entry, %function\n"
        "emu_fiber_entry:\n" // x19 is the argument, x20 the function
        "  mov x0, x19\n"
        "  mov x29, #0\n"
        "  blr x20\n"
        "  brk #1\n"
        ".size emu_fiber_entry, .-emu_fiber_entry\n");
#endif
#ifndef FIBER_UCONTEXT
extern void emu_fiber_swap(void **save, void *sp);
extern void emu_fiber_entry(void);
#endif

static void begin(emu_fiber *f) {
#ifdef FIBER_ASAN
  const void *stack = NULL;
  size_t bytes = 0;
  __sanitizer_finish_switch_fiber(NULL, &stack, &bytes);
  if (!f->home->stack) { // the first switch of all came from the thread's own stack
    f->home->stack = (char *)(uintptr_t)stack;
    f->home->bytes = bytes;
  }
#endif
  f->body(f->data);
  abort(); // a body switches away instead of returning
}

#ifdef FIBER_UCONTEXT
static void begin_in_halves(unsigned high, unsigned low) { // makecontext passes ints
  begin((emu_fiber *)((uintptr_t)high << 16 << 16 | low));
}
#endif

// What the first switch pops: registers, then a return to emu_fiber_entry.
static void prepare(emu_fiber *f) {
#if defined(FIBER_UCONTEXT)
  getcontext(&f->context);
  f->context.uc_stack.ss_sp = f->stack;
  f->context.uc_stack.ss_size = f->bytes;
  f->context.uc_link = NULL;
  uintptr_t at = (uintptr_t)f;
  makecontext(&f->context, (void (*)(void))begin_in_halves, 2, (unsigned)(at >> 16 >> 16),
              (unsigned)at);
#else
  uintptr_t words[21] = {0};
  void (*entry)(void) = emu_fiber_entry;
  void (*first)(emu_fiber *) = begin;
#if defined(__x86_64__)
  enum { COUNT = 9, ARGUMENT = 4, FUNCTION = 3, RETURN = 6 }; // r15 r14 r13 r12 rbx rbp rip
#else
  enum { COUNT = 20, ARGUMENT = 0, FUNCTION = 1, RETURN = 11 };
#endif
  words[ARGUMENT] = (uintptr_t)f;
  memcpy(&words[FUNCTION], &first, sizeof first);
  memcpy(&words[RETURN], &entry, sizeof entry);
  char *sp = f->stack + f->bytes - COUNT * sizeof *words; // a multiple of 16 after the pops
  memcpy(sp, words, COUNT * sizeof *words);
  f->sp = sp;
#endif
}

void emu_fiber_switch(emu_fiber *from, emu_fiber *to) {
#ifdef FIBER_ASAN
  void *fake = NULL;
  __sanitizer_start_switch_fiber(&fake, to->stack, to->bytes);
#endif
#ifdef FIBER_UCONTEXT
  swapcontext(&from->context, &to->context);
#else
  emu_fiber_swap(&from->sp, to->sp);
#endif
#ifdef FIBER_ASAN
  __sanitizer_finish_switch_fiber(fake, NULL, NULL);
#endif
}

// --- stacks ----------------------------------------------------------------------------------
emu_stacks *emu_stacks_new(int count, size_t bytes) {
  emu_stacks *s = calloc(1, sizeof *s);
  s->page = (size_t)sysconf(_SC_PAGESIZE);
  s->count = count;
  s->bytes = (bytes + s->page - 1) / s->page * s->page;
  s->fiber = calloc((size_t)count, sizeof *s->fiber);
  size_t each = s->bytes + s->page;
  s->memory = mmap(NULL, each * (size_t)count, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (s->memory == MAP_FAILED) {
    fprintf(stderr, "emulator: no memory for %d stacks of %zu bytes\n", count, bytes);
    abort();
  }
  for (int i = 0; i < count; i++) {
    char *at = s->memory + each * (size_t)i;
    mprotect(at, s->page, PROT_NONE);
    s->fiber[i].stack = at + s->page;
    s->fiber[i].bytes = s->bytes;
    s->fiber[i].home = &s->home;
  }
  return s;
}

// What AddressSanitizer noted of frames in a stack stays when the memory goes; the next library
// that is loaded there would be blamed for it.
#if defined(__SANITIZE_ADDRESS__)
#define EMU_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EMU_ASAN 1
#endif
#endif
#if defined(EMU_ASAN)
void __asan_unpoison_memory_region(void const volatile *at, size_t bytes);
#endif

static void forget_frames(const emu_stacks *s) {
#if defined(EMU_ASAN)
  __asan_unpoison_memory_region(s->memory, (s->bytes + s->page) * (size_t)s->count);
#else
  (void)s;
#endif
}

void emu_stacks_free(emu_stacks *s) {
  if (!s)
    return;
  forget_frames(s);
  munmap(s->memory, (s->bytes + s->page) * (size_t)s->count);
  free(s->fiber);
  free(s);
}

int emu_stacks_count(const emu_stacks *s) {
  return s->count;
}

size_t emu_stacks_bytes(const emu_stacks *s) {
  return s->bytes;
}

emu_fiber *emu_fiber_start(emu_stacks *s, int i, void (*body)(void *data), void *data) {
  emu_fiber *f = &s->fiber[i];
  f->body = body;
  f->data = data;
#ifdef FIBER_ASAN
  __asan_unpoison_memory_region(f->stack, f->bytes); // frames that were left where they were
#endif
  prepare(f);
  return f;
}

emu_fiber *emu_fiber_home(emu_stacks *s) {
  return &s->home;
}

bool emu_fiber_has(const emu_fiber *f, const void *at, size_t bytes) {
  size_t offset = (uintptr_t)at - (uintptr_t)f->stack;
  return offset < f->bytes && f->bytes - offset >= bytes;
}
