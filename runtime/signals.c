// signals.c: the only writable globals of the runtime: a signal handler has no other way to speak.
#include "runtime/signals.h"
#include "runtime/error.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t pending, save_asked;

// on_save is installed for the first of them: who sees that a run catches SIGTERM may send any.
static const int handled[] = {SIGUSR1, SIGUSR2, SIGINT, SIGTERM, SIGHUP, SIGXCPU};
enum { NUM_HANDLED = sizeof handled / sizeof handled[0], NUM_SAVING = 2 };

// The system sends SIGXCPU once a second, be a step as long as it may: that is not a user's wish to wait no longer.
static void on_signal(int number) {
  if (pending && number == SIGXCPU)
    return;
  if (pending)
    _exit(128 + number);
  pending = number;
}

static void on_save(int number) {
  save_asked = number;
}

static sigset_t handled_set(void) {
  sigset_t set;
  sigemptyset(&set);
  for (int i = 0; i < NUM_HANDLED; i++)
    sigaddset(&set, handled[i]);
  return set;
}

static void say(const char *text) {
  if (write(STDERR_FILENO, text, strlen(text)) < 0)
    return; // nobody reads
}

// Data files are read where they are mapped, and a page of one is not there any more.
static void on_bus(int number, siginfo_t *about, void *context) {
  (void)context;
  if (about->si_code != BUS_ADRERR) {
    signal(number, SIG_DFL);
    raise(number);
    return;
  }
  say(program_invocation_short_name);
  say(": error: a data file has become shorter while this run reads it\n");
  say("help: the last checkpoint is whole; write a new file and rename it, so that runs keep "
      "theirs\n");
  _exit(MLRT_EXIT_INPUT);
}

void mlrt_signals_ignore(void) {
  struct sigaction bus = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};
  sigemptyset(&bus.sa_mask);
  sigaction(SIGBUS, &bus, NULL);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
}

// The first `num` of them.
static void install(int num) {
  pending = save_asked = 0;
  struct sigaction act = {.sa_flags = SA_RESTART};
  sigemptyset(&act.sa_mask);
  for (int i = 0; i < num; i++) {
    struct sigaction old;
    act.sa_handler = i < NUM_SAVING ? on_save : on_signal;
    // nohup and shells' background jobs ignore some of them: that stays so.
    if (sigaction(handled[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
      sigaction(handled[i], &act, NULL);
  }
}

void mlrt_signals_begin(void) {
  install(NUM_SAVING);
}

void mlrt_signals_install(void) {
  install(NUM_HANDLED);
  mlrt_signals_ignore();
}

int mlrt_signals_pending(void) {
  return pending;
}

int mlrt_signals_take_save(void) {
  int number = save_asked;
  save_asked = 0;
  return number;
}

// The question and the wait are one for signals (ppoll): none comes in between.
bool mlrt_signals_may_write(int fd) {
  static const struct timespec at_once;
  struct pollfd p = {.fd = fd, .events = POLLOUT};
  sigset_t set = handled_set(), old;
  sigprocmask(SIG_BLOCK, &set, &old);
  int ready;
  do
    ready = ppoll(&p, 1, pending ? &at_once : NULL, &old);
  while (ready < 0 && errno == EINTR);
  sigprocmask(SIG_SETMASK, &old, NULL);
  return ready != 0; // what cannot be asked says so when it is written to
}

void mlrt_signals_block(void) {
  sigset_t set = handled_set();
  sigprocmask(SIG_BLOCK, &set, NULL);
}

void mlrt_signals_unblock(void) {
  sigset_t set = handled_set();
  sigprocmask(SIG_UNBLOCK, &set, NULL);
}
