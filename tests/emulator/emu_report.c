// emu_report.c: words for faults: "race: kernel loop_0, block 3, thread 17: ... (k.cpp:812)".
#include "tests/emulator/emu_state.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *emu_fault_name(emu_fault f) {
  static const char *const name[EMU_NUM_FAULTS] = {
      [EMU_NONE] = "none",
      [EMU_LAUNCH] = "launch",
      [EMU_OUT_OF_BOUNDS] = "out of bounds",
      [EMU_SHARED_BOUNDS] = "shared memory out of bounds",
      [EMU_MISALIGNED] = "misaligned",
      [EMU_READ_ONLY] = "read only",
      [EMU_RACE] = "race",
      [EMU_UNWRITTEN] = "not written",
      [EMU_GLOBAL_RACE] = "global race",
      [EMU_DEADLOCK] = "deadlock",
      [EMU_DIVERGENCE] = "divergence",
      [EMU_IN_FLIGHT] = "copy in flight",
  };
  return name[f];
}

static void record(emu_launch_state *l, emu_fault f, int thread, const char *fmt, va_list ap) {
  emu_report *r = l->report;
  if (r->fault != EMU_NONE)
    return;
  r->fault = f;
  r->block = l->block;
  r->thread = thread;
  char where[64] = "";
  int n = 0;
  if (l->block >= 0)
    n = snprintf(where, sizeof where, ", block %lld", (long long)l->block);
  if (thread >= 0)
    snprintf(where + n, sizeof where - (size_t)n, ", thread %d", thread);
  n = snprintf(r->text, sizeof r->text, "%s: kernel %s%s: ", emu_fault_name(f), l->entry->name,
               where);
  vsnprintf(r->text + n, sizeof r->text - (size_t)n, fmt, ap);
}

void emu_fault_in(emu_launch_state *l, emu_fault f, int thread, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  record(l, f, thread, fmt, ap);
  va_end(ap);
}

// A frame of a function that keeps its frame pointer begins with its caller's, then the place it returns to. The
// emulator's do, and those of kernels that are not optimised. Others leave there what is not of the stack, or ends it early.
static void note_calls(emu_launch_state *l, void *from) {
  const emu_fiber *fiber = l->thread[l->running].fiber;
  void *const *frame = __builtin_frame_address(0);
  int num = 0;
  while (num < EMU_CALLS && (uintptr_t)frame % sizeof *frame == 0 &&
         emu_fiber_has(fiber, frame, 2 * sizeof *frame)) {
    if (num > 0 || frame[1] == from) // from where the kernel called the emulator
      l->fault_from[num++] = frame[1];
    void *const *caller = frame[0];
    if (caller <= frame)
      break;
    frame = caller;
  }
  if (num == 0)
    l->fault_from[0] = from;
}

void emu_stop(emu_launch_state *l, emu_fault f, void *from, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  record(l, f, l->running, fmt, ap);
  va_end(ap);
  note_calls(l, from);
  emu_give_up(l);
}

// Frames as addr2line names them, innermost first: a function, then its place. The preludes' are
// inlined into the kernel's, or called by it: the line that a user wants is that in the kernel's body.
static void frame_of_body(FILE *in, char *place, size_t room) {
  char function[512], line[512];
  while (fgets(function, sizeof function, in) && fgets(line, sizeof line, in)) {
    line[strcspn(line, "\n")] = 0;
    const char *slash = strrchr(line, '/');
    if (strstr(function, "_body") && !place[0])
      snprintf(place, room, "%.200s", slash ? slash + 1 : line);
  }
}

void emu_report_place(emu_launch_state *l) {
  Dl_info info;
  if (!l->fault_from[0] || !dladdr(l->fault_from[0], &info) || !info.dli_fname)
    return;
  char command[8192], place[256] = ""; // a path and the addresses
  int n = snprintf(command, sizeof command, "addr2line -fie '%s'", emu_lines_of(info.dli_fname));
  const void *library = info.dli_fbase;
  for (int i = 0; i < EMU_CALLS && l->fault_from[i]; i++)
    if (dladdr(l->fault_from[i], &info) && info.dli_fbase == library)
      n += snprintf(command + n, sizeof command - (size_t)n, " 0x%zx",
                    (size_t)((uintptr_t)l->fault_from[i] - (uintptr_t)library - 1));
  snprintf(command + n, sizeof command - (size_t)n, " 2>/dev/null");
  FILE *in = popen(command, "r");
  if (!in)
    return;
  frame_of_body(in, place, sizeof place);
  pclose(in);
  size_t end = strlen(l->report->text);
  if (place[0])
    snprintf(l->report->text + end, sizeof l->report->text - end, " (%s)", place);
}
