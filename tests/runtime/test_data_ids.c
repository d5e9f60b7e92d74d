// test_data_ids.c: texts and token files, plain and .gz, give windows of the ids that they hold.
#include "tests/runtime/support_data.h"

#include <unistd.h>

// --- text ----------------------------------------------------------------------------------------
static void test_text(void) {
  fixture f;
  int32_t x[3], y[3];
  fixture_init(&f, "text", 1, 2);
  set_file(&f, 0, text_bytes("hello\nworld")); // sorted: \n d e h l o r w = 0..7
  set_input(&f, 0, MLRT_I32, 2, 1, 3, 0);
  set_input(&f, 1, MLRT_I32, 2, 1, 3, 0);
  set_str(&f, "vocab", "chars");
  mlrt_dataset *d = must_open(&f, MLRT_USE_TRAIN, "text");
  CHECK(mlrt_data_size(d) == 11 - 3, "%lld", (long long)mlrt_data_size(d));
  fill(d, 7, x, y); // "orl" -> "rld"
  CHECK(x[0] == 5 && x[1] == 6 && x[2] == 4, "%d %d %d", x[0], x[1], x[2]);
  CHECK(y[0] == 6 && y[1] == 4 && y[2] == 1, "%d %d %d", y[0], y[1], y[2]);
  fill(d, 4, x, y); // "o\nw" -> "\nwo"
  CHECK(x[0] == 5 && x[1] == 0 && x[2] == 7, "%d %d %d", x[0], x[1], x[2]);
  fill(d, 0, x, y); // "hel" -> "ell"
  CHECK(x[0] == 3 && x[1] == 2 && x[2] == 4, "%d %d %d", x[0], x[1], x[2]);
  mlrt_data_close(d);
  d = must_open(&f, MLRT_USE_EVAL, "text windows side by side");
  CHECK(mlrt_data_size(d) == 3, "%lld", (long long)mlrt_data_size(d));
  fill(d, 1, x, y); // "lo\n" -> "o\nw"
  CHECK(x[0] == 4 && x[2] == 0 && y[2] == 7, "%d %d %d", x[0], x[2], y[2]);
  mlrt_data_close(d);
  float ids[3];
  f.program.num_inputs = 1; // ids as numbers, for whatever a model does with them
  f.inputs[0].dtype = MLRT_F32;
  d = must_open(&f, MLRT_USE_TRAIN, "text as f32");
  fill(d, 0, ids, NULL);
  CHECK(ids[0] == 3 && ids[1] == 2 && ids[2] == 4, "%g %g %g", (double)ids[0], (double)ids[1],
        (double)ids[2]);
  mlrt_data_close(d);
  f.program.num_inputs = 2;
  f.inputs[0].dtype = MLRT_I32;
  set_num(&f, "stride", 2);
  d = must_open(&f, MLRT_USE_EVAL, "text stride");
  CHECK(mlrt_data_size(d) == 4, "%lld", (long long)mlrt_data_size(d));
  mlrt_data_close(d);
}

// Two lanes of "abcdefghijklm", whose last letter is a target only: abcdef and ghijkl.
static void test_lanes(void) {
  static const int32_t first[] = {0, 6, 2, 8, 4, 10}; // ab gh cd ij ef kl
  fixture f;
  int32_t x[2], y[2];
  fixture_init(&f, "text", 1, 2);
  set_file(&f, 0, text_bytes("abcdefghijklm"));
  set_input(&f, 0, MLRT_I32, 2, 1, 2, 0);
  set_input(&f, 1, MLRT_I32, 2, 1, 2, 0);
  set_num(&f, "lanes", 2);
  mlrt_dataset *d = must_open(&f, MLRT_USE_TRAIN, "lanes");
  CHECK(mlrt_data_size(d) == 6, "%lld", (long long)mlrt_data_size(d));
  for (int i = 0; i < 6; i++) {
    fill(d, i, x, y);
    CHECK(x[0] == first[i] && x[1] == first[i] + 1, "sample %d: %d %d", i, x[0], x[1]);
    CHECK(y[0] == first[i] + 1 && y[1] == first[i] + 2, "target %d: %d %d", i, y[0], y[1]);
  }
  mlrt_data_close(d);
}

