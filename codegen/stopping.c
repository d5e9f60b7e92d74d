// stopping.c: see stopping.h.
#include "codegen/stopping.h"

#include <stddef.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGXCPU, SIGPIPE, SIGXFSZ};
enum { NUM = sizeof signals / sizeof *signals };

static struct sigaction before[NUM], before_children;
static volatile sig_atomic_t came, times;

// A file that gets too large is an error of whoever writes it, and said there.
static void note(int signal) {
  if (signal != SIGXFSZ)
    came = signal, times = times + 1;
}

void cg_stopping_begin(void) {
  came = times = 0;
  struct sigaction usual = {.sa_handler = SIG_DFL};
  sigaction(SIGCHLD, &usual, &before_children);
  struct sigaction x = {.sa_handler = note}; // no SA_RESTART: waiting for compilers has to end
  sigemptyset(&x.sa_mask);
  for (int i = 0; i < NUM; i++) {
    sigaction(signals[i], NULL, &before[i]);
    if (before[i].sa_handler != SIG_IGN)
      sigaction(signals[i], &x, NULL);
  }
}

int cg_stopping_signal(void) {
  return came;
}

int cg_stopping_times(void) {
  return times;
}

void cg_stopping_hold(sigset_t *before) {
  sigset_t held;
  sigemptyset(&held);
  sigaddset(&held, SIGCHLD);
  for (int i = 0; i < NUM; i++)
    sigaddset(&held, signals[i]);
  sigprocmask(SIG_BLOCK, &held, before);
}

void cg_stopping_end(void) {
  sigaction(SIGCHLD, &before_children, NULL);
  for (int i = 0; i < NUM; i++)
    sigaction(signals[i], &before[i], NULL);
  if (came)
    raise(came);
}
