// files.c: see files.h.
#include "runtime/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static bool is_one(const struct stat *x, const struct stat *y) {
  return x->st_ino == y->st_ino && x->st_dev == y->st_dev;
}

char *mlrt_folder_of(const char *path) {
  const char *slash = strrchr(path, '/');
  if (!slash)
    return strdup(".");
  return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

static const char *last_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static bool in_one_folder(const char *a, const char *b) {
  char *x = mlrt_folder_of(a), *y = mlrt_folder_of(b);
  struct stat mine, other;
  bool one = x && y && stat(x, &mine) == 0 && stat(y, &other) == 0 && is_one(&mine, &other);
  free(x);
  free(y);
  return one;
}

static bool is_one_name(const char *a, const char *b) {
  return strcmp(a, b) == 0 || (strcmp(last_name(a), last_name(b)) == 0 && in_one_folder(a, b));
}

// Of files that are not there yet, links to which may be.
static bool will_be_one(const char *a, const char *b) {
  char *x = mlrt_behind_links(a), *y = mlrt_behind_links(b);
  bool one = x && y && is_one_name(x, y);
  free(x);
  free(y);
  return one;
}

bool mlrt_same_file(const char *a, const char *b) {
  struct stat x, y;
  bool has_a = stat(a, &x) == 0, has_b = stat(b, &y) == 0;
  if (has_a && has_b)
    return S_ISREG(x.st_mode) && is_one(&x, &y);
  if (has_a || has_b)
    return false;
  return will_be_one(a, b);
}

bool mlrt_is_replaceable(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 ? S_ISREG(st.st_mode) : errno != ELOOP;
}

static bool is_others(const struct stat *file, const struct stat *folder) {
  uid_t me = geteuid();
  return (folder->st_mode & S_ISVTX) && me != 0 && file->st_uid != me && folder->st_uid != me;
}

static bool is_fixed(const char *path) {
  struct statx x;
  return statx(AT_FDCWD, path, 0, 0, &x) == 0 &&
         (x.stx_attributes & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND)) != 0;
}

bool mlrt_may_be_replaced(const char *path, const char *folder) {
  struct stat file, in;
  if (stat(path, &file) < 0 || stat(folder, &in) < 0)
    return true;
  errno = EPERM;
  return !is_others(&file, &in) && !is_fixed(path);
}

// What the link at `path` says, from where it lies; NULL: it is no link, or there is no memory.
static char *read_link(const char *path) {
  char to[PATH_MAX];
  ssize_t n = readlink(path, to, sizeof to - 1);
  if (n < 0)
    return NULL;
  to[n] = 0;
  if (*to == '/' || !strchr(path, '/'))
    return strdup(to);
  char *folder = mlrt_folder_of(path), *there = NULL;
  if (folder && asprintf(&there, "%s/%s", folder, to) < 0)
    there = NULL;
  free(folder);
  return there;
}

// Goes from link to link, to a name that `stop` wants (NULL: none) or the end.
static char *follow_links(const char *path, bool (*stop)(const char *)) {
  enum { MOST = 40 }; // as many as Linux follows
  char *at = strdup(path), *next;
  for (int i = 0; at && i < MOST && !(stop && stop(at)) && (next = read_link(at)); i++) {
    free(at);
    at = next;
  }
  return at;
}

char *mlrt_behind_links(const char *path) {
  return follow_links(path, NULL);
}

// "/dev/stdout", "/dev/fd/3", and what those are on Linux.
static bool names_stream(const char *path) {
  static const char *const names[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!strcmp(path, names[i]))
      return true;
  const char *fd = strstr(path, "/fd/");
  bool there = !strncmp(path, "/dev/fd/", 8) || (!strncmp(path, "/proc/", 6) && fd);
  return there && fd[4] && !fd[4 + strspn(fd + 4, "0123456789")];
}

bool mlrt_is_stream(const char *path) {
  char *at = follow_links(path, names_stream);
  bool is = at && names_stream(at);
  free(at);
  return is;
}

