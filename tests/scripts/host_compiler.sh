#!/usr/bin/env bash
# What mltc writes does not depend on the compiler that built it: gcc and clang work out the
# arguments of a call in different orders, and nodes are named in the order they are made.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
need_plain_build

used=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")
case $("$used" --version) in
*clang*) other=gcc ;;
*) other=clang ;;
esac
command -v "$other" >/dev/null || skip "this machine has no $other"

folder=$PWD/other
(cd "$root" && TARGETS=mltc CC=$other scripts/build "$folder") || fail "$other does not build mltc"

num=0
while read -r text; do
  for what in "--emit=ir --print-after=all" --emit=plan; do
    read -ra options <<<"$what"
    "$mltc" "$text" "${options[@]}" >here.txt 2>&1 || true
    "$folder/bin/mltc" "$text" "${options[@]}" >there.txt 2>&1 || true
    cmp -s here.txt there.txt || {
      diff here.txt there.txt | head -n 20
      fail "$text $what: $used and $other make different compilers"
    }
  done
  num=$((num + 1))
done < <(find "$root/examples" "$root/tests/lit" -name '*.graph' -o -name '*.ir')
[ "$num" -ge 10 ] || fail "found only $num texts to compare"
