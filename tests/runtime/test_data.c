// test_data.c: every format but rows of ids (test_data_ids.c), plain and .gz, gives the numbers that its file holds.
#include "tests/runtime/support_data.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

// --- idx -------------------------------------------------------------------------------------
static void idx_pair(fixture *f) {
  bytes images = idx_header(8, 3, (uint32_t[]){4, 2, 3}),
        labels = idx_header(8, 1, (uint32_t[]){4});
  for (int i = 0; i < 24; i++)
    put(&images, &(unsigned char){(unsigned char)(i * 10)}, 1);
  put(&labels, "\3\1\4\1", 4);
  fixture_init(f, "idx", 2, 2);
  set_file(f, 0, images);
  set_file(f, 1, labels);
}

static void test_idx(void) {
  fixture f;
  unsigned char x[6], y;
  idx_pair(&f);
  set_input(&f, 0, MLRT_U8, 3, 2, 2, 3);
  set_input(&f, 1, MLRT_U8, 1, 2, 0, 0);
  f.inputs[1].limit = 5;
  mlrt_dataset *d = must_open(&f, MLRT_USE_TRAIN, "idx");
  CHECK(mlrt_data_size(d) == 4, "%lld", (long long)mlrt_data_size(d));
  CHECK(mlrt_data_resident_bytes(d) == 0, "%lld", (long long)mlrt_data_resident_bytes(d));
  fill(d, 2, x, &y);
  CHECK(x[0] == 120 && x[5] == 170 && y == 4, "%d %d %d", x[0], x[5], y);
  mlrt_data_close(d);
}

// A range and another dtype, from .gz.
static void test_idx_gz_range(void) {
  fixture f;
  float x[6];
  int64_t y;
  idx_pair(&f);
  for (int i = 0; i < 2; i++)
    set_file(&f, i, gz((bytes){(unsigned char *)f.embedded[i].data, f.embedded[i].len}));
  set_input(&f, 0, MLRT_F32, 2, 2, 6, 0);
  set_input(&f, 1, MLRT_I64, 2, 2, 1, 0);
  set_num(&f, "range_lo", 0.5);
  set_num(&f, "range_hi", 1);
  mlrt_dataset *d = must_open(&f, MLRT_USE_EVAL, "idx gz");
  CHECK(mlrt_data_size(d) == 2, "%lld", (long long)mlrt_data_size(d));
  fill(d, 1, x, &y);
  CHECK(x[0] == 180 && x[5] == 230 && y == 1, "%g %g %lld", (double)x[0], (double)x[5],
        (long long)y);
  CHECK(mlrt_data_resident_bytes(d) == 2 * sysconf(_SC_PAGESIZE), "%lld",
        (long long)mlrt_data_resident_bytes(d));
  mlrt_data_close(d);
}

static void test_idx_types(void) {
  static const struct {
    int type;
    unsigned char bytes[8];
    int len;
    double value;
  } cases[] = {{8, {200}, 1, 200},
               {9, {0xfe}, 1, -2},
               {11, {0xff, 0xfd}, 2, -3},
               {12, {0xff, 0xff, 0xff, 0xfc}, 4, -4},
               {13, {0x3f, 0xc0, 0, 0}, 4, 1.5},
               {14, {0xc0, 0x04, 0, 0, 0, 0, 0, 0}, 8, -2.5}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    fixture f;
    double x;
    bytes b = idx_header(cases[i].type, 1, (uint32_t[]){1});
    put(&b, cases[i].bytes, (size_t)cases[i].len);
    fixture_init(&f, "idx", 1, 1);
    set_file(&f, 0, b);
    set_input(&f, 0, MLRT_F64, 1, 1, 0, 0);
    mlrt_dataset *d = must_open(&f, MLRT_USE_TRAIN, "idx types");
    fill(d, 0, &x, NULL);
    CHECK(x == cases[i].value, "type %d: %g", cases[i].type, x);
    mlrt_data_close(d);
  }
}

// --- npy -------------------------------------------------------------------------------------
static void check_npy(int version, const char *dictionary, const void *data, size_t len,
                      const double want[2]) {
  fixture f;
  double x[2];
  bytes b = npy_header(version, dictionary);
  put(&b, data, len);
  fixture_init(&f, "npy", 1, 1);
  set_file(&f, 0, b);
  set_input(&f, 0, MLRT_F64, 2, 1, 2, 0);
  mlrt_dataset *d = must_open(&f, MLRT_USE_TRAIN, dictionary);
  fill(d, 0, x, NULL);
  CHECK(x[0] == want[0] && x[1] == want[1], "%s: %g %g", dictionary, x[0], x[1]);
  mlrt_data_close(d);
}

