// metrics.h: --metrics=FILE: one JSON object per line, for plots and comparisons.
//
//   {"step":100,"epoch":0.5,"loss":0.693147182,"accuracy":0.75,"time":1.204}
//   {"eval":"test","step":100,"loss":0.7,"accuracy":0.7,"time":1.31}
//
// Numbers have enough digits to be exact; nan and infinity are null. A resumed run goes on in the
// same file, from which the lines that its checkpoint does not know are cut: none is lost or
// doubled.
#ifndef RUNTIME_METRICS_H
#define RUNTIME_METRICS_H

#include "runtime/error.h"
#include "runtime/keep.h"
#include "runtime/mlrt.h"

#include <stddef.h>
#include <stdint.h>

typedef struct mlrt_metrics {
  int fd; // -1: off
  const char *path;
  bool times, failed;
  bool
      stream; // of a name such as /dev/stdout: lines are added, and nothing is cut, kept or refused
  bool alone; // as a run has to be that trains; an evaluation adds lines beside it
  bool old;   // the lines of an earlier run are still there
  bool named; // on disk
  bool kept;  // as `keeper.old`, and nobody has said so yet
  mlrt_keeper keeper;
  mlrt_place place;
  char *line; // `cap` bytes: room for the longest line of the program
  size_t len, cap;
  size_t sent; // of the line, where `waits`: a signal came while nobody took the rest
  bool waits;
} mlrt_metrics;

// Where a run goes on. The lines of later steps come again, and that of the evaluation after this one where `again`
// names its data (NULL: none); those that `eval` wrote about the checkpoint, on whatever data, do not.
typedef struct mlrt_metrics_from {
  int64_t step; // INT64_MAX: no line comes again
  const char *again;
  // Where the run goes on from a checkpoint of another name than its own: that one. Younger lines may then be of a run that
  // went another way. NULL: it goes on with its own.
  const char *branch;
} mlrt_metrics_from;

// `path` NULL: off. Takes all memory that lines of the program's results need. `from` NULL: a new file; the
// lines of an earlier run stay until the first line of this one is complete, or it saves (mlrt_metrics_sync); then they
// are kept as NAME.old. So is a file of which a run that branches cuts lines.
bool mlrt_metrics_open(mlrt_metrics *m, const mlrt_program *p, const char *path, bool times,
                       const mlrt_metrics_from *from, mlrt_error *e);
void mlrt_metrics_train(mlrt_metrics *m, int64_t step, double epoch);    // begins a line
void mlrt_metrics_eval(mlrt_metrics *m, const char *data, int64_t step); // begins a line
// The scalar results of `f`, whose values are by result.
void mlrt_metrics_values(mlrt_metrics *m, const mlrt_func *f, const double *values);
void mlrt_metrics_end(mlrt_metrics *m, double seconds); // ends and writes it
// On disk before a checkpoint is: a resumed run must find the lines it no longer writes. A disk that refuses costs the
// run its exit code, as a line that cannot be written does.
void mlrt_metrics_sync(mlrt_metrics *m);
// False when some line could not be written.
bool mlrt_metrics_close(mlrt_metrics *m);

#endif
