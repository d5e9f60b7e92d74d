// toolchain.h: what the parts of the toolchain share: toolchain.c (the C compiler and the linker)
// and cuda_toolchain.c (images for GPUs).
#ifndef CODEGEN_TOOLCHAIN_H
#define CODEGEN_TOOLCHAIN_H

#include "codegen/cache.h"
#include "codegen/jobs.h"
#include "codegen/program.h"

typedef struct cg_tools {
  ir_arena *a;
  const cg_target *t;
  const cg_build *b;
  const char *cc;   // clang
  const char *lib;  // folder of the runtime
  const char *dir;  // of intermediate files
  cg_cache cache;   // without a folder where --no-cache says so
  const char **why; // gets the message of what fails
} cg_tools;

// Sets the message and returns false.
bool cg_fail(const cg_tools *x, const char *message);
// "DIR/kernels_0.o" of "kernels_0.c" and ".o".
const char *cg_with_suffix(const cg_tools *x, const char *source, const char *suffix);
// The job, to say more of it before the next one is added.
cg_job *cg_add_command(const cg_tools *x, cg_jobs *jobs, const char *what, const char *log,
                       const cg_command *c);
// Writes a file into the folder of intermediate files.
bool cg_write(const cg_tools *x, const char *name, const char *text, size_t len);
// Path of a program, as the shell finds it; NULL: there is none.
const char *cg_find_program(ir_arena *a, const char *name);
// Folder of the runtime, lib/mltc beside this program's own; NULL: it is not there.
const char *cg_find_library(ir_arena *a);
// What a command prints; NULL, with a message in *x->why: it failed. `name` is what messages call it.
const char *cg_ask(const cg_tools *x, const char *name, const cg_command *c);
// What the compiler says of itself (--version); NULL, with a message in *x->why: nothing.
const char *cg_compiler_version(const cg_tools *x);
// The text without lines of comments, which change nothing of what is made of it: for keys of the cache.
void cg_put_source(const cg_source *s, ir_buf *key);
// How a C file is compiled; and a job that does.
cg_command cg_compile_command(const cg_tools *x, const cg_source *s, const char *out);
void cg_add_compile(const cg_tools *x, cg_jobs *jobs, const cg_source *s);

#endif
