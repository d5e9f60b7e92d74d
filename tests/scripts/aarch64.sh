#!/usr/bin/env bash
# --target=cpu:aarch64 where mltc has a runtime for that machine: a whole program, of one file, that computes what this
# machine's computes. Where it has none: an object, or an error that says how to get one.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
need_plain_build

cp -r "$root/examples/data" "$root"/examples/*.graph .
mkdir -p other/bin other/lib/mltc
cp "$mltc" other/bin/mltc
cp "$build"/lib/mltc/{mlrt.h,libmlrt.a,libz.a} other/lib/mltc
if other/bin/mltc digits_mlp.graph -O1 --target=cpu:aarch64 -o none 2>err.txt; then
  fail "a program without a runtime"
fi
grep -q 'has no runtime for that machine .*-o none\.o' err.txt || {
  cat err.txt
  fail "no help where there is no runtime"
}
[ ! -e none ] || fail "something was written"
if other/bin/mltc digits_mlp.graph -O1 --target=cpu:aarch64 2>err.txt; then
  [ -e digits_mlp.o ] || fail "no object by default where there is no runtime"
elif ! grep -q lld err.txt; then
  cat err.txt
  fail "no object where there is no runtime"
fi

[ -e "$build/lib/mltc/aarch64-linux-gnu/mlrt.o" ] || skip "no runtime for aarch64 (scripts/install-deps aarch64)"
"$mltc" digits_mlp.graph --target=cpu:aarch64
[ "$(od -An -j18 -N2 -tu2 digits_mlp | tr -d ' ')" = 183 ] || fail "no program for aarch64"
[ "$(od -An -j16 -N2 -tu2 digits_mlp | tr -d ' ')" = 2 ] || fail "a program that is loaded anywhere"
[ "$(stat -c %s digits_mlp)" -lt 2000000 ] || fail "more than 2 MB"
qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64) || skip "no qemu-aarch64 to run it"

on_arm() { # PROGRAM ARGUMENT...
  timeout 280 "$qemu" "$@"
}
check() { # PROGRAM
  on_arm "./$1" check >"$1.txt" || {
    grep -v ' ok$' "$1.txt"
    fail "check of $1"
  }
  ! grep -q 'no plain version' "$1.txt" || fail "$1 has no plain versions to be compared with"
}

check digits_mlp
on_arm ./digits_mlp info >info.txt
grep -q '^target *cpu:aarch64' info.txt || fail "info does not name the target"
"$mltc" digits_mlp.graph -O1 -o here
on_arm ./digits_mlp --threads=1 --epochs=1 --metrics=arm.jsonl --no-times --save=arm.safetensors >out.txt
./here --epochs=1 --metrics=here.jsonl --no-times --no-save >out.txt
python3 - arm.jsonl here.jsonl <<'END' || fail "losses are not those of this machine"
import json, sys
arm, here = ([json.loads(line) for line in open(name)] for name in sys.argv[1:])
losses = [[row["loss"] for row in rows if "loss" in row] for rows in (arm, here)]
if not losses[0] or len(losses[0]) != len(losses[1]) or any(abs(x - y) > 1e-4 * y for x, y in zip(*losses)):
    sys.exit(f"{losses[0]}, and here {losses[1]}")
END
# A checkpoint knows nothing of the machine.
./here eval --resume=arm.safetensors >out.txt || {
  cat out.txt
  fail "eval of its checkpoint"
}
on_arm ./digits_mlp --threads=1 --resume=arm.safetensors --epochs=2 --no-save >out.txt || fail "it does not go on"

# Gathers, and numbers of 16 bits.
check_graph() { # GRAPH OPTION...
  "$mltc" "$1.graph" -O1 --target=cpu:aarch64 "${@:2}"
  check "$1"
}
check_graph gcn
check_graph digits_mlp --precision=bf16
if [ -n "${MLTC_SLOW:-}" ]; then
  for graph in dlrm gan heat mnist_cnn; do
    check_graph "$graph"
  done
  check_graph mnist_mlp --precision=bf16
fi
