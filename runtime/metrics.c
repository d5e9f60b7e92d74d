// metrics.c: see metrics.h.
#include "runtime/metrics.h"
#include "runtime/files.h"
#include "runtime/signals.h"
#include "runtime/trainer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Whether a line is that of an evaluation of `data`.
static bool is_eval_of(const char *line, const char *data) {
  static const char begin[] = "{\"eval\":\"";
  size_t len = strlen(data);
  return !strncmp(line, begin, sizeof begin - 1) && !strncmp(line += sizeof begin - 1, data, len) &&
         line[len] == '"';
}

// Whether the resumed run writes a line of the file again, because it is younger than the checkpoint. Lines that say
// no step stay.
static bool comes_again(const char *line, const mlrt_metrics_from *from) {
  const char *at = strstr(line, "\"step\":");
  if (!at)
    return false;
  int64_t said = strtoll(at + 7, NULL, 10);
  return said > from->step || (said == from->step && from->again && is_eval_of(line, from->again));
}

typedef struct lines {
  FILE *file;
  const mlrt_metrics_from *from;
  char *line;
  size_t cap;
} lines;

// Bytes of the next line, where it is whole and does not come again; 0: of one that goes; -1: there is none.
static ssize_t next_kept(lines *l) {
  ssize_t len = getline(&l->line, &l->cap, l->file);
  return len > 0 && (l->line[len - 1] != '\n' || comes_again(l->line, l->from)) ? 0 : len;
}

// What stays of a file: its first bytes, and of those behind them some lines: `eval --metrics` writes about an old
// checkpoint, behind younger lines of a run that was killed.
typedef struct kept {
  int64_t first;
  char *rest;
  size_t bytes;
  bool all; // nothing goes: the file is left alone, another program may be adding to it
} kept;

static bool find_kept(FILE *f, const mlrt_metrics_from *from, kept *k) {
  *k = (kept){0};
  lines l = {.file = f, .from = from};
  ssize_t len;
  while ((len = next_kept(&l)) > 0)
    k->first += len;
  k->all = len < 0;
  FILE *rest = open_memstream(&k->rest, &k->bytes);
  for (; rest && len >= 0; len = next_kept(&l))
    fwrite(l.line, 1, (size_t)len, rest);
  free(l.line);
  return rest && fclose(rest) == 0 && !ferror(f);
}

static bool copy_beginning(FILE *from, int64_t bytes, int to) {
  char piece[4096];
  rewind(from);
  while (bytes > 0) {
    size_t most = bytes < (int64_t)sizeof piece ? (size_t)bytes : sizeof piece;
    size_t got = fread(piece, 1, most, from);
    if (!got || !mlrt_write_all(to, piece, got))
      return false;
    bytes -= (int64_t)got;
  }
  return true;
}

// Goes on in the new file, if it has taken the place of the old one; else it is gone, and errno stays. Returns `taken`.
static bool end_file(mlrt_metrics *m, int fd, bool taken) {
  int why = errno;
  if (!taken)
    unlink(m->place.temp);
  close(taken ? m->fd : fd);
  m->fd = taken ? fd : m->fd;
  errno = why;
  return taken;
}

// -1 with errno.
static int begin_file(mlrt_metrics *m) {
  int fd = mlrt_place_begin(&m->place, 0);
  if (fd < 0 || fcntl(fd, F_SETFL, O_APPEND) == 0) // evaluations may add lines, too
    return fd;
  end_file(m, fd, false);
  return -1;
}

// Lines that move to the front do so in a new file: a program that is killed here leaves the old one or the new one. False
// with errno: it cannot be made, and the old one has its name.
static bool keep_anew(mlrt_metrics *m, FILE *file, const kept *k, bool old) {
  errno = EEXIST;
  int fd = mlrt_is_replaceable(m->place.temp) ? begin_file(m) : -1;
  if (fd < 0)
    return false;
  bool whole =
      copy_beginning(file, k->first, fd) && mlrt_write_all(fd, k->rest, k->bytes) && fsync(fd) == 0;
  bool taken = whole && (old ? mlrt_keeper_replace(&m->keeper, &m->place, fd, &m->kept)
                             : mlrt_place_take(&m->place, fd));
  return end_file(m, fd, taken);
}

