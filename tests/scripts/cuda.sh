#!/usr/bin/env bash
# Trainers for a GPU, trained without one: the examples' kernels run on the emulator, the driver is
# the stand-in (tests/standin). Losses are the CPU target's, bits are the same in every run and in
# every order of work that streams and events allow, and either target resumes from the other's file.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
need_plain_build
need_data
driver=$build/lib/libcuda-standin.so
[ -e "$driver" ] || skip "no stand-in driver in this build"
export MLTC_CUDA_DRIVER=$driver XDG_CACHE_HOME=$PWD/cache
steps=20

# The kernels of a kept compilation as libraries for the emulator: their names, for the stand-in.
emulate() { # FOLDER
  local unit libs=
  for unit in "$1"/kernels_*.cu; do
    clang++ -std=c++17 -O1 -fno-threadsafe-statics -fno-exceptions -fno-rtti -fvisibility=hidden \
      -fno-math-errno -fno-trapping-math -w -shared -fPIC -I "$root/tests/emulator" \
      -x c++ "$unit" -o "${unit%.cu}.so" -lm
    libs=$libs:$PWD/${unit%.cu}.so
  done
  echo "${libs#:}"
}

# The example with a short recipe, for both targets, in a folder of its own.
build_both() { # EXAMPLE MLTC-OPTION...
  local name=$1
  shift
  mkdir "$name"
  cp -r "$root/examples/data" "$name"
  python3 - "$root/examples/$name.graph" "$steps" >"$name/model.graph" <<'PYTHON'
import re
import sys

text = open(sys.argv[1]).read()
recipe = "train { steps = %s, seed = 1 }" % sys.argv[2]
print(re.sub(r"train \{[^}]*\}", recipe, text))
PYTHON
  cd "$name" || fail "no folder $name"
  "$mltc" model.graph "$@" -o cpu
  if ! "$mltc" model.graph "$@" --target=cuda:sm_80 --keep=kept -o gpu 2>err.txt; then
    grep -q NVRTC err.txt && skip "no NVRTC: $(head -n 1 err.txt)"
    cat err.txt
    fail "$name for CUDA"
  fi
  MLTC_STANDIN_KERNELS=$(emulate kept)
  export MLTC_STANDIN_KERNELS
}

train() { # PROGRAM NAME OPTION...: NAME.st and NAME.jsonl
  local program=$1 name=$2
  shift 2
  "./$program" train --data-dir="$data" --save="$name.st" --metrics="$name.jsonl" --no-times \
    --log-every=1 --quiet "$@" || fail "$program $* ended with $?"
}

compare_losses() { # FILE FILE
  python3 - "$1" "$2" "$steps" <<'PYTHON' || fail "losses of $PWD differ from the CPU target's"
import json
import sys


def losses(path):
    return [r["loss"] for r in map(json.loads, open(path)) if "loss" in r]


a, b = losses(sys.argv[1]), losses(sys.argv[2])
worst = max(abs(x - y) / abs(y) for x, y in zip(a, b))
print("worst relative difference %.2g over %d steps" % (worst, len(b)))
sys.exit(len(a) != len(b) or len(b) != int(sys.argv[3]) or not worst <= 1e-5)
PYTHON
}

check_example() { # EXAMPLE MLTC-OPTION...
  local from=$PWD
  build_both "$@"
  train cpu c
  train gpu g # everything watched: races, bounds, alignment
  compare_losses g.jsonl c.jsonl
  MLTC_STANDIN_SEED=7 MLTC_STANDIN_FAST=1 train gpu h
  same g.st h.st "checkpoints of two runs of $1"
  same g.jsonl h.jsonl "metrics of two runs of $1"
  MLTC_STANDIN_FAST=1 train gpu n --no-cuda-graph
  same g.st n.st "checkpoints of $1 with and without a CUDA graph"
  cd "$from" || fail "no folder $from"
}

check_example mnist_mlp
check_example digits_mlp
check_example char_gpt -D B=2 -D T=24 -D C=32 -D L=2

# CPU to GPU and back: stopped after some steps on one, ended on the other.
cd mnist_mlp || fail "no folder mnist_mlp"
MLTC_STANDIN_KERNELS=$(emulate kept) MLTC_STANDIN_FAST=1
export MLTC_STANDIN_KERNELS MLTC_STANDIN_FAST
sed -i 's/steps = 20/steps = 8/' model.graph
"$mltc" model.graph -o first_cpu
"$mltc" model.graph --target=cuda:sm_80 -o first_gpu
train first_cpu half
cp half.st on_gpu.st
train gpu on_gpu --resume
compare_tail() { # FILE FILE: the last losses agree
  python3 - "$1" "$2" <<'PYTHON' || fail "a run that changed its target ends elsewhere"
import json
import sys

a, b = ([json.loads(line)["loss"] for line in open(path)][-1] for path in sys.argv[1:3])
sys.exit(not abs(a - b) <= 1e-5 * abs(b))
PYTHON
}
compare_tail on_gpu.jsonl c.jsonl
train first_gpu half_gpu
cp half_gpu.st on_cpu.st
train cpu on_cpu --resume
compare_tail on_cpu.jsonl c.jsonl
./gpu check >check.txt 2>&1 || {
  cat check.txt
  fail "check on the stand-in"
}
