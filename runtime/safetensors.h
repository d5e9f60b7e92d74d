// safetensors.h: the header of a safetensors file: reading (strictly) and writing.
//
//   8 bytes: length N of the header, little-endian; N bytes of JSON; tensor data.
//   {"__metadata__":{"key":"text"}, "name":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},
//   ...}
//
// Offsets count from the end of the header; tensors must fill the data without hole or overlap.
#ifndef RUNTIME_SAFETENSORS_H
#define RUNTIME_SAFETENSORS_H

#include "runtime/error.h"
#include "runtime/dtype.h"

typedef struct mlrt_st_tensor {
  const char *name, *dtype; // "F32"
  int rank;
  int64_t dims[MLRT_MAX_RANK];
  int64_t begin, end;
} mlrt_st_tensor;

typedef struct mlrt_st_pair {
  const char *key, *value;
} mlrt_st_pair;

typedef struct mlrt_st_header {
  mlrt_st_tensor *tensors; // sorted by name
  int num_tensors, cap_tensors;
  mlrt_st_pair *pairs; // __metadata__
  int num_pairs, cap_pairs;
  int64_t data_start; // in the file
  int64_t data_bytes;
  char *text; // owns the strings
} mlrt_st_header;

// Parses `len` bytes of JSON in front of `data_bytes` bytes of data. Takes over `text` (malloc'd,
// one byte longer than `len`) in either case. False after setting `e`; `h` is then empty.
bool mlrt_st_parse(mlrt_st_header *h, char *text, size_t len, int64_t data_bytes, mlrt_error *e);
// Reads the header of an open file. Messages do not repeat the file's name.
bool mlrt_st_read(mlrt_st_header *h, int fd, mlrt_error *e);
void mlrt_st_free(mlrt_st_header *h);
// All of it: a file that ends too early is an error.
bool mlrt_st_read_at(int fd, char *to, int64_t len, int64_t at, mlrt_error *e);

const mlrt_st_tensor *mlrt_st_find(const mlrt_st_header *h, const char *name); // NULL when absent
const char *mlrt_st_value(const mlrt_st_header *h, const char *key);           // NULL when absent
// Of the key that is `prefix` and then `name`, whose length nothing limits.
const char *mlrt_st_value_of(const mlrt_st_header *h, const char *prefix, const char *name);

const char *mlrt_st_dtype(mlrt_dtype t);                  // "F32"
bool mlrt_st_dtype_of(const char *name, mlrt_dtype *out); // false: no type of ours

// Writes length and header to `out` (`cap` bytes) and returns the bytes needed, like snprintf.
// Tensors in the order of their data; the header is padded so that data starts at a multiple of 8.
size_t mlrt_st_write(char *out, size_t cap, const mlrt_st_tensor *tensors, int num_tensors,
                     const mlrt_st_pair *pairs, int num_pairs);

#endif
