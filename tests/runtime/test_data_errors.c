// test_data_errors.c: a broken file of any kind gives one message that names the file and the
// place, and never a crash. Every prefix and many single-byte changes of good files are read, too.
#include "tests/runtime/support_data.h"

// --- good files to break ---------------------------------------------------------------------
static bytes cut(bytes b, size_t len) {
  b.len = len;
  return b;
}

static bytes with(bytes b, const char *more) {
  put(&b, more, strlen(more));
  return b;
}

static bytes images(void) {
  bytes b = idx_header(8, 3, (uint32_t[]){4, 2, 3});
  return with(b, "abcdefghijklmnopqrstuvwx");
}

static bytes labels(void) {
  return with(idx_header(8, 1, (uint32_t[]){4}), "\3\1\4\1");
}

static bytes array(const char *dictionary) {
  return with(npy_header(1, dictionary), "abcdefghijklmnopqrstuvwx");
}

static bytes tokens(uint32_t magic, uint32_t version, uint32_t count) {
  bytes b = {0};
  for (int i = 0; i < 256; i++)
    put_le32(&b, i == 0 ? magic : i == 1 ? version : i == 2 ? count : 0);
  for (int i = 0; i < 16; i++)
    put(&b, &(uint16_t){(uint16_t)i}, 2);
  return b;
}

// --- idx -------------------------------------------------------------------------------------
static void idx_fixture(fixture *f, bytes x, bytes y) {
  fixture_init(f, "idx", 2, 2);
  set_input(f, 0, MLRT_U8, 3, 2, 2, 3);
  set_input(f, 1, MLRT_U8, 1, 2, 0, 0);
  set_file(f, 0, x);
  set_file(f, 1, y);
}

static void idx_fails(bytes x, bytes y, const char *what, const char *words) {
  fixture f;
  idx_fixture(&f, x, y);
  must_fail(&f, what, words);
}

static void test_idx(void) {
  idx_fails((bytes){(unsigned char *)"", 0}, labels(), "empty", "data `train`: a|empty");
  idx_fails(text_bytes("hello there"), labels(), "wrong magic", "a: is not an IDX file");
  idx_fails(cut(images(), 3), labels(), "magic cut", "a: is not an IDX file");
  idx_fails(cut(images(), 9), labels(), "header cut", "a: is cut off inside its header");
  idx_fails(cut(images(), 39), labels(), "data cut", "a: is cut off|4 x 2 x 3|23 bytes");
  idx_fails(with(images(), "zz"), labels(), "trailing",
            "a: 2 bytes follow the last sample|byte 40");
  idx_fails(idx_header(8, 0, NULL), labels(), "rank 0", "a: has a rank outside 1..8");
  idx_fails(idx_header(8, 9, (uint32_t[9]){1}), labels(), "rank 9", "a: has a rank outside");
  idx_fails(idx_header(10, 1, (uint32_t[]){1}), labels(), "type", "a: is not an IDX file");
  idx_fails(idx_header(8, 3, (uint32_t[]){0, 2, 3}), labels(), "no samples", "a: holds no samples");
  idx_fails(idx_header(14, 8, (uint32_t[8]){~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u}), labels(),
            "10^77 numbers", "a: is cut off");
  idx_fails(labels(), labels(), "shape", "a: a sample is one number, but input `x` takes 2 x 3");
  idx_fails(images(), with(idx_header(8, 1, (uint32_t[]){2}), "\1\2"), "counts",
            "b holds 2 samples, but a holds 4");
  fixture f;
  idx_fixture(&f, images(), labels());
  f.spec.num_files = 1;
  must_fail(&f, "one file for two inputs", "1 file for 2 inputs");
  idx_fixture(&f, images(), labels());
  set_num(&f, "range_hi", 0.2);
  must_fail(&f, "range of no sample", "the range 0%..20% of 4 is empty");
}

