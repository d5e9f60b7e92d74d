#!/usr/bin/env bash
# Values that wait in memory of the host: programs for a GPU under a budget give the same bits as one that keeps
# all, whether copies are done early, late or in between, in a CUDA graph or not, and after a resume. What is
# said of them holds: the budget, the plan, the IR, plan.json read back. The driver is the stand-in, which knows
# what streams and events allow; kernels run on the emulator.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
source "$root/tests/scripts/lib/gpu.bash"
need_plain_build
export MLTC_CUDA_DRIVER=$driver MLTC_STANDIN_FAST=1

cat >chain.graph <<'EOT'
let B = 64, L = 10
flag steps = 6
block layer(x: f[b,c]) -> f[b,c] {
  return x + linear(dropout(tanh(linear(x, 2*c)), 0.1), c)
}
model chain(x: f32[B,32]) {
  repeat i in L { x = layer(x) }
  loss mean(linear(x, 10) ** 2)
}
data { train = npy("points.npy") }
optim { adam(0.01) }
train { steps = steps, seed = 0 }
EOT
PYTHONPATH=$root/examples/data python3 -c 'import random
from npy import write_npy
draw = random.Random(1).random
write_npy("points.npy", "<f4", (512, 32), [draw() for _ in range(512 * 32)])'
gpu=(chain.graph --target=cuda:sm_80)

# --- plans: at most the budget; what runs again, and what is sent
"$mltc" "${gpu[@]}" --emit=plan.json -o all.json
share() { # NAME PERCENT OPTION...
  local name=$1 budget
  budget=$(python3 -c "import json; print(json.load(open('all.json'))['totals']['arena'] * $2 // 100)")
  shift 2
  "$mltc" "${gpu[@]}" --memory-budget="$budget" "$@" || fail "$name"
}
share free 98 --emit=plan.json -o free.json     # copies alone, which cost nothing
share mixed 80 --emit=plan.json -o mixed.json   # some kernels run again
share waits 70 --emit=plan.json -o waits.json   # kernels wait
share device 80 --disable-pass=offload --emit=plan.json -o device.json
python3 - <<'PYTHON' || fail "plans"
import json

def load(name):
    p = json.load(open(name + ".json"))
    step = next(f for f in p["functions"] if f["name"] == "step")
    again = sum(k["clone_of"] is not None for k in step["kernels"])
    return p["totals"], step, again, step.get("sent", {"values": 0, "waiting": 0})

whole = load("all")[0]["arena"]
for name, percent, runs_again, sends, waits in (("free", 98, False, True, False), ("mixed", 80, True, True, False),
                                                ("waits", 70, None, True, True), ("device", 80, True, False, False)):
    totals, step, again, sent = load(name)
    assert totals["arena"] <= whole * percent // 100, name
    assert runs_again is None or (again > 0) == runs_again, (name, again)
    assert (sent["values"] > 0) == sends and (sent["waiting"] > 0) == waits, (name, sent)
    assert ("host" in totals) == sends == ("host" in step), name
    assert all(b["offset"] + b["bytes"] <= totals["host"] for b in step.get("host", [])), name
PYTHON
# What is found to fit is packed in the same way when it comes to sending: here by the hair's breadth that only the steps
# of a budget reach. Else values were sent that need not be, and kernels waited longer with more memory.
cat >skip.graph <<'EOT'
let B = 128, L = 10, H = 32
model skip(x: f32[B,16], y: i32[B]) {
  all = linear(x, H)
  repeat i in L {
    h = relu(batchnorm(linear(all, H)))
    all = concat([all, h + 0.1 * normal([B, H])], axis=1)
  }
  loss cross_entropy(linear(all, 10), y)
}
data { train = npy("x.npy", "y.npy") }
optim { sgd(0.01, momentum=0.9) }
train { steps = 6, seed = 3 }
EOT
"$mltc" skip.graph --target=cuda:sm_90a --emit=plan.json -o skip.json
whole=$(python3 -c "import json; print(json.load(open('skip.json'))['totals']['arena'])")
for percent in 96 100; do
  "$mltc" skip.graph --target=cuda:sm_90a --memory-budget=$((whole * percent / 100)) --emit=plan.json -o skip.json
  python3 -c "import json
p = json.load(open('skip.json'))
waiting = max(f.get('sent', {}).get('waiting', 0) for f in p['functions'])
assert p['ratios']['recompute_time'] + waiting < 1.03, (p['ratios'], waiting)" || fail "$percent% of what all values take"
done
"$mltc" "${gpu[@]}" --memory-budget=1MiB --emit=ir -o fits.ir # nothing to do
! grep -q ' send ' fits.ir || fail "sent what fits"
"$mltc" chain.graph --memory-budget=700KB --emit=ir -o cpu.ir
! grep -qE ' send |host_bandwidth' cpu.ir || fail "a CPU sends"

