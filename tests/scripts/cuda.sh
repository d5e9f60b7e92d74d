#!/usr/bin/env bash
# scripts/check-gpu, rehearsed without a GPU: kernels run on the emulator, the driver is the stand-in
# (tests/standin), networks are small. Losses are the CPU target's, bits are the same in every run and
# in every order of work that streams and events allow, and either target resumes from the other's
# file. Before that, programs run with every access watched. Then what may go wrong on the day: a
# program that is missing, crashes or hangs, wrong results, faults that the sanitizer finds, peers that
# are not there. In the suite the examples and some random graphs; all of it with MLTC_SLOW.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
source "$root/tests/scripts/lib/gpu.bash"
need_plain_build
need_data
command -v python3 >python.txt || skip "no python3"
[ -e "$driver" ] || skip "no stand-in driver in this build"
[ -x "$build/tests/bench/gpu/wrapper_results" ] || skip "no tools of check-gpu in this build"
export MLTC=$mltc MLTC_BUILD=$build MLTC_CUDA_TARGET=cuda:sm_80
export MLTC_DATA=$data PYTHONDONTWRITEBYTECODE=1

only=mnist_mlp,random_1_3
[ -z "${MLTC_SLOW:-}" ] || only=
ONLY=$only SMALL=1 "$root/scripts/check-gpu" prepare "$PWD/programs" >prepare.txt 2>&1 || {
  grep -q NVRTC prepare.txt && skip "no NVRTC: $(head -n 2 prepare.txt | tail -n 1)"
  cat prepare.txt
  fail "prepare"
}
rm -r programs/*.ir # what is not needed to run

export libraries_as=-O1 # many runs
# The kernels as libraries for the emulator; NAME.kernels names them for the stand-in.
for kept in programs/*-gpu-kept; do
  libraries "$kept" >"${kept%-gpu-kept}.kernels"
done
[ -n "$only" ] || printf '%s:' "$PWD"/programs/wrappers-kept/*/k.so >programs/wrappers.kernels
export MLTC_CUDA_DRIVER=$driver CUDA_MODULE_LOADING=LAZY # as programs that PyTorch starts find it

# Races, bounds, alignment, read-only buffers, shared memory that nobody wrote.
watched() { # NAME ARGUMENT...
  MLTC_STANDIN_KERNELS=$(cat "programs/$1.kernels") "programs/$1-gpu" "${@:2}" >watched.txt 2>&1 || {
    cat watched.txt
    fail "$1, watched"
  }
}
for name in mnist_mlp ${MLTC_SLOW:+char_gpt digits_mlp gpt2}; do
  watched "$name" train --data-dir=programs/data --check_steps=5 --no-save --quiet
done
watched random_1_3 check

checked() { # WHAT FOLDER LINE OPTION...
  local code=0
  python3 "$root/tests/bench/gpu/check_gpu.py" "$PWD/$2" --out out.json "${@:4}" >run.txt 2>&1 || code=$?
  grep -qE "^$3; written to out.json$" run.txt || {
    cat run.txt
    fail "$1: not '$3'"
  }
  return $code
}
# Wrappers' results can be made; what has been rounded for tensor cores is drawn rounded (all of it runs where
# MLTC_SLOW is set).
if [ -n "$only" ]; then
  ONLY=char_gpt_tf32,wrappers SMALL=1 "$root/scripts/check-gpu" prepare "$PWD/more" >prepare.txt 2>&1 || {
    cat prepare.txt
    fail "prepare wrappers"
  }
  [ -s more/wrappers/wrappers.json ] || fail "no results of wrappers: $(cat prepare.txt)"
  libraries more/char_gpt_tf32-gpu-kept >more.kernels
  MLTC_STANDIN_KERNELS=$(cat more.kernels) MLTC_STANDIN_FAST=1 more/char_gpt_tf32-gpu check >check.txt 2>&1 || {
    cat check.txt
    fail "check in tf32"
  }
fi

export MLTC_STANDIN_FAST=1 MLTC_STANDIN_SEED=7 MLTC_GPU_PEERS=$root/tests/scripts/lib/peers
plain_path=$PATH
export PATH=$root/tests/scripts/lib:$PATH

# --- a part of it
checked "a part" programs "2 of 2 passed, 0 failed, 0 not done" --only mnist_mlp --parts speed ||
  fail "exit code $?"
