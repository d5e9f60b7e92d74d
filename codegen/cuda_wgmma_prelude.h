// Text before CUDA kernels, after cuda_device_prelude.h: products of a warpgroup (four warps side by side, the
// first of them a multiple of four), wgmma.mma_async of PTX ISA 8.0, which sm_90a has and no other.
//
//   k_wgmma_ready();                              // what copies brought to shared memory is seen
//   __syncthreads();
//   k_wgmma_begin();
//   k_wgmma_bf16<false, true>(c, a, b);           // c[64,N] += a[64,16] b[16,N]; N 64, 128, 192 or 256
//   k_wgmma_commit();
//   ...
//   k_wgmma_wait<1>();                            // all but the youngest group are done: what they read may
//                                                 // be overwritten, after a barrier
//   k_wgmma_wait<0>(); k_wgmma_hold(c);           // and c may be read
//
// Operands lie in shared memory in rows of 128 bytes, of which the 16-byte units are exchanged: unit u of row r stands
// at place u ^ r % 8, where rows are counted from a multiple of 1024 bytes.
//   as [x][k]            a row has 64 elements along k of one x
//   as [k][x] (turned)   a row has 64 elements along x of one k; `lead` bytes further on, the next 64
// `stride` bytes from eight rows to the next eight. `operand + n` begins n elements further on. Of c a thread has what it has of
// k_mma_bf16: c[j] is of columns 8 j on, rows are those from 16 w on, for warp w of the group.
//
// Elsewhere (PTX for newer GPUs) the same by ldmatrix and mma.sync, at once.
// clang-format off: one-line functions, side by side, read as tables
#if defined(K_PTX) && defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define K_WGMMA 1
#endif

#if defined(K_WGMMA)
struct k_operand {
  uint64_t descriptor; // PTX ISA, "matrix descriptor format"; swizzle of 128 bytes
  K_IN k_operand operator+(int elements) const {
    k_operand r = {descriptor + (uint64_t)(uint32_t)(elements / 8)};
    return r;
  }
};
K k_operand k_operand_at(k_place<uint16_t> p, int lead, int stride) {
  k_operand r = {(uint64_t)(p.address / 16) | (uint64_t)(uint32_t)(lead / 16) << 16 |
                 (uint64_t)(uint32_t)(stride / 16) << 32 | (uint64_t)1 << 62};
  return r;
}
K void k_wgmma_ready() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
K void k_wgmma_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
K void k_wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int newer> K_IN void k_wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(newer) : "memory");
}
// The compiler does not know what a begin or a wait has to do with c: after c was written, and before it is read.
template <int N> K_IN void k_wgmma_hold(float (&c)[N][4]) {
  _Pragma("unroll") for (int j = 0; j < N; j++)
    _Pragma("unroll") for (int i = 0; i < 4; i++)
      asm volatile("" : "+f"(c[j][i]) :: "memory");
}
#define K_SUMS_1(j) "+f"(c[j][0]), "+f"(c[j][1]), "+f"(c[j][2]), "+f"(c[j][3])
#define K_SUMS_4(j) K_SUMS_1(j), K_SUMS_1(j + 1), K_SUMS_1(j + 2), K_SUMS_1(j + 3)
#define K_SUMS_8(j) K_SUMS_4(j), K_SUMS_4(j + 4)
#define K_SUMS_16(j) K_SUMS_8(j), K_SUMS_8(j + 8)
#define K_SUMS_24(j) K_SUMS_16(j), K_SUMS_8(j + 16)
#define K_SUMS_32(j) K_SUMS_16(j), K_SUMS_16(j + 16)
#define K_NAMES_8  \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define K_NAMES_16 K_NAMES_8 ", " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define K_NAMES_24 K_NAMES_16 ", " \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define K_NAMES_32 K_NAMES_24 ", " \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define K_WGMMA_OF(name, type, j, columns, a, b, ta, tb)                                           \
  template <bool a_turned, bool b_turned> K_IN void k_wgmma_##name(float (&c)[j][4], k_operand x, k_operand y) { \
    asm volatile("wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." type "." type             \
                 " {" K_NAMES_##j "}, " a ", " b ", 1, 1, 1, " ta ", " tb ";"                      \
                 : K_SUMS_##j(0)                                                                    \
                 : "l"(x.descriptor), "l"(y.descriptor), "n"(a_turned), "n"(b_turned) : "memory"); \
  }
