// objects.h: the C files of a program as objects. What has been compiled before, by the same compiler for
// the same machine, comes from the cache (cache.h).
#ifndef CODEGEN_OBJECTS_H
#define CODEGEN_OBJECTS_H

#include "codegen/toolchain.h"

typedef struct cg_objects cg_objects;

// Finds in the cache what it can, and adds a job for each of the others. The sources are in the folder of
// intermediate files.
cg_objects *cg_objects_new(const cg_tools *x, const cg_sources *s, cg_jobs *jobs);
// After the jobs: gives what they made to the cache.
void cg_objects_finish(const cg_objects *o);

#endif
