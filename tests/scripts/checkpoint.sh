#!/usr/bin/env bash
# Recomputation: every policy, and every budget that is met, gives the same losses and the same
# checkpoint, byte for byte; a budget is met by the arena that the trainer has, or refused with a
# reason; less memory never costs less time. In the suite kernels are not optimised (those that run again are the same
# functions), with MLTC_SLOW they are.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
need_plain_build
need_data

# --- the same bits
# Random streams (dropout, noise), batch norm's running averages, steps of a recurrence, two losses in
# one function, clipping: in few steps on small sizes.
declare -A sizes=(
  [char_gpt]="-D B=2 -D T=16 -D C=32 -D H=2 -D L=3 -D drop=0.1"
  [resnet20]="-D B=4" [unet]="-D B=2 -D C=4" [char_lstm]="-D B=2 -D T=12 -D H=16"
  [gan]="-D B=4"
)
python3 "$root/examples/data/clouds.py" . # the data of gan
level=-O0
[ -z "${MLTC_SLOW:-}" ] || level=-O1
compile() { # OPTION... : of $model
  # shellcheck disable=SC2086
  "$mltc" $level "$model.graph" ${sizes[$model]} "$@"
}
build() { # OPTION... : the trainer; fails where the budget is refused
  compile "$@" -o trainer 2>refusal.txt || {
    { [ $? -eq 3 ] && grep -q 'does not fit' refusal.txt; } || fail "$model $*: $(cat refusal.txt)"
    return 1
  }
}
arena() { # of the trainer
  ./trainer info | sed -nE 's/^memory +([0-9]+) bytes.*/\1/p'
}
run() { # NAME OPTION... : the trainer that was built with them
  local name=$1
  shift
  ./trainer --quiet --no-times --log-every=1 --threads=2 --data-dir="$data" \
    --save="$name.safetensors" --metrics="$name.jsonl" || fail "$model $*: the run failed"
}
plan() { # FIELD OPTION... : a Python expression on the plan p and its function step
  local field=$1
  shift
  compile "$@" --emit=plan.json >plan.json 2>refusal.txt || [ $? -eq 3 ] || fail "$model $*: $(cat refusal.txt)"
  python3 -c "import json
p = json.load(open('plan.json'))
step = next(f for f in p['functions'] if f['name'] == 'step')
again = [k for k in step['kernels'] if k['clone_of'] is not None]
print($field)"
}
for model in "${!sizes[@]}"; do
  fewer='s/steps = [0-9]+/steps = 3/g'
  [[ $model == gan || $model == char_lstm ]] || fewer+='; s/, eval = [^,}]+//' # of thousands of images or windows
  sed -E "$fewer" "$root/examples/$model.graph" >"$model.graph"
  build --checkpoint=none
  run none --checkpoint=none
  all=$(arena)
  case $model in
    char_gpt) choices="--checkpoint=selective --checkpoint=sqrt --checkpoint=all --memory-budget=$((all * 6 / 10))" ;;
    resnet20) choices="--checkpoint=free --checkpoint=sqrt" ;;
    gan) choices=--checkpoint=sqrt ;;
    unet) choices="--checkpoint=all --memory-budget=$((all * 6 / 10))" ;; # a maximum and its operand apart
    *) choices=--memory-budget=$((all * 6 / 10)) ;;
  esac
  for choice in $choices; do
    build "$choice" || continue
    [ "$(arena)" -le "$all" ] || fail "$model $choice: more memory than without recomputation"
    run some "$choice"
    same none.safetensors some.safetensors "checkpoints of $model with $choice"
    same none.jsonl some.jsonl "metrics of $model with $choice"
  done
  [ "$(plan 'len(again) > 0' --memory-budget=$((all * 8 / 10)))" = True ] || grep -q 'does not fit' refusal.txt ||
    fail "$model at 0.8 of its memory: nothing is made again"
done

