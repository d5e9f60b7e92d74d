// test_commands.c: eval, predict, check, info, --help and --version of a trainer.
#include "tests/runtime/support_program.h"

#include <errno.h>
#include <sys/file.h>
#include <sys/stat.h>

static mlrt_program program;

static float sample[TOY_TEST][TOY_X];
static int label[TOY_TEST];

static void read_samples(const char *text) {
  for (int i = 0; i < TOY_TEST; i++) {
    int used = 0;
    sscanf(text, "%f,%f,%f,%f,%d%n", &sample[i][0], &sample[i][1], &sample[i][2], &sample[i][3],
           &label[i], &used);
    text += used;
  }
}

// The weights lie first among the 4-byte tensors, after the two of 8 bytes.
static void read_weights(const char *path, float w[TOY_X + 1]) {
  size_t len;
  char *file = slurp(path, &len);
  uint64_t header;
  memcpy(&header, file, 8);
  memcpy(w, file + 8 + header + 16, (TOY_X + 1) * sizeof(float));
  free(file);
}

static double probability(const float *w, const float *x) {
  double z = (double)w[TOY_X];
  for (int k = 0; k < TOY_X; k++)
    z += (double)w[k] * (double)x[k];
  return 1 / (1 + exp(-z));
}

static double field(const char *text, const char *name) {
  const char *at = strstr(text, name);
  return at ? atof(at + strlen(name)) : NAN;
}

// 21 samples in batches of 8: the mean must be that of 21, not of 24.
static void test_eval(void) {
  toy_expect(&program, "eval --resume=c.st --metrics=e.jsonl --threads=2", 0,
             "checkpoint: step 40|test:  loss |(21 samples)");
  float w[TOY_X + 1];
  read_weights("c.st", w);
  double loss = 0, right = 0;
  for (int i = 0; i < TOY_TEST; i++) {
    double p = probability(w, sample[i]);
    loss -= log(label[i] ? p : 1 - p) / (double)TOY_TEST;
    right += (double)((p > 0.5) == label[i]) / (double)TOY_TEST;
  }
  char *text = slurp("e.jsonl", NULL);
  CHECK(fabs(field(text, "\"loss\":") - loss) < 1e-6, "loss %.9g: %s", loss, text);
  CHECK(fabs(field(text, "\"accuracy\":") - right) < 1e-6, "accuracy %.9g: %s", right, text);
  free(text);
  toy_expect(&program, "eval --resume=c.st --split=train", 0, "train:  loss|(100 samples)");
  toy_expect(&program, "eval --resume=c.st --split=tests", 2,
             "no data 'tests'; did you mean 'test'?");
  toy_expect(&program, "eval", 1, "cannot open the checkpoint 'toy.safetensors'");
}

