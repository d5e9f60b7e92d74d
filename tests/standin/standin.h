// standin.h: a CUDA driver without a GPU, for tests: a shared library with the calls of
// runtime/gpu_calls.def, on memory of the host. What the files of it share.
//
// It is as unkind as a real one may be. Work is queued and done late: when something waits for it,
// or in between, in an order that a seed chooses among those that streams and events allow. A copy
// reads its source when it is done, not when it is queued. Device memory cannot be touched by the
// host at all; new memory is full of 0xFF (NaN); freed memory is gone. What no driver would
// forgive, and some things that one would, end the process with exit code 98 and a line on stderr.
//
// Environment:
//   MLTC_STANDIN_KERNELS     shared libraries with the kernels, separated by ':' (execute.c)
//   MLTC_STANDIN_SEED        0: everything as late as possible (default); 1: at once; others: random
//   MLTC_STANDIN_FAULT       call:N[:error][,...]: the Nth call of that name fails (999: unknown);
//                            `kernel:N`: the Nth kernel goes wrong on the device (700)
//   MLTC_STANDIN_DEVICES, MLTC_STANDIN_CAPABILITY, MLTC_STANDIN_MEMORY, MLTC_STANDIN_DRIVER
//                            GPUs (1), "9.0", bytes of each (1 GiB), driver version (13000)
//   MLTC_STANDIN_TRACE       a file that gets one line per call
//   MLTC_STANDIN_FAST        1: the emulator does not watch accesses
//   CUDA_LAUNCH_BLOCKING     1: each launch is done when it returns
//   CUDA_MODULE_LOADING      EAGER: code is loaded with its module; else at its first launch, which
//                            must not be part of a capture
#ifndef TESTS_STANDIN_H
#define TESTS_STANDIN_H

#include "runtime/gpu_driver.h"

#include <stdbool.h>
#include <stdint.h>

#define GPU_CALL(name, parameters) CUresult name parameters;
#include "runtime/gpu_calls.def"
#undef GPU_CALL

enum {
  STANDIN_INVALID_VALUE = 1,
  STANDIN_INVALID_DEVICE = 101,
  STANDIN_INVALID_PTX = 218,
  STANDIN_INVALID_HANDLE = 400,
  STANDIN_NOT_FOUND = 500,
  STANDIN_NOT_READY = 600,
  STANDIN_ILLEGAL_ADDRESS = 700,
  STANDIN_EXIT = 98,
};

// --- settings.c
// Prints and ends the process.
__attribute__((noreturn, format(printf, 1, 2))) void standin_report(const char *fmt, ...);
int64_t standin_setting(const char *name, int64_t fallback); // a number of the environment
const char *standin_text(const char *name);                  // NULL: not set, or empty
// The error that this call (or "kernel") is to fail with: GPU_OK for none. Counts calls.
CUresult standin_fault(const char *call);
__attribute__((format(printf, 1, 2))) void standin_trace(const char *fmt, ...);
uint64_t standin_random(void); // from the seed

// --- handles.c: objects that the driver gives out. A dead one stays known, to be recognised.
typedef enum standin_kind {
  STANDIN_STREAM,
  STANDIN_EVENT,
  STANDIN_MODULE,
  STANDIN_FUNCTION,
  STANDIN_GRAPH,
  STANDIN_EXEC,
  STANDIN_NUM_KINDS
} standin_kind;
void *standin_new(standin_kind kind, size_t bytes); // all 0
// Reports, for `call`, what is no live object of this kind.
void *standin_live(standin_kind kind, const void *handle, const char *call);
void standin_end(void *handle);
void standin_check_handles_gone(void); // reports the first live one, functions aside

// --- memory.c
CUresult standin_take(bool device, size_t bytes, void **at);
// A variable of a module: device memory that nobody frees, and that a kernel file's library has for itself.
void standin_add_global(char *at, size_t bytes);
void standin_give_back(bool device, const void *at, const char *call);
// Reports when [at, at + bytes) is not within one live block of that side.
void standin_check_range(bool device, const void *at, size_t bytes, const char *call);
size_t standin_device_bytes(void);
void standin_check_memory_gone(void);
void standin_open_device(bool open); // whether device memory can be touched
void standin_each_block(void (*f)(void *data, char *at, size_t bytes), void *data); // of the device

