// support_data.h: what the tests of the data side share: checks, programs, files in memory.
#ifndef TESTS_SUPPORT_DATA_H
#define TESTS_SUPPORT_DATA_H

#include "runtime/data_reader.h"
#include "tests/support_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

// Bytes of files that are read in place, of the system's file cache.
static inline int64_t mapped_bytes(const mlrt_dataset *d) {
  int64_t total = 0;
  for (int i = 0; i < d->num_files; i++)
    if (d->files[i].memory == MLRT_MEM_MAPPED)
      total += d->files[i].map_bytes;
  return total;
}

// A growing file in memory. The bytes of all files of a test lie in one pool, never freed.
typedef struct bytes {
  unsigned char *at;
  size_t len;
} bytes;

static unsigned char pool[16 << 20];
static size_t pool_used;

static inline void put(bytes *b, const void *data, size_t len) {
  bool last = b->at && b->at + b->len == pool + pool_used;
  size_t more = last ? len : b->len + len + 1;
  if (pool_used + more > sizeof pool) {
    fprintf(stderr, "support_data.h: the pool is full\n");
    exit(1);
  }
  if (!last) {
    if (b->len)
      memcpy(pool + pool_used + 1, b->at, b->len); // + 1: apart from the file before
    b->at = pool + pool_used + 1;
  }
  if (len)
    memcpy(b->at + b->len, data, len);
  b->len += len;
  pool_used += more;
}

static inline bytes text_bytes(const char *text) {
  bytes b = {0};
  put(&b, text, strlen(text));
  return b;
}

static inline void put_be32(bytes *b, uint32_t v) {
  unsigned char at[4] = {(unsigned char)(v >> 24), (unsigned char)(v >> 16),
                         (unsigned char)(v >> 8), (unsigned char)v};
  put(b, at, 4);
}

static inline void put_le32(bytes *b, uint32_t v) {
  put(b, &v, 4);
}

// The header of an IDX file.
static inline bytes idx_header(int type, int rank, const uint32_t *dims) {
  bytes b = {0};
  unsigned char magic[4] = {0, 0, (unsigned char)type, (unsigned char)rank};
  put(&b, magic, 4);
  for (int i = 0; i < rank; i++)
    put_be32(&b, dims[i]);
  return b;
}

// A .npy file of version 1 or 2 with this dictionary.
static inline bytes npy_header(int version, const char *dictionary) {
  bytes b = {0};
  unsigned char magic[8] = {0x93, 'N', 'U', 'M', 'P', 'Y', (unsigned char)version, 0};
  uint32_t len = (uint32_t)strlen(dictionary);
  put(&b, magic, 8);
  put(&b, &len, version == 1 ? 2 : 4);
  put(&b, dictionary, len);
  return b;
}

static inline bytes gz(bytes plain) {
  z_stream z = {0};
  bytes out = {0};
  deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  size_t most = deflateBound(&z, plain.len) + 64;
  unsigned char *packed = malloc(most);
  z.next_in = plain.at;
  z.avail_in = (uInt)plain.len;
  z.next_out = packed;
  z.avail_out = (uInt)most;
  deflate(&z, Z_FINISH);
  put(&out, packed, z.total_out);
  deflateEnd(&z);
  free(packed);
  return out;
}

// A program with up to two inputs and files "a", "b" carried in it.
typedef struct fixture {
  mlrt_input inputs[3];
  mlrt_embedded embedded[3];
  mlrt_setting settings[6];
  const char *files[3];
  mlrt_data spec;
  mlrt_program program;
  mlrt_known_characters known;
  mlrt_error error;
} fixture;

static inline void fixture_init(fixture *f, const char *format, int num_files, int num_inputs) {
  static const char *const names[] = {"a", "b", "c"};
  memset(f, 0, sizeof *f);
  for (int i = 0; i < 3; i++) {
    f->files[i] = f->embedded[i].name = names[i];
    f->inputs[i].name = i == 0 ? "x" : i == 1 ? "y" : "z";
  }
  f->spec = (mlrt_data){.name = "train",
                        .format = format,
                        .files = f->files,
                        .num_files = num_files,
                        .settings = f->settings};
  f->program = (mlrt_program){.abi = MLRT_ABI,
                              .inputs = f->inputs,
                              .num_inputs = num_inputs,
                              .data = &f->spec,
                              .num_data = 1,
                              .embedded = f->embedded};
}

static inline void set_input(fixture *f, int i, mlrt_dtype dtype, int rank, int64_t d0, int64_t d1,
                             int64_t d2) {
  f->inputs[i].dtype = dtype;
  f->inputs[i].rank = rank;
  f->inputs[i].dims[0] = d0;
  f->inputs[i].dims[1] = d1;
  f->inputs[i].dims[2] = d2;
}

static inline void set_file(fixture *f, int i, bytes b) {
  f->embedded[i].data = b.at;
  f->embedded[i].len = b.len;
  if (f->program.num_embedded <= i)
    f->program.num_embedded = i + 1;
}

static inline void set_num(fixture *f, const char *key, double v) {
  f->settings[f->spec.num_settings++] = (mlrt_setting){.key = key, .kind = MLRT_SET_NUM, .num = v};
}

static inline void set_str(fixture *f, const char *key, const char *v) {
  f->settings[f->spec.num_settings++] = (mlrt_setting){.key = key, .kind = MLRT_SET_STR, .str = v};
}

static inline mlrt_dataset *open_fixture(fixture *f, mlrt_use use) {
  f->error.text[0] = '\0';
  return mlrt_data_open(&f->program, &f->spec, use, NULL, NULL, &f->known, &f->error);
}

// The dataset must open.
static inline mlrt_dataset *must_open(fixture *f, mlrt_use use, const char *what) {
  mlrt_dataset *d = open_fixture(f, use);
  if (!d) {
    fprintf(stderr, "%s: does not open: %s\n", what, f->error.text);
    exit(1);
  }
  return d;
}

// It must not open (or, opened, not fill), and the message must hold all of `words` ("a|b|c").
static inline void must_fail(fixture *f, const char *what, const char *words) {
  mlrt_dataset *d = open_fixture(f, MLRT_USE_TRAIN);
  if (d) {
    static char out[2][1 << 16];
    char *ptrs[3] = {out[0], out[1], out[1]};
    int64_t last = mlrt_data_size(d) - 1;
    bool filled = mlrt_data_fill(d, &last, 1, ptrs, &f->error);
    mlrt_data_close(d);
    if (filled) {
      fprintf(stderr, "%s: must fail and does not\n", what);
      failures++;
      return;
    }
  }
  char copy[256];
  snprintf(copy, sizeof copy, "%s", words);
  for (char *word = strtok(copy, "|"); word; word = strtok(NULL, "|"))
    CHECK(strstr(f->error.text, word), "%s: the message lacks `%s`: %s", what, word, f->error.text);
  CHECK(!strchr(f->error.text, '\t'), "%s", f->error.text);
}

// Sample `index` of the dataset into x and y.
static inline void fill(const mlrt_dataset *d, int64_t index, void *x, void *y) {
  mlrt_error e = {.text = ""};
  char *ptrs[2] = {x, y};
  if (!mlrt_data_fill(d, &index, 1, ptrs, &e)) {
    fprintf(stderr, "fill: %s\n", e.text);
    exit(1);
  }
}

static inline void write_file(const char *path, const char *text) {
  FILE *out = fopen(path, "w");
  fputs(text, out);
  fclose(out);
}

#endif
