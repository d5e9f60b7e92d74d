#!/usr/bin/env bash
# What fits, before it is built: `mltc memory` says what the plan says, to the byte; --max-batch and
# --max=NAME find the value of which the plan fits, while that of the next one does not. With MLTC_SLOW more networks.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
need_plain_build

arena() { # FILE OPTION... : bytes of the plan
  "$mltc" "$@" --emit=plan.json | python3 -c 'import json, sys
print(json.load(sys.stdin)["totals"]["arena"])'
}

# --- mltc memory
cat >compare.py <<'EOT'
import json, sys
memory, plan = (json.load(open(f)) for f in sys.argv[1:])
keep_all = memory["policies"][0]
assert [p["checkpoint"] for p in memory["policies"]] == ["none", "free", "selective", "sqrt", "all"]
up = lambda n: (n + 63) // 64 * 64
def states(*roles):
    return sum(up(b["bytes"]) for b in plan["buffers"] if b.get("role") in roles)
assert keep_all["total"] == plan["totals"]["arena"], (keep_all["total"], plan["totals"])
assert keep_all["weights"] == states("param", "frozen")
assert keep_all["optimiser"] == states("moment")
for p in memory["policies"]:
    kinds = [p[k] for k in ("weights", "optimiser", "gradients", "activations", "other")]
    assert sum(kinds) == p["total"] and min(kinds) >= 0, p
    assert p["most_gradients"] >= p["gradients"], p
    assert p["fits"] is None and memory["available"] is None
    assert p["recomputed"] > 0 or p["recomputed"] == 0 and p["total"] == keep_all["total"], p
assert keep_all["recomputed"] == 0
step = next(f for f in plan["functions"] if f["name"] == "step")
assert keep_all["activations"] + keep_all["gradients"] <= max(f["peak_bytes"] for f in plan["functions"])
EOT
total() { # POLICY : of memory.json
  python3 -c 'import json, sys
print(*[p["total"] for p in json.load(open("memory.json"))["policies"] if p["checkpoint"] == sys.argv[1]])' "$1"
}
declare -A names=([cpu]="char_gpt unet gan" [cuda:sm_90a]="mnist_mlp moe_gpt dlrm")
for target in cpu cuda:sm_90a; do
  [ -z "${MLTC_SLOW:-}" ] || names[$target]="mnist_mlp char_gpt unet gan moe_gpt dlrm"
  for name in ${names[$target]}; do
    file=$root/examples/$name.graph
    "$mltc" memory "$file" --target=$target --json >memory.json
    "$mltc" "$file" --target=$target --checkpoint=none --emit=plan.json >plan.json
    python3 compare.py memory.json plan.json || fail "mltc memory of $name for $target is not its plan"
    case $target in cpu) default=free ;; *) default=none ;; esac
    [ "$(arena "$file" --target=$target)" = "$(total $default)" ] || fail "$name for $target is not compiled as $default"
  done
done
for name in char_gpt ${MLTC_SLOW:+resnet20} unet; do
  file=$root/examples/$name.graph
  "$mltc" memory "$file" --json --gpu=1GiB >memory.json
  budget=$(total selective)
  "$mltc" memory "$file" --json --gpu="$budget" >memory.json
  for policy in none free selective sqrt all auto; do
    bytes=$(arena "$file" --checkpoint="$policy" --memory-budget="$budget" 2>err.txt || true)
    [ "$(total $policy)" = "$bytes" ] || fail "$name under $policy: $(total $policy), and the plan has $bytes"
  done
  [ "$(total auto)" -le "$budget" ] || fail "auto needs more than selective does"
done
"$mltc" "$root/examples/char_gpt.graph" --emit=ir >step.ir
"$mltc" memory "$root/examples/char_gpt.graph" >graph.txt
"$mltc" memory step.ir >ir.txt
same graph.txt ir.txt "memory of a graph and of its IR"
"$mltc" memory "$root/examples/char_gpt.graph" -D B=6 --precision=bf16 --json >memory.json
"$mltc" "$root/examples/char_gpt.graph" -D B=6 --precision=bf16 --emit=plan.json >plan.json
python3 compare.py memory.json plan.json || fail "mltc memory leaves options out"

# The budget is that of auto: the others are what they are without one, and nothing of them is sent to the host.
"$mltc" memory "$root/examples/char_gpt.graph" --target=cuda:sm_90a --memory-budget=20MB --json >budget.json || [ $? -eq 3 ]
"$mltc" memory "$root/examples/char_gpt.graph" --target=cuda:sm_90a --gpu=20MB --json >memory.json || [ $? -eq 3 ]
same budget.json memory.json "memory with --memory-budget and with --gpu"

