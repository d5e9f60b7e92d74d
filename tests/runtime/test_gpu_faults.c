// test_gpu_faults.c: what a trainer for a GPU says, and which exit code it has, when there is no
// driver, no device, no code for it, too little memory, or when any call of the driver fails.
#include "tests/runtime/support_gpu.h"

static mlrt_program cpu, gpu;

static const char *const train = "--quiet --no-save --metrics=m.jsonl --no-times";

static void fault(const char *what, const char *args, int code, const char *words) {
  expect_with("MLTC_STANDIN_FAULT", what, &gpu, args, code, words);
}

static void test_no_driver(void) {
  expect_with("MLTC_CUDA_DRIVER", "/nowhere/libcuda.so.1", &gpu, train, 4,
              "an NVIDIA GPU, and its driver cannot be opened|/nowhere/libcuda.so.1");
  expect_with("MLTC_CUDA_DRIVER", TOY_KERNELS, &gpu, train, 4,
              "has no cuGetErrorName: it is too old|CUDA 12.1 or newer");
  use_standin();
  expect_with("MLTC_STANDIN_DRIVER", "11040", &gpu, train, 4,
              "too old: it is for CUDA 11.4, and this program needs one for 12.1");
  expect_with("MLTC_STANDIN_DEVICES", "0", &gpu, train, 4,
              "the driver finds none|CUDA_ERROR_NO_DEVICE|no CUDA-capable device");
  fault("cuInit:1:999", train, 4, "does not start: cuInit failed: CUDA_ERROR_UNKNOWN, error 999");
}

static void test_device_number(void) {
  toy_expect(&gpu, "--no-save --device=1", 4,
             "no device 1: the driver finds 1 GPU, counted from 0");
  expect_with("MLTC_STANDIN_DEVICES", "3", &gpu, "--no-save --device=3", 4,
              "no device 3: the driver finds 3 GPUs");
  expect_with("MLTC_STANDIN_DEVICES", "3", &gpu, "--no-save --device=2", 0, "stand-in 2 (sm_90)");
  toy_expect(&gpu, "--device=-1", 2, "--device needs a whole number from 0");
  toy_expect(&cpu, "--device=0", 2, "unknown option --device; --help lists them");
  toy_expect(&cpu, "--no-cuda-graph", 2, "unknown option --no-cuda-graph");
  toy_expect(&gpu, "info --device=0", 2, "'info' has no option --device");
  mlrt_gpu_code code = toy_code;
  mlrt_program p = gpu;
  code.calls = NULL;
  p.gpu = &code;
  toy_expect(&p, train, 70, "linked without that part of the runtime");
}

static void test_images(void) {
  static const struct {
    const char *capability, *image;
  } fits[] = {{"8.0", "image sm_80"},       {"8.9", "image sm_80"},
              {"9.0", "image sm_90a"},      {"9.3", "image compute_90"},
              {"10.0", "image compute_90"}, {"12.1", "image compute_90"}};
  setenv("MLTC_STANDIN_TRACE", "trace", 1);
  for (size_t i = 0; i < sizeof fits / sizeof *fits; i++) {
    expect_with("MLTC_STANDIN_CAPABILITY", fits[i].capability, &gpu, train, 0, "");
    char *text = slurp("trace", NULL);
    CHECK(strstr(text, fits[i].image), "%s takes %s", fits[i].capability, fits[i].image);
    free(text);
  }
  unsetenv("MLTC_STANDIN_TRACE");
  expect_with("CUDA_MODULE_LOADING", "LAZY", &gpu, train, 0, ""); // never in a capture
  expect_with("MLTC_STANDIN_CAPABILITY", "7.5", &gpu, train, 4,
              "device 0 (stand-in 0) is sm_75: programs for GPUs need sm_80 or newer");
  fault("cuModuleLoadDataEx:2:209", train, 4,
        "does not take the code for sm_90a (unit 1|CUDA 13.0|NO_BINARY_FOR_GPU|ptxas fatal|"
        "NVRTC 13 want driver 580");
  mlrt_gpu_entry entries[NUM_TOY_ENTRIES];
  memcpy(entries, toy_entries, sizeof entries);
  mlrt_gpu_code code = toy_code;
  code.entries = entries;
  mlrt_program p = gpu;
  p.gpu = &code;
  entries[UPDATE].unit = 0;
  toy_expect(&p, train, 70, "kernel 'toy_update' (mul, add at toy.graph:6)|CUDA_ERROR_NOT_FOUND");
  entries[UPDATE] = toy_entries[UPDATE];
  entries[UPDATE].threads = 64;
  toy_expect(&p, train, 98, "toy_update: a launch of 64 threads per block; it is made for 32");
  entries[UPDATE] = toy_entries[UPDATE];
  entries[BIG].shared = 0;
  toy_expect(&p, train, 98, "toy_big: a launch with 0 bytes of shared memory; it takes 50000");
  entries[BIG].shared = 120000; // which 9.0 has, and 8.6 has not
  toy_expect(&p, train, 98, "toy_big: a launch with 120000 bytes of shared memory; it takes 50000");
  expect_with("MLTC_STANDIN_CAPABILITY", "8.6", &p, train, 4,
              "kernel 'toy_big' (mul, add at toy.graph:7)|bytes of shared memory: "
              "cuFuncSetAttribute failed|INVALID_VALUE|"
              "--target=cuda:sm_80,...");
}