static void test_npy(void) {
  check_npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }   \n",
            (float[]){1.5f, -2}, 8, (double[]){1.5, -2});
  check_npy(2, "{'shape': (1, 2), 'descr': '|u1', 'fortran_order': False}", "\1\377", 2,
            (double[]){1, 255});
  check_npy(3, "{\"descr\":\"<f2\",\"fortran_order\":False,\"shape\":(1,2,)}\n",
            (uint16_t[]){0x3c01, 0x8001}, 4, (double[]){1.0009765625, -5.9604644775390625e-08});
  check_npy(1, "{'descr': '<f2', 'fortran_order': False, 'shape': (1, 2)}",
            (uint16_t[]){0x7c00, 0xfbff}, 4, (double[]){INFINITY, -65504});
  check_npy(1, "{'descr': '>i2', 'fortran_order': False, 'shape': (1, 2)}", "\xff\xfe\x01\x00", 4,
            (double[]){-2, 256});
  check_npy(1, "{'descr': '<u8', 'fortran_order': False, 'shape': (1, 2)}",
            (uint64_t[]){UINT64_MAX, 7}, 16, (double[]){0x1p64, 7});
  check_npy(1, "{'descr': '<i8', 'fortran_order': False, 'shape': (1, 2)}", (int64_t[]){-1, 7}, 16,
            (double[]){-1, 7});
  check_npy(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (1, 2, 1)}", "\1\0", 2,
            (double[]){1, 0});
}

// Long samples go through the conversion buffer more than once.
static void test_long_sample(void) {
  fixture f;
  enum { N = 1000 };
  static int32_t in[2 * N], out[N];
  static double wide[N];
  for (int i = 0; i < 2 * N; i++)
    in[i] = i * 7919 - 100000;
  bytes b = npy_header(1, "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 10, 100)}");
  put(&b, in, sizeof in);
  fixture_init(&f, "npy", 1, 1);
  set_file(&f, 0, b);
  set_input(&f, 0, MLRT_I32, 2, 1, N, 0);
  mlrt_dataset *d = must_open(&f, MLRT_USE_TRAIN, "long sample");
  fill(d, 1, out, NULL);
  CHECK(memcmp(out, in + N, sizeof out) == 0, "i32 to i32");
  mlrt_data_close(d);
  f.inputs[0].dtype = MLRT_F64;
  d = must_open(&f, MLRT_USE_TRAIN, "long sample");
  fill(d, 1, wide, NULL);
  int wrong = 0;
  for (int i = 0; i < N; i++)
    wrong += wide[i] != in[N + i];
  CHECK(wrong == 0, "%d wrong numbers", wrong);
  mlrt_data_close(d);
}

// --- csv -------------------------------------------------------------------------------------
static mlrt_dataset *open_csv(fixture *f, const char *text, const char *key, const char *value) {
  fixture_init(f, "csv", 1, 2);
  set_file(f, 0, text_bytes(text));
  set_input(f, 0, MLRT_F32, 2, 1, 3, 0);
  set_input(f, 1, MLRT_I32, 1, 1, 0, 0);
  if (key)
    set_str(f, key, value);
  return must_open(f, MLRT_USE_TRAIN, text);
}

static void check_csv(const char *text, const char *key, const char *value, const double x[3],
                      int y) {
  fixture f;
  float got[3];
  int32_t label;
  mlrt_dataset *d = open_csv(&f, text, key, value);
  CHECK(mlrt_data_size(d) == 2, "%s: %lld rows", text, (long long)mlrt_data_size(d));
  fill(d, 1, got, &label);
  CHECK(got[0] == (float)x[0] && got[1] == (float)x[1] && got[2] == (float)x[2] && label == y,
        "%s: %g %g %g, %d", text, (double)got[0], (double)got[1], (double)got[2], label);
  mlrt_data_close(d);
}

