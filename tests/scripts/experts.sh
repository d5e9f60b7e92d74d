#!/usr/bin/env bash
# examples/moe_gpt.graph, small, on tinyshakespeare: it learns, and its experts get nearly equal shares, which
# they do not without the balance loss; the same bits for any number of threads. The kernels for GPUs, on
# the emulator, give the CPU's losses: choices and places are the same. Slow: also of one choice, with few places.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
source "$root/tests/scripts/lib/gpu.bash"
need_plain_build
need_data
command -v python3 >python.txt || skip "no python3"

sed 's/^train {.*/train { steps = steps, seed = 1337 }/' "$root/examples/moe_gpt.graph" >with.graph
sed 's/+ 0\.01 \* balances//' with.graph >without.graph
! cmp -s with.graph without.graph || fail "the example's loss has no '+ 0.01 * balances'"
for name in with without; do
  "$mltc" -O1 -D B=8 -D T=32 -D C=32 -D L=2 $name.graph -o $name
  for run in 1 3; do
    ./$name --data-dir="$data" --quiet --no-times --no-save --steps=200 --lr=3e-3 --log-every=20 --threads=$run \
      --metrics=$name.$run
  done
  same $name.1 $name.3 "metrics of 1 and 3 threads"
  tail -n 1 $name.1 | sed 's/.*"text":\([0-9.]*\),"balance":\([0-9.]*\).*/\1 \2/' >$name.last
done
echo "loss and balance $(cat with.last) with the balance loss, $(cat without.last) without"
awk '{text[++n] = $1; balance[n] = $2}
  END {exit !(text[1] < 2.8 && balance[1] < 1.1 && balance[2] > 1.25)}' with.last without.last || fail "numbers"

[ -e "$driver" ] || exit 0 # no stand-in driver in this build
export libraries_as=-O1
short moe_gpt
beside() { # NAME MLTC-OPTION...
  local sizes=(-O0 -D B=2 -D T=24 -D C=32 -D L=1 "${@:2}")
  "$mltc" "${sizes[@]}" "$1.graph" -o "$1-cpu"
  "$mltc" "${sizes[@]}" "$1.graph" --target=cuda:sm_80 --keep="$1-kept" -o "$1-gpu" 2>err.txt || {
    grep -q NVRTC err.txt && exit 0 # nothing compiles for GPUs here
    fail "$1: $(cat err.txt)"
  }
  beside_cpu "$1" 1e-5
}
beside moe_gpt
[ -n "${MLTC_SLOW:-}" ] || exit 0
sed 's/capacity=1.25/capacity=0.7/' moe_gpt.graph >few.graph
beside few -D K=1 -D E=5
