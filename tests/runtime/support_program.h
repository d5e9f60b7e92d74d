// support_program.h: a small program as a compiler would generate it: logistic regression with
// momentum on an arena, for tests of the runtime; and a way to run the trainer in a child process.
#ifndef TESTS_SUPPORT_PROGRAM_H
#define TESTS_SUPPORT_PROGRAM_H

#include "runtime/args.h"
#include "runtime/mlrt.h"
#include "tests/support_check.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TOY_B = 8, TOY_X = 4, TOY_BIG = 5000, TOY_TRAIN = 100, TOY_TEST = 21 };

// --- the plan
enum {
  TOY_W = 0,
  TOY_M = 64,
  TOY_ACC = 128,
  TOY_STEP = 192,
  TOY_SEED = 256,
  TOY_LR = 320,
  TOY_STEPS = 384,
  TOY_DELAY = 448,
  TOY_BIG_AT = 512,
  TOY_STATES = 512 + 20032, // 5000 floats, rounded up
  TOY_SLOT = 192,           // x: 128 bytes, y: 32
  TOY_TEMPS = TOY_STATES + 2 * TOY_SLOT,
  TOY_LOSS = TOY_TEMPS,
  TOY_ACCURACY = TOY_TEMPS + 64,
  TOY_PROB = TOY_TEMPS + 128,
  TOY_RATE = TOY_TEMPS + 192,
  TOY_ARENA = TOY_TEMPS + 256,
};

#define TOY_F(at) ((float *)(void *)(arena + (at)))
#define TOY_I(at) ((int64_t *)(void *)(arena + (at)))

static inline void toy_forward(char *arena, int slot) {
  const float *x = TOY_F(TOY_STATES + slot * TOY_SLOT), *w = TOY_F(TOY_W);
  const int32_t *y = (const int32_t *)(const void *)(x + TOY_B * TOY_X);
  float loss = 0, right = 0;
  for (int i = 0; i < TOY_B; i++) {
    float z = w[TOY_X];
    for (int k = 0; k < TOY_X; k++)
      z += w[k] * x[i * TOY_X + k];
    float p = 1 / (1 + expf(-z));
    TOY_F(TOY_PROB)[i] = p;
    loss -= logf(y[i] ? p : 1 - p);
    right += (p > 0.5f) == y[i];
  }
  *TOY_F(TOY_LOSS) = loss / (float)TOY_B;
  *TOY_F(TOY_ACCURACY) = right / (float)TOY_B;
}

static inline void toy_gradient(char *arena, int slot) {
  const float *x = TOY_F(TOY_STATES + slot * TOY_SLOT), *p = TOY_F(TOY_PROB);
  const int32_t *y = (const int32_t *)(const void *)(x + TOY_B * TOY_X);
  for (int k = 0; k <= TOY_X; k++)
    for (int i = 0; i < TOY_B; i++)
      TOY_F(TOY_ACC)[k] += (p[i] - (float)y[i]) * (k < TOY_X ? x[i * TOY_X + k] : 1) / (float)TOY_B;
}

static inline void toy_update(char *arena) {
  for (int k = 0; k <= TOY_X; k++) {
    float *m = &TOY_F(TOY_M)[k];
    *m = 0.9f * *m + TOY_F(TOY_ACC)[k];
    TOY_F(TOY_W)[k] -= *TOY_F(TOY_LR) * *m;
    TOY_F(TOY_ACC)[k] = 0;
  }
  *TOY_F(TOY_RATE) = *TOY_F(TOY_LR) / (float)(1 + *TOY_I(TOY_STEP));
  ++*TOY_I(TOY_STEP);
  struct timespec rest = {*TOY_I(TOY_DELAY) / 1000000, *TOY_I(TOY_DELAY) % 1000000 * 1000};
  while (rest.tv_sec + rest.tv_nsec && nanosleep(&rest, &rest)) // a signal does not end a step
    ;
}

static inline void toy_init(char *arena, int slot, mlrt_team *team, int tid) {
  (void)slot;
  if (tid == 0)
    for (int k = 0; k <= TOY_X; k++)
      TOY_F(TOY_W)[k] = (float)(*TOY_I(TOY_SEED) % 7) * 0.01f;
  if (tid == 0)
    memset(TOY_F(TOY_BIG_AT), 0, TOY_BIG * sizeof(float));
  mlrt_barrier(team, tid);
}

static inline void toy_accumulate(char *arena, int slot, mlrt_team *team, int tid) {
  (void)team;
  if (tid == 0) {
    toy_forward(arena, slot);
    toy_gradient(arena, slot);
  }
}

