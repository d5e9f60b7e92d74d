// keep.c: see keep.h.
#include "runtime/keep.h"
#include "runtime/hash.h"
#include "runtime/safetensors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

bool mlrt_keeper_open(mlrt_keeper *k, const char *path) {
  *k = (mlrt_keeper){.path = path};
  if (asprintf(&k->old, "%s.old", path) < 0)
    k->old = NULL;
  if (asprintf(&k->link, "%s.old.tmp", path) < 0)
    k->link = NULL;
  return k->old && k->link;
}

void mlrt_keeper_close(mlrt_keeper *k) {
  free(k->old);
  free(k->link);
  *k = (mlrt_keeper){0};
}

static bool hash_beginning(int fd, int64_t bytes, uint64_t *hash) {
  char piece[4096]; // a save takes no memory
  mlrt_hash h;
  mlrt_error e;
  mlrt_hash_begin(&h);
  for (int64_t at = 0; at < bytes; at += (int64_t)sizeof piece) {
    int64_t left = bytes - at, take = left < (int64_t)sizeof piece ? left : (int64_t)sizeof piece;
    if (!mlrt_st_read_at(fd, piece, take, at, &e))
      return false;
    mlrt_hash_add(&h, piece, (size_t)take);
  }
  *hash = mlrt_hash_end(&h);
  return true;
}

void mlrt_keeper_know(mlrt_keeper *k, const char *beginning, size_t bytes) {
  mlrt_hash h;
  mlrt_hash_begin(&h);
  mlrt_hash_add(&h, beginning, bytes);
  k->bytes = (int64_t)bytes;
  k->hash = mlrt_hash_end(&h);
}

void mlrt_keeper_know_file(mlrt_keeper *k, int fd, int64_t bytes) {
  k->bytes = hash_beginning(fd, bytes, &k->hash) ? bytes : 0;
}

static bool is_known(const mlrt_keeper *k) {
  if (!k->bytes)
    return false;
  int fd = mlrt_open_input(k->path);
  uint64_t hash = 0;
  bool known = fd >= 0 && hash_beginning(fd, k->bytes, &hash) && hash == k->hash;
  if (fd >= 0)
    close(fd);
  return known;
}

bool mlrt_keeper_has_other(const mlrt_keeper *k) {
  struct stat st;
  return stat(k->path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 && !is_known(k);
}

// A second name first: a run that is killed anywhere leaves a file at `path`.
static bool keep_by_link(const mlrt_keeper *k) {
  unlink(k->link); // of a run that was killed here
  if (link(k->path, k->link) < 0)
    return false;
  bool kept = rename(k->link, k->old) == 0;
  int why = errno;
  unlink(k->link); // also there when both were names of one file: then rename does nothing
  errno = why;
  return kept;
}

bool mlrt_keeper_keep(const mlrt_keeper *k) {
  errno = EEXIST; // a rename would take the place of a pipe
  if (!mlrt_is_replaceable(k->old))
    return false;
  return keep_by_link(k) || rename(k->path, k->old) == 0; // not all file systems have links
}

void mlrt_keeper_put_back(const mlrt_keeper *k) {
  int why = errno;
  if (access(k->path, F_OK) < 0)
    rename(k->old, k->path);
  errno = why;
}

bool mlrt_keeper_replace(const mlrt_keeper *k, const mlrt_place *p, int fd, bool *kept) {
  *kept = false;
  if (!mlrt_keeper_has_other(k))
    return mlrt_place_take(p, fd);
  *kept = mlrt_keeper_keep(k);
  if (!*kept)
    return false;
  if (mlrt_sync_folder(p->folder, fd) && mlrt_place_take(p, fd))
    return true;
  mlrt_keeper_put_back(k);
  return false;
}