[ "$(grep -c '^mnist_mlp .* time of ' run.txt)" = 2 ] || fail "not two times: $(cat run.txt)"
for wrong in --only=mnist_mlp,nothing --parts=nothing --peers=nothing; do
  ! python3 "$root/tests/bench/gpu/check_gpu.py" "$PWD/programs" --out no.json "$wrong" >run.txt 2>&1 ||
    fail "$wrong is taken"
  grep -q 'there is no p[a-z]* nothing: there are [a-z]*' run.txt || fail "$wrong: $(cat run.txt)"
done

# Rows of programs that run beside each other lie in the order of the programs; what follows on a failure is tried.
(cd "$root/tests/bench/gpu" && python3 -) <<'PYTHON' >beside.txt || fail "$(cat beside.txt)"
import time

from work import Clock, Failed, Report


def fails():
    raise Failed("as it should")


report, done = Report(Clock(60, 60)), []
report.step("first", "alone", lambda: {"x": 1})
report.beside([[("slow", "a", time.sleep, 0.5), ("slow", "b", done.append, "slow")],
               [("bad", "a", fails), ("bad", "b", done.append, "bad")]], 2)
assert done == ["bad", "slow"], done
rows = [(r["program"], r["what"], r["passed"]) for r in report.rows]
assert rows == [("first", "alone", True), ("slow", "a", True), ("slow", "b", True), ("bad", "a", False),
                ("bad", "b", True)], rows
PYTHON

# --- all is well
checked "on the stand-in" programs "([0-9]+) of \\1 passed, 0 failed, 0 not done" || fail "exit code $?"
[ -n "${MLTC_SLOW:-}" ] || exit 0
python3 - <<'PYTHON'
import json

rows = {(r["program"], r["what"]): r for r in json.load(open("out.json"))["rows"]}
beside = rows["gpt2", "time of a step beside peers"]
assert set(beside["peers"]) == {"PyTorch eager"} and beside["met"], beside
assert beside["peers"]["PyTorch eager"]["ratio"] < 1 and beside["step_us"] > 0, beside
assert beside["missing"]["PyTorch compiled"] == "pretended: out of memory", beside
assert beside["missing"]["JAX jit"] == "JAX: pretended to be missing", beside
product = rows["matmuls", "matmuls beside cuBLAS"]["products"]["d_up_w"]
assert product["us"] >= 2 and product["cuBLAS"]["ratio"] == product["us"] / 2, product
kernels = rows["char_gpt", "time of each kernel"]["kernels"]
assert len(kernels) > 20 and abs(sum(k["share"] for k in kernels) - 1) < 1e-6, kernels
assert all(k["where"].startswith("char_gpt.graph:") for k in kernels if k["where"]), kernels
assert rows["wrappers", "wrappers against the emulator"]["cases"] > 200
assert rows["random_1_3", "kernels against plain references"]["kernels"] > 20
assert rows["digits_mlp", "compute-sanitizer racecheck"]["summary"] == "ERROR SUMMARY: 0 errors"
PYTHON
mkdir results
cp out.json results/gpu-out.json
"$root/scripts/bench-table" --results=results --print >table.txt
grep -q '^| gpt2, a step: of PyTorch eager | 0\.[0-9]* | met |$' table.txt || fail "$(cat table.txt)"

# --- how results of wrappers are compared
(cd "$root/tests/bench/gpu" && python3 -) <<'PYTHON'
import struct

from wrappers import compare


def differ(got, want, ulps, kind="f32"):
    form = "<" + {"f32": "f", "f64": "d", "u32": "I"}[kind]
    pack = [x if isinstance(x, bytes) else struct.pack(form, x) for x in (got, want)]
    return compare(*pack, {"type": kind, "ulps": ulps})[0] is not None


def bits(x):
    return struct.pack("<I", x)