static void test_memory(void) {
  char bytes[32], words[160];
  snprintf(bytes, sizeof bytes, "%d", TOY_ARENA - 1);
  snprintf(words, sizeof words,
           "needs %d bytes of memory on the GPU|of the %d bytes of device 0 (stand-in 0) only %d "
           "are free",
           TOY_ARENA, TOY_ARENA - 1, TOY_ARENA - 1);
  expect_with("MLTC_STANDIN_MEMORY", bytes, &gpu, train, 3, words);
  snprintf(bytes, sizeof bytes, "%d", TOY_ARENA);
  expect_with("MLTC_STANDIN_MEMORY", bytes, &gpu, train, 0, ""); // not a byte more than the plan
  fault("cuMemAlloc:1:214", train, 4, "cuMemAlloc of|ECC_UNCORRECTABLE");
  fault("cuMemHostAlloc:1:2", train, 3, "bytes of pinned memory|CUDA_ERROR_OUT_OF_MEMORY");
}

// A kernel is named where its launch fails; later the driver does not say which one it was.
static void test_kernels(void) {
  fault("cuLaunchKernel:4", train, 70,
        "kernel 'toy_update' (mul, add at toy.graph:6): cuLaunchKernel of 1 blocks of 32 threads "
        "with 16 bytes of parameters and 0 of shared memory failed: CUDA_ERROR_UNKNOWN");
  fault("kernel:9", train, 70, "waiting for |CUDA_ERROR_ILLEGAL_ADDRESS|CUDA_LAUNCH_BLOCKING=1");
  setenv("MLTC_STANDIN_SEED", "1", 1); // the next call has it
  fault("kernel:9", train, 70, " failed: CUDA_ERROR_ILLEGAL_ADDRESS|CUDA_LAUNCH_BLOCKING=1");
  unsetenv("MLTC_STANDIN_SEED");
  setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
  fault("kernel:9", "--quiet --no-save --no-cuda-graph", 70,
        "kernel 'toy_big' (mul, add at toy.graph:7)|CUDA_ERROR_ILLEGAL_ADDRESS");
  unsetenv("CUDA_LAUNCH_BLOCKING");
  fault("kernel:3", "check", 70, "waiting for squares");
  mlrt_program joint = joint_program(&gpu);
  expect_with("MLTC_STANDIN_FAULT", "cuModuleGetGlobal_v2:1", &joint, "check", 70,
              "cuModuleGetGlobal failed: CUDA_ERROR_UNKNOWN");
}

// Every call, at its first, second and a later use: an error with its name, never a crash or a
// wrong result.
static void test_every_call(void) {
  static const char *const calls[] = {
#define GPU_CALL(name, parameters) #name,
#include "runtime/gpu_calls.def"
#undef GPU_CALL
  };
  int failed = 0;
  for (size_t i = 2; i < sizeof calls / sizeof *calls; i++) // after the two that explain errors
    for (int nth = 1; nth <= 11; nth += nth < 2 ? 1 : 9) {
      char what[64], name[64];
      snprintf(name, sizeof name, "%s", calls[i]);
      if (strlen(name) > 3 && !strcmp(name + strlen(name) - 3, "_v2"))
        name[strlen(name) - 3] = 0;
      snprintf(what, sizeof what, "%s:%d", calls[i], nth);
      setenv("MLTC_STANDIN_FAULT", what, 1);
      unlink("f.st");
      int code = toy_run(&gpu, "--quiet --save=f.st --steps=12 --kernel-times=t.json", "log");
      unsetenv("MLTC_STANDIN_FAULT");
      char *text = slurp("log", NULL);
      if (code == 0) { // there are not so many of them
        bool only_there = !strcmp(name, "cuMemGetInfo") || !strcmp(name, "cuModuleGetGlobal");
        CHECK(nth > 1 || only_there, "%s is not used", name);
        CHECK(same_file("f.st", "f0.st"), "%s: wrong bytes", what);
      } else {
        failed++;
        CHECK(code == 4 || code == 70 || code == 3, "%s: exit code %d: %s", what, code, text);
        CHECK(strstr(text, name) && strstr(text, "CUDA_ERROR_UNKNOWN"), "%s: %s", what, text);
      }
      free(text);
    }
  CHECK(failed > 60, "%d faults showed", failed);
}

int main(void) {
  mlrt_embedded embedded[2];
  cpu = toy_program(embedded);
  gpu = gpu_program(&cpu);
  char *folder = enter_scratch();
  use_standin();
  toy_expect(&gpu, "--quiet --save=f0.st --steps=12", 0, "");
  test_no_driver();
  test_device_number();
  test_images();
  test_memory();
  test_kernels();
  test_every_call();
  leave_scratch(folder);
  return failures != 0;
}
