#!/usr/bin/env bash
# A short training run under valgrind: no invalid access, no use of unset memory, nothing lost. With two
# threads, and helgrind and DRD are not asked: the barriers are their own and unknown to them.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
need_plain_build
command -v valgrind >/dev/null || skip "no valgrind"
[[ $(grep -m1 '^flags' /proc/cpuinfo) == *avx2* ]] || skip "no AVX2 here"

# valgrind 3.19 knows no AVX-512.
"$mltc" -O1 --target=cpu:x86-64-v3 "$root/examples/digits_mlp.graph" -D H=24 -o trainer
run() {
  valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite \
    ./trainer --threads=2 --quiet --save=a.safetensors "$@" >out.txt 2>err.txt && return
  cat err.txt
  fail "valgrind: $*"
}
run train --epochs=1 --metrics=m.jsonl --profile=p.json
run train --epochs=2 --resume
run eval --resume=a.safetensors
run predict --resume=a.safetensors --out=p
run eval --weights=a.safetensors
run train --weights=a.safetensors --epochs=1 --save=b.safetensors
