#!/usr/bin/env bash
# --allow=accumulate: a batch that does not fit its budget is run as micro-batches. What is made is, to the bit,
# what a graph file says that is written so by hand; it trains as the whole batch does, up to rounding; and of
# all that fits, the least predicted time is taken.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
need_plain_build

field() { # FILE KEY... : a field of plan.json; none: where there is no such field
  python3 -c 'import json, sys
at = json.load(open(sys.argv[1]))
for key in sys.argv[2:]:
    at = at.get(key) if at else None
print("none" if at is None else at)' "$@"
}

arena() { # FILE OPTION...
  "$mltc" "$@" --emit=plan.json >arena.json 2>arena.txt || grep -q "does not fit" arena.txt || fail "$(cat arena.txt)"
  field arena.json totals arena
}

# The rate, the number of steps and the flag depend on the batch: they must not see its parts.
graph() { # BATCH RECIPE-BATCH ACCUMULATE PERCENT LAYER
  cat <<EOF
let B = $1, ROWS = B * 8
flag scale = $2 / 200, steps = $2 / 32 + 6
model deep(image: f32[B,64], label: i32[B]) {
  h = relu(linear(reshape(reshape(image / 16, [ROWS, 8]), [B, 64]), 64))
  repeat i in 8 { h = $5 }
  logits = linear(h, 10)
  loss cross_entropy(logits, label)
  metric accuracy = mean(argmax(logits, axis=-1) == label)
}
data {
  train = csv("digits.csv.gz", label=last, range=0%..$4%)
  test = csv("digits.csv.gz", label=last, range=80%..100%)
}
optim { adamw(0.002 * $2 * scale / 256, decay=0.01), clip = 1, schedule = cosine(total=$2 / 16) }
train { steps = steps, seed = 3, accumulate = $3, log every 1, eval = test every 5, save every 4 }
EOF
}
plain='relu(linear(h, 64)) + h'
noisy="dropout($plain, 0.2)"
samples=$root/examples/data

# --- the bits of a file written by hand
# Of 1,293 samples, 5 batches of 256 and 20 of 64 are the same 1,280.
graph 256 B 2 72 "$noisy" >file.graph
graph 64 256 8 72 "$noisy" >hand.graph
budget=$(arena hand.graph --checkpoint=none)
options=(-O1 --checkpoint=none --memory-budget="$budget")
"$mltc" file.graph "${options[@]}" --allow=accumulate -o divided 2>err.txt
grep -qx "note: the batch of 256 is run as 4 micro-batches of 64, whose gradients are added (--allow=accumulate)" \
  err.txt || fail "no note: $(cat err.txt)"
[ "$(wc -l <err.txt)" = 1 ] || fail "more than a note: $(cat err.txt)"
"$mltc" hand.graph -O1 -o by_hand
train() { # PROGRAM NAME OPTION... : NAME.jsonl, NAME.safetensors
  "$1" train --quiet --no-times --data-dir="$samples" --metrics="$2.jsonl" --save="$2.safetensors" "${@:3}"
}
train ./divided divided --threads=1
train ./divided threads --threads=3
train ./by_hand by_hand
same divided.jsonl threads.jsonl "metrics of one thread and of three"
same divided.safetensors threads.safetensors "checkpoints of one thread and of three"
same divided.jsonl by_hand.jsonl "metrics of divided batches and of those divided by hand"
python3 - divided.safetensors by_hand.safetensors <<'EOF' || fail "checkpoints of batches divided, and divided by hand"
import json, sys
def read(path):
    data = open(path, "rb").read()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    for key in ("source_hash", "metadata_checksum"): # of the file's text
        del header["__metadata__"][key]
    return header, data[8 + size :]
assert read(sys.argv[1]) == read(sys.argv[2])
EOF
./divided info >info.txt
grep -q "^loop .* accumulate=8 .*micro_batches=4 batch=256" info.txt || fail "info does not say it"
grep -q "^the batch of 256 is run as 4 micro-batches of 64$" info.txt || fail "the plan in info does not say it"
./divided check >check.txt || fail "$(cat check.txt)"

# A resumed run goes on to the same bits; 10 steps end with an evaluation that is due anyway.
train ./divided part --steps=10
train ./divided part --resume=part.safetensors --steps=14
same divided.jsonl part.jsonl "metrics of a run and of one that was resumed"

