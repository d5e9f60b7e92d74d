#!/usr/bin/env bash
# What training does to images, in a compiled program: a crop is a shifted image with zeros around it, a
# flip is the image or its mirror, each sample for itself and each way as often as the others; jitter
# keeps to its range; a cut is a square of zeros with its middle anywhere; normalise has a number for each channel. Other draws in each step, the same bits in
# each run and for any number of threads, nothing in evaluation.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
need_plain_build
command -v python3 >python.txt || skip "no python3"

cat >augment.graph <<'GRAPH'
let B = 600
flag steps = 1
model augment(image: f32[B,6,5,2]) {
  param w: f[1] = ones
  state crop: f32[B,6,5,2] = 0
  state part: f32[B,3,4,2] = 0
  state flip: f32[B,6,5,2] = 0
  state bright: f32[B,6,5,2] = 0
  state contrast: f32[B,6,5,2] = 0
  state normal: f32[B,6,5,2] = 0
  state cut: f32[B,6,5,2] = 0
  a = random_crop(image, padding=[2, 1])
  b = random_crop(image, padding=1, size=[3, 4])
  c = random_flip(image)
  d = jitter(image, brightness=0.3)
  e = jitter(image, contrast=0.5)
  f = normalise(image, [10, 20], [2, 5])
  g = cutout(image, 3)
  crop <- a
  part <- b
  flip <- c
  bright <- d
  contrast <- e
  normal <- f
  cut <- g
  loss mean(w * image)
  metric changed = sum(abs(a - image)) + sum(abs(c - image)) + sum(abs(d - image)) + sum(abs(e - image)) + sum(abs(g - image))
  metric middle = sum(abs(b - image[:, 1:4, 0:4, :]))   # of 8 by 7 places the 3 by 4 from (2, 1)
}
data { train = npy("image.npy"), test = npy("image.npy") }
optim { sgd(0.0) }
train { steps = steps, shuffle = false, seed = 3, eval = test every epoch, log every 1 }
GRAPH

cat >look.py <<'PYTHON'
import json, math, struct, sys
from collections import Counter

N, H, W, C = 600, 6, 5, 2
with open(sys.argv[1], "rb") as f:
    size = struct.unpack("<Q", f.read(8))[0]
    head, body = json.loads(f.read(size)), f.read()


def read(name):
    lo, hi = head[name]["data_offsets"]
    return struct.unpack(f"<{(hi - lo) // 4}f", body[lo:hi])


def image(n, i, j, c):
    inside = 0 <= i < H and 0 <= j < W
    return float(((n * H + i) * W + j) * C + c + 1) if inside else 0.0


def ways(name, h, w, starts, column=lambda j, way: j + way):
    """How often each way explains a sample; exactly one must."""
    x, count = read(name), Counter()
    for n in range(N):
        got = x[n * h * w * C:(n + 1) * h * w * C]
        fits = [(top, way) for top, way in starts
                if got == tuple(image(n, top + i, column(j, way), c)
                                for i in range(h) for j in range(w) for c in range(C))]
        assert len(fits) == 1, (name, n, fits)
        count[fits[0]] += 1
    return count


def middles(name):
    """How often each place is the middle of the square that is 0."""
    x, count = read(name), Counter()
    for n in range(N):
        got = x[n * H * W * C:(n + 1) * H * W * C]
        fits = [(i, j) for i in range(H) for j in range(W)
                if got == tuple(0.0 if abs(p - i) <= 1 and abs(q - j) <= 1 else image(n, p, q, c)
                                for p in range(H) for q in range(W) for c in range(C))]
        assert len(fits) == 1, (name, n, fits)
        count[fits[0]] += 1
    return count


def even(name, count, kinds):
    """Pearson's statistic: beyond mean + 5 deviations one time in 10^5."""
    want = N / kinds
    chi = sum((count[k] - want)**2 for k in count) / want + (kinds - len(count)) * want
    print(f"{name}: {len(count)} of {kinds} ways, chi2 {chi:.1f}")
    assert len(count) == kinds and chi < kinds - 1 + 5 * math.sqrt(2 * (kinds - 1)), count


def factors(name, low, high, centre):
    """The number of each sample, from every element of it; spread over the whole range."""
    x, found = read(name), []
    for n in range(N):
        own = [image(n, i, j, c) for i in range(H) for j in range(W) for c in range(C)]
        middle = sum(own) / len(own) if centre else 0
        size = H * W * C
        all_of_it = [(got - middle) / (was - middle) for got, was in zip(x[n * size:(n + 1) * size], own)]
        # rounding of f32, relative to the distance from the middle
        assert max(all_of_it) - min(all_of_it) < 4e-7 * (own[-1] / 0.5 if centre else 1), (name, n)
        found.append(all_of_it[0])
    mean = sum(found) / N
    print(f"{name}: {min(found):.4f} to {max(found):.4f}, mean {mean:.4f}")
    edge = 0.02 * (high - low)
    assert low - 1e-2 * edge <= min(found) < low + edge and high - edge < max(found) <= high + 1e-2 * edge
    assert abs(mean - (low + high) / 2) < 5 * (high - low) / math.sqrt(12 * N)


even("crop", ways("crop", H, W, [(i, j) for i in range(-2, 3) for j in range(-1, 2)]), 15)
even("part", ways("part", 3, 4, [(i, j) for i in range(-1, 5) for j in range(-1, 3)]), 24)
even("flip", ways("flip", H, W, [(0, 0), (0, 1)], lambda j, way: W - 1 - j if way else j), 2)
even("cut", middles("cut"), 30)
factors("bright", 0.7, 1.3, False)
factors("contrast", 0.5, 1.5, True)
for k, v in enumerate(read("normal")):
    want = (k + 1 - 10) / 2 if k % 2 == 0 else (k + 1 - 20) / 5
    assert abs(v - want) <= 1e-6 * abs(want), k
PYTHON

PYTHONPATH="$root/examples/data" python3 - <<'PYTHON'
from npy import write_npy
# Every element is another number, and none is 0.
write_npy("image.npy", "<f4", (600, 6, 5, 2), range(1, 600 * 6 * 5 * 2 + 1))
PYTHON
"$mltc" -O1 augment.graph -o augment
for run in 1 3; do
  ./augment --quiet --no-times --threads=$run --metrics=m$run.jsonl --save=s$run.safetensors
done
same s1.safetensors s3.safetensors "states of 1 and 3 threads"
same m1.jsonl m3.jsonl "metrics of 1 and 3 threads"
./augment --quiet --steps=2 --save=second.safetensors
cmp -s s1.safetensors second.safetensors && fail "the second step draws what the first has drawn"
python3 look.py s1.safetensors
python3 look.py second.safetensors
python3 - <<'PYTHON'
import json
rows = [json.loads(line) for line in open("m1.jsonl", encoding="utf-8")]
seen = [row for row in rows if "eval" in row]
assert seen and all(row["changed"] == 0 and row["middle"] == 0 for row in seen), seen
assert all(row["changed"] > 0 for row in rows if "changed" in row and "eval" not in row), rows
PYTHON
echo "augmentation: as it should be"