static void test_csv(void) {
  const double x[3] = {1.5, -2, 3e-5};
  check_csv("0,0,0,1\n1.5,-2,3e-5,7\n", NULL, NULL, x, 7);
  check_csv("0,0,0,1\r\n\r\n 1.5 ,\"-2.0\",+.3E-4,7", "label", "last", x, 7);
  check_csv("\xef\xbb\xbf"
            "1,0,0,0\n7,1.5,-2.,0.00003\n\n",
            "label", "first", x, 7);
  check_csv("a,b,\"c\",\n0,0,0,1\n1.5,-2,0.3e-4,7\n", NULL, NULL, x, 7);
  check_csv("a,\"the class\" , c,d\r\n0,1,0,0\r\n1.5,7,-2,3e-5\r\n", "label", "the class", x, 7);
  check_csv("1,2,3,4\n0,0,0,1\n1.5,-2,3e-5,7\n", "header", "true", x, 7);
  check_csv("0;0;0;1\n1.5;-2;3e-5;7\n", "delimiter", ";", x, 7);
  check_csv("0\t0\t0\t1\n1.5\t-2\t3e-5\t7\n", "delimiter", "tab", x, 7);
}

static void test_csv_columns(void) {
  fixture f;
  float x[3];
  int32_t y[2];
  mlrt_dataset *d;
  fixture_init(&f, "csv", 1, 2);
  set_file(&f, 0, gz(text_bytes("1,2,3,4\n5,6,7,8\n9,10,11,12\n13,14,15,16\n")));
  set_input(&f, 0, MLRT_F32, 2, 1, 3, 0);
  set_input(&f, 1, MLRT_I32, 1, 1, 0, 0);
  set_num(&f, "label", 1);
  set_num(&f, "range_lo", 0.25);
  set_num(&f, "range_hi", 0.75);
  d = must_open(&f, MLRT_USE_TRAIN, "label=1");
  CHECK(mlrt_data_size(d) == 2, "%lld", (long long)mlrt_data_size(d));
  fill(d, 1, x, y);
  CHECK(x[0] == 9 && x[1] == 11 && x[2] == 12 && y[0] == 10, "%g %g %g %d", (double)x[0],
        (double)x[1], (double)x[2], y[0]);
  mlrt_data_close(d);
  f.spec.num_settings = 0; // the last two columns are the label
  set_input(&f, 0, MLRT_F32, 2, 1, 2, 0);
  set_input(&f, 1, MLRT_I32, 2, 1, 2, 0);
  d = must_open(&f, MLRT_USE_TRAIN, "two labels");
  fill(d, 3, x, y);
  CHECK(x[1] == 14 && y[0] == 15 && y[1] == 16, "%g %d %d", (double)x[1], y[0], y[1]);
  mlrt_data_close(d);
  f.program.num_inputs = 1; // no label asked for: all columns, or all but the label
  set_input(&f, 0, MLRT_F32, 2, 1, 4, 0);
  d = must_open(&f, MLRT_USE_TRAIN, "no label");
  mlrt_data_close(d);
  set_input(&f, 0, MLRT_F32, 2, 1, 3, 0);
  set_str(&f, "label", "first");
  d = must_open(&f, MLRT_USE_TRAIN, "label ignored");
  fill(d, 0, x, NULL);
  CHECK(x[0] == 2 && x[2] == 4, "%g %g", (double)x[0], (double)x[2]);
  mlrt_data_close(d);
}

// Parsed numbers are the nearest doubles, as strtod finds them.
static void test_csv_numbers(void) {
  static const char *const numbers[] = {"0.1",
                                        "123456789012345678",
                                        "9007199254740993",
                                        "1e22",
                                        "1e-22",
                                        "1.7976931348623157e308",
                                        "5e-324",
                                        "-0.000000000000000000000000000001",
                                        "3.14159265358979323846264338327950288",
                                        "0e999",
                                        "00012.50",
                                        "1e23",
                                        "1e-99999999999999999999",
                                        "4503599627370497.5"};
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    fixture f;
    double x, want = strtod(numbers[i], NULL);
    fixture_init(&f, "csv", 1, 1);
    set_file(&f, 0, text_bytes(numbers[i]));
    set_input(&f, 0, MLRT_F64, 1, 1, 0, 0);
    mlrt_dataset *d = must_open(&f, MLRT_USE_TRAIN, numbers[i]);
    fill(d, 0, &x, NULL);
    CHECK(x == want, "%s: %.17g", numbers[i], x);
    mlrt_data_close(d);
  }
}

