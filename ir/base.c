// base.c: arena, text, map and file helpers. See base.h.
#include "ir/base.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK_BYTES = 256 * 1024, ALIGN = 16 };

static void (*bug_hook)(void *);
static void *bug_hook_data;

void ir_set_bug_hook(void (*hook)(void *), void *data) {
  bug_hook = hook;
  bug_hook_data = data;
}

void ir_bug(const char *file, int line, const char *func, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  fprintf(stderr, "mltc: internal error: ");
  vfprintf(stderr, fmt, ap);
  fprintf(stderr, "\n  at %s:%d (%s)\n  This is a fault in mltc, not in your file.\n", file, line,
          func);
  va_end(ap);
  void (*hook)(void *) = bug_hook;
  bug_hook = NULL; // a fault inside the hook must not come back here
  if (hook)
    hook(bug_hook_data);
  fflush(NULL);
  _exit(IR_EXIT_FAULT);
}

// --- arena ---------------------------------------------------------------------
typedef struct chunk {
  struct chunk *next;
  size_t used, cap;
  _Alignas(ALIGN) char data[];
} chunk;

struct ir_arena {
  chunk *top;
  chunk *spare; // all 0, that ir_arena_back has taken off; NULL: none
};

static void *must(void *p) {
  if (!p) {
    fprintf(stderr, "mltc: out of memory\n");
    _exit(IR_EXIT_FAULT);
  }
  return p;
}

// Chunks of the usual size that freed arenas had, all 0: searches make and free an arena for each of thousands of
// tries, and the system would have to give and clear the pages each time. mltc has one thread. With
// AddressSanitizer there are none, so that it sees who uses a freed arena.
#ifdef __has_feature
#define SANITIZED __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif
enum { MOST_KEPT = SANITIZED ? 0 : 64 };
static chunk *kept;
static int num_kept;

static void free_chunk(chunk *c) {
  if (c->cap != CHUNK_BYTES || num_kept == MOST_KEPT) {
    free(c);
    return;
  }
  memset(c->data, 0, c->used);
  c->used = 0;
  c->next = kept;
  kept = c;
  num_kept++;
}

static chunk *take_kept(size_t cap) {
  chunk *c = cap == CHUNK_BYTES ? kept : NULL;
  if (c) {
    kept = c->next;
    num_kept--;
  }
  return c;
}

ir_arena *ir_arena_new(void) {
  return must(calloc(1, sizeof(ir_arena)));
}

void ir_arena_free(ir_arena *a) {
  if (!a)
    return;
  for (chunk *c = a->top, *next; c; c = next) {
    next = c->next;
    free_chunk(c);
  }
  if (a->spare)
    free_chunk(a->spare);
  free(a);
}

static chunk *take_spare(ir_arena *a, size_t cap) {
  chunk *c = a->spare && a->spare->cap >= cap ? a->spare : NULL;
  if (c)
    a->spare = NULL;
  return c;
}

static void add_chunk(ir_arena *a, size_t cap) {
  chunk *c = take_spare(a, cap);
  c = c ? c : take_kept(cap);
  if (!c) {
    c = must(calloc(1, sizeof(chunk) + cap));
    c->cap = cap;
  }
  c->next = a->top;
  a->top = c;
}

ir_arena_mark ir_arena_here(const ir_arena *a) {
  return (ir_arena_mark){a->top, a->top ? a->top->used : 0};
}

static void clear_from(chunk *c, size_t used) {
  memset(c->data + used, 0, c->used - used);
  c->used = used;
}

// The largest chunk is kept: whoever marks one place marks many.
static void set_aside(ir_arena *a, chunk *c) {
  if (a->spare && a->spare->cap >= c->cap) {
    free_chunk(c);
    return;
  }
  if (a->spare)
    free_chunk(a->spare);
  clear_from(c, 0);
  a->spare = c;
}

void ir_arena_back(ir_arena *a, ir_arena_mark m) {
  while (a->top != m.chunk) {
    chunk *c = a->top;
    a->top = c->next;
    set_aside(a, c);
  }
  if (a->top)
    clear_from(a->top, m.used);
}

