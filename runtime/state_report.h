// state_report.h: what a file's tensors and a program's states have to do with each other, in
// lines: "missing in the file: a", "different: b is ... in the file and ... in the program".
#ifndef RUNTIME_STATE_REPORT_H
#define RUNTIME_STATE_REPORT_H

#include "runtime/safetensors.h"

enum { MLRT_LISTED = 4 }; // names of one kind; then "and N more"

typedef struct mlrt_report {
  char text[900]; // lines, each begun by a newline; what does not fit is cut
  size_t len;
} mlrt_report;

// One kind of finding.
typedef struct mlrt_finding {
  const char *what;
  int num;
} mlrt_finding;

void mlrt_report_say(mlrt_report *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// Counts one more; begins a line for it unless enough are listed (false).
bool mlrt_report_add(mlrt_report *r, mlrt_finding *f, const char *name);
void mlrt_report_more(mlrt_report *r, const mlrt_finding *f); // those that were not listed
// " is F32[2] in the file and F32[3] in the program"
void mlrt_report_types(mlrt_report *r, const mlrt_st_tensor *x, const mlrt_tensor *t);

bool mlrt_same_shape(const mlrt_st_tensor *x, const mlrt_tensor *t);
bool mlrt_same_type(const mlrt_st_tensor *x, const mlrt_tensor *t); // shape and element type

#endif