static void test_idx_values(void) {
  fixture f;
  idx_fixture(&f, images(), labels());
  f.inputs[1].limit = 1;
  must_fail(&f, "limit", "b: sample 3, element 0: 1 does not fit input `y`|from 0 to 0");
  idx_fixture(&f, images(), labels());
  f.inputs[0].dtype = MLRT_BOOL;
  must_fail(&f, "bool", "a: sample 3|does not fit input `x`|bool holds");
  bytes big = with(idx_header(13, 1, (uint32_t[]){4}), "abcdabcdabcdabcd");
  idx_fixture(&f, images(), big);
  must_fail(&f, "float to u8", "b: sample 3|does not fit input `y`|from 0 to 255");
}

// --- npy -------------------------------------------------------------------------------------
static void npy_fails(bytes x, const char *what, const char *words) {
  fixture f;
  fixture_init(&f, "npy", 1, 1);
  set_input(&f, 0, MLRT_U8, 3, 2, 2, 3);
  set_file(&f, 0, x);
  must_fail(&f, what, words);
}

// Bytes that are no truth values, whatever the model would make of them.
static void test_npy_bools(void) {
  fixture f;
  fixture_init(&f, "npy", 1, 1);
  set_input(&f, 0, MLRT_F32, 2, 1, 3, 0);
  set_file(
      &f, 0,
      with(npy_header(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (1, 3)}"), "\1\1\2"));
  must_fail(&f, "bool", "sample 0, element 2: byte 2 is no truth value");
}

static void test_npy(void) {
  const char *good = "{'descr': '|u1', 'fortran_order': False, 'shape': (4, 2, 3)}";
  npy_fails(text_bytes("\x93NUMPX\1 junk"), "magic", "a: is not a .npy file");
  npy_fails(text_bytes("PK\3\4 junk"), "npz", "a: is an archive|numpy.save");
  npy_fails(cut(array(good), 30), "header cut", "a: is cut off inside its header");
  npy_fails(cut(array(good), array(good).len - 1), "data cut", "a: is cut off|4 x 2 x 3");
  npy_fails(with(array(good), "z"), "trailing", "a: 1 bytes follow the last sample");
  npy_fails(npy_header(9, good), "version", "unknown .npy version");
  npy_fails(array("{'descr': '|u1', 'fortran_order': True, 'shape': (4, 2, 3)}"), "order",
            "Fortran order|ascontiguousarray");
  npy_fails(array("{'descr': '|O', 'fortran_order': False, 'shape': (4, 2, 3)}"), "objects",
            "not a plain number");
  npy_fails(array("{'descr': '<c8', 'fortran_order': False, 'shape': (3,)}"), "complex",
            "not a plain number");
  npy_fails(array("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (4,)}"), "record",
            "a: has a header that is not");
  npy_fails(array("{'descr': '|u1', 'shape': (4, 2, 3)}"), "no order", "a: has a header");
  npy_fails(array("{'descr': '|u1', 'fortran_order': False, 'shape': ()}"), "scalar",
            "a: holds one number");
  npy_fails(array("{'descr': '|u1', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}"),
            "rank 9", "a: has a header");
  npy_fails(array("{'descr': '|u1', 'fortran_order': False, 'shape': (-4, 2, 3)}"), "negative",
            "a: has a header");
  npy_fails(array("{'descr': '|u1', 'fortran_order': False, 'shape': (9999999999999999999, 2)}"),
            "too large a size", "a: has a header");
  npy_fails(array("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000, 2, 3)}"),
            "10^15 samples", "a: is cut off");
  npy_fails(array("{'descr': '|u1', 'fortran_order': False, 'shape': (4, 3, 3)}"), "shape",
            "a: is cut off");
  npy_fails(array("{'descr': '|u1', 'fortran_order': False, 'shape': (8, 3)}"), "shape",
            "a: a sample is 3, but input `x` takes 2 x 3");
}

// A sample may have another shape, but not the same sizes in another order.
static void test_npy_shapes(void) {
  static const struct {
    const char *shape;
    bool fits;
  } cases[] = {{"(4, 6)", true},       {"(4, 1, 6)", true},  {"(4, 2, 1, 3)", true},
               {"(4, 6, 1)", true},    {"(4, 3, 2)", false}, {"(4, 3, 1, 2)", false},
               {"(4, 1, 3, 2)", false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char header[100];
    snprintf(header, sizeof header, "{'descr': '|u1', 'fortran_order': False, 'shape': %s}",
             cases[i].shape);
    fixture f;
    fixture_init(&f, "npy", 1, 1);
    set_input(&f, 0, MLRT_U8, 3, 2, 2, 3);
    set_file(&f, 0, array(header));
    if (cases[i].fits)
      mlrt_data_close(must_open(&f, MLRT_USE_TRAIN, cases[i].shape));
    else
      must_fail(&f, cases[i].shape,
                "but input `x` takes 2 x 3|help: give the input the file's order");
  }
}

// --- csv -------------------------------------------------------------------------------------
static void csv_fixture(fixture *f, const char *text) {
  fixture_init(f, "csv", 1, 2);
  set_input(f, 0, MLRT_F32, 2, 2, 3, 0);
  set_input(f, 1, MLRT_U8, 1, 2, 0, 0);
  f->inputs[1].limit = 10;
  set_file(f, 0, text_bytes(text));
}

static void csv_fails(const char *text, const char *key, const char *value, const char *words) {
  fixture f;
  csv_fixture(&f, text);
  if (key)
    set_str(&f, key, value);
  must_fail(&f, text, words);
}

static void label_fails(double label, const char *words) {
  fixture f;
  csv_fixture(&f, "1,2,3,4\n");
  set_num(&f, "label", label);
  must_fail(&f, "label", words);
}

static void test_csv(void) {
  csv_fails("\n \n\r\n", NULL, NULL, "a: holds no rows");
  csv_fails("a,b,c,d\n", NULL, NULL, "a: holds a header and no rows");
  csv_fails("1,2,3,4\n1,2,3\n", NULL, NULL, "a: line 2 has 3 columns, but line 1 has 4");
  csv_fails("1,2,3,4\n\n1,2,3,4,5\n", NULL, NULL, "a: line 3 has 5 columns, but line 1 has 4");
  csv_fails("1,2,3,4\n1,2,abc,4\n", NULL, NULL, "a: line 2, column 3: `abc` is not a number");
  csv_fails("1,2,x,4\n1,2,3,4\n", NULL, NULL, "a: line 1, column 3: `x` is not a number");
  csv_fails("1,2,3,4\n1,,3,4\n", NULL, NULL, "a: line 2, column 2: `` is not a number");
  csv_fails("1,2,nan,4\n", NULL, NULL, "column 3: `nan` is not a number");
  csv_fails("1,2,1e999,4\n", NULL, NULL, "column 3: `1e999` does not fit input `x`: f32 holds");
  csv_fails("1e999,1e999,1e999,1\n1,2,3,4\n", NULL, NULL, "line 1, column 1: `1e999` does not fit");
  csv_fails("1,2,3,1e999\n", NULL, NULL, "column 4: `1e999` is 2^53 or more");
  csv_fails("1,2,1e300,4\n", NULL, NULL, "column 3: `1e300`|f32 holds");
  csv_fails("1,2,0x10,4\n", NULL, NULL, "column 3: `0x10` is not a number");
  csv_fails("1,2,3,10\n", NULL, NULL,
            "column 4: `10` does not fit input `y`: |whole numbers from 0 to 9");
  csv_fails("1,2,3,4.5\n", NULL, NULL, "column 4: `4.5`|whole numbers");
  csv_fails("1,2,3,-1\n", NULL, NULL, "column 4: `-1`|whole numbers");
  csv_fails("1,2,3,4\n", "header", "maybe", "`header` must be one of: false, true, not `maybe`");
  csv_fails("1,2,3,4\n", "label", "none", "label=none leaves nothing for input `y`");
  csv_fails("1,2,3,4\n", "label", "q", "a: label=\"q\" is the name of a column|no header");
  csv_fails("p,q,r,s\n1,2,3,4\n", "label", "Q", "a: line 1 names no column `Q`|`p,q,r,s`");
  csv_fails("p,q,r,q\n1,2,3,4\n", "label", "q",
            "a: line 1 names 2 columns `q`, the label|label = N");
  csv_fails("p,q,r\n1,2,3,4\n", "label", "q", "a: line 1 names 3 columns, but line 2 has 4");
  label_fails(4, "`label` must be a whole number from 0 to 3, not 4");
  label_fails(-1, "`label` must be a whole number from 0 to 3, not -1");
  csv_fails("1\t2\t3\t4\n\t\t\t\n", "delimiter", "tab", "a: line 2, column 1: `` is not a number");
  csv_fails("1e2e3e4\n", "delimiter", "e", "`delimiter` must be one character|not `e`");
  csv_fails("1,2,3,4\n", "delimiter", "::", "`delimiter` must be one character|not `::`");
  csv_fails("1,2,3,4\n", "delimeter", ";", "csv has no setting `delimeter`|delimiter");
  csv_fails("1,2,3\n", NULL, NULL, "line 1 has 3 columns, but inputs `x` and `y` take 3 and 1");
  csv_fails("1;2;3;4\n5;6;7;8\n", NULL, NULL,
            "line 2 has 1 column,|help: |split at `,`|3 of \";\": add delimiter=\";\"");
  csv_fails("1\t2\t3\t4\n", "header", "false", "has 1 column,|3 of \"tab\": add delimiter=\"tab\"");
  csv_fails("1 2 3 4\n", "header", "false", "has 1 column,|add delimiter=\" \"");
  csv_fails("1,5;2,5;3,5;4\n1,5;2,5;3,5;4\n", NULL, NULL, "add delimiter=\";\"");
  csv_fails("1,2,3,4\n5,6,7,8\n", "delimiter", ";", "split at `;`|3 of \",\": add delimiter=\",\"");
  csv_fails("1,2,3,4\n1,2;3,3,4\n", NULL, NULL, "column 2: `2;3` is not a number|1 of \";\"");
  fixture f;
  fixture_init(&f, "csv", 1, 1);
  set_input(&f, 0, MLRT_I64, 1, 1, 0, 0);
  set_file(&f, 0, text_bytes("9007199254740991\n-9007199254740991\n9007199254740993\n"));
  must_fail(&f, "2^53", "line 3, column 1: `9007199254740993` is 2^53 or more");
}

// Ids of two tables in one input.
static void limits_fail(const char *format, bytes b, const char *words) {
  static const int64_t limits[] = {2, 5, 0};
  fixture f;
  fixture_init(&f, format, 1, 1);
  set_input(&f, 0, MLRT_I32, 2, 1, 3, 0);
  f.inputs[0].limit = 2;
  f.inputs[0].limits = limits;
  set_file(&f, 0, b);
  must_fail(&f, words, words);
}

static void test_limits_of_elements(void) {
  limits_fail("csv", text_bytes("1,4,99\n1,5,99\n"), "line 2, column 2: `5`|from 0 to 4 here");
  limits_fail("csv", text_bytes("1,4,99\n2,4,99\n"), "line 2, column 1: `2`|from 0 to 1 here");
  const char *ints = "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3)}";
  limits_fail("npy", with(npy_header(1, ints), "\1\4\143\1\5\143"),
              "sample 1, element 1: 5 does not fit|from 0 to 4 here");
  const char *floats = "{'descr': '<f2', 'fortran_order': False, 'shape': (1, 3)}";
  bytes b = npy_header(1, floats);
  put(&b, (uint16_t[]){0x4000, 0x4000, 0x4000}, 6); // 2, 2, 2
  limits_fail("npy", b, "element 0: 2 does not fit|from 0 to 1 here");
}

// --- text, tokens ----------------------------------------------------------------------------
static void id_fixture(fixture *f, const char *format, bytes b) {
  fixture_init(f, format, 1, 2);
  set_input(f, 0, MLRT_U8, 2, 2, 4, 0);
  set_input(f, 1, MLRT_U8, 2, 2, 4, 0);
  set_file(f, 0, b);
}

static void test_text(void) {
  fixture f;
  id_fixture(&f, "text", text_bytes("abcd"));
  must_fail(&f, "short", "a: 4 ids are too few for one window of 5");
  id_fixture(&f, "text", text_bytes("abcdefgh"));
  set_num(&f, "window", 3);
  must_fail(&f, "window", "the window is 3 ids, but input `x` takes 4 a sample");
  id_fixture(&f, "text", text_bytes("abcdefgh"));
  f.inputs[0].limit = 7;
  must_fail(&f, "vocabulary", "a has 8 different characters, but input `x` takes 7");
  id_fixture(&f, "text", text_bytes("abcdefgh"));
  set_str(&f, "vocab", "words");
  must_fail(&f, "vocab", "`vocab` must be one of: chars, bytes");
  id_fixture(&f, "text", text_bytes("abcdefgh"));
  set_num(&f, "stride", 0);
  must_fail(&f, "stride", "`stride` must be a whole number from 1");
  id_fixture(&f, "text", text_bytes("abcdefgh"));
  set_num(&f, "range_lo", 1.5);
  must_fail(&f, "range", "`range_lo` must be a fraction");
  id_fixture(&f, "text", text_bytes("abcdefgh"));
  set_num(&f, "range_lo", 0.5);
  set_num(&f, "range_hi", 0.5);
  must_fail(&f, "empty range", "the range 50%..50% of 8 is empty");
  id_fixture(&f, "text", text_bytes("abcdefgh"));
  f.program.num_inputs = 3;
  set_input(&f, 2, MLRT_U8, 2, 2, 4, 0);
  must_fail(&f, "three inputs", "but the model has 3");
  id_fixture(&f, "parquet", text_bytes("abcdefgh"));
  must_fail(&f, "format", "unknown format `parquet`");
}

static void tokens_fail(bytes b, const char *key, const char *value, const char *words) {
  fixture f;
  id_fixture(&f, "tokens", b);
  if (key)
    set_str(&f, key, value);
  must_fail(&f, words, words);
}

static void test_tokens(void) {
  tokens_fail(text_bytes("odd number of bytes"), NULL, NULL, "a: 19 bytes are no whole number");
  tokens_fail(cut(tokens(20240520, 1, 16), 600), NULL, NULL, "a: is cut off inside its 1024-byte");
  tokens_fail(cut(tokens(20240520, 1, 16), 1040), NULL, NULL, "a: its header says 16 ids|16 bytes");
  tokens_fail(tokens(20240520, 1, 15), NULL, NULL, "a: its header says 15 ids (30 bytes), but 32");
  tokens_fail(tokens(20240520, 1, ~0u), NULL, NULL, "a: its header says 4294967295 ids");
  tokens_fail(tokens(20240520, 2, 16), NULL, NULL, "a: version 2 of the header is not known");
  tokens_fail(tokens(20240520, 1, 16), "dtype", "u32",
              "its header says u16 ids, the data entry u32");
  tokens_fail(tokens(77, 1, 16), "header", "true",
              "a: its header begins with 77, not with 20240520");
  tokens_fail(tokens(77, 1, 16), "dtype", "i8", "`dtype` must be one of: u16, u32");
  bytes ids = {0};
  put(&ids, "\1\0\2\0\3\0\4\0\0\1", 10);
  fixture f;
  id_fixture(&f, "tokens", ids);
  must_fail(&f, "id above u8", "a: sample 0, element 3: 256 does not fit input `y`");
}

// --- gz --------------------------------------------------------------------------------------
static void test_gz(void) {
  bytes good = gz(images());
  idx_fails(cut(good, good.len / 2), labels(), "gz cut", "a: the .gz file is cut off after");
  idx_fails(cut(good, good.len - 3), labels(), "gz trailer cut", "a: the .gz file is cut off");
  idx_fails(cut(good, 3), labels(), "gz header cut", "a: the .gz file is cut off after 3 bytes");
  idx_fails(with(gz(images()), "junk"), labels(), "gz trailing", "a: 4 bytes follow the end|byte");
  bytes more = gz(images());
  put(&more, "\0junk", 5);
  idx_fails(more, labels(), "gz zero and more", "a: 5 bytes follow the end|byte");
  bytes crc = gz(images());
  crc.at[crc.len - 8] ^= 1;
  idx_fails(crc, labels(), "gz crc", "a: the .gz file is damaged|incorrect data check");
  bytes length = gz(images());
  length.at[length.len - 1] ^= 1;
  idx_fails(length, labels(), "gz length", "a: the .gz file is damaged|incorrect length check");
  bytes body = gz(images());
  body.at[10] ^= 0xff;
  idx_fails(body, labels(), "gz body", "a: the .gz file is damaged at byte");
  idx_fails(gz(text_bytes("")), labels(), "gz of nothing", "a: is empty when unpacked");
  idx_fails(gz(cut(images(), 20)), labels(), "gz of a cut file", "a: is cut off");
}

// 64 MiB of zeros behind a header that asks for 24 bytes: unpacking stops at once.
static void test_gz_bomb(void) {
  bytes bomb = images();
  size_t zeros = 64u << 20;
  unsigned char *large = calloc(1, bomb.len + zeros);
  memcpy(large, bomb.at, bomb.len);
  bomb = (bytes){large, bomb.len + zeros};
  idx_fails(gz(bomb), labels(), "gz bomb", "a: unpacks to more bytes than its own header|(40)");
  free(large);
}

// Two members are one file, and zeros behind them are none of it.
static void test_gz_members(void) {
  static const unsigned char zeros[100] = {0};
  bytes first = gz(cut(images(), 20)), rest = images();
  rest.at += 20;
  rest.len -= 20;
  bytes second = gz(rest);
  put(&first, second.at, second.len);
  put(&first, zeros, sizeof zeros);
  fixture f;
  idx_fixture(&f, first, labels());
  mlrt_dataset *d = must_open(&f, MLRT_USE_TRAIN, "two members");
  CHECK(mlrt_data_size(d) == 4, "%lld", (long long)mlrt_data_size(d));
  mlrt_data_close(d);
}

// --- everything ------------------------------------------------------------------------------
// Opens whatever it is; when it opens, reads the first and the last sample.
static void try_file(const char *format, bytes b) {
  fixture f;
  id_fixture(&f, format, b);
  bool array = strcmp(format, "idx") == 0 || strcmp(format, "npy") == 0;
  unsigned char *exact = malloc(b.len + 1); // so that a sanitizer sees one byte too far
  memcpy(exact, b.at, b.len);
  f.embedded[0].data = exact;
  f.inputs[0].dtype = MLRT_F32;
  f.inputs[0].dims[1] = array ? 6 : 3;
  f.inputs[1] = f.inputs[0];
  if (strcmp(format, "csv") == 0)
    f.inputs[1].dims[1] = 1;
  f.program.num_inputs = array ? 1 : 2;
  mlrt_dataset *d = open_fixture(&f, MLRT_USE_TRAIN);
  if (d) {
    float x[6], y[6];
    int64_t ends[2] = {0, mlrt_data_size(d) - 1};
    for (int i = 0; i < 2; i++)
      mlrt_data_fill(d, &ends[i], 1, (char *[]){(char *)x, (char *)y}, &f.error);
    mlrt_data_close(d);
  } else
    CHECK(strncmp(f.error.text, "data `train`: ", 14) == 0, "%s", f.error.text);
  free(exact);
}

static void try_all_changes(const char *format, bytes b) {
  for (size_t len = 0; len <= b.len; len++)
    try_file(format, cut(b, len));
  static const unsigned char values[] = {0, 1, 0x7f, 0x80, 0xff, '0', ',', '\n', '\'', '('};
  for (size_t at = 0; at < b.len; at++) {
    unsigned char old = b.at[at];
    for (size_t v = 0; v < sizeof values; v++) {
      b.at[at] = values[v];
      try_file(format, b);
    }
    b.at[at] = old;
  }
}

static void test_all_changes(void) {
  bytes csv = text_bytes("a,b,c,d\n1,2.5,-3e2,4\n5,6,\"7\",8\n");
  bytes npy = array("{'descr': '|u1', 'fortran_order': False, 'shape': (4, 2, 3)}");
  try_all_changes("idx", images());
  try_all_changes("idx", gz(images()));
  try_all_changes("npy", npy);
  try_all_changes("csv", csv);
  try_all_changes("csv", gz(csv));
  try_all_changes("text", text_bytes("some text"));
  try_all_changes("tokens", tokens(20240520, 1, 16));
}

int main(void) {
  test_idx();
  test_idx_values();
  test_npy();
  test_npy_shapes();
  test_npy_bools();
  test_csv();
  test_limits_of_elements();
  test_text();
  test_tokens();
  test_gz();
  test_gz_bomb();
  test_gz_members();
  test_all_changes();
  return failures != 0;
}
