// wrappers.cu: every wrapped instruction, its registers filled and read by the tables of the PTX ISA
// (test_emulator_wrappers.c says what comes out).
#define BUFFERS const float *const x = (const float *)args[0]; (void)x; \
  uint32_t *const y = (uint32_t *)args[1]; const int t = (int)threadIdx.x; (void)t;
K_IN float get(const float *p) { return k_load_f32_one(p)[0]; }
K_IN void put(uint32_t *p, uint32_t x) { k_store_u32_one(p, k_u32(x)); }

// PTX ISA, mma.m16n8k16 with .f16 and .bf16: a0..a7, b0..b3; c0..c3 are those of all shapes
#define HALF(name, pack) K_KERNEL(name, 32, 2) { BUFFERS \
  const int group = t >> 2, in_group = t % 4; uint32_t a[4], b[2]; float c[4], e[8]; \
  for (int i = 0; i < 8; i++) { \
    const int row = (i < 2 || (i >= 4 && i < 6)) ? group : group + 8; \
    e[i] = get(x + row * 16 + in_group * 2 + (i & 1) + (i >= 4 ? 8 : 0)); } \
  for (int i = 0; i < 4; i++) a[i] = pack(e[2 * i], e[2 * i + 1]); \
  for (int i = 0; i < 4; i++) \
    e[i] = get(x + 256 + (in_group * 2 + (i & 1) + (i >= 2 ? 8 : 0)) * 8 + group); \
  for (int i = 0; i < 2; i++) b[i] = pack(e[2 * i], e[2 * i + 1]); \
  for (int i = 0; i < 4; i++) \
    c[i] = get(x + 384 + (i < 2 ? group : group + 8) * 8 + in_group * 2 + (i & 1)); \
  k_mma_##name(c, a, b[0], b[1]); \
  for (int i = 0; i < 4; i++) \
    put(y + (i < 2 ? group : group + 8) * 8 + in_group * 2 + (i & 1), k_bits_of(c[i])); }
HALF(bf16, k_bf16x2) HALF(f16, k_f16x2)

// mma.m16n8k8 with .tf32; it does not look at the last 13 bits, which are no zeros here
K_KERNEL(tf32, 32, 2) { BUFFERS
  const int group = t >> 2, in_group = t % 4; uint32_t a[4], b[2]; float c[4];
  for (int i = 0; i < 4; i++)
    a[i] = k_tf32_operand(get(x + (i == 0 || i == 2 ? group : group + 8) * 8 + (i < 2 ? in_group : in_group + 4)));
  for (int i = 0; i < 2; i++) b[i] = k_tf32(get(x + 256 + (in_group + 4 * i) * 8 + group)) | 0x1abcu;
  for (int i = 0; i < 4; i++)
    c[i] = get(x + 384 + (i < 2 ? group : group + 8) * 8 + in_group * 2 + (i & 1));
  k_mma_tf32(c, a, b[0], b[1]);
  for (int i = 0; i < 4; i++)
    put(y + (i < 2 ? group : group + 8) * 8 + in_group * 2 + (i & 1), k_bits_of(c[i]));
}

// rows 24 elements apart; lane i gives the row (i * 5) % 32 of its matrix's list
#define LDMATRIX(name, T, wide, load) K_KERNEL(name, 32, 2) { BUFFERS \
  __shared__ k_array<T, 32 * wide> s; \
  for (int i = t; i < 32 * wide; i += 32) s[i] = (T)(i * 3 + 1); \
  __syncthreads(); \
  uint32_t r[4]; load(r, s.at(t * 5 % 32 * wide)); \
  for (int i = 0; i < 4; i++) put(y + t * 4 + i, r[i]); }
LDMATRIX(ldmatrix, uint16_t, 24, k_ldmatrix_x4)
LDMATRIX(ldmatrix_trans, uint16_t, 24, k_ldmatrix_x4_trans)
LDMATRIX(ldmatrix_32, uint32_t, 12, k_ldmatrix_x4)
K_KERNEL(rounding, 32, 2) { BUFFERS
  for (int i = t; i < 1000; i += 32) {
    const float v = get(x + i);
    put(y + 4 * i, k_bf16(v)); put(y + 4 * i + 1, k_f16(v)); put(y + 4 * i + 2, k_tf32(v));
    const bool same = k_bf16x2(v, 1.0f) == (k_bf16(v) | 0x3f800000u) &&
                      k_f16x2(2.0f, v) == (0x4000u | (uint32_t)k_f16(v) << 16);
    const float operand = k_of_bits(k_tf32_operand(v) & 0xffffe000u); // a NaN's bits are not said
    put(y + 4 * i + 3, (uint32_t)same | (operand != operand ? 0x7fc00000u : k_bits_of(operand)));
  } }
K_KERNEL(widen, 32, 2) { BUFFERS
  for (int i = t; i < 2048; i += 32) {
    put(y + 2 * i, k_bits_of(k_from_f16((uint16_t)(i * 32 + i % 31))));
    put(y + 2 * i + 1, k_bits_of(k_from_bf16((uint16_t)(i * 32 + i % 31))));
  } }
