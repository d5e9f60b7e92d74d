// signals.h: SIGINT, SIGTERM and SIGHUP end the run after the present step; a second one at once.
#ifndef RUNTIME_SIGNALS_H
#define RUNTIME_SIGNALS_H

// SIGPIPE and SIGXFSZ become write errors: a closed pager or a full quota must not end a training run without a
// checkpoint.
void mlrt_signals_ignore(void);
// Installs the handlers, and ignores what mlrt_signals_ignore does. Until then a signal ends the program at once: there
// is nothing to save, and what it waits for may never come.
void mlrt_signals_install(void);
// The signal that asked to stop; 0: none.
int mlrt_signals_pending(void);
// Threads started between block and unblock never run the handlers.
void mlrt_signals_block(void);
void mlrt_signals_unblock(void);

#endif
