// base.h: what every compiler layer builds on: the bump arena, growable text,
// growable arrays, a string map, and BUG() for faults that are ours.
//
// Memory: one arena per compilation; nothing is freed one by one (QBE and
// chibicc do the same). All sizes are in bytes.
#ifndef IR_BASE_H
#define IR_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#if defined(__GNUC__)
#define IR_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define IR_NORETURN     __attribute__((noreturn))
#else
#define IR_PRINTF(f, a)
#define IR_NORETURN
#endif

// An internal fault: says so, says where, lets the pass runner leave a
// reproducer (ir_set_bug_hook), and exits with IR_EXIT_FAULT. Never for user errors: those are
// diagnostics.
enum { IR_EXIT_FAULT = 70 };
#define BUG(...) ir_bug(__FILE__, __LINE__, __func__, __VA_ARGS__)
#define BUG_IF(cond, ...)                                                                          \
  do {                                                                                             \
    if (cond)                                                                                      \
      BUG(__VA_ARGS__);                                                                            \
  } while (0)
IR_NORETURN void ir_bug(const char *file, int line, const char *func, const char *fmt, ...)
    IR_PRINTF(4, 5);
// `hook(data)` runs once, before the process exits through BUG().
void ir_set_bug_hook(void (*hook)(void *data), void *data);

// --- arena -------------------------------------------------------------------
typedef struct ir_arena ir_arena;
ir_arena *ir_arena_new(void);
void ir_arena_free(ir_arena *a);
// Forgets all that was allocated, and keeps the memory for what comes next.
void ir_arena_clear(ir_arena *a);
// Where an arena is; and taking back all that it has given since then: for what is needed only to come to
// an answer. No list that was there before may have grown in between.
typedef struct ir_arena_mark {
  void *chunk;
  size_t used;
} ir_arena_mark;
ir_arena_mark ir_arena_here(const ir_arena *a);
void ir_arena_back(ir_arena *a, ir_arena_mark m);
// What it has given and not taken back, in bytes with their alignment.
size_t ir_arena_bytes(const ir_arena *a);
// Zeroed, 16-byte aligned memory that lives as long as the arena. Never NULL.
void *ir_alloc(ir_arena *a, size_t bytes);
char *ir_strdup(ir_arena *a, const char *s);
char *ir_strndup(ir_arena *a, const char *s, size_t n);
char *ir_format(ir_arena *a, const char *fmt, ...) IR_PRINTF(2, 3);
// The text with `to` wherever it has `from`, which is not empty.
const char *ir_replace(ir_arena *a, const char *text, const char *from, const char *to);
// 1234567 -> "1,234,567"
const char *ir_grouped(ir_arena *a, int64_t v);
#define IR_NEW(a, T)          ((T *)ir_alloc((a), sizeof(T)))
#define IR_NEW_ARRAY(a, T, n) ((T *)ir_alloc((a), sizeof(T) * (size_t)(n)))

// --- growable arrays -----------------------------------------------------------
// IR_VEC(T) declares {T *at; size_t num, cap;}. A zeroed one is empty.
//   IR_VEC(ir_node *) nodes = {0};
//   IR_PUSH(arena, nodes, n);
//   for (size_t i = 0; i < nodes.num; i++) use(nodes.at[i]);
#define IR_VEC(T)                                                                                  \
  struct {                                                                                         \
    T *at;                                                                                         \
    size_t num, cap;                                                                               \
  }
#define IR_PUSH(arena, v, x)                                                                       \
  do {                                                                                             \
    if ((v).num == (v).cap)                                                                        \
      (v).at = ir_grow((arena), (v).at, (v).num, &(v).cap, sizeof *(v).at);                        \
    (v).at[(v).num++] = (x);                                                                       \
  } while (0)
void *ir_grow(ir_arena *a, const void *at, size_t num, size_t *cap, size_t elem_bytes);

