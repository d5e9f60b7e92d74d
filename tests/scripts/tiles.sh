#!/usr/bin/env bash
# What the compiler makes of the matmul tiles: their sums stay in registers. (Vectors made of the addresses of a
# loop once took the registers, and a tile of 14 x 2 sums moved as many vectors to and from the stack as it had
# products.)
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
need_plain_build
for level in v3 v4; do
  "$mltc" "$root/tests/bench/torch/moe_block.graph" --target=cpu:x86-64-$level --emit=asm -o $level.s
  python3 "$root/tests/scripts/lib/loop_spills.py" $level.s >loops.txt
  [ "$(wc -l <loops.txt)" -ge 15 ] || fail "$level: few loops of products: $(cat loops.txt)"
  awk '4 * $2 > $1' loops.txt >spills.txt
  [ ! -s spills.txt ] || fail "$level: multiply-adds, vectors moved to or from the stack, function:
$(cat spills.txt)"
done
