// Second text before CUDA kernels: global memory, shared memory, kernels (cuda_prelude.h has the
// vectors). clang-format off: one-line functions, side by side, read as tables
//
// Global memory is read and written by k_load_* and k_store_* only: in the emulator they check
// every access against the buffers of the launch.

// --- global memory ----------------------------------------------------------------------------
// k_see: bytes at p are about to be read (or written) as one access.
// k_aligned: p, where a buffer begins: a multiple of 16.
#if defined(K_GPU)
#define k_see(p, bytes, align, how)
#define k_aligned(p) __builtin_assume_aligned(p, 16)
#else
#define k_see(p, bytes, align, how) emu_see(p, bytes, align, how)
#define k_aligned(p) emu_aligned(p, 16)
#endif
template <typename M> K_IN M k_take(const M *p) {
  k_see(p, sizeof(M), sizeof(M), EMU_READ);
  return *p;
}
template <typename M> K_IN void k_put(M *p, M x) {
  k_see(p, sizeof(M), sizeof(M), EMU_WRITE);
  *p = x;
}
// One register's worth of memory: VL elements of 1, 2, 4 bytes; half as many of 8.
template <int bytes> struct k_block;
#if defined(K_GPU)
template <> struct k_block<4> { struct type { uint32_t word; }; };
template <> struct k_block<8> { struct __align__(8) type { uint32_t word[2]; }; };
template <> struct k_block<16> { struct __align__(16) type { uint32_t word[4]; }; };
// Stores to global memory are spelled out: where both ways of k_put_all are there, the compiler finds
// the same stores at their ends, and makes one way of them, by elements.
K_IN void k_put_block(void *p, k_block<4>::type b) {
  asm volatile("st.global.b32 [%0], %1;" :: "l"(p), "r"(b.word) : "memory");
}
K_IN void k_put_block(void *p, k_block<8>::type b) {
  asm volatile("st.global.v2.b32 [%0], {%1, %2};"
               :: "l"(p), "r"(b.word[0]), "r"(b.word[1]) : "memory");
}
K_IN void k_put_block(void *p, k_block<16>::type b) {
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};"
               :: "l"(p), "r"(b.word[0]), "r"(b.word[1]), "r"(b.word[2]), "r"(b.word[3]) : "memory");
}
#endif
template <typename M> struct k_wide {
  enum { count = sizeof(M) < 8 ? VL : 2, bytes = sizeof(M) * count, blocks = VL / count };
  static K_IN bool fits(const M *p) { return ((uintptr_t)p & (bytes - 1)) == 0; }
#if defined(K_GPU)
  typedef typename k_block<bytes>::type block;
  union words { block b; M e[count]; };
  static K_IN void load(const M *p, M *e) {
    words w;
    w.b = *reinterpret_cast<const block *>(p);
    _Pragma("unroll") for (int i = 0; i < count; i++) e[i] = w.e[i];
  }
  static K_IN void store(M *p, const M *e) {
    words w;
    _Pragma("unroll") for (int i = 0; i < count; i++) w.e[i] = e[i];
    *reinterpret_cast<block *>(p) = w.b;
  }
  static K_IN void store_global(M *p, const M *e) {
    words w;
    _Pragma("unroll") for (int i = 0; i < count; i++) w.e[i] = e[i];
    k_put_block(p, w.b);
  }
#else
  static K_IN void load(const M *p, M *e) {
    k_see(p, bytes, bytes, EMU_READ);
    for (int i = 0; i < count; i++) e[i] = p[i];
  }
  static K_IN void store(M *p, const M *e) {
    k_see(p, bytes, bytes, EMU_WRITE);
    for (int i = 0; i < count; i++) p[i] = e[i];
  }
  static K_IN void store_global(M *p, const M *e) { store(p, e); }
#endif
};
// Where every address is known to be a multiple: in one access, or two of 8 bytes each.
template <typename M> K_IN void k_take_aligned(const M *p, M *e) {
  typedef k_wide<M> wide;
  _Pragma("unroll") for (int i = 0; i < wide::blocks; i++)
    wide::load(p + i * wide::count, e + i * wide::count);
}
template <typename M> K_IN void k_put_aligned(M *p, const M *e) {
  typedef k_wide<M> wide;
  _Pragma("unroll") for (int i = 0; i < wide::blocks; i++)
    wide::store_global(p + i * wide::count, e + i * wide::count);
}
template <typename M> K_IN void k_take_all(const M *p, M *e) {
  if (k_wide<M>::fits(p)) {
    k_take_aligned(p, e);
  } else {
    K_LANES e[i] = k_take(p + i);
  }
}
template <typename M> K_IN void k_put_all(M *p, const M *e) {
  if (k_wide<M>::fits(p)) {
    k_put_aligned(p, e);
  } else {
    K_LANES k_put(p + i, e[i]);
  }
}
// The first `lanes` of VL elements. Spelled out, without branches: of four conditions for each vector that a
// kernel touches, NVRTC's optimiser made 2 s of work where a kernel touches a hundred.
#if defined(K_GPU)
template <int bytes> struct k_part;
#define K_PART_OF(bytes, T, load, zero, reg, at1, at2, at3)                                         \
  template <> struct k_part<bytes> {                                                               \
    typedef T word;                                                                                \
    static K_IN void take(const void *p, T *e, int lanes) {                                        \
      asm volatile("{ .reg .pred q;"                                                               \
                   " setp.gt.s32 q, %5, 0; mov." zero " %0, 0; @q ld.global." load " %0, [%4];"       \
                   " setp.gt.s32 q, %5, 1; mov." zero " %1, 0; @q ld.global." load " %1, [%4+" at1 "];" \
                   " setp.gt.s32 q, %5, 2; mov." zero " %2, 0; @q ld.global." load " %2, [%4+" at2 "];" \
                   " setp.gt.s32 q, %5, 3; mov." zero " %3, 0; @q ld.global." load " %3, [%4+" at3 "]; }" \
                   : "=&" reg(e[0]), "=&" reg(e[1]), "=&" reg(e[2]), "=&" reg(e[3])                \
                   : "l"(p), "r"(lanes) : "memory");                                               \
    }                                                                                              \
    static K_IN void put(void *p, const T *e, int lanes) {                                         \
      asm volatile("{ .reg .pred q;"                                                               \
                   " setp.gt.s32 q, %5, 0; @q st.global." load " [%4], %0;"                           \
                   " setp.gt.s32 q, %5, 1; @q st.global." load " [%4+" at1 "], %1;"                   \
                   " setp.gt.s32 q, %5, 2; @q st.global." load " [%4+" at2 "], %2;"                   \
                   " setp.gt.s32 q, %5, 3; @q st.global." load " [%4+" at3 "], %3; }"                 \
                   :: reg(e[0]), reg(e[1]), reg(e[2]), reg(e[3]), "l"(p), "r"(lanes) : "memory");  \
    }                                                                                              \
  };
