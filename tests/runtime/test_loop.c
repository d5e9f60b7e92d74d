// test_loop.c: training runs in child processes: same bits with any number of threads, after
// signals and after kill -9; trouble with files.
#include "runtime/progress.h"
#include "runtime/recipe.h"
#include "tests/runtime/support_samples.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static mlrt_program program;

static void test_reference(void) {
  toy_expect(&program, "--save=ref.st --metrics=ref.jsonl --no-times --threads=1", 0,
             "memory: |allocated once|step 40/40|test after step 40:|(21 samples)|done: 40 steps");
  CHECK(count_lines("ref.jsonl", "{\"step\":") == 10, "log lines");
  CHECK(count_lines("ref.jsonl", "{\"eval\":\"test\",\"step\":") == 4, "evaluations");
  CHECK(count_lines("ref.jsonl", "\"rate\":") == 10, "results of the step alone");
  CHECK(access("ref.st.tmp", F_OK) != 0, "no temporary file is left");
}

static void test_threads(void) {
  for (int threads = 2; threads <= 5; threads++) {
    char args[128];
    snprintf(args, sizeof args, "--quiet --save=t.st --metrics=t.jsonl --no-times --threads=%d",
             threads);
    toy_expect(&program, args, 0, "");
    CHECK(same_file("ref.st", "t.st"), "%d threads: other bytes", threads);
    CHECK(same_file("ref.jsonl", "t.jsonl"), "%d threads: other metrics", threads);
  }
}

// Every step as the place to stop: the rest must be as if nothing had happened.
static void test_resume_everywhere(void) {
  for (int steps = 0; steps <= 40; steps += steps < 12 ? 1 : 7) {
    char args[160];
    snprintf(args, sizeof args, "--quiet --save=r.st --metrics=r.jsonl --no-times --steps=%d",
             steps);
    toy_expect(&program, args, 0, "");
    toy_expect(&program, "--quiet --save=r.st --resume --steps=40 --threads=2", 0, "");
    CHECK(same_file("ref.st", "r.st"), "stopped at %d and resumed: other bytes", steps);
  }
}

// kill -9 at random times; each time the run goes on from the last whole checkpoint. The later the more often it was
// killed: a busy machine may need longer than that to get to a checkpoint at all.
static void test_kill(void) {
  srand(5);
  toy_expect(&program,
             "--quiet --save=k0.st --metrics=k0.jsonl --no-times --steps=150 --save-every=2", 0,
             "");
  for (int round = 0; round < 4; round++) {
    unlink("k.st");
    unlink("k.jsonl");
    int code = -1, kills = 0;
    for (int tries = 0; code != 0 && tries < 400; tries++) {
      char args[200];
      snprintf(args, sizeof args,
               "--quiet --save=k.st --metrics=k.jsonl --no-times --steps=150 --save-every=2 "
               "--delay=%d --threads=%d%s",
               300, 1 + tries % 3, access("k.st", F_OK) == 0 ? " --resume" : "");
      pid_t pid = toy_start(&program, args, "log");
      usleep((useconds_t)(4000 + rand() % (30000 + 1000 * tries)));
      kill(pid, SIGKILL);
      code = toy_wait(pid);
      kills += code == -1 - SIGKILL;
      CHECK(code == 0 || code == -1 - SIGKILL, "round %d: exit %d: %s", round, code,
            slurp("log", NULL));
      if (code > 0)
        return;
    }
    CHECK(kills >= 2, "round %d: only %d kills", round, kills);
    // the flag `delay` is in the metadata: finish with the reference's value
    toy_expect(&program, "--quiet --save=k.st --resume --delay=0", 0, "");
    CHECK(same_file("k0.st", "k.st"), "round %d: other bytes after %d kills", round, kills);
    CHECK(same_file("k0.jsonl", "k.jsonl"), "round %d: other metrics after %d kills", round, kills);
  }
}