static void test_predict(void) {
  toy_expect(&program, "predict --resume=c.st --out=p", 0, "wrote p-prob.npy");
  size_t len = 0;
  char *npy = slurp("p-prob.npy", &len);
  CHECK(len == 128 + 4 * TOY_TEST, "%zu bytes", len);
  CHECK(!memcmp(npy, "\x93NUMPY\x01\x00\x76\x00", 10) &&
            strstr(npy + 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (21,)"),
        "%.100s", npy + 10);
  float w[TOY_X + 1];
  read_weights("c.st", w);
  for (int i = 0; i < TOY_TEST; i++) {
    float p;
    memcpy(&p, npy + 128 + 4 * i, sizeof p);
    CHECK(fabs((double)p - probability(w, sample[i])) < 1e-6, "sample %d: %g", i, (double)p);
  }
  free(npy);
  toy_expect(&program, "predict --resume=c.st --split=train --out=q", 0, "wrote q-prob.npy");
  toy_expect(&program, "predict --resume=c.st --out=none/p", 1, "cannot write 'none/p-prob.npy'");
}

// IR text may have no `step`: nothing counts as trained then.
static void test_train_without_step(void) {
  mlrt_program p = program;
  p.funcs[MLRT_STEP].run = NULL;
  toy_expect(&p, "train --save=nothing.st", 2, "the program has no step function: it cannot train");
  CHECK(access("nothing.st", F_OK), "a checkpoint is left");
}

// Where one output cannot be written, none is, and no temporary file is left: its name is that of a folder, or too long.
static void test_without_data(void) {
  mlrt_program p = program;
  p.num_data = 0;
  toy_expect(&p, "eval --resume=c.st", 2, "the program names no data");
  toy_expect(&p, "predict --resume=c.st", 2, "the program names no data");
}

static void test_predict_all_or_none(void) {
  char longest[250] = "";
  memset(longest, 'o', sizeof longest - 1); // r-....npy is a name, r-....npy.tmp is none
  const mlrt_result results[] = {
      toy_outputs[0],
      {longest, MLRT_OUTPUT, MLRT_F32, 1, {TOY_B}, TOY_PROB},
  };
  mlrt_program p = program;
  p.funcs[MLRT_PREDICT].results = results;
  p.funcs[MLRT_PREDICT].num_results = 2;
  for (int folder = 0; folder < 2; folder++) {
    toy_expect(&p, "predict --resume=c.st --out=r", 1, "cannot write 'r-ooo");
    CHECK(access("r-prob.npy", F_OK) && access("r-prob.npy.tmp", F_OK), "the first is left");
    longest[10] = 0;
    mkdir("r-oooooooooo.npy", 0777);
  }
}

// Of files, not folders. Fails from call `fsync_fails` on, 0: never.
static int fsync_fails, fsync_calls;
int fsync(int fd) {
  struct stat st;
  fsync_calls += fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
  errno = EIO;
  return fsync_fails && fsync_calls >= fsync_fails ? -1 : 0;
}

// Predictions of another program at the same time are not mixed with these.
static void test_predict_is_alone(void) {
  int fd = open("t-prob.npy.tmp", O_WRONLY | O_CREAT, 0600);
  CHECK(flock(fd, LOCK_EX) == 0 && write(fd, "theirs", 6) == 6, "no file to share");
  toy_expect(&program, "predict --resume=c.st --out=t", 1,
             "cannot write 't-prob.npy': another program is writing it");
  CHECK(access("t-prob.npy", F_OK) && lseek(fd, 0, SEEK_END) == 6, "the other's file is lost");
  close(fd);
  toy_expect(&program, "predict --resume=c.st --out=t", 0, "wrote t-prob.npy");
}

// Predictions are on disk before their names say that they are; where one cannot be, none has its name.
static void test_predict_is_synced(void) {
  mlrt_result results[] = {toy_outputs[0], toy_outputs[0]};
  results[1].name = "again";
  mlrt_program p = program;
  p.funcs[MLRT_PREDICT].results = results;
  p.funcs[MLRT_PREDICT].num_results = 2;
  for (fsync_fails = 1; fsync_fails <= 2; fsync_fails++) {
    toy_expect(&p, "predict --resume=c.st --out=s", 1,
               fsync_fails == 1 ? "cannot write 's-prob.npy': Input/output error"
                                : "cannot write 's-again.npy': Input/output error");
    CHECK(access("s-prob.npy", F_OK) && access("s-prob.npy.tmp", F_OK) &&
              access("s-again.npy", F_OK) && access("s-again.npy.tmp", F_OK),
          "sync %d fails: a file is left", fsync_fails);
  }
  fsync_fails = 0;
  toy_expect(&p, "predict --resume=c.st --out=s", 0, "wrote s-prob.npy|wrote s-again.npy");
}

static void wrong_phase(int64_t begin, int64_t end, char *const *args) {
  toy_total(begin, end, args);
  *(float *)(void *)args[1] *= 1.001f;
}

static void split_dependent(int64_t begin, int64_t end, char *const *args) {
  toy_square(begin, end, args);
  ((float *)(void *)args[2])[end * 10 - 1] += end - begin == 10 ? 1.0f : 0.0f;
}

static void unsynchronised(char *arena, int slot, mlrt_team *team, int tid) {
  toy_step(arena, slot, team, tid);
  if (tid == 0)
    TOY_F(TOY_BIG_AT)[0] += (float)mlrt_team_size(team);
}

static void test_check(void) {
  toy_expect(&program, "check", 0,
             "squares|3 steps, 1 and 2 threads: same bits: ok|written and read: same bits: ok|all "
             "checks passed");
  mlrt_program p = program;
  mlrt_kernel k = toy_kernels[0];
  mlrt_kernel_phase phases[2] = {toy_phases[0], {wrong_phase, 1}};
  k.phases = phases;
  p.kernels = &k;
  toy_expect(&p, "check", 1,
             "differs from the plain version|mul, sum at toy.graph:5|1 checks FAILED");
  phases[1] = toy_phases[1];
  phases[0].fast = split_dependent;
  toy_expect(&p, "check", 1, "depends on how its tasks are split");
  p = program;
  p.funcs[MLRT_STEP].run = unsynchronised;
  toy_expect(&p, "check", 1, "1 and 2 threads: same bits: FAILED: 'big' differs");
}

// Wherever temporary files go, and whatever the model is called.
static void test_check_with_long_names(void) {
  static char model[301], folder[1100], command[1200];
  mlrt_program p = program;
  memset(model, 'm', 300);
  p.model = model;
  toy_expect(&p, "check", 0, "written and read: same bits: ok");
  toy_expect(&p, "--steps=1", 1, ".safetensors': File name too long");
  int at = snprintf(folder, sizeof folder, "%s", getcwd(command, sizeof command));
  for (int i = 0; i < 5; i++)
    at += snprintf(folder + at, sizeof folder - (size_t)at, "/%0150d", i);
  folder[511] = 0; // here is a folder, too
  snprintf(command, sizeof command, "mkdir -p %s", folder);
  CHECK(system(command) == 0, "%s", command);
  folder[511] = '0';
  snprintf(command, sizeof command, "mkdir -p %s", folder);
  CHECK(system(command) == 0, "%s", command);
  setenv("TMPDIR", folder, 1);
  toy_expect(&program, "check", 0, "written and read: same bits: ok");
  setenv("TMPDIR", "", 1); // means nothing, and not the root of all folders
  toy_expect(&program, "check", 0, "written and read: same bits: ok");
  unsetenv("TMPDIR");
}

static void test_info(void) {
  toy_expect(&program, "info", 0,
             "toy.graph (hash 0000000000001234)|by hand|--lr=0.1|train = csv toy-train.csv "
             "(inside)|F32[50,100]|parameters 5 (20 bytes)");
  toy_expect(&program, "--help", 0, "Usage: trainer|--lr=NUMBER|--data-dir=DIR|Exit codes");
  toy_expect(&program, "--version", 0, "toy from toy.graph, compiled by by hand");
}

int main(void) {
  mlrt_embedded embedded[2];
  program = toy_program(embedded);
  read_samples((const char *)embedded[1].data);
  char *folder = enter_scratch();
  toy_expect(&program, "--quiet --save=c.st", 0, "");
  test_eval();
  test_predict();
  test_train_without_step();
  test_without_data();
  test_predict_all_or_none();
  test_predict_is_alone();
  test_predict_is_synced();
  test_check();
  test_check_with_long_names();
  test_info();
  leave_scratch(folder);
  return failures != 0;
}
