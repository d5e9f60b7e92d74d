#!/usr/bin/env bash
# examples/gan.graph: two networks in one program, each with a loss of its own, trained in turn within a
# step. The generator's points come to lie as those of the data do: in four clouds of about a quarter each,
# of their deviation. The same bits for any number of threads, with and without a break.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
need_plain_build
command -v python3 >python.txt || skip "no python3"

python3 "$root/examples/data/clouds.py" points
"$mltc" -O1 "$root/examples/gan.graph" -o gan
for threads in 1 3; do
  ./gan --data-dir=points --no-times --quiet --threads=$threads --save=$threads.st --metrics=$threads.jsonl
done
same 1.jsonl 3.jsonl "metrics of 1 and 3 threads"
same 1.st 3.st "checkpoints of 1 and 3 threads"
./gan --data-dir=points --quiet --steps=1234 --save=part.st
./gan --data-dir=points --quiet --resume=part.st --save=part.st --steps=3000
same part.st 1.st "a run that was broken off and resumed, and a whole one,"
grep -q '"d_loss":[0-9.]*,"g_loss":[0-9.]*,"told_apart":' 1.jsonl || fail "metrics name no losses"

# --- kernels and gradients of both losses, also where matmuls multiply bf16
"$mltc" --precision=bf16 -D B=16 -D H=12 "$root/examples/gan.graph" -O1 -o narrow
./narrow check >check.txt || {
  grep -A1 FAILED check.txt
  fail "check with bf16"
}

# --- what it has learned
./gan --data-dir=points --quiet --steps=0 --save=untrained.st
./gan predict --data-dir=points --resume=1.st --out=made >said.txt
cat >judge.py <<'PYTHON'
import struct
import sys

with open(sys.argv[1], "rb") as f:
    data = f.read()
assert b"'descr': '<f4'" in data[:128] and b"(4096, 2,)" in data[:128], data[:128]
numbers = struct.unpack(f"<{(len(data) - 128) // 4}f", data[128:])
points = list(zip(numbers[::2], numbers[1::2]))[:128]  # a batch: each has the same noise
near = {}
for x, y in points:
    near.setdefault((x > 0, y > 0), []).append((abs(x) - 1, abs(y) - 1))
shares = sorted(len(p) / len(points) for p in near.values())
apart = [d for cloud in near.values() for p in cloud for d in p]
mean, deviation = sum(apart) / len(apart), (sum(d * d for d in apart) / len(apart)) ** 0.5
print(f"shares {shares}, from the corners on average {mean:.3f}, deviation {deviation:.3f}")
sys.exit(not (len(shares) == 4 and shares[0] > 0.1 and abs(mean) < 0.1 and deviation < 0.25))
PYTHON
python3 judge.py made-point.npy || fail "the generator has not learned the clouds"
./gan predict --data-dir=points --resume=untrained.st --out=untrained >said.txt
! python3 judge.py untrained-point.npy >said.txt || fail "a generator that has learned nothing passes"
