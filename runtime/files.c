// files.c: see files.h.
#include "runtime/files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

int mlrt_open_input(const char *path) {
  return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

bool mlrt_write_all(int fd, const void *from, size_t bytes) {
  const char *at = from;
  while (bytes) {
    ssize_t n = write(fd, at, bytes);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return false;
    at += n;
    bytes -= (size_t)n;
  }
  return true;
}
