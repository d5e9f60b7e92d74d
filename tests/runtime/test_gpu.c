// test_gpu.c: programs for a GPU on the stand-in driver (tests/standin): whatever order the device
// does things in, with graphs and without, they train to the bytes that the CPU's program writes.
#include "tests/runtime/support_gpu.h"
#include "tests/runtime/support_samples.h"

#include <signal.h>

static mlrt_program cpu, gpu, wide;

static void expect_same(const char *what, const char *a, const char *b) {
  CHECK(same_file(a, b), "%s: '%s' and '%s' differ", what, a, b);
}

static void with_seed(int seed) {
  char text[16];
  snprintf(text, sizeof text, "%d", seed);
  setenv("MLTC_STANDIN_SEED", text, 1);
}

enum { SEEDS = 8 };

static void test_same_as_cpu(void) {
  toy_expect(&cpu, "--save=cpu.st --metrics=cpu.jsonl --no-times", 0, "done: 40 steps");
  toy_expect(&gpu, "--save=gpu.st --metrics=gpu.jsonl --no-times", 0,
             "stand-in 0 (sm_90)|memory: |on the device and|step 40/40|test after step 40:");
  for (int seed = 0; seed < SEEDS; seed++) {
    with_seed(seed);
    toy_expect(&gpu, "--quiet --save=gpu.st --metrics=gpu.jsonl --no-times", 0, "");
    expect_same("graphs", "cpu.st", "gpu.st");
    expect_same("graphs", "cpu.jsonl", "gpu.jsonl");
    toy_expect(&gpu, "--quiet --save=one.st --metrics=one.jsonl --no-times --no-cuda-graph", 0, "");
    expect_same("launches", "cpu.st", "one.st");
    expect_same("launches", "cpu.jsonl", "one.jsonl");
  }
  with_seed(0);
}

// A state of many pieces, batches made by a thread.
static void test_wide(void) {
  for (int seed = 0; seed < SEEDS; seed++) {
    with_seed(seed);
    toy_expect(&wide, "--quiet --save=v.st --steps=17", 0, "");
    toy_expect(&wide, "--quiet --save=v.st --resume --steps=40", 0, "");
    toy_expect(&wide, "--quiet --save=w.st --metrics=w.jsonl --no-times", 0, "");
    expect_same("wide", "cpu.jsonl", "w.jsonl");
    expect_same("wide, resumed", "w.st", "v.st");
    if (seed == 0)
      rename("w.st", "w0.st");
    else
      expect_same("wide", "w0.st", "w.st");
  }
  with_seed(0);
  toy_expect(&wide, "--quiet --save=w.st --no-cuda-graph --threads=1", 0, "");
  expect_same("wide, launches", "w0.st", "w.st");
}

// Runs `first` for some steps and goes on with `second`.
static void run_both(const mlrt_program *first, const mlrt_program *second, int steps,
                     const char *name) {
  char args[128];
  snprintf(args, sizeof args, "--quiet --save=%s.st --metrics=%s.jsonl --no-times --steps=%d", name,
           name, steps);
  toy_expect(first, args, 0, "");
  snprintf(args, sizeof args,
           "--quiet --save=%s.st --metrics=%s.jsonl --no-times --resume --steps=40", name, name);
  toy_expect(second, args, 0, "");
}

static void test_resume(void) {
  for (int steps = 0; steps < 40; steps += steps < 4 ? 1 : 9) {
    run_both(&cpu, &cpu, steps, "cc");
    run_both(&cpu, &gpu, steps, "cg");
    run_both(&gpu, &cpu, steps, "gc");
    expect_same("begun on the CPU", "cpu.st", "cg.st");
    expect_same("begun on the CPU", "cc.jsonl", "cg.jsonl");
    expect_same("begun on the GPU", "cpu.st", "gc.st");
    expect_same("begun on the GPU", "cc.jsonl", "gc.jsonl");
  }
}

