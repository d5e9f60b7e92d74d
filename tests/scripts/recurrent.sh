#!/usr/bin/env bash
# Unrolled networks: the steps of a sequence share their kernels, however many there are. Slow: 256 steps
# of an LSTM are compiled, whole, in 10 seconds.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
need_plain_build

cat >unrolled.graph <<'GRAPH'
let B = 32, T = 64, C = 64, H = 128, V = 65, N = 1
model unrolled(tokens: i32[B,T], targets: i32[B,T]) {
  param table: f[V,C] = normal(0.1)
  x = embedding(table, tokens)
  if N == 1 { x, h, c = lstm(x, H) } else { x, h = gru(x, H) }
  loss cross_entropy(linear(x, V), targets)
}
data { train = text("none.txt", vocab=chars, window=T) }
optim { adam(0.002) }
train { steps = 1 }
GRAPH

# How many functions the kernels of a training step are.
functions() { # T N
  "$mltc" unrolled.graph -D T="$1" -D N="$2" --emit=kernels -o kernels.txt
  sed -n '/^step/,/^eval/p' kernels.txt | awk '$6 > 0 { print $2 }' | sort -u | wc -l
}

# A cell of one's own, which reads a slice for each step and writes one.
cat >cell.graph <<'GRAPH'
let B = 16, T = 8, C = 32, H = 64
block cell(x: f[b,c], h: f[b,d]) -> f[b,d] {
  z = sigmoid(linear(x, d) + linear(h, d, bias=false))
  return (1 - z) * tanh(linear(x, d) + linear(h, d, bias=false) * z) + z * h
}
model own(x: f32[B,T,C], y: f32[B,T]) {
  h = zeros([B, H])
  all = none
  repeat t in T shared {
    h = cell(x[:, t], h) as cell
    o = linear(h, 1) as out
    all = o if is_none(all) else concat([all, o], axis=1)
  }
  loss mse(all, y)
}
data { train = npy("x.npy", "y.npy") }
optim { sgd(0.1) }
train { steps = 1 }
GRAPH
# Without alike: whether evaluation's loss is the step's function depends on its size, not on the number of functions.
of_cell() { # TARGET T PRECISION
  local kind=c
  [ "$1" = cpu ] || kind=cuda
  "$mltc" cell.graph -D T="$2" --target="$1" --precision="$3" --disable-pass=alike --emit=$kind |
    grep -cE '^(void (loop|matmul|copy)_[a-z_0-9]*_0\(.*\) \{|K_KERNEL(_ROOM)?\(|K_CALLED\()'
}
for target in cpu cuda:sm_80; do
  for precision in f32 bf16; do
    few=$(of_cell $target 8 $precision)
    many=$(of_cell $target 40 $precision)
    if [ "$few" -lt 20 ] || [ "$many" -gt $((few + 4)) ]; then
      fail "a cell of one's own, $target, $precision: $few functions for 8 steps, $many for 40"
    fi
  done
done
for precision in f32 bf16; do
  "$mltc" cell.graph -O1 --precision=$precision -o cell
  ./cell check >said.txt || fail "a cell of one's own, $precision: $(cat said.txt)"
done

# Where a slice begins is a number of the kernel, as the streams of its random members are.
cat >drop.graph <<'GRAPH'
model drop(x: f32[16,6,40], y: f32[16,20]) {
  h = dropout(x[:, 2], 0.3)
  g = h[:, 20:40] * dropout(x[:, 3, 5:25], 0.5)
  loss mse(linear(dropout(relu(linear(g, 20)), 0.5), 20) + x[:, 1, 3:23] * x[:, 4, 7:27], y)
}
data { train = npy("x.npy", "y.npy") }
optim { sgd(0.1) }
train { steps = 3 }
GRAPH
"$mltc" drop.graph -O1 -o drop
./drop check >said.txt || fail "slices and random numbers: $(cat said.txt)"

for layer in 1 2; do
  few=$(functions 64 "$layer")
  many=$(functions 160 "$layer")
  [ "$few" -gt 20 ] || fail "only $few functions of layer $layer"
  [ "$few" = "$many" ] || fail "layer $layer: $few functions for 64 steps, $many for 160"
done

if [ -n "${MLTC_SLOW:-}" ]; then
  TIMEFORMAT='%U %S' # of processor time: other tests may run beside
  { time timeout 120 "$mltc" --no-cache unrolled.graph -D T=256 -o unrolled 2>said.txt; } 2>spent.txt ||
    fail "256 steps: $(cat said.txt)"
  awk '{ exit $1 + $2 > 10 }' spent.txt || fail "256 steps do not compile in 10 seconds: $(cat spent.txt)"
fi
