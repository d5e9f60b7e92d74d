// What products on the matrix unit of AMX-BF16 are written in (cpu_matmul_amx.c). This text stands before the kernels
// of files whose target has one.
//
//   a word    a pair of bf16: steps 2j (low half) and 2j + 1 of k
//   a line    16 words
//   a tile    16 lines: rows of a, of 16 pairs of steps each; or pairs of steps, of 16 columns of b each
//   a block   the tiles of 32 rows of a, or columns of b, and 32 steps of k
//   a panel   the blocks of all steps
#pragma clang diagnostic ignored "-Wpsabi" // lines are passed to functions that are part of their callers
// clang-format off: one-line functions, side by side, read as tables
#define K static inline __attribute__((always_inline, unused))
enum { K_TILE_WORDS = 256, K_BLOCK_WORDS = 2 * K_TILE_WORDS };
typedef uint32_t k_line __attribute__((vector_size(64)));
typedef uint32_t k_line_mem __attribute__((vector_size(64), aligned(2), may_alias));
typedef uint16_t k_half_line __attribute__((vector_size(32), aligned(2), may_alias));
typedef float k_line_f32 __attribute__((vector_size(64)));

// --- panels: copies of what memory holds as bf16 --------------------------------------------------------------------
// Transposes 16 x 16 words: four times, line i with line i + 8.
K void k_turn(k_line *x) {
  k_line y[16];
#define K_MERGE(x, y)                                                                                                  \
  for (int i = 0; i < 8; i++) {                                                                                        \
    y[2 * i] = __builtin_shufflevector(x[i], x[i + 8], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);        \
    y[2 * i + 1] =                                                                                                     \
        __builtin_shufflevector(x[i], x[i + 8], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);         \
  }
  K_MERGE(x, y) K_MERGE(y, x) K_MERGE(x, y) K_MERGE(y, x)
#undef K_MERGE
}
K k_line k_pairs(const uint16_t *low, const uint16_t *high) {
  return __builtin_convertvector(*(const k_half_line *)low, k_line) | __builtin_convertvector(*(const k_half_line *)high, k_line) << 16;
}
// How memory holds an operand: side by side along k; side by side in each step of k; so in pairs of steps.
enum { K_ALONG, K_ACROSS, K_PAIRED };
// A tile of 16 rows or columns and 32 steps. `turned`: what lies side by side in memory belongs to different lines.
K void k_put_tile(const uint16_t *from, int64_t pitch, int how, int turned, uint32_t *to) {
  k_line x[16];
  for (int i = 0; i < 16; i++)
    x[i] = how == K_ACROSS ? k_pairs(from + 2 * i * pitch, from + (2 * i + 1) * pitch) : *(const k_line_mem *)(from + i * pitch);
  if (turned)
    k_turn(x);
  for (int i = 0; i < 16; i++)
    *(k_line_mem *)(to + i * 16) = x[i];
}
K void k_put_block(const uint16_t *from, int64_t pitch, int how, int turned, uint32_t *to) {
  k_put_tile(from, pitch, how, turned, to);
  k_put_tile(from + (how == K_ALONG ? 16 * pitch : how == K_ACROSS ? 16 : 32), pitch, how, turned, to + K_TILE_WORDS);
}
// A part of a run of numbers, which lies `from` here, as those of `mask` of a line of 32: so far before it as it is in there.
typedef struct k_part { int64_t from; uint32_t mask; } k_part;
K uint32_t k_part_mask(int64_t first, int64_t count) { return (uint32_t)(((1ull << count) - 1) << first); }
#ifdef __AVX512BW__ // numbers that the mask leaves out are not read
typedef short k_line_numbers __attribute__((vector_size(64)));
K k_line_numbers k_add_part(k_line_numbers line, const uint16_t *from, uint32_t mask) {
  return (k_line_numbers)__builtin_ia32_loaddquhi512_mask((const void *)from, line, mask);
}
#else
typedef struct k_line_numbers { uint16_t at[32]; } k_line_numbers;
K k_line_numbers k_add_part(k_line_numbers line, const uint16_t *from, uint32_t mask) {
  for (int i = 0; i < 32; i++)
    if (mask >> i & 1) line.at[i] = from[i];
  return line;
}
#endif
K void k_gather_parts(const uint16_t *from, const int64_t *lines, int64_t num_lines, const k_part *parts, int64_t num_parts, uint16_t *to) {
  for (int64_t i = 0; i < num_lines; i++) {
    k_line_numbers line = {0};
    for (int64_t j = 0; j < num_parts; j++)
      line = k_add_part(line, from + lines[i] + parts[j].from, parts[j].mask);
    __builtin_memcpy(to + i * 32, &line, sizeof line);
  }
}
// So many lines of 32 numbers, which begin at `lines`, in so many parts; the rest of 32 x 32 is 0. Mostly there are one or two.
K void k_gather(const uint16_t *from, const int64_t *lines, int64_t num_lines, const k_part *parts, int64_t num_parts, uint16_t *to) {
  if (num_lines < 32)
    __builtin_memset(to, 0, 32 * 32 * sizeof *to);
  if (num_parts == 1)
    k_gather_parts(from, lines, num_lines, parts, 1, to);
  else if (num_parts == 2)
    k_gather_parts(from, lines, num_lines, parts, 2, to);
  else
    k_gather_parts(from, lines, num_lines, parts, num_parts, to);
}
// `count` rows of a or columns of b, lines `pitch` apart. What is missing of 32 rows, columns or steps is 0.
K void k_put_panel(const uint16_t *from, int64_t pitch, int how, int turned, int64_t count, int64_t steps, uint32_t *to) {
  const int64_t block = how == K_ALONG ? 32 : how == K_ACROSS ? 32 * pitch : 16 * pitch, whole = how == K_PAIRED ? 64 : 32;
  for (int64_t k = 0; k < steps; k += 32, from += block, to += K_BLOCK_WORDS) {
    const int64_t left = steps - k < 32 ? steps - k : 32;
    if (left == 32 && count == 32) {
      k_put_block(from, pitch, how, turned, to);
      continue;
    }
    const int64_t lines = how == K_ALONG ? count : how == K_ACROSS ? left : left / 2;
    const int64_t length = how == K_ALONG ? left : how == K_ACROSS ? count : 2 * count;
    uint16_t edge[32 * 32] __attribute__((aligned(64))) = {0};
    for (int64_t i = 0; i < lines; i++)
      __builtin_memcpy(edge + i * whole, from + i * pitch, (size_t)length * 2);
    k_put_block(edge, whole, how, turned, to);
  }
}

