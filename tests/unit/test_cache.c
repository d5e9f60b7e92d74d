// test_cache.c: what is put into the cache comes back, whole or not at all: damaged, foreign
// and half-written files are misses; of two keys with one file name each gets its own data or none;
// many processes at once never read a mixture; the oldest go first when it is full.
#include "codegen/cache.h"
#include "support_cuda.h"
#include "support_ir.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static ir_buf key_of(ir_arena *a, const char *text) {
  ir_buf b = ir_buf_new(a);
  ir_buf_puts(&b, text);
  return b;
}

static bool has(const cg_cache *c, const char *key, const char *want) {
  ir_buf k = key_of(c->a, key);
  size_t len = 0;
  const char *got = cg_cache_get(c, &k, &len);
  return want ? got && len == strlen(want) && !memcmp(got, want, len) : !got;
}

static void put(const cg_cache *c, const char *key, const char *data) {
  ir_buf k = key_of(c->a, key);
  cg_cache_put(c, &k, data, strlen(data));
}

// The one file of a cache that has one entry.
static const char *path_of(const cg_cache *c, const char *key) {
  ir_buf k = key_of(c->a, key);
  return ir_format(c->a, "%s/%016llx.image", c->dir,
                   (unsigned long long)ir_hash(ir_buf_str(&k), k.len));
}

static void test_hit(const cg_cache *c) {
  CHECK(has(c, "k1", NULL), "an empty cache has something");
  put(c, "k1", "data one");
  put(c, "k2", "");
  CHECK(has(c, "k1", "data one") && has(c, "k2", ""), "not what was put");
  put(c, "k1", "newer");
  CHECK(has(c, "k1", "newer"), "not replaced");
  CHECK(support_count_files(c->dir, ".image") == 2, "%d files",
        support_count_files(c->dir, ".image"));
}

// A source of a thousand like lines takes little room.
static void test_packed(const cg_cache *c) {
  ir_buf text = ir_buf_new(c->a);
  for (int i = 0; i < 1000; i++)
    ir_buf_printf(&text, "  out[i + %d] = a[i] * b[i];\n", i % 10);
  struct stat st = {0};
  put(c, "text", ir_buf_str(&text));
  CHECK(has(c, "text", ir_buf_str(&text)), "not what was put");
  CHECK(stat(path_of(c, "text"), &st) == 0 && (size_t)st.st_size < text.len / 10,
        "%lld of %zu bytes", (long long)st.st_size, text.len);
}

// Each byte of an entry, changed; each length, cut off.
static void test_damage(const cg_cache *c) {
  put(c, "key", "some data");
  const char *path = path_of(c, "key");
  size_t len = 0;
  char *good = ir_read_file(c->a, path, &len);
  CHECK(good && len > 20, "no entry at %s", path);
  for (size_t i = 0; good && i < len; i++) {
    good[i] ^= 0x10;
    ir_write_file(path, good, len);
    CHECK(has(c, "key", NULL), "byte %zu is damaged, and nobody sees it", i);
    good[i] ^= 0x10;
    ir_write_file(path, good, i);
    CHECK(has(c, "key", NULL), "cut off after %zu bytes, and nobody sees it", i);
  }
  put(c, "key", "again");
  CHECK(has(c, "key", "again"), "a damaged file is not replaced");
}

// A file of another key under this key's name, as two keys of one hash would have it.
static void test_collision(const cg_cache *c) {
  put(c, "mine", "my data");
  put(c, "other", "other data");
  size_t len = 0;
  char *other = ir_read_file(c->a, path_of(c, "other"), &len);
  ir_write_file(path_of(c, "mine"), other, len);
  CHECK(has(c, "mine", NULL), "got the data of another key");
}

static void set_age(const char *path, time_t seconds) {
  struct timespec t[2] = {{.tv_sec = 1700000000 - seconds}, {.tv_sec = 1700000000 - seconds}};
  utimensat(AT_FDCWD, path, t, 0);
}