// Digits without end: a double is the nearest one, whatever follows those that it holds.
static void test_csv_long_numbers(void) {
  static const struct {
    const char *first;
    char filled, last;
    int n;
    const char *end;
    double want;
  } cases[] = {
      {"0.", '9', '9', 2000, "", 1},
      {"1", '0', '0', 2000, "e-2000", 1},
      {"0.", '0', '2', 2000, "e2000", 2},
      {"9007199254740993.", '0', '0', 1000, "", 0x1p53}, // the middle of two: to the even one
      {"9007199254740993.", '0', '1', 1000, "", 0x1.0000000000001p53}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fixture f;
    double x;
    bytes b = text_bytes(cases[i].first);
    for (int k = 1; k < cases[i].n; k++)
      put(&b, &cases[i].filled, 1);
    put(&b, &cases[i].last, 1);
    put(&b, cases[i].end, strlen(cases[i].end));
    fixture_init(&f, "csv", 1, 1);
    set_file(&f, 0, b);
    set_input(&f, 0, MLRT_F64, 1, 1, 0, 0);
    mlrt_dataset *d = must_open(&f, MLRT_USE_TRAIN, cases[i].first);
    fill(d, 0, &x, NULL);
    CHECK(x == cases[i].want, "%s: %.17g", cases[i].first, x);
    mlrt_data_close(d);
  }
}

static const uint16_t halves[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500}; // 0 to 5

// The number i as npy stores it: descr is "<u2", ">f4", ...
static void put_stored(bytes *b, const char *descr, int i) {
  int width = descr[2] - '0';
  uint64_t bits = (uint64_t)i;
  float single = (float)i;
  double wide = i;
  if (descr[1] == 'f' && width == 2)
    bits = halves[i];
  else if (descr[1] == 'f')
    memcpy(&bits, width == 4 ? (void *)&single : (void *)&wide, (size_t)width);
  for (int k = 0; k < width; k++)
    put(b, (char *)&bits + (descr[0] == '>' ? width - 1 - k : k), 1);
}

static double number_at(const char *out, mlrt_dtype dtype, int i) {
  static const int sizes[MLRT_NUM_DTYPES] = {1, 1, 1, 2, 4, 4, 8, 2, 2, 4, 8};
  int64_t whole = 0;
  float single;
  double wide;
  memcpy(&whole, out + i * sizes[dtype], (size_t)sizes[dtype]);
  if (dtype == MLRT_F16)
    for (int k = 0; k < 6; k++)
      if (whole == halves[k])
        return k;
  if (dtype == MLRT_BF16) // the upper half of an f32
    whole <<= 16;
  memcpy(&single, &whole, 4);
  memcpy(&wide, &whole, 8);
  return dtype == MLRT_F32 || dtype == MLRT_BF16 ? (double)single
         : dtype == MLRT_F64                     ? wide
                                                 : (double)whole;
}

static void check_pair(const char *descr, mlrt_dtype dtype) {
  fixture f;
  char dictionary[100], out[48];
  snprintf(dictionary, sizeof dictionary,
           "{'descr': '%s', 'fortran_order': False, 'shape': (1, 6)}", descr);
  bytes b = npy_header(1, dictionary);
  for (int i = 0; i < 6; i++)
    put_stored(&b, descr, i);
  fixture_init(&f, "npy", 1, 1);
  set_file(&f, 0, b);
  set_input(&f, 0, dtype, 2, 1, 6, 0);
  mlrt_dataset *d = must_open(&f, MLRT_USE_TRAIN, dictionary);
  fill(d, 0, out, NULL);
  for (int i = 0; i < 6; i++)
    CHECK(number_at(out, dtype, i) == i, "%s to dtype %d: %d became %g", descr, (int)dtype, i,
          number_at(out, dtype, i));
  mlrt_data_close(d);
}

// Each stored type to each dtype that holds 0..5.
static void test_all_pairs(void) {
  static const char *const descrs[] = {"|u1", "|i1", ">u1", "<u2", ">i2", "<u4", ">u4", "<i4",
                                       "<u8", "<i8", ">i8", "<f2", "<f4", ">f4", "<f8", ">f8"};
  for (size_t s = 0; s < sizeof descrs / sizeof *descrs; s++)
    for (int dtype = MLRT_U8; dtype < MLRT_NUM_DTYPES; dtype++)
      check_pair(descrs[s], (mlrt_dtype)dtype);
}

static double first_number(fixture *f, const char *data_dir) {
  double x = -1;
  mlrt_dataset *d =
      mlrt_data_open(&f->program, &f->spec, MLRT_USE_TRAIN, data_dir, NULL, NULL, &f->error);
  if (!d)
    return -1;
  fill(d, 0, &x, NULL);
  CHECK(mapped_bytes(d) == 0, "the text of a csv is let go");
  mlrt_data_close(d);
  return x;
}

