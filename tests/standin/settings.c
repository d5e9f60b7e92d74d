// settings.c: what the environment wants of the driver; reports; chance.
#include "tests/standin/standin.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void standin_report(const char *fmt, ...) {
  va_list args;
  fflush(stdout);
  fputs("standin: ", stderr);
  va_start(args, fmt);
  vfprintf(stderr, fmt, args);
  va_end(args);
  fputc('\n', stderr);
  fflush(stderr);
  _exit(STANDIN_EXIT);
}

const char *standin_text(const char *name) {
  const char *text = getenv(name);
  return text && *text ? text : NULL;
}

int64_t standin_setting(const char *name, int64_t fallback) {
  const char *text = standin_text(name);
  return text ? strtoll(text, NULL, 0) : fallback;
}

// --- faults

enum { MAX_FAULTS = 8 };
typedef struct fault {
  const char *call;
  size_t len;
  long left; // calls until it fails
  CUresult error;
} fault;

static fault faults[MAX_FAULTS];
static int num_faults = -1; // not read yet

static void read_faults(void) {
  num_faults = 0;
  for (const char *at = standin_text("MLTC_STANDIN_FAULT"); at && *at;) {
    if (num_faults == MAX_FAULTS)
      standin_report("MLTC_STANDIN_FAULT lists more than %d faults", MAX_FAULTS);
    fault *f = &faults[num_faults++];
    char *end;
    f->call = at;
    f->len = strcspn(at, ":");
    if (at[f->len] != ':')
      standin_report("MLTC_STANDIN_FAULT: '%s' is not call:N[:error]", at);
    f->left = strtol(at + f->len + 1, &end, 10);
    f->error = !strncmp(at, "kernel:", 7) ? STANDIN_ILLEGAL_ADDRESS : 999;
    if (*end == ':')
      f->error = (CUresult)strtol(end + 1, &end, 10);
    at = *end == ',' ? end + 1 : end;
  }
}

static bool names(const fault *f, const char *call) {
  size_t len = strlen(call);
  return (f->len == len || (f->len + 3 == len && !strcmp(call + f->len, "_v2"))) &&
         !strncmp(f->call, call, f->len);
}

CUresult standin_fault(const char *call) {
  if (num_faults < 0)
    read_faults();
  for (int i = 0; i < num_faults; i++)
    if (names(&faults[i], call) && --faults[i].left == 0)
      return faults[i].error;
  return GPU_OK;
}

// --- trace

void standin_trace(const char *fmt, ...) {
  static FILE *file;
  const char *path = standin_text("MLTC_STANDIN_TRACE");
  if (!path)
    return;
  if (!file)
    file = fopen(path, "we");
  if (!file)
    standin_report("cannot write %s", path);
  va_list args;
  va_start(args, fmt);
  vfprintf(file, fmt, args);
  va_end(args);
  fputc('\n', file);
  fflush(file);
}

// --- chance: splitmix64

uint64_t standin_random(void) {
  static uint64_t state;
  static bool begun;
  if (!begun)
    state = (uint64_t)standin_setting("MLTC_STANDIN_SEED", 0);
  begun = true;
  uint64_t z = state += UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}
