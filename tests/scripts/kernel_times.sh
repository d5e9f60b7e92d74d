#!/usr/bin/env bash
# --kernel-times on the CPU: each kernel of the plan is in the file, as often as it runs; the threads' time is
# accounted for; results stay the same bits. (tests/runtime/test_gpu.c has the GPU's.)
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
cp -r "$root/examples/digits_mlp.graph" "$root/examples/data" .
"$mltc" digits_mlp.graph -O1 -o digits
"$mltc" digits_mlp.graph -O1 --emit=plan.json -o plan.json
for threads in 1 2 3; do
  ./digits --quiet --epochs=1 --threads=$threads --save=without.st
  ./digits --quiet --epochs=1 --threads=$threads --save=with.st --kernel-times=times.json --metrics=m.jsonl --log-every=1
  same without.st with.st "checkpoints without and with --kernel-times, $threads threads,"
  python3 - $threads <<'PY'
import json
import sys

times, threads = json.load(open("times.json")), int(sys.argv[1])
steps = sum("eval" not in json.loads(line) for line in open("m.jsonl"))
plan = {f["name"]: f["kernels"] for f in json.load(open("plan.json"))["functions"]}
assert times["threads"] == threads and times["device"] == "cpu", times
names = [f["name"] for f in times["functions"]]
assert names == ["step", "eval"], names # init runs once, which is not counted
for f in times["functions"]:
    runs, kernels = f["runs"], f["kernels"]
    assert f["name"] != "step" or runs == steps - 1, (runs, steps)
    calls = 0
    for k in kernels:
        assert k["launches"] % runs == 0, k
        calls += k["launches"] // runs
        assert 0 < k["total_us"] <= k["slowest_us"] * 1.001 + 0.002 <= k["total_us"] * 1.002 * threads + 0.004, k
        assert abs(k["mean_us"] * k["launches"] - k["total_us"]) < 0.001 * k["launches"] + 0.002, k
        assert k["waiting_us"] >= 0, k
    if f["name"] == "step": # several kernels may be one launch, but not of products
        products = sum(k["family"] == "matmul" for k in plan["step"])
        timed = sum(k["launches"] for k in kernels if k["name"].startswith("matmul_"))
        assert timed == products * runs, (timed, products)
        assert calls <= len(plan["step"]), (calls, len(plan["step"]))
    known = sum(k["total_us"] + k["waiting_us"] for k in kernels)
    assert abs(known + f["ending_us"] - f["total_us"]) < 0.001 * f["total_us"] + 1, (known, f["ending_us"], f["total_us"])
    flops = {k["name"]: k["flops"] for k in kernels}
    assert all(v > 0 for n, v in flops.items() if n.startswith("matmul_")), flops
PY
done

code=0
./digits --quiet --no-save --kernel-times=none/t.json 2>said.txt || code=$?
[ $code = 1 ] || fail "a file that cannot be written: exit code $code"
grep -q "cannot write the kernels' times 'none/t.json'" said.txt || fail "$(cat said.txt)"
# A run that is refused leaves the file as it was, or absent; a pipe that nobody reads does not hold it up.
echo before >old.json
ln -s behind.json link.json
for file in old.json new.json link.json; do
  code=0
  ./digits --quiet --epochs=1 --save=/dev/null --kernel-times=$file 2>said.txt || code=$?
  [ $code = 1 ] || fail "a checkpoint that cannot be written: exit code $code"
done
[ "$(cat old.json)" = before ] || fail "a refused run has emptied the file of an earlier one"
[ ! -e new.json ] || fail "a refused run leaves an empty file"
[[ -L link.json && ! -e behind.json ]] || fail "a refused run does not leave a link as it was"
mkfifo pipe
code=0
timeout -k 1 60 ./digits --quiet --no-save --epochs=1 --kernel-times=pipe 2>said.txt || code=$?
[ $code = 1 ] || fail "a pipe that nobody reads: exit code $code"
code=0
timeout -k 1 60 ./digits --quiet --no-save --epochs=1 --profile=pipe 2>said.txt || code=$?
[ $code = 1 ] || fail "a profile into a pipe that nobody reads: exit code $code"
exec 9<>pipe
./digits --quiet --no-save --epochs=1 --kernel-times=pipe || fail "a pipe that somebody reads"
[ "$(timeout 5 head -c 13 <&9)" = '{"version":1,' ] || fail "nothing comes through the pipe"
exec 9>&-
code=0
./digits --quiet --no-save --metrics=t.json --kernel-times=./t.json 2>said.txt || code=$?
[ $code = 2 ] || fail "one file for metrics and times: exit code $code"
