// signals.h: SIGINT, SIGTERM, SIGHUP and SIGXCPU end the run after the present step; a second one, of the first three, at
// once. SIGUSR1 and SIGUSR2, which schedulers of clusters send before a limit of time, ask for a checkpoint.
#ifndef RUNTIME_SIGNALS_H
#define RUNTIME_SIGNALS_H

#include <stdbool.h>

// SIGPIPE and SIGXFSZ become write errors: a closed pager or a full quota must not end a training run without a
// checkpoint. SIGBUS, which is what comes of a data file that somebody shortens, ends the program with a message.
void mlrt_signals_ignore(void);
// From the program's start: SIGUSR1 and SIGUSR2 do not end it. What they ask for before a run begins is forgotten.
void mlrt_signals_begin(void);
// Installs the handlers, and ignores what mlrt_signals_ignore does. Until then a signal ends the program at once: there
// is nothing to save, and what it waits for may never come.
void mlrt_signals_install(void);
// The signal that asked to stop; 0: none.
int mlrt_signals_pending(void);
// The signal that has asked for a checkpoint since the last call; 0: none.
int mlrt_signals_take_save(void);
// Waits until a write to `fd` would not wait, or a signal asks to stop: a pipe that nobody reads, a terminal that was
// stopped must not keep a run from its end. False: it would wait, and a signal has come. Writes of up to PIPE_BUF bytes
// may follow, one per question.
bool mlrt_signals_may_write(int fd);
// Threads started between block and unblock never run the handlers.
void mlrt_signals_block(void);
void mlrt_signals_unblock(void);

#endif