// States of one piece and of many.
static void test_weights(void) {
  const mlrt_program *programs[] = {&cpu, &gpu};
  for (int i = 0; i < 2; i++) {
    char args[128];
    snprintf(args, sizeof args, "--weights=cpu.st --seed=5 --steps=9 --save=weights%d.st", i);
    toy_expect(programs[i], args, 0, "weights: cpu.st: 2 loaded, 0 missing|done: 9 steps");
  }
  expect_same("weights", "weights0.st", "weights1.st");
  toy_expect(&wide, "--weights=w0.st --quiet --steps=0 --save=again.st", 0, "");
  toy_expect(&wide, "eval --weights=again.st", 0, "0 missing|test:  loss ");
  toy_expect(&wide, "--weights=cpu.st --quiet --no-save", 1, "parameters are missing");
}

static void test_accumulation(void) {
  mlrt_setting config[8];
  memcpy(config, toy_config, sizeof toy_config);
  config[7] = (mlrt_setting){"accumulate", MLRT_SET_NUM, 3, NULL};
  mlrt_program c = cpu, g = gpu, w = wide;
  c.config = g.config = w.config = config;
  c.num_config = g.num_config = w.num_config = 8;
  toy_expect(&c, "--quiet --save=a.st --metrics=a.jsonl --no-times", 0, "");
  for (int seed = 0; seed < 4; seed++) {
    with_seed(seed);
    toy_expect(&g, "--quiet --save=b.st --metrics=b.jsonl --no-times", 0, "");
    expect_same("accumulation", "a.st", "b.st");
    expect_same("accumulation", "a.jsonl", "b.jsonl");
    toy_expect(&w, "--quiet --no-save --metrics=b.jsonl --no-times --log-every=1", 0, "");
  }
  with_seed(0);
  toy_expect(&c, "--quiet --no-save --metrics=a.jsonl --no-times --log-every=1", 0, "");
  expect_same("accumulation, each step logged", "a.jsonl", "b.jsonl");
}

static void test_eval_and_predict(void) {
  toy_expect(&cpu, "eval --quiet --resume=cpu.st --metrics=ce.jsonl --no-times", 0, "");
  toy_expect(&cpu, "predict --quiet --resume=cpu.st --out=c", 0, "");
  for (int seed = 0; seed < SEEDS; seed++) {
    with_seed(seed);
    unlink("ge.jsonl");
    toy_expect(&gpu, "eval --quiet --resume=cpu.st --metrics=ge.jsonl --no-times", 0,
               "(21 samples)");
    expect_same("eval", "ce.jsonl", "ge.jsonl");
    unlink("ge.jsonl");
    toy_expect(&wide, "eval --quiet --resume=w0.st --metrics=ge.jsonl --no-times", 0, "");
    expect_same("eval, wide", "ce.jsonl", "ge.jsonl");
    toy_expect(&gpu, "predict --quiet --resume=cpu.st --out=g", 0, "wrote g-prob.npy");
    expect_same("predict", "c-prob.npy", "g-prob.npy");
  }
  with_seed(0);
}

// The loss of some step is not finite; the run must end at that step, and say so as on the CPU.
static void test_nan(void) {
  static const char *const args[] = {
      "--no-save --lr=1e30 --metrics=n%c.jsonl --no-times",
      "--save=n.st --lr=1e30 --stop-on-nan --metrics=n%c.jsonl --no-times --log-every=100",
      "--save=n.st --lr=1e30 --stop-on-nan --metrics=n%c.jsonl --no-times --log-every=1"};
  for (int i = 0; i < 3; i++) {
    char line[2][200];
    for (int g = 0; g < 2; g++) {
      char with[128];
      snprintf(with, sizeof with, args[i], g ? 'g' : 'c');
      int code = toy_run(g ? &gpu : &cpu, with, "log");
      CHECK(code == (i > 0), "exit code %d", code);
      char *text = slurp("log", NULL), *at = strstr(text, "warning: the loss is ");
      snprintf(line[g], sizeof line[g], "%.*s", at ? (int)strcspn(at, "\n") : 0, at ? at : "");
      free(text);
    }
    CHECK(line[0][0] && !strcmp(line[0], line[1]), "'%s' and '%s'", line[0], line[1]);
    expect_same("nan", "nc.jsonl", "ng.jsonl");
  }
}

