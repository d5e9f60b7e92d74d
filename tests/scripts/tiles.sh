#!/usr/bin/env bash
# What the compiler makes of the matmul tiles: their sums stay in registers. (Vectors made of the addresses of a
# loop once took the registers, and a tile of 14 x 2 sums moved as many vectors to and from the stack as it had
# products. On AVX2 tall tiles of one vector lost a few of their sums, and others where
# rows overlap.)
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
need_plain_build
models=(tests/bench/torch/moe_block examples/mnist_cnn examples/unet examples/mnist_vit)
for level in v3 v4; do
  for model in "${models[@]}"; do
    "$mltc" "$root/$model.graph" --target=cpu:x86-64-$level --emit=asm -o tiles.s
    python3 "$root/tests/scripts/lib/loop_spills.py" tiles.s >loops.txt
    [ "$(wc -l <loops.txt)" -ge 15 ] || fail "$level: few loops of products: $(cat loops.txt)"
    awk '8 * $2 > $1' loops.txt >spills.txt
    [ ! -s spills.txt ] || fail "$model, $level: multiply-adds, vectors moved to or from the stack, function:
$(cat spills.txt)"
  done
done
