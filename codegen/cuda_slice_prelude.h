// Fifth text before CUDA kernels: what the threads of a block that lie side by side in slices do
// together (cuda_loop.h: `along`), and votes. (cuda_prelude.h names the other texts.)
// clang-format off: one-line functions, side by side, read as tables

// The block is `slices` slices of threads / slices threads. The values of the threads that stand at
// the same place of their slices become one, by halves: slice 0 takes slice n / 2, and so on; the
// result in all of them. All threads of the block call it.
// One array for all calls in a kernel, whatever their slices and whatever they sum up: each ends with a barrier.
// A joint launch has the bodies of many kernels, and its shared memory is all that they declare.
template <typename T, int elements, int which> K_IN k_array<T, elements> &k_slice_room() {
  __shared__ k_array<T, elements> room;
  return room;
}
template <int slices, int threads, typename V, typename F> K_IN V k_slices(V x, F join) {
  k_array<typename V::type, threads * VL> &part = k_slice_room<typename V::type, threads * VL, 0>();
  const int tid = (int)threadIdx.x, side = threads / slices;
  part.store4(tid * VL, x);
  _Pragma("unroll") for (int half = slices / 2; half > 0; half /= 2) {
    __syncthreads();
    if (tid < half * side)
      part.store4(tid * VL, join(part.load4(tid * VL), part.load4((tid + half * side) * VL)));
  }
  __syncthreads();
  x = part.load4(tid % side * VL);
  __syncthreads(); // nobody writes the next sum before all have this one
  return x;
}
struct k_join_sum { template <typename V> K_IN V operator()(V a, V b) const { return a + b; } };
struct k_join_max { template <typename V> K_IN V operator()(V a, V b) const { return k_max(a, b); } };
struct k_join_min { template <typename V> K_IN V operator()(V a, V b) const { return k_min(a, b); } };
template <int slices, int threads, typename V> K_IN V k_slice_sum(V x) { return k_slices<slices, threads>(x, k_join_sum()); }
template <int slices, int threads, typename V> K_IN V k_slice_max(V x) { return k_slices<slices, threads>(x, k_join_max()); }
template <int slices, int threads, typename V> K_IN V k_slice_min(V x) { return k_slices<slices, threads>(x, k_join_min()); }

// The same for argmax and argmin: the index of the best value.
template <int slices, int threads, bool max, typename V> K_IN vi k_slice_arg(V x, vi at) {
  k_array<typename V::type, threads * VL> &best = k_slice_room<typename V::type, threads * VL, 0>();
  k_array<int32_t, threads * VL> &where = k_slice_room<int32_t, threads * VL, 1>();
  const int tid = (int)threadIdx.x, side = threads / slices;
  best.store4(tid * VL, x);
  where.store4(tid * VL, at);
  _Pragma("unroll") for (int half = slices / 2; half > 0; half /= 2) {
    __syncthreads();
    if (tid < half * side) {
      const int other = (tid + half * side) * VL;
      if (max) k_argmax_step(&x, &at, best.load4(other), where.load4(other));
      else k_argmin_step(&x, &at, best.load4(other), where.load4(other));
      best.store4(tid * VL, x);
      where.store4(tid * VL, at);
    }
  }
  __syncthreads();
  at = where.load4(tid % side * VL);
  __syncthreads();
  return at;
}
template <int slices, int threads, typename V> K_IN vi k_slice_argmax(V x, vi at) { return k_slice_arg<slices, threads, true>(x, at); }
template <int slices, int threads, typename V> K_IN vi k_slice_argmin(V x, vi at) { return k_slice_arg<slices, threads, false>(x, at); }

// Whether x holds in any thread of the block. All threads call it; it is a barrier, too.
template <int threads> K_IN bool k_any_thread(bool x) {
#if defined(K_GPU)
  return __syncthreads_or(x) != 0;
#else
  __shared__ k_array<int32_t, threads> flag;
  flag[(int)threadIdx.x] = x;
  __syncthreads();
  int32_t any = 0;
  for (int i = 0; i < threads; i++)
    any |= flag[i];
  __syncthreads();
  return any != 0;
#endif
}