// The signal comes while a step is under way (toy_kernels.c sends it). The results of the last step
// that was started are in the checkpoint though nothing had asked for them.
static void test_signal(void) {
  for (int step = 1; step < 20; step++) {
    char text[16];
    snprintf(text, sizeof text, "%d", step);
    expect_with("TOY_STOP_AT", text, &gpu, "--save=s.st --metrics=s.jsonl --no-times",
                128 + SIGTERM, "stopped by signal");
    toy_expect(&gpu, "--quiet --save=s.st --metrics=s.jsonl --no-times --resume", 0, "");
    expect_same("stopped and resumed", "cpu.st", "s.st");
    expect_same("stopped and resumed", "cpu.jsonl", "s.jsonl");
  }
}

// All programs, with or without --resume; the first two end with the same bytes, and all with the same lines.
static void run_on_files(from_files *programs, const char *how, int code, const char *words) {
  for (int i = 0; i < 3; i++) {
    char args[128];
    snprintf(args, sizeof args, "--no-times --steps=9 --save=bad%d.st --metrics=bad%d.jsonl%s", i,
             i, how);
    toy_expect(&programs[i].program, args, code, words);
  }
  expect_same(words, "bad0.st", "bad1.st");
  expect_same(words, "bad0.jsonl", "bad1.jsonl");
  expect_same(words, "bad0.jsonl", "bad2.jsonl");
}

// As on the CPU, the file of a run that bad data have ended has all that was done before, though its
// last results were not taken yet.
static void test_bad_data(void) {
  const mlrt_program *on[] = {&cpu, &gpu, &wide};
  from_files programs[3];
  for (int accumulate = 1; accumulate <= 2; accumulate++)
    for (int use = 0; use < 2; use++) { // of the bad sample: to train on, to evaluate on
      for (int i = 0; i < 3; i++)
        read_files(&programs[i], on[i], accumulate, 3);
      write_samples("train", TOY_TRAIN, use == 0 ? 5 * TOY_B : -1);
      write_samples("test", TOY_TEST, use == 1 ? 9 : -1);
      run_on_files(programs, "", 1, "does not fit|is saved, after step ");
      write_samples("train", TOY_TRAIN, -1);
      write_samples("test", TOY_TEST, -1);
      run_on_files(programs, " --resume", 0, "done: 9 steps");
    }
}

// What the driver is asked for: one arena of exactly the plan, nothing after the start, each graph
// captured once.
static void test_calls(void) {
  setenv("MLTC_STANDIN_TRACE", "trace", 1);
  toy_expect(&gpu, "--quiet --no-save", 0, "");
  char arena[32];
  snprintf(arena, sizeof arena, "  %d bytes", TOY_ARENA);
  CHECK(count_lines("trace", "cuMemAlloc") == 1 && count_lines("trace", arena) >= 1, "one arena");
  CHECK(count_lines("trace", "cuMemHostAlloc") == 1, "one block of pinned memory");
  CHECK(count_lines("trace", "cuGraphInstantiate") == 5,
        "init, and step and eval for two slots: %d", count_lines("trace", "cuGraphInstantiate"));
  CHECK(count_lines("trace", "cuGraphLaunch") == 1 + 40 + 4 * 4,
        "runs: %d", // 3 batches, and its rest
        count_lines("trace", "cuGraphLaunch"));
  CHECK(count_lines("trace", "cuLaunchKernel") == 1 + 2 * 4 + 2 * 1, "captured launches: %d",
        count_lines("trace", "cuLaunchKernel"));
  CHECK(count_lines("trace", "cuStreamSynchronize") < 20, "no step waits for the stream: %d",
        count_lines("trace", "cuStreamSynchronize"));
  CHECK(count_lines("trace", "image sm_90a") == 2, "the device's own images");
  toy_expect(&gpu, "--quiet --no-save --no-cuda-graph", 0, "");
  CHECK(count_lines("trace", "cuGraph") == 0, "no graphs");
  CHECK(count_lines("trace", "cuLaunchKernel") == 1 + 40 * 4 + 16, "launches");
  unsetenv("MLTC_STANDIN_TRACE");
}