// The second phase is split over the team and depends on the first.
static inline void toy_step(char *arena, int slot, mlrt_team *team, int tid) {
  toy_accumulate(arena, slot, team, tid);
  if (tid == 0)
    toy_update(arena);
  mlrt_barrier(team, tid);
  int threads = mlrt_team_size(team);
  for (int i = tid * TOY_BIG / threads; i < (tid + 1) * TOY_BIG / threads; i++)
    TOY_F(TOY_BIG_AT)[i] = TOY_F(TOY_BIG_AT)[i] * 0.5f + TOY_F(TOY_W)[i % 5] * (float)i;
}

static inline int toy_threads(void) {
  DIR *tasks = opendir("/proc/self/task");
  int num = 0;
  for (struct dirent *x; (x = readdir(tasks));)
    num += x->d_name[0] != '.';
  closedir(tasks);
  return num;
}

// Threads of the team must not run handlers: one would take a signal from the thread that waits for it. Nor are there
// others: batches are small.
static inline void toy_eval(char *arena, int slot, mlrt_team *team, int tid) {
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, NULL, &blocked);
  if (tid == 0)
    toy_forward(arena, slot);
  mlrt_barrier(team, tid);
  if ((tid > 0 && !sigismember(&blocked, SIGINT)) || toy_threads() != mlrt_team_size(team))
    *TOY_F(TOY_LOSS) = NAN;
}

// --- the tables
static const mlrt_tensor toy_states[] = {
    {"w", MLRT_F32, 1, {TOY_X + 1}, TOY_W, 20, MLRT_PARAM, 0, "toy.graph:1", NULL},
    {"w.m", MLRT_F32, 1, {TOY_X + 1}, TOY_M, 20, MLRT_MOMENT, 0, "toy.graph:1", NULL},
    {"w.acc", MLRT_F32, 1, {TOY_X + 1}, TOY_ACC, 20, MLRT_ACCUM, 0, "toy.graph:1", NULL},
    {"step", MLRT_I64, 0, {0}, TOY_STEP, 8, MLRT_COUNTER, 0, "toy.graph:2", NULL},
    {"seed", MLRT_I64, 0, {0}, TOY_SEED, 8, MLRT_SEED, 0, "toy.graph:2", NULL},
    {"lr", MLRT_F32, 0, {0}, TOY_LR, 4, MLRT_FLAG, 0.1, "toy.graph:3", NULL},
    {"steps", MLRT_I64, 0, {0}, TOY_STEPS, 8, MLRT_FLAG, 40, "toy.graph:3", NULL},
    {"delay", MLRT_I64, 0, {0}, TOY_DELAY, 8, MLRT_FLAG, 0, "toy.graph:3", NULL},
    {"big", MLRT_F32, 2, {50, 100}, TOY_BIG_AT, 20000, MLRT_BUFFER, 0, "toy.graph:4", NULL},
};
static const mlrt_input toy_inputs[] = {
    {"x", MLRT_F32, 2, {TOY_B, TOY_X}, TOY_STATES, 128, 0, 0, NULL},
    {"y", MLRT_I32, 1, {TOY_B}, TOY_STATES + 128, 32, 2, 0, NULL},
};
static const char *const toy_train_files[] = {"toy-train.csv"}, *const toy_test_files[] = {
                                                                    "toy-test.csv"};
static const mlrt_data toy_data[] = {
    {"train", "csv", toy_train_files, 1, NULL, 0},
    {"test", "csv", toy_test_files, 1, NULL, 0},
};
static const mlrt_setting toy_config[] = {
    {"steps", MLRT_SET_FLAG, 0, "steps"},   {"seed", MLRT_SET_NUM, 3, NULL},
    {"shuffle", MLRT_SET_NUM, 1, NULL},     {"eval", MLRT_SET_STR, 0, "test"},
    {"eval_every", MLRT_SET_NUM, 10, NULL}, {"log_every", MLRT_SET_NUM, 4, NULL},
    {"save_every", MLRT_SET_NUM, 7, NULL},
};
static const mlrt_result toy_results[] = {
    {"loss", MLRT_LOSS, MLRT_F32, 0, {0}, TOY_LOSS},
    {"accuracy", MLRT_METRIC, MLRT_F32, 0, {0}, TOY_ACCURACY},
    {"rate", MLRT_METRIC, MLRT_F32, 0, {0}, TOY_RATE},
};
static const mlrt_result toy_outputs[] = {
    {"prob", MLRT_OUTPUT, MLRT_F32, 1, {TOY_B}, TOY_PROB},
};