K_PART_OF(1, uint16_t, "u8", "b16", "h", "1", "2", "3")
K_PART_OF(2, uint16_t, "b16", "b16", "h", "2", "4", "6")
K_PART_OF(4, uint32_t, "b32", "b32", "r", "4", "8", "12")
K_PART_OF(8, uint64_t, "b64", "b64", "l", "8", "16", "24")
template <typename M> K_IN void k_take_part(const M *p, M *e, int lanes) {
  typedef typename k_part<sizeof(M)>::word word;
  word w[VL];
  k_part<sizeof(M)>::take(p, w, lanes);
  K_LANES { union { word from; M to; } x; x.from = w[i]; e[i] = x.to; }
}
template <typename M> K_IN void k_put_part(M *p, const M *e, int lanes) {
  typedef typename k_part<sizeof(M)>::word word;
  word w[VL];
  K_LANES { union { M from; word to; } x; x.to = 0; x.from = e[i]; w[i] = x.to; }
  k_part<sizeof(M)>::put(p, w, lanes);
}
#else
template <typename M> K_IN void k_take_part(const M *p, M *e, int lanes) {
  K_LANES e[i] = i < lanes ? k_take(p + i) : (M)0;
}
template <typename M> K_IN void k_put_part(M *p, const M *e, int lanes) {
  K_LANES if (i < lanes) k_put(p + i, e[i]);
}
#endif
// For each element type T: k_load_T, k_store_T (VL elements side by side: one access when the
// address allows it), _aligned (the address does), _part (the first `lanes` of them; nothing beyond
// is touched, missing lanes are 0), _step (elements `step` apart), k_load_T_one (one element in all
// lanes), k_splat_T (the same of a value), k_store_T_one (lane 0), k_gather_T (lane i: row[i] rows
// on).
#define K_MEMORY(T, m, v, DECODE, ENCODE)                                                          \
  K void k_encode_##T(m *e, v x) { K_LANES e[i] = ENCODE(x.lane[i], m); }                          \
  K_MEMORY_ENCODED(T, m, v, DECODE, ENCODE)
