// gpu_driver.h: the CUDA driver, opened at run time. Nothing of the toolkit is needed to build
// this.
#ifndef RUNTIME_GPU_DRIVER_H
#define RUNTIME_GPU_DRIVER_H

#include <stddef.h>

#ifndef CUDA_VERSION // <cuda.h> is not there: its types, as far as they are used
typedef int CUresult, CUdevice, CUdevice_attribute, CUjit_option, CUstreamCaptureMode,
    CUfunction_attribute;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
#endif

// Values of the driver's constants, by their own meaning.
enum {
  GPU_OK = 0,
  GPU_OUT_OF_MEMORY = 2,
  GPU_UNAVAILABLE = 46,
  GPU_NO_DEVICE = 100,
  GPU_INVALID_IMAGE = 200,
  GPU_NO_BINARY = 209,
  GPU_ECC_ERROR = 214,
  GPU_NVLINK_ERROR = 220,
  GPU_PTX_TOO_NEW = 222,
  GPU_KERNEL_ERRORS = 700,     // from here ...
  GPU_KERNEL_ERRORS_END = 720, // ... to before this: a kernel went wrong, some calls before
  GPU_SYSTEM_NOT_READY = 802,

  GPU_ATTRIBUTE_MAJOR = 75,
  GPU_ATTRIBUTE_MINOR = 76,
  GPU_FUNCTION_MOST_SHARED =
      8, // bytes that a launch may ask for; more than 48 KiB only if it is said
  GPU_STREAM_NON_BLOCKING = 1,
  GPU_EVENT_WITH_TIME = 0,
  GPU_EVENT_NO_TIMING = 2,
  GPU_EVENT_IN_GRAPH = 1, // recorded during a capture, and each time the graph runs
  GPU_JIT_ERROR_LOG = 5,
  GPU_JIT_ERROR_LOG_BYTES = 6,
  GPU_CAPTURE_THREAD = 1, // only what this thread does may disturb a capture
  GPU_LAUNCH_END = 0,     // ends the list of `extra` of cuLaunchKernel
  GPU_LAUNCH_BYTES = 1,   // the next one: where the parameters lie ...
  GPU_LAUNCH_SIZE = 2,    // ... and how many bytes they have (size_t *)

  GPU_OLDEST_DRIVER = 12010, // 12.1: parameters above 4 KiB
};

typedef struct gpu_driver {
  void *library;
  int version; // 12040: supports CUDA 12.4
#define GPU_CALL(name, parameters) CUresult(*name) parameters;
#include "runtime/gpu_calls.def"
#undef GPU_CALL
} gpu_driver;

// Opens libcuda.so.1, or what $MLTC_CUDA_DRIVER names, and starts it; it stays open to the end of
// the process, for it cannot be stopped. Ends the process with exit
// code 4 and the reason when there is none, or it is too old, or finds no GPU.
void gpu_driver_open(gpu_driver *d);

// "CUDA_ERROR_INVALID_VALUE (invalid argument)" in `out`.
void gpu_driver_explain(const gpu_driver *d, CUresult r, char *out, size_t cap);
// What to do to learn more, to put behind the explanation; "" where there is nothing. What a kernel
// does wrong shows in whatever call comes next, and in all after it.
const char *gpu_driver_help(CUresult r);
// The exit code for an error: not ours to repair, too little memory, or our own fault.
int gpu_driver_exit_code(CUresult r);
// Ends the process when `r` is an error. `call` names it.
void gpu_driver_check(const gpu_driver *d, const char *call, CUresult r);

// One call of a driver, checked: GPU_DO(&g->driver, cuEventRecord, event, stream);
#define GPU_DO(d, call, ...) gpu_driver_check(d, #call, (d)->call(__VA_ARGS__))

#endif
