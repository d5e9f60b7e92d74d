// keep.h: the file of an earlier run, which this run neither began with nor wrote, is kept as NAME.old when a new one
// takes its name (a checkpoint, or metrics): a command typed again must cost nobody the hours of the first one.
//
// A file is known by its beginning, of which a checkpoint has checksums of all the rest: unlike inodes and times, that
// means the same on every file system.
#ifndef RUNTIME_KEEP_H
#define RUNTIME_KEEP_H

#include "runtime/files.h"

#include <stdint.h>

typedef struct mlrt_keeper {
  const char *path; // not owned
  char *old, *link; // NAME.old; NAME.old.tmp, which it is for an instant
  int64_t bytes;    // of the beginning of the file that may be replaced; 0: none may
  uint64_t hash;    // of these
} mlrt_keeper;

// `path` must outlive it. False: out of memory; mlrt_keeper_close is still due.
bool mlrt_keeper_open(mlrt_keeper *k, const char *path);
void mlrt_keeper_close(mlrt_keeper *k);

// The file that may be replaced from now on: it begins with these bytes, or with as many of an open file. (One that
// cannot be read is not known, and so kept.)
void mlrt_keeper_know(mlrt_keeper *k, const char *beginning, size_t bytes);
void mlrt_keeper_know_file(mlrt_keeper *k, int fd, int64_t bytes);
// Whether there is a file, with something in it, that may not be replaced.
bool mlrt_keeper_has_other(const mlrt_keeper *k);
// Gives it the name NAME.old, in the place of an older one. At every instant it has a name; it also stays at `path`
// where the file system has hard links. False with errno: it is where it was.
bool mlrt_keeper_keep(const mlrt_keeper *k);
// When nothing has come to `path` after mlrt_keeper_keep: it has its name again.
void mlrt_keeper_put_back(const mlrt_keeper *k);
// mlrt_place_take for the keeper's file, which is kept first if it may not be replaced: its new name is on disk before it
// loses the old one. *kept: it was. False with errno.
bool mlrt_keeper_replace(const mlrt_keeper *k, const mlrt_place *p, int fd, bool *kept);

#endif