#define K_MEMORY_ENCODED(T, m, v, DECODE, ENCODE)                                                  \
  K v k_load_##T(const m *p) {                                                                     \
    m e[VL];                                                                                       \
    v r;                                                                                           \
    k_take_all(p, e);                                                                              \
    K_LANES r.lane[i] = DECODE(e[i], v);                                                           \
    return r;                                                                                      \
  }                                                                                                \
  K v k_load_##T##_aligned(const m *p) {                                                           \
    m e[VL];                                                                                       \
    v r;                                                                                           \
    k_take_aligned(p, e);                                                                          \
    K_LANES r.lane[i] = DECODE(e[i], v);                                                           \
    return r;                                                                                      \
  }                                                                                                \
  K v k_load_##T##_step(const m *p, int64_t step, int lanes) {                                     \
    v r;                                                                                           \
    K_LANES r.lane[i] = i < lanes ? DECODE(k_take(p + i * step), v) : (v::type)0;                  \
    return r;                                                                                      \
  }                                                                                                \
  K v k_load_##T##_part(const m *p, int lanes) {                                                   \
    m e[VL];                                                                                       \
    v r;                                                                                           \
    k_take_part(p, e, lanes);                                                                      \
    K_LANES r.lane[i] = DECODE(e[i], v);                                                           \
    return r;                                                                                      \
  }                                                                                                \
  K v k_splat_##T(m x) { return v::splat(DECODE(x, v)); }                                          \
  K v k_load_##T##_one(const m *p) { return k_splat_##T(k_take(p)); }                              \
  K v k_gather_##T(const m *p, vi row, int64_t row_step, int64_t step, int lanes) {                \
    v r;                                                                                           \
    K_LANES r.lane[i] =                                                                            \
        i < lanes ? DECODE(k_take(p + (row.lane[i] * row_step + i * step)), v) : (v::type)0;       \
    return r;                                                                                      \
  }                                                                                                \
  K void k_store_##T(m *p, v x) {                                                                  \
    m e[VL];                                                                                       \
    k_encode_##T(e, x);                                                                            \
    k_put_all(p, e);                                                                               \
  }                                                                                                \
  K void k_store_##T##_aligned(m *p, v x) {                                                        \
    m e[VL];                                                                                       \
    k_encode_##T(e, x);                                                                            \
    k_put_aligned(p, e);                                                                           \
  }                                                                                                \
  K void k_store_##T##_one(m *p, v x) { k_put(p, ENCODE(x.lane[0], m)); }                          \
  K void k_store_##T##_step(m *p, v x, int64_t step, int lanes) {                                  \
    K_LANES if (i < lanes) k_put(p + i * step, ENCODE(x.lane[i], m));                              \
  }                                                                                                \
  K void k_store_##T##_part(m *p, v x, int lanes) {                                                \
    m e[VL];                                                                                       \
    k_encode_##T(e, x);                                                                            \
    k_put_part(p, e, lanes);                                                                       \
  }