static void test_size(const cg_cache *c) {
  char data[1001] = {0};
  uint32_t random = 1;
  for (int i = 0; i < 1000; i++) // what cannot be packed
    data[i] = (char)(1 + ((random = random * 1664525 + 1013904223) >> 24) % 255);
  for (int i = 0; i < 8; i++) {
    const char *key = ir_format(c->a, "size %d", i);
    put(c, key, data);
    set_age(path_of(c, key), 100 + i); // the last is the oldest
  }
  const char *left = ir_format(c->a, "%s/0123456789abcdef.image.77", c->dir);
  const char *foreign = ir_format(c->a, "%s/notes.txt", c->dir);
  ir_write_file(left, data, 1000); // what a killed mltc left
  ir_write_file(foreign, data, 1000);
  set_age(left, 1000);
  set_age(foreign, 1000);
  CHECK(has(c, "size 7", data), "it is there before");
  cg_cache_trim(c, 4500); // room for four, of which one was used just now
  CHECK(access(left, F_OK) != 0, "what was left half-written stays");
  CHECK(access(foreign, F_OK) == 0, "a file that is not ours is gone");
  for (int i = 0; i < 8; i++)
    CHECK(has(c, ir_format(c->a, "size %d", i), i < 3 || i == 7 ? data : NULL), "entry %d", i);
}

// Writers of the same keys with data that tell them apart, and readers, all at once.
static void write_and_read(const cg_cache *c, int who) {
  ir_arena *a = ir_arena_new();
  cg_cache mine = {.a = a, .dir = c->dir};
  int status = 0;
  for (int round = 0; round < 200; round++) {
    char data[5001];
    memset(data, 'a' + who, 5000);
    data[5000] = 0;
    ir_buf key = key_of(a, round % 2 ? "odd" : "even");
    cg_cache_put(&mine, &key, data, 5000);
    size_t len = 0;
    const char *got = cg_cache_get(&mine, &key, &len);
    if (!got || len != 5000 || strspn(got, (char[]){got[0], 0}) != 5000)
      status = 1; // renames replace: there is always a whole one
  }
  ir_arena_free(a);
  _exit(status);
}

static void test_many(const cg_cache *c) {
  enum { MANY = 4 };
  pid_t pids[MANY];
  fflush(stdout);
  for (int i = 0; i < MANY; i++)
    if ((pids[i] = fork()) == 0)
      write_and_read(c, i);
  for (int i = 0; i < MANY; i++) {
    int status = 0;
    waitpid(pids[i], &status, 0);
    CHECK(status == 0, "process %d saw a broken entry", i);
  }
  CHECK(support_count_files(c->dir, ".image") == 2, "%d files, temporary ones among them",
        support_count_files(c->dir, ""));
}

// No folder, or one that cannot be: nothing is found, nothing fails.
static void test_nowhere(ir_arena *a, const char *folder) {
  setenv("XDG_CACHE_HOME", ir_format(a, "%s/file/x", folder), 1);
  ir_write_file(ir_format(a, "%s/file", folder), "x", 1);
  cg_cache c = cg_cache_open(a);
  put(&c, "k", "data");
  CHECK(!c.dir && has(&c, "k", NULL), "a folder inside a file");
  const char *deep = ir_format(a, "%s/not/there/yet", folder);
  setenv("XDG_CACHE_HOME", deep, 1);
  c = cg_cache_open(a);
  put(&c, "k", "data");
  CHECK(c.dir && !strcmp(c.dir, ir_format(a, "%s/mltc", deep)) && has(&c, "k", "data"),
        "a folder whose parents are missing: %s", c.dir ? c.dir : "no folder");
  setenv("XDG_CACHE_HOME", "relative", 1);
  setenv("HOME", folder, 1);
  c = cg_cache_open(a);
  CHECK(c.dir && !strcmp(c.dir, ir_format(a, "%s/.cache/mltc", folder)), "%s",
        c.dir ? c.dir : "no folder");
  unsetenv("XDG_CACHE_HOME");
  const char *nobody = ir_format(a, "%s/nobody", folder);
  setenv("HOME", nobody, 1);
  CHECK(!cg_cache_open(a).dir && access(nobody, F_OK) < 0, "a home is made for its cache");
  unsetenv("HOME");
  CHECK(!cg_cache_open(a).dir, "a cache without a home");
}

static cg_cache open_new(ir_arena *a, const char *folder, const char *name) {
  setenv("XDG_CACHE_HOME", ir_format(a, "%s/%s", folder, name), 1);
  return cg_cache_open(a);
}

int main(void) {
  ir_arena *a = ir_arena_new();
  const char *folder = support_new_folder(a);
  static const struct {
    const char *name;
    void (*run)(const cg_cache *);
  } tests[] = {{"hit", test_hit},       {"packed", test_packed},
               {"damage", test_damage}, {"collision", test_collision},
               {"size", test_size},     {"many", test_many}};
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
    cg_cache c = open_new(a, folder, tests[i].name);
    CHECK(c.dir != NULL, "no folder for %s", tests[i].name);
    tests[i].run(&c);
  }
  test_nowhere(a, folder);
  support_remove_folder(a, folder);
  ir_arena_free(a);
  return support_finish("test_cache");
}
