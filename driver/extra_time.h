// extra_time.h: --extra-time=PERCENT.
#ifndef DRIVER_EXTRA_TIME_H
#define DRIVER_EXTRA_TIME_H

#include "driver/draft.h"

// The memory budget (bytes) with the smallest arena whose steps are predicted to take at most that much longer, and
// prints what it saves; 0: none saves anything over what is done without one. `t` is scheduled. Returns -1 after a
// message.
int64_t extra_time_find(const draft_subject *s, draft *t);

#endif