static void test_places(void) {
  char root[] = "/tmp/mlrt-data-XXXXXX", path[64], source[64], data_dir[64];
  CHECK(mkdtemp(root), "no temporary folder");
  snprintf(source, sizeof source, "%s/src", root);
  snprintf(data_dir, sizeof data_dir, "%s/dir", root);
  mkdir(source, 0700);
  mkdir(data_dir, 0700);
  fixture f;
  fixture_init(&f, "csv", 1, 1);
  set_input(&f, 0, MLRT_F64, 1, 1, 0, 0);
  f.files[0] = "n.csv";
  snprintf(path, sizeof path, "%s/src/m.graph", root);
  f.program.source_path = path;

  CHECK(first_number(&f, data_dir) == -1 && strstr(f.error.text, "n.csv: no such file (tried: ") &&
            strstr(f.error.text, source) && strstr(f.error.text, data_dir) &&
            strstr(f.error.text, "--data-dir") && strstr(f.error.text, "fetch-data") &&
            strstr(f.error.text, "data `train`"),
        "%s", f.error.text);
  char file[128];
  snprintf(file, sizeof file, "%s/n.csv", source);
  write_file(file, "1");
  CHECK(first_number(&f, data_dir) == 1, "beside the source");
  snprintf(file, sizeof file, "%s/n.csv", data_dir);
  write_file(file, "2");
  CHECK(first_number(&f, data_dir) == 2, "--data-dir before the source's folder");
  CHECK(first_number(&f, NULL) == 1, "no --data-dir");
  bytes carried = text_bytes("3");
  f.embedded[0] = (mlrt_embedded){"n.csv", carried.at, carried.len};
  f.program.num_embedded = 1;
  CHECK(first_number(&f, data_dir) == 3, "a carried file before all");
  f.program.num_embedded = 0;
  f.files[0] = file;
  CHECK(first_number(&f, NULL) == 2, "an absolute path");
  f.files[0] = root;
  CHECK(first_number(&f, NULL) == -1 && strstr(f.error.text, "is a folder"), "%s", f.error.text);
  write_file(file, "");
  f.files[0] = file;
  CHECK(first_number(&f, NULL) == -1 && strstr(f.error.text, "is empty"), "%s", f.error.text);
  unlink(file);
  snprintf(file, sizeof file, "%s/n.csv", source);
  unlink(file);
  rmdir(source);
  rmdir(data_dir);
  rmdir(root);
}

// What a .gz may have in its header beside the ten bytes that all have.
static void test_gz_headers(void) {
  static Bytef extra[] = "more", name[] = "a name", comment[] = "a comment";
  gz_header headers[] = {
      {.name = name},
      {.extra = extra, .extra_len = 4},
      {.comment = comment},
      {.name = name, .hcrc = 1},
      {.extra = extra, .extra_len = 4, .name = name, .comment = comment, .hcrc = 1}};
  for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
    fixture f;
    unsigned char packed[200];
    const char *csv = "1,2\n3,4\n";
    z_stream z = {.next_in = (Bytef *)(uintptr_t)csv,
                  .avail_in = (uInt)strlen(csv),
                  .next_out = packed,
                  .avail_out = sizeof packed};
    deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 9, Z_DEFAULT_STRATEGY);
    deflateSetHeader(&z, &headers[i]);
    deflate(&z, Z_FINISH);
    bytes file = {0};
    put(&file, packed, z.total_out);
    deflateEnd(&z);
    fixture_init(&f, "csv", 1, 1);
    set_file(&f, 0, file);
    set_input(&f, 0, MLRT_F32, 2, 1, 2, 0);
    mlrt_dataset *d = must_open(&f, MLRT_USE_TRAIN, "gz with a header of its own");
    float row[2];
    fill(d, 1, row, NULL);
    CHECK(mlrt_data_size(d) == 2 && row[0] == 3 && row[1] == 4, "header %zu", i);
    mlrt_data_close(d);
  }
}

