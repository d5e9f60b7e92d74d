#!/usr/bin/env bash
# ONNX's operator tests (Debian's libonnx-testdata): what tests/onnx can say in IR passes in the interpreter
# and in compiled kernels, and tests/onnx/table.md says what passed, and why the rest is left out. With
# MLTC_SLOW kernels are optimised, and there are CUDA kernels, too, on the emulator.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
need_plain_build
command -v python3 >python.txt || skip "no python3"
[ -d /usr/share/libonnx-testdata/data/node ] || skip "no ONNX tests; scripts/install-deps test installs them"

one() { # TARGET FOLDER
  mkdir "$2"
  PYTHONDONTWRITEBYTECODE=1 python3 "$root/tests/onnx/run.py" "$build/bin/onnx-run-ir" "$1" "$2" "$2/table.md" ||
    fail "ONNX tests on $1"
  diff "$root/tests/onnx/table.md" "$2/table.md" || fail "tests/onnx/table.md is another one; tests/onnx/run.py says how to write it"
}

one cpu on_cpu
[ -z "${MLTC_SLOW:-}" ] || one cuda:sm_80 on_gpu