// Where only the file itself may be written.
static bool keep_in_place(const char *path, const kept *k) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  bool fine = fd >= 0 && lseek(fd, k->first, SEEK_SET) >= 0 &&
              mlrt_write_all(fd, k->rest, k->bytes) &&
              ftruncate(fd, k->first + (int64_t)k->bytes) == 0;
  int why = errno;
  if (fd >= 0)
    close(fd);
  errno = why;
  return fine;
}

// Whether `old` begins with what stays of the file.
static bool begins_with(FILE *old, FILE *file, int64_t bytes) {
  char a[4096], b[4096];
  rewind(file);
  while (bytes > 0) {
    size_t most = bytes < (int64_t)sizeof a ? (size_t)bytes : sizeof a;
    if (fread(a, 1, most, old) != most || fread(b, 1, most, file) != most || memcmp(a, b, most))
      return false;
    bytes -= (int64_t)most;
  }
  return true;
}

// Whether NAME.old has been made by a run that has branched here and was killed before it saved to `save`: then that is still
// of the run whose lines are there.
static bool is_kept_already(const mlrt_metrics *m, FILE *file, const kept *k, const char *save) {
  struct stat old, saved;
  if (stat(m->keeper.old, &old) < 0)
    return false;
  if (stat(save, &saved) == 0 &&
      (saved.st_ctim.tv_sec > old.st_ctim.tv_sec ||
       (saved.st_ctim.tv_sec == old.st_ctim.tv_sec && saved.st_ctim.tv_nsec > old.st_ctim.tv_nsec)))
    return false;
  FILE *f = fopen(m->keeper.old, "re");
  bool same = f && begins_with(f, file, k->first);
  if (f)
    fclose(f);
  return same;
}

static bool keep_only(mlrt_metrics *m, FILE *file, const kept *k, const char *branch) {
  if (branch && !is_kept_already(m, file, k, branch))
    return keep_anew(m, file, k, true);
  return (k->bytes && keep_anew(m, file, k, false)) || keep_in_place(m->path, k);
}

// Of a pipe or device nothing can be cut, and reading it would wait for what this run is to write.
static bool cut_younger(mlrt_metrics *m, const mlrt_metrics_from *from) {
  struct stat st;
  if (m->stream || (stat(m->path, &st) == 0 && !S_ISREG(st.st_mode)))
    return true;
  FILE *f = fopen(m->path, "re");
  if (!f)
    return errno == ENOENT; // the first run had no --metrics
  kept k;
  bool fine = find_kept(f, from, &k) && (k.all || keep_only(m, f, &k, from->branch));
  int why = errno;
  fclose(f);
  free(k.rest);
  errno = why;
  return fine;
}

// Of a line: its keys, a step, an epoch or a time. Of a value: nine digits, signs, an exponent; quotes, colon and comma
// of its key.
enum { FIXED_BYTES = 128, VALUE_BYTES = 24 };

static size_t value_bytes(const mlrt_func *f) {
  size_t bytes = 0;
  for (int i = 0; i < f->num_results && i < MLRT_MAX_RESULTS; i++)
    if (mlrt_result_is_scalar(&f->results[i]))
      bytes += strlen(f->results[i].name) + VALUE_BYTES;
  return bytes;
}

// Room for the longest line, with the 0 behind it.
static size_t line_bytes(const mlrt_program *p) {
  size_t train = value_bytes(&p->funcs[MLRT_STEP]), eval = value_bytes(&p->funcs[MLRT_EVAL]);
  size_t name = 0;
  for (int i = 0; i < p->num_data; i++)
    if (strlen(p->data[i].name) > name)
      name = strlen(p->data[i].name);
  return FIXED_BYTES + name + (train > eval ? train : eval);
}

// Nothing can be cut or locked of others, nor do they lose their names.
static bool is_file(int fd, struct stat *st) {
  return fstat(fd, st) == 0 && S_ISREG(st->st_mode);
}

// Two runs that cut and write one file would lose lines of each other. An evaluation only adds some.
static bool is_taken(int fd) {
  struct stat st;
  return is_file(fd, &st) && !mlrt_lock(fd);
}

static void let_go(mlrt_metrics *m) {
  int why = errno;
  close(m->fd);
  m->fd = -1;
  errno = why;
}

static bool has_lines(int fd) {
  struct stat st;
  return is_file(fd, &st) && st.st_size > 0;
}

static bool take_memory(mlrt_metrics *m, const mlrt_program *p, const char *path) {
  m->cap = line_bytes(p);
  m->line = malloc(m->cap);
  return mlrt_place_open(&m->place, path) && mlrt_keeper_open(&m->keeper, m->place.path) && m->line;
}

