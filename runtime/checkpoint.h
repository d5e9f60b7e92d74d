// checkpoint.h: everything that a run needs to go on bit for bit, in one safetensors file.
//
// Saving: temporary name in the same folder, fsync, rename, fsync of the folder; whatever goes
// wrong, the earlier file stays whole. Loading: header, shapes, types and the checksum of the
// data are verified before any state is touched. Keys of the metadata: docs/runtime.md.
#ifndef RUNTIME_CHECKPOINT_H
#define RUNTIME_CHECKPOINT_H

#include "runtime/characters.h"
#include "runtime/device.h"
#include "runtime/keep.h"
#include "runtime/prefetch.h"
#include "runtime/safetensors.h"

// Scalar results of one function that are logged; frontend/model.c refuses more.
enum { MLRT_MAX_RESULTS = 256 };

// What is not a tensor.
typedef struct mlrt_run_point {
  int64_t step;           // whole optimiser steps done
  int64_t parts;          // batches of the next one that are done: their sums are in the states
  int64_t parts_of;       // batches of a step; 0: it is not known
  mlrt_position position; // where the next training batch starts
  int64_t evaluated;      // the last step after which all due evaluations were made
  int64_t samples;        // size of the training data
  uint64_t seed;
  mlrt_characters
      characters; // of texts; none: there are no such data, or an older file does not say
  // Sums of the step's results since the last line of the log, so that a resumed run logs the
  // means that an uninterrupted one does.
  int64_t window_steps;
  double window[MLRT_MAX_RESULTS]; // by result of MLRT_STEP
} mlrt_run_point;

// A file that has been opened to be read.
typedef struct mlrt_checkpoint {
  mlrt_st_header header;
  mlrt_run_point at;
  int fd;
  bool other_plan;   // written by a program with another plan: rounding may differ
  bool other_source; // by one made from another text
} mlrt_checkpoint;

// --- saving: all memory is taken by open

// What a save has kept, as NAME.old, of a file that this run neither began with nor wrote.
typedef enum mlrt_kept {
  MLRT_KEPT_NOTHING,
  MLRT_KEPT_EARLIER,   // it was there before this run's first save
  MLRT_KEPT_MEANWHILE, // another program has saved since this one did
} mlrt_kept;

typedef struct mlrt_saver {
  const mlrt_program *program;
  const mlrt_options *options; // flag values go into the metadata
  mlrt_place place;
  bool whole;   // place.temp, though it could not be renamed
  int patience; // seconds that a save waits for another program that is writing the file
  mlrt_keeper keeper;
  bool saved;              // this run has written the file
  mlrt_kept kept;          // by the last save
  mlrt_st_tensor *tensors; // in file order
  const mlrt_tensor **states;
  int num_states;
  mlrt_st_pair *pairs;
  char (*values)[40]; // texts of `pairs`
  int num_pairs;
  char characters[MLRT_CHARACTERS_TEXT];
  char **keys; // "flag.lr" ..., "window.loss" ...
  int num_keys;
  char *header;
  size_t header_cap;
} mlrt_saver;

// Also checks that the folder can be written, so that a long run does not end at its first save.
bool mlrt_saver_open(mlrt_saver *s, const mlrt_program *p, const mlrt_options *o, const char *path,
                     mlrt_error *e);
// The run goes on from `from`: a save may replace that file, wherever it is. What else is at the path is kept as
// NAME.old by the first save.
void mlrt_saver_go_on(mlrt_saver *s, const mlrt_checkpoint *from);
// The states as they lie on `from`. False: the earlier file is whole and at its path, where it need not be only on a
// file system without hard links, if the program is killed at the wrong moment: then it is NAME.old.
bool mlrt_saver_save(mlrt_saver *s, mlrt_device *from, const mlrt_run_point *at, mlrt_error *e);
void mlrt_saver_close(mlrt_saver *s);
// Over all pairs but `metadata_checksum`, whose value it is.
uint64_t mlrt_metadata_hash(const mlrt_st_pair *pairs, int num);

// --- loading
// Opens and verifies; nothing of the program's state changes.
bool mlrt_checkpoint_open(mlrt_checkpoint *c, const mlrt_program *p, const char *path,
                          mlrt_error *e);
// Whether the whole data section is what was written: a flipped bit must not become a weight.
bool mlrt_checkpoint_intact(const mlrt_st_header *header, int fd, mlrt_error *e);
// The same of the metadata: nor must it become a step, a flag or a character's id. True where the file has no checksum of
// them.
bool mlrt_metadata_intact(const mlrt_st_header *header, mlrt_error *e);
// None where the file does not say; false where it says what cannot be.
bool mlrt_metadata_characters(const mlrt_st_header *header, mlrt_characters *out, mlrt_error *e);
// Value that a flag had in the run that wrote the file. False: it does not say.
bool mlrt_checkpoint_flag(const mlrt_checkpoint *c, const char *name, double *value);
// Reads all states but flags.
bool mlrt_checkpoint_read(const mlrt_checkpoint *c, const mlrt_program *p, mlrt_device *to,
                          mlrt_error *e);
void mlrt_checkpoint_close(mlrt_checkpoint *c);

#endif
