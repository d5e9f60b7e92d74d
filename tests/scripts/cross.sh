#!/usr/bin/env bash
# --target: an object for aarch64 (whole programs: aarch64.sh), and a trainer for any x86-64-v3.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
need_plain_build

machine() { # FILE: its ELF machine, 183 is aarch64, 62 x86-64
  od -An -j18 -N2 -tu2 "$1" | tr -d ' '
}

cp -r "$root/examples/data" "$root"/examples/*.graph .
"$mltc" digits_mlp.graph -O1 -o here
if "$mltc" digits_mlp.graph -O1 --target=cpu:aarch64 -o digits_mlp.o 2>err.txt; then
  [ "$(machine digits_mlp.o)" = 183 ] || fail "no aarch64 object"
  [ "$(od -An -j16 -N2 -tu2 digits_mlp.o | tr -d ' ')" = 1 ] || fail "no relocatable object"
elif grep -q 'lld' err.txt; then
  echo "skipped: no lld to link an aarch64 object"
else
  cat err.txt
  fail "--target=cpu:aarch64"
fi
"$mltc" mnist_mlp.graph -O1 --target=cpu:aarch64 --emit=asm -o mnist.s
grep -q 'fmla' mnist.s || fail "no aarch64 code"

[ "$(uname -m)" = x86_64 ] || skip "this is no x86-64"
[ "$(machine here)" = 62 ] || fail "no x86-64 trainer"
for level in v3 v4; do
  "$mltc" digits_mlp.graph -O1 --target=cpu:x86-64-$level -o $level
  ./$level info >info.txt
  grep -q "^target *cpu:x86-64-$level" info.txt || fail "info does not name the target"
done
# Newer clangs lack builtins that older ones have, and the other way round: all others that are here.
usual=$(readlink -f "$(command -v clang)")
for version in {14..24}; do
  other=$(command -v clang-"$version") || continue
  [ "$(readlink -f "$other")" != "$usual" ] || continue
  for target in cpu:x86-64-v3 cpu:x86-64-v4; do
    MLTC_CC=clang-$version "$mltc" digits_mlp.graph -O1 --no-cache --target=$target -o other ||
      fail "clang-$version makes nothing for $target"
  done
done
flags=$(grep -m1 '^flags' /proc/cpuinfo)
if [[ $flags == *avx2* && $flags == *fma* ]]; then
  ./v3 --epochs=2 --no-save >out.txt
  grep -q "^test after step .*accuracy 0\.[5-9]" out.txt || fail "x86-64-v3 does not learn"
  ./v3 check >out.txt || {
    cat out.txt
    fail "check of x86-64-v3"
  }
fi
