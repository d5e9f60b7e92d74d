#!/usr/bin/env bash
# --plan=FILE.json: a plan that was printed compiles to the same plan; kernels may be put in another order or
# run again, and buffers moved, and the trainer gives the same bits; what does not work is refused, with
# the place in the file.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash

cp "$root/examples/data/digits.csv.gz" .
sed 's|"data/|"|g' "$root/examples/digits_mlp.graph" >m.graph
plan() { "$mltc" m.graph --emit=plan.json "$@"; }
edit() { # OUT PYTHON : of plan.json, with step the function's kernels k and buffers b
  python3 -c "import json
p = json.load(open('plan.json'))
step = next(f for f in p['functions'] if f['name'] == 'step')
k, b = step['kernels'], step['buffers']
$2
json.dump(p, open('$1', 'w'))"
}

# --- nothing edited
for policy in none sqrt; do
  plan --checkpoint=$policy >$policy.json
  plan --plan=$policy.json >again.json
  same $policy.json again.json "a plan under $policy, and what was compiled with it"
done

# For a GPU, too, where values get longer lives so that kernels may share launches; and without offsets.
plan --target=cuda:sm_90a >cuda.json
plan --target=cuda:sm_90a --plan=cuda.json >again.json
same cuda.json again.json "a plan for a GPU, and what was compiled with it"
python3 -c "import json
p = json.load(open('cuda.json'))
for f in p['functions']:
    for b in f['buffers']: del b['offset']
json.dump(p, open('free.json', 'w'))"
plan --target=cuda:sm_90a --plan=free.json >again.json
same cuda.json again.json "a plan for a GPU, and what was compiled without its offsets"

# A value may have the name that a workspace would get: then the workspace has another.
cat >names.graph <<'EOF'
let B = 4096
block sums(x: f[b,c], id: i[b]) -> f[100,c] {
  workspace = tanh(linear(x, c))
  return segment_sum(workspace, id, 100)
}
model names(x: f32[B,16], id: i32[B], label: i32[B]) {
  h = sums(x, id) as h
  loss cross_entropy(x @ transpose(h, [1, 0]), label)
}
data { train = npy("x.npy", "id.npy", "label.npy") }
optim { sgd(0.1) }
train { steps = 1 }
EOF
"$mltc" names.graph --target=cuda:sm_80 --emit=plan.json >names.json
python3 -c "import json
for f in json.load(open('names.json'))['functions']:
    for b in f['buffers']: print(f['name'], b['name'], b['kind'])" | grep -E '^step h.workspace' | sort >said.txt
printf '%s\n' 'step h.workspace temporary' 'step h.workspace.2 workspace' >want.txt
same said.txt want.txt "names of a value and a workspace"
"$mltc" names.graph --target=cuda:sm_80 --plan=names.json --emit=plan.json >again.json
same names.json again.json "a plan whose names are like each other, and what was compiled with it"

code=0
"$mltc" none.json 2>err.txt || code=$?
[ $code -eq 1 ] || fail "exit code $code for a plan in the graph's place"
grep -q "error\[E0508\]: 'none.json' is a plan, not a graph" err.txt || fail "what a plan in the graph's place is told"

# --- the same bits
plan >plan.json
train() { # NAME OPTION...
  local name=$1
  shift
  "$mltc" -O0 m.graph "$@" -o trainer
  ./trainer --quiet --epochs=1 --threads=2 --save="$name.safetensors" --no-times --metrics="$name.jsonl"
}
train plain
# A kernel that reads nothing but states and inputs moves to the front; its buffers are packed anew.
edit order.json "
free = [i for i, x in enumerate(k) if x['bytes_written'] and i > 0]
for i in free:
    names = [x['name'] for x in k]
    try_ = k[:]
    try_.insert(0, try_.pop(i))
    open('candidates', 'a').write(json.dumps([x['name'] for x in try_]) + '\n')
for x in b: del x['offset']"
moved=no
while read -r names && [ $moved = no ]; do
  edit order.json "
names = json.loads('''$names''')
step['kernels'] = [next(x for x in k if x['name'] == n) for n in names]
for x in b: del x['offset']"
  if plan --plan=order.json >order_plan.json 2>/dev/null; then
    moved=yes
    train order --plan=order.json
    ./trainer info >info.txt
    grep -q '^options .* --plan=order.json$' info.txt || fail "the trainer does not say that its plan was edited"
    same plain.safetensors order.safetensors "checkpoints after another order"
    python3 -c "import json