// After so many microseconds, or later: when a step has been reported. A busy machine may not have begun
// until then.
static void stop_and_resume(int number, int after_us, const char *how) {
  unlink("s.st");
  unlink("s.jsonl");
  char args[160];
  snprintf(args, sizeof args, "--save=s.st --metrics=s.jsonl --no-times --delay=2000%s", how);
  pid_t pid = toy_start(&program, args, "log");
  usleep((useconds_t)after_us);
  wait_for_lines("s.jsonl", "\"step\"", 1);
  kill(pid, number);
  int code = toy_wait(pid);
  char *text = slurp("log", NULL);
  CHECK(code == 128 + number, "signal %d: exit %d: %s", number, code, text);
  CHECK(strstr(text, "stopped by signal") && strstr(text, "--resume=s.st"), "%s", text);
  free(text);
  toy_expect(&program, "--quiet --save=s.st --metrics=s.jsonl --no-times --resume --delay=0", 0,
             "");
  CHECK(same_file("ref.st", "s.st"), "signal %d: other bytes", number);
  CHECK(same_file("ref.jsonl", "s.jsonl"), "signal %d: other metrics", number);
}

static void test_signals(void) {
  stop_and_resume(SIGTERM, 40000, "");
  stop_and_resume(SIGINT, 50000, " --threads=3");
  stop_and_resume(SIGHUP, 45000, " --threads=2");
  // a limit of processor time is said again and again
  pid_t limited = toy_start(&program, "--save=s3.st --delay=100000", "log");
  toy_wait_until_begun(limited);
  kill(limited, SIGXCPU);
  usleep(10000);
  kill(limited, SIGXCPU);
  CHECK(toy_wait(limited) == 128 + SIGXCPU && access("s3.st", F_OK) == 0, "%s", slurp("log", NULL));
  // the second one of others does not wait
  pid_t pid = toy_start(&program, "--save=s2.st --delay=900000", "log");
  toy_wait_until_begun(pid);
  usleep(100000); // the first step takes 900 ms
  kill(pid, SIGINT);
  usleep(50000);
  kill(pid, SIGTERM);
  CHECK(toy_wait(pid) == 128 + SIGTERM, "a second signal ends at once");
  CHECK(access("s2.st", F_OK) != 0, "and saves nothing");
}

static void ask_to_save(pid_t pid, int number, const char *said) {
  unlink("u.st");
  kill(pid, number);
  char text[64];
  snprintf(text, sizeof text, said, number);
  wait_for_lines("log", text, 1);
}

// A scheduler's warning: a checkpoint there and then, and a run that is otherwise as it would have been.
static void test_signals_that_save(void) {
  unlink("u.jsonl");
  pid_t pid = toy_start(&program, "--save=u.st --metrics=u.jsonl --no-times --delay=50000", "log");
  toy_wait_until_begun(pid);
  ask_to_save(pid, SIGUSR1, "signal %d: 'u.st' is saved, after step");
  CHECK(access("u.st", F_OK) == 0, "no checkpoint");
  ask_to_save(pid, SIGUSR2, "signal %d: 'u.st' is saved, after step");
  kill(pid, SIGKILL);
  toy_wait(pid);
  toy_expect(&program, "--quiet --save=u.st --metrics=u.jsonl --no-times --resume --delay=0", 0,
             "");
  CHECK(same_file("ref.st", "u.st"), "other bytes after a save that was asked for");
  CHECK(same_file("ref.jsonl", "u.jsonl"), "other metrics after a save that was asked for");
  pid = toy_start(&program, "--no-save --delay=50000", "log");
  toy_wait_until_begun(pid);
  ask_to_save(pid, SIGUSR1, "signal %d after step");
  kill(pid, SIGTERM);
  CHECK(toy_wait(pid) == 128 + SIGTERM && access("u.st", F_OK) != 0, "%s", slurp("log", NULL));
}

// What a run waits for before it begins may never come: here a reader of its metrics. There is nothing to save yet.
static void test_signal_before_begin(void) {
  toy_expect(&program, "--quiet --save=w.st", 0, "");
  mkfifo("pipe", 0666);
  pid_t pid = toy_start(&program, "--quiet --save=w.st --metrics=pipe", "log");
  wait_for_lines("log", "waiting for a reader of the pipe 'pipe'", 1);
  kill(pid, SIGUSR1);
  usleep(20000);
  CHECK(waitpid(pid, NULL, WNOHANG) == 0, "what asks for a checkpoint ends it");
  kill(pid, SIGTERM);
  int code = 0, ended = 0;
  for (int tries = 0; ended == 0 && tries < 5000; tries++) {
    usleep(1000);
    ended = waitpid(pid, &code, WNOHANG);
  }
  CHECK(ended == pid && WIFSIGNALED(code) && WTERMSIG(code) == SIGTERM, "a signal does not end it");
  kill(pid, SIGKILL);
  CHECK(same_file("ref.st", "w.st"), "and an earlier checkpoint is not what it was");
}