// A kernel with two phases: squares, then their sum by one task; and a plain version of it.
static inline void toy_square(int64_t begin, int64_t end, char *const *args) {
  const float *x = (const float *)(const void *)args[0];
  for (int64_t i = begin * 10; i < end * 10; i++)
    ((float *)(void *)args[2])[i] = x[i] * x[i];
}
static inline void toy_total(int64_t begin, int64_t end, char *const *args) {
  float sum = 0;
  for (uintptr_t i = 0; begin < end && i < (uintptr_t)args[3]; i++)
    sum += ((const float *)(const void *)args[2])[i];
  if (begin < end)
    *(float *)(void *)args[1] = sum;
}
static inline void toy_plain(char *const *args, double *const *taps, int hold) {
  double sum = 0;
  (void)taps;
  (void)hold;
  for (int i = 0; i < 100; i++)
    sum += pow(((const double *)(const void *)args[0])[i], 2);
  *(double *)(void *)args[1] = sum;
}
static const mlrt_arg toy_kernel_args[] = {{MLRT_ARG_IN, MLRT_F32, .size = 400},
                                           {MLRT_ARG_OUT, MLRT_F32, .size = 4},
                                           {MLRT_ARG_WORKSPACE, MLRT_U8, .size = 400},
                                           {MLRT_ARG_NUMBER, MLRT_I64, .size = 100}};
static const mlrt_kernel_phase toy_phases[] = {{toy_square, 10}, {toy_total, 1}};
static const mlrt_kernel toy_kernels[] = {
    {.name = "squares",
     .ops = "mul, sum",
     .where = "toy.graph:5",
     .phases = toy_phases,
     .plain = toy_plain,
     .args = toy_kernel_args,
     .num_args = 4,
     .num_phases = 2,
     .flops = 200,
     .bytes = 800},
};

// The samples: y says on which side of a plane x lies, with some noise.
static inline char *toy_csv(char *text, int samples, unsigned seed) {
  char *at = text;
  for (int i = 0; i < samples; i++) {
    double x[TOY_X], z = 0.1;
    for (int k = 0; k < TOY_X; k++) {
      seed = seed * 1664525u + 1013904223u;
      x[k] = (double)(seed >> 8) / (1 << 23) - 1;
      z += x[k] * (k - 1.3);
    }
    for (int k = 0; k < TOY_X; k++)
      at += sprintf(at, "%.5f,", x[k]);
    at += sprintf(at, "%d\n", z > 0);
  }
  return text;
}

// The whole program. `embedded` has room for two.
static inline mlrt_program toy_program(mlrt_embedded *embedded) {
  static char train_text[TOY_TRAIN * 64], test_text[TOY_TEST * 64];
  char *train = toy_csv(train_text, TOY_TRAIN, 1), *test = toy_csv(test_text, TOY_TEST, 2);
  embedded[0] = (mlrt_embedded){"toy-train.csv", (unsigned char *)train, strlen(train)};
  embedded[1] = (mlrt_embedded){"toy-test.csv", (unsigned char *)test, strlen(test)};
  return (mlrt_program){
      .abi = MLRT_ABI,
      .model = "toy",
      .source_path = "toy.graph",
      .compiler = "by hand",
      .target = "cpu",
      .options = "",
      .source_hash = 0x1234,
      .plan_hash = 0x5678,
      .arena_bytes = TOY_ARENA,
      .state_bytes = TOY_STATES,
      .staging_bytes = 2 * TOY_SLOT,
      .temp_bytes = TOY_ARENA - TOY_TEMPS,
      .staging_slot_bytes = TOY_SLOT,
      .states = toy_states,
      .num_states = sizeof toy_states / sizeof toy_states[0],
      .inputs = toy_inputs,
      .num_inputs = 2,
      .data = toy_data,
      .num_data = 2,
      .config = toy_config,
      .num_config = sizeof toy_config / sizeof toy_config[0],
      .funcs = {[MLRT_INIT] = {.run = toy_init, .results = NULL, .num_results = 0},
                [MLRT_STEP] = {.run = toy_step, .results = toy_results, .num_results = 3},
                [MLRT_EVAL] = {.run = toy_eval, .results = toy_results, .num_results = 2},
                [MLRT_PREDICT] = {.run = toy_eval, .results = toy_outputs, .num_results = 1},
                [MLRT_ACCUMULATE] = {.run = toy_accumulate,
                                     .results = toy_results,
                                     .num_results = 2}},
      .kernels = toy_kernels,
      .num_kernels = 1,
      .embedded = embedded,
      .num_embedded = 2,
  };
}

// --- the trainer in a child process

enum { TOY_MAX_ARGS = 24 };