// --- the unit: tiles 0 to 3 are sums, 4 and 5 of a, 6 and 7 of b ----------------------------------------------------
#if defined(__AMX_BF16__) || defined(__AMXBF16__) // the second is clang's name until 14
#define K_TILE_LOAD(tile, from, bytes) __asm__ volatile("tileloadd (%0,%1), %%tmm" #tile : : "r"(from), "r"(bytes) : "memory")
#define K_TILE_STORE(tile, to, bytes) __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1)" : : "r"(to), "r"(bytes) : "memory")
#define K_TILE_ZERO(tile) __asm__ volatile("tilezero %tmm" #tile)
#define K_TILE_MULTIPLY(sum, a, b) __asm__ volatile("tdpbf16ps %tmm" #b ", %tmm" #a ", %tmm" #sum)
// For the time of some tasks all eight tiles of the thread are whole.
K void k_amx_begin(void) {
  static const struct { uint8_t palette, start, none[14]; uint16_t bytes[16]; uint8_t rows[16]; } shape
      __attribute__((aligned(64))) = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
  __asm__ volatile("ldtilecfg %0" : : "m"(shape));
}
K void k_amx_end(void) { __asm__ volatile("tilerelease"); }
#else // the same in C, for tests on processors that have none
static _Thread_local uint32_t k_tile[8][K_TILE_WORDS];
K void k_tile_load(uint32_t *tile, const char *from, int64_t bytes) {
  for (int i = 0; i < 16; i++)
    __builtin_memcpy(tile + i * 16, from + i * bytes, 64);
}
K void k_tile_store(const uint32_t *tile, char *to, int64_t bytes) {
  for (int i = 0; i < 16; i++)
    __builtin_memcpy(to + i * bytes, tile + i * 16, 64);
}
static __attribute__((noinline, unused)) void k_tile_multiply(uint32_t *sums, const uint32_t *a, const uint32_t *b) {
  for (int i = 0; i < 16; i++) {
    k_line_f32 sum;
    __builtin_memcpy(&sum, sums + i * 16, 64);
    for (int k = 0; k < 16; k++) {
      const k_line line = *(const k_line_mem *)(b + k * 16), word = a[i * 16 + k] - (k_line){0};
      sum += (k_line_f32)(word << 16) * (k_line_f32)(line << 16);
      sum += (k_line_f32)(word & 0xffff0000) * (k_line_f32)(line & 0xffff0000);
    }
    __builtin_memcpy(sums + i * 16, &sum, 64);
  }
}
#define K_TILE_LOAD(tile, from, bytes) k_tile_load(k_tile[tile], (const char *)(from), bytes)
#define K_TILE_STORE(tile, to, bytes) k_tile_store(k_tile[tile], (char *)(to), bytes)
#define K_TILE_ZERO(tile) __builtin_memset(k_tile[tile], 0, sizeof k_tile[tile])
#define K_TILE_MULTIPLY(sum, a, b) k_tile_multiply(k_tile[sum], k_tile[a], k_tile[b])
K void k_amx_begin(void) {}
K void k_amx_end(void) {}
#endif

