#!/usr/bin/env bash
# Networks of every family against PyTorch: 20 losses and gradient norms, from equal weights and batches
# (tests/oracle; its make.py has computed them). And `check` finds every kernel and gradient right. In the suite kernels
# are not optimised: examples.sh holds optimised ones of each kind beside plain versions; with MLTC_SLOW they are here, too.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
need_plain_build
command -v python3 >python.txt || skip "no python3"

level=-O0
[ -z "${MLTC_SLOW:-}" ] || level=-O2
one() { # NAME
  mkdir "$1"
  python3 "$root/tests/oracle/inputs.py" "$1" "$1"
  "$mltc" $level "$root/tests/oracle/$1.graph" -o "$1/program"
  "$1/program" --quiet --no-save --no-times --data-dir="$1" --metrics="$1/metrics.jsonl" >"$1/said.txt"
  python3 "$root/tests/oracle/compare.py" "$root/tests/oracle/$1.json" "$1/metrics.jsonl" ||
    fail "$1 does not compute what PyTorch computes"
  "$1/program" check >"$1/check.txt" || {
    grep -A1 FAILED "$1/check.txt"
    fail "$1: check"
  }
}

for graph in "$root"/tests/oracle/*.graph; do
  name=$(basename "$graph" .graph)
  echo "$name"
  one "$name"
done
