#!/usr/bin/env bash
# What the compiler makes of the matmul tiles: their sums stay in registers. (Vectors made of the addresses of a
# loop once took the registers, and a tile of 14 x 2 sums moved as many vectors to and from the stack as it had
# products. On AVX2 tall tiles of one vector lost a few of their sums, and others where rows of windows overlap.)
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
need_plain_build
for model in tests/bench/torch/moe_block:v3 tests/bench/torch/moe_block:v4 examples/mnist_cnn:v3 examples/unet:v3; do
  "$mltc" "$root/${model%:*}.graph" --target=cpu:x86-64-"${model#*:}" --emit=asm -o tiles.s
  python3 "$root/tests/scripts/lib/loop_spills.py" tiles.s >loops.txt
  [ "$(wc -l <loops.txt)" -ge 15 ] || fail "$model: few loops of products: $(cat loops.txt)"
  awk '8 * $2 > $1' loops.txt >spills.txt
  [ ! -s spills.txt ] || fail "$model: multiply-adds, vectors moved to or from the stack, function:
$(cat spills.txt)"
done
