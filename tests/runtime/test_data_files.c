// test_data_files.c: windows are cut out of several files, each in one of them, and a name with * or ? is all files that
// fit it.
#include "tests/runtime/support_data.h"

#include <sys/stat.h>
#include <unistd.h>

static void ids_fixture(fixture *f, const char *format, int files) {
  fixture_init(f, format, files, 2);
  set_input(f, 0, MLRT_U8, 2, 1, 3, 0);
  set_input(f, 1, MLRT_U8, 2, 1, 3, 0);
}

// Sample `index` begins with these three ids, and its targets end with the fourth.
static void holds(const mlrt_dataset *d, int64_t index, const char *ids) {
  uint8_t x[3], y[3];
  fill(d, index, x, y);
  CHECK(!memcmp(x, ids, 3) && !memcmp(y, ids + 1, 3), "sample %lld: %d %d %d, then %d",
        (long long)index, x[0], x[1], x[2], y[2]);
}

// --- texts -----------------------------------------------------------------------------------
static void three_texts(fixture *f) {
  ids_fixture(f, "text", 3);
  set_file(f, 0, text_bytes("abcab"));
  set_file(f, 1, text_bytes("cd")); // no window
  set_file(f, 2, gz(text_bytes("dcbae")));
}

static void test_texts(void) {
  fixture f;
  three_texts(&f);
  mlrt_dataset *d = must_open(&f, MLRT_USE_TRAIN, "three texts");
  CHECK(mlrt_data_size(d) == 4 && mlrt_data_files(d) == 2, "%lld samples, %d files",
        (long long)mlrt_data_size(d), mlrt_data_files(d));
  holds(d, 0, "\0\1\2\0");
  holds(d, 1, "\1\2\0\1");
  holds(d, 2, "\3\2\1\0");
  holds(d, 3, "\2\1\0\4");
  mlrt_data_close(d);
  d = must_open(&f, MLRT_USE_EVAL, "windows side by side");
  CHECK(mlrt_data_size(d) == 2, "%lld", (long long)mlrt_data_size(d));
  holds(d, 1, "\3\2\1\0");
  mlrt_data_close(d);
  set_num(&f, "range_lo", 0.25); // from the fourth of 12 on
  d = must_open(&f, MLRT_USE_TRAIN, "a range of all");
  CHECK(mlrt_data_size(d) == 2 && mlrt_data_files(d) == 1, "%lld samples, %d files",
        (long long)mlrt_data_size(d), mlrt_data_files(d));
  holds(d, 1, "\2\1\0\4");
  mlrt_data_close(d);
  set_num(&f, "range_hi", 0.75);
  must_fail(&f, "a range between", "a and 2 more: none has the 4 ids of a window in the range");
  three_texts(&f);
  set_num(&f, "lanes", 2);
  must_fail(&f, "lanes", "lanes are parts of one file, and there are 3");
  three_texts(&f);
  f.inputs[0].limit = 4;
  must_fail(&f, "vocabulary", "a, with the texts beside it, has 5 different characters");
}

// Characters that a checkpoint does not have are said with the file that has them; sets of several texts share one
// vocabulary, whichever files they have in common.
static void test_vocabularies(void) {
  fixture f;
  three_texts(&f);
  f.known = (mlrt_known_characters){.characters = {.byte = "abcd", .num = 4}, .from = "file"};
  must_fail(&f, "known characters", "c has 1 character that 'file' was not made with");
  three_texts(&f);
  mlrt_data sets[2] = {f.spec, f.spec};
  sets[0].num_files = 2;
  sets[1].files = f.files + 1, sets[1].num_files = 2;
  f.spec = sets[1];
  f.program.data = sets;
  f.program.num_data = 2;
  mlrt_dataset *d = must_open(&f, MLRT_USE_TRAIN, "files in common");
  CHECK(mlrt_data_characters(d)->num == 5, "%d", mlrt_data_characters(d)->num);
  holds(d, 0, "\3\2\1\0");
  mlrt_data_close(d);
}

// --- tokens ----------------------------------------------------------------------------------
// Ids 10 * at, 10 * at + 1, ...; with a header where `magic` is none of 0.
static bytes shard(uint32_t magic, uint32_t version, int at, int count) {
  bytes b = {0};
  if (magic) {
    put_le32(&b, magic);
    put_le32(&b, version);
    put_le32(&b, (uint32_t)count);
    for (int i = 3; i < 256; i++)
      put_le32(&b, 0);
  }
  for (int i = 0; i < count; i++)
    put(&b, &(uint32_t){(uint32_t)(10 * at + i)}, magic == 20240801 ? 4 : 2);
  return b;
}