static void test_check(void) {
  for (int seed = 0; seed < 3; seed++) {
    with_seed(seed);
    toy_expect(&gpu, "check", 0,
               "squares|3 steps, twice: same bits: ok|with and without a CUDA graph: same bits: "
               "ok|written and read: same bits: ok|all checks passed");
  }
  mlrt_program joint = joint_program(&gpu);
  for (int seed = 0; seed < 3; seed++) {
    with_seed(seed);
    toy_expect(&joint, "check", 0, "squares|same bits: ok|all checks passed");
  }
  with_seed(0);
  mlrt_gpu_entry entries[NUM_TOY_ENTRIES];
  memcpy(entries, toy_entries, sizeof entries);
  mlrt_gpu_code code = toy_code;
  code.entries = entries;
  mlrt_program p = gpu;
  p.gpu = &code;
  entries[TOTAL].symbol = "toy_wrong_total";
  toy_expect(&p, "check", 1,
             "differs from the plain version|mul, sum at toy.graph:5|1 checks FAILED");
  entries[TOTAL].symbol = "toy_long_total";
  toy_expect(&p, "check", 70, "writes behind the end of argument 1|mul, sum at toy.graph:5");
}

// The stand-in's clock counts what it has done: a kernel and the mark behind it. The first run on
// each slot is not counted, and what is computed stays what it was.
static void test_kernel_times(void) {
  static const char *const ways[] = {"", "--no-cuda-graph"};
  for (int i = 0; i < 2 * SEEDS; i++) {
    char args[128];
    with_seed(i / 2);
    snprintf(args, sizeof args, "--quiet --save=t.st --kernel-times=t.json %s", ways[i % 2]);
    toy_expect(&gpu, args, 0, "");
    expect_same("with times", "cpu.st", "t.st");
    CHECK(count_lines("t.json", "{\"name\":\"step\",\"runs\":38,") == 1,
          "runs of step are counted");
    CHECK(count_lines("t.json", "\"launches\":38,") == 4, "each kernel of a step: %d",
          count_lines("t.json", "\"launches\":38,"));
    CHECK(count_lines("t.json", "\"min_us\":2.000") >= 4, "times of kernels");
  }
  with_seed(0);
  toy_expect(&gpu, "--quiet --no-save --kernel-times=none/t.json", 1,
             "cannot write the kernels' times 'none/t.json'");
}

static void test_info(void) {
  unsetenv("MLTC_CUDA_DRIVER"); // it needs none
  toy_expect(&gpu, "info", 0, "cuda:sm_90a,sm_80|sm_80: 9 kernels|compute_90: 9|pinned: batches");
  toy_expect(&gpu, "--help", 0, "--device=N|--no-cuda-graph|4 no GPU");
  use_standin();
}

int main(void) {
  mlrt_embedded embedded[2];
  cpu = toy_program(embedded);
  gpu = gpu_program(&cpu);
  wide = wide_program(&gpu);
  char *folder = enter_scratch();
  use_standin();
  test_same_as_cpu();
  test_wide();
  test_resume();
  test_weights();
  test_accumulation();
  test_eval_and_predict();
  test_nan();
  test_signal();
  test_bad_data();
  test_calls();
  test_check();
  test_kernel_times();
  test_info();
  leave_scratch(folder);
  return failures != 0;
}