#define K_WGMMA_ALL(name, type)                                                                    \
  K_WGMMA_OF(name, type, 8, 64, "%32", "%33", "%34", "%35")                                        \
  K_WGMMA_OF(name, type, 16, 128, "%64", "%65", "%66", "%67")                                      \
  K_WGMMA_OF(name, type, 24, 192, "%96", "%97", "%98", "%99")                                      \
  K_WGMMA_OF(name, type, 32, 256, "%128", "%129", "%130", "%131")
K_WGMMA_ALL(bf16, "bf16")
K_WGMMA_ALL(f16, "f16")
#else

struct k_operand {
  k_place<uint16_t> at;
  int lead, stride;
  K_IN k_operand operator+(int elements) const {
    k_operand r = {at + elements, lead, stride};
    return r;
  }
};
K k_operand k_operand_at(k_place<uint16_t> p, int lead, int stride) {
  k_operand r = {p, lead, stride};
  return r;
}
#if defined(K_GPU) || defined(K_WGMMA_BY_MMA) // the latter: for tests
K void k_wgmma_ready() {}
K void k_wgmma_begin() {}
K void k_wgmma_commit() {}
template <int newer> K_IN void k_wgmma_wait() {}
template <int N> K_IN void k_wgmma_hold(float (&c)[N][4]) { (void)c; }
// Eight elements of x, k on, side by side in a row.
K k_place<uint16_t> k_wgmma_unit(k_operand o, bool turned, int x, int k) {
  const int along = turned ? x : k, across = turned ? k : x;
  k_place<uint16_t> r = o.at + (along / 64 * (o.lead / 2) + along % 64 + across / 8 * (o.stride / 2) + across % 8 * 64);
#if defined(K_GPU)
  r.address ^= r.address / 128 % 8 * 16;
#else
  r.index ^= r.index / 64 % 8 * 8;
#endif
  return r;
}
template <bool turned> K_IN void k_wgmma_load(uint32_t (&r)[4], k_operand o, int x, int k) {
  if (turned) k_ldmatrix_x4_trans(r, k_wgmma_unit(o, turned, x, k));
  else k_ldmatrix_x4(r, k_wgmma_unit(o, turned, x, k));
}
#define K_WGMMA_ALL(name, NAME)                                                                    \
  template <bool a_turned, bool b_turned, int N> K_IN void k_wgmma_##name(float (&c)[N][4], k_operand x, k_operand y) { \
    const int warp = (int)threadIdx.x / 32 % 4, low = (int)threadIdx.x % 8, middle = (int)threadIdx.x / 8 % 2 * 8, \
              high = (int)threadIdx.x / 16 % 2 * 8;                                                \
    uint32_t a[4], b[4];                                                                           \
    k_wgmma_load<a_turned>(a, x, warp * 16 + middle + low * !a_turned, high + low * a_turned);     \
    _Pragma("unroll") for (int j = 0; j < N; j += 2) {                                             \
      k_wgmma_load<b_turned>(b, y, j * 8 + high + low * !b_turned, middle + low * b_turned);       \
      k_mma_##name(c[j], a, b[0], b[1]);                                                           \
      k_mma_##name(c[j + 1], a, b[2], b[3]);                                                       \
    }                                                                                              \
  }
#else
K void k_wgmma_ready() { emu_wgmma_ready(); }
K void k_wgmma_begin() { emu_wgmma_begin(); }
K void k_wgmma_commit() { emu_wgmma_commit(); }
template <int newer> K_IN void k_wgmma_wait() { emu_wgmma_wait(newer); }
template <int N> K_IN void k_wgmma_hold(float (&c)[N][4]) { (void)c; }
#define K_WGMMA_ALL(name, NAME)                                                                          \
  template <bool a_turned, bool b_turned, int N> K_IN void k_wgmma_##name(float (&c)[N][4], k_operand x, k_operand y) { \
    emu_wgmma(EMU_WGMMA_##NAME, c[0], N, {x.at.array, x.at.index, x.lead, x.stride, a_turned},      \
              {y.at.array, y.at.index, y.lead, y.stride, b_turned});                               \
  }
#endif
K_WGMMA_ALL(bf16, BF16)
K_WGMMA_ALL(f16, F16)
#endif
