// test_gpu_standin.c: the stand-in driver notices what a program for a GPU must not do. Each misuse
// runs in a process of its own, which must end with a report.
#include "tests/runtime/support_gpu.h"

#include "runtime/gpu_driver.h"

#include <elf.h>

static gpu_driver cu;
static CUcontext context;
static CUstream one, two;
static CUevent event;
static CUdeviceptr device;
static char *pinned;

enum { BYTES = 1000, REPORTED = 98 };

static void begin(void) {
  void *at = NULL;
  gpu_driver_open(&cu);
  GPU_DO(&cu, cuDevicePrimaryCtxRetain, &context, 0);
  GPU_DO(&cu, cuCtxSetCurrent, context);
  GPU_DO(&cu, cuStreamCreate, &one, GPU_STREAM_NON_BLOCKING);
  GPU_DO(&cu, cuStreamCreate, &two, GPU_STREAM_NON_BLOCKING);
  GPU_DO(&cu, cuEventCreate, &event, GPU_EVENT_NO_TIMING);
  GPU_DO(&cu, cuMemAlloc_v2, &device, BYTES);
  GPU_DO(&cu, cuMemHostAlloc, &at, BYTES, 0);
  pinned = at;
}

static void end(void) {
  GPU_DO(&cu, cuStreamSynchronize, one);
  GPU_DO(&cu, cuStreamSynchronize, two);
  GPU_DO(&cu, cuMemFree_v2, device);
  GPU_DO(&cu, cuMemFreeHost, pinned);
  GPU_DO(&cu, cuEventDestroy_v2, event);
  GPU_DO(&cu, cuStreamDestroy_v2, one);
  GPU_DO(&cu, cuStreamDestroy_v2, two);
  GPU_DO(&cu, cuDevicePrimaryCtxRelease_v2, 0);
}

static void to_device(CUdeviceptr to, const char *from, size_t bytes) {
  GPU_DO(&cu, cuMemcpyHtoDAsync_v2, to, from, bytes, one);
}

