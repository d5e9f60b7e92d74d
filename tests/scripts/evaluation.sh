#!/usr/bin/env bash
# Evaluation of data that is no whole number of batches: means over samples are exact, and no other metric is
# out of its range, whichever samples have no label.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
command -v python3 >python.txt || skip "no python3"

cat >m.graph <<'EOT'
let B = 4
model m(x: f32[B,3], y: i32[B]) {
  param b: f32[1] = zeros
  z = x + 0*b
  loss cross_entropy(z, y, ignore=-100)
  metric ppl = perplexity(z, y, ignore=-100)
  metric acc = accuracy(z, y, ignore=-100)
  metric mean_x = mean(x)
}
data {
  train = csv("train.csv", label = 3)
  two = csv("two.csv", label = 3)
  masked = csv("masked.csv", label = 3)
  many = csv("many.csv", label = 3)
}
optim { sgd(0.1) }
train { steps = 1 }
EOT
python3 - <<'PYTHON'
import random
def write(name, rows):
    with open(name, "w") as f:
        f.writelines(",".join(map(str, r)) + "\n" for r in rows)
write("train.csv", [[0, 0, 0, 0]] * 12)
write("two.csv", [[2, 0, 0, 0], [8, 0, 0, 1]])
write("masked.csv", [[8, 0, 0, 1], [2, 0, 0, -100]])
r = random.Random(1)
write("many.csv", [[r.random() * 4, r.random() * 4, r.random() * 4, r.randrange(3)] for _ in range(27)])
PYTHON
check() { # BATCH
  "$mltc" -O1 m.graph -D "B=$1" -o m
  ./m --quiet --save=m.safetensors 2>said.txt || {
    cat said.txt
    fail "training in batches of $1"
  }
  ./m eval --resume=m.safetensors --metrics=eval.jsonl >out.txt || fail "evaluation in batches of $1"
  python3 - "$1" <<'PYTHON' || fail "batches of $1: $(cat eval.jsonl)"
import json, math, sys
batch = int(sys.argv[1])
got = {r["eval"]: r for r in map(json.loads, open("eval.jsonl"))}
def rows(name):
    return [[float(v) for v in l.split(",")] for l in open(name + ".csv")]
def loss(r):
    return None if r[3] < 0 else math.log(sum(math.exp(v) for v in r[:3])) - r[int(r[3])]
for name in ("two", "masked", "many"):
    all = [loss(r) for r in rows(name)]
    some = [l for l in all if l is not None]
    g = got[name]
    near = lambda a, b: abs(a - b) <= 1e-5 * max(1, abs(b))
    assert near(g["mean_x"], sum(sum(r[:3]) for r in rows(name)) / 3 / len(all)), (name, "mean_x")
    if len(some) == len(all):
        assert near(g["loss"], sum(some) / len(some)), (name, "loss")
    assert 0 <= g["loss"] <= max(some) + 1e-4 and 0 <= g["acc"] <= 1 and 1 <= g["ppl"] <= math.exp(max(some)) * 1.01, (name, g)
PYTHON
}
check 4
check 8
check 11 # has no divisors

# Ids of a text stand for the characters that they stood for in training, whatever texts are there later: those of other
# sets are not read for it, and a character that was not there is refused. A new run may learn others.
cat >chars.graph <<'EOT'
model chars(x: i32[4,3], y: i32[4,3]) {
  param e: f32[9,4] = normal(1)
  loss cross_entropy(linear(gather(e, x), 9), y)
}
data {
  train = text("one.txt", window=3)
  val = text("two.txt", window=3)
}
optim { adam(0.1) }
train { steps = 9, eval = val every 9 }
EOT
printf 'ccaeccaeccaeccaecc' >one.txt
printf 'eccaeccbeccaecca' >two.txt
"$mltc" -O0 chars.graph -o chars
./chars --quiet --save=chars.safetensors
./chars eval --quiet --resume=chars.safetensors >first.txt
mv one.txt gone.txt
./chars eval --quiet --resume=chars.safetensors >again.txt || fail "a text that is not needed is missed"
same first.txt again.txt "what evaluation says without the training text"
mv gone.txt one.txt
printf 'dccaeccbeccaeccf' >two.txt
expect_error 1 "two.txt has 2 characters that 'chars.safetensors' was not made with: byte 100 .'d'. and others" \
  ./chars eval --resume=chars.safetensors
expect_error 1 "two.txt has 2 characters that 'chars.safetensors'" ./chars --resume=chars.safetensors --no-save
expect_error 1 "two.txt has 2 characters that 'chars.safetensors'" ./chars eval --weights=chars.safetensors
./chars --quiet --weights=chars.safetensors --save=more.safetensors || fail "a new run may learn other characters"
grep -aq '"characters":"97 98 99 101 100 102"' more.safetensors || fail "the characters of the new run"
LC_ALL=C sed 's/"characters":"97 98 /"characters":"98 97 /' chars.safetensors >damaged.safetensors
printf 'eccaeccbeccaecca' >two.txt
for command in train eval; do
  expect_error 1 "cannot use the weights 'damaged.safetensors': its metadata are damaged" \
    ./chars $command --weights=damaged.safetensors
done

# As many results as a trainer logs: the last of them is there; one more is refused.
many() { # METRICS : beside a loss
  echo 'flag steps = 1
model m(x: f32[4,3]) {
  param w: f32[3] = ones
  loss mean(x * w)'
  for ((i = 1; i <= $1; i++)); do echo "  metric q$i = mean(x) + $i"; done
  echo '}
data { train = csv("many.csv", label = 3) }
optim { sgd(0) }
train { steps = steps }'
}
many 255 >most.graph
"$mltc" -O0 most.graph -o most || fail "256 results"
./most --quiet --no-save --log-every=1 --metrics=most.jsonl
grep -q '"q255":' most.jsonl || fail "the last of 256 results is not logged: $(cat most.jsonl)"
# Less than a second; half a minute when the name of each is looked up among all of them after each step.
timeout 15 ./most --quiet --no-save --threads=1 --steps=40000 || fail "40000 steps of 256 results take too long"
many 256 >more.graph
expect_error 1 "E0226" "$mltc" -O0 more.graph -o more
