// mltc_emulator.h: stands for the GPU where a kernel file is compiled as C++. The preludes of
// codegen include it; what CUDA has in the language is here as macros and checked objects.
//
//   __shared__ k_array<float, 32> tile;   one static object: the blocks of a launch run in turn
//   threadIdx.x                           what the emulator wrote when it switched to this fiber
//   tile[i] = x                           emu_ref: an access that is told to the emulator first
// Everything goes through emu_here (emu_unit.h); nothing here names a symbol of the emulator.
#ifndef MLTC_EMULATOR_H
#define MLTC_EMULATOR_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "emu_floats.h"
#include "emu_unit.h"
#include "emulator.h"

#define __device__
// Without optimisation, which is how most kernels here are compiled, nothing is inlined: a copy of each operator of
// vectors at each place made three times the code, and took clang more than twice the time.
#ifdef __OPTIMIZE__
#define __forceinline__ inline __attribute__((always_inline, unused))
#else
#define __forceinline__ inline __attribute__((unused))
#endif
#define __shared__ static
#define __restrict__

// glibc's own errs by up to 2.1 units of the last place, NVIDIA's by 2.
static inline float emu_tanhf(float x) {
  return (float)tanh((double)x);
}
#define tanhf emu_tanhf

static emu_unit emu_here;
// Calls that are told apart by their address when a fault is reported: not to be merged.
#define EMU_HERE [[clang::nomerge]]

#define threadIdx       (emu_here.thread)
#define blockIdx        (emu_here.block)
#define blockDim        (emu_here.block_dim)
#define gridDim         (emu_here.grid_dim)
#define __syncthreads() emu_here.engine->barrier(emu_here.launch, __LINE__)
#define __syncwarp()    ((void)emu_collect(EMU_SYNCWARP, 0, NULL, 0))

// An entry: one static function over one thread, and the object that emu_find looks for.
#define EMU_ENTRY(entry, num_threads, num_shared, ...)                                             \
  static void entry##_thread(const __VA_ARGS__ &all);                                              \
  static void entry##_run(const void *parameter) {                                                 \
    entry##_thread(*(const __VA_ARGS__ *)parameter);                                               \
  }                                                                                                \
  extern "C" __attribute__((visibility("default"))) const emu_entry entry##_entry;                 \
  const emu_entry entry##_entry = {#entry,      num_threads, num_shared, sizeof(__VA_ARGS__),      \
                                   entry##_run, &emu_here};                                        \
  static void entry##_thread(const __VA_ARGS__ &all)

static __forceinline__ void emu_see(const void *at, size_t bytes, size_t align, emu_access how) {
  if (emu_here.checked)
    EMU_HERE emu_here.engine->global(emu_here.launch, at, bytes, align, how);
}
static __forceinline__ char *emu_aligned(char *begin, size_t align) {
  if (emu_here.checked)
    EMU_HERE emu_here.engine->buffer(emu_here.launch, begin, align);
  return begin;
}
static __forceinline__ const emu_payload *emu_collect(emu_collective what, int detail,
                                                      const void *mine, size_t bytes) {
  return emu_here.engine->collective(emu_here.launch, what, detail, mine, bytes);
}

// --- shared memory: arrays that are watched ---------------------------------------------------
// What a launch gives: for the blocks of one launch after the other.
alignas(1024) __attribute__((unused)) static char emu_given[EMU_MOST_GIVEN];

template <typename T> struct emu_ref {
  emu_array *array;
  int64_t index;

  __forceinline__ T *at() const {
    return (T *)array->data + index;
  }
  __forceinline__ void see(emu_access how) const {
    if (emu_here.checked)
      EMU_HERE emu_here.engine->shared(emu_here.launch, array, index, 1, 1, how);
  }
  __forceinline__ operator T() const {
    see(EMU_READ);
    return *at();
  }
  __forceinline__ const emu_ref &operator=(T x) const {
    see(EMU_WRITE);
    *at() = x;
    return *this;
  }
  __forceinline__ const emu_ref &operator=(const emu_ref &other) const {
    return *this = (T)other;
  }
  __forceinline__ const emu_ref &operator+=(T x) const {
    return *this = (T) * this + x;
  }
  __forceinline__ const emu_ref &operator-=(T x) const {
    return *this = (T) * this - x;
  }
  __forceinline__ const emu_ref &operator*=(T x) const {
    return *this = (T) * this * x;
  }
};

template <typename T> struct emu_place {
  emu_array *array;
  int64_t index;

  __forceinline__ emu_place operator+(int64_t n) const {
    return {array, index + n};
  }
  __forceinline__ emu_place operator-(int64_t n) const {
    return {array, index - n};
  }
  __forceinline__ emu_place held() const {
    return *this;
  }
  // `count` elements, which must begin at a multiple of `align` elements.
  __forceinline__ void take(int count, int align, T *to) const {
    if (emu_here.checked)
      EMU_HERE emu_here.engine->shared(emu_here.launch, array, index, count, align, EMU_READ);
    memcpy(to, (const T *)array->data + index, sizeof(T) * (size_t)count);
  }
};

template <typename T, int N> struct emu_shared {
  T element[N];
  emu_array array;

  __forceinline__ emu_shared() : array{emu_here.arrays, element, N, sizeof(T), -1, nullptr} {
    memset(element, 0xff, sizeof element); // NaN: the emulator does the same at each block's begin
    emu_here.arrays = &array;
  }
  // From now on it lies in what the launch gives, from byte `begin` on.
  __forceinline__ void give(int64_t begin) {
    if (array.begin < 0)
      memset(emu_given + begin, 0xff, sizeof element);
    array.begin = begin;
    array.data = emu_given + begin;
  }
  __forceinline__ emu_ref<T> operator[](int64_t i) {
    return {&array, i};
  }
  __forceinline__ emu_place<T> begin() {
    return at(0);
  }
  __forceinline__ emu_place<T> at(int64_t i) {
    return {&array, i};
  }
  __forceinline__ void take(int64_t i, int count, T *to) {
    at(i).take(count, count, to);
  }
  __forceinline__ void put(int64_t i, int count, const T *from) {
    if (emu_here.checked)
      EMU_HERE emu_here.engine->shared(emu_here.launch, &array, i, count, count, EMU_WRITE);
    memcpy((T *)array.data + i, from, sizeof(T) * (size_t)count);
  }
};

#include "emu_instructions.h"
#endif