bool mlrt_is_at(int fd, const char *path) {
  struct stat mine, there;
  return fstat(fd, &mine) == 0 && stat(path, &there) == 0 && is_one(&mine, &there);
}

int mlrt_open_input(const char *path) {
  return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

static int open_to_write(const char *path, int more) {
  return open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | more, 0666);
}

// Where nothing is yet, behind links: made, and removed.
static bool may_be_made(const char *path) {
  char *real = mlrt_behind_links(path);
  int fd = real ? open_to_write(real, O_CREAT | O_EXCL) : -1, why = errno;
  if (fd >= 0) {
    close(fd);
    unlink(real);
  }
  free(real);
  errno = why;
  return fd >= 0;
}

bool mlrt_may_be_written(const char *path) {
  struct stat st;
  if (stat(path, &st) < 0)
    return errno == ENOENT && may_be_made(path);
  if (S_ISFIFO(st.st_mode))
    return access(path, W_OK) == 0;
  int fd = open_to_write(path, 0);
  return fd >= 0 && close(fd) == 0;
}

bool mlrt_has_other_text(const char *path, const char *begin) {
  struct stat st;
  if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
    return false;
  char text[16] = "";
  FILE *f = fopen(path, "re");
  size_t got = f ? fread(text, 1, strlen(begin), f) : 0;
  if (f)
    fclose(f);
  return got > 0 && strcmp(text, begin) != 0;
}

FILE *mlrt_open_output(const char *path) {
  int fd = open_to_write(path, O_CREAT | O_TRUNC);
  FILE *f = fd >= 0 && fcntl(fd, F_SETFL, 0) == 0 ? fdopen(fd, "w") : NULL;
  if (!f && fd >= 0)
    close(fd);
  return f;
}

void mlrt_occupy_streams(void) {
  int fd;
  do
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd >= 0)
    close(fd);
}

// Who may write to a folder need not be allowed to open it: then the whole file system, to which `file` belongs, is
// synced.
bool mlrt_sync_folder(const char *folder, int file) {
  int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return errno == EACCES && syncfs(file) == 0;
  bool ok = fsync(fd) == 0 || errno == EINVAL; // some file systems cannot sync folders
  int why = errno;
  close(fd);
  errno = why;
  return ok;
}

bool mlrt_lock(int fd) {
  return flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

bool mlrt_place_open(mlrt_place *p, const char *path) {
  *p = (mlrt_place){.path = mlrt_behind_links(path)};
  p->folder = p->path ? mlrt_folder_of(p->path) : NULL;
  if (!p->path || asprintf(&p->temp, "%s.tmp", p->path) < 0)
    p->temp = NULL;
  return p->folder && p->temp;
}

void mlrt_place_close(mlrt_place *p) {
  free(p->path);
  free(p->temp);
  free(p->folder);
  *p = (mlrt_place){0};
}

static bool lock_within(int fd, int seconds) {
  static const struct timespec piece = {.tv_nsec = 2000000};
  struct timespec begun, now;
  clock_gettime(CLOCK_MONOTONIC, &begun);
  while (!mlrt_lock(fd)) {
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec - begun.tv_sec >= seconds)
      return false;
    nanosleep(&piece, NULL);
  }
  return true;
}

// What a killed run leaves must be one that the next can open to write. Some file systems have no permissions.
static void take_permissions(int fd, const char *path) {
  struct stat st;
  if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
    fchmod(fd, (st.st_mode & 0777) | S_IWUSR);
}

int mlrt_place_begin(const mlrt_place *p, int seconds) {
  for (;;) {
    int fd = open(p->temp, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
      return -1;
    bool busy = !lock_within(fd, seconds), there = mlrt_is_at(fd, p->temp);
    if (!busy && there && ftruncate(fd, 0) == 0) {
      take_permissions(fd, p->path);
      return fd;
    }
    int why = busy ? EWOULDBLOCK : errno;
    close(fd);
    errno = why;
    if (busy || there)
      return -1;
  }
}

bool mlrt_place_take(const mlrt_place *p, int fd) {
  return rename(p->temp, p->path) == 0 && mlrt_sync_folder(p->folder, fd);
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