// From the second time on, one chunk has room for it all.
void ir_arena_clear(ir_arena *a) {
  size_t cap = 0;
  if (a->top && !a->top->next) {
    memset(a->top->data, 0, a->top->used);
    a->top->used = 0;
    return;
  }
  for (chunk *c = a->top, *next; c; c = next) {
    cap += c->cap;
    next = c->next;
    free_chunk(c);
  }
  a->top = NULL;
  if (cap)
    add_chunk(a, cap);
}

size_t ir_arena_bytes(const ir_arena *a) {
  size_t bytes = 0;
  for (const chunk *c = a->top; c; c = c->next)
    bytes += c->used;
  return bytes;
}

void *ir_alloc(ir_arena *a, size_t bytes) {
  size_t need = (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
  if (!a->top || a->top->cap - a->top->used < need)
    add_chunk(a, need > CHUNK_BYTES ? need : CHUNK_BYTES);
  void *p = a->top->data + a->top->used;
  a->top->used += need;
  return p;
}

char *ir_strndup(ir_arena *a, const char *s, size_t n) {
  char *d = ir_alloc(a, n + 1);
  memcpy(d, s, n);
  return d;
}

char *ir_strdup(ir_arena *a, const char *s) {
  return ir_strndup(a, s, strlen(s));
}

char *ir_format(ir_arena *a, const char *fmt, ...) {
  char block[256]; // what most texts fit: printing is dear, and only long ones are printed again
  va_list ap, again;
  va_start(ap, fmt);
  va_copy(again, ap);
  int n = vsnprintf(block, sizeof block, fmt, ap);
  va_end(ap);
  BUG_IF(n < 0, "bad format '%s'", fmt);
  char *s = ir_alloc(a, (size_t)n + 1);
  if ((size_t)n < sizeof block)
    memcpy(s, block, (size_t)n);
  else
    vsnprintf(s, (size_t)n + 1, fmt, again);
  va_end(again);
  return s;
}

// Lists of what is large are short: eight loads of a domain would be 6 KB, where most have two.
void *ir_grow(ir_arena *a, const void *at, size_t num, size_t *cap, size_t elem_bytes) {
  size_t want = *cap ? *cap * 2 : elem_bytes <= 64 ? 8 : 2;
  void *p = ir_alloc(a, want * elem_bytes);
  if (num)
    memcpy(p, at, num * elem_bytes);
  *cap = want;
  return p;
}

// --- text ------------------------------------------------------------------------
ir_buf ir_buf_new(ir_arena *a) {
  return (ir_buf){.arena = a};
}

static void buf_reserve(ir_buf *b, size_t more) {
  if (b->len + more + 1 <= b->cap)
    return;
  size_t cap = b->cap ? b->cap : 256;
  while (cap < b->len + more + 1)
    cap *= 2;
  char *t = ir_alloc(b->arena, cap);
  if (b->len)
    memcpy(t, b->text, b->len);
  b->text = t;
  b->cap = cap;
}

void ir_buf_write(ir_buf *b, const char *s, size_t n) {
  buf_reserve(b, n);
  memcpy(b->text + b->len, s, n);
  b->len += n;
  b->text[b->len] = 0;
}

void ir_buf_puts(ir_buf *b, const char *s) {
  ir_buf_write(b, s, strlen(s));
}

void ir_buf_insert(ir_buf *b, size_t at, const char *s) {
  size_t n = strlen(s);
  buf_reserve(b, n);
  memmove(b->text + at + n, b->text + at, b->len - at + 1);
  memcpy(b->text + at, s, n);
  b->len += n;
}

void ir_buf_vprintf(ir_buf *b, const char *fmt, va_list ap) {
  size_t room = b->cap - b->len;
  va_list again;
  va_copy(again, ap);
  int n = vsnprintf(room ? b->text + b->len : NULL, room, fmt, ap);
  BUG_IF(n < 0, "bad format '%s'", fmt);
  buf_reserve(b, (size_t)n);
  if ((size_t)n >= room)
    vsnprintf(b->text + b->len, (size_t)n + 1, fmt, again);
  va_end(again);
  b->len += (size_t)n;
}

void ir_buf_printf(ir_buf *b, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  ir_buf_vprintf(b, fmt, ap);
  va_end(ap);
}

const char *ir_buf_str(const ir_buf *b) {
  return b->text ? b->text : "";
}

const char *ir_replace(ir_arena *a, const char *text, const char *from, const char *to) {
  ir_buf b = ir_buf_new(a);
  for (const char *hit; (hit = strstr(text, from)); text = hit + strlen(from)) {
    ir_buf_write(&b, text, (size_t)(hit - text));
    ir_buf_puts(&b, to);
  }
  ir_buf_puts(&b, text);
  return ir_buf_str(&b);
}

const char *ir_grouped(ir_arena *a, int64_t v) {
  char digits[32];
  int n = snprintf(digits, sizeof digits, "%" PRId64, v), sign = v < 0;
  ir_buf b = ir_buf_new(a);
  for (int i = 0; i < n; i++) {
    if (i > sign && (n - i) % 3 == 0)
      ir_buf_puts(&b, ",");
    ir_buf_write(&b, &digits[i], 1);
  }
  return ir_buf_str(&b);
}

void ir_buf_double(ir_buf *b, double v) {
  if (isnan(v)) {
    ir_buf_puts(b, "nan");
    return;
  }
  if (isinf(v)) {
    ir_buf_puts(b, v > 0 ? "inf" : "-inf");
    return;
  }
  char s[40];
  for (int digits = 1; digits <= 17; digits++) {
    snprintf(s, sizeof s, "%.*g", digits, v);
    if (strtod(s, NULL) == v)
      break;
  }
  ir_buf_puts(b, s);
  if (!strpbrk(s, ".e"))
    ir_buf_puts(b, ".0");
}

// --- string map --------------------------------------------------------------------
typedef struct entry {
  const char *key;
  uint64_t hash;
  void *value;
} entry;

struct ir_map {
  ir_arena *arena;
  IR_VEC(entry) entries;
  uint32_t *slots; // index + 1 into entries; 0 is empty
  size_t num_slots;
  bool lent; // keys are the callers'
};

static ir_map *map_new(ir_arena *a, size_t num_slots, bool lent) {
  ir_map *m = IR_NEW(a, ir_map);
  *m = (ir_map){.arena = a, .num_slots = num_slots, .lent = lent};
  m->slots = IR_NEW_ARRAY(a, uint32_t, num_slots);
  return m;
}

ir_map *ir_map_new(ir_arena *a) {
  return map_new(a, 32, false);
}

ir_map *ir_map_new_lent(ir_arena *a, size_t num) {
  size_t num_slots = 32;
  while (num_slots < num * 2)
    num_slots *= 2;
  ir_map *m = map_new(a, num_slots, true);
  m->entries.at = IR_NEW_ARRAY(a, entry, num);
  m->entries.cap = num;
  return m;
}

static size_t map_slot(const ir_map *m, const char *key, uint64_t hash) {
  size_t i = (size_t)hash & (m->num_slots - 1);
  for (; m->slots[i]; i = (i + 1) & (m->num_slots - 1)) {
    const entry *e = &m->entries.at[m->slots[i] - 1];
    if (e->hash == hash && strcmp(e->key, key) == 0)
      break;
  }
  return i;
}

void *ir_map_get(const ir_map *m, const char *key) {
  uint32_t at = m->slots[map_slot(m, key, ir_hash(key, strlen(key)))];
  return at ? m->entries.at[at - 1].value : NULL;
}

static void map_rehash(ir_map *m) {
  m->num_slots *= 2;
  m->slots = IR_NEW_ARRAY(m->arena, uint32_t, m->num_slots);
  for (size_t i = 0; i < m->entries.num; i++) {
    const entry *e = &m->entries.at[i];
    m->slots[map_slot(m, e->key, e->hash)] = (uint32_t)i + 1;
  }
}

void ir_map_put(ir_map *m, const char *key, void *value) {
  uint64_t hash = ir_hash(key, strlen(key));
  size_t slot = map_slot(m, key, hash);
  if (m->slots[slot]) {
    m->entries.at[m->slots[slot] - 1].value = value;
    return;
  }
  entry e = {m->lent ? key : ir_strdup(m->arena, key), hash, value};
  IR_PUSH(m->arena, m->entries, e);
  m->slots[slot] = (uint32_t)m->entries.num;
  if (m->entries.num * 2 > m->num_slots)
    map_rehash(m);
}

const char *ir_map_new_name(ir_map *m, ir_arena *a, const char *base, char between) {
  const char *name = base;
  for (int i = 2; ir_map_get(m, name); i++)
    name = ir_format(a, "%s%c%d", base, between, i);
  ir_map_put(m, name, m);
  return name;
}

size_t ir_map_count(const ir_map *m) {
  return m->entries.num;
}

const char *ir_map_key(const ir_map *m, size_t i) {
  return m->entries.at[i].key;
}

void *ir_map_value(const ir_map *m, size_t i) {
  return m->entries.at[i].value;
}

void ir_map_put_at(ir_map *m, size_t i, void *value) {
  m->entries.at[i].value = value;
}

// --- files -----------------------------------------------------------------------------
char *ir_read_file(ir_arena *a, const char *path, size_t *len) {
  enum { MOST_BYTES = 1 << 30 }; // a device such as /dev/zero has no end
  FILE *f = fopen(path, "rb");
  if (!f)
    return NULL;
  ir_buf b = ir_buf_new(a);
  char block[16384];
  size_t n;
  while (b.len <= MOST_BYTES && (n = fread(block, 1, sizeof block, f)) > 0)
    ir_buf_write(&b, block, n);
  int failed = ferror(f) ? EIO : 0;
  if (failed && errno)
    failed = errno;
  if (b.len > MOST_BYTES)
    failed = EFBIG;
  fclose(f);
  if (failed) {
    errno = failed;
    return NULL;
  }
  *len = b.len;
  return b.text ? b.text : ir_strdup(a, "");
}

static bool write_all(const char *path, const char *text, size_t len) {
  FILE *f = fopen(path, "wb");
  if (!f)
    return false;
  bool ok = fwrite(text, 1, len, f) == len;
  return fclose(f) == 0 && ok;
}

char *ir_read_text(ir_arena *a, const char *path, size_t *len) {
  char *text = ir_read_file(a, path, len);
  if (!text || strncmp(text, "\xEF\xBB\xBF", 3) != 0)
    return text;
  *len -= 3;
  return text + 3;
}

bool ir_same_file(const char *a, const char *b) {
  struct stat x, y;
  return stat(a, &x) == 0 && stat(b, &y) == 0 && S_ISREG(x.st_mode) && x.st_ino == y.st_ino &&
         x.st_dev == y.st_dev;
}

bool ir_is_replaceable(const char *path) {
  struct stat st;
  return stat(path, &st) != 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode);
}

// Of a long name the beginning: file systems allow 255 bytes.
const char *ir_temp_name(ir_arena *a, const char *path) {
  enum { MOST_BYTES = 200 };
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  int kept = (int)(name - path) + (int)strnlen(name, MOST_BYTES);
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return ir_format(a, "%.*s.%lx%lx.tmp", kept, path, (unsigned long)getpid(),
                   (unsigned long)now.tv_nsec);
}

bool ir_write_file(const char *path, const char *text, size_t len) {
  if (!ir_is_replaceable(path))
    return write_all(path, text, len);
  ir_arena *a = ir_arena_new();
  const char *tmp = ir_temp_name(a, path);
  bool ok = write_all(tmp, text, len) && rename(tmp, path) == 0;
  int why = errno;
  if (!ok)
    unlink(tmp); // a part of a file helps nobody, least of all on a full disk
  ir_arena_free(a);
  errno = why;
  return ok;
}

uint64_t ir_hash(const void *data, size_t n) {
  const unsigned char *p = data;
  uint64_t h = 1469598103934665603u;
  for (size_t i = 0; i < n; i++)
    h = (h ^ p[i]) * 1099511628211u;
  return h;
}
