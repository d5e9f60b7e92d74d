// fuzz_readers.c: libFuzzer harness for the data readers; one binary per format (FUZZ_FORMAT).
//
// The first byte of an input chooses the shape of the model (see `choose`), the rest is the file.
// Whatever opens is then read: the first, the last and a middle sample must stay inside the file.
#include "runtime/data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef FUZZ_FORMAT
#error "FUZZ_FORMAT is the format to read: \"idx\", \"csv\", \"npy\", \"text\" or \"tokens\""
#endif

enum { BATCH = 3, MAX_ELEMENTS = 4 };

typedef struct setup {
  mlrt_input inputs[2];
  mlrt_embedded files[2];
  const char *names[2];
  mlrt_setting settings[2];
  mlrt_data spec;
  mlrt_program program;
} setup;

static void choose_settings(setup *s, uint8_t choice) {
  if (choice & 32) {
    s->settings[0] = (mlrt_setting){.key = "range_lo", .num = 0.25};
    s->settings[1] = (mlrt_setting){.key = "range_hi", .num = 0.75};
    s->spec.num_settings = 2;
  } else if ((choice & 64) && strcmp(FUZZ_FORMAT, "tokens") == 0) {
    s->settings[0] = (mlrt_setting){.key = "dtype", .kind = MLRT_SET_STR, .str = "u32"};
    s->spec.num_settings = 1;
  } else if ((choice & 64) && strcmp(FUZZ_FORMAT, "csv") == 0) {
    s->settings[0] = (mlrt_setting){.key = "label", .kind = MLRT_SET_STR, .str = "first"};
    s->spec.num_settings = 1;
  }
}

// bits 0-2: dtype; 3: two inputs; 4: elements per sample 1 or 4; 5, 6: settings; 7: evaluation.
static void choose(setup *s, uint8_t choice, const uint8_t *data, size_t len) {
  static const mlrt_dtype dtypes[8] = {MLRT_BOOL, MLRT_U8,  MLRT_U16, MLRT_I32,
                                       MLRT_U32,  MLRT_I64, MLRT_F32, MLRT_F64};
  bool arrays = strcmp(FUZZ_FORMAT, "idx") == 0 || strcmp(FUZZ_FORMAT, "npy") == 0;
  int inputs = choice & 8 ? 2 : 1;
  memset(s, 0, sizeof *s);
  for (int i = 0; i < 2; i++) {
    s->names[i] = "file";
    s->inputs[i] = (mlrt_input){.name = i ? "y" : "x",
                                .dtype = dtypes[choice & 7],
                                .rank = 2,
                                .dims = {BATCH, choice & 16 ? MAX_ELEMENTS : 1},
                                .limit = choice & 32 ? 100 : 0};
  }
  s->files[0] = (mlrt_embedded){"file", data, len};
  s->spec = (mlrt_data){.name = "fuzz",
                        .format = FUZZ_FORMAT,
                        .files = s->names,
                        .num_files = arrays ? inputs : 1,
                        .settings = s->settings};
  s->program = (mlrt_program){
      .inputs = s->inputs, .num_inputs = inputs, .embedded = s->files, .num_embedded = 1};
  choose_settings(s, choice);
}

static void read_samples(const mlrt_dataset *d) {
  static char out[2][BATCH * MAX_ELEMENTS * 8];
  int64_t size = mlrt_data_size(d);
  int64_t samples[BATCH] = {0, size - 1, size / 2};
  mlrt_error e;
  if (size < 1)
    abort();
  mlrt_data_fill(d, samples, BATCH, (char *[]){out[0], out[1]}, &e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
  if (len < 1)
    return 0;
  setup s;
  mlrt_error e = {.text = ""};
  uint8_t *exact = malloc(len - 1 ? len - 1 : 1); // a copy of its own: one byte too far is seen
  memcpy(exact, data + 1, len - 1);
  choose(&s, data[0], exact, len - 1);
  mlrt_use use = data[0] & 128 ? MLRT_USE_EVAL : MLRT_USE_TRAIN;
  mlrt_dataset *d = mlrt_data_open(&s.program, &s.spec, use, NULL, NULL, NULL, &e);
  if (d)
    read_samples(d);
  else if (strncmp(e.text, "data `fuzz`: ", 13) != 0)
    abort(); // an error must say what is wrong
  mlrt_data_close(d);
  free(exact);
  return 0;
}
