#!/usr/bin/env bash
# Integers in `check`: plain versions, which compute in double precision, wrap sums and products, and take the
# nearest end of the range where a cast leaves it, as kernels do: hashes that index a table, numbers that
# are quantised with the gradient passed straight through. Those of 64 bits keep them all.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash

cat >hashes.graph <<'GRAPH'
let B = 16
model hashes(k: u32[B,4], y: f32[B,6]) {
  param table: f[50,6] = normal(1)
  a = k * u32(40503) + u32(12345)
  a = a * a
  index = i32(a % u32(50))
  b = i32(k) * i32(k) - i32(k)
  output index = index
  output total = sum(b, axis=1)
  output small = u8(k) * u8(19) + u8(77)
  loss mse(sum(gather(table, index), axis=1), y)
}
data { train = npy("k.npy", "y.npy") }
optim { sgd(0.1) }
GRAPH
cat >quantised.graph <<'GRAPH'
let B = 16
model quantised(x: f32[B,50], y: f32[B,50]) {
  param w: f[50] = ones
  h = x * w
  q = f32(i8(h * 127)) / 127
  h = h + stop(q - h)
  output bytes = u8(x * 300)
  output wide = i32(x * 1e10)
  output widest = i64(x * 1e30)
  loss mse(h, y)
}
data { train = npy("x.npy", "y.npy") }
optim { sgd(0.1) }
GRAPH
cat >long.graph <<'GRAPH'
let B = 16
model long(k: i64[B,4], t: i32[B,4], y: f32[B,1]) {
  h = k * 6364136223846793 + 1442695040888963
  h = h * h + i64(t)
  g = h * 1103515245 - k
  output last = g % 1000 + h % 7
  output parts = concat([abs(g) // 12345, sign(h), max(g, h), where(g > h, min(h, 0 - 9007199254740991), -g)], axis=1)
  output most = max(pad_lowest(g, [0, 1], [0, 0]), axis=1) + min(h, axis=1)
  output odd = f32(g == h * 1103515245 - k) + f32(reshape(argmax(g % 97, axis=1), [B, 1]))
  output rows = segment_sum(g, t[:, 0], B) + gather(segment_max(h, t[:, 1], 5), t[:, 2] % 5)
  loss mse(linear(f32(g % 1000) / 1000, 1), y) + mean(f32(sum(h * 4503599627370495, axis=1) % 10))
}
data { train = npy("k.npy", "t.npy", "y.npy") }
optim { sgd(0.1) }
GRAPH
for name in hashes quantised long; do
  "$mltc" $name.graph -o $name
  ./$name check >check.txt || {
    cat check.txt
    fail "check of $name"
  }
  grep -q '^all checks passed' check.txt || fail "check of $name says: $(tail -n 1 check.txt)"
done
