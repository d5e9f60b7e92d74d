// progress.h: what a person sees while training: one line that changes on a terminal, plain lines
// elsewhere (files, pipes, CI).
#ifndef RUNTIME_PROGRESS_H
#define RUNTIME_PROGRESS_H

#include "runtime/checkpoint.h"

typedef struct mlrt_progress {
  bool quiet, live; // live: stdout is a terminal
  bool shown;       // a live line is on the screen
  int64_t first_step, steps, samples_per_step;
  double started, refreshed; // seconds
  double last_time;          // at the last plain line
  int64_t last_step;
} mlrt_progress;

// What a line says; values are means over the steps since the last line of the log.
typedef struct mlrt_progress_line {
  int64_t step;
  double epoch;
  const mlrt_func *func;
  const double *values;
} mlrt_progress_line;

void mlrt_progress_open(mlrt_progress *p, bool quiet, int64_t step, int64_t steps,
                        int64_t samples_per_step);
// After every step; draws some times a second, on a terminal only.
bool mlrt_progress_wants(mlrt_progress *p);
void mlrt_progress_live(mlrt_progress *p, const mlrt_progress_line *line);
// A line that stays.
void mlrt_progress_log(mlrt_progress *p, const mlrt_progress_line *line);
// Text about anything else; goes above the live line.
__attribute__((format(printf, 2, 3))) void mlrt_progress_say(mlrt_progress *p, const char *fmt,
                                                             ...);
void mlrt_progress_clear(mlrt_progress *p);
// Shows what was printed, also beside this; after a signal only if nobody has to be waited for.
void mlrt_progress_flush(void);
// Nothing follows. What could not be shown after a signal is left out.
void mlrt_progress_close(void);
// " loss 0.693 accuracy 0.5" of the scalar results of `f`.
void mlrt_print_values(FILE *out, const mlrt_func *f, const double *values);

#endif
