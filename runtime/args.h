// args.h: the trainer's command line: one command, fixed options, and the graph's own flags.
//
// The parser is a table and not getopt_long: getopt_long takes abbreviations (`--l=1` would set
// `--lr`), knows nothing of options that belong to one command only, and keeps global state.
// On a name collision the graph's flag wins (so a graph may declare `flag seed`).
#ifndef RUNTIME_ARGS_H
#define RUNTIME_ARGS_H

#include <stdio.h>

#include "runtime/characters.h"
#include "runtime/error.h"
#include "runtime/mlrt.h"

typedef enum mlrt_command {
  MLRT_CMD_TRAIN,
  MLRT_CMD_EVAL,
  MLRT_CMD_PREDICT,
  MLRT_CMD_CHECK,
  MLRT_CMD_INFO,
  MLRT_NUM_COMMANDS
} mlrt_command;

// A run-time value of the graph: `flag lr = 0.1`.
typedef struct mlrt_flag {
  const mlrt_tensor *state;
  double value; // what the run uses
  bool given;   // on the command line
} mlrt_flag;

typedef struct mlrt_options {
  mlrt_command command;
  bool for_gpu; // the program is; others do not know the GPU's options
  bool help, version, quiet;
  bool resume;             // --resume without a file: from `save`
  const char *resume_file; // --resume=FILE
  const char *weights;     // --weights=FILE
  bool allow_missing;      // in it
  const char *save;        // --save=FILE
  char *default_save;      // where it is not given: MODEL.safetensors
  bool no_save;
  const char *data_dir, *metrics, *profile, *split, *out; // NULL: not given
  const char *kernel_times;                               // a file
  bool no_times, stop_on_nan, no_huge_pages;
  int64_t device;                // GPU: its number
  bool no_cuda_graph;            // GPU: launches one by one
  int64_t threads;               // 0: not given
  int64_t save_every, log_every; // steps; 0: not given
  int64_t seed;
  bool seed_given;
  mlrt_flag *flags; // all of the program, in its order
  int num_flags;
  mlrt_known_characters known; // of the file that the run begins with, once it is open
} mlrt_options;

// Fills `o`; false after setting `e` (wrong usage). Free with mlrt_options_free either way.
bool mlrt_options_parse(mlrt_options *o, const mlrt_program *p, int argc, char **argv,
                        mlrt_error *e);
void mlrt_options_free(mlrt_options *o);
void mlrt_options_help(const mlrt_options *o, const mlrt_program *p, const char *self, FILE *out);

mlrt_flag *mlrt_find_flag(const mlrt_options *o, const char *name); // NULL when absent
bool mlrt_flag_holds(const mlrt_flag *f, double value);             // its type can
int mlrt_flag_digits(const mlrt_flag *f); // that its values are printed with: whole numbers in full
// Checks that `value` is one that the flag's type can hold. False after setting `e`.
bool mlrt_flag_set(mlrt_flag *f, const char *text, mlrt_error *e);

#endif