#define K_FROM(x, v) (v::type)(x)
#define K_AS(x, m) (m)(x)
#define K_FROM_BYTE(x, v) ((x) != 0 ? -1 : 0)
#define K_AS_BYTE(x, m) (m)(-(x))
K_MEMORY(bool, uint8_t, vi, K_FROM_BYTE, K_AS_BYTE)
K_MEMORY(u8, uint8_t, vi, K_FROM, K_AS)
K_MEMORY(i8, int8_t, vi, K_FROM, K_AS)
K_MEMORY(u16, uint16_t, vi, K_FROM, K_AS)
K_MEMORY(i32, int32_t, vi, K_FROM, K_AS)
K_MEMORY(u32, uint32_t, vu, K_FROM, K_AS)
K_MEMORY(i64, int64_t, vl, K_FROM, K_AS)
K_MEMORY(f32, float, vf, K_FROM, K_AS)
K_MEMORY(f64, double, vd, K_FROM, K_AS)

// Row numbers of a gather, kept inside the table.
K vi k_row(vi x, int32_t rows) { return k_min(k_max(x, k_i32(0)), k_i32(rows - 1)); }
K vi k_row(vu x, int32_t rows) { return K_TO(k_min(x, k_u32((uint32_t)rows - 1)), vi); }
K vi k_row(vl x, int32_t rows) { return K_TO(k_min(k_max(x, k_i64(0)), k_i64(rows - 1)), vi); }

// --- shared memory ----------------------------------------------------------------------------
// __shared__ k_array<float, 1056> tile;
//   tile[i]                        an element
//   tile.load4(i), .store4(i, v)   VL elements from i on, a multiple of VL, as a vector
//   tile.at(i)                     a place, for the copies and matrix loads of
//                                  cuda_device_prelude.h: k_place<float>, + n goes on by n elements
//   tile.begin()                   at(0), held in a register: begin() + n is an addition, or nothing
//                                  where n is a constant; at(n) is converted from an address each time
// In the emulator the same with bounds, alignment and races watched (mltc_emulator.h).
// K_SHARED(tile, float, 1056, 512): the same in the memory of K_KERNEL_SHARED, from byte 512 on. In a kernel with no
// arrays of its own that memory begins at a multiple of 1024 bytes. (To ask for it would make arrays of all other
// kernels of a file end at one.)
#if defined(K_GPU)
// Where `p` is in shared memory. In assembly: nothing is worked out of it beforehand, which would take
// the registers of sums.
K uint32_t k_shared_address(const void *p) {
  uint64_t a;
  asm("cvta.to.shared.u64 %0, %1;" : "=l"(a) : "l"(p));
  return (uint32_t)a;
}
template <typename T> struct k_place {
  uint32_t address;
  K_IN k_place operator+(int n) const { k_place r = {address + (uint32_t)n * (uint32_t)sizeof(T)}; return r; }
  K_IN k_place held() const { // in a register: or it is worked out again at each mention
    k_place r = {address};
    asm volatile("" : "+r"(r.address));
    return r;
  }
};
template <typename T, int N> struct __align__(128) k_array {
  T element[N];
  K_IN T &operator[](int i) { return element[i]; }
  K_IN T operator[](int i) const { return element[i]; }
  K_IN k_place<T> at(int i) { k_place<T> r = {k_shared_address(element + i)}; return r; }
  K_IN k_place<T> begin() { return at(0).held(); }
  K_IN k_vec<T> load4(int i) const {
    k_vec<T> r;
    _Pragma("unroll") for (int j = 0; j < k_wide<T>::blocks; j++)
      k_wide<T>::load(element + i + j * k_wide<T>::count, r.lane + j * k_wide<T>::count);
    return r;
  }
  K_IN void store4(int i, k_vec<T> x) {
    _Pragma("unroll") for (int j = 0; j < k_wide<T>::blocks; j++)
      k_wide<T>::store(element + i + j * k_wide<T>::count, x.lane + j * k_wide<T>::count);
  }
};
#else
template <typename T> using k_place = emu_place<T>;
template <typename T, int N> struct k_array : emu_shared<T, N> {
  K_IN k_vec<T> load4(int64_t i) {
    k_vec<T> r;
    this->take(i, VL, r.lane);
    return r;
  }
  K_IN void store4(int64_t i, k_vec<T> x) { this->put(i, VL, x.lane); }
};
#endif

