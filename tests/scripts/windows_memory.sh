#!/usr/bin/env bash
# Windows of images in products of bf16: what a step takes must not depend on whether the number of channels is even, or
# divides into vectors, as it did where windows of others were packed whole: 84 to 520 MB where 3 to 20 are enough. And what
# norms and recurrences take must not depend on such things, either.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash

# SIZE CHANNELS RESULTS WIDTH BATCH STEP
network() {
  cat <<GRAPH
let B = $5
model windows(x: f32[B,$4,$4,1]) {
  h = relu(conv2d(x, $2, size=1))
  h = conv2d(h, $3, size=$1, step=$6, padding=$(($1 / 2)), bias=false)
  loss mean(h * h)
}
optim { sgd(0.1) }
train { steps = 10, seed = 0, precision = bf16 }
GRAPH
}
arena() { # TARGET SIZE CHANNELS RESULTS WIDTH BATCH STEP
  network "${@:2}" >windows.graph
  "$mltc" windows.graph --target="$1" --emit=plan.json -o plan.json
  python3 -c 'import json; print(json.load(open("plan.json"))["totals"]["arena"])'
}

for target in cpu cpu:x86-64-v3 cpu:x86-64-v4; do
  [ "$(uname -m)" = x86_64 ] || [ "$target" = cpu ] || continue
  for shape in "3 128 128 32 4 1" "11 16 16 61 32 1" "11 96 16 64 1 1" "5 37 38 33 8 1" "3 31 64 47 32 1"; do
    read -r size channels results width batch step <<<"$shape"
    read -r -a all <<<"$(for d in -1 0 1; do
      arena "$target" "$size" $((channels + d)) "$results" "$width" "$batch" "$step"
    done | tr '\n' ' ')"
    echo "$target, windows of $size x $size, $((channels - 1)) to $((channels + 1)) channels: ${all[*]} bytes"
    # What packs all windows takes at least as much as all of them in bf16.
    windows=$((batch * width * width * size * size * channels * 2))
    least=${all[0]}
    for bytes in "${all[@]}"; do
      [ "$bytes" -ge "$least" ] || least=$bytes
    done
    for bytes in "${all[@]}"; do
      [ "$bytes" -le $((least * 5 / 4)) ] || fail "a channel more or less takes much more"
      [ "$bytes" -le "$windows" ] || fail "as much as all windows take"
    done
  done
done

# Other steps from one size to the next: bytes of temporaries for each element.
temporaries() { # GRAPH N TARGET
  "$mltc" "$1.graph" -D N="$2" --target="$3" --emit=plan.json -o plan.json
  python3 -c 'import json; t = json.load(open("plan.json"))["totals"]; print(t["temporaries"])'
}
recipe='optim { sgd(0.1) }
train { steps = 10, seed = 0, precision = bf16 }'
# Sums of batch norm cut the shape in which their operand is computed.
cat >norms.graph <<GRAPH
let N = 32
model m(x: f32[16,N,N,8]) {
  y = batchnorm(conv2d(relu(batchnorm(conv2d(x, 32, padding=1))), 32, padding=1))
  loss mean(y * y)
}
$recipe
GRAPH
# All values of a recurrence's step are small.
cat >recurrence.graph <<GRAPH
let N = 16
model m(x: f32[N,16,64]) {
  y, last, cell = lstm(x, 64)
  loss mean(y * y)
}
$recipe
GRAPH
for target in cpu cpu:x86-64-v3 cpu:x86-64-v4; do
  [ "$(uname -m)" = x86_64 ] || [ "$target" = cpu ] || continue
  while read -r graph elements sizes; do
    measured=""
    for n in $sizes; do
      measured+="$(temporaries "$graph" "$n" "$target") / (${elements//N/$n}), "
    done
    python3 -c "import sys
all = [$measured]
print('$target, $graph of $sizes:', *[round(x) for x in all], 'bytes for each element')
sys.exit(max(all) > 1.2 * min(all))" || fail "$graph: one more takes much more"
  done <<SIZES
norms N*N 31 32 33
recurrence N 15 16 17
SIZES
done