static void test_tokens(void) {
  fixture f;
  ids_fixture(&f, "tokens", 3);
  set_file(&f, 0, shard(20240520, 1, 0, 6));
  set_file(&f, 1, shard(20240520, 1, 1, 5));
  set_file(&f, 2, shard(0, 0, 2, 4)); // without a header: of two bytes, too
  mlrt_dataset *d = must_open(&f, MLRT_USE_TRAIN, "shards");
  CHECK(mlrt_data_size(d) == 6 && mlrt_data_files(d) == 3, "%lld samples, %d files",
        (long long)mlrt_data_size(d), mlrt_data_files(d));
  holds(d, 2, "\2\3\4\5");
  holds(d, 3, "\12\13\14\15");
  holds(d, 4, "\13\14\15\16");
  holds(d, 5, "\24\25\26\27");
  mlrt_data_close(d);
  f.inputs[0].limit = 13; // element 2 of the second shard's last sample is 13
  d = must_open(&f, MLRT_USE_TRAIN, "shards with a limit");
  char out[2][8], *ptrs[2] = {out[0], out[1]};
  bool filled = mlrt_data_fill(d, &(int64_t){4}, 1, ptrs, &f.error);
  CHECK(!filled && strstr(f.error.text, "b: sample 1, element 2: 13 does not fit"), "%d %s", filled,
        f.error.text);
  mlrt_data_close(d);
  set_file(&f, 1, shard(20240801, 7, 1, 5));
  must_fail(&f, "widths", "b: ids of 4 bytes, and a has ids of 2");
}

// --- patterns --------------------------------------------------------------------------------
static char dir[] = "/tmp/mlrt-files-[XXXXXX";

static const char *in_dir(const char *name) {
  static char path[4][200];
  static int next;
  next = (next + 1) % 4;
  snprintf(path[next], sizeof path[next], "%s/%s", dir, name);
  return path[next];
}

static mlrt_dataset *open_pattern(fixture *f, const char *pattern, const char *data_dir) {
  ids_fixture(f, "text", 1);
  set_str(f, "vocab", "bytes");
  f->files[0] = pattern;
  f->error.text[0] = '\0';
  return mlrt_data_open(&f->program, &f->spec, MLRT_USE_TRAIN, data_dir, NULL, NULL, &f->error);
}

static void expect(const char *pattern, const char *data_dir, int files, const char *first) {
  fixture f;
  mlrt_dataset *d = open_pattern(&f, pattern, data_dir);
  CHECK(d, "%s: %s", pattern, f.error.text);
  if (!d)
    return;
  CHECK(mlrt_data_files(d) == files, "%s: %d files, not %d", pattern, mlrt_data_files(d), files);
  holds(d, 0, first);
  mlrt_data_close(d);
}

static void test_patterns(void) {
  fixture f;
  char *made = mkdtemp(dir);
  CHECK(made, "no folder %s", dir);
  write_file(in_dir("part_2.txt"), "2222x");
  write_file(in_dir("part_1.txt"), "1111x");
  write_file(in_dir("part_1.bin"), "bbbbx");
  expect("part_*.txt", dir, 2, "1111");
  expect("part_?.bin", dir, 1, "bbbb");
  expect("part_*", dir, 3, "bbbb"); // the folder has a [ in its name
  CHECK(!open_pattern(&f, "shard_*.txt", dir), "no file fits");
  CHECK(strstr(f.error.text, "data `train`: shard_*.txt: no file has such a name"), "%s",
        f.error.text);
  f.files[0] = "part_*.txt";
  CHECK(mlrt_data_is_at(&f.program, dir, &f.spec, in_dir("part_2.txt")), "it is one of them");
  CHECK(!mlrt_data_is_at(&f.program, dir, &f.spec, in_dir("part_1.bin")), "it is none of them");
  write_file(in_dir("part_*.txt"), "****x");
  expect("part_*.txt", dir, 1, "****"); // a file has the very name
  const char *names[] = {"part_1.txt", "part_2.txt", "part_1.bin", "part_*.txt"};
  for (int i = 0; i < 4; i++)
    unlink(in_dir(names[i]));
  rmdir(dir);
}

int main(void) {
  test_texts();
  test_vocabularies();
  test_tokens();
  test_patterns();
  return failures != 0;
}
