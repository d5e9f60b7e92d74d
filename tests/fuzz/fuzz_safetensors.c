// fuzz_safetensors.c: libFuzzer harness for the header reader and for what --weights makes of a
// header: no input may crash them, and what they accept must hold what their comments promise.
#include "runtime/number_io.h"
#include "runtime/weights.h"

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

// A program with a state of every kind that weights know.
static const mlrt_tensor states[] = {
    {"a", MLRT_F32, 1, {2}, 0, 8, MLRT_PARAM, 0, NULL},
    {"b", MLRT_F16, 2, {1, 3}, 8, 6, MLRT_FROZEN, 0, NULL},
    {"s", MLRT_I64, 0, {0}, 16, 8, MLRT_BUFFER, 0, NULL},
    {"a.m", MLRT_F32, 1, {2}, 24, 8, MLRT_MOMENT, 0, NULL},
};
enum { STATES = sizeof states / sizeof states[0], WEIGHTS = 3 };

// Reads and writes exactly the bytes of the tensor and of the state.
static void convert(const mlrt_st_tensor *x, const mlrt_tensor *t, const uint8_t *data,
                    size_t size) {
  size_t bytes = (size_t)(x->end - x->begin);
  char *from = calloc(bytes, 1), *to = malloc((size_t)t->bytes);
  mlrt_dtype type = MLRT_F32;
  require(from && to && mlrt_st_dtype_of(x->dtype, &type));
  memcpy(from, data, size < bytes ? size : bytes);
  mlrt_weights_convert(to, t->dtype, from, type, t->bytes / mlrt_dtype_bytes(t->dtype));
  free(from);
  free(to);
}

// Each weight is loaded, missing or different; each tensor is one of them or not used.
static void match(const mlrt_st_header *h, const uint8_t *data, size_t size) {
  mlrt_program p = {.states = states, .num_states = STATES};
  mlrt_weights w = {.header = *h};
  mlrt_error e;
  require(mlrt_weights_match(&w, &p, &e));
  require(w.loaded + w.missing + w.different == WEIGHTS);
  require(w.loaded + w.different + w.unused == h->num_tensors);
  require(w.converted <= w.loaded && w.frozen_missing <= w.missing);
  require(memchr(w.report.text, 0, sizeof w.report.text) != NULL);
  bool fine = mlrt_weights_suit(&w, true, &e);
  require(!fine || (!w.different && !w.frozen_missing && w.loaded));
  int found = 0;
  for (int i = 0; i < STATES; i++) {
    const mlrt_st_tensor *x = mlrt_weights_find(&w, &states[i]);
    found += x != NULL;
    if (x)
      convert(x, &states[i], data, size);
  }
  require(found == w.loaded);
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
  match(&h, data, size);
  mlrt_st_free(&h);
  return 0;
}