// --- text ----------------------------------------------------------------------
// Growable, always NUL-terminated text in an arena.
typedef struct ir_buf {
  ir_arena *arena;
  char *text; // "" semantics: text may be NULL while len == 0; use ir_buf_str
  size_t len, cap;
} ir_buf;
ir_buf ir_buf_new(ir_arena *a);
void ir_buf_printf(ir_buf *b, const char *fmt, ...) IR_PRINTF(2, 3);
void ir_buf_vprintf(ir_buf *b, const char *fmt, va_list ap);
void ir_buf_puts(ir_buf *b, const char *s);
void ir_buf_write(ir_buf *b, const char *s, size_t n);
void ir_buf_insert(ir_buf *b, size_t at, const char *s);
const char *ir_buf_str(const ir_buf *b);
// The shortest decimal text that reads back as exactly `v`; always has a '.',
// an exponent, or is inf/-inf/nan.
void ir_buf_double(ir_buf *b, double v);

// --- string map ------------------------------------------------------------------
// Open addressing, insertion order kept. Keys are copied into the arena.
typedef struct ir_map ir_map;
ir_map *ir_map_new(ir_arena *a);
// With room for `num` keys, which are not copied: they stay as they are for as long as the map is used.
ir_map *ir_map_new_lent(ir_arena *a, size_t num);
void *ir_map_get(const ir_map *m, const char *key); // NULL when absent
void ir_map_put(ir_map *m, const char *key, void *value);
// A name that is no key yet, and is one now: `base`, or with a number behind `between`: base.2, base.3, ... New ones are
// allocated in `a`.
const char *ir_map_new_name(ir_map *m, ir_arena *a, const char *base, char between);
size_t ir_map_count(const ir_map *m);
const char *ir_map_key(const ir_map *m, size_t i); // i-th in insertion order
void *ir_map_value(const ir_map *m, size_t i);
void ir_map_put_at(ir_map *m, size_t i, void *value);

// --- files -------------------------------------------------------------------------
// Whole file as NUL-terminated text; NULL (errno set) on failure, also above 1 GiB. `*len` excludes the NUL.
char *ir_read_file(ir_arena *a, const char *path, size_t *len);
// The same without a byte order mark: for texts that people write.
char *ir_read_text(ir_arena *a, const char *path, size_t *len);
// A name beside PATH, "PATH.1a2b3c.tmp", for what becomes PATH when it is whole: no other call has it, here or in another
// process that writes the same file.
const char *ir_temp_name(ir_arena *a, const char *path);
// Writes to such a file and renames; devices and pipes are written as they are. False (errno set) on
// failure.
bool ir_write_file(const char *path, const char *text, size_t len);
// A rename may take its place, or says why not: it is no device and no pipe, which would be gone.
bool ir_is_replaceable(const char *path);
// Both are there, and are one, however they are spelled or linked.
bool ir_same_file(const char *a, const char *b);
uint64_t ir_hash(const void *data, size_t n); // FNV-1a, 64 bit
// A hash of what `h` is of, and of v after it.
static inline uint64_t ir_hash_mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9e3779b97f4a7c15u;
  return h ^ h >> 29;
}
// Of two uint64_t, for qsort and bsearch.
static inline int ir_compare_hashes(const void *x, const void *y) {
  uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
  return a < b ? -1 : a > b;
}

// --- sizes in bytes (ir/bytes.c) -----------------------------------------------------
// "80GiB", "1.5GB", "4096": a number above 0, then nothing, B, KB, MB, GB, TB (powers of 1000), KiB,
// MiB, GiB or TiB (of 1024), in any case, with no space. Parts of a byte are cut off: a limit is never
// more than was said. False when it is something else or needs more than 63 bits.
bool ir_parse_bytes(const char *text, int64_t *bytes);
// "61.3 MiB", in the unit that suits `like` bytes: for people. Below 1 KiB: "612 B".
const char *ir_bytes_text(ir_arena *a, int64_t bytes, int64_t like);

// --- numbers -----------------------------------------------------------------------
// How many parts of `b` cover `a`: a / b rounded up, for a >= 0 and b > 0.
static inline int64_t ir_ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// Bits of the numbers below n: the least b from 1 to 62 with 2^b >= n.
static inline int ir_bits_below(int64_t n) {
  int bits = 1;
  while (bits < 62 && (int64_t)1 << bits < n)
    bits++;
  return bits;
}

#endif
