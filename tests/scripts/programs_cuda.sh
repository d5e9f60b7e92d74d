#!/usr/bin/env bash
# A GAN and adapters on a GPU that is none: kernels run on the emulator, the driver is the stand-in. Losses are
# the CPU target's; `--weights` reads the file of a run on the CPU; `check` passes, also of a product that takes more
# shared memory than a kernel may have of its own: the stand-in wants the launch to give it.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
source "$root/tests/scripts/lib/gpu.bash"
need_plain_build
command -v python3 >python.txt || skip "no python3"
[ -e "$driver" ] || skip "no stand-in driver in this build"
export MLTC_CUDA_DRIVER=$driver

compile() { # NAME EXAMPLE OPTION...
  "$mltc" "${@:3}" "$root/examples/$2.graph" -O0 -o "$1-cpu"
  "$mltc" "${@:3}" "$root/examples/$2.graph" --target=cuda:sm_80 --keep="$1-kept" -o "$1-gpu" 2>err.txt || {
    grep -qi nvrtc err.txt && skip "no NVRTC: $(head -n 1 err.txt)"
    cat err.txt
    fail "$1 for a GPU"
  }
  libraries "$1-kept" >"$1.kernels"
}
both() { # NAME ARGUMENT...: 12 steps on the CPU and on the GPU
  for target in cpu gpu; do
    MLTC_STANDIN_KERNELS=$(cat "$1.kernels") "./$1-$target" "${@:2}" --data-dir=data --no-times --log-every=1 \
      --steps=12 --save="$1-$target.st" --metrics="$1-$target.jsonl" >"$1-$target.txt" || fail "$1 on the $target"
  done
  python3 - "$1-cpu.jsonl" "$1-gpu.jsonl" <<'PYTHON' || fail "$1: other losses on the GPU"
import json
import sys

cpu, gpu = ([json.loads(line) for line in open(path, encoding="utf-8")] for path in sys.argv[1:])
assert len(cpu) == len(gpu) == 13 and any("loss" in name for name in cpu[0])  # and one evaluation
for a, b in zip(cpu, gpu):
    assert a.keys() == b.keys(), (a, b)
    for name in a:
        assert a[name] == b[name] or abs(a[name] - b[name]) <= 1e-5 * abs(a[name]), (name, a, b)
PYTHON
}

python3 "$root/examples/data/clouds.py" data
compile gan gan -D B=16 -D H=12
both gan
MLTC_STANDIN_FAST=1 MLTC_STANDIN_KERNELS=$(cat gan.kernels) ./gan-gpu check >check.txt || {
  grep -A1 FAILED check.txt
  fail "check of the GAN on the GPU"
}

seq 1 3000 | tr '\n' ' ' >data/text.txt
sizes=(-D FILE='"text.txt"' -D B=2 -D T=12 -D C=16 -D H=2 -D L=1)
"$mltc" "${sizes[@]}" "$root/examples/char_lora.graph" -O0 -o base
./base --data-dir=data --quiet --steps=50 --save=base.st
compile tune char_lora "${sizes[@]}" -D R=3
both tune --weights=base.st --allow-missing
for target in cpu gpu; do
  grep -q '^weights: base.st: 16 loaded, 8 missing, 34 not used$' tune-$target.txt || fail "weights on the $target"
done
cat >large.ir <<'IR'
mltc-ir 1
module large
state w : f64[32,768] role=param
func step {
  %x = input : f64[512,32]
  %w = read @w : f64[32,768]
  %y = matmul %x, %w {ta=false, tb=false} : f64[512,768]
  result output y = %y
}
IR
"$mltc" large.ir --target=cuda:sm_80 --keep=large-kept -o large-gpu || fail "a large product"
grep -q '^K_KERNEL_SHARED(' large-kept/kernels_0.cu || fail "a large product has room in its own shared memory"
libraries large-kept >large.kernels
MLTC_STANDIN_FAST=1 MLTC_STANDIN_KERNELS=$(cat large.kernels) ./large-gpu check >check.txt || {
  cat check.txt
  fail "check of a large product"
}
echo "several losses, adapters and a large product on a GPU: as on the CPU"

# Products of f32 that fill the chip are assembled in their order, in a file of their own; small ones are not.
for sizes in 2048,1024 32,16; do
  batch=${sizes%,*}
  cat >wide.graph <<GRAPH
let B = $batch
model wide(x: f32[B,512], label: i32[B]) {
  loss cross_entropy(linear(relu(linear(x, ${sizes#*,})), 10), label)
}
data { train = csv("x.csv", label=last) }
optim { sgd(0.1) }
train { steps = 1 }
GRAPH
  "$mltc" wide.graph --target=cuda:sm_80 -O0 --no-cache --keep="wide-$batch" -v -o wide 2>said.txt || fail "wide.graph: $(cat said.txt)"
  grep 'mltc-nvrtc .*\.cu ' said.txt >calls.txt
  for file in "wide-$batch"/kernels_*.cu; do
    in_order=$(grep -c "$(basename "$file") .*--ptxas-options=-O1" calls.txt) || true
    wide=$(grep -c '^// c\[2048,1024\] = ' "$file") || true
    [ "$((in_order > 0))" = "$((wide > 0))" ] || fail "$file: $wide wide products, in order: $in_order"
  done
done
[ -e wide-2048/kernels_1.cu ] || fail "products that fill the chip have no file of their own"