#define K_SHARED(name, T, N, at)                                                                   \
  static_assert((at) % 128 == 0 && (at) + sizeof(T) * (N) <= 227 * 1024, "no place for " #name);   \
  K_GIVEN(name, T, N, at)
#if defined(K_GPU)
extern __shared__ __align__(128) char k_given_shared[];
#define K_GIVEN(name, T, N, at)                                                                    \
  k_array<T, N> &name = *reinterpret_cast<k_array<T, N> *>(k_given_shared + (at))
#else
#define K_GIVEN(name, T, N, at) __shared__ k_array<T, N> name; name.give(at)
#endif

// --- kernels ----------------------------------------------------------------------------------
// K_KERNEL(name, threads, width) { ... task ... args[0] ... }     entry `name`: one call
// K_KERNEL_ROOM(name, threads, blocks, width)                     the same; its registers leave room
//                                                                 for so many blocks on an SM
// K_KERNEL_SHARED(name, threads, blocks, bytes, width)            the same; each launch gives a block
//                                                                 so many bytes of shared memory
// K_JOINT(name, threads, widest) { K_CALLS(0, kernel_0, 5, 1) ... }
//                                                                 entry `name`: many calls of some
//                                                                 kernels of the file, side by side
// K_CALLED(name, threads, width)                                  as K_KERNEL, but no entry: only
//                                                                 joint ones call it
// threads is a multiple of 32; args has `width` entries.
template <int width> struct k_args { char *at[width]; };
// args[i] in a kernel: a buffer as (const float *)args[i], a number as (int64_t)(uintptr_t)args[i].
// Buffers begin at multiples of 64 bytes, with which the compiler decides most of k_wide::fits: the
// other way is then not there, and loads of several vectors are under way together.
struct k_argument {
  char *at;
  template <typename T> K_IN operator T *() const { return (T *)k_aligned(at); }
  K_IN operator uintptr_t() const { return (uintptr_t)at; }
  template <typename I> K_IN char *operator+(I bytes) const { return (char *)k_aligned(at) + bytes; }
};
struct k_given {
  char *const *at;
  K_IN k_argument operator[](int i) const { k_argument a = {at[i]}; return a; }
};

// The calls of a joint entry are rows of words, K_ROWS_NEAR(name) = {...} (constant memory: 64 KiB of
// a file) or K_ROWS_FAR(name) = {...}. A launch has, from word `first` on, for each of its `num` calls
// the blocks of it and of those before it; then a row for each: the number of its kernel in the
// entry, buffers as K_PLACE bytes from the arena's begin (top bit: from the batch's), numbers; all
// rows are as wide as the widest. `check` finds the table by its name, to call one kernel. No name of an
// entry begins with k_: a value of the graph may be called y_rows as well as y.
struct k_joint { char *arena, *batch; int64_t first, num; };
#define K_PLACE 64
#define K_IN_BATCH 0x80000000u
#if defined(K_GPU)
#define K_ROWS_FAR(name) __device__ uint32_t k_rows_of_##name[]
#define K_ROWS_NEAR(name) __constant__ uint32_t k_rows_of_##name[]
#else
#define K_ROWS_FAR(name) __attribute__((visibility("default"))) uint32_t k_rows_of_##name[]
#define K_ROWS_NEAR(name) K_ROWS_FAR(name)
#endif
struct k_call { const uint32_t *word; char *arena, *batch; int64_t task; };
// The row that a block works for: the first whose end lies beyond it.
K k_call k_find_call(const k_joint &all, const uint32_t *words, int widest, int64_t block) {
  const uint32_t *const end = words + all.first;
  int low = 0, high = (int)all.num - 1;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (block < end[middle]) high = middle;
    else low = middle + 1;
  }
  k_call r;
  r.word = end + all.num + (int64_t)low * (1 + widest);
  r.arena = all.arena;
  r.batch = all.batch;
  r.task = block - (low > 0 ? end[low - 1] : 0);
  return r;
}
template <int buffers, int numbers> K_IN k_args<buffers + numbers> k_args_of(const k_call &row) {
  k_args<buffers + numbers> r;
  _Pragma("unroll") for (int i = 0; i < buffers; i++) {
    const uint32_t place = row.word[1 + i];
    r.at[i] = (place & K_IN_BATCH ? row.batch : row.arena) + (int64_t)(place & ~K_IN_BATCH) * K_PLACE;
  }
  _Pragma("unroll") for (int i = buffers; i < buffers + numbers; i++)
    r.at[i] = (char *)(uintptr_t)row.word[1 + i];
  return r;
}
#define K_BODY(name) static K_IN void name##_body(const int64_t task, const k_given args)
#if defined(K_GPU)
#if defined(__NVCC__) || defined(__CUDACC_RTC__)
#define K_PARAMETER const __grid_constant__
#else
#define K_PARAMETER const
#endif
#define K_BOUNDS(...) __launch_bounds__(__VA_ARGS__)
#define K_ENTRY(entry, threads, shared, bounds, ...)                                               \
  extern "C" __global__ void bounds entry(K_PARAMETER __VA_ARGS__ all)
