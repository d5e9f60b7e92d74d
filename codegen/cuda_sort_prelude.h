// Last text before CUDA kernels: sorting by digits, stably, and sums of
// segments of a sorted list (cuda_scatter_sort.c calls these).
// clang-format off: the style of the other preludes
//
// A chunk of positions is a block's; a run, a warp's share of it. A warp walks its run 32 positions
// at a time. Counters are integers of the block's own threads: no atomics, and the place of a
// position is its place in the order, whoever comes first.

// How many threads of `same` come before this one.
K int k_rank(uint32_t same) { return k_ones(same & ((1u << (threadIdx.x % 32)) - 1)); }

// calls f(at, digit, same, in) for each position of [begin, end): `same` are the threads whose
// position has the same digit now; in: whether there is a position. All threads of the warp call f.
template <int bits, typename D, typename F>
K_IN void k_walk_run(int64_t begin, int64_t end, D digit_at, F f) {
  for (int64_t first = begin; first < end; first += 32) {
    const int64_t at = first + threadIdx.x % 32;
    const bool in = at < end;
    const uint32_t digit = in ? (uint32_t)digit_at(at) : 1u << bits;
    f(at, (int)digit, k_match_any(digit), in);
  }
}

// count[warp][digit] of the runs of a chunk.
template <int bits, int warps, typename T, typename D>
K_IN void k_count_run(k_array<T, (warps << bits)> &count, int64_t begin, int64_t end, D digit_at) {
  const int mine = ((int)threadIdx.x / 32) << bits;
  for (int i = (int)threadIdx.x % 32; i < 1 << bits; i += 32)
    count[mine + i] = 0;
  __syncwarp();
  k_walk_run<bits>(begin, end, digit_at, [&](int64_t, int digit, uint32_t same, bool in) {
    if (in && k_rank(same) == 0)
      count[mine + digit] += (T)k_ones(same);
    __syncwarp();
  });
}

// The run of this warp in chunk `task` of n positions.
template <int warps> K_IN int64_t k_run_begin(int64_t task, int64_t chunk) {
  return task * chunk + (int64_t)(threadIdx.x / 32) * (chunk / warps);
}
template <int warps> K_IN int64_t k_run_end(int64_t task, int64_t chunk, int64_t n) {
  const int64_t end = k_run_begin<warps>(task, chunk) + chunk / warps;
  return end < n ? end : n;
}

// counts[task][digit]: of the positions of chunk `task`.
template <int bits, int warps, typename T, typename D>
K_IN void k_sort_count(int64_t task, int64_t chunk, int64_t n, T *counts, D digit_at) {
  __shared__ k_array<T, (warps << bits)> count;
  k_count_run<bits, warps>(count, k_run_begin<warps>(task, chunk),
                           k_run_end<warps>(task, chunk, n), digit_at);
  __syncthreads();
  for (int digit = (int)threadIdx.x; digit < 1 << bits; digit += 32 * warps) {
    T sum = 0;
    _Pragma("unroll") for (int w = 0; w < warps; w++) sum += count[(w << bits) + digit];
    k_put(counts + (task << bits) + digit, sum);
  }
}

// One array for all passes of a sort: each ends with a barrier.
template <typename T, int elements> K_IN k_array<T, elements> &k_sort_room() {
  __shared__ k_array<T, elements> room;
  return room;
}

// Where each run's first position of each digit goes: behind those of lower digits, of earlier
// chunks, of earlier runs. count[warp][digit] becomes that. A thread per digit, of which
// count_of(digit, &before, &all) says how many there are in earlier chunks and in all.
template <int bits, int warps, typename T, typename C>
K_IN void k_sort_starts(k_array<T, (warps << bits)> &count, C count_of) {
  k_array<T, (1 << bits)> &total = k_sort_room<T, (1 << bits)>();
  const int digit = (int)threadIdx.x;
  const bool has = digit < 1 << bits;
  T before = 0, all = 0;
  if (has) count_of(digit, &before, &all);
  if (has) total[digit] = all;
  __syncthreads();
  _Pragma("unroll") for (int step = 1; step < 1 << bits; step *= 2) {
    const T left = has && digit >= step ? (T)total[digit - step] : 0;
    __syncthreads();
    if (has) total[digit] += left;
    __syncthreads();
  }
  T at = has ? (T)total[digit] - all + before : 0;
  _Pragma("unroll") for (int w = 0; w < warps; w++)
    if (has) {
      const T x = count[(w << bits) + digit];
      count[(w << bits) + digit] = at;
      at += x;
    }
  __syncthreads();
}