// --- misuses
static void nothing(void) {
  to_device(device, pinned, BYTES);
}
static void double_free(void) {
  GPU_DO(&cu, cuMemFree_v2, device);
}
static void copy_to_freed(void) {
  CUdeviceptr more;
  GPU_DO(&cu, cuMemAlloc_v2, &more, 8);
  GPU_DO(&cu, cuMemFree_v2, more);
  to_device(more, pinned, 8);
}
static void free_in_use(void) {
  to_device(device, pinned, 8);
  GPU_DO(&cu, cuMemFree_v2, device);
}
static void copy_too_much(void) {
  to_device(device + 8, pinned, BYTES);
}
static void copy_from_stack(void) {
  char local[8] = {0};
  to_device(device, local, sizeof local);
}
static void leak_memory(void) {
  CUdeviceptr more;
  GPU_DO(&cu, cuMemAlloc_v2, &more, 8);
}
static void leak_event(void) {
  CUevent more;
  GPU_DO(&cu, cuEventCreate, &more, GPU_EVENT_NO_TIMING);
}
static void dead_event(void) {
  GPU_DO(&cu, cuEventDestroy_v2, event);
  GPU_DO(&cu, cuEventRecord, event, one);
}
static void wrong_handle(void) {
  GPU_DO(&cu, cuStreamSynchronize, (CUstream)(void *)event);
}
static void no_handle(void) {
  GPU_DO(&cu, cuGraphLaunch, NULL, one);
}
static void wait_in_capture(void) {
  GPU_DO(&cu, cuStreamBeginCapture_v2, one, GPU_CAPTURE_THREAD);
  GPU_DO(&cu, cuStreamSynchronize, one);
}
static void take_in_capture(void) {
  CUdeviceptr more;
  GPU_DO(&cu, cuStreamBeginCapture_v2, one, GPU_CAPTURE_THREAD);
  GPU_DO(&cu, cuMemAlloc_v2, &more, 8);
}
static void free_in_capture(void) {
  GPU_DO(&cu, cuStreamBeginCapture_v2, one, GPU_CAPTURE_THREAD);
  GPU_DO(&cu, cuMemFree_v2, device);
}
static void wait_elsewhere_in_capture(void) {
  GPU_DO(&cu, cuEventRecord, event, two);
  GPU_DO(&cu, cuStreamBeginCapture_v2, one, GPU_CAPTURE_THREAD);
  GPU_DO(&cu, cuEventSynchronize, event);
}
// Stream two becomes a branch of the capture of stream one.
static void fork_capture(void) {
  GPU_DO(&cu, cuStreamBeginCapture_v2, one, GPU_CAPTURE_THREAD);
  GPU_DO(&cu, cuEventRecord, event, one);
  GPU_DO(&cu, cuStreamWaitEvent, two, event, 0);
  GPU_DO(&cu, cuMemsetD8Async, device, 1, BYTES, two);
}
static void branch_left_alone(void) {
  CUgraph graph;
  fork_capture();
  GPU_DO(&cu, cuStreamEndCapture, one, &graph);
}
static void work_behind_the_join(void) {
  CUgraph graph;
  fork_capture();
  GPU_DO(&cu, cuEventRecord, event, two);
  GPU_DO(&cu, cuStreamWaitEvent, one, event, 0);
  GPU_DO(&cu, cuMemsetD8Async, device, 2, BYTES, two);
  GPU_DO(&cu, cuStreamEndCapture, one, &graph);
}
static void end_from_a_branch(void) {
  CUgraph graph;
  fork_capture();
  GPU_DO(&cu, cuStreamEndCapture, two, &graph);
}
static void wait_for_outside(void) {
  GPU_DO(&cu, cuEventRecord, event, two);
  GPU_DO(&cu, cuStreamBeginCapture_v2, one, GPU_CAPTURE_THREAD);
  GPU_DO(&cu, cuStreamWaitEvent, one, event, 0);
}
static void record_beside_capture(void) {
  GPU_DO(&cu, cuStreamBeginCapture_v2, one, GPU_CAPTURE_THREAD);
  GPU_DO(&cu, cuEventRecord, event, two);
}
static void event_of_an_ended_capture(void) {
  CUgraph graph;
  GPU_DO(&cu, cuStreamBeginCapture_v2, one, GPU_CAPTURE_THREAD);
  GPU_DO(&cu, cuEventRecord, event, one);
  GPU_DO(&cu, cuStreamEndCapture, one, &graph);
  GPU_DO(&cu, cuStreamWaitEvent, two, event, 0);
}
static void load_in_capture(void) {
  CUmodule module;
  GPU_DO(&cu, cuStreamBeginCapture_v2, one, GPU_CAPTURE_THREAD);
  GPU_DO(&cu, cuModuleLoadDataEx, &module, "toy_update", 0, NULL, NULL);
}
static void copy_onto_itself(void) {
  GPU_DO(&cu, cuMemcpyDtoDAsync_v2, device + 4, device, 8, one);
}
static void behind_the_end(void) {
  pinned[BYTES] = 1;
}

static void launch(size_t bytes, bool captured) {
  static const char image[] = "toy_update";
  CUmodule module;
  CUfunction function;
  char parameter[64] = {0};
  GPU_DO(&cu, cuModuleLoadDataEx, &module, image, 0, NULL, NULL);
  GPU_DO(&cu, cuModuleGetFunction, &function, module, "toy_update");
  if (captured)
    GPU_DO(&cu, cuStreamBeginCapture_v2, one, GPU_CAPTURE_THREAD);
  void *extra[] = {(void *)(uintptr_t)GPU_LAUNCH_BYTES, parameter,
                   (void *)(uintptr_t)GPU_LAUNCH_SIZE, &bytes, (void *)(uintptr_t)GPU_LAUNCH_END};
  GPU_DO(&cu, cuLaunchKernel, function, 1, 1, 1, 32, 1, 1, 0, one, NULL, extra);
}
static void wrong_parameter(void) {
  launch(8, false);
}
static void lazy_code(void) {
  launch(16, true);
}

