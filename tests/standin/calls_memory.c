// calls_memory.c: memory and copies.
#include "tests/standin/standin.h"

static void *host_address(CUdeviceptr at) {
  return (void *)(uintptr_t)at;
}

CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
  STANDIN_ENTER(cuMemGetInfo_v2);
  *total = (size_t)standin_setting("MLTC_STANDIN_MEMORY", 1 << 30);
  *free = *total - standin_device_bytes();
  return GPU_OK;
}

CUresult cuMemAlloc_v2(CUdeviceptr *at, size_t bytes) {
  STANDIN_ENTER(cuMemAlloc_v2);
  standin_trace("  %zu bytes", bytes);
  void *found = NULL;
  CUresult r = standin_take(true, bytes, &found);
  *at = (CUdeviceptr)(uintptr_t)found;
  return r;
}

CUresult cuMemFree_v2(CUdeviceptr at) {
  STANDIN_ENTER(cuMemFree_v2);
  standin_give_back(true, host_address(at), "cuMemFree");
  return GPU_OK;
}

CUresult cuMemHostAlloc(void **at, size_t bytes, unsigned flags) {
  STANDIN_ENTER(cuMemHostAlloc);
  standin_trace("  %zu bytes", bytes);
  return flags ? STANDIN_INVALID_VALUE : standin_take(false, bytes, at);
}

CUresult cuMemFreeHost(void *at) {
  STANDIN_ENTER(cuMemFreeHost);
  standin_give_back(false, at, "cuMemFreeHost");
  return GPU_OK;
}

static void queue(CUstream stream, const standin_op *op, const char *call) {
  standin_stream *s = standin_live(STANDIN_STREAM, stream, call);
  standin_trace("  %zu bytes%s", op->bytes, s->capture ? ", captured" : "");
  standin_append(standin_work_of(s), op);
}

static CUresult copy(standin_op_kind kind, void *to, const void *from, size_t bytes,
                     CUstream stream, const char *call) {
  if (bytes == 0)
    return STANDIN_INVALID_VALUE; // a real driver does nothing; nobody should ask for that
  standin_check_range(kind != STANDIN_TO_HOST, to, bytes, call);
  standin_check_range(kind != STANDIN_TO_DEVICE, from, bytes, call);
  queue(stream, &(standin_op){.kind = kind, .to = to, .from = from, .bytes = bytes}, call);
  return GPU_OK;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
  STANDIN_ENTER(cuMemcpyHtoDAsync_v2);
  return copy(STANDIN_TO_DEVICE, host_address(to), from, bytes, stream, "cuMemcpyHtoDAsync");
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
  STANDIN_ENTER(cuMemcpyDtoHAsync_v2);
  return copy(STANDIN_TO_HOST, to, host_address(from), bytes, stream, "cuMemcpyDtoHAsync");
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  STANDIN_ENTER(cuMemcpyDtoDAsync_v2);
  if (to < from + bytes && from < to + bytes)
    standin_report("cuMemcpyDtoDAsync: the %zu bytes copied overlap their copy", bytes);
  return copy(STANDIN_ON_DEVICE, host_address(to), host_address(from), bytes, stream,
              "cuMemcpyDtoDAsync");
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream) {
  STANDIN_ENTER(cuMemsetD8Async);
  standin_check_range(true, host_address(to), bytes, "cuMemsetD8Async");
  queue(stream,
        &(standin_op){.kind = STANDIN_FILL, .to = host_address(to), .bytes = bytes, .value = value},
        "cuMemsetD8Async");
  return GPU_OK;
}
