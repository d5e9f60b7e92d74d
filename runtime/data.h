// data.h: a program's data, from files to samples.
//
// mlrt_data_open reads the files that one `data` entry names (idx, csv, npy, text, tokens; plain
// or .gz; embedded or on disk) and checks them against the program's inputs. mlrt_data_fill copies
// samples into staging memory. Batches in order, prefetched by a thread: prefetch.h.
//
// A dataset does not change after it was opened: any thread may read it.
#ifndef RUNTIME_DATA_H
#define RUNTIME_DATA_H

#include "runtime/characters.h"
#include "runtime/error.h"
#include "runtime/mlrt.h"

typedef struct mlrt_dataset mlrt_dataset;

// Training cuts text into windows at every offset, evaluation into windows side by side
// (unless the setting `stride` says otherwise). Other formats do not care.
typedef enum mlrt_use { MLRT_USE_TRAIN, MLRT_USE_EVAL } mlrt_use;

// The present value of a flag that a setting refers to. `get` is only called during mlrt_data_open.
typedef struct mlrt_flag_values {
  double (*get)(const void *data, const char *name);
  const void *data;
} mlrt_flag_values;

// NULL on error: `e` names the file and the place in it. `data_dir`, `flags` and `known` may be NULL.
// A file is looked for among the embedded ones, then at its absolute path, in `data_dir`, in the
// folder of the program's source file, in the current folder. A name with * or ? is all files that fit it.
mlrt_dataset *mlrt_data_open(const mlrt_program *p, const mlrt_data *spec, mlrt_use use,
                             const char *data_dir, const mlrt_flag_values *flags,
                             const mlrt_known_characters *known, mlrt_error *e);
void mlrt_data_close(mlrt_dataset *d); // NULL is fine

const char *mlrt_data_name(const mlrt_dataset *d); // "train"
int64_t mlrt_data_size(const mlrt_dataset *d);     // samples (text, tokens: windows); at least 1
int mlrt_data_files(const mlrt_dataset *d); // over which its samples are spread (text, tokens); 1
// What its ids stand for; none where it is no text that was read with vocab=chars.
const mlrt_characters *mlrt_data_characters(const mlrt_dataset *d);
// Private memory that the data takes, until mlrt_data_close: unpacked .gz files, parsed csv. Not files read
// in place: their pages are shared with the system's file cache, which it may drop at any time.
int64_t mlrt_data_resident_bytes(const mlrt_dataset *d);

// Copies samples sample_index[0..n) to the inputs: sample j of input i goes to row j of
// input_ptrs[i], converted to the input's dtype. False when a value does not fit (`e` names file
// and sample). Does not allocate. Indices must be in [0, mlrt_data_size).
bool mlrt_data_fill(const mlrt_dataset *d, const int64_t *sample_index, int64_t n,
                    char *const *input_ptrs, mlrt_error *e);
// One sample, to row `row` of each input.
bool mlrt_data_copy(const mlrt_dataset *d, int64_t index, int64_t row, char *const *input_ptrs,
                    mlrt_error *e);
// Tells the processor that a sample will be copied soon.
void mlrt_data_prefetch(const mlrt_dataset *d, int64_t index);
int64_t mlrt_data_sample_bytes(const mlrt_dataset *d); // of all inputs' rows together

#endif
