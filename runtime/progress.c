// progress.c: see progress.h.
#include "runtime/progress.h"
#include "runtime/signals.h"
#include "runtime/trainer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio_ext.h>
#include <unistd.h>

#define REFRESH_SECONDS 0.1

void mlrt_progress_open(mlrt_progress *p, bool quiet, int64_t step, int64_t steps,
                        int64_t samples_per_step) {
  double now = mlrt_seconds();
  fflush(stdout);
  setvbuf(stdout, NULL, _IOFBF, 0); // lines are shown by mlrt_progress_flush only
  *p = (mlrt_progress){
      .quiet = quiet,
      .live = !quiet && isatty(STDOUT_FILENO),
      .first_step = step,
      .last_step = step,
      .steps = steps,
      .samples_per_step = samples_per_step,
      .started = now,
      .last_time = now,
  };
}

void mlrt_progress_flush(void) {
  if (mlrt_signals_may_write(STDOUT_FILENO))
    fflush(stdout);
}

void mlrt_progress_close(void) {
  mlrt_progress_flush();
  if (mlrt_signals_pending())
    __fpurge(stdout);
}

void mlrt_progress_clear(mlrt_progress *p) {
  if (p->shown)
    fputs("\r\033[K", stdout);
  p->shown = false;
}

void mlrt_print_values(FILE *out, const mlrt_func *f, const double *values) {
  for (int i = 0; i < f->num_results && i < MLRT_MAX_RESULTS; i++)
    if (mlrt_result_is_scalar(&f->results[i]))
      fprintf(out, "  %s %.5g", f->results[i].name,
              isnan(values[i]) ? (double)NAN : values[i]); // no -nan
}

static void print_rate(const mlrt_progress *p, int64_t steps, double seconds) {
  if (steps <= 0 || seconds <= 0)
    return;
  double rate = (double)steps / seconds;
  printf("  %.4g steps/s  %.4g samples/s", rate, rate * (double)p->samples_per_step);
}

static void print_line(const mlrt_progress_line *l, int64_t steps) {
  printf("step %" PRId64 "/%" PRId64 "  epoch %.2f", l->step, steps, l->epoch);
  mlrt_print_values(stdout, l->func, l->values);
}

static void print_remaining(double seconds) {
  int64_t s = (int64_t)(seconds + 0.5);
  if (s >= 3600)
    printf("  %" PRId64 "h%02dm left", s / 3600, (int)(s / 60 % 60));
  else
    printf("  %dm%02ds left", (int)(s / 60), (int)(s % 60));
}

bool mlrt_progress_wants(mlrt_progress *p) {
  if (!p->live)
    return false;
  double now = mlrt_seconds();
  if (now - p->refreshed < REFRESH_SECONDS)
    return false;
  p->refreshed = now;
  return true;
}

void mlrt_progress_live(mlrt_progress *p, const mlrt_progress_line *l) {
  double seconds = p->refreshed - p->started;
  int64_t done = l->step - p->first_step;
  fputs("\r\033[?7l", stdout); // no wrapping: a narrow terminal cuts the line
  print_line(l, p->steps);
  print_rate(p, done, seconds);
  if (done > 0)
    print_remaining(seconds / (double)done * (double)(p->steps - l->step));
  fputs("\033[K\033[?7h", stdout);
  mlrt_progress_flush();
  p->shown = true;
}

void mlrt_progress_log(mlrt_progress *p, const mlrt_progress_line *l) {
  if (p->quiet)
    return;
  mlrt_progress_clear(p);
  double now = mlrt_seconds();
  print_line(l, p->steps);
  print_rate(p, l->step - p->last_step, now - p->last_time);
  putchar('\n');
  mlrt_progress_flush();
  p->last_time = now;
  p->last_step = l->step;
}

void mlrt_progress_say(mlrt_progress *p, const char *fmt, ...) {
  if (p->quiet)
    return;
  mlrt_progress_clear(p);
  va_list args;
  va_start(args, fmt);
  vprintf(fmt, args);
  va_end(args);
  putchar('\n');
  mlrt_progress_flush();
}