// Asked before the first step, and not found out behind it.
static bool can_keep(const mlrt_metrics *m, mlrt_error *e) {
  bool fine = access(m->place.folder, W_OK | X_OK) == 0 &&
              (access(m->keeper.old, F_OK) == 0 || errno == ENOENT); // or too long a name
  int why = errno;
  if (fine && mlrt_is_replaceable(m->keeper.old) && mlrt_is_replaceable(m->place.temp))
    return true;
  return mlrt_error_set(e,
                        "cannot keep the metrics of an earlier run, '%s', as '%s': %s\n"
                        "help: --metrics=FILE names another place; --resume goes on with the run",
                        m->path, m->keeper.old,
                        fine ? "it, or its '.tmp', is no file" : strerror(why));
}

// A pipe without a reader is waited for, which is said: nothing else would show why nothing happens. -1 with errno.
static int open_to_append(const char *path) {
  enum { HOW = O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND };
  int fd = open(path, HOW | O_NONBLOCK, 0666);
  if (fd < 0 && errno == ENXIO) {
    fprintf(stderr, "note: waiting for a reader of the pipe '%s'\n", path);
    return open(path, HOW, 0666);
  }
  if (fd >= 0)
    fcntl(fd, F_SETFL, O_APPEND);
  return fd;
}

bool mlrt_metrics_open(mlrt_metrics *m, const mlrt_program *p, const char *path, bool times,
                       const mlrt_metrics_from *from, mlrt_error *e) {
  *m = (mlrt_metrics){.fd = -1, .path = path, .times = times};
  if (!path)
    return true;
  if (!take_memory(m, p, path))
    return mlrt_error_memory(e, "out of memory");
  m->stream = mlrt_is_stream(path);
  m->old = !from && !m->stream;
  m->alone = !from || from->step < INT64_MAX;
  m->fd = open_to_append(path);
  if (m->fd >= 0 && m->alone && is_taken(m->fd)) {
    let_go(m);
    return mlrt_error_set(
        e, "cannot write the metrics file '%s': another run is writing it; give each its own",
        path);
  }
  if (m->fd >= 0 && !m->stream && mlrt_has_other_text(path, "{")) {
    let_go(m);
    return mlrt_error_other_file(e, path, "metrics file, whose lines begin with '{'", "--metrics");
  }
  bool keeps = !m->stream && (!from || from->branch);
  if (m->fd >= 0 && keeps && has_lines(m->fd) && !can_keep(m, e)) {
    let_go(m);
    return false;
  }
  if (m->fd >= 0 && from && !cut_younger(m, from))
    let_go(m);
  return m->fd >= 0 ||
         mlrt_error_set(
             e, "cannot write the metrics file '%s': %s\nhelp: --metrics=FILE names another place",
             path, strerror(errno));
}

__attribute__((format(printf, 2, 3))) static void put(mlrt_metrics *m, const char *fmt, ...) {
  if (m->fd < 0)
    return;
  va_list args;
  va_start(args, fmt);
  mlrt_append(m->line, m->cap, &m->len, fmt, args);
  va_end(args);
}

// Training is worth more than its log: it is said once, and training goes on.
static void say_failed(mlrt_metrics *m) {
  if (!m->failed)
    fprintf(stderr, "warning: cannot write the metrics file '%s': %s; training goes on\n", m->path,
            strerror(errno));
  m->failed = true;
}

// Of a pipe or a device nothing can be cut.
static bool cut_at(int fd, off_t end) {
  return end < 0 || ftruncate(fd, end) == 0 || errno == EINVAL;
}

static bool lost_its_name(const mlrt_metrics *m) {
  struct stat st;
  return m->fd >= 0 && is_file(m->fd, &st) && !mlrt_is_at(m->fd, m->path);
}

// -1 with errno. What is there by now is somebody's, and stays.
static int open_again(const mlrt_metrics *m) {
  if (!mlrt_may_be_written(m->path) || mlrt_has_other_text(m->path, "{"))
    return -1;
  int fd = open(m->path, O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND, 0666);
  if (fd < 0 || !m->alone || !is_taken(fd))
    return fd;
  close(fd);
  errno = EWOULDBLOCK;
  return -1;
}

