// host_kernel.h: a kernel that is a plain function of the host, for tests of the runtime alone.
// A library of $MLTC_STANDIN_KERNELS has `const standin_host_kernel NAME_host` for entry NAME.
#ifndef TESTS_HOST_KERNEL_H
#define TESTS_HOST_KERNEL_H

#include <stddef.h>
#include <stdint.h>

typedef struct standin_host_kernel {
  int threads; // that a launch must give each block
  size_t parameter;
  void (*run)(int64_t block, const void *parameter);
  int shared; // bytes that a launch must give each block
} standin_host_kernel;

#endif