# --- the whole batch, up to rounding
# Of 1,437 samples, 5 batches of 256 are 1,280; 22 of 64 were 1,408.
graph 256 B 1 80 "$plain" >file.graph
graph 64 256 4 80 "$plain" >hand.graph
budget=$(arena hand.graph --checkpoint=none)
options=(-O1 --checkpoint=none --memory-budget="$budget" --allow=accumulate)
"$mltc" file.graph -O1 -o whole
"$mltc" file.graph "${options[@]}" -o divided 2>err.txt
[ "$(arena file.graph "${options[@]}")" -le "$budget" ] || fail "it does not fit"
train ./whole whole >whole.txt
train ./divided divided >divided.txt
python3 - whole.jsonl divided.jsonl <<'EOF' || fail "micro-batches do not train as the whole batch does"
import json, sys
whole, parts = ([json.loads(line) for line in open(f)] for f in sys.argv[1:])
assert len(whole) == len(parts) == 14 + 3, (len(whole), len(parts)) # steps; evaluations after 5, 10 and 14
worst = 0
for a, b in zip(whole, parts):
    assert a.keys() == b.keys(), (a, b)
    for key in a:
        if isinstance(a[key], str) or key in ("step", "epoch", "learning_rate"):
            assert a[key] == b[key], (key, a, b)
        else:
            assert abs(a[key] - b[key]) <= 1e-4 * abs(a[key]), (key, a, b)
            worst = max(worst, abs(a[key] - b[key]) / abs(a[key]) if a[key] else 0)
assert 0 < worst, "micro-batches have the bits of the whole batch: nothing was divided"
print("whole and divided: at most %.1e apart" % worst)
EOF

# --- what is recorded, and what is not
"$mltc" file.graph "${options[@]}" --emit=plan.json 2>/dev/null >plan.json
[ "$(field plan.json micro_batches) $(field plan.json batch)" = "4 256" ] || fail "plan.json does not say it"
expect_error 1 'micro-batches' "$mltc" file.graph --plan=plan.json --emit=plan
"$mltc" file.graph --emit=plan.json >plain.json
"$mltc" file.graph --emit=plan.json --memory-budget=1GB --checkpoint=none --allow=accumulate >allowed.json 2>err.txt
same plain.json allowed.json "plans of what fits undivided"
[ ! -s err.txt ] || fail "something is said where nothing is divided: $(cat err.txt)"
[ "$(field plain.json micro_batches)" = none ] || fail "a whole batch has micro-batches"
"$mltc" file.graph --target=cuda:sm_90a --memory-budget="$(arena hand.graph --target=cuda:sm_90a --checkpoint=none)" \
  --checkpoint=none --allow=accumulate --emit=plan.json >cuda.json 2>/dev/null
[ "$(field cuda.json micro_batches)" = 4 ] || fail "a GPU's batch is not divided"

# --- computing again, or dividing: the least predicted time of what fits
cat >choose.py <<'EOF'
import re, sys
budget, said = int(sys.argv[1]), open(sys.argv[2]).read()
tried = [(int(m), int(b), float(t)) for m, b, t in
         re.findall(r"^micro-batches: (\d+), bytes: (\d+), time: ([\d.]+)$", said, re.M)]
note = re.search(r"is run as (\d+) micro-batches", said)
fits = [(t, m) for m, b, t in tried if b <= budget]
chosen = int(note.group(1)) if note else 1
assert chosen == min(fits)[1], (chosen, tried)
print(chosen, len(tried), tried[0][2])
EOF
chosen() { # NAME BUDGET
  "$mltc" "$root/examples/$1.graph" --memory-budget="$2" --allow=accumulate -v --emit=plan.json >plan.json 2>err.txt
  python3 choose.py "$2" err.txt >choice.txt || fail "$1 in $2: $(cat err.txt)"
  cut -d ' ' -f 1 choice.txt
}
bytes=$(arena "$root/examples/resnet20.graph" --checkpoint=none)
[ "$(chosen resnet20 $((bytes * 65 / 100)))" = 2 ] || fail "halves of ResNet-20 are dearer than computing it again"
bytes=$(arena "$root/examples/llama_char.graph")
[ "$(chosen llama_char $((bytes - 1)))" = 1 ] || fail "a byte too much divides the batch"
"$mltc" "$root/examples/llama_char.graph" --memory-budget=$((bytes - 1)) --emit=plan.json >once.json
same once.json plan.json "plans of what is not divided"
python3 - choice.txt once.json <<'EOF' || fail "the predicted time is not that of the plan"
import json, sys
step = next(f for f in json.load(open(sys.argv[2]))["functions"] if f["name"] == "step")
said = float(open(sys.argv[1]).read().split()[2])
assert abs(said - step["recomputed"]["time"]) < 2e-6 and said > 1, (said, step["recomputed"])
EOF

