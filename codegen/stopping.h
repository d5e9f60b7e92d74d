// stopping.h: signals that end a process, while there are compilers that run and a folder of their files.
#ifndef CODEGEN_STOPPING_H
#define CODEGEN_STOPPING_H

#include <signal.h>

// From here on a signal is only noted; one that is ignored stays so. Children are waited for, also where whoever
// started this process ignores his own (SIGCHLD).
void cg_stopping_begin(void);
// The signal that came last since; 0: none did. And how many did: a second one does not wait for what ignores the first.
int cg_stopping_signal(void);
int cg_stopping_times(void);
// These signals, and that of a child's end, wait until the mask is *before again.
void cg_stopping_hold(sigset_t *before);
// As it was before. A signal that came takes effect now: it ends the process.
void cg_stopping_end(void);

#endif
