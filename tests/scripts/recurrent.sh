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

for layer in 1 2; do
  few=$(functions 64 "$layer")
  many=$(functions 160 "$layer")
  [ "$few" -gt 20 ] || fail "only $few functions of layer $layer"
  [ "$few" = "$many" ] || fail "layer $layer: $few functions for 64 steps, $many for 160"
done

if [ -n "${MLTC_SLOW:-}" ]; then
  timeout 10 "$mltc" --no-cache unrolled.graph -D T=256 -o unrolled || fail "256 steps do not compile in 10 seconds"
fi