// move(at, to) for all positions of chunk `task`; count_of as above, where the chunk's own count[warp][digit] is there.
template <int bits, int warps, typename T, typename D, typename C, typename M>
K_IN void k_sort_chunk(int64_t task, int64_t chunk, int64_t n, k_array<T, (warps << bits)> &count,
                       D digit_at, C count_of, M move) {
  static_assert(1 << bits <= 32 * warps, "a thread per digit");
  const int mine = ((int)threadIdx.x / 32) << bits;
  const int64_t begin = k_run_begin<warps>(task, chunk), end = k_run_end<warps>(task, chunk, n);
  k_count_run<bits, warps>(count, begin, end, digit_at);
  __syncthreads();
  k_sort_starts<bits, warps, T>(count, count_of);
  k_walk_run<bits>(begin, end, digit_at, [&](int64_t at, int digit, uint32_t same, bool in) {
    const T to = in ? (T)count[mine + digit] + (T)k_rank(same) : 0;
    __syncwarp();
    if (in && k_rank(same) == 0)
      count[mine + digit] += (T)k_ones(same);
    __syncwarp();
    if (in)
      move(at, to);
  });
}

// Behind k_sort_count for all of the chunks.
template <int bits, int warps, typename T, typename D, typename M>
K_IN void k_sort_place(int64_t task, int64_t chunk, int64_t chunks, int64_t n, const T *counts,
                       D digit_at, M move) {
  k_sort_chunk<bits, warps, T>(task, chunk, n, k_sort_room<T, (warps << bits)>(), digit_at,
                               [&](int digit, T *before, T *all) {
    _Pragma("unroll 8") for (int64_t c = 0; c < chunks; c++) {
      const T x = k_take(counts + (c << bits) + digit);
      *all += x;
      *before += c < task ? x : 0;
    }
  }, move);
}

// There is one chunk: a whole pass, after which all threads of the block see what was moved.
template <int bits, int warps, typename T, typename D, typename M>
K_IN void k_sort_alone(int64_t chunk, int64_t n, D digit_at, M move) {
  k_array<T, (warps << bits)> &count = k_sort_room<T, (warps << bits)>();
  k_sort_chunk<bits, warps, T>(0, chunk, n, count, digit_at, [&](int digit, T *, T *all) {
    _Pragma("unroll") for (int w = 0; w < warps; w++) *all += count[(w << bits) + digit];
  }, move);
  __syncthreads();
}

// --- segments: positions of a sorted list that have the same row --------------------------------
// A piece [begin, end) of the list of n: sums of its segments, in order, each from `start` by steps
// sum = join(sum, x). The first may have begun in an earlier piece, the last may go on in the next one.
enum k_segment { K_WHOLE, K_HEAD, K_TAIL };
template <typename V, typename T, typename U, typename J, typename S>
K_IN void k_sum_piece(const T *rows, const T *places, int64_t begin, int64_t end, int64_t n, V start,
                      U update_of, J join, S store) {
  T row = k_take(rows + begin);
  k_segment kind = begin > 0 && k_take(rows + begin - 1) == row ? K_HEAD : K_WHOLE;
  V sum = start;
  for (int64_t at = begin; at < end; at += VL) {
    T next[VL], place[VL];
    V x[VL];
    if (at + VL <= end) {
      k_take_all(rows + at, next);
      k_take_all(places + at, place);
    } else {
      K_LANES next[i] = at + i < end ? k_take(rows + at + i) : row;
      K_LANES place[i] = at + i < end ? k_take(places + at + i) : 0;
    }
    K_LANES x[i] = at + i < end ? update_of(place[i]) : start; // all under way before the first sum
    K_LANES
      if (at + i < end) {
        if (next[i] != row) {
          store(row, kind, sum);
          row = next[i];
          kind = K_WHOLE;
          sum = start;
        }
        sum = join(sum, x[i]);
      }
  }
  if (kind == K_WHOLE && end < n && k_take(rows + end) == row)
    kind = K_TAIL;
  store(row, kind, sum);
}

// The last piece of the segment that begins inside `piece` and goes beyond it; -1: there is none.
template <typename T>
K_IN int64_t k_last_piece(const T *rows, int64_t piece, int64_t size, int64_t n) {
  const int64_t begin = piece * size, end = begin + size;
  if (end >= n) return -1;
  const T row = k_take(rows + end - 1);
  if (k_take(rows + end) != row) return -1;
  if (begin > 0 && k_take(rows + begin - 1) == row) return -1;
  int64_t low = end, high = n; // the first position of another row
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (k_take(rows + middle) == row) low = middle + 1;
    else high = middle;
  }
  return (low - 1) / size;
}