// The vocabulary is the file's, the windows are the range's: int(n * fraction), as nanoGPT.
static void test_text_range(void) {
  fixture f;
  unsigned char x[2], y[2];
  bytes big = {0};
  for (int i = 0; i < 50001; i++)
    put(&big, &(unsigned char){(unsigned char)('a' + i % 26)}, 1);
  fixture_init(&f, "text", 1, 2);
  set_file(&f, 0, gz(big));
  set_input(&f, 0, MLRT_U8, 2, 1, 2, 0);
  set_input(&f, 1, MLRT_U8, 2, 1, 2, 0);
  set_str(&f, "vocab", "bytes");
  set_num(&f, "range_lo", 0.9);
  set_num(&f, "window", 2);
  mlrt_dataset *d = must_open(&f, MLRT_USE_TRAIN, "text range");
  int64_t lo = (int64_t)(50001 * 0.9);
  CHECK(mlrt_data_size(d) == 50001 - lo - 2, "%lld", (long long)mlrt_data_size(d));
  CHECK(mlrt_data_resident_bytes(d) <= 3 * sysconf(_SC_PAGESIZE), "pages out of the range stay");
  fill(d, mlrt_data_size(d) - 1, x, y);
  CHECK(x[0] == 'a' + 49998 % 26 && y[1] == 'a' + 50000 % 26, "%c %c", x[0], y[1]);
  mlrt_data_close(d);
  f.program.num_inputs = 1; // no targets: one more window
  d = must_open(&f, MLRT_USE_TRAIN, "text, one input");
  CHECK(mlrt_data_size(d) == 50001 - lo - 1, "%lld", (long long)mlrt_data_size(d));
  mlrt_data_close(d);
}

// Sets of several texts share one vocabulary; bytes, other formats and a set of the same text do not count.
static void test_text_of_several_sets(void) {
  fixture f;
  unsigned char x[3];
  fixture_init(&f, "text", 1, 1);
  set_file(&f, 0, text_bytes("bdfbdf"));
  set_file(&f, 1, text_bytes("ace"));
  set_file(&f, 2, text_bytes("0123456789"));
  set_input(&f, 0, MLRT_U8, 2, 1, 3, 0);
  mlrt_setting as_bytes = {.key = "vocab", .kind = MLRT_SET_STR, .str = "bytes"};
  mlrt_data sets[5] = {f.spec, f.spec, f.spec, f.spec, f.spec};
  sets[1].files = f.files + 1;
  sets[2].files = sets[3].files = f.files + 2;
  sets[2].settings = &as_bytes, sets[2].num_settings = 1;
  sets[3].format = "tokens";
  f.program.data = sets;
  f.program.num_data = 5;
  mlrt_dataset *d = must_open(&f, MLRT_USE_TRAIN, "text of several sets"); // a b c d e f
  fill(d, 0, x, NULL);
  CHECK(x[0] == 1 && x[1] == 3 && x[2] == 5, "%d %d %d", x[0], x[1], x[2]);
  mlrt_data_close(d);
  f.spec = sets[1];
  d = must_open(&f, MLRT_USE_EVAL, "the other text");
  fill(d, 0, x, NULL);
  CHECK(x[0] == 0 && x[1] == 2 && x[2] == 4, "%d %d %d", x[0], x[1], x[2]);
  mlrt_data_close(d);
  f.program.num_embedded = 2; // the one that is read as bytes is not there, and is not looked for
  d = must_open(&f, MLRT_USE_EVAL, "without a text that does not count");
  mlrt_data_close(d);
  f.spec = sets[0];
  f.program.num_embedded = 1;
  must_fail(&f, "the other text is missing", "the vocabulary is also that of data `train`");
}