// --- queue.c
typedef enum standin_op_kind {
  STANDIN_TO_DEVICE,
  STANDIN_TO_HOST,
  STANDIN_ON_DEVICE,
  STANDIN_FILL,
  STANDIN_KERNEL,
  STANDIN_RECORD,
  STANDIN_WAIT,
} standin_op_kind;

typedef struct standin_mark { // one cuEventRecord
  bool reached;
  int64_t tick;                // operations that were done before it
  struct standin_mark *before; // of the same event
  struct standin_mark *fresh;  // in a graph, of a fork or a join: what stands for it in this launch
} standin_mark;

typedef struct standin_op {
  standin_op_kind kind;
  char *to;
  const char *from;
  size_t bytes;
  int value; // FILL
  const struct standin_function *function;
  int64_t blocks;
  void *parameter; // a copy of `bytes` bytes
  standin_mark *mark;
  bool timed; // RECORD in a graph: its time is asked for from outside
  struct standin_op *next;
} standin_op;

typedef struct standin_list {
  standin_op *first, *last;
} standin_list;

typedef struct standin_stream {
  standin_list queue;
  struct standin_graph *capture; // NULL: work is queued, not recorded
  int lane;                      // of that graph
  struct standin_stream *next;   // all live ones
} standin_stream;

typedef struct standin_event {
  standin_mark *latest;          // NULL: never recorded
  struct standin_graph *capture; // that it was recorded in; NULL: none
  bool timed;
} standin_event;

// Streams that have waited for an event of a capture belong to it: each has a lane. Lane 0 is the one
// that the capture began with.
enum { STANDIN_LANES = 4 };
typedef struct standin_graph {
  standin_list ops[STANDIN_LANES];
  standin_stream *streams[STANDIN_LANES];
  int num_lanes;
} standin_graph;

void standin_append(standin_list *l, const standin_op *op); // takes over op->parameter
void standin_copy_list(standin_list *to, const standin_list *from);
void standin_free_list(standin_list *l);
// Where work of a stream goes: to its queue, or into the graph that it is captured in.
standin_list *standin_work_of(standin_stream *s);
void standin_add_stream(standin_stream *s);
void standin_remove_stream(standin_stream *s);
bool standin_is_idle(void);      // nothing is queued anywhere
bool standin_is_capturing(void); // some stream is
// Does work until the stream is empty (NULL: all are), or the mark reached.
void standin_finish_stream(const standin_stream *s);
void standin_finish_mark(const standin_mark *m);
void standin_do_some(void); // as the seed likes
// The error that the device is in since a kernel went wrong.
CUresult standin_device_error(void);

// --- execute.c: kernels
typedef struct standin_function {
  const char *name;
  int threads;      // of a block
  int shared;       // bytes that a launch must give it
  size_t parameter; // bytes
  const void *entry;
  bool is_host; // a standin_host_kernel
} standin_function;
void standin_open_kernels(void);
// Where a variable of that name is, and its bytes; NULL: nowhere.
char *standin_find_global(const char *name, size_t *bytes);
bool standin_find_kernel(const char *name, standin_function *f);
// False: `why` says what went wrong on the device.
bool standin_run_kernel(const standin_function *f, int64_t blocks, const void *parameter, char *why,
                        size_t cap);

// --- calls_*.c
// What every call begins with: trace, faults, a look at the queues. Anything but GPU_OK: return it.
CUresult standin_enter(const char *call);
int standin_capability(void);     // 90: compute capability 9.0
bool standin_loads_at_once(void); // $CUDA_MODULE_LOADING was EAGER when the driver began
#define STANDIN_ENTER(call)                                                                        \
  do {                                                                                             \
    CUresult result_ = standin_enter(#call);                                                       \
    if (result_ != GPU_OK)                                                                         \
      return result_;                                                                              \
  } while (0)

#endif
