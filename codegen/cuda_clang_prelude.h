// What NVRTC knows by itself and clang takes from a CUDA installation: for
// --cuda-compiler=clang, included before a .cu file's own text.
// clang-format off: one-line functions, side by side, read as tables
#ifndef MLTC_CUDA_CLANG_PRELUDE_H
#define MLTC_CUDA_CLANG_PRELUDE_H

#define __CUDACC__ 1
#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__

// Device functions, inlined always: PTX of one file, and nothing else, is what there will be.
#define MLTC_D static __inline__ __attribute__((device, always_inline))

// --- places and barriers ------------------------------------------------------------------------
#define MLTC_PLACE(name, register)                                                                 \
  struct mltc_##name {                                                                             \
    __declspec(property(get = get_x)) unsigned int x;                                              \
    __declspec(property(get = get_y)) unsigned int y;                                              \
    __declspec(property(get = get_z)) unsigned int z;                                              \
    MLTC_D unsigned int get_x() { return __nvvm_read_ptx_sreg_##register##_x(); }                  \
    MLTC_D unsigned int get_y() { return __nvvm_read_ptx_sreg_##register##_y(); }                  \
    MLTC_D unsigned int get_z() { return __nvvm_read_ptx_sreg_##register##_z(); }                  \
  };                                                                                               \
  extern const __attribute__((device, weak)) mltc_##name name;
MLTC_PLACE(threadIdx, tid)
MLTC_PLACE(blockIdx, ctaid)
MLTC_PLACE(blockDim, ntid)
MLTC_PLACE(gridDim, nctaid)
#undef MLTC_PLACE
#define warpSize 32

// __syncthreads is a builtin of clang.
#define __syncthreads_or(x) __nvvm_bar0_or(x)
#define __syncthreads_and(x) __nvvm_bar0_and(x)
#define __syncwarp() __nvvm_bar_warp_sync(0xffffffffu)

// --- vectors that are loaded and stored as one ----------------------------------------------------
struct __attribute__((aligned(8))) uint2 { unsigned int x, y; };
struct __attribute__((aligned(16))) uint4 { unsigned int x, y, z, w; };

// --- for cuda_clang_math_prelude.h, which follows -------------------------------------------------
#define MLTC_TABLE static __attribute__((device)) const
#define MLTC_F(name) name

#endif
