// nvrtc.h: NVIDIA's run-time compiler, opened when mltc needs it. Nothing of the toolkit is needed
// to build mltc: the dozen entry points that are used are declared in nvrtc.c.
//
// Where it is looked for:
//   $MLTC_NVRTC, a file or a folder (a toolkit, or the site-packages of the vendor's wheels), and
//   nowhere else when that is set;
//   libnvrtc.so.13, libnvrtc.so.12, libnvrtc.so where the loader looks;
//   $CUDA_HOME, $CUDA_PATH, /usr/local/cuda and /usr/local/cuda-*, the highest version first.
#ifndef CODEGEN_NVRTC_H
#define CODEGEN_NVRTC_H

#include "ir/base.h"

typedef struct cg_nvrtc cg_nvrtc;

// NULL with a message in *why that says what to install. It stays open until the process ends.
const cg_nvrtc *cg_nvrtc_open(ir_arena *a, const char **why);
const char *cg_nvrtc_version(const cg_nvrtc *n); // "13.0"
const char *cg_nvrtc_path(const cg_nvrtc *n);    // of the library; NULL: unknown
// Tells builds of the same version apart: version, bytes and date of the file.
const char *cg_nvrtc_identity(const cg_nvrtc *n);
// Whether it makes code for compute capability `compute` (80, 100).
bool cg_nvrtc_knows(const cg_nvrtc *n, int compute);
// All that it knows, as a list for messages: "sm_75, sm_80".
const char *cg_nvrtc_all(const cg_nvrtc *n, ir_arena *a);

typedef struct cg_nvrtc_code {
  const char *cubin, *ptx;   // NULL: none (a cubin needs a real architecture)
  size_t cubin_len, ptx_len; // ptx_len counts the 0 byte at its end
  const char *log;           // warnings and errors, "" when there are none
} cg_nvrtc_code;
// Compiles one text; `name` is what messages call it. False: code->log says why.
bool cg_nvrtc_compile(const cg_nvrtc *n, ir_arena *a, const char *name, const char *text,
                      const char *const *options, int num_options, cg_nvrtc_code *code);

#endif