# --- budgets
# Of the networks as they are: each is met, by a shorter list of kernels where there is more memory, or
# refused with a bound that is above it. Those of convolutions are all met: the smallest of the U-Net by kernels that
# run again earlier than they must (replay_hoist), by parts that go into one room (insert_parts) and by the copy of half a
# gradient (keep_parts).
sizes=([gpt2]="" [resnet20]="" [unet]="")
for model in "${!sizes[@]}"; do
  cp "$root/examples/$model.graph" .
  all=$(plan "p['totals']['arena']" --checkpoint=none)
  slower=1 refused=no
  for tenths in 8 ${MLTC_SLOW:+6} 5 ${MLTC_SLOW:+4} 3; do
    budget=$((all * tenths / 10))
    read -r arena time bound < <(plan "p['totals']['arena'], p['ratios']['recompute_time'], p['bound_ws']" \
      --memory-budget=$budget | tr -d '(),')
    if [ "$arena" -gt $budget ]; then
      grep -q 'does not fit' refusal.txt || fail "$model at 0.$tenths: not refused"
      [ "$bound" -gt $budget ] || fail "$model at 0.$tenths: refused, but the proven bound is $bound"
      [ "$model" = gpt2 ] || fail "$model at 0.$tenths: refused"
      refused=yes
    else
      ! grep -q 'does not fit' refusal.txt || fail "$model at 0.$tenths: refused, but it fits"
      [ $refused = no ] || fail "$model at 0.$tenths: fits, while more memory did not"
      python3 -c "import sys; sys.exit(not $slower <= $time)" ||
        fail "$model at 0.$tenths: faster ($time) than with more memory ($slower)"
      slower=$time
    fi
  done
done
# Updates that read a large gradient together run soon (order): of the U-Net with two convolutions in place of one of a
# concat, they did so at the end, and 0.6 was refused.
sed -e 's/^block twice(x: \(.*\), m) {/block after(p: \1, q: \1, m) {\n  x = relu(groupnorm(conv2d(p, m, padding=1) + conv2d(q, m, padding=1), 4))\n  return relu(groupnorm(conv2d(x, m, padding=1), 4))\n}\n\n&/' \
  -e 's/twice(concat(\[\(.*\)\], axis=-1), /after(\1, /' unet.graph >apart.graph
[ "$(grep -c 'after(' apart.graph)" = 3 ] || fail "apart.graph has other blocks: $(cat apart.graph)"
model=apart sizes[apart]=""
all=$(plan "p['totals']['arena']" --checkpoint=none)
arena=$(plan "p['totals']['arena']" --memory-budget=$((all * 4 / 10)))
[ "$arena" -le $((all * 4 / 10)) ] || fail "apart takes $arena of $all bytes"
# And a little more: what is packed with the steps of a compile alone takes 7.5 of the time.
model=unet
for budget in 2688161 ${MLTC_SLOW:+2774876}; do
  time=$(plan "p['ratios']['recompute_time']" --memory-budget="$budget")
  python3 -c "import sys; sys.exit(not $time < 3)" || fail "unet in $budget bytes: $time of the time"
done