assert not differ(bits(0x3f800004), 1.0, 4) and differ(bits(0x3f800005), 1.0, 4)
assert not differ(bits(0x80000002), bits(0x00000002), 4) and differ(bits(0x80000003), bits(0x00000002), 4)
assert differ(-0.0, 0.0, 0) and not differ(-0.0, 0.0, 1)
assert not differ(bits(0x7fffffff), bits(0xffc00000), 0) and differ(bits(0x7fffffff), 1.0, 4)
assert differ(bits(0x7f800000), bits(0xff800000), 4) and not differ(bits(0x7f7fffff), bits(0x7f800000), 4)
assert differ(1.0000000000000009, 1.0, 3, "f64") and not differ(1.0000000000000009, 1.0, 4, "f64")
assert differ(1, 2, 0, "u32") and not differ(2, 2, 0, "u32")
PYTHON

# --- a folder with less in it
small() { # FOLDER NAME...
  mkdir "$1"
  ln -s "$PWD"/programs/* "$1"
  python3 - "$@" <<'PYTHON'
import json
import os
import sys

path = sys.argv[1] + "/programs.json"
prepared = json.load(open(path))
prepared["programs"] = [p for p in prepared["programs"] if p["name"] in sys.argv[2:]]
os.remove(path)
json.dump(prepared, open(path, "w"))
PYTHON
}

# --- wrong bits of a wrapper; a program that is not there; faults under the sanitizer
small wrong digits_mlp
rm wrong/digits_mlp-cpu wrong/wrappers
cp -rL programs/wrappers wrong
python3 - <<'PYTHON'
import json

plan = json.load(open("wrong/wrappers/wrappers.json"))
at, _ = next(c for c in plan["cases"] if c["kernel"] == "tf32")["after"]
with open("wrong/wrappers/wrappers.bin", "r+b") as f:
    f.seek(at + 4)
    one = f.read(1)[0]
    f.seek(at + 4)
    f.write(bytes([one ^ 1]))
PYTHON
! PRETENDED_FAULT=memcheck checked "faults" wrong "7 of 11 passed, 4 failed, 0 not done" ||
  fail "faults, and exit code 0"
for words in '1 of [0-9]* differ from the emulator' 'tf32: element 1 is .* not ' \
  'digits_mlp-cpu.*cannot be started' 'Invalid __global__ read'; do
  grep -q "$words" run.txt || fail "no '$words': $(cat run.txt)"
  grep -q "$words" out.json || fail "no '$words' in the file"
done

# --- a sanitizer that takes too long says nothing about a program
small sluggish digits_mlp
PRETENDED_SLOW=racecheck checked "a slow sanitizer" sluggish "10 of 11 passed, 0 failed, 1 not done" \
  --command-limit 20 || fail "exit code $?"
grep -q 'racecheck .*not done: racecheck of digits_mlp: not done after 20 s' run.txt || fail "$(cat run.txt)"

# --- a crash, a hang, and no time left
PATH=$plain_path
small hung digits_mlp random_1_3
rm hung/digits_mlp-gpu hung/random_1_3-gpu hung/wrappers.kernels
printf '#!/bin/sh\nkill -SEGV $$\n' >hung/digits_mlp-gpu
printf '#!/bin/sh\nsleep 1000\n' >hung/random_1_3-gpu
chmod +x hung/digits_mlp-gpu hung/random_1_3-gpu
! checked "hangs" hung "0 of 9 passed, 8 failed, 1 not done" --command-limit 2 ||
  fail "a hang, and exit code 0"
for words in 'ended by signal 11' 'random_1_3-gpu check: not done after 2 s' 'not done: it is not there'; do
  grep -q "$words" run.txt || fail "no '$words': $(cat run.txt)"
done
checked "no time at all" hung "0 of 9 passed, 0 failed, 9 not done" --limit 0 || fail "exit code $?"
grep -q 'not done: no time left' run.txt || fail "$(cat run.txt)"
small slow random_1_3
rm slow/random_1_3-gpu slow/wrappers.kernels
ln -s "$PWD/hung/random_1_3-gpu" slow/random_1_3-gpu
! checked "too little time" slow "0 of 3 passed, 1 failed, 2 not done" --limit 6 || fail "exit code 0"
grep -q 'not done: no time left: stopped after' run.txt || fail "$(cat run.txt)"

# --- ended from outside: what was tried until then is in the file
! timeout -s KILL 8 python3 "$root/tests/bench/gpu/check_gpu.py" "$PWD/slow" --out killed.json >run.txt 2>&1 ||
  fail "not ended"
grep -q '"program": "wrappers"' killed.json || fail "nothing is written before the end: $(cat run.txt)"
