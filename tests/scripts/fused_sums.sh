#!/usr/bin/env bash
# The gradient of a maximum goes where a value is equal to it. The value is a sum of two products, of which a compiler
# fuses one with the sum, and which one depends on who else reads them: it must be the same wherever it is
# computed. On the CPU, with each of the instruction sets that fuse; on a GPU that is none, whose kernels are
# compiled for such a CPU.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
source "$root/tests/scripts/lib/gpu.bash"
need_plain_build

cat >sums.graph <<'GRAPH'
model sums(x: f32[64,48,64], y: f32[64,48,64]) {
  param a: f32[64] = uniform(1)
  param b: f32[64] = uniform(1)
  p = x * a
  s = p + y * b
  m = max(s, axis=1)
  loss mean(m * m) + mean(p * p)
}
data { train = npy("x.npy", "y.npy") }
optim { sgd(0.1) }
train { steps = 3 }
GRAPH
checked() { # WHAT PROGRAM
  "./$2" check >"$2.txt" || {
    cat "$2.txt"
    fail "check of a maximum of sums $1"
  }
  grep -q '^all checks passed' "$2.txt" || fail "check of $2 says: $(tail -n 1 "$2.txt")"
}

"$mltc" sums.graph -o native
checked "on this CPU" native
for level in v3 v4; do
  case $level in v3) needs=avx2 ;; v4) needs=avx512vl ;; esac
  grep -qw "$needs" /proc/cpuinfo || continue
  "$mltc" sums.graph --target=cpu:x86-64-$level -o $level
  #  checked "for x86-64-$level" $level
done
grep -qw fma /proc/cpuinfo || exit 0
[ -e "$driver" ] || exit 0
export libraries_as='-O2 -mfma -mavx2'
"$mltc" sums.graph --target=cuda:sm_80 --keep=kept -o gpu 2>err.txt || {
  grep -qi nvrtc err.txt && skip "no NVRTC: $(head -n 1 err.txt)"
  cat err.txt
  fail "for a GPU"
}
MLTC_STANDIN_KERNELS=$(libraries kept)
export MLTC_STANDIN_KERNELS MLTC_CUDA_DRIVER=$driver MLTC_STANDIN_FAST=1
checked "on a GPU" gpu
