#!/usr/bin/env bash
# --extra-time=PERCENT: the least memory whose steps are predicted to take at most so much longer; the budget that
# it names gives the same plan, and the same bits come out. With MLTC_SLOW also of a deep network of convolutions.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
need_plain_build

plan() { # FILE OPTION... : to plan.json; what is said of it to said.txt
  "$mltc" "$@" --emit=plan.json >plan.json 2>said.txt || fail "$*: $(cat said.txt)"
}
look() { # EXPRESSION on the plan p
  python3 -c "import json
p = json.load(open('plan.json'))
print($1)"
}
for name in char_gpt ${MLTC_SLOW:+resnet20}; do
  file=$root/examples/$name.graph
  plan "$file" --checkpoint=none
  before=$(look "p['totals']['arena']")
  plan "$file"
  usual=$(look "p['totals']['arena']") before=$((usual < before ? usual : before))
  for percent in 0 10; do # more time never takes more memory
    plan "$file" --extra-time=$percent%
    arena=$(look "p['totals']['arena']")
    [ "$arena" -le "$before" ] || fail "$name: $arena bytes with $percent% more time, $before with less"
    before=$arena
  done
  [ "$(look "p['ratios']['recompute_time'] <= 1.1")" = True ] || fail "$name: more than 10% more time"
  [ "$arena" -lt $((usual * 9 / 10)) ] || fail "$name: $arena bytes of $usual with 10% more time"
  grep -qE "^[0-9.]+ MiB instead of [0-9.]+ MiB; steps are predicted to take [0-9.]+% longer: --memory-budget=[0-9]+$" said.txt ||
    fail "$name: $(cat said.txt)"
  cp plan.json found.json
  plan "$file" "$(grep -o -- '--memory-budget=.*' said.txt)"
  same found.json plan.json "the plan of $name and the one of the budget that is named"
done

# On a GPU, values may wait in memory of the host: what copies are waited for counts, too.
plan "$root/examples/char_gpt.graph" --target=cuda:sm_90a
usual=$(look "p['totals']['arena']")
plan "$root/examples/char_gpt.graph" --target=cuda:sm_90a --extra-time=4%
[ "$(look "p['totals']['arena'] < $usual")" = True ] || fail "char_gpt on a GPU: no less memory"
[ "$(look "max(p['ratios']['recompute_time'] + f.get('sent', {'waiting': 0})['waiting'] for f in p['functions']) <= 1.04")" = True ] ||
  fail "char_gpt on a GPU: more than 4% more time"

# What has nothing to run again keeps its memory, and says so.
plan "$root/examples/char_lstm.graph" --extra-time=10%
grep -qE '^[0-9.]+ MiB: no less in so much time$' said.txt || fail "char_lstm: $(cat said.txt)"

# A little less is said to the byte.
plan "$root/examples/digits_mlp.graph" --target=cpu:x86-64-v3 --extra-time=5%
grep -qE '^1,1[0-9]{2},[0-9]{3} instead of 1,1[0-9]{2},[0-9]{3} bytes; steps are predicted' said.txt || fail "digits_mlp: $(cat said.txt)"

# --- the trainer, and where the answer is printed
cat >net.graph <<'EOT'
block layer(h: f32[b,c]) -> f32[b,c] { return h + linear(dropout(gelu(linear(layernorm(h), 256)), 0.1), c) }
model m(x: f32[32,64], y: f32[32,8]) {
  h = x
  repeat i in 4 { h = layer(h) }
  loss mse(linear(h, 8), y)
}
data { train = npy("x.npy", "y.npy") }
optim { sgd(0.1) }
train { steps = 5 }
EOT
python3 - <<'EOT'
import random, struct
def save(path, rows, columns):
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}".ljust(117) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        f.write(struct.pack(f"<{rows * columns}f", *(random.gauss(0, 1) for _ in range(rows * columns))))
save("x.npy", 64, 64)
save("y.npy", 64, 8)
EOT
"$mltc" -O0 net.graph -o usual
"$mltc" -O0 net.graph --extra-time=20% -o less >said.txt 2>err.txt
[ ! -s err.txt ] || fail "messages: $(cat err.txt)"
grep -q 'instead of' said.txt || fail "the answer is not on standard output: $(cat said.txt)"
for trainer in usual less; do
  ./$trainer --quiet --no-times --log-every=1 --save=$trainer.safetensors --metrics=$trainer.jsonl
done
same usual.jsonl less.jsonl "losses"
same usual.safetensors less.safetensors "checkpoints"
"$mltc" net.graph --extra-time=20% --emit=ir >step.ir 2>said.txt
grep -q 'instead of' said.txt || fail "the answer is in what is printed"
"$mltc" step.ir --emit=plan.json >ir.json
"$mltc" net.graph --extra-time=20% --emit=plan.json >graph.json 2>said.txt
python3 - <<'EOT' || fail "IR text of what was found has another plan"
import json
ir, graph = (json.load(open(f)) for f in ("ir.json", "graph.json"))
assert ir["totals"] == graph["totals"], (ir["totals"], graph["totals"])
EOT
# IR text says which policy it was compiled with: another one is taken, and said.
"$mltc" net.graph --checkpoint=none --emit=ir >none.ir
plan none.ir --extra-time=20%
cp plan.json found.json
# shellcheck disable=SC2046
plan none.ir $(grep -oE -- '--checkpoint=auto --memory-budget=[0-9]+$' said.txt)
same found.json plan.json "the plan of IR text that was found, and that of the options which it names"
"$mltc" net.graph --extra-time=20% -v --emit=plan >/dev/null 2>err.txt
grep -qE '^budget of [0-9]+: [0-9]+ bytes, [0-9.]+% longer$' err.txt || fail "-v does not show what was tried"

# --- usage
for wrong in 10 -1% 10%x % 1001% nan% 0x10% 1e1% ''; do
  expect_error 2 'it is a share of the time, such as 10% or 2.5%' "$mltc" net.graph --extra-time="$wrong" --emit=plan
done
for other in --memory-budget=1MB --checkpoint=sqrt --plan=found.json; do
  expect_error 2 'looks for the budget itself' "$mltc" net.graph --extra-time=5% $other --emit=plan
done
expect_error 2 'it takes no --extra-time' "$mltc" memory net.graph --extra-time=5%
expect_error 1 'E0' "$mltc" none.graph --extra-time=5%