// What a run begins with keeps its ids. Going on with it, no file of other sets is read, and no other character is taken; in
// a new run others follow.
static void test_text_of_known_characters(void) {
  fixture f;
  unsigned char x[3];
  fixture_init(&f, "text", 1, 1);
  set_file(&f, 0, text_bytes("caazzb"));
  set_input(&f, 0, MLRT_U8, 2, 1, 3, 0);
  mlrt_data sets[2] = {f.spec, f.spec};
  sets[1].files = f.files + 1;
  f.program.data = sets;
  f.program.num_data = 2; // the second is not there
  f.known = (mlrt_known_characters){{4, {'z', 'a', 'b', 'c'}}, "a file", false};
  mlrt_dataset *d = must_open(&f, MLRT_USE_EVAL, "text of a checkpoint");
  fill(d, 1, x, NULL);
  CHECK(x[0] == 0 && x[1] == 0 && x[2] == 2, "%d %d %d", x[0], x[1], x[2]);
  CHECK(mlrt_data_characters(d)->num == 4, "%d characters", mlrt_data_characters(d)->num);
  mlrt_data_close(d);
  f.known.characters.num = 2;
  must_fail(&f, "characters of another text",
            "has 2 characters that 'a file' was not made with: byte 98 ('b') and others");
  f.known.more = true;
  f.program.num_data = 1;
  d = must_open(&f, MLRT_USE_TRAIN, "more characters");
  fill(d, 3, x, NULL);
  CHECK(x[0] == 0 && x[1] == 0 && x[2] == 2, "%d %d %d", x[0], x[1], x[2]);
  fill(d, 0, x, NULL);
  CHECK(x[0] == 3 && x[1] == 1 && x[2] == 1, "%d %d %d", x[0], x[1], x[2]);
  mlrt_data_close(d);
  set_input(&f, 0, MLRT_U8, 2, 1, 3, 0);
  f.inputs[0].limit = 3;
  must_fail(&f, "more than the model takes", "different characters, but input `x` takes 3");
}

