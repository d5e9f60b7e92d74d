#!/usr/bin/env bash
# Recomputation in a chain of 100 equal layers, held to bounds by counting: a layer whose output is not
# kept when the backward pass begins runs again at least once. `sqrt` takes about two roots of the layers
# and one more forward pass at most; `auto` is within one layer of the bound, and far below what
# runs one part of parts after the other where memory is tight. The same bits, nested as it is.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
need_plain_build

cat >chain.graph <<'EOT'
let B = 2048
model chain(x: f32[B,32]) {
  repeat i in 100 { x = tanh(linear(x, 32)) }
  loss mean(linear(x, 10) ** 2)
}
data { train = npy("points.npy") }
optim { sgd(0.01) }
train { steps = 2, seed = 0 }
EOT
PYTHONPATH=$root/examples/data python3 -c 'import random
from npy import write_npy
draw = random.Random(1).random
write_npy("points.npy", "<f4", (4096, 32), [draw() for _ in range(4096 * 32)])'

plan() { # NAME OPTION...
  local name=$1
  shift
  "$mltc" chain.graph "$@" --emit=plan.json >"$name.json"
}
budget() { # FACTOR: so many times the temporaries of `sqrt`
  python3 -c "import json
t = json.load(open('sqrt.json'))['totals']
print(t['arena'] - t['temporaries'] + int(t['temporaries'] * $1))"
}
plan none
plan sqrt --checkpoint=sqrt
for factor in 0.3 0.5 1 2 3; do
  plan "auto_$factor" --memory-budget="$(budget $factor)"
done
cat >check.py <<'EOT'
import json
LAYERS, LAYER = 100, 2048 * 32 * 4
def load(name):
    p = json.load(open(name + ".json"))
    step = next(f for f in p["functions"] if f["name"] == "step")
    again = [k["clone_of"] for k in step["kernels"] if k["clone_of"]]
    return p["totals"]["temporaries"], again, step["recomputed"]["time"]
keep_all, _, _ = load("none")
assert keep_all >= LAYERS * LAYER
bytes_, again, sqrt_time = load("sqrt")
assert bytes_ <= 2.2 * LAYERS**0.5 / LAYERS * keep_all, bytes_ / LAYER
assert len(again) == len(set(again)) <= LAYERS, "more than one forward pass"
times = []
for factor in (0.3, 0.5, 1, 2, 3):
    took, again, time = load(f"auto_{factor}")
    assert took <= factor * bytes_, (factor, took / LAYER)
    bound = LAYERS - took // LAYER  # runs of layers
    print(f"{factor:5} of sqrt's temporaries: {took / LAYER:.2f} layers kept, {len(again)} run again "
          f"(at least {bound}), {time:.4f} of the time")
    times.append(time)
    if factor >= 1:
        assert bound <= len(again) <= bound + 1, (factor, len(again), bound)
    if factor == 1:
        assert time <= sqrt_time, (time, sqrt_time)
assert times == sorted(times, reverse=True), times
# Half the memory of `sqrt`: no layer more than twice, and half of the layers once.
assert len(load("auto_0.5")[1]) <= 1.6 * LAYERS
assert len(load("auto_0.3")[1]) <= 5 * LAYERS
EOT
python3 check.py || fail "bounds of the chain"

run() { # NAME OPTION...
  local name=$1
  shift
  "$mltc" chain.graph -O1 "$@" -o trainer
  ./trainer --quiet --no-times --log-every=1 --save="$name.safetensors" --metrics="$name.jsonl"
}
run all
run tight --memory-budget="$(budget 0.5)"
same all.safetensors tight.safetensors "checkpoints with nested parts"
same all.jsonl tight.jsonl "metrics with nested parts"