// A signal in the middle of an evaluation: it is not reported, and the resumed run makes up for it.
static void test_signal_in_evaluation(void) {
  mlrt_program slow = program;
  slow.funcs[MLRT_EVAL].run = toy_slow_eval;
  unlink("v.st");
  unlink("evaluating");
  pid_t pid = toy_start(&slow, "--save=v.st --metrics=v.jsonl --no-times", "log");
  wait_for_file("evaluating");
  usleep(80000); // evaluation: four calls of 150 ms each, after step 10
  kill(pid, SIGTERM);
  int code = toy_wait(pid);
  char *text = slurp("log", NULL);
  CHECK(code == 128 + SIGTERM && strstr(text, "after step 10;"), "exit %d: %s", code, text);
  free(text);
  CHECK(count_lines("v.jsonl", "\"eval\"") == 0, "a broken-off evaluation is not reported");
  toy_expect(&program, "--quiet --save=v.st --metrics=v.jsonl --no-times --resume", 0, "");
  CHECK(same_file("ref.st", "v.st"), "evaluation broken off: other bytes");
  CHECK(same_file("ref.jsonl", "v.jsonl"), "evaluation broken off: other metrics");
}

static void test_flags_and_seed(void) {
  toy_expect(&program, "--quiet --save=f.st --lr=0.5", 0, "");
  toy_expect(&program, "--quiet --save=g.st --lr=0.5 --steps=20", 0, "");
  toy_expect(&program, "--quiet --save=g.st --resume --steps=40", 0, "");
  CHECK(same_file("f.st", "g.st"), "a resumed run keeps --lr");
  CHECK(!same_file("f.st", "ref.st"), "--lr does something");
  toy_expect(&program, "--save=g.st --resume --lr=0.25", 0, "--lr is 0.25 now|made with 0.5");
  toy_expect(&program, "--save=g.st --resume --seed=9", 2, "was made with --seed=3");
  toy_expect(&program, "--save=g.st --resume --steps=10", 2, "beyond the 10 steps");
  toy_expect(&program, "--quiet --save=h.st --seed=9", 0, "");
  CHECK(!same_file("h.st", "ref.st"), "--seed does something");
  toy_expect(&program, "--steps=-1 --no-save", 2, "'steps' is -1");
}

static void test_accumulation(void) {
  mlrt_setting config[8];
  memcpy(config, toy_config, sizeof toy_config);
  config[7] = (mlrt_setting){"accumulate", MLRT_SET_NUM, 3, NULL};
  mlrt_program p = program;
  p.config = config;
  p.num_config = 8;
  toy_expect(&p, "--quiet --save=a.st --metrics=a.jsonl --no-times", 0, "");
  toy_expect(&p, "--quiet --save=b.st --steps=13 --metrics=b.jsonl --no-times", 0, "");
  toy_expect(&p, "--quiet --save=b.st --resume --steps=40 --threads=2", 0, "");
  CHECK(same_file("a.st", "b.st"), "accumulation: other bytes after a resume");
  CHECK(!same_file("a.st", "ref.st"), "accumulation does something");
  toy_expect(&p, "--save=c.st --steps=4", 0, "step 4/4  epoch 1.00");
  toy_expect(&program, "--save=c.st --resume --steps=16", 0, "step 16/16  epoch 2.00");
}

static void test_epochs(void) {
  static const mlrt_setting config[] = {{"epochs", MLRT_SET_NUM, 3, NULL},
                                        {"eval", MLRT_SET_STR, 0, "test"},
                                        {"save_every", MLRT_SET_NUM, 0, NULL}};
  mlrt_program p = program;
  p.config = config;
  p.num_config = 3;
  toy_expect(&p, "--save=e.st --metrics=e.jsonl", 0, "step 36/36  epoch 3.00|test after step 12:");
  CHECK(count_lines("e.jsonl", "\"eval\"") == 3, "one evaluation per epoch");
  CHECK(count_lines("e.jsonl", "\"epoch\":2,") == 1, "one line per epoch");
  CHECK(count_lines("e.jsonl", "\"time\":") == 6, "times");
}