// A file that is moved, removed, or replaced by what an editor saves, would take all lines that follow with it. A run
// that cannot have the name again goes on with the file that it has.
static void keep_name(mlrt_metrics *m) {
  if (m->failed || !lost_its_name(m))
    return;
  errno = EEXIST;
  int fd = open_again(m);
  if (fd < 0) {
    say_failed(m);
    return;
  }
  close(m->fd);
  m->fd = fd;
  m->old = m->named = false;
  fprintf(stderr,
          "warning: the metrics file '%s' has been moved, removed or replaced; the lines that "
          "follow are in the one that has its name now\n",
          m->path);
}

// The lines of an earlier run get another name before a new file takes theirs. False with errno: they are where they were.
static bool begin_anew(mlrt_metrics *m) {
  int fd = begin_file(m);
  if (fd < 0)
    return false;
  bool kept, taken = mlrt_keeper_replace(&m->keeper, &m->place, fd, &kept);
  m->kept = taken && kept;
  return end_file(m, fd, taken);
}

// What the file holds is of this run from now on. Where that cannot be, its lines follow those of the earlier one.
static void begin(mlrt_metrics *m) {
  keep_name(m);
  if (m->fd < 0 || !m->old)
    return;
  m->old = false;
  if (has_lines(m->fd) && !begin_anew(m))
    say_failed(m);
}

// However long that takes.
static void send_what_waits(mlrt_metrics *m) {
  if (m->waits && !mlrt_write_all(m->fd, m->line + m->sent, m->len - m->sent))
    say_failed(m);
  m->waits = false;
}

static void new_line(mlrt_metrics *m) {
  send_what_waits(m);
  m->len = 0;
}

void mlrt_metrics_train(mlrt_metrics *m, int64_t step, double epoch) {
  new_line(m);
  put(m, "{\"step\":%" PRId64 ",\"epoch\":%.9g", step, epoch);
}

void mlrt_metrics_eval(mlrt_metrics *m, const char *data, int64_t step) {
  new_line(m);
  put(m, "{\"eval\":\"%s\",\"step\":%" PRId64, data, step);
}

static void put_value(mlrt_metrics *m, const char *name, double value) {
  if (isfinite(value))
    put(m, ",\"%s\":%.9g", name, value);
  else
    put(m, ",\"%s\":null", name);
}

void mlrt_metrics_values(mlrt_metrics *m, const mlrt_func *f, const double *values) {
  for (int i = 0; i < f->num_results && i < MLRT_MAX_RESULTS; i++)
    if (mlrt_result_is_scalar(&f->results[i]))
      put_value(m, f->results[i].name, values[i]);
}

// False: an error, or a line that waits.
static bool send_line(mlrt_metrics *m) {
  for (m->sent = 0; m->sent < m->len;) {
    size_t bytes = m->len - m->sent < PIPE_BUF ? m->len - m->sent : PIPE_BUF;
    m->waits = !mlrt_signals_may_write(m->fd);
    if (m->waits || !mlrt_write_all(m->fd, m->line + m->sent, bytes))
      return false;
    m->sent += bytes;
  }
  return true;
}

void mlrt_metrics_end(mlrt_metrics *m, double seconds) {
  if (m->times)
    put(m, ",\"time\":%.3f", seconds);
  put(m, "}\n");
  if (m->fd < 0)
    return;
  begin(m);
  off_t end = lseek(m->fd, 0, SEEK_END);
  errno = EMSGSIZE; // does not happen: line_bytes
  if (m->len < m->cap && (send_line(m) || m->waits))
    return;
  say_failed(m);
  cut_at(m->fd, end); // what follows half a line, when there is room again, would be lost with it
}

// Of a file that was made, the lines are lost with the machine's power until its folder is on disk, too.
static bool is_named(mlrt_metrics *m) {
  m->named = m->named || mlrt_sync_folder(m->place.folder, m->fd);
  return m->named;
}

void mlrt_metrics_sync(mlrt_metrics *m) {
  begin(m);
  if (m->fd < 0 || (fdatasync(m->fd) == 0 && is_named(m)))
    return;
  if (errno != EINVAL && errno != ENOTSUP && errno != EROFS) // pipes and devices, which need none
    say_failed(m);
}

bool mlrt_metrics_close(mlrt_metrics *m) {
  send_what_waits(m);
  if (m->fd >= 0 && close(m->fd) < 0)
    m->failed = true;
  m->fd = -1;
  free(m->line);
  m->line = NULL;
  mlrt_keeper_close(&m->keeper);
  mlrt_place_close(&m->place);
  return !m->failed;
}