// The sums of 32 x 32 elements over so many blocks, from 0 or where a former piece of k ended (`from`, lines of 32).
// `two_rows`, `two_columns`: two tiles high, wide; or else the second of a block is left out.
K void k_multiply_panels(const uint32_t *a, const uint32_t *b, int64_t blocks, const float *from, float *to, int64_t pitch,
                         int two_rows, int two_columns) {
  const int64_t line = 64;
  if (from) {
    K_TILE_LOAD(0, from, 2 * line);
    if (two_columns) K_TILE_LOAD(1, from + 16, 2 * line);
    if (two_rows) K_TILE_LOAD(2, from + 16 * 32, 2 * line);
    if (two_rows && two_columns) K_TILE_LOAD(3, from + 16 * 32 + 16, 2 * line);
  } else {
    K_TILE_ZERO(0); K_TILE_ZERO(1); K_TILE_ZERO(2); K_TILE_ZERO(3);
  }
  for (int64_t i = 0; i < blocks; i++, a += K_BLOCK_WORDS, b += K_BLOCK_WORDS) {
    K_TILE_LOAD(4, a, line);
    K_TILE_LOAD(6, b, line);
    K_TILE_MULTIPLY(0, 4, 6);
    if (two_columns) {
      K_TILE_LOAD(7, b + K_TILE_WORDS, line);
      K_TILE_MULTIPLY(1, 4, 7);
    }
    if (two_rows) {
      K_TILE_LOAD(5, a + K_TILE_WORDS, line);
      K_TILE_MULTIPLY(2, 5, 6);
      if (two_columns) K_TILE_MULTIPLY(3, 5, 7);
    }
  }
  K_TILE_STORE(0, to, pitch * 4);
  if (two_columns) K_TILE_STORE(1, to + 16, pitch * 4);
  if (two_rows) K_TILE_STORE(2, to + 16 * pitch, pitch * 4);
  if (two_rows && two_columns) K_TILE_STORE(3, to + 16 * pitch + 16, pitch * 4);
}
#undef K