// What decimal fractions make of a number of steps is not what their binary neighbours do.
static int64_t steps_of(double epochs, int64_t batches, int64_t accumulate) {
  const mlrt_setting config[] = {{"epochs", MLRT_SET_NUM, epochs, NULL},
                                 {"accumulate", MLRT_SET_NUM, (double)accumulate, NULL}};
  mlrt_program p = {.config = config, .num_config = 2};
  mlrt_options o = {.seed = 0};
  mlrt_recipe r;
  mlrt_error e;
  return mlrt_recipe_make(&r, &p, &o, batches, &e) ? r.steps : -1;
}

static void test_broken_epochs(void) {
  for (int64_t batches = 1; batches <= 60; batches++)
    for (int64_t hundredths = 0; hundredths <= 300; hundredths++)
      for (int64_t accumulate = 1; accumulate <= 3; accumulate++) {
        int64_t whole = hundredths * batches / (100 * accumulate);
        int64_t want = whole || !hundredths ? whole : -1; // no step at all: a mistake
        int64_t got = steps_of((double)hundredths / 100, batches, accumulate);
        CHECK(got == want, "%g epochs of %d batches, %d a step: %d steps, not %d",
              (double)hundredths / 100, (int)batches, (int)accumulate, (int)got, (int)want);
      }
  CHECK(steps_of(0.29, 100, 1) == 29, "0.29 of 100");
  CHECK(steps_of(0.2899999, 100, 1) == 28, "less than that");
  CHECK(steps_of(3, 1000000007, 2) == 1500000010, "half a step");
  CHECK(steps_of(1e8, 1000000007, 1) == -1, "more than can be counted");
}

