// same_file.c: see same_file.h.
#include "runtime/same_file.h"

#include <string.h>
#include <sys/stat.h>

static bool is_one(const struct stat *x, const struct stat *y) {
  return x->st_ino == y->st_ino && x->st_dev == y->st_dev;
}

bool mlrt_same_file(const char *a, const char *b) {
  struct stat x, y;
  if (stat(a, &x) < 0 || stat(b, &y) < 0)
    return strcmp(a, b) == 0;
  return S_ISREG(x.st_mode) && is_one(&x, &y);
}

bool mlrt_is_at(int fd, const char *path) {
  struct stat mine, there;
  return fstat(fd, &mine) == 0 && stat(path, &there) == 0 && is_one(&mine, &there);
}