static void test_characters_as_text(void) {
  mlrt_characters all = {0}, back;
  char text[MLRT_CHARACTERS_TEXT];
  for (int i = 0; i < 256; i++)
    all.byte[all.num++] = (uint8_t)(255 - i);
  mlrt_characters_write(&all, text);
  CHECK(mlrt_characters_read(&back, text) && !memcmp(&all, &back, sizeof all), "%s", text);
  static const char *const wrong[] = {"", " 1", "1 ", "1  2", "256", "1 2 1", "-1", "1,2", "x"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    CHECK(!mlrt_characters_read(&back, wrong[i]), "taken: '%s'", wrong[i]);
}

// Its bytes are no text, though any bytes could be one.
static void test_packed_text(void) {
  fixture f;
  fixture_init(&f, "text", 1, 1);
  set_input(&f, 0, MLRT_U8, 2, 1, 3, 0);
  set_str(&f, "vocab", "bytes");
  set_file(&f, 0, text_bytes("\x28\xb5\x2f\xfd and more"));
  must_fail(&f, "text packed by another program", "is packed by zstd|only .gz");
  set_file(&f, 0, gz(gz(text_bytes("abcabc"))));
  must_fail(&f, "text packed twice", "is packed by gzip, twice|only .gz");
  set_file(&f, 0, text_bytes("\x28\xb5 and more"));
  mlrt_data_close(must_open(&f, MLRT_USE_TRAIN, "text that begins a little like it"));
}

static bytes token_file(uint32_t magic, uint32_t version, uint32_t count, int width) {
  bytes b = {0};
  for (int i = 0; i < 256 && magic; i++)
    put_le32(&b, i == 0 ? magic : i == 1 ? version : i == 2 ? count : 0);
  for (uint32_t i = 0; i < count; i++)
    put(&b, &(uint32_t){i * 100}, (size_t)width);
  return b;
}

static bytes token_zeros(int ids) {
  bytes b = {0};
  for (int i = 0; i < ids; i++)
    put(&b, &(uint16_t){0}, 2);
  return b;
}

static void check_tokens(bytes file, const char *dtype) {
  fixture f;
  uint16_t x[4], y[4];
  fixture_init(&f, "tokens", 1, 2);
  set_file(&f, 0, file);
  set_input(&f, 0, MLRT_U16, 2, 1, 4, 0);
  set_input(&f, 1, MLRT_U16, 2, 1, 4, 0);
  if (dtype)
    set_str(&f, "dtype", dtype);
  mlrt_dataset *d = must_open(&f, MLRT_USE_TRAIN, "tokens");
  CHECK(mlrt_data_size(d) == 6, "%lld", (long long)mlrt_data_size(d));
  fill(d, 5, x, y);
  CHECK(x[0] == 500 && x[3] == 800 && y[3] == 900, "%d %d %d", x[0], x[3], y[3]);
  mlrt_data_close(d);
}

static void test_tokens(void) {
  check_tokens(token_file(0, 0, 10, 2), NULL);
  check_tokens(token_file(0, 0, 10, 4), "u32");
  check_tokens(token_file(20240520, 1, 10, 2), NULL);
  check_tokens(token_file(20240801, 7, 10, 4), NULL);
  check_tokens(gz(token_file(20240520, 1, 10, 2)), "u16");
}

// A width that is not said, and that the file does not seem to have.
static void test_wide_tokens(void) {
  fixture f;
  fixture_init(&f, "tokens", 1, 1);
  set_input(&f, 0, MLRT_U16, 2, 1, 4, 0);
  set_file(&f, 0, token_file(0, 0, 32, 4));
  must_fail(&f, "ids of four bytes",
            "a: every second id of two bytes is 0|help: add dtype=\"u32\"");
  set_file(&f, 0, token_file(0, 0, 31, 4)); // few
  mlrt_data_close(must_open(&f, MLRT_USE_TRAIN, "few ids"));
  set_file(&f, 0, token_file(20240520, 1, 32, 2));
  mlrt_data_close(must_open(&f, MLRT_USE_TRAIN, "a header says the width"));
  set_file(&f, 0, token_zeros(64));
  mlrt_data_close(must_open(&f, MLRT_USE_TRAIN, "zeros are ids of any width"));
  set_str(&f, "dtype", "u16");
  set_file(&f, 0, token_file(0, 0, 32, 4));
  mlrt_data_close(must_open(&f, MLRT_USE_TRAIN, "it is as it seems"));
}

// --- where files are found -------------------------------------------------------------------
// A character that the vocabulary does not have ends the run, and is no other one.
static void test_text_changes(void) {
  char path[] = "/tmp/mlrt-text-XXXXXX";
  int32_t x[3], y[3];
  close(mkstemp(path));
  write_file(path, "hello\nworld");
  fixture f;
  fixture_init(&f, "text", 1, 2);
  f.files[0] = path;
  set_input(&f, 0, MLRT_I32, 2, 1, 3, 0);
  set_input(&f, 1, MLRT_I32, 2, 1, 3, 0);
  mlrt_dataset *d = must_open(&f, MLRT_USE_TRAIN, "a text that will change");
  fill(d, 7, x, y);
  write_file(path, "hello\nw0rld");
  bool filled = mlrt_data_fill(d, &(int64_t){6}, 1, (char *[]){(char *)x, (char *)y}, &f.error);
  CHECK(!filled && strstr(f.error.text, "sample 6, element 1: byte 48, which no place"), "%d %s",
        filled, f.error.text);
  fill(d, 0, x, y);
  mlrt_data_close(d);
  unlink(path);
}

int main(void) {
  test_text();
  test_text_of_several_sets();
  test_text_of_known_characters();
  test_characters_as_text();
  test_packed_text();
  test_lanes();
  test_text_range();
  test_tokens();
  test_wide_tokens();
  test_text_changes();
  return failures != 0;
}