// A flag of a type with fractions may name what is a whole number.
static void test_settings_by_flags(void) {
  static const struct {
    const char *key, *options, *says;
  } cases[] = {
      {"seed", "--lr=1.5",
       "'seed' is 1.5; it must be a whole number from -9007199254740992 to 900"},
      {"seed", "--lr=1e30", "'seed' is 1e+30; it must be a whole number"},
      {"shuffle", "--lr=0.5", "'shuffle' is 0.5; it must be a whole number from 0 to 1"},
      {"shuffle", "--lr=2", "'shuffle' is 2; it must be a whole number from 0 to 1"},
      {"eval_every", "--lr=2.5", "'eval_every' is 2.5; it must be a whole number from 0 to 1"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const mlrt_setting config[] = {{"steps", MLRT_SET_NUM, 2, NULL},
                                   {cases[i].key, MLRT_SET_FLAG, 0, "lr"}};
    mlrt_program p = program;
    char options[100];
    p.config = config;
    p.num_config = 2;
    snprintf(options, sizeof options, "--no-save %s", cases[i].options);
    toy_expect(&p, options, 2, cases[i].says);
    toy_expect(&p, "--no-save --lr=1", 0, "done: 2 steps");
  }
}

static void test_bad_files(void) {
  toy_expect(&program, "--save=none/x.st", 1,
             "cannot write the checkpoint 'none/x.st': No such file|help: --save=FILE names "
             "another place");
  toy_expect(&program, "--metrics=none/x --no-save", 1,
             "cannot write the metrics file 'none/x'|help: --metrics=FILE names another place");
  toy_expect(&program, "--profile=none/x --no-save", 1, "cannot write the profile 'none/x'");
  toy_expect(&program, "--resume=none.st", 1, "cannot open the checkpoint 'none.st'");
  toy_expect(&program, "--no-save --weights=ref.jsonl", 1,
             "not a safetensors file|help: safetensors.torch.save_file");
  toy_expect(&program, "--lrr=2", 2, "error: unknown option --lrr; did you mean --lr?");
  toy_expect(&program, "--epochs=2", 2, "help: options of the program's own are flags");
}

// A flag that says the seed is as little to be changed as --seed, which takes its place.
static void test_seed_by_flag(void) {
  mlrt_setting config[sizeof toy_config / sizeof *toy_config];
  memcpy(config, toy_config, sizeof config);
  config[1] = (mlrt_setting){"seed", MLRT_SET_FLAG, 0, "delay"};
  mlrt_program p = program;
  p.config = config;
  toy_expect(&p, "--quiet --save=f.st --steps=7 --delay=3", 0, "");
  toy_expect(&p, "--save=f2.st --resume=f.st --steps=9 --delay=4", 2,
             "was made with --delay=3; a run cannot");
  toy_expect(&p, "--save=f2.st --resume=f.st --steps=9 --delay=4 --seed=4", 2,
             "was made with --seed=3; a run");
  toy_expect(&p, "--save=f2.st --resume=f.st --steps=9 --delay=4 --seed=3", 0, "done: 9 steps");
  toy_expect(&p, "--save=f3.st --resume=f.st --steps=9 --delay=3", 0, "seed 3|done: 9 steps");
  toy_expect(&p, "--save=f4.st --resume=f.st --steps=9", 0, "seed 3|done: 9 steps");
}

static void test_another_batch(void) {
  mlrt_input inputs[] = {toy_inputs[0], toy_inputs[1]};
  mlrt_program p = program;
  p.inputs = inputs;
  inputs[0].dims[0] = inputs[1].dims[0] = 5;
  toy_expect(&program, "--quiet --save=n.st --steps=7", 0, "");
  toy_expect(&p, "--save=n.st --resume --steps=9", 1,
             "goes on at sample 56 of 100, where no batch of 5 begins: it was made with another");
}

// A checkpoint that is missing or broken need not be all there is.
static void test_checkpoint_beside(void) {
  toy_expect(&program, "--save=b1.st --resume", 1,
             "help: --resume=FILE names the checkpoint; without");
  toy_expect(&program, "--quiet --save=b1.st --steps=7", 0, "");
  rename("b1.st", "b1.st.old");
  toy_expect(&program, "--save=b1.st --resume", 1,
             "'b1.st': No such file|help: 'b1.st.old' is whole, after step 7");
  toy_expect(&program, "--quiet --save=b1.st --resume=b1.st.old --steps=40", 0, "");
  CHECK(same_file("ref.st", "b1.st"), "other bytes");
  rename("b1.st", "b1.st.tmp");
  CHECK(truncate("b1.st.old", 100) == 0, "truncate");
  toy_expect(&program, "eval --resume=b1.st", 1, "help: 'b1.st.tmp' is whole, after step 40");
  CHECK(count_lines("log", "help:") == 1, "half a file is no help: %s", slurp("log", NULL));
  unlink("b1.st.old");
  toy_expect(&program, "--quiet --save=b1.st --seed=9", 0, "");
  CHECK(same_file("b1.st.old", "ref.st") && access("b1.st.tmp", F_OK), "it is not kept");
}

// What has been changed in a graph counts from there on: more than rounding, also where no kernel is another.
static void test_other_source(void) {
  mlrt_program other = program;
  other.source_hash++;
  toy_expect(&program, "--quiet --save=b2.st --steps=7", 0, "");
  toy_expect(&other, "--save=b2.st --resume", 0,
             "note: 'b2.st' was written by a program made from another text");
  toy_expect(&other, "--save=b2.st --resume", 0, "");
  CHECK(count_lines("log", "note:") == 0, "a note on its own checkpoint: %s", slurp("log", NULL));
  other.plan_hash++;
  toy_expect(&other, "--save=b2.st --resume", 0,
             "note: 'b2.st' was written by a program with another plan");
}

// A child that is nobody where it was root: for good, and with leave to be looked at, which a leak checker needs.
static void save_as_nobody(void) {
  enum { NOBODY = 65534 };
  if (geteuid() == 0 && (setresuid(NOBODY, NOBODY, NOBODY) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0))
    _exit(1);
  toy_expect(&program, "--save=drop/u.st", 0, "saved 'drop/u.st'");
  _exit(failures != 0);
}

// To write to a folder one need not be allowed to read it.
static void test_unreadable_folder(const char *scratch) {
  mkdir("drop", 0777);
  chmod("drop", 0333);
  chmod(scratch, 0777); // for the log
  unlink("log");
  pid_t pid = fork();
  if (pid == 0)
    save_as_nobody();
  int code = 1;
  CHECK(waitpid(pid, &code, 0) == pid && code == 0, "a folder that cannot be read");
  chmod("drop", 0700); // so that it can be removed
  chmod(scratch, 0700);
  unlink("log");
  CHECK(same_file("ref.st", "drop/u.st"), "other bytes");
}

// A full disk (here: a file size limit) in the middle: a warning, and the earlier file is whole.
static void test_full_disk(void) {
  toy_expect(&program, "--quiet --save=d.st --steps=7", 0, "");
  struct rlimit old, limit;
  getrlimit(RLIMIT_FSIZE, &old);
  limit = (struct rlimit){8192, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  int code = toy_run(&program, "--save=d.st --resume --steps=40", "log");
  setrlimit(RLIMIT_FSIZE, &old);
  char *text = slurp("log", NULL);
  CHECK(code == 1 && strstr(text, "warning: cannot write the checkpoint 'd.st': File too large") &&
            strstr(text, "error: cannot write"),
        "exit %d: %s", code, text);
  free(text);
  CHECK(access("d.st.tmp", F_OK) != 0, "no temporary file is left");
  toy_expect(&program, "--quiet --save=d.st --resume --steps=40", 0, "");
  CHECK(same_file("ref.st", "d.st"), "the earlier checkpoint is whole");
}

// --- a checkpoint of an earlier run, which this one does not go on with

static void expect_kept(const char *args, int code, const char *how) {
  unlink("q.st.old");
  toy_expect(&program, "--quiet --save=q.st", 0, "");
  CHECK(same_file("q.st", "ref.st"), "%s: no earlier checkpoint", how);
  unlink("q.st.old");
  toy_expect(&program, args, code, "the checkpoint of an earlier run is kept as 'q.st.old'");
  CHECK(count_lines("log", "is kept") == 1, "%s: said %d times", how,
        count_lines("log", "is kept"));
  CHECK(same_file("q.st.old", "ref.st"), "%s: the earlier checkpoint is lost", how);
  CHECK(!same_file("q.st", "ref.st"), "%s: nothing new is saved", how);
}

static void test_earlier_checkpoint(void) {
  expect_kept("--save=q.st --seed=9", 0, "saves on the way");
  expect_kept("--save=q.st --steps=3", 0, "at the end alone");
  expect_kept("--save=q.st --steps=0", 0, "without a step");
  toy_expect(&program, "--save=y.st --steps=8", 0, "");
  expect_kept("--save=q.st --resume=y.st --steps=12", 0, "gone on with another file");
  toy_expect(&program, "--save=q.st --resume --steps=30", 0, "");
  CHECK(count_lines("log", "is kept") == 0 && same_file("q.st.old", "ref.st"), "--resume keeps");
  toy_expect(&program, "--save=q.st --resume=q.st.old --lr=0.2", 0, "is kept as 'q.st.old'");
  toy_expect(&program, "--save=q.st --weights=q.st.old", 2, "'q.st.old' has the weights");
  toy_expect(&program, "--save=q.st --metrics=q.st.old", 2, "are one file, 'q.st.old'");
  unlink("q.st.old");
  toy_expect(&program, "--quiet --no-save", 0, "");
  toy_expect(&program, "eval --save=q.st", 0, "");
  CHECK(access("q.st.old", F_OK) != 0, "kept without a save");
}

// A signal in the first steps saves.
static void test_earlier_checkpoint_and_signal(void) {
  toy_expect(&program, "--quiet --save=q.st", 0, "");
  unlink("q.st.old");
  pid_t pid = toy_start(&program, "--save=q.st --delay=100000", "log");
  toy_wait_until_begun(pid);
  kill(pid, SIGINT);
  CHECK(toy_wait(pid) == 128 + SIGINT, "not stopped");
  CHECK(count_lines("log", "is kept as 'q.st.old'") == 1, "not said: %s", slurp("log", NULL));
  CHECK(same_file("q.st.old", "ref.st") && !same_file("q.st", "ref.st"), "not kept");
}

// Two runs at a time: the first says so, once, when it finds a checkpoint that is not its own.
static void test_crowded_checkpoint(void) {
  unlink("q.st");
  pid_t pid = toy_start(&program, "--save=q.st --delay=50000 --save-every=2", "slow");
  wait_for_file("q.st");
  toy_expect(&program, "--save=q.st --seed=9 --save-every=40", 0, "is kept as 'q.st.old'");
  CHECK(toy_wait(pid) == 0, "exit code");
  CHECK(count_lines("slow", "warning: another program saves to 'q.st', too") == 1, "%s",
        slurp("slow", NULL));
  toy_expect(&program, "--quiet --save=r9.st --seed=9 --save-every=40", 0, "");
  CHECK(same_file("q.st.old", "r9.st"), "the other's checkpoint is lost");
}

// What its owner has closed to others stays closed, though each save makes a new file.
static void test_permissions(void) {
  struct stat st;
  unlink("o1.jsonl");
  toy_expect(&program, "--quiet --save=o1.st --metrics=o1.jsonl --steps=7", 0, "");
  chmod("o1.st", 0600);
  chmod("o1.jsonl", 0640);
  toy_expect(&program, "--quiet --save=o1.st --resume --steps=9", 0, "");
  toy_expect(&program, "--quiet --save=o1.st --metrics=o1.jsonl --steps=7", 0, "");
  CHECK(stat("o1.st", &st) == 0 && (st.st_mode & 0777) == 0600, "%o", (unsigned)st.st_mode);
  CHECK(stat("o1.jsonl", &st) == 0 && (st.st_mode & 0777) == 0640, "%o", (unsigned)st.st_mode);
}

// What a run has done is not lost because another one is writing the file at its end: it waits.
static void test_last_save_waits(void) {
  unlink("u.st");
  pid_t pid = toy_start(&program, "--save=u.st --delay=3000 --save-every=40", "log");
  toy_wait_until_begun(pid);
  int fd = open("u.st.tmp", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  CHECK(flock(fd, LOCK_EX | LOCK_NB) == 0, "no lock");
  wait_for_lines("log", "warning: cannot write the checkpoint 'u.st': another program", 1);
  usleep(20000);
  close(fd);
  CHECK(toy_wait(pid) == 0, "%s", slurp("log", NULL));
  toy_expect(&program, "--save=u.st --resume", 0, "resumed after step 40");
}

static void test_nan(void) {
  toy_expect(&program, "--no-save --lr=1e30 --metrics=n.jsonl", 0,
             "warning: the loss is |training goes on");
  CHECK(count_lines("n.jsonl", "\"loss\":null") >= 1, "null in the metrics");
  char *text = NULL;
  size_t len;
  FILE *out = open_memstream(&text, &len);
  mlrt_print_values(out, &program.funcs[MLRT_STEP], (const double[MLRT_MAX_RESULTS]){-NAN, 0.5});
  fclose(out);
  CHECK(!strncmp(text, "  loss nan  ", 12), "how a NaN is written, whatever its sign: %s", text);
  free(text);
  toy_expect(&program, "--save=n.st --lr=1e30 --stop-on-nan", 1, "stopped before it was saved");
}

static void test_profile(void) {
  toy_expect(&program, "--no-save --profile=p.json", 0, "done");
  char *text = slurp("p.json", NULL);
  CHECK(strstr(text, "\"step\":{\"count\":40,") && strstr(text, "\"eval\":{\"count\":4,") &&
            strstr(text, "\"traceEvents\":["),
        "%s", text);
  free(text);
}

// --- data that are found to be bad when they are used

static void same_end(const char *how, int number, int accumulate) {
  CHECK(same_file("n.st", "o.st"), "%s %d, accumulate %d: other bytes", how, number, accumulate);
  CHECK(same_file("n.jsonl", "o.jsonl"), "%s %d, accumulate %d: other metrics", how, number,
        accumulate);
}

#define NEVER_BAD "--quiet --no-times --save=n.st --metrics=n.jsonl --steps=9"
#define ONCE_BAD  "--no-times --save=o.st --metrics=o.jsonl --steps=9"

// Wherever the sample is, in a step of one batch or of several: what was done before it is kept,
// and with the data repaired the run goes on as if nothing had happened.
static void test_bad_training_data(void) {
  from_files p;
  write_samples("test", TOY_TEST, -1);
  for (int accumulate = 1; accumulate <= 3; accumulate++) {
    read_files(&p, &program, accumulate, 2);
    write_samples("train", TOY_TRAIN, -1);
    toy_expect(&p.program, NEVER_BAD, 0, "");
    for (int batch = 4; batch < 8; batch++) {
      char words[128];
      snprintf(words, sizeof words,
               "7 does not fit input `y`|'o.st' is saved, after step %d: go on with --resume=o.st",
               batch / accumulate);
      unlink("o.st");
      write_samples("train", TOY_TRAIN, batch * TOY_B + 3);
      toy_expect(&p.program, ONCE_BAD, 1, words);
      toy_expect(&p.program, ONCE_BAD " --resume --threads=2", 1, "does not fit"); // nothing new
      write_samples("train", TOY_TRAIN, -1);
      toy_expect(&p.program, ONCE_BAD " --resume --threads=3", 0, "");
      same_end("a bad sample in batch", batch, accumulate);
    }
  }
}

static void test_bad_evaluation_data(void) {
  from_files p;
  write_samples("train", TOY_TRAIN, -1);
  for (int accumulate = 1; accumulate <= 2; accumulate++)
    for (int every = 3; every <= 20; every += 17) { // in the middle; at the end
      int step = every < 9 ? every : 9;
      read_files(&p, &program, accumulate, every);
      write_samples("test", TOY_TEST, -1);
      toy_expect(&p.program, NEVER_BAD, 0, "");
      char words[128];
      snprintf(words, sizeof words,
               "7 does not fit input `y`|'o.st' is saved, after step %d:", step);
      unlink("o.st");
      write_samples("test", TOY_TEST, TOY_TEST - 1);
      toy_expect(&p.program, ONCE_BAD, 1, words);
      CHECK(count_lines("o.jsonl", "\"eval\"") == 0, "half an evaluation is in the metrics");
      toy_expect(&p.program, "eval --split=test --save=o.st", 1, "7 does not fit input `y`");
      toy_expect(&p.program, "eval --split=train --save=o.st", 0, "train:");
      write_samples("test", TOY_TEST, -1);
      toy_expect(&p.program, ONCE_BAD " --resume --threads=2", 0, "");
      same_end("a bad sample in the evaluation of step", step, accumulate);
    }
}

// A run that could not begin leaves the file of another, and a step's middle is none of another kind.
static void test_bad_from_the_start(void) {
  from_files p;
  read_files(&p, &program, 2, 20);
  write_samples("train", TOY_TRAIN, 1);
  toy_expect(&p.program, ONCE_BAD, 1, "does not fit");
  CHECK(same_file("n.st", "o.st"), "a run without a batch has saved");
  CHECK(same_file("n.jsonl", "o.jsonl"), "a run without a batch has emptied the metrics");
  toy_expect(&program, "--quiet --no-save --metrics=o.jsonl --profile=none/p", 1, "cannot write");
  CHECK(same_file("n.jsonl", "o.jsonl"), "a run that could not start has emptied the metrics");
  write_samples("train", TOY_TRAIN, 3 * TOY_B);
  toy_expect(&p.program, "--no-save --steps=9", 1, "does not fit");
  CHECK(count_lines("log", "saved") == 0, "--no-save saves: %s", slurp("log", NULL));
  unlink("o.st.old");
  toy_expect(&p.program, ONCE_BAD, 1, "'o.st' is saved, after step 1:|is kept as 'o.st.old'");
  CHECK(same_file("n.st", "o.st.old"), "what bad data leave has cost the earlier checkpoint");
  read_files(&p, &program, 1, 20);
  toy_expect(&p.program, ONCE_BAD " --resume", 2,
             "in the middle of a step, after 1 of its batches");
  read_files(&p, &program, 3, 20); // the sums in the file are of halves
  toy_expect(&p.program, ONCE_BAD " --resume", 2,
             "in the middle of a step, after 1 of its batches|another number of them, 3");
}

static void test_too_large(void) {
  mlrt_program p = program;
  p.temp_bytes = INT64_C(1) << 46;
  p.arena_bytes = p.state_bytes + p.staging_bytes + p.temp_bytes;
  toy_expect(&p, "--no-save", 3, "bytes of memory and only");
  p = program;
  p.abi = 99;
  toy_expect(&p, "--no-save", 70, "ABI 99");
}

int main(void) {
  mlrt_embedded embedded[2];
  program = toy_program(embedded);
  char *folder = enter_scratch();
  test_reference();
  test_threads();
  test_resume_everywhere();
  test_signals();
  test_signals_that_save();
  test_signal_before_begin();
  test_signal_in_evaluation();
  test_kill();
  test_flags_and_seed();
  test_accumulation();
  test_epochs();
  test_broken_epochs();
  test_settings_by_flags();
  test_seed_by_flag();
  test_another_batch();
  test_bad_files();
  test_checkpoint_beside();
  test_other_source();
  test_unreadable_folder(folder);
  test_full_disk();
  test_earlier_checkpoint();
  test_earlier_checkpoint_and_signal();
  test_crowded_checkpoint();
  test_last_save_waits();
  test_permissions();
  test_nan();
  test_profile();
  test_bad_training_data();
  test_bad_evaluation_data();
  test_bad_from_the_start();
  test_too_large();
  leave_scratch(folder);
  return failures != 0;
}
