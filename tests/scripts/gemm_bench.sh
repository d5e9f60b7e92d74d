#!/usr/bin/env bash
# The matmul benchmark builds against the compiler's libraries and its kernels compute the right
# products (it exits with 1 when one is wrong); with MLTC_SLOW with cold operands, too.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
need_plain_build
cd "$root" || fail "no $root"
for mode in "" ${MLTC_SLOW:+--cold}; do
  # shellcheck disable=SC2086
  BUILD=$build tests/bench/gemm/run --quick $mode --only="mlp" >"$scratch/out.txt" ||
    fail "$(cat "$scratch/out.txt")"
  [ "$(grep -c '%' "$scratch/out.txt")" -eq 5 ] || fail "not five rows: $(cat "$scratch/out.txt")"
done