# --- warnings and refusals
bytes=$(arena "$root/examples/resnet20.graph" --checkpoint=none)
"$mltc" "$root/examples/resnet20.graph" --memory-budget=$((bytes * 65 / 100)) --allow=accumulate --emit=ir >out.ir 2>err.txt
grep -q "warning\[W0225\].*running_mean.*those of 16 samples, not of 32" err.txt || fail "no word on running statistics"
grep -q "^config micro_batches = 2$" out.ir || fail "the IR does not say it"

cat >average.graph <<'GRAPH'
let B = 64
block net(x: f[b,n]) -> f[b,6] { return linear(relu(linear(x, 64)), 6) }
model average(x: f32[B,6]) {
  y = net(x) as net
  state ema: like net = net
  ema <- 0.9 * ema + 0.1 * net
  loss mean((y - x) ** 2)
}
data { train = npy("none.npy") }
optim { sgd(0.5) }
train { steps = 5 }
GRAPH
bytes=$(arena average.graph --checkpoint=none)
"$mltc" average.graph --memory-budget=$((bytes * 70 / 100)) --allow=accumulate --emit=ir >out.ir 2>err.txt
parts=$(sed -n 's/^config micro_batches = //p' out.ir)
grep -q "warning\[W0225\]: 'ema.linear.w' is changed by each micro-batch: $parts times a step, not once" err.txt || fail "no word on an average of weights"
! grep -q "statistics are those" err.txt || fail "an average of weights is called statistics"

cat >pairs.graph <<'GRAPH'
let B = 64
model pairs(x: f32[B,6], z: f32[B,6]) {
  a = unit(linear(relu(linear(x, 64)), 64))
  b = unit(linear(relu(linear(z, 64)), 64))
  loss cross_entropy(5 * a @ b^T, iota(B))
}
data { train = npy("none.npy", "none_2.npy") }
optim { sgd(0.1) }
train { steps = 2 }
GRAPH
bytes=$(arena pairs.graph --checkpoint=none)
"$mltc" pairs.graph --memory-budget=$((bytes * 55 / 100)) --allow=accumulate --emit=ir >out.ir 2>err.txt
grep -q "pairs.graph:5:.*warning\[W0225\]: 'matmul' has a number for each pair of a batch's samples" err.txt || fail "no word on a contrastive loss"
sed 's/loss .*/loss mean((a - b) ** 2)/' pairs.graph >alone.graph
bytes=$(arena alone.graph --checkpoint=none)
"$mltc" alone.graph --memory-budget=$((bytes * 55 / 100)) --allow=accumulate --emit=ir >out.ir 2>err.txt
grep -q "^config micro_batches" out.ir || fail "a loss of samples by themselves is not divided"
! grep -q W0225 err.txt || fail "a warning of a loss that compares no samples"

refused() { # PATTERN COMMAND... : exit code 3, and the pattern
  local pattern=$1 code=0
  shift
  "$@" >out.txt 2>err.txt || code=$?
  [ "$code" = 3 ] || fail "exit code $code, not 3: $*"
  grep -qE -- "$pattern" err.txt || fail "no '$pattern': $(cat err.txt)"
}
none=(--checkpoint=none --emit=plan)
allow=(--checkpoint=none --emit=plan --allow=accumulate)
refused "^  with --allow=accumulate it fits as 4 micro-batches of 64$" \
  "$mltc" file.graph "${none[@]}" --memory-budget="$budget"