names = json.loads('''$names''')
step = next(f for f in json.load(open('order_plan.json'))['functions'] if f['name'] == 'step')
assert [k['name'] for k in step['kernels']] == names" || fail "the kernels do not have the order of the file"
  fi
done <candidates
[ $moved = yes ] || fail "no kernel could be moved"
# The first kernel runs again right after the loss.
edit twice.json "
at = next(i for i, x in enumerate(k) if 'loss' in x['name'])
k.insert(at + 1, dict(k[0], name='mine', clone_of=k[0]['name']))
for x in b: del x['offset']"
train twice --plan=twice.json
same plain.safetensors twice.safetensors "checkpoints after a kernel that runs again"
[ "$(plan --plan=twice.json | grep -c '"clone_of": *"')" -eq 1 ] || fail "no kernel runs again"
# All temporaries of step lie higher.
edit higher.json "
for x in b: x['offset'] += 4096"
train higher --plan=higher.json
same plain.safetensors higher.safetensors "checkpoints after moved buffers"
plan --plan=higher.json >higher_plan.json
python3 -c "import json
places = lambda name: {b['name']: b['offset'] for f in json.load(open(name))['functions']
                       if f['name'] == 'step' for b in f['buffers']}
asked, got = places('higher.json'), places('higher_plan.json')
assert asked and asked == got, (asked, got)" || fail "buffers are not where the file says"
# Nothing else of the file counts, nor need it be there.
python3 -c "import json
p = json.load(open('higher.json'))
json.dump({'schema': p['schema'], 'version': p['version'], 'functions': [
    {'name': f['name'], 'kernels': [{n: x[n] for n in ('name', 'clone_of') if x.get(n)} for x in f['kernels']],
     'buffers': [{n: x[n] for n in ('name', 'offset')} for x in f['buffers']]}
    for f in p['functions'] if f['name'] == 'step']}, open('short.json', 'w'))"
plan --plan=short.json >short_plan.json
cmp -s higher_plan.json short_plan.json || fail "a file of what counts makes another plan"

# --- what does not work
refuse() { # PATTERN PYTHON
  edit bad.json "$2"
  expect_error 1 "$1" "$mltc" m.graph --plan=bad.json --emit=plan
}
refuse "functions\[[0-9]+\].kernels\[0\]: .* reads %.* must come before" "k.insert(0, k.pop())"
refuse "kernels\[[0-9]+\]: '.*' is missing" "k.pop()"
refuse "kernels\[[0-9]+\]: .* reads %.*: .*, which makes it, is missing" "k.pop(0)"
refuse "step has no kernel 'nobody'" "k[0]['name'] = 'nobody'"
refuse "has run already" "k.append(k[0])"
refuse "runs '.*' again before it has run|runs again before it has run" "k[0]['clone_of'] = k[1]['name']"
refuse "error\[E0508\]: .*has no function 'stride'" "step['name'] = 'stride'"
refuse "functions\[[0-9]+\]: this is the second function 'step'" "p['functions'].append(step)"
refuse "function step has no buffer 'nobody'" "b[0]['name'] = 'nobody'"
refuse "function step has a second buffer" "b.append(b[0])"
refuse "is no multiple of 64" "b[0]['offset'] += 1"
refuse "lies in states and batches" "b[0]['offset'] = 0"
refuse "breaks [0-9]+ rule" "
for x in b: x['offset'] = b[0]['offset']"
grep -q '^help: buffers without an offset are packed' err.txt || fail "places that do not work: no help"
refuse "is no whole number" "b[0]['offset'] = 'here'"
refuse "functions\[[0-9]+\].buffers\[0\].offset is too large" "b[0]['offset'] = 2**63"
refuse "functions\[[0-9]+\].kernels is missing" "del step['kernels']"
refuse "remake is not \"little\"" "p['remake'] = 'much'"
echo '{"schema": "something"}' >bad.json
expect_error 1 "bad.json" "$mltc" m.graph --plan=bad.json --emit=plan
expect_error 1 "cannot read 'none_such.json'" "$mltc" m.graph --plan=none_such.json --emit=plan
expect_error 2 "goes with no --checkpoint" "$mltc" m.graph --plan=plan.json --checkpoint=sqrt --emit=plan
