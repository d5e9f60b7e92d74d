// test_bytes.c: sizes as people write them, and as they read them.
#include <string.h>

#include "ir/base.h"
#include "tests/support_check.h"

static const struct {
  const char *text;
  int64_t bytes; // 0: is refused
} sizes[] = {
    {"1", 1},
    {"4096", 4096},
    {"4096B", 4096},
    {"64MiB", (int64_t)64 << 20},
    {"80GiB", (int64_t)80 << 30},
    {"80gib", (int64_t)80 << 30},
    {"1.5GB", 1500000000},
    {"1.5KiB", 1536},
    {"2TB", 2000000000000},
    {"0.5TiB", (int64_t)1 << 39},
    {"0.3KiB", 307},        // 307.2
    {"0.999999999KB", 999}, // cut off, not rounded
    {"0.19999999999999999999999999KB", 199},
    {"9223372036854775807", INT64_MAX},
    {"8388607.99999999999TiB", INT64_MAX - 10},
    {"9223372036854775808", 0},
    {"8388608TiB", 0},
    {"99999999999999999999", 0},
    {"0", 0},
    {"0.0001KiB", 0},
    {"", 0},
    {"B", 0},
    {".5GiB", 0},
    {"1.GiB", 0},
    {"-1", 0},
    {"+1", 0},
    {"1e9", 0},
    {"64 MiB", 0},
    {"64M", 0}, // of 1000 or of 1024?
    {"64MiBB", 0},
    {"64MiBs", 0},
    {"1.5", 1},
    {"1.2.3KiB", 0},
};

static void check_parsing(void) {
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    int64_t bytes = -1;
    bool ok = ir_parse_bytes(sizes[i].text, &bytes);
    CHECK(ok == (sizes[i].bytes > 0), "'%s'", sizes[i].text);
    CHECK(!ok || bytes == sizes[i].bytes, "'%s' is %lld", sizes[i].text, (long long)bytes);
  }
}

static void check_text(ir_arena *a, int64_t bytes, int64_t like, const char *text) {
  const char *found = ir_bytes_text(a, bytes, like);
  CHECK(!strcmp(found, text), "%lld like %lld is '%s'", (long long)bytes, (long long)like, found);
}

int main(void) {
  ir_arena *a = ir_arena_new();
  check_parsing();
  check_text(a, 612, 612, "612 B");
  check_text(a, 1023, 1023, "1023 B");
  check_text(a, 1024, 1024, "1.0 KiB");
  check_text(a, (int64_t)64 << 20, (int64_t)64 << 20, "64.0 MiB");
  check_text(a, (int64_t)80 << 30, (int64_t)80 << 30, "80.0 GiB");
  check_text(a, (int64_t)1 << 52, (int64_t)1 << 52, "4096.0 TiB");
  check_text(a, 0, (int64_t)64 << 20, "0.0 MiB");
  check_text(a, (int64_t)1 << 29, (int64_t)1 << 30, "0.5 GiB");
  ir_arena_free(a);
  return failures != 0;
}
