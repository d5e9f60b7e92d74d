#!/usr/bin/env bash
# Update in backward: a weight is updated right after its gradient, so that no two gradients of weights are
# live at a time. Not with clip, whose norm needs all gradients before the first update; with accumulate, gradients
# are added to states as they come.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash

# Weights of 256 KB each; what a layer leaves for the way back is 8 KB.
deep() { # RECIPE TRAIN
  cat <<GRAPH
let B = 8, C = 256, L = 12
flag lr = 0.1
model deep(x: f[B,C], label: u8[B]) {
  h = x
  repeat i in L { h = relu(linear(h, C)) }
  loss cross_entropy(linear(h, 10), label)
}
data { train = csv("none.csv") }
optim { $1 }
train { epochs = 1, seed = 0$2 }
GRAPH
}
plan() { # NAME: of NAME.graph to NAME.json
  "$mltc" "$1.graph" --emit=plan.json -o "$1.json"
}
deep "adam(lr)" "" >update.graph
deep "adam(lr), clip = 1.0" "" >clip.graph
deep "adam(lr)" ", accumulate = 4" >accumulate.graph

# The examples by Adam, with clip and without.
cp -r "$root/examples/data" .
for name in char_gpt gpt2 resnet20; do
  sed '/clip = /d; s/sgd(lr, momentum=0.9, decay=1e-4 if rank >= 2)/adam(lr)/' "$root/examples/$name.graph" >"$name.update.graph"
  sed 's/^\( *\)schedule = /\1clip = 1.0\n\1schedule = /' "$name.update.graph" >"$name.clip.graph"
done
for file in *.graph; do
  plan "${file%.graph}"
done

python3 - <<'PYTHON'
import glob, json, sys


def step_of(plan, name="step"):
    return next(f for f in plan["functions"] if f["name"] == name)


# Gradients of parameters by name: the most that are live at a time, and their bytes. With parts: and what they are the sum of, or
# are computed from where they are used.
def gradients(plan, parts=False):
    params = {b["name"] for b in plan["buffers"] if b.get("role") == "param"}
    step = step_of(plan)
    live = [[0, 0] for _ in step["kernels"]]
    for b in step["buffers"]:
        named = b["name"].startswith("d.") and b["name"][2:] in params
        if named or (parts and b.get("share") == "gradient"):
            for k in range(b["first"], b["last"] + 1):
                live[k][0] += 1
                live[k][1] += b["bytes"]
    return max(live)


plans = {f[:-5]: json.load(open(f)) for f in glob.glob("*.json")}
faults = []


def hold(what, true):
    if not true:
        faults.append(what)


weight, layers = 256 * 256 * 4, 12
left = layers * 2 * 8 * 256 * 4  # by the way there: products and activations
peaks = {n: step_of(plans[n])["peak_bytes"] for n in ("update", "clip", "accumulate")}
adding = step_of(plans["accumulate"], "accum")["peak_bytes"]
hold("updated one by one, gradients are kept: %d bytes" % peaks["update"], peaks["update"] < left + weight)
hold("clip needs all gradients at once", peaks["clip"] >= layers * weight)
hold("adding up keeps gradients: %d bytes" % adding, adding < left + weight)
hold("the update of sums keeps gradients: %d" % peaks["accumulate"], peaks["accumulate"] < left + weight)
for name in ("char_gpt", "gpt2", "resnet20"):
    update, clip = gradients(plans[name + ".update"]), gradients(plans[name + ".clip"], parts=True)
    hold("%s: %d gradients are live at a time" % (name, update[0]), update[0] <= 1)
    hold("%s: clip keeps only %d gradients" % (name, clip[0]), clip[0] > 10)
    print("%s: %d gradients of %d bytes at a time; with clip %d of %d" % (name, *update, *clip))
print("deep: peak %(update)d bytes; with clip %(clip)d; with accumulate %(accumulate)d" % peaks, "and", adding)
sys.exit("\n".join(faults) or 0)
PYTHON
