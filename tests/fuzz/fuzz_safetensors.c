// fuzz_safetensors.c: libFuzzer harness for the header reader: no input may crash it, and what it
// accepts must hold what its comment promises.
#include "runtime/safetensors.h"

#include <stdlib.h>
#include <string.h>

static void require(bool cond) {
  if (!cond)
    abort();
}

// Tensors fill the data; names can be found again; everything that is written can be read.
static void check(mlrt_st_header *h, int64_t data_bytes) {
  int64_t sum = 0;
  for (int i = 0; i < h->num_tensors; i++) {
    const mlrt_st_tensor *t = &h->tensors[i];
    require(t->begin >= 0 && t->begin <= t->end && t->end <= data_bytes);
    require(t->rank >= 0 && t->rank <= MLRT_MAX_RANK);
    require(mlrt_st_find(h, t->name) == t);
    sum += t->end - t->begin;
  }
  require(sum == data_bytes);
  for (int i = 0; i < h->num_pairs; i++)
    require(mlrt_st_value(h, h->pairs[i].key) != NULL);
}

static void round_trip(const mlrt_st_header *h, int64_t data_bytes) {
  size_t len = mlrt_st_write(NULL, 0, h->tensors, h->num_tensors, h->pairs, h->num_pairs);
  char *out = malloc(len + 1);
  require(out &&
          mlrt_st_write(out, len, h->tensors, h->num_tensors, h->pairs, h->num_pairs) == len);
  memmove(out, out + 8, len - 8);
  mlrt_st_header again;
  mlrt_error e;
  require(mlrt_st_parse(&again, out, len - 8, data_bytes, &e));
  require(again.num_tensors == h->num_tensors && again.num_pairs == h->num_pairs);
  for (int i = 0; i < h->num_tensors; i++)
    require(!strcmp(again.tensors[i].name, h->tensors[i].name));
  mlrt_st_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 1)
    return 0;
  int64_t data_bytes = data[0]; // the first byte says how much data would follow
  char *text = malloc(size);
  memcpy(text, data + 1, size - 1);
  mlrt_st_header h;
  mlrt_error e;
  if (!mlrt_st_parse(&h, text, size - 1, data_bytes, &e))
    return 0;
  check(&h, data_bytes);
  round_trip(&h, data_bytes);
  mlrt_st_free(&h);
  return 0;
}