# --- whether it fits
file=$root/examples/mnist_mlp.graph
bytes=$(arena "$file")
"$mltc" memory "$file" --gpu="$bytes" >out.txt || fail "what fits exactly does not"
grep -q "^none .* fits$" out.txt || fail "no verdict in the table"
code=0
"$mltc" memory "$file" --gpu=1KB --json >out.txt || code=$?
[ "$code" = 3 ] || fail "exit code $code, not 3, for what does not fit"
grep -q '"available":1000,' out.txt || fail "--gpu is not in the JSON"
! grep -q '"fits":true' out.txt || fail "a kilobyte was enough"
expect_error 2 "such as 64MiB" "$mltc" memory "$file" --gpu=much
expect_error 2 "--json belongs to .mltc memory" "$mltc" "$file" --json
expect_error 2 "mltc memory. prints" "$mltc" memory "$file" -o out
expect_error 1 "E0901" "$mltc" memory missing.graph
"$mltc" "$root/examples/char_gpt.graph" --target=cuda:sm_90a --emit=ir >gpu.ir
expect_error 1 "E0903" "$mltc" memory gpu.ir
expect_error 1 "E0506" "$mltc" memory step.ir --precision=bf16

# GPT-2 XL: about a second where each policy has a core, and nobody else has it. The limit is one of
# processor time, on machines that are slow and busy.
if [ -z "${MLTC_SANITIZED:-}" ]; then
  xl=(-D L=48 -D C=1600 -D H=25 -D B=1)
  python3 - "$mltc" memory "$root/examples/gpt2.graph" "${xl[@]}" --gpu=80GiB <<'EOT' || fail "GPT-2 XL"
import resource, subprocess, sys
text = subprocess.run(sys.argv[1:], check=True, capture_output=True, text=True).stdout
used = resource.getrusage(resource.RUSAGE_CHILDREN)
assert "1557611200 parameters" in text and "fits" in text, text
assert used.ru_utime + used.ru_stime < 12, used
EOT
fi

# --- the largest value
answer() { # the value in a line such as "B = 22: 63.3 of 64.0 MiB"
  sed -n 's/^[A-Z] = \([0-9]*\): .* of .*/\1/p' "$1"
}

has_room() { # BUDGET FILE OPTION... : the plan that a compilation makes fits; or it makes none
  local bytes
  bytes=$(arena "${@:2}" --memory-budget="$1" 2>err.txt) && [ "$bytes" -le "$1" ]
}

search() { # NAME STEP BUDGET-BYTES FILE SEARCH-OPTION OPTION...
  local name=$1 step=$2 budget=$3 best
  shift 3
  "$mltc" "$@" --memory-budget="$budget" >out.txt
  best=$(answer out.txt)
  [ -n "$best" ] || fail "no answer: $(cat out.txt)"
  set -- "$1" "${@:3}"
  has_room "$budget" "$@" -D "$name=$best" || fail "$name = $best does not fit $budget"
  ! has_room "$budget" "$@" -D "$name=$((best + step))" || fail "$name = $((best + step)) fits $budget, too"
}
gpt=$root/examples/char_gpt.graph
layers=(-D L=2) # as many as there must be to run some again
for budget in 14000000 67108864; do
  search B 1 "$budget" "$gpt" --max-batch --checkpoint=none "${layers[@]}"
done
search B 1 30000000 "$gpt" --max-batch "${layers[@]}"
search T 1 50000000 "$gpt" --max=T --checkpoint=selective "${layers[@]}"
search C 4 50000000 "$gpt" --max=C --checkpoint=none "${layers[@]}"
grep -q "in steps of 4$" out.txt || fail "heads divide widths that are no multiples of 4"
search B 1 200000 "$root/examples/gan.graph" --max-batch # met by the plan for another budget
search B 1 20000000 "$root/examples/unet.graph" --max-batch --checkpoint=sqrt
[ -z "${MLTC_SLOW:-}" ] || search B 1 200000000 "$root/examples/resnet20.graph" --max-batch --checkpoint=sqrt
search B 1 3000000 "$root/examples/mnist_mlp.graph" --max-batch --target=cuda:sm_90a
bytes=$(arena "$gpt" -D B=17 "${layers[@]}")
search B 1 "$bytes" "$gpt" --max-batch --checkpoint=none "${layers[@]}"
[ "$(answer out.txt)" = 17 ] || fail "the budget of B = 17 gives $(cat out.txt)"
"$mltc" "$gpt" --max-batch --checkpoint=none --memory-budget=64MiB "${layers[@]}" -v 2>err.txt >out.txt
[ "$(grep -c '^B = [0-9]*: [0-9.]* MiB$' err.txt)" -ge 4 ] || fail "-v does not say what was tried"