#else
#define K_BOUNDS(...)
#define K_ENTRY(entry, threads, shared, bounds, ...) EMU_ENTRY(entry, threads, shared, __VA_ARGS__)
#endif
#define K_KERNEL_WITHIN(name, threads, shared, bounds, width)                                      \
  static_assert((threads) % 32 == 0 && (threads) <= 1024, "a block is of whole warps");            \
  K_BODY(name);                                                                                    \
  K_ENTRY(name, threads, shared, bounds, k_args<width>) {                                          \
    const k_given args = {all.at};                                                                 \
    name##_body((int64_t)blockIdx.x, args);                                                        \
  }                                                                                                \
  K_BODY(name)
#define K_KERNEL(name, threads, width) K_KERNEL_WITHIN(name, threads, 0, K_BOUNDS(threads), width)
#define K_KERNEL_ROOM(name, threads, blocks, width)                                                \
  K_KERNEL_WITHIN(name, threads, 0, K_BOUNDS(threads, blocks), width)
#define K_KERNEL_SHARED(name, threads, blocks, bytes, width)                                       \
  K_KERNEL_WITHIN(name, threads, bytes, K_BOUNDS(threads, blocks), width)
#define K_CALLED(name, ...) K_BODY(name)
#define K_JOINT_WITHIN(name, threads, bounds, widest)                                              \
  static K_IN void k_calls_of_##name(const k_call &row);                                           \
  K_ENTRY(name, threads, 0, bounds, k_joint) {                                                     \
    k_calls_of_##name(k_find_call(all, k_rows_of_##name, widest, (int64_t)blockIdx.x));            \
  }                                                                                                \
  static K_IN void k_calls_of_##name(const k_call &row)
#define K_JOINT(name, threads, widest) K_JOINT_WITHIN(name, threads, K_BOUNDS(threads), widest)
#define K_JOINT_ROOM(name, threads, blocks, widest)                                                \
  K_JOINT_WITHIN(name, threads, K_BOUNDS(threads, blocks), widest)
#define K_CALLS(which, name, buffers, numbers)                                                     \
  if (row.word[0] == which) {                                                                      \
    const k_args<(buffers) + (numbers)> args = k_args_of<buffers, numbers>(row);                   \
    const k_given given = {args.at};                                                               \
    name##_body(row.task, given);                                                                  \
    return;                                                                                        \
  }
