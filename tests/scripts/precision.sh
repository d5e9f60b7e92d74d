#!/usr/bin/env bash
# --precision=tf32 and bf16: programs train about as well as in f32, with the same bits in every run
# and for every number of threads, and `check` finds every kernel right. On the stand-in driver the
# kernels for GPUs, with every access watched and without, give losses near the CPU's.
#
# How near: both targets multiply the same narrow numbers, exactly, and add up in f32 in another order.
# That is 1e-6 or so of a loss. From the second step on a sum that is off by an ulp may also narrow to
# the other neighbour, 2^-8 away in bf16 (2^-11 in tf32): about one operand in 10^4, each one of
# hundreds in its sums, of either sign. 5e-4 over 20 steps is ten times of what has been seen.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
source "$root/tests/scripts/lib/gpu.bash"
need_plain_build
command -v python3 >python.txt || skip "no python3"

# --- a whole training run: digits ------------------------------------------------------------------
train() { # NAME OPTION...
  local name=$1 program=$2
  shift 2
  "./$program" --quiet --save="$name.safetensors" --metrics="$name.jsonl" --no-times "$@"
}
for p in f32 tf32 bf16; do
  "$mltc" -O1 "$root/examples/digits_mlp.graph" --precision=$p -o digits-$p
  train $p-one digits-$p --epochs=30 --threads=1
  [ $p != f32 ] || continue
  for run in again:1 two:2 three:3; do
    train $p-"${run%:*}" digits-$p --epochs=30 --threads="${run#*:}"
    same $p-one.safetensors $p-"${run%:*}".safetensors "$p: checkpoints of 1 and ${run#*:} threads"
    same $p-one.jsonl $p-"${run%:*}".jsonl "$p: metrics of 1 and ${run#*:} threads"
  done
  ! cmp -s f32-one.safetensors $p-one.safetensors || fail "--precision=$p changes nothing"
  ./digits-$p check >check.txt || fail "$p: check: $(grep FAILED check.txt)"
done
python3 - <<'PYTHON' || fail "validation in narrow precision is not near that in f32"
import json
import sys

def last(name):
    with open(name + "-one.jsonl") as f:
        rows = [r for r in map(json.loads, f) if "accuracy" in r]
    return rows[-1]["loss"], rows[-1]["accuracy"]

base = last("f32")
for p in ("tf32", "bf16"):
    loss, accuracy = last(p)
    print(f"{p}: loss {loss:.4g} (f32 {base[0]:.4g}), accuracy {accuracy:.4g} (f32 {base[1]:.4g})")
    if abs(loss - base[0]) > 0.1 * base[0] or abs(accuracy - base[1]) > 0.02:
        sys.exit(1)
PYTHON

# --- pairs of bf16 ---------------------------------------------------------------------------------
# Where the processor multiplies them, products do: of layers, of a recurrent network's steps, which read panels of
# pairs where they lie, and of windows.
has_amx() { # and the system lets programs use it, once asked: arch_prctl(ARCH_REQ_XCOMP_PERM, tile data)
  grep -q amx_bf16 /proc/cpuinfo &&
    python3 -c 'import ctypes; raise SystemExit(ctypes.CDLL(None).syscall(158, 0x1023, 18) != 0)'
}
if grep -q avx512_bf16 /proc/cpuinfo && grep -q avx512dq /proc/cpuinfo; then
  for example in digits_mlp char_lstm resnet20; do
    "$mltc" "$root/examples/$example.graph" --precision=bf16 --emit=c -o narrow.c
    grep -q ' = k_dot(\|^  k_amx_begin();' narrow.c || fail "$example: no pairs are multiplied"
    if has_amx && [ "$example" != digits_mlp ]; then # whose products are too small for it
      grep -q '^  k_amx_begin();' narrow.c || fail "$example: the matrix unit is not used"
    fi
  done
  "$mltc" "$root/examples/char_lstm.graph" --precision=bf16 --emit=ir -o narrow.ir
  grep -q '_bf16.panels = copy .* : bf16\[[0-9]*,[0-9]*,32,2\]' narrow.ir || fail "char_lstm: no panels of pairs"
  "$mltc" "$root/examples/resnet20.graph" --precision=bf16 --target=cpu:x86-64-v4 --emit=c -o narrow.c
  ! grep -q ' = k_dot(' narrow.c || fail "pairs for machines that may not multiply them"