// The head of a cubin for sm_`arch`, as CUDA 13 writes it or as 12 does; the name of a kernel.
static CUresult load_cubin(int arch, bool old) {
  struct {
    Elf64_Ehdr header;
    char name[16];
  } image = {{.e_machine = 190, .e_flags = (Elf64_Word)arch << (old ? 0 : 8)}, "toy_update"};
  memcpy(image.header.e_ident, ELFMAG, SELFMAG);
  image.header.e_ident[EI_ABIVERSION] = old ? 7 : 8;
  image.header.e_shoff = sizeof image;
  CUmodule module;
  CUresult r = cu.cuModuleLoadDataEx(&module, &image, 0, NULL, NULL);
  if (r == GPU_OK)
    GPU_DO(&cu, cuModuleUnload, module);
  return r;
}

static CUresult load_ptx(const char *target) {
  char text[64];
  CUmodule module;
  snprintf(text, sizeof text, ".version 8.0\n.target %s\n toy_update", target);
  CUresult r = cu.cuModuleLoadDataEx(&module, text, 0, NULL, NULL);
  if (r == GPU_OK)
    GPU_DO(&cu, cuModuleUnload, module);
  return r;
}

// Of a device of capability 9.0. The exit code tells the first that is taken or refused wrongly.
static void images(void) {
  const int no_binary = GPU_NO_BINARY, invalid_ptx = 218;
  const struct {
    int got, wanted;
  } cases[] = {
      {(int)load_cubin(90, false), 0},
      {(int)load_cubin(80, false), no_binary},
      {(int)load_cubin(100, false), no_binary},
      {(int)load_cubin(90, true), 0},
      {(int)load_cubin(89, true), no_binary},
      {(int)load_ptx("sm_80"), 0},
      {(int)load_ptx("sm_90"), 0},
      {(int)load_ptx("sm_90a"), 0},
      {(int)load_ptx("sm_80a"), invalid_ptx},
      {(int)load_ptx("sm_100"), invalid_ptx},
  };
  for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++)
    if (cases[i].got != cases[i].wanted)
      _exit(i + 1);
}
static void leak_module(void) {
  CUmodule module;
  GPU_DO(&cu, cuModuleLoadDataEx, &module, "toy_update", 0, NULL, NULL);
}

// Exit code of begin, misuse, end.
static int run(void (*misuse)(void)) {
  fflush(NULL);
  pid_t pid = fork();
  if (pid)
    return toy_wait(pid);
  int fd = open("log", O_WRONLY | O_CREAT | O_TRUNC, 0666);
  dup2(fd, 2);
  begin();
  misuse();
  end();
  _exit(0);
}

