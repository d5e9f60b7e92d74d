#!/usr/bin/env bash
# Equal input, equal output: every kind of --emit, and the trainers themselves, come out byte for byte
# the same, wherever the compiler runs, whatever surrounds it, and however many processors it finds.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
need_plain_build

cp -r "$root/examples/data" "$root"/examples/*.graph .
kinds=(ast ir kernels plan plan.json c llvm asm dot resources report)

emit_all() { # FOLDER
  local name kind
  for name in digits_mlp mnist_mlp char_gpt; do
    for kind in "${kinds[@]}"; do
      case $name-$kind in mnist_mlp-llvm | char_gpt-llvm | char_gpt-asm) continue ;; esac # seconds each
      "$mltc" $name.graph --emit="$kind" -O1 -o "$1/$name.$kind"
      [ -s "$1/$name.$kind" ] || fail "--emit=$kind of $name is empty"
    done
  done
  "$mltc" digits_mlp.graph -O1 -o "$1/digits"
  "$mltc" mnist_mlp.graph -D H=48 -o "$1/mnist"
}

mkdir first second tmp
emit_all first
export TMPDIR=$scratch/tmp MALLOC_PERTURB_=85 COLUMNS=40 TZ=Asia/Kathmandu EXTRA=1
if command -v taskset >/dev/null; then
  mltc_real=$mltc
  printf '#!/bin/sh\nexec taskset -c %s %q "$@"\n' "$(taskset -pc $$ | sed 's/.*: *\([0-9]*\).*/\1/')" "$mltc_real" >mltc
  chmod +x mltc
  mltc=./mltc
fi
emit_all second
for file in first/*; do
  same "$file" "second/${file#*/}" "two outputs for equal input"
done
[ -z "$(ls tmp)" ] || fail "mltc leaves files in \$TMPDIR: $(ls tmp)"
python3 -c 'import json, sys; [json.load(open(f)) for f in sys.argv[1:]]' first/*.plan.json
