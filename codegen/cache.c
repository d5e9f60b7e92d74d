// cache.c: see cache.h. An entry:
//   header | key and data, packed
//
// Packed they take a quarter of the room: keys are sources, and objects are mostly their tables and names. Packing
// takes a fiftieth of the time of compiling what is packed.
#include "codegen/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

// The hash is of what follows it in the file: zlib sees damage, but not of bits that it has no use for.
typedef struct header {
  char magic[16];
  uint64_t hash;
  uint64_t key_len, data_len; // bytes, unpacked
} header;

static const char magic[16] = "mltc image 2";
enum { HASH_DIGITS = 16 };

// --- the folder ----------------------------------------------------------------------------------
// With the folders that it is in, behind the first `there` bytes of the path. Of those only the last one's making tells
// whether it worked.
static bool make_folder(ir_arena *a, const char *path, size_t there) {
  char *part = ir_strndup(a, path, strlen(path));
  for (char *end = strchr(part + there + 1, '/'); end; end = strchr(end + 1, '/')) {
    *end = 0;
    mkdir(part, 0700);
    *end = '/';
  }
  return mkdir(path, 0700) == 0 || errno == EEXIST;
}

// The specification of XDG's folders has relative ones ignored, and missing ones made. *there: bytes of the path that are not
// made, HOME.
static const char *parent_folder(ir_arena *a, size_t *there) {
  const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  *there = 0;
  if (xdg && xdg[0] == '/')
    return xdg;
  *there = home ? strlen(home) : 0;
  return home && home[0] == '/' ? ir_format(a, "%s/.cache", home) : NULL;
}

cg_cache cg_cache_open(ir_arena *a) {
  size_t there;
  const char *parent = parent_folder(a, &there);
  cg_cache c = {.a = a};
  if (!parent)
    return c;
  const char *dir = ir_format(a, "%s/mltc", parent);
  if (make_folder(a, dir, there) && access(dir, R_OK | W_OK | X_OK) == 0)
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
static uint64_t hash_of(const char *file, size_t size) {
  size_t from = offsetof(header, key_len);
  return ir_hash(file + from, size - from);
}

const char *cg_cache_get(const cg_cache *c, const ir_buf *key, size_t *len) {
  header h;
  size_t size = 0;
  const char *path = c->dir ? path_of(c, key) : NULL;
  struct stat st;
  bool is_file = path && stat(path, &st) == 0 && S_ISREG(st.st_mode); // a pipe would never end
  const char *file = is_file ? ir_read_file(c->a, path, &size) : NULL;
  if (!file || size < sizeof h)
    return NULL;
  memcpy(&h, file, sizeof h);
  if (memcmp(h.magic, magic, sizeof magic) != 0 || h.hash != hash_of(file, size) ||
      h.key_len != key->len)
    return NULL;
  uLongf bytes = h.key_len + h.data_len;
  char *all = ir_alloc(c->a, bytes + 1); // a text ends with a zero
  int status = uncompress((Bytef *)all, &bytes, (const Bytef *)file + sizeof h, size - sizeof h);
  if (status != Z_OK || bytes != h.key_len + h.data_len ||
      memcmp(all, ir_buf_str(key), key->len) != 0)
    return NULL;
  utimensat(AT_FDCWD, path, NULL, 0); // used now: others go first
  *len = h.data_len;
  return all + key->len;
}

// The bytes of an entry; NULL: no memory for packing.
static const char *entry_of(const cg_cache *c, const ir_buf *key, const char *data, size_t len,
                            size_t *size) {
  uLongf packed = compressBound(key->len + len);
  char *all = ir_alloc(c->a, key->len + len + 1), *file = ir_alloc(c->a, sizeof(header) + packed);
  memcpy(all, ir_buf_str(key), key->len);
  memcpy(all + key->len, data, len);
  if (compress2((Bytef *)file + sizeof(header), &packed, (Bytef *)all, key->len + len,
                Z_BEST_SPEED) != Z_OK)
    return NULL;
  *size = sizeof(header) + packed;
  header h = {.key_len = key->len, .data_len = len};
  memcpy(h.magic, magic, sizeof magic);
  memcpy(file, &h, sizeof h);
  h.hash = hash_of(file, *size);
  memcpy(file, &h, sizeof h);
  return file;
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
  size_t size = 0;
  const char *file = c->dir ? entry_of(c, key, data, len, &size) : NULL;
  if (!file)
    return;
  const char *path = path_of(c, key);
  const char *temporary = ir_temp_name(c->a, path);
  int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0)
    return;
  bool ok = write_all(fd, file, size);
  if (close(fd) != 0 || !ok || rename(temporary, path) != 0)
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