// Starts `trainer ARGS`, ARGS separated by spaces; what it prints goes to the file `log`.
static inline pid_t toy_start(const mlrt_program *p, const char *args, const char *log) {
  fflush(NULL);
  pid_t pid = fork();
  if (pid)
    return pid;
  int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  dup2(fd, 1);
  dup2(fd, 2);
  char name[] = "trainer";
  char *copy = strdup(args), *argv[TOY_MAX_ARGS] = {name};
  int argc = 1;
  for (char *word = strtok(copy, " "); word && argc < TOY_MAX_ARGS - 1; word = strtok(NULL, " "))
    argv[argc++] = word;
  int code = mlrt_main(p, argc, argv);
  free(copy);
  exit(code);
}

// The exit code, or -1 - signal.
static inline int toy_wait(pid_t pid) {
  int status;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1 - WTERMSIG(status);
}

// Waits until a run has begun, which catches signals from then on: on a busy machine that is no matter of
// milliseconds. The mask is in hexadecimal, the bit of signal 1 the lowest.
static inline void toy_wait_until_begun(pid_t pid) {
  char path[64], line[256];
  snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
  for (int tries = 0; tries < 10000; tries++) {
    unsigned long long caught = 0;
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f) && sscanf(line, "SigCgt: %llx", &caught) != 1)
      ;
    if (f)
      fclose(f);
    if (caught >> (SIGTERM - 1) & 1)
      return;
    usleep(1000);
  }
}

static inline int toy_run(const mlrt_program *p, const char *args, const char *log) {
  return toy_wait(toy_start(p, args, log));
}

// A whole file, with a 0 behind it; NULL when it is not there. Not freed: tests are short.
static inline char *slurp(const char *path, size_t *len) {
  FILE *f = fopen(path, "r");
  if (!f)
    return NULL;
  char *text = malloc(65537);
  size_t n = 0, room = 65536, got;
  while ((got = fread(text + n, 1, room - n, f)) > 0) {
    n += got;
    if (n == room)
      text = realloc(text, 1 + (room *= 2));
  }
  fclose(f);
  text[n] = 0;
  if (len)
    *len = n;
  return text;
}

static inline bool same_file(const char *a, const char *b) {
  size_t n = 0, m = 0;
  char *x = slurp(a, &n), *y = slurp(b, &m);
  bool same = x && y && n == m && !memcmp(x, y, n);
  free(x);
  free(y);
  return same;
}

// Lines of a file that hold `with`.
static inline int count_lines(const char *path, const char *with) {
  char *text = slurp(path, NULL);
  int num = 0;
  for (char *line = text ? strtok(text, "\n") : NULL; line; line = strtok(NULL, "\n"))
    num += strstr(line, with) != NULL;
  free(text);
  return num;
}

static inline void wait_for_file(const char *path) {
  for (int tries = 0; tries < 10000 && access(path, F_OK) != 0; tries++)
    usleep(1000);
}

static inline void wait_for_lines(const char *path, const char *with, int num) {
  for (int tries = 0; tries < 5000 && count_lines(path, with) < num; tries++)
    usleep(1000);
}

// An evaluation that says when it has begun, by a file, and takes 150 ms a call.
static inline void toy_slow_eval(char *arena, int slot, mlrt_team *team, int tid) {
  if (tid == 0)
    fclose(fopen("evaluating", "w"));
  struct timespec rest = {0, 150000000};
  while (tid == 0 && nanosleep(&rest, &rest))
    ;
  toy_eval(arena, slot, team, tid);
}

// Runs, and checks the exit code and that the output holds `words` (separated by |).
static inline void toy_expect(const mlrt_program *p, const char *args, int code,
                              const char *words) {
  int got = toy_run(p, args, "log");
  char *text = slurp("log", NULL), copy[256];
  CHECK(got == code, "`%s` exits with %d, not %d:\n%s", args, got, code, text);
  snprintf(copy, sizeof copy, "%s", words);
  for (char *word = strtok(copy, "|"); word; word = strtok(NULL, "|"))
    CHECK(strstr(text, word), "`%s`: the output lacks '%s':\n%s", args, word, text);
  free(text);
}

// For tests of single parts: the options of a plain run, and an arena that all of it lies in, to be freed.
static inline char *toy_arena(const mlrt_program *p, mlrt_options *o) {
  char *argv[] = {NULL};
  mlrt_error e;
  if (!mlrt_options_parse(o, p, 1, argv, &e)) {
    fputs(e.text, stderr);
    exit(1);
  }
  return calloc(1, TOY_ARENA);
}

// Tests work in a folder of their own, removed at the end.
static inline char *enter_scratch(void) {
  static char folder[] = "/tmp/mlrt-test-XXXXXX";
  if (!mkdtemp(folder) || chdir(folder)) {
    perror(folder);
    exit(1);
  }
  return folder;
}

static inline void leave_scratch(const char *folder) {
  char command[64];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  if (chdir("/") || system(command))
    perror(folder);
}

#endif