K_KERNEL(match, 64, 2) { BUFFERS
  put(y + t, k_match_any((uint32_t)get(x + t)));
  put(y + 64 + t, (uint32_t)k_ones(k_bits_of(get(x + t))));
}
K_KERNEL(shuffle, 64, 2) { BUFFERS
  const double d = k_shuffle_xor((double)t + 0.25, 5);
  put(y + t, (uint32_t)(d * 4)); put(y + 64 + t, (uint32_t)k_shuffle_xor((int64_t)t << 33, 16) + 
     (uint32_t)(k_shuffle_xor((int64_t)t << 33, 16) >> 33));
}
// four elements at a place, and one; shared memory that the launch gives
K_KERNEL_SHARED(places, 64, 1, 1536, 2) { BUFFERS
  K_SHARED(s, float, 128, 0);
  K_SHARED(d, double, 128, 512);
  for (int i = t; i < 128; i += 64) s[i] = get(x + i), d[i] = (double)get(x + 128 + i) * 3;
  __syncthreads();
  const k_place<float> from = s.at(0) + (t * 7 % 32 * 4);
  const k_place<double> wide = (d.at(0) + 4).held() + (t * 5 % 31 * 4);
  const vf four = k_load4(from);
  const vd both = k_load4(wide);
  for (int i = 0; i < 4; i++)
    put(y + t * 10 + i, k_bits_of(four[i])), put(y + t * 10 + 4 + i, k_bits_of((float)both[i]));
  put(y + t * 10 + 8, k_bits_of(k_load1(from + 3))), put(y + t * 10 + 9, k_bits_of((float)k_load1(wide + 1)));
}
// asynchronous copies of 16 and of 4 bytes, of which some are zeros; two groups under way
K_KERNEL(async, 64, 2) { BUFFERS
  __shared__ k_array<float, 64 * 8> s;
  k_async_16(s.at(t * 4), x + t * 4, t % 3 != 0);
  k_async_commit();
  for (int i = 0; i < 4; i++)
    k_async_4(s.at(256 + t * 4 + i), x + 512 + t * 4 + i * 7 % 4, (t + i) % 5 != 0);
  k_async_commit();
  k_async_wait<1>();
  __syncthreads();
  for (int i = 0; i < 4; i++) put(y + i * 64 + t, k_bits_of(s[i * 64 + t]));
  k_async_wait<0>();
  __syncthreads();
  for (int i = 0; i < 4; i++) put(y + 256 + i * 64 + t, k_bits_of(s[256 + i * 64 + t]));
}

// wgmma: 16 k from the second 16 of a row on, in all layouts and widths; a in the second 64 rows of its array. Of 64
// columns side by side the sums are folded: y[row][column % 64] = sum of c * (1 + column / 64)
#define WGMMA(name, type, a_turned, b_turned, N) K_KERNEL_SHARED(name, 128, 1, 16384 + N * 128, 2) { BUFFERS \
  K_SHARED(a, uint16_t, 8192, 0); \
  K_SHARED(b, uint16_t, N * 64, 16384); \
  for (int i = t; i < 64 * 16; i += 128) { \
    const int row = i / 16, k = 16 + i % 16; \
    a[4096 + (a_turned ? k * 64 + (row / 8 ^ k % 8) * 8 + row % 8 : row * 64 + (k / 8 ^ row % 8) * 8 + k % 8)] = k_##type(get(x + i)); } \
  for (int i = t; i < 16 * N; i += 128) { \
    const int k = 16 + i / N, n = i % N; \
    b[b_turned ? n / 64 * 4096 + k * 64 + (n % 64 / 8 ^ k % 8) * 8 + n % 8 : n * 64 + (k / 8 ^ n % 8) * 8 + k % 8] = \
        k_##type(get(x + 1024 + i % 3000)); } \
  const int row = t / 32 * 16 + t % 32 / 4, column = t % 4 * 2; \
  float c[N / 8][4], sum[8][4] = {}; \
  for (int j = 0; j < N / 8; j++) for (int e = 0; e < 4; e++) \
    c[j][e] = get(x + (row + e / 2 * 8) * 3 + j * 8 + column + e % 2); \
  k_wgmma_ready(); \
  __syncthreads(); \
  k_wgmma_hold(c); k_wgmma_begin(); \
  k_wgmma_##type<a_turned, b_turned>(c, k_operand_at(a.begin() + 4096, 8192, 1024) + (a_turned ? 1024 : 16), \
                                     k_operand_at(b.begin(), 8192, 1024) + (b_turned ? 1024 : 16)); \
  k_wgmma_commit(); \
  k_wgmma_wait<0>(); k_wgmma_hold(c); \
  _Pragma("unroll") for (int j = 0; j < N / 8; j++) for (int e = 0; e < 4; e++) \
    sum[j % 8][e] += c[j][e] * (float)(1 + j / 8); \
  for (int j = 0; j < 8; j++) for (int e = 0; e < 4; e++) \
    put(y + (row + e / 2 * 8) * 64 + j * 8 + column + e % 2, k_bits_of(sum[j][e])); }
WGMMA(wgmma_64, bf16, false, false, 64)
WGMMA(wgmma_128, f16, true, false, 128)
WGMMA(wgmma_192, bf16, false, true, 192)
WGMMA(wgmma_256, f16, true, true, 256)
