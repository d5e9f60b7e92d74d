// clean.cu: kernels without a fault (test_emulator_clean.c says what they compute).
K_IN void put(float *p, float x) { k_store_f32_one(p, k_f32(x)); }
#define BUFFERS const float *const x = (const float *)args[0]; (void)x; \
  float *const y = (float *)args[1]; const int t = (int)threadIdx.x;

// 64 x 64 transposed through shared memory
K_KERNEL(transpose, 256, 2) {
  BUFFERS __shared__ k_array<float, 64 * 68> tile;
  for (int i = t; i < 1024; i += 256) tile.store4(i / 16 * 68 + i % 16 * 4, k_load_f32(x + i * 4));
  __syncthreads();
  for (int i = t; i < 4096; i += 256) put(y + i, tile[i % 64 * 68 + i / 64]);
}

// neighbours inside a warp
K_KERNEL(in_warp, 64, 2) {
  BUFFERS __shared__ k_array<float, 64> s;
  float v = k_load_f32_one(x + task * 64 + t)[0];
  for (int i = 0; i < 5; i++) {
    s[t] = v; __syncwarp(); v = v + s[t ^ 7]; __syncwarp();
  }
  put(y + task * 64 + t, v);
}

// three stages of asynchronous copies; the tail is zeros
K_KERNEL(pipeline, 64, 2) {
  BUFFERS enum { STAGES = 3, STEPS = 15, STEP = 256, COUNT = 3700 };
  __shared__ k_array<float, STAGES * STEP> s;
  auto copy = [&](int step) {
    const int at = step * STEP + t * 4;
    if (step < STEPS) k_async_16(s.at(step % STAGES * STEP + t * 4), x + at, at < COUNT);
    k_async_commit();
  };
  for (int i = 0; i < STAGES - 1; i++) copy(i);
  float sum = 0;
  for (int i = 0; i < STEPS; i++) {
    k_async_wait<STAGES - 2>();
    __syncthreads();
    copy(i + STAGES - 1);
    for (int j = 0; j < 4; j++) sum += s[i % STAGES * STEP + (t * 4 + j + 17) % STEP];
  }
  put(y + t, sum);
}
template <int G> K_IN void group(const float *x, float *y, int t, k_group_scratch &s) {
  const vf v = k_load_f32(x + t * 4);
  const vi at = k_lane() + t * 4;
  put(y + t, k_group_sum<G>(v, s)[t % 4]);
  put(y + 1024 + t, k_group_max<G>(v, s)[(t + 1) % 4]);
  put(y + 2048 + t, (float)k_group_argmin<G>(v, at, s)[t % 4]);
  put(y + 3072 + t, (float)k_group_argmax<G>(k_to_i64(v), at, s)[t % 4]);
}
#define GROUP(G) K_KERNEL(group_##G, 1024, 2) { \
  BUFFERS __shared__ k_group_scratch s; group<G>(x, y, t, s); }
GROUP(1) GROUP(2) GROUP(8) GROUP(32) GROUP(64) GROUP(128) GROUP(512) GROUP(1024)

// the same without scratch, and 8-byte and unsigned elements
K_KERNEL(small_groups, 256, 2) {
  BUFFERS
  put(y + t, k_group_sum<16>(k_load_f32(x + t * 4))[0] + (float)k_group_max<4>(k_load_f64((const double *)(const void *)y + 512 + t % 64))[0]);
}
K_KERNEL(wide_groups, 256, 2) {
  BUFFERS __shared__ k_group_scratch s;
  const vf v = k_load_f32(x + t * 4);
  put(y + t, (float)k_group_sum<256>(k_to_f64(v), s)[3]);
  put(y + 256 + t, (float)k_group_min<128>(k_to_u32(v), s)[2]);
  put(y + 512 + t, (float)k_group_argmax<256>(k_to_f64(v), k_lane() + t * 4, s)[1]);
}

// NaN from one thread: every thread of the group has the same bits
K_KERNEL(nan_groups, 64, 2) {
  BUFFERS __shared__ k_group_scratch s;
  const vf v = k_select((k_lane() + t * 4) == 77, k_f32(__builtin_nanf("")), k_load_f32(x + t * 4));
  put(y + t, k_group_max<64>(v, s)[0]); put(y + 64 + t, k_group_min<64>(v, s)[0]);
}

// groups of every other thread; the larger one, which NaN is
K_KERNEL(apart_groups, 64, 2) {
  BUFFERS
  const vf v = k_load_f32(x + t * 4);
  put(y + t, k_group_sum<8, 2>(v)[0]);
  put(y + 64 + t, k_group_top<8, 2>(k_top(v, k_f32(0.5f)))[0]);
  put(y + 128 + t, k_group_top<8, 2>(k_select((k_lane() + t * 4) == 77, k_f32(__builtin_nanf("")), v))[0]);
}

// what a block finds in shared memory, before and after it is used
K_KERNEL(poison, 32, 2) {
  BUFFERS __shared__ k_array<float, 32> s;
  const float v = s[t];
  s[t] = 1.0f;
  put(y + task * 32 + t, v);
}
K_KERNEL(doubled, 32, 3) {
  const float *const x = (const float *)args[0]; float *const y = (float *)args[1];
  const int64_t count = (int64_t)(uintptr_t)args[2], i = task * 32 + threadIdx.x;
  if (i < count) k_store_f32_one(y + i, k_load_f32_one(x + i) * 2.0f);
}
// neighbours swapped, by a barrier that the blocks of other calls do not come to
K_KERNEL(swapped, 32, 2) {
  BUFFERS __shared__ k_array<float, 32> s;
  s[t] = k_load_f32_one(x + task * 32 + t)[0];
  __syncthreads();
  put(y + task * 32 + t, s[t ^ 1]);
}
K_ROWS_NEAR(joint) = {
    7, // of another launch
    2, 5, 9, 10, // 2, 3, 4 and 1 blocks
    0, 0, K_IN_BATCH | 0, 40,
    1, 4, K_IN_BATCH | 20, 0,
    0, 20, K_IN_BATCH | 40, 100,
    1, 60, K_IN_BATCH | 60, 0,
};
K_JOINT(joint, 32, 3) {
  K_CALLS(0, doubled, 2, 1)
  K_CALLS(1, swapped, 2, 0)
}