// Random bytes do not pack: a .gz on disk of several pieces, unpacked to pages that grow.
static void test_large_gz(void) {
  enum { IDS = 3 << 19 };
  char path[] = "/tmp/mlrt-data-XXXXXX";
  fixture f;
  bytes ids = {0};
  uint32_t state = 1;
  static uint16_t values[IDS], window[8];
  for (int i = 0; i < IDS; i++)
    values[i] = (uint16_t)((state = state * 1664525 + 1013904223) >> 16);
  put(&ids, values, sizeof values);
  bytes packed = gz(ids);
  FILE *out = fdopen(mkstemp(path), "wb");
  fwrite(packed.at, 1, packed.len, out);
  fclose(out);
  fixture_init(&f, "tokens", 1, 1);
  f.files[0] = path;
  set_input(&f, 0, MLRT_U16, 2, 1, 8, 0);
  mlrt_dataset *d = must_open(&f, MLRT_USE_TRAIN, "large gz");
  CHECK(packed.len > 2 << 20, "the file packs to %zu bytes", packed.len);
  CHECK(mlrt_data_resident_bytes(d) == sizeof values, "%lld bytes are resident",
        (long long)mlrt_data_resident_bytes(d));
  int wrong = 0;
  for (int64_t i = 0; i < mlrt_data_size(d); i += 4) {
    fill(d, i, window, NULL);
    wrong += memcmp(window, values + i, sizeof window) != 0;
  }
  CHECK(wrong == 0 && mlrt_data_size(d) == IDS - 7, "%d windows differ", wrong);
  mlrt_data_close(d);
  unlink(path);
}

#if defined(__SANITIZE_ADDRESS__)
#define ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ADDRESS_SANITIZER
#endif
#endif

static int64_t peak_bytes(void) {
  FILE *in = fopen("/proc/self/status", "r");
  char line[200];
  long long kib = 0;
  while (in && fgets(line, sizeof line, in))
    sscanf(line, "VmHWM: %lld kB", &kib);
  if (in)
    fclose(in);
  return kib << 10;
}

// A csv of many MiB: all rows are right, though pages are let go behind the scan, and reading it
// takes little more memory than its numbers.
static void test_large_csv(void) {
  enum { ROWS = 200000 };
  char path[] = "/tmp/mlrt-data-XXXXXX";
  fixture f;
  FILE *out = fdopen(mkstemp(path), "wb");
  for (int i = 0; i < ROWS; i++)
    fprintf(out, "%080d,%020d.5,%d\n", i, i, i % 10);
  fclose(out);
  fixture_init(&f, "csv", 1, 2);
  f.files[0] = path;
  set_input(&f, 0, MLRT_F32, 2, 1, 2, 0);
  set_input(&f, 1, MLRT_U8, 1, 1, 0, 0);
  int64_t before = peak_bytes();
  mlrt_dataset *d = must_open(&f, MLRT_USE_TRAIN, "large csv");
  int64_t more = peak_bytes() - before, wrong = 0;
  float x[2];
  unsigned char y;
  for (int64_t i = 0; i < ROWS; i++) {
    fill(d, i, x, &y);
    wrong += x[0] != (float)i || x[1] != (float)i + 0.5f || y != i % 10;
  }
  CHECK(wrong == 0 && mlrt_data_size(d) == ROWS, "%lld rows differ", (long long)wrong);
  (void)more;
#ifndef ADDRESS_SANITIZER // its shadow would count
  CHECK(more < mlrt_data_resident_bytes(d) + (6 << 20), "reading takes %lld bytes for %lld",
        (long long)more, (long long)mlrt_data_resident_bytes(d));
#endif
  mlrt_data_close(d);
  unlink(path);
}

static double flag_value(const void *data, const char *name) {
  return strcmp(name, data) == 0 ? 0.5 : -1;
}

static void test_flags(void) {
  fixture f;
  mlrt_flag_values flags = {flag_value, "part"};
  idx_pair(&f);
  set_input(&f, 0, MLRT_U8, 3, 2, 2, 3);
  set_input(&f, 1, MLRT_U8, 1, 2, 0, 0);
  f.settings[f.spec.num_settings++] =
      (mlrt_setting){.key = "range_hi", .kind = MLRT_SET_FLAG, .str = "part"};
  mlrt_dataset *d =
      mlrt_data_open(&f.program, &f.spec, MLRT_USE_TRAIN, NULL, &flags, NULL, &f.error);
  CHECK(d && mlrt_data_size(d) == 2, "%s", f.error.text);
  mlrt_data_close(d);
}

int main(void) {
  test_idx();
  test_idx_gz_range();
  test_idx_types();
  test_npy();
  test_all_pairs();
  test_long_sample();
  test_csv();
  test_csv_columns();
  test_csv_numbers();
  test_csv_long_numbers();
  test_places();
  test_large_csv();
  test_gz_headers();
  test_large_gz();
  test_flags();
  return failures != 0;
}