# Recomputation is found where the forward pass does not end with the loss: in the function of a batch that only adds
# up gradients, where a term of the loss is computed late, in the first of two losses. Shares of what all values take.
cat >deep.graph <<'EOT'
let B = 64, L = 12, H = 32, accumulate = 1, late = 0, twice = 0
block net(x: f[b,n]) {
  h = linear(x, H)
  first = h
  repeat L { h = tanh(linear(h, H)) }
  return [linear(h, 1), first]
}
model m(x: f32[B,16]) {
  y, first = net(x)
  a = mean(y ** 2)
  if late == 1 { a = a + 0.1 * mean(linear(first, 1) ** 2) }
  if twice == 1 {
    z, other = net(2 * x)
    loss one = a over net
    loss two = mean((z - 1) ** 2) over net_2
  } else {
    loss a
  }
}
data { train = npy("x.npy") }
optim { sgd(0.01) }
train { steps = 3, seed = 3, accumulate = accumulate }
EOT
python3 -c "import random, sys
sys.path.insert(0, '$root/examples/data')
from npy import write_npy
draw = random.Random(1)
write_npy('x.npy', '<f4', (256, 16), [draw.uniform(-1, 1) for _ in range(4096)])"
shared=$data data=$PWD model=deep
for case in accumulate=1:6 accumulate=2:7 late=1:6 twice=1:6; do
  sizes=([deep]="-D ${case%:*}")
  build --checkpoint=none
  run none --checkpoint=none
  states=$(plan "p['totals']['states']" --checkpoint=none)
  all=$(($(arena) - states))
  for choice in --checkpoint=sqrt --memory-budget=$((states + all * ${case#*:} / 10)); do
    build "$choice" || fail "deep.graph, ${case%:*}, $choice: refused"
    bytes=$(($(arena) - states))
    [ "$bytes" -le $((all * ${case#*:} / 10)) ] || fail "deep.graph, ${case%:*}, $choice: $bytes of $all bytes"
    run some "$choice"
    same none.safetensors some.safetensors "checkpoints of deep.graph, ${case%:*}, with $choice"
    same none.jsonl some.jsonl "metrics of deep.graph, ${case%:*}, with $choice"
  done
done
data=$shared
# Nor is there a value waiting for its backward pass in such a function that the step makes again there (remake).
sed 's/^train {/train { accumulate = 2,/' "$root/examples/char_gpt.graph" >parts.graph
model=parts sizes=([parts]="")
[ "$(plan "next(f['peak_bytes'] for f in p['functions'] if f['name'] == 'accum') <= step['peak_bytes']" --checkpoint=none)" = True ] ||
  fail "char_gpt: a batch that adds up gradients takes more than a step"

# More memory costs next to no more time. What searches find varies by 2% here; where each budget was searched alone, by 10%.
cat >wide.graph <<'EOT'
let B = 128, L = 10, H = 32
model m(x: f32[B,16], y: i32[B]) {
  all = linear(x, H)
  repeat L {
    h = relu(batchnorm(linear(all, H)))
    all = concat([all, h + 0.1 * normal([B, H])], axis=1)
  }
  loss cross_entropy(linear(all, 10), y)
}
data { train = npy("x.npy", "y.npy") }
optim { sgd(0.01, momentum=0.9) }
train { steps = 6 }
EOT
model=wide sizes=([wide]="--target=cpu:x86-64-v3")
all=$(plan "p['totals']['arena']" --checkpoint=none)
least=9
for percent in 60 64 67 70 72 74; do
  time=$(plan "p['ratios']['recompute_time']" --memory-budget=$((all * percent / 100)))
  python3 -c "import sys; sys.exit(not $time <= $least * 1.03)" ||
    fail "wide.graph at 0.$percent: $time of the time, with less memory $least"
  least=$(python3 -c "print(min($time, $least))")
done

# --- what is refused says why
model=char_gpt sizes=([char_gpt]="")
sed -E 's/steps = [0-9]+/steps = 3/g' "$root/examples/char_gpt.graph" >char_gpt.graph
expect_error 3 'does not fit 10.0 MiB' "$mltc" char_gpt.graph --memory-budget=10MiB -o no_trainer
[ ! -e no_trainer ] || fail "a trainer that does not fit was built"
for words in 'proven: whatever is computed again' 'for the whole run:' 'at the peak, kernel' \
  'char_gpt.graph:[0-9]+' 'this would work: --memory-budget='; do
  grep -qE -- "$words" err.txt || fail "the refusal lacks '$words': $(cat err.txt)"
done
enough=$(sed -n 's/.*--memory-budget=//p' err.txt)
"$mltc" char_gpt.graph --memory-budget="$enough" --emit=plan >/dev/null || fail "what was said to work does not"
# A budget asks IR text for what it asks the graph for; another policy is kept, and mltc says that it is in the way.
"$mltc" char_gpt.graph -D L=2 --emit=ir >free.ir
grep -q '^config checkpoint = "free"$' free.ir || fail "the IR does not say 'free'"
"$mltc" char_gpt.graph -D L=2 --memory-budget=15MiB --emit=plan >graph_plan.txt || fail "15 MiB do not do"
"$mltc" free.ir --memory-budget=15MiB --emit=plan >ir_plan.txt || fail "15 MiB do not do of IR text"
[ "$(head -n 1 graph_plan.txt)" = "$(head -n 1 ir_plan.txt)" ] || fail "another plan of IR text"
for policy in none free; do
  expect_error 3 '^  with --checkpoint=auto it fits$' "$mltc" char_gpt.graph -D L=2 --checkpoint=$policy --memory-budget=15MiB -o no_trainer
done
"$mltc" char_gpt.graph -D L=2 --checkpoint=none --emit=ir >none.ir
expect_error 3 '^  with --checkpoint=auto it fits$' "$mltc" none.ir --memory-budget=15MiB -o no_trainer
# Where kernels with other bits would fit, it says which: those of a long scan, whose many products are one.
expect_hint() { # GRAPH PASS : within a budget that the graph meets without the pass only
  local without
  without=$("$mltc" "$1" --disable-pass="$2" --checkpoint=sqrt --emit=plan.json |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["totals"]["arena"])')
  expect_error 3 "with --disable-pass=$2 it fits" "$mltc" "$1" --memory-budget="$without" -o no_trainer
  "$mltc" "$1" --memory-budget="$without" --disable-pass="$2" --emit=plan >/dev/null || fail "$1 does not fit without $2"
}
cat >scan.graph <<'EOT'
model m(x: f32[2,200,8], y: f32[2,8]) {
  param a: f32[8] = uniform(0.5, 0.99)
  param w: f32[8,8] = orthogonal(0.5)
  h = zeros([2,8])
  repeat t in 200 { h = tanh(a * h + x[:, t] @ w) }
  loss mse(h, y)
}
data { train = npy("x.npy", "y.npy") }
optim { sgd(0.1) }
train { steps = 3 }
EOT
expect_hint scan.graph join_products
# Kernels with the same bits are tried by whatever asks: those that do not make sums of a stream again.
cat >stream.graph <<'EOT'
let B = 256, H = 500
model m(x: f32[B,32], y: i32[B]) {
  h = linear(x, H)
  repeat 24 { h = h + tanh(linear(h, H) * 0.5) * sigmoid(h) }
  loss cross_entropy(linear(h, 10), y)
}
data { train = npy("x.npy", "y.npy") }
optim { sgd(0.001) }
train { steps = 2 }
EOT
model=stream sizes=([stream]="")
without=$("$mltc" stream.graph --disable-pass=remake --memory-budget=1KiB --emit=plan 2>&1 >/dev/null | sed -n 's/.*--memory-budget=//p') || true
"$mltc" stream.graph --checkpoint=auto --memory-budget="$without" --emit=plan >/dev/null || fail "stream.graph is refused $without bytes"
"$mltc" memory stream.graph --memory-budget="$without" | grep -q '^auto .* fits$' || fail "memory: stream.graph does not fit $without bytes"
# They are what is shown, kept and asked of: IR text and plans compile to the same again, a batch that fits is not divided, all
# rows of `mltc memory` know them, and so does --extra-time. Numbers and checkpoints are the same, to the byte.
cat >masks.graph <<'EOT'
let B = 256, H = 64
model m(x: f32[B,32], y: i32[B]) {
  h = linear(x, H)
  repeat 6 { h = h + dropout(linear(silu(linear(rmsnorm(h), H)), H), 0.2) }
  loss cross_entropy(linear(h, 10), y)
}
data { train = npy("x.npy", "y.npy") }
optim { adamw(0.001), clip = 1.0 }
train { steps = 6 }
EOT
v3=("$mltc" --target=cpu:x86-64-v3) # elsewhere other budgets are met
arena_of() {
  "${v3[@]}" "$@" --emit=plan.json | python3 -c 'import json, sys; print(json.load(sys.stdin)["totals"]["arena"])'
}
keeps=$(arena_of masks.graph) least=$(arena_of masks.graph --disable-pass=remake --checkpoint=sqrt)
budget=$((least + (keeps - least) / 4))
options=(masks.graph --memory-budget="$budget")
"${v3[@]}" "${options[@]}" --emit=plan.json --keep=kept >little.json || fail "masks.graph is refused $budget bytes"
grep -q '"remake": *"little"' little.json || fail "these are the kernels of any other plan: $budget bytes test nothing"
"${v3[@]}" masks.graph --plan=little.json --emit=plan.json >again.json
cmp -s little.json again.json || fail "the plan does not compile to itself"
"${v3[@]}" "${options[@]}" --emit=ir >little.ir || fail "IR of masks.graph"
for text in little.ir kept/52-checkpoint.ir; do
  [ "$(arena_of $text)" = "$(arena_of "${options[@]}")" ] || fail "$text takes other memory than what it was made from"
done
"${v3[@]}" "${options[@]}" --allow=accumulate --emit=plan.json | grep -q micro_batches && fail "a batch that fits is divided"
for policy in sqrt selective; do
  total=$("$mltc" memory masks.graph --target=cpu:x86-64-v3 --memory-budget="$budget" --json | python3 -c "import json, sys
print(*[p['total'] for p in json.load(sys.stdin)['policies'] if p['checkpoint'] == '$policy'])")
  [ "$total" = "$(arena_of "${options[@]}" --checkpoint=$policy)" ] || fail "memory: $policy takes $total bytes"
done
extra=$("${v3[@]}" masks.graph --extra-time=10% --emit=plan 2>&1 | sed -n 's/.*--memory-budget=//p')
[ "$extra" -lt $((keeps * 93 / 100)) ] || fail "--extra-time=10%: $extra bytes of $keeps"
python3 -c "import struct
def npy(name, kind, shape, data):
    head = str({'descr': kind, 'fortran_order': False, 'shape': shape}).ljust(117) + '\\n'
    open(name, 'wb').write(b'\\x93NUMPY\\x01\\x00' + struct.pack('<H', len(head)) + head.encode() + data)
npy('x.npy', '<f4', (512, 32), b''.join(struct.pack('<f', (i * 37 % 101) / 50 - 1) for i in range(512 * 32)))
npy('y.npy', '<i4', (512,), b''.join(struct.pack('<i', i * 7 % 10) for i in range(512)))"
"${v3[@]}" -O0 masks.graph -o masks
"${v3[@]}" -O0 "${options[@]}" -o little
"${v3[@]}" -O0 little.ir -o text
for program in masks little text; do
  ./$program --quiet --no-times --log-every=1 --save=$program.st --metrics=$program.jsonl
  cmp -s masks.jsonl $program.jsonl || fail "$program: other losses under a budget"
done
cmp -s masks.st little.st || fail "another checkpoint under a budget"
model=stream
batch=$("$mltc" stream.graph --max-batch --memory-budget="$without" | sed -n 's/^B = \([0-9]*\):.*/\1/p')
[ "$batch" -ge 256 ] || fail "--max-batch of $without bytes is $batch, and 256 fit"
# No budget that is said to work, or that a plan for a larger one fits, is refused.
cat >rnn.graph <<'EOT'
let B = 8
model m(x: f32[B,7,8], y: f32[B]) {
  h, last, c = lstm(x, 12)
  g, gl = gru(dropout(h, 0.2), 7)
  loss huber(reshape(linear(gl, 1), [B]), y)
}
data { train = npy("x.npy", "y.npy") }
optim { rmsprop(0.01, momentum=0.5), clip = 0.1 }
train { steps = 6 }
EOT
model=rnn sizes=([rnn]="")
all=$(plan "p['totals']['arena']" --checkpoint=none) met=0 missed=0
parts=$([ -z "${MLTC_SLOW:-}" ] && echo 6 || echo 50)
for ((budget = all - 64; budget > all * 4 / 10; budget -= all / parts)); do
  arena=$(plan "p['totals']['arena']" --memory-budget="$budget")
  if [ "$arena" -le $budget ]; then
    met=$((met + 1))
  else
    missed=$((missed + 1))
    enough=$(sed -n 's/.*--memory-budget=//p' refusal.txt)
    [ "$enough" -gt $budget ] || fail "rnn in $budget bytes: refused, and $enough would work"
    arena=$(plan "p['totals']['arena']" --memory-budget="$enough")
    [ "$arena" -le "$enough" ] || fail "rnn: $enough bytes were said to work, and do not"
    [ "$arena" -gt $budget ] || fail "rnn in $budget bytes: refused, and a plan for $enough takes $arena"
  fi
done
[ $((met * missed)) -gt 0 ] || fail "rnn: $met budgets met, $missed missed"
model=char_gpt sizes=([char_gpt]="")
expect_error 2 'it is a number of bytes' "$mltc" char_gpt.graph --memory-budget=much
expect_error 2 "did you mean 'sqrt'" "$mltc" char_gpt.graph --checkpoint=sqr

# --- text
# A step with kernels that run again is printed, read back, and compiled to the same plan.
"$mltc" char_gpt.graph --checkpoint=sqrt --emit=ir >sqrt.ir
grep -q ' again=' sqrt.ir || fail "the text does not say what runs again"
"$mltc" sqrt.ir --emit=ir >again.ir
same sqrt.ir again.ir "a step with kernels that run again, and what was read of it"
"$mltc" char_gpt.graph --checkpoint=sqrt --emit=plan.json >graph.json
"$mltc" sqrt.ir --emit=plan.json >text.json
python3 - <<'EOT' || fail "the plan of the text is another one"
import json
a, b = (json.load(open(f)) for f in ("graph.json", "text.json"))
assert a["totals"] == b["totals"], (a["totals"], b["totals"])
assert [k["name"] for f in a["functions"] for k in f["kernels"]] == [k["name"] for f in b["functions"] for k in f["kernels"]]
EOT
# A text in which kernels run again is of one policy: nothing else can be asked of it.
expect_error 1 '--checkpoint=none comes too late: kernels of .sqrt.ir. run again already' "$mltc" sqrt.ir --checkpoint=none --emit=plan
expect_error 1 '--extra-time comes too late' "$mltc" sqrt.ir --extra-time=5% --emit=plan
expect_error 1 'mltc memory. comes too late' "$mltc" memory sqrt.ir
"$mltc" sqrt.ir --checkpoint=sqrt --emit=plan.json | cmp - text.json || fail "the policy that the text has is refused"
# The second list of passes takes the options of the first.
"$mltc" char_gpt.graph --checkpoint=sqrt --emit=ir --print-after=checkpoint --keep=kept 2>after.txt >sqrt2.ir
same sqrt.ir sqrt2.ir "a step printed with and without a look at its passes"
grep -q '^# after checkpoint' after.txt || fail "--print-after=checkpoint prints nothing"
[ -s kept/52-checkpoint.ir ] || fail "the IR after checkpoint is not kept: $(ls kept)"
"$mltc" char_gpt.graph --checkpoint=sqrt --emit=ir --disable-pass=checkpoint >off.ir
! grep -q ' again=' off.ir || fail "--disable-pass=checkpoint leaves it on"
# One that does something else than the kernel that it is said to run again is no step.
python3 - <<'EOT'
text = open("sqrt.ir").read()
block = text.index(" again=")
while " = mul " not in text[block:text.index("\n  }", block)]:
    block = text.index(" again=", block + 1)
open("broken.ir", "w").write(text[:block] + text[block:].replace(" = mul ", " = add ", 1))
EOT
! cmp -s sqrt.ir broken.ir || fail "the test breaks nothing"
expect_error 1 'does not compute what kernel' "$mltc" broken.ir --emit=ir
