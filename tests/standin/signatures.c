// signatures.c: the calls as runtime/gpu_calls.def has them, against the toolkit's own header.
// Compiled where there is one; there is nothing to run.
#include <cuda.h>

#include "runtime/gpu_driver.h"

// The header puts newer versions of calls under plain names; the library's names are the versioned
// ones, and where the header lacks one, the plain one is what it stands for.
#define cuDevicePrimaryCtxRelease_v2 cuDevicePrimaryCtxRelease
#define cuStreamBeginCapture_v2      cuStreamBeginCapture

#define GPU_CALL(name, parameters)                                                                 \
  _Static_assert(__builtin_types_compatible_p(__typeof__(&name), CUresult(*) parameters), #name);
#include "runtime/gpu_calls.def"

#define SAME(mine, theirs) _Static_assert((int)(mine) == (int)(theirs), #theirs)
SAME(GPU_OK, CUDA_SUCCESS);
SAME(GPU_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(GPU_UNAVAILABLE, CUDA_ERROR_DEVICE_UNAVAILABLE);
SAME(GPU_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME(GPU_INVALID_IMAGE, CUDA_ERROR_INVALID_IMAGE);
SAME(GPU_NO_BINARY, CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME(GPU_PTX_TOO_NEW, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
SAME(GPU_KERNEL_ERRORS, CUDA_ERROR_ILLEGAL_ADDRESS);
SAME(GPU_KERNEL_ERRORS_END, CUDA_ERROR_LAUNCH_FAILED + 1);
SAME(GPU_ECC_ERROR, CUDA_ERROR_ECC_UNCORRECTABLE);
SAME(GPU_NVLINK_ERROR, CUDA_ERROR_NVLINK_UNCORRECTABLE);
SAME(GPU_SYSTEM_NOT_READY, CUDA_ERROR_SYSTEM_NOT_READY);
SAME(GPU_ATTRIBUTE_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(GPU_ATTRIBUTE_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(GPU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME(GPU_EVENT_WITH_TIME, CU_EVENT_DEFAULT);
SAME(GPU_EVENT_NO_TIMING, CU_EVENT_DISABLE_TIMING);
SAME(GPU_EVENT_IN_GRAPH, CU_EVENT_RECORD_EXTERNAL);
SAME(GPU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BUFFER);
SAME(GPU_JIT_ERROR_LOG_BYTES, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
SAME(GPU_CAPTURE_THREAD, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SAME(GPU_LAUNCH_END, CU_LAUNCH_PARAM_END_AS_INT);
SAME(GPU_LAUNCH_BYTES, CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT);
SAME(GPU_LAUNCH_SIZE, CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT);
