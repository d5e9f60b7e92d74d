#!/usr/bin/env bash
# The README's figures are those of tests/bench/results: nobody types them. What was not measured says
# so, and a bar that was missed is called missed.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
command -v python3 >python.txt || skip "no python3"
export PYTHONDONTWRITEBYTECODE=1

"$root/scripts/bench-table" --check
mkdir results
"$root/scripts/bench-table" --results=results --print >none.txt
[ "$(grep -c 'not measured' none.txt)" -ge 10 ] || fail "without results not all is 'not measured'"
! grep -qE '\| (met|missed) \|' none.txt || fail "a verdict without a result"

cat >results/torch.json <<'JSON'
{"schema": "mltc-bench-torch", "version": 1, "torch": "9.9", "threads": 2, "repeat": 3, "cpu": "x",
 "rows": [{"benchmark": "mlp_adam", "what": "time per step", "ours": 1.5, "peer": 3.0, "bar": 1.0,
           "unit": "ms", "pass": false}]}
JSON
cat >results/gemm.json <<'JSON'
{"peak_gflops": [100.0, 200.0], "cases": [
 {"name": "512 NN", "m": 512, "n": 512, "k": 512, "gflops": [90.0, 170.0], "of_peak": [0.9, 0.85]},
 {"name": "512 NT", "m": 512, "n": 512, "k": 512, "gflops": [85.0, 158.0], "of_peak": [0.85, 0.79]}]}
JSON
cat >results/gpu-Some-Chip.json <<'JSON'
{"schema": "mltc-bench-gpu", "version": 1, "device": "Some Chip", "driver": "9.9", "date": "x", "rows": [
 {"program": "p", "what": "w", "passed": true}, {"program": "p", "what": "x", "passed": false, "failure": "f"}]}
JSON
"$root/scripts/bench-table" --results=results --print >some.txt
grep -qxF '| Some Chip, driver 9.9 | 1 of 2 | missed |' some.txt || fail "$(cat some.txt)"
grep -qxF "| mlp_adam: time per step | 0.50 of PyTorch's | 0.33 | missed |" some.txt || fail "$(cat some.txt)"
grep -qxF '| 512, worst of 2 layouts | 85% | 79% | 80% | missed |' some.txt ||
  fail "$(cat some.txt)"

cp "$root/README.md" .
code=0
"$root/scripts/bench-table" --results=results --readme=README.md --check 2>said.txt || code=$?
[ $code = 1 ] || fail "--check does not see a difference"
"$root/scripts/bench-table" --results=results --readme=README.md
"$root/scripts/bench-table" --results=results --readme=README.md --check || fail "written, but not equal"
