// calls_device.c: the driver, the device, the context; errors and their names.
#include "tests/standin/standin.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static bool started;
static int retained; // of the primary contexts: there is one current one at a time
static bool current;
static pthread_t owner;
static char context; // its address is the handle
static bool eager;   // code is loaded with its module, not at its first launch

static const struct {
  int error;
  const char *name, *text;
} errors[] = {
    {GPU_OK, "CUDA_SUCCESS", "no error"},
    {STANDIN_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {GPU_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {GPU_UNAVAILABLE, "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy"},
    {GPU_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {STANDIN_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {GPU_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {GPU_NO_BINARY, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available"},
    {GPU_ECC_ERROR, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
    {STANDIN_INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {STANDIN_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {STANDIN_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static int find_error(CUresult error) {
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    if (errors[i].error == (int)error)
      return (int)i;
  return -1;
}

CUresult cuGetErrorName(CUresult error, const char **text) {
  int i = find_error(error);
  *text = i < 0 ? NULL : errors[i].name;
  return i < 0 ? STANDIN_INVALID_VALUE : GPU_OK;
}

CUresult cuGetErrorString(CUresult error, const char **text) {
  int i = find_error(error);
  *text = i < 0 ? NULL : errors[i].text;
  return i < 0 ? STANDIN_INVALID_VALUE : GPU_OK;
}

static bool needs_context(const char *call) {
  static const char *const early[] = {
      "cuInit",          "cuDriverGetVersion",       "cuDeviceGetCount",
      "cuDeviceGet",     "cuDeviceGetName",          "cuDeviceGetAttribute",
      "cuCtxSetCurrent", "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2"};
  for (size_t i = 0; i < sizeof early / sizeof *early; i++)
    if (!strcmp(call, early[i]))
      return false;
  return true;
}

// What only adds to the recording. Of the others a driver refuses those that wait, take or give
// back memory or load code (CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, and the recording is lost), and
// does the rest at once, which no replay would do again.
static bool can_be_recorded(const char *call) {
  static const char *const calls[] = {
      "cuLaunchKernel",       "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2",
      "cuMemcpyDtoDAsync_v2", "cuMemsetD8Async",      "cuEventRecordWithFlags",
      "cuStreamEndCapture",   "cuEventRecord",        "cuStreamWaitEvent"};
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
    if (!strcmp(call, calls[i]))
      return true;
  return false;
}

bool standin_loads_at_once(void) {
  return eager;
}

CUresult standin_enter(const char *call) {
  standin_trace("%s", call);
  CUresult fault = standin_fault(call);
  if (fault != GPU_OK)
    return fault;
  if (strcmp(call, "cuInit") != 0 && !started)
    standin_report("%s before cuInit", call);
  if (needs_context(call)) {
    if (!current)
      standin_report("%s without a context", call);
    if (!pthread_equal(owner, pthread_self()))
      standin_report("%s on a thread to which the context is not current", call);
  }
  if (standin_is_capturing() && !can_be_recorded(call))
    standin_report("%s while a stream is being captured", call);
  standin_do_some();
  return standin_device_error();
}

CUresult cuInit(unsigned flags) {
  started = true;
  STANDIN_ENTER(cuInit);
  standin_open_kernels();
  const char *loading = standin_text("CUDA_MODULE_LOADING");
  eager = loading && !strcmp(loading, "EAGER"); // the driver reads it here; since 12.2 it is LAZY
  if (flags != 0)
    return STANDIN_INVALID_VALUE;
  return standin_setting("MLTC_STANDIN_DEVICES", 1) > 0 ? GPU_OK : GPU_NO_DEVICE;
}

CUresult cuDriverGetVersion(int *version) {
  STANDIN_ENTER(cuDriverGetVersion);
  *version = (int)standin_setting("MLTC_STANDIN_DRIVER", 13000);
  return GPU_OK;
}

CUresult cuDeviceGetCount(int *count) {
  STANDIN_ENTER(cuDeviceGetCount);
  *count = (int)standin_setting("MLTC_STANDIN_DEVICES", 1);
  return GPU_OK;
}

static bool is_device(int device) {
  return device >= 0 && device < standin_setting("MLTC_STANDIN_DEVICES", 1);
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  STANDIN_ENTER(cuDeviceGet);
  *device = ordinal;
  return is_device(ordinal) ? GPU_OK : STANDIN_INVALID_DEVICE;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice device) {
  STANDIN_ENTER(cuDeviceGetName);
  snprintf(name, (size_t)len, "stand-in %d", device);
  return is_device(device) ? GPU_OK : STANDIN_INVALID_DEVICE;
}

int standin_capability(void) {
  const char *text = standin_text("MLTC_STANDIN_CAPABILITY");
  int major = 9, minor = 0;
  if (text && sscanf(text, "%d.%d", &major, &minor) != 2)
    standin_report("MLTC_STANDIN_CAPABILITY: '%s' is not MAJOR.MINOR", text);
  return major * 10 + minor;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  STANDIN_ENTER(cuDeviceGetAttribute);
  int capability = standin_capability();
  if (attribute != GPU_ATTRIBUTE_MAJOR && attribute != GPU_ATTRIBUTE_MINOR)
    standin_report("cuDeviceGetAttribute: attribute %d is not known here", attribute);
  *value = attribute == GPU_ATTRIBUTE_MAJOR ? capability / 10 : capability % 10;
  return is_device(device) ? GPU_OK : STANDIN_INVALID_DEVICE;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device) {
  STANDIN_ENTER(cuDevicePrimaryCtxRetain);
  if (!is_device(device))
    return STANDIN_INVALID_DEVICE;
  retained++;
  *out = (CUcontext)(void *)&context;
  return GPU_OK;
}

CUresult cuCtxSetCurrent(CUcontext c) {
  STANDIN_ENTER(cuCtxSetCurrent);
  if ((void *)c != &context || !retained)
    standin_report("cuCtxSetCurrent: this is no live context");
  current = true;
  owner = pthread_self();
  return GPU_OK;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  STANDIN_ENTER(cuDevicePrimaryCtxRelease_v2);
  if (!is_device(device) || retained == 0)
    standin_report("cuDevicePrimaryCtxRelease: nobody holds the context");
  if (--retained > 0)
    return GPU_OK;
  standin_check_memory_gone();
  standin_check_handles_gone();
  current = false;
  return GPU_OK;
}
