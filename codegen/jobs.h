// jobs.h: commands, as many at a time as there are processors.
#ifndef CODEGEN_JOBS_H
#define CODEGEN_JOBS_H

#include "ir/base.h"

#include <sys/types.h>

enum { CG_MAX_ARGS = 64 };

typedef struct cg_command {
  const char *argv[CG_MAX_ARGS]; // ends with NULL
  int num;
} cg_command;
void cg_command_add(cg_command *c, const char *arg);

#define CG_AT_ONCE ((size_t)-1)

typedef struct cg_job {
  const char *what; // "compiling the generated kernels_0.c"
  cg_command command;
  const char *log; // file that gets what it prints
  size_t after;    // place of the one that must have ended well; CG_AT_ONCE: of none
  // Files that it is to write, or NULL. What an earlier run left there goes before; afterwards they are there and not
  // empty, or it has failed, whatever its exit code says.
  const char *makes[2];
  pid_t pid;  // while it runs
  int error;  // why it did not begin (errno); 0: it did
  int status; // what waitpid said of it
  bool begun;
  bool ok; // it has ended, and well
} cg_job;
typedef IR_VEC(cg_job) cg_jobs;

// Runs all, beginning in their order, those that wait for another one last. The first in their order that failed, or
// NULL.
const cg_job *cg_jobs_run(cg_jobs *jobs, bool verbose);
// Its message: what failed, and what it printed.
const char *cg_job_explain(ir_arena *a, const cg_job *j);

#endif
