// data_file.c: finds a data file and makes its bytes readable.
//
// Places, in order: files carried in the binary; an absolute path; --data-dir; the folder of the
// program's source file; the current folder. Plain files are mapped and never copied. A .gz is
// known by its first bytes, whatever its name, and unpacked once to private pages.
#include "runtime/data_reader.h"
#include "runtime/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int64_t page_bytes(void) {
  return (int64_t)sysconf(_SC_PAGESIZE);
}

int64_t mlrt_pages_size(int64_t bytes) {
  int64_t page = page_bytes();
  return bytes > INT64_MAX - page ? INT64_MAX / page * page : (bytes + page - 1) / page * page;
}

uint8_t *mlrt_pages_new(int64_t bytes) {
  void *at = mmap(NULL, (size_t)mlrt_pages_size(bytes), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? NULL : at;
}

static bool set_name(mlrt_file *f, const char *name, mlrt_error *e) {
  f->name = strdup(name);
  return f->name || mlrt_error_memory(e, "%s: no memory", name);
}

// --- finding -------------------------------------------------------------------------------
typedef struct search {
  const char *name;
  char path[PATH_MAX]; // the place being tried
  char tried[700];     // list for the message
  int fd;
} search;

// True when the search is over: the file is open, or is there but cannot be opened (fd < 0).
static bool try_place(search *s, const mlrt_folder *f) {
  int n = f->len ? snprintf(s->path, sizeof s->path, "%.*s/%s", f->len, f->at, s->name)
                 : snprintf(s->path, sizeof s->path, "%s", s->name);
  if (n < 0 || n >= (int)sizeof s->path)
    return false;
  // NONBLOCK: a named pipe must give an error below, not wait for a writer.
  s->fd = open(s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (s->fd >= 0 || (errno != ENOENT && errno != ENOTDIR))
    return true;
  size_t used = strlen(s->tried);
  snprintf(s->tried + used, sizeof s->tried - used, "%s%s", used ? ", " : "", s->path);
  return false;
}

int mlrt_data_folders(const mlrt_program *p, const char *data_dir, const char *name,
                      mlrt_folder out[MLRT_DATA_FOLDERS]) {
  const char *source = p->source_path, *slash = source ? strrchr(source, '/') : NULL;
  int num = 0;
  if (name[0] != '/' && data_dir && data_dir[0])
    out[num++] = (mlrt_folder){data_dir, (int)strlen(data_dir)};
  if (name[0] != '/' && slash)
    out[num++] = (mlrt_folder){source, slash == source ? 1 : (int)(slash - source)};
  out[num++] = (mlrt_folder){"", 0};
  return num;
}

static bool try_all(search *s, const mlrt_program *p, const char *data_dir) {
  mlrt_folder folders[MLRT_DATA_FOLDERS];
  int num = mlrt_data_folders(p, data_dir, s->name, folders);
  for (int i = 0; i < num; i++)
    if (try_place(s, &folders[i]))
      return true;
  return false;
}

static bool find_on_disk(search *s, const mlrt_program *p, const char *data_dir, mlrt_error *e) {
  if (!try_all(s, p, data_dir))
    return mlrt_error_set(
        e,
        "%s: no such file (tried: %s)\nhelp: give its folder with --data-dir=DIR; "
        "scripts/fetch-data downloads the public data sets",
        s->name, s->tried);
  if (s->fd < 0)
    return mlrt_error_set(e, "%s: %s", s->path, strerror(errno));
  return true;
}

// --- mapping -------------------------------------------------------------------------------
static bool cannot_map(const char *name, mlrt_error *e) {
  if (errno == ENOMEM)
    return mlrt_error_memory(e, "%s: no memory to map it", name);
  return mlrt_error_set(e, "%s: cannot be mapped: %s", name, strerror(errno));
}

static bool map_fd(mlrt_file *f, int fd, mlrt_error *e) {
  struct stat st;
  if (fstat(fd, &st) != 0)
    return mlrt_error_set(e, "%s: %s", f->name, strerror(errno));
  if (!S_ISREG(st.st_mode))
    return mlrt_error_set(e, "%s: is %s, not a file", f->name,
                          S_ISDIR(st.st_mode) ? "a folder" : "a device or pipe");
  if (st.st_size == 0)
    return mlrt_error_set(e, "%s: is empty", f->name);
  void *at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED)
    return cannot_map(f->name, e);
  f->map = at;
  f->map_bytes = mlrt_pages_size((int64_t)st.st_size);
  f->data = at;
  f->len = (int64_t)st.st_size;
  f->memory = MLRT_MEM_MAPPED;
  return true;
}

static bool open_on_disk(mlrt_file *f, const mlrt_program *p, const char *data_dir,
                         const char *name, mlrt_error *e) {
  search s = {.name = name, .fd = -1};
  if (!find_on_disk(&s, p, data_dir, e))
    return false;
  bool ok = set_name(f, s.path, e) && map_fd(f, s.fd, e);
  close(s.fd);
  return ok;
}

static const mlrt_embedded *find_embedded(const mlrt_program *p, const char *name) {
  for (int i = 0; i < p->num_embedded; i++)
    if (strcmp(p->embedded[i].name, name) == 0)
      return &p->embedded[i];
  return NULL;
}

static bool use_embedded(mlrt_file *f, const mlrt_embedded *em, mlrt_error *e) {
  if (em->len == 0)
    return mlrt_error_set(e, "%s: the file carried in the program is empty", em->name);
  f->data = em->data;
  f->len = (int64_t)em->len;
  f->memory = MLRT_MEM_BINARY;
  return set_name(f, em->name, e);
}

bool mlrt_file_open(mlrt_file *f, const mlrt_program *p, const char *data_dir, const char *name,
                    mlrt_need_fn need, mlrt_error *e) {
  *f = (mlrt_file){0};
  const mlrt_embedded *em = find_embedded(p, name);
  bool ok = em ? use_embedded(f, em, e) : open_on_disk(f, p, data_dir, name, e);
  if (ok && mlrt_is_gz(f->data, f->len))
    ok = mlrt_gunzip(f, need, e);
  if (!ok)
    mlrt_file_close(f);
  return ok;
}

// Where a name is found on disk; false: nowhere.
static bool locate(search *s, const mlrt_program *p, const char *data_dir) {
  bool found = try_all(s, p, data_dir);
  if (s->fd >= 0)
    close(s->fd);
  return found;
}

bool mlrt_file_is_there(const mlrt_program *p, const char *data_dir, const char *name) {
  search s = {.name = name, .fd = -1};
  return find_embedded(p, name) || locate(&s, p, data_dir);
}

bool mlrt_file_is_at(const mlrt_program *p, const char *data_dir, const char *name,
                     const char *path) {
  search s = {.name = name, .fd = -1};
  return !find_embedded(p, name) && locate(&s, p, data_dir) && mlrt_same_file(s.path, path);
}

void mlrt_file_release(mlrt_file *f) {
  if (f->map)
    munmap(f->map, (size_t)f->map_bytes);
  *f = (mlrt_file){.name = f->name};
}

void mlrt_file_close(mlrt_file *f) {
  mlrt_file_release(f);
  free(f->name);
  f->name = NULL;
}

void mlrt_file_passed(const mlrt_file *f, int64_t *done, int64_t at, bool for_good) {
  enum { PIECE = 1 << 20 }; // a multiple of every page size; f->map is where f->data begins
  bool droppable = f->memory == MLRT_MEM_MAPPED || (f->memory == MLRT_MEM_PRIVATE && for_good);
  if (!droppable || at - *done < PIECE)
    return;
  int64_t end = at / PIECE * PIECE;
  madvise(f->map + *done, (size_t)(end - *done), MADV_DONTNEED);
  *done = end;
}

void mlrt_file_keep(mlrt_file *f, int64_t offset, int64_t len) {
  if (f->memory != MLRT_MEM_PRIVATE)
    return; // mapped pages that are not read take no memory
  int64_t page = page_bytes();
  int64_t front = (offset + (f->data - f->map)) / page * page;
  int64_t end = mlrt_pages_size(offset + len + (f->data - f->map));
  if (end < f->map_bytes)
    munmap(f->map + end, (size_t)(f->map_bytes - end));
  if (front > 0)
    munmap(f->map, (size_t)front);
  f->map += front; // f->data stays: it is only read inside what is kept
  f->map_bytes = end - front;
}