# Where a value needs more memory than larger ones (H = 2048 almost twice that of 2049), it is searched on above it, but not
# step by step: hundreds fit.
mlp=$root/examples/mnist_mlp.graph
"$mltc" "$mlp" --max=H --memory-budget=10MiB -v --emit=plan 2>err.txt >/dev/null
[ "$(answer err.txt)" -gt 2048 ] || fail "the search ends below a value that needs more: $(tail -n 1 err.txt)"
[ "$(grep -c '^H = [0-9]*: [0-9.]* MiB$' err.txt)" -lt 100 ] || fail "a step at a time"

# What was found is compiled, and printed where that is asked for.
"$mltc" "$mlp" -O0 --max-batch --memory-budget=2MiB -o trainer >out.txt
best=$(answer out.txt)
./trainer info >info.txt
grep -q -- " -D B=$best$" info.txt || fail "the trainer does not say that its batch is $best"
grep -q "^memory  *$(arena "$mlp" -D B="$best" --memory-budget=2MiB) bytes" info.txt || fail "a plan of another batch"
"$mltc" "$mlp" --max-batch --memory-budget=2MiB --emit=plan.json >plan.json 2>err.txt
"$mltc" "$mlp" -D B="$best" --memory-budget=2MiB --emit=plan.json >expected.json
same plan.json expected.json "the plan of what was found and that of its value"
[ "$(answer err.txt)" = "$best" ] || fail "the answer is not on standard error beside --emit"

# --- what cannot be searched for
expect_error 3 "B = 1 needs .* bytes too much" "$mltc" "$gpt" --max-batch --checkpoint=none --memory-budget=4MiB
expect_error 2 "which is not given" "$mltc" "$gpt" --max-batch
expect_error 2 "one search at a time" "$mltc" "$gpt" --max-batch --max=T --memory-budget=1GB
expect_error 2 "'B' is searched for" "$mltc" "$gpt" -D B=4 --max-batch --memory-budget=1GB
expect_error 2 "need a graph file" "$mltc" step.ir --max-batch --memory-budget=1GB
expect_error 1 "E0224" "$mltc" "$root/examples/gcn.graph" --max-batch --memory-budget=1GB
expect_error 1 "E0224.*no constant 'b'" "$mltc" "$gpt" --max=b --memory-budget=1GB
expect_error 1 "E0224.*no constant 'lr'" "$mltc" "$gpt" --max=lr --memory-budget=1GB
cat >two.graph <<'EOT'
let B = 4, N = 4, kind = "x"
model m(x: f[B,8], y: f[N,8]) { loss mean(linear(x, 8) * y) }
optim { sgd(0.1) }
EOT
expect_error 1 "E0224.*batch is 'N' in this input" "$mltc" two.graph --max-batch --memory-budget=1GB
expect_error 1 "E0224.*only a whole number" "$mltc" two.graph --max=kind --memory-budget=1GB
sed -e 's/N,8/B,8/' two.graph >unused.graph
# A row of a few bytes: sizes are rounded up, and several doublings change nothing.
cat >bytes.graph <<'EOT'
let B = 1, P = 1099511627776
model m(x: u8[B]) {
  param w: f32[] = ones
  if P < 0 { error "P is ", P }
  loss mean(f32(x) * w)
}
data { train = idx("none") }
optim { sgd(0.1) }
train { steps = 1 }
EOT
search B 1 20000 bytes.graph --max-batch
"$mltc" bytes.graph --max-batch --memory-budget=1TB >out.txt
[ "$(answer out.txt)" = 1073741824 ] || fail "the search does not end at 2^30: $(cat out.txt)"
expect_error 2 "the search ends at 1073741824" "$mltc" bytes.graph --max=P --memory-budget=1GB
expect_error 1 "does not grow with 'N'" "$mltc" unused.graph --max=N --memory-budget=1GB
sed -e 's/mean(/mean(1 @ /' unused.graph >broken.graph
expect_error 1 "E02" "$mltc" broken.graph --max-batch --memory-budget=1GB
