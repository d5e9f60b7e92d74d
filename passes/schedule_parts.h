// schedule_parts.h: the rules of lives that who finds them and who only weighs them share.
#ifndef PASSES_SCHEDULE_PARTS_H
#define PASSES_SCHEDULE_PARTS_H

#include "passes/schedule.h"

// What a kernel may compute its outputs over (schedule_under.c).
typedef struct sched_under {
  sched_ins *of; // [output] sched_find_under
  bool *own; // [operand] the first that reads a state: the output that goes there may lie over it
} sched_under;
const sched_under *sched_find_all_under(sched *s, int k);

// [kernel] its first step and its last.
typedef struct sched_when {
  int *first, *last;
} sched_when;
sched_when sched_when_new(const sched *s, ir_arena *a);
void sched_when_set(sched_when *w, const int *steps, size_t num);

// In place: all readers of the state are before the writer, or are the writer itself at the same elements. What is
// fetched has memory before its step. (A value that already went to another state stays there.)
bool sched_is_in_place(const sched *s, const sched_when *when, const sched_write *w);

// Which outputs of the kernel at hand are computed over which operands (schedule_match.c).
typedef struct sched_match {
  sched *s;
  bool *
      dying; // [operand] no later step reads it, nor is it needed at the end; for the caller to set
  bool *tried;   // [operand]
  int *taken_by; // [value] the output that is computed over it, -1
} sched_match;
sched_match sched_match_new(sched *s, ir_arena *a);
// Finds one for output `out` (0 ..) of kernel k. False: there is none left.
bool sched_match_output(sched_match *m, int k, int out);
// Forgets them: the next kernel may be at hand.
void sched_match_end(sched_match *m, int k);

#endif
