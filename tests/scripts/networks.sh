#!/usr/bin/env bash
# Networks of papers, as people write them in one file each (tests/networks): all are planned, for CPUs and GPUs, with
# everything computed again and in bf16. With MLTC_SLOW they are compiled, too: `check` finds every kernel right, on
# the CPU in both precisions and on the emulator. What they compute with gradients, plain versions and finite differences say.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
source "$root/tests/scripts/lib/gpu.bash"
need_plain_build

check() { # NAME PROGRAM WHERE
  "$2" check >check.txt || {
    grep -A1 FAILED check.txt
    fail "$1: check $3"
  }
}
compiled() { # GRAPH NAME
  for precision in f32 bf16; do
    "$mltc" -O1 --precision=$precision "$1" -o program
    check "$2" ./program "in $precision"
  done
  [ -e "$driver" ] || return 0
  rm -rf kept
  "$mltc" "$1" --target=cuda:sm_80 --keep=kept -o on-gpu 2>err.txt || {
    grep -qi nvrtc err.txt && return 0
    cat err.txt
    fail "$2 for a GPU"
  }
  MLTC_STANDIN_KERNELS=$(libraries kept) MLTC_STANDIN_FAST=1 MLTC_CUDA_DRIVER=$driver check "$2" ./on-gpu "on a GPU"
}

count=0
for graph in "$root"/tests/networks/*.graph; do
  name=$(basename "$graph" .graph)
  for options in "--checkpoint=all --precision=bf16" "--target=cuda:sm_80"; do
    # shellcheck disable=SC2086 # several options
    "$mltc" "$graph" $options --emit=plan.json -o plan.json 2>said.txt || {
      cat said.txt
      fail "$name $options"
    }
    if [ -s said.txt ]; then
      cat said.txt
      fail "$name $options: warnings"
    fi
  done
  [ -z "${MLTC_SLOW:-}" ] || compiled "$graph" "$name"
  count=$((count + 1))
done
[ "$count" -ge 40 ] || fail "$count networks"
echo "$count networks: as they should be"