# Where kernels of the fewest parts that fit run again, more parts may take less time: those are what is compiled.
cat >again.graph <<'EOF'
let B = 256
model m(x: f32[B,7], y: f32[B]) {
  h = linear(x, 16)
  repeat i in 12 { h = tanh(linear(h, 16)) }
  loss mse(reshape(linear(h, 1), [B]), y)
}
data { train = npy("x.npy", "y.npy") }
optim { sgd(0.1) }
train { steps = 4 }
EOF
tight=(again.graph --target=cpu:x86-64-v3 --memory-budget=65184)
refused "^  with --allow=accumulate it fits as 2 micro-batches of 128, or as more where that is faster$" \
  "$mltc" "${tight[@]}" --emit=plan
"$mltc" "${tight[@]}" --allow=accumulate --emit=plan.json >again.json 2>/dev/null
[ "$(field again.json micro_batches)" -gt 2 ] || fail "more parts do not take less time: take another budget"
refused "accumulate is not enough: as 256 micro-batches of 1 it takes " "$mltc" file.graph "${allow[@]}" --memory-budget=1KB
refused "accumulate is not enough: as 251 micro-batches of 1 it takes " \
  "$mltc" file.graph -D B=251 "${allow[@]}" --memory-budget=1KB
# What one kernel alone shows not to fit is not planned; and where the states are too much, not even divided.
tried() { # PATTERN COUNT BUDGET : so many numbers of parts are said to have been tried, each with the pattern
  refused "accumulate is not enough: as [0-9]+ micro-batches of [0-9]+ it takes at least" \
    "$mltc" file.graph "${allow[@]}" --memory-budget="$3" -v
  [ "$(grep -c "^micro-batches: .*$1" err.txt)" = "$2" ] || fail "not $2 of '$1' in $3: $(cat err.txt)"
  [ "$(grep -c "^micro-batches: " err.txt)" = "$2" ] || fail "more was tried: $(cat err.txt)"
}
tried "bytes: at least [0-9]*$" 2 1KB
"$mltc" file.graph -D B=1 --emit=plan.json >one.json
tried "bytes: at least [0-9]*$" 9 "$(field one.json totals states)"
"$mltc" file.graph -D B=251 "${allow[@]}" --memory-budget="$budget" >out.txt 2>err.txt
grep -q "the batch of 251 is run as 251 micro-batches of 1," err.txt || fail "a prime batch: $(cat err.txt)"
refused "no part of the batch of 1 takes less" "$mltc" file.graph -D B=1 "${allow[@]}" --memory-budget=1KB
refused "E0225.*state 'h' depends on the batch 'B'" \
  "$mltc" "$root/examples/char_lstm.graph" "${allow[@]}" --memory-budget=1MB
refused "E0225.*the batch is no .let." "$mltc" "$root/examples/gcn.graph" "${allow[@]}" --memory-budget=1KB
refused "E0216.*a model that accumulates has one loss" "$mltc" "$root/examples/gan.graph" "${allow[@]}" --memory-budget=1KB
cat >two.graph <<'EOF'
let B = 4, N = 4
model m(x: f[B,8], y: f[N,8]) { loss mean(linear(x, 8) * y) }
optim { sgd(0.1) }
EOF
refused "E0225.*the batch is 'N' in this input" "$mltc" two.graph "${allow[@]}" --memory-budget=1KB
refused "allow=accumulate divides the .let. that is the first dimension" "$mltc" two.graph "${allow[@]}" --memory-budget=1KB
sed -e 's/y: f\[N,8\]/y: f[B,B]/' -e 's/, N = 4//' -e 's/linear(x, 8)/linear(x, B)/' two.graph >square.graph
sed -i 's/linear(x, B) \* y/reshape(linear(x, 8), [B * 8]) + mean(y)/' square.graph
refused "E0225.*'B' is in more than the first dimension of 'y'" "$mltc" square.graph "${allow[@]}" --memory-budget=1KB
refused "too much" "$mltc" two.graph "${none[@]}" --memory-budget=1KB
! grep -q "allow=accumulate\|E0225" err.txt || fail "advice that does not help: $(cat err.txt)"

# Not enough data for one batch is that of the file.
sed 's/0%..80%/0%..10%/' file.graph >few.graph
"$mltc" few.graph "${options[@]}" -o few 2>err.txt
expect_error 1 "one batch needs 256" ./few --data-dir="$samples"
grep -q '^help: a batch is the first dimension' err.txt || fail "no help for too few samples"
