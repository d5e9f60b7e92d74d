// stopping.h: signals that end a process, while there are compilers that run and a folder of their files.
#ifndef CODEGEN_STOPPING_H
#define CODEGEN_STOPPING_H

// From here on a signal is only noted; one that is ignored stays so.
void cg_stopping_begin(void);
// The signal that came since; 0: none did.
int cg_stopping_signal(void);
// As it was before. A signal that came takes effect now: it ends the process.
void cg_stopping_end(void);

#endif
