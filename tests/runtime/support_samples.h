// support_samples.h: the toy program on files of samples whose numbers nobody looks at before they are used: one of
// them may be bad, and is repaired when the file is written again.
#ifndef TESTS_SUPPORT_SAMPLES_H
#define TESTS_SUPPORT_SAMPLES_H

#include "tests/runtime/support_program.h"

// An array of numbers of four bytes, as NumPy writes it.
static inline void write_npy(const char *path, const char *type, int rows, int columns,
                             const void *from) {
  char text[128];
  snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (%d, %d), }", type,
           rows, columns);
  FILE *f = fopen(path, "w");
  fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, f);
  fprintf(f, "%-117s\n", text);
  fwrite(from, 4, (size_t)(rows * columns), f);
  fclose(f);
}

// Samples in files X-PREFIX.npy and Y-PREFIX.npy; bad >= 0: the label of that one is no class.
static inline void write_samples(const char *prefix, int num, int bad) {
  float x[TOY_TRAIN * TOY_X];
  int32_t y[TOY_TRAIN];
  for (int i = 0; i < num * TOY_X; i++)
    x[i] = (float)(i * 37 % 101) / 50 - 1;
  for (int i = 0; i < num; i++)
    y[i] = i == bad ? 7 : x[i * TOY_X] + x[i * TOY_X + 2] > 0.3f;
  char path[64];
  snprintf(path, sizeof path, "x-%s.npy", prefix);
  write_npy(path, "<f4", num, TOY_X, x);
  snprintf(path, sizeof path, "y-%s.npy", prefix);
  write_npy(path, "<i4", num, 1, y);
}

// A toy program that reads the files `train` and `test`, in file order, and saves at its end only.
typedef struct from_files {
  mlrt_data data[2];
  mlrt_setting config[6];
  mlrt_program program;
} from_files;

static inline void read_files(from_files *p, const mlrt_program *base, int accumulate,
                              int eval_every) {
  static const char *const train[] = {"x-train.npy", "y-train.npy"};
  static const char *const test[] = {"x-test.npy", "y-test.npy"};
  *p = (from_files){{{"train", "npy", train, 2, NULL, 0}, {"test", "npy", test, 2, NULL, 0}},
                    {{"steps", MLRT_SET_FLAG, 0, "steps"},
                     {"shuffle", MLRT_SET_NUM, 0, NULL},
                     {"log_every", MLRT_SET_NUM, 4, NULL},
                     {"accumulate", MLRT_SET_NUM, accumulate, NULL},
                     {"eval", MLRT_SET_STR, 0, "test"},
                     {"eval_every", MLRT_SET_NUM, eval_every, NULL}},
                    *base};
  p->program.data = p->data;
  p->program.config = p->config;
  p->program.num_config = 6;
}

#endif