static void test_misuses(void) {
  static const struct {
    void (*misuse)(void);
    int code;
    const char *words;
  } cases[] = {
      {nothing, 0, ""},
      {double_free, REPORTED, "cuMemFree: this device memory has been freed before"},
      {copy_to_freed, REPORTED, "cuMemcpyHtoDAsync: this device memory has been freed"},
      {free_in_use, REPORTED, "freed while work is queued that may use it"},
      {copy_too_much, REPORTED, "1000 bytes at 8 of device memory that has 1000"},
      {copy_from_stack, REPORTED, "is not in pinned memory"},
      {leak_memory, REPORTED, "8 bytes of device memory are not freed"},
      {leak_event, REPORTED, "not destroyed: event"},
      {dead_event, REPORTED, "cuEventRecord: the event has been destroyed before"},
      {wrong_handle, REPORTED, "cuStreamSynchronize: event given, stream wanted"},
      {no_handle, REPORTED, "is no executable graph"},
      {wait_in_capture, REPORTED, "cuStreamSynchronize while a stream is being captured"},
      {wait_elsewhere_in_capture, REPORTED, "cuEventSynchronize while a stream is being captured"},
      {free_in_capture, REPORTED, "cuMemFree_v2 while a stream is being captured"},
      {branch_left_alone, REPORTED, "cuStreamEndCapture: work of another stream is not waited for"},
      {work_behind_the_join, REPORTED,
       "cuStreamEndCapture: work of another stream is not waited for"},
      {end_from_a_branch, REPORTED,
       "cuStreamEndCapture: the capture did not begin with this stream"},
      {wait_for_outside, REPORTED, "cuStreamWaitEvent: the event is not part of the capture"},
      {record_beside_capture, REPORTED,
       "cuEventRecord: on a stream beside the one that is being captured"},
      {event_of_an_ended_capture, REPORTED,
       "cuStreamWaitEvent: the capture that the event is part of has ended"},
      {load_in_capture, REPORTED, "cuModuleLoadDataEx while a stream is being captured"},
      {lazy_code, REPORTED, "toy_update: its code would be loaded during a capture"},
      {copy_onto_itself, REPORTED, "the 8 bytes copied overlap their copy"},
      {images, 0, ""},
      {take_in_capture, REPORTED, "cuMemAlloc_v2 while a stream is being captured"},
      {behind_the_end, REPORTED, "wrote 0 bytes behind the end of pinned memory"},
      {wrong_parameter, REPORTED, "a launch gives 8 bytes of parameters; it takes 16"},
      {leak_module, REPORTED, "not destroyed: module"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int code = run(cases[i].misuse);
    char *text = slurp("log", NULL);
    CHECK(code == cases[i].code && strstr(text, cases[i].words), "'%s': exit %d: %s",
          cases[i].words, code, text);
    free(text);
  }
}

// The host touches device memory: a fault, as it may be on a machine with a GPU.
static void touch_device(void) {
  *(volatile char *)(uintptr_t)device = 1;
}

// A copy reads its source when it is done. With seed 0 that is late, with seed 1 at once.
static void change_source(void) {
  memset(pinned, 1, BYTES);
  to_device(device, pinned, BYTES);
  GPU_DO(&cu, cuEventRecord, event, one); // any call lets a willing device work
  memset(pinned, 2, BYTES);
  GPU_DO(&cu, cuStreamSynchronize, one);
  memset(pinned, 3, BYTES);
  GPU_DO(&cu, cuMemcpyDtoHAsync_v2, pinned, device, BYTES, one);
  GPU_DO(&cu, cuStreamSynchronize, one);
  if (pinned[0] != (strcmp(getenv("MLTC_STANDIN_SEED"), "1") ? 2 : 1))
    _exit(1);
}

// Without an event a reader on another stream may come first; with it, it cannot.
static void use_event(bool wait) {
  memset(pinned, 5, 500);
  memset(pinned + 500, 0, 500);
  to_device(device, pinned, 500);
  GPU_DO(&cu, cuEventRecord, event, one);
  if (wait)
    GPU_DO(&cu, cuStreamWaitEvent, two, event, 0);
  GPU_DO(&cu, cuMemcpyDtoHAsync_v2, pinned + 500, device, 500, two);
  GPU_DO(&cu, cuStreamSynchronize, two);
  GPU_DO(&cu, cuStreamSynchronize, one);
  _exit(pinned[500] == 5 ? 10 : 11);
}
static void with_event(void) {
  use_event(true);
}
static void without_event(void) {
  use_event(false);
}

static void test_order(void) {
  int early = 0;
  setenv("MLTC_STANDIN_SEED", "0", 1);
  CHECK(run(change_source) == 0, "late copies read late");
  setenv("MLTC_STANDIN_SEED", "1", 1);
  CHECK(run(change_source) == 0, "early copies read early");
  for (int seed = 2; seed < 22; seed++) {
    char text[16];
    snprintf(text, sizeof text, "%d", seed);
    setenv("MLTC_STANDIN_SEED", text, 1);
    CHECK(run(with_event) == 10, "seed %d: an event orders two streams", seed);
    int first = run(without_event);
    CHECK(run(without_event) == first, "seed %d: the same order again", seed);
    early += first == 11;
  }
  CHECK(early > 0 && early < 20, "without an event %d of 20 seeds read too early", early);
  setenv("MLTC_STANDIN_SEED", "0", 1);
}

int main(void) {
  char *folder = enter_scratch();
  use_standin();
  test_misuses();
  CHECK(run(touch_device) != 0, "the host cannot touch device memory");
  test_order();
  leave_scratch(folder);
  return failures != 0;
}
