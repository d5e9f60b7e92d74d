// cache.c: see cache.h. An entry:
//   header | key | data
#include "codegen/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct header {
  char magic[16];
  uint64_t key_len, data_len;
  uint64_t key_hash, data_hash;
} header;

static const char magic[16] = "mltc image 1";
enum { HASH_DIGITS = 16 };

// --- the folder ----------------------------------------------------------------------------------
static bool make_folder(const char *path) {
  return mkdir(path, 0700) == 0 || errno == EEXIST;
}

// The specification of XDG's folders has relative ones ignored.
static const char *parent_folder(ir_arena *a) {
  const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (xdg && xdg[0] == '/')
    return xdg;
  return home && home[0] == '/' ? ir_format(a, "%s/.cache", home) : NULL;
}

cg_cache cg_cache_open(ir_arena *a) {
  const char *parent = parent_folder(a);
  cg_cache c = {.a = a};
  if (!parent)
    return c;
  const char *dir = ir_format(a, "%s/mltc", parent);
  if (make_folder(parent) && make_folder(dir) && access(dir, R_OK | W_OK | X_OK) == 0)
    c.dir = dir;
  return c;
}

const char *cg_file_stamp(ir_arena *a, const char *path) {
  struct stat st;
  if (stat(path, &st) != 0)
    return NULL;
  return ir_format(a, "%lld bytes, %lld.%09ld", (long long)st.st_size, (long long)st.st_mtim.tv_sec,
                   st.st_mtim.tv_nsec);
}

static const char *path_of(const cg_cache *c, const ir_buf *key) {
  return ir_format(c->a, "%s/%016llx.image", c->dir,
                   (unsigned long long)ir_hash(ir_buf_str(key), key->len));
}

// --- entries -------------------------------------------------------------------------------------
static header describe(const ir_buf *key, const char *data, size_t len) {
  header h = {.key_len = key->len,
              .data_len = len,
              .key_hash = ir_hash(ir_buf_str(key), key->len),
              .data_hash = ir_hash(data, len)};
  memcpy(h.magic, magic, sizeof magic);
  return h;
}

const char *cg_cache_get(const cg_cache *c, const ir_buf *key, size_t *len) {
  size_t size = 0, before = sizeof(header) + key->len;
  const char *path = c->dir ? path_of(c, key) : NULL;
  const char *file = path ? ir_read_file(c->a, path, &size) : NULL;
  if (!file || size < before)
    return NULL;
  header want = describe(key, file + before, size - before);
  if (memcmp(file, &want, sizeof want) != 0 ||
      memcmp(file + sizeof want, ir_buf_str(key), key->len) != 0)
    return NULL;
  utimensat(AT_FDCWD, path, NULL, 0); // used now: others go first
  *len = size - before;
  return file + before;
}

static bool write_all(int file, const void *data, size_t len) {
  for (const char *p = data; len > 0;) {
    ssize_t n = write(file, p, len);
    if (n < 0 && errno != EINTR)
      return false;
    p += n > 0 ? n : 0;
    len -= n > 0 ? (size_t)n : 0;
  }
  return true;
}

void cg_cache_put(const cg_cache *c, const ir_buf *key, const char *data, size_t len) {
  if (!c->dir)
    return;
  const char *path = path_of(c, key);
  const char *temporary = ir_format(c->a, "%s.%ld", path, (long)getpid());
  header h = describe(key, data, len);
  int file = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0)
    return;
  bool ok = write_all(file, &h, sizeof h) && write_all(file, ir_buf_str(key), key->len) &&
            write_all(file, data, len);
  if (close(file) != 0 || !ok || rename(temporary, path) != 0)
    unlink(temporary);
}

// --- size ----------------------------------------------------------------------------------------
typedef struct entry {
  const char *name;
  int64_t bytes;
  struct timespec used;
} entry;
typedef IR_VEC(entry) entries;

// Ours, and what a killed mltc left half-written.
static bool is_ours(const char *name) {
  return strspn(name, "0123456789abcdef") == HASH_DIGITS &&
         strncmp(name + HASH_DIGITS, ".image", 6) == 0;
}

static int by_use(const void *x, const void *y) {
  const struct timespec *a = &((const entry *)x)->used, *b = &((const entry *)y)->used;
  if (a->tv_sec != b->tv_sec)
    return a->tv_sec < b->tv_sec ? -1 : 1;
  return (a->tv_nsec > b->tv_nsec) - (a->tv_nsec < b->tv_nsec);
}

void cg_cache_trim(const cg_cache *c, int64_t most) {
  DIR *d = c->dir ? opendir(c->dir) : NULL;
  entries all = {0};
  int64_t bytes = 0;
  struct stat st;
  for (struct dirent *e; d && (e = readdir(d));)
    if (is_ours(e->d_name) && fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
      entry x = {ir_strdup(c->a, e->d_name), st.st_size, st.st_mtim};
      IR_PUSH(c->a, all, x);
      bytes += st.st_size;
    }
  if (bytes > most)
    qsort(all.at, all.num, sizeof *all.at, by_use);
  for (size_t i = 0; bytes > most && i < all.num; i++) {
    unlinkat(dirfd(d), all.at[i].name, 0);
    bytes -= all.at[i].bytes;
  }
  if (d)
    closedir(d);
}
