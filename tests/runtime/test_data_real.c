// test_data_real.c: the real data sets: handwritten digits (in the repository), and MNIST and the
// Shakespeare text where ../shared/data or $MLTC_DATA has them.
#include "tests/runtime/support_data.h"

#include <unistd.h>

static const char *data_dir(void) {
  const char *dir = getenv("MLTC_DATA");
  return dir ? dir : "../shared/data";
}

static mlrt_dataset *open_files(fixture *f, const char *dir, mlrt_use use) {
  f->program.num_embedded = 0;
  mlrt_dataset *d = mlrt_data_open(&f->program, &f->spec, use, dir, NULL, NULL, &f->error);
  if (!d) {
    fprintf(stderr, "%s\n", f->error.text);
    exit(1);
  }
  return d;
}

static bool have(const char *name) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", data_dir(), name);
  if (access(path, R_OK) == 0)
    return true;
  printf("SKIPPED: no %s (scripts/fetch-data downloads it; MLTC_DATA=DIR says where it is)\n",
         path);
  return false;
}

static void test_digits(void) {
  fixture f;
  unsigned char image[64], label;
  fixture_init(&f, "csv", 1, 2);
  f.files[0] = "digits.csv.gz";
  set_input(&f, 0, MLRT_U8, 3, 32, 8, 8);
  set_input(&f, 1, MLRT_U8, 1, 32, 0, 0);
  f.inputs[0].limit = 17;
  f.inputs[1].limit = 10;
  mlrt_dataset *d = open_files(&f, "examples/data", MLRT_USE_EVAL);
  CHECK(mlrt_data_size(d) == 1797, "%lld", (long long)mlrt_data_size(d));
  int64_t counts[10] = {0};
  for (int64_t i = 0; i < 1797; i++) {
    mlrt_data_fill(d, &i, 1, (char *[]){(char *)image, (char *)&label}, &f.error);
    counts[label]++;
  }
  CHECK(counts[0] == 178 && counts[9] == 180, "%lld, %lld", (long long)counts[0],
        (long long)counts[9]);
  CHECK(image[2] == 10 && image[3] == 14 && label == 8, "the last digit is another: %d %d %d",
        image[2], image[3], label);
  mlrt_data_close(d);
}

static void test_mnist(void) {
  fixture f;
  static unsigned char image[784];
  unsigned char label;
  fixture_init(&f, "idx", 2, 2);
  f.files[0] = "train-images-idx3-ubyte.gz";
  f.files[1] = "train-labels-idx1-ubyte.gz";
  if (!have(f.files[0]) || !have(f.files[1]))
    return;
  set_input(&f, 0, MLRT_U8, 3, 64, 28, 28);
  set_input(&f, 1, MLRT_U8, 1, 64, 0, 0);
  mlrt_dataset *d = open_files(&f, data_dir(), MLRT_USE_TRAIN);
  CHECK(mlrt_data_size(d) == 60000, "%lld", (long long)mlrt_data_size(d));
  static const unsigned char first[] = {5, 0, 4, 1, 9, 2, 1, 3, 1, 4};
  for (int64_t i = 0; i < 10; i++) {
    mlrt_data_fill(d, &i, 1, (char *[]){(char *)image, (char *)&label}, &f.error);
    CHECK(label == first[i], "label %lld is %d", (long long)i, label);
  }
  int64_t sum = 0, zero = 0;
  mlrt_data_fill(d, &zero, 1, (char *[]){(char *)image, (char *)&label}, &f.error);
  for (int i = 0; i < 784; i++)
    sum += image[i];
  CHECK(sum == 27525, "the first image sums to %lld", (long long)sum);
  mlrt_data_close(d);
}

static void test_shakespeare(void) {
  fixture f;
  int32_t x[64], y[64];
  static const int32_t ids[] = {18, 47, 56, 57, 58, 1,  15, 47,
                                58, 47, 64, 43, 52, 10, 0}; // as nanoGPT has them
  fixture_init(&f, "text", 1, 2);
  f.files[0] = "tinyshakespeare.txt";
  if (!have(f.files[0]))
    return;
  set_input(&f, 0, MLRT_I32, 2, 12, 64, 0);
  set_input(&f, 1, MLRT_I32, 2, 12, 64, 0);
  set_str(&f, "vocab", "chars");
  set_num(&f, "range_lo", 0);
  set_num(&f, "range_hi", 0.9);
  mlrt_dataset *d = open_files(&f, data_dir(), MLRT_USE_TRAIN);
  CHECK(mlrt_data_size(d) == 1003854 - 64, "%lld", (long long)mlrt_data_size(d));
  CHECK(mlrt_data_resident_bytes(d) == 0 && mapped_bytes(d) > 1115394, "mapped in place");
  int64_t first = 0;
  mlrt_data_fill(d, &first, 1, (char *[]){(char *)x, (char *)y}, &f.error);
  CHECK(memcmp(x, ids, sizeof ids) == 0, "it does not begin with \"First Citizen:\\n\"");
  CHECK(memcmp(x + 1, y, 63 * sizeof *x) == 0, "targets are not the text that follows");
  mlrt_data_close(d);
  f.settings[1].num = 0.9;
  f.settings[2].num = 1;
  d = open_files(&f, data_dir(), MLRT_USE_EVAL);
  CHECK(mlrt_data_size(d) == (1115394 - 1003854 - 1) / 64, "%lld", (long long)mlrt_data_size(d));
  mlrt_data_close(d);
}

int main(void) {
  test_digits();
  test_mnist();
  test_shakespeare();
  return failures != 0;
}
