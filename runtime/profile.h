// profile.h: --profile=FILE: where the time of a run went.
//
// Totals per phase, and events that chrome://tracing and Perfetto open. Events are kept in a
// buffer of fixed size; when it is full, later ones count in the totals only (and the file says
// so).
#ifndef RUNTIME_PROFILE_H
#define RUNTIME_PROFILE_H

#include "runtime/error.h"

#include <stdint.h>

typedef enum mlrt_phase {
  MLRT_PHASE_DATA, // waiting for a batch
  MLRT_PHASE_STEP,
  MLRT_PHASE_EVAL,
  MLRT_PHASE_SAVE,
  MLRT_PHASE_LOG,
  MLRT_NUM_PHASES
} mlrt_phase;

typedef struct mlrt_event {
  float duration;
  int phase;
  double start;
} mlrt_event;

typedef struct mlrt_profile {
  const char *path; // NULL: off
  mlrt_event *events;
  int64_t num_events, dropped;
  double total[MLRT_NUM_PHASES], longest[MLRT_NUM_PHASES];
  int64_t count[MLRT_NUM_PHASES];
  double opened;
} mlrt_profile;

bool mlrt_profile_open(mlrt_profile *p, const char *path, mlrt_error *e);
double mlrt_profile_begin(const mlrt_profile *p); // 0 when off
void mlrt_profile_end(mlrt_profile *p, mlrt_phase phase, double begun);
bool mlrt_profile_close(mlrt_profile *p, mlrt_error *e); // writes the file

#endif
