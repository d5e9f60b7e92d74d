# Sourced after common.bash by scripts that run kernels for GPUs on the emulator: examples with few steps, their
# kernels as libraries for the stand-in driver ($MLTC_STANDIN_KERNELS), and losses compared.
# shellcheck shell=bash disable=SC2154
driver=$build/lib/libcuda-standin.so # may be absent from a build
# The stand-in executes no image: one that nothing was compiled for will do, but in the slow tests.
if [ -e "$build/lib/libnvrtc-standin.so" ] && [ -z "${MLTC_SLOW:-}" ]; then
  export MLTC_NVRTC=$build/lib/libnvrtc-standin.so
fi

compare_losses() { # FILE FILE BOUND: the largest relative difference
  python3 - "$@" <<'PYTHON' || fail "losses of $1 and $2"
import json
import sys

def losses(name):
    with open(name) as f:
        return [r["loss"] for r in map(json.loads, f) if "loss" in r]

a, b = losses(sys.argv[1]), losses(sys.argv[2])
worst = max(abs(x - y) / abs(y) for x, y in zip(a, b))
print(f"{sys.argv[1]} {sys.argv[2]}: {len(a)} losses, {worst:.2g} apart")
sys.exit(len(a) != len(b) or len(a) < 20 or worst > float(sys.argv[3]))
PYTHON
}

short() { # EXAMPLE: 20 steps of it
  python3 -c 'import re, sys
print(re.sub(r"train \{[^}]*\}", "train { steps = 20, seed = 1 }", open(sys.argv[1]).read()))' \
    "$root/examples/$1.graph" >"$1.graph"
}

# FOLDER...: their kernels for the emulator; says where they are, each followed by ':'. Compiling takes longer than
# some dozen steps do: where there are more, a script sets libraries_as=-O1. Without an option such as
# -mfma products are not fused with sums, as a GPU's are.
libraries() {
  local as
  read -ra as <<<"${libraries_as:--O0}"
  find "$@" -name 'kernels_*.cu' -print0 | xargs -0 -P 2 -I '{}' clang++ -std=c++17 "${as[@]}" -fno-threadsafe-statics \
    -fno-exceptions -fno-rtti -fvisibility=hidden -fno-math-errno -fno-trapping-math -w -shared -fPIC \
    -I "$root/tests/emulator" -x c++ '{}' -o '{}.so' -lm
  find "$@" -name 'kernels_*.so' -printf "$PWD/%p:"
}

# NAME-gpu, whose kernels are in NAME-kept, beside NAME-cpu: the same bits with every access watched and
# without, and losses that are at most BOUND from the CPU's.
beside_cpu() { # NAME BOUND
  local name=$1 kernels run=(--quiet --no-save --log-every=1 --no-times "--data-dir=$data")
  kernels=$(libraries "$name-kept")
  "./$name-cpu" "${run[@]}" --metrics="$name-cpu.jsonl"
  MLTC_CUDA_DRIVER=$driver MLTC_STANDIN_KERNELS=$kernels \
    "./$name-gpu" "${run[@]}" --metrics="$name-watched.jsonl"
  MLTC_CUDA_DRIVER=$driver MLTC_STANDIN_KERNELS=$kernels MLTC_STANDIN_FAST=1 MLTC_STANDIN_SEED=7 \
    "./$name-gpu" "${run[@]}" --metrics="$name-again.jsonl"
  same "$name-watched.jsonl" "$name-again.jsonl" "$name: metrics of two runs"
  compare_losses "$name-again.jsonl" "$name-cpu.jsonl" "$2"
}
