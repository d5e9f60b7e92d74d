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

cat >results/torch-x.json <<'JSON'
{"schema": "mltc-bench-torch", "version": 1, "torch": "9.9", "threads": 2, "repeat": 3, "cpu": "Some(R) Chip(TM) Processor",
 "rows": [{"benchmark": "mlp_adam", "what": "time per step", "ours": 1.5, "peer": 3.0, "bar": 1.0,
           "unit": "ms", "pass": false, "beside": {"JAX": 6.0}},
          {"benchmark": "gpt2", "what": "time per step", "ours": 1.5, "peer": 2.0, "bar": 2.0,
           "unit": "ms", "pass": true, "beside": {"PyTorch compiled": 1.0}}]}
JSON
cat >results/zoo-x.json <<'JSON'
{"schema": "mltc-bench-zoo", "version": 1, "torch": "9.9", "threads": 2, "repeat": 3, "cpu": "Some(R) Chip(TM) Processor",
 "rows": [{"network": "vgg", "what": "step", "ours": 1.5, "peer": 3.0, "unit": "ms"},
          {"network": "vgg", "what": "evaluation", "ours": 1.0, "peer": 4.0, "unit": "ms"},
          {"network": "mixer", "what": "step", "ours": 3.0, "peer": 4.0, "unit": "ms"}]}
JSON
cat >results/torch_peak.json <<'JSON'
{"schema": "mltc-bench-torch-peak", "version": 1, "torch": ["9.9"], "rows": [
 {"network": "gpt2", "ours": {"none": 66, "free": 63, "selective": 40, "sqrt": 30, "all": 30}, "peer": 100, "bar": 0.6, "met": false, "least": 55, "auto": {"total": 60, "time": 1.25, "met": true}, "tenth": {"total": 58, "time": 1.1}},
 {"network": "unet", "ours": {"none": 59, "free": 59, "selective": 40, "sqrt": 30, "all": 30}, "peer": 100, "bar": 0.6, "met": true, "least": 20, "auto": {"total": 59, "time": 1.0, "met": true}, "tenth": {"total": 45, "time": 1.1}}]}
JSON
cat >results/gemm.json <<'JSON'
{"peak_gflops": [100.0, 200.0], "cases": [
 {"name": "512 NN", "m": 512, "n": 512, "k": 512, "gflops": [90.0, 170.0], "of_peak": [0.9, 0.85]},
 {"name": "512 NT", "m": 512, "n": 512, "k": 512, "gflops": [85.0, 158.0], "of_peak": [0.85, 0.79]}]}
JSON
cat >results/gpu-Some-Chip.json <<'JSON'
{"schema": "mltc-bench-gpu", "version": 2, "device": "Some Chip", "driver": "9.9", "date": "x", "rows": [
 {"program": "p", "what": "w", "passed": true}, {"program": "p", "what": "x", "passed": false, "failure": "f"},
 {"program": "p", "what": "y", "passed": null, "not_done": "no time left"},
 {"program": "gpt2", "what": "time of a step beside peers", "passed": true, "step_us": 3.0, "met": false,
  "missing": {"JAX jit": "no JAX"},
  "peers": {"PyTorch eager": {"step_us": 2.0, "ratio": 1.5}, "PyTorch compiled": {"step_us": 6.0, "ratio": 0.5}}},
 {"program": "matmuls", "what": "matmuls beside cuBLAS", "passed": true, "precision": "f32", "products": {
  "a": {"us": 3.0, "cuBLAS": {"us": 2.0, "ratio": 1.5}},
  "b": {"us": 5.0, "cuBLAS": {"us": 2.0, "ratio": 2.5}}}}]}
JSON
cat >results/pack.json <<'JSON'
{"schema": "mltc-bench-pack", "version": 1, "rows": [
 {"kind": "public", "name": "A", "ratio": 1.0, "cpu_s": 1.0, "bar": 1.0, "bar_s": 5.0, "met": true},
 {"kind": "20000", "name": "gpt 1", "ratio": 1.001, "cpu_s": 4.0, "bar": 1.005, "bar_s": 5.0, "met": true},
 {"kind": "20000", "name": "gpt 2", "ratio": 1.008, "cpu_s": 2.0, "bar": 1.005, "bar_s": 5.0, "met": false}]}
JSON
"$root/scripts/bench-table" --results=results --print >some.txt
for row in 'A | 1.0000 | 1.0000 | 20% | met' '20,000 buffers, worst of 2 sets | 1.0080 | 1.0050 | 80% | missed' \
   'Some Chip, driver 9.9 | mltc | ' 'checks passed | 3 of 4, 1 not done | missed' \
  'gpt2, a step: of PyTorch eager | 1.500 | missed' 'gpt2, a step: of PyTorch compiled | 0.500 | ' \
  'gpt2, a step: of JAX jit | not measured | ' 'mnist_mlp, a step: of PyTorch eager | not measured | ' \
  'matmuls of GPT-2 in f32, time: of cuBLAS | 2.50, worst of 2: 2.50 | '; do
  grep -qxF "| $row |" some.txt || fail "no '$row': $(cat some.txt)"
done
grep -qxF "| mlp_adam: time per step | 0.33 | 0.50, missed |" some.txt || fail "$(cat some.txt)"
for row in 'a step on Some Chip, of the time of | PyTorch | JAX | PyTorch compiled' 'mlp_adam | 0.50 | 0.25 | not measured' \
  'gpt2 | 0.75 | not measured | 1.50' \
  "other networks, of PyTorch's time | Some Chip: a step | Some Chip: evaluation" 'mixer | 0.75 | not measured' \
  'vgg | 0.50 | 0.25'; do
  grep -qxF "| $row |" some.txt || fail "no '$row': $(cat some.txt)"
done
grep -qxF '| gpt2 | 0.66 | 0.63 | 0.40 | 0.30 | 0.58 | 0.55 | 1.25 (predicted) | 0.60 | missed |' some.txt || fail "$(cat some.txt)"
grep -qxF '| unet | 0.59 | 0.59 | 0.40 | 0.30 | 0.45 | 0.20 | 1.00 | 0.60 | met |' some.txt || fail "$(cat some.txt)"
grep -qxF '| 512, worst of 2 layouts | 85% | 79% | 80% | missed |' some.txt ||
  fail "$(cat some.txt)"

cp "$root/README.md" .
code=0
"$root/scripts/bench-table" --results=results --readme=README.md --check 2>said.txt || code=$?
[ $code = 1 ] || fail "--check does not see a difference"
"$root/scripts/bench-table" --results=results --readme=README.md
"$root/scripts/bench-table" --results=results --readme=README.md --check || fail "written, but not equal"