# --- the IR and plan.json can be compiled again
share ir 80 --emit=ir -o mixed.ir
grep -q ' send begin=' mixed.ir || fail "no send in the IR"
"$mltc" mixed.ir --target=cuda:sm_80 --emit=ir -o again.ir
same mixed.ir again.ir "IR with sends, and what was compiled from it"
! "$mltc" mixed.ir --emit=ir -o cpu.ir 2>said.txt || fail "sends on a CPU"
grep -q "family 'send', which cpu" said.txt || fail "$(cat said.txt)"
share edited 80 --plan=mixed.json --emit=ir -o edited.ir
"$mltc" "${gpu[@]}" --plan=waits.json --emit=plan.json -o nobudget.json # waits as long, whatever the budget
python3 -c 'import json
a, b = ([f.get("sent") for f in json.load(open(name))["functions"]] for name in ("waits.json", "nobudget.json"))
assert a == b, (a, b)' || fail "a plan file without a budget"
same mixed.ir edited.ir "IR, and what plan.json leads to"
edit() { # WHAT-IS-SAID PYTHON, with the kernels of step as k and the first fetch as fetch
  python3 -c "import json
p = json.load(open('mixed.json'))
step = next(f for f in p['functions'] if f['name'] == 'step')
k = step['kernels']
fetch = next(i for i, x in enumerate(k) if x['family'] == 'fetch')
$2
json.dump(p, open('edited.json', 'w'))"
  ! "$mltc" "${gpu[@]}" --plan=edited.json --emit=ir -o edited.ir 2>said.txt || fail "compiles: $1"
  grep -qF "$1" said.txt || fail "not '$1': $(cat said.txt)"
}
edit "is sent and never fetched" "del k[fetch]"
edit "a fetch of what has been fetched" "k.insert(fetch, dict(k[fetch], name='twice'))"
edit '"begin" must name a kernel between' "k[fetch]['begin'] = k[0]['name']"
edit "a fetch reads what one send before it writes" "k[fetch]['reads'] = ['x.none']"
edit "nothing behind it reads what is fetched" "k.insert(len(k) - 1, k.pop(fetch))"
edit "a send reads what one kernel before it writes" "next(x for x in k if x['family'] == 'send')['reads'] = ['x.none']"

# --- programs
[ -e "$driver" ] || skip "no stand-in driver in this build"
names=(mixed waits ${MLTC_SLOW:+free})
for name in all "${names[@]}"; do
  plan=("--memory-budget=$(python3 -c "import json; print(json.load(open('$name.json'))['totals']['arena'])")")
  "$mltc" "${gpu[@]}" "${plan[@]}" --keep="$name-kept" -o "$name" 2>err.txt || {
    grep -qi nvrtc err.txt && skip "no NVRTC: $(head -n 1 err.txt)"
    cat err.txt
    fail "$name"
  }
done
libraries all-kept "${names[@]/%/-kept}" >libraries.txt
train() { # NAME SEED OPTION...
  local name=$1 seed=$2
  shift 2
  MLTC_STANDIN_KERNELS=$(find "$name-kept" -name 'kernels_*.so' -printf "$PWD/%p:") MLTC_STANDIN_SEED=$seed \
    "./$name" --quiet --no-times --log-every=1 --metrics=now.jsonl --save=now.safetensors "$@" || fail "$name, seed $seed $*"
}
train all 0
mv now.jsonl all.jsonl
mv now.safetensors all.safetensors
runs=0 seeds="1 2 ${MLTC_SLOW:+0 3 4 5 6 7}"
for name in "${names[@]}"; do
  for seed in $seeds; do
    for graph in '' --no-cuda-graph; do
      train "$name" "$seed" ${graph:+"$graph"}
      same all.jsonl now.jsonl "metrics of $name, seed $seed $graph"
      same all.safetensors now.safetensors "checkpoint of $name, seed $seed $graph"
      runs=$((runs + 1))
    done
  done
done
train waits 5 --steps=3
mv now.safetensors half.safetensors
train waits 6 --resume=half.safetensors --steps=6
same all.safetensors now.safetensors "checkpoint after a resume"
host=$(python3 -c "import json; print(json.load(open('waits.json'))['totals']['host'])")
./waits info >info.txt
grep -q "^ *$host bytes, pinned: values that wait there" info.txt || fail "$(head -n 20 info.txt)"
MLTC_STANDIN_KERNELS=$(find waits-kept -name 'kernels_*.so' -printf "$PWD/%p:") ./waits check >check.txt || fail "check: $(tail -n 3 check.txt)"
! MLTC_STANDIN_FAULT=cuMemHostAlloc:1:2 MLTC_STANDIN_KERNELS=$(find waits-kept -name 'kernels_*.so' -printf "$PWD/%p:") \
  ./waits --quiet 2>said.txt || fail "no memory of the host, and no error"
grep -q "values that wait there ($host)" said.txt || fail "$(cat said.txt)"
echo "$runs runs under three budgets: the same bits"