fi

# --- the GPU's kernels -----------------------------------------------------------------------------
[ -e "$driver" ] || exit 0 # no stand-in driver in this build
gpu() { # EXAMPLE PRECISION MLTC-OPTION...
  local name=$1-$2 example=$1 precision=$2
  shift 2
  "$mltc" "$@" "$example.graph" --precision="$precision" -O0 -o "$name-cpu"
  "$mltc" "$@" "$example.graph" --precision="$precision" -O1 --target=cuda:sm_80 --keep="$name-kept" \
    -o "$name-gpu" 2>err.txt || {
    grep -q NVRTC err.txt && exit 0 # nothing compiles for GPUs here
    fail "$name: $(cat err.txt)"
  }
  grep -q "k_mma_$precision(c" "$name-kept"/kernels_*.cu || fail "$name: no tensor cores"
  beside_cpu "$name" 5e-4
}
cp -r "$root/examples/data" .
short digits_mlp
[ -z "${MLTC_SLOW:-}" ] || gpu digits_mlp tf32
need_data
short char_gpt
gpu char_gpt bf16 -D B=2 -D T=40 -D C=32 -D L=2 # T=40: with attention kernels

# For several GPUs a product that one of them makes by wgmma is there twice; each runs its own, also in `check`.
cat >own.graph <<'GRAPH'
let B = 256
model own(image: f32[B,64], label: i32[B]) {
  x = pad(image / 16, [0, 0], [0, 1])         # rows of 65, which mma.sync takes one element at a time
  loss cross_entropy(linear(gelu(linear(x, 64)), 10), label)
}
data { train = csv("data/digits.csv.gz", label=last, embed=true) }
optim { sgd(0.1) }
train { steps = 20, seed = 1 }
GRAPH
"$mltc" own.graph --precision=bf16 -O0 -o own-cpu
"$mltc" own.graph --precision=bf16 -O1 --target=cuda --keep=own-kept -o own-gpu
beside_cpu own 5e-4
export MLTC_CUDA_DRIVER=$driver MLTC_STANDIN_FAST=1
MLTC_STANDIN_KERNELS=$(find own-kept -name 'kernels_*.so' -printf "$PWD/%p:")
export MLTC_STANDIN_KERNELS
for device in 9.0 8.0 8.9 12.0; do
  export MLTC_STANDIN_CAPABILITY=$device
  MLTC_STANDIN_TRACE=trace.txt ./own-gpu --quiet --no-save --log-every=1 --no-times --metrics=own-$device.jsonl
  compare_losses own-$device.jsonl own-cpu.jsonl 5e-4
  ./own-gpu check >check.txt || fail "own: check on $device: $(grep FAILED check.txt)"
  for file in trace.txt check.txt; do
    if [ $device = 9.0 ]; then
      grep -q '_own' $file || fail "own: $file on $device: no kernels of its own"
    else
      ! grep -q '_own' $file || fail "own: $file on $device: kernels of another GPU"
    fi
  done
done
unset MLTC_STANDIN_CAPABILITY MLTC_STANDIN_FAST MLTC_STANDIN_KERNELS MLTC_CUDA_DRIVER
same own-8.0.jsonl own-12.0.jsonl "own: the kernels that all have"
./own-gpu info >info.txt
[ "$(sed -n 's/^code  *sm_80: \([0-9]*\) kernels.*/\1/p' info.txt)" -lt \
  "$(sed -n 's/^code  *sm_90a: \([0-9]*\) kernels.*/\1/p' info.txt)" ] || fail "own: info counts kernels"
[ -n "${MLTC_SLOW:-}" ] || exit 0
gpu digits_mlp bf16
short mnist_mlp
gpu mnist_mlp bf16
