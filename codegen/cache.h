// cache.h: compiled sources, objects and images for GPUs, kept between runs of mltc in
// ${XDG_CACHE_HOME:-~/.cache}/mltc.
//
// An entry is one file, named by a hash of its key, that holds the whole key (source, options,
// architecture, compiler) beside the data: two keys of one hash are a miss and never a wrong
// kernel. Files are written under a temporary name and renamed, so that several mltc may share a
// folder. What is damaged or foreign is as if it were not there. The folder is kept below a size;
// what was not used for longest goes first. Nothing here is an error: without a folder nothing is
// found.
#ifndef CODEGEN_CACHE_H
#define CODEGEN_CACHE_H

#include "ir/base.h"

enum { CG_CACHE_BYTES = 256 * 1024 * 1024 };

typedef struct cg_cache {
  ir_arena *a;
  const char *dir; // NULL: nothing is found, nothing kept
} cg_cache;

cg_cache cg_cache_open(ir_arena *a);
// For keys: size and time of a file ("123 bytes, 17.000000004"); NULL: there is none.
const char *cg_file_stamp(ir_arena *a, const char *path);
// NULL: not there.
const char *cg_cache_get(const cg_cache *c, const ir_buf *key, size_t *len);
void cg_cache_put(const cg_cache *c, const ir_buf *key, const char *data, size_t len);
// Removes entries until all together have at most `most` bytes.
void cg_cache_trim(const cg_cache *c, int64_t most);

#endif
