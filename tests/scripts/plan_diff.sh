#!/usr/bin/env bash
# mltc diff: exit codes of diff(1); what it lists is what two plan.json files really differ in, as
# worked out here a second time; files that are no plans are said to be none, with the place.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash

cp "$root/examples/char_gpt.graph" "$root/examples/gan.graph" .
"$mltc" char_gpt.graph --emit=plan.json -o keep.json
"$mltc" char_gpt.graph --checkpoint=sqrt --emit=plan.json -o sqrt.json
"$mltc" char_gpt.graph -D B=16 --emit=plan.json -o wide.json
"$mltc" gan.graph --emit=plan.json -o gan.json
mkdir other
cp char_gpt.graph other
"$mltc" other/char_gpt.graph --emit=plan.json -o moved.json

# --- the same: also from another folder
"$mltc" diff keep.json keep.json >out.txt || fail "a plan and itself"
grep -qx 'the plans are the same' out.txt
"$mltc" diff keep.json moved.json >out.txt || fail "lines of the graph are compared"
"$mltc" diff keep.json keep.json --json >out.json || fail "a plan and itself"

# --- different
differ() { # A B
  local code=0
  "$mltc" diff "$1.json" "$2.json" >out.txt || code=$?
  [ "$code" = 1 ] || fail "$1 and $2: exit code $code"
  code=0
  "$mltc" diff --json "$1.json" "$2.json" >out.json || code=$?
  [ "$code" = 1 ] || fail "$1 and $2: exit code $code with --json"
  python3 "$root/tests/scripts/lib/check_diff.py" "$1.json" "$2.json" out.json out.txt || fail "$1 and $2"
}
differ keep sqrt
grep -Eq '^    arena +[0-9,]+ +[0-9,]+ +-[0-9,]+  -[0-9.]+%$' out.txt || fail "no line for the arena"
grep -Eq '^  \+ .*\.again +- +[0-9,]+ +\+[0-9,]+  runs .* again$' out.txt || fail "no kernel that runs again"
grep -Eq '^    \.\.\. and [0-9]+ more$' out.txt || fail "not limited"
differ sqrt keep
differ keep wide
differ keep gan
sed '0,/"offset":[0-9]*,/s//"offset":12345,/' keep.json >elsewhere.json
differ keep elsewhere
grep -qx '  1 buffers of one size have another place, life or share' out.txt || fail "a place is not seen"
python3 - <<'PYTHON'
import json
p = json.load(open("keep.json"))
k = p["functions"][0]["kernels"]
k[0], k[1] = k[1], k[0]
json.dump(p, open("swapped.json", "w"))
p["functions"][0]["kernels"] = [k[1], k[0], *k[2:]]
p["functions"][1]["buffers"] += p["functions"][1]["buffers"][:2]
json.dump(p, open("twice.json", "w"))
p["functions"][1]["buffers"] = p["functions"][1]["buffers"][:-2]
p["model"] = "another"
json.dump(p, open("renamed.json", "w"))
p["model"] = "gpt"
p["totals"] = dict(reversed(p["totals"].items()))
json.dump(p, open("turned.json", "w"))
b = p["functions"][1]["buffers"]
b[0], b[1] = b[1], b[0]
json.dump(p, open("listed.json", "w"))
PYTHON
# Memory of the host, and copies to states.
"$mltc" char_gpt.graph --target=cuda:sm_80 --memory-budget=24MiB --emit=plan.json -o host.json
"$mltc" "$root/tests/lit/plan/mlp.ir" --emit=plan.json -o copy.json
python3 - <<'PYTHON'
import json
for name, key, field in (("host", "host", "offset"), ("copy", "copies", "from")):
    p = json.load(open(name + ".json"))
    next(f for f in p["functions"] if f.get(key))[key][0][field] += 64
    json.dump(p, open(name + "_moved.json", "w"))
PYTHON
differ host host_moved
grep -qx '  1 buffers of one size have another place or life on the host' out.txt || fail "a place on the host is not seen"
differ copy copy_moved
grep -qx '  1 copies of one size are of another value or place' out.txt || fail "another copy is not seen"
differ keep host
differ host copy

differ keep swapped
grep -qx '  kernels run in another order' out.txt || fail "an order is not seen"
differ keep twice
differ keep renamed
grep -qx 'gpt: keep.json -> another: renamed.json' out.txt || fail "another model is not named: $(head -1 out.txt)"
differ keep listed
grep -qx '  buffers are listed in another order' out.txt || fail "an order of buffers is not seen"
"$mltc" diff keep.json turned.json >out.txt || fail "members of an object in another order are another plan: $(cat out.txt)"

# --- trouble
trouble() { # PATTERN ARGUMENT...
  expect_error 2 "$1" "$mltc" diff "${@:2}"
}
trouble '^mltc: usage: mltc diff \[--json\] A.json B.json$' keep.json
trouble '^mltc: usage: ' keep.json keep.json keep.json
trouble '^mltc: usage: ' --jsn keep.json keep.json
trouble "^mltc: cannot read 'none.json': No such file or directory$" keep.json none.json
broken() { # PATTERN SED-EXPRESSION: of keep.json
  sed -E "$2" keep.json >broken.json
  trouble "^mltc: broken.json$1$" keep.json broken.json
  trouble "^mltc: broken.json$1$" broken.json keep.json
}
broken ':3: no JSON: .*' '3s/,/;/'
broken ': this is no plan: .*' 's/mltc-plan/mltc-place/'
broken ': a plan of version 2, this mltc reads version 1' 's/"version":1/"version":2/'
broken ': totals.arena is missing' 's/"arena":/"area":/'
broken ': buffers\[0\].bytes is no whole number' '0,/"bytes":[0-9]+/s//"bytes":"8"/'
broken ': buffers\[0\].bytes is below 0' '0,/"bytes":[0-9]+/s//"bytes":-8/'
broken ': functions\[0\].kernels\[0\].flops is missing' '0,/"flops"/s//"flips"/'
broken ': functions\[0\].kernels is no list' '0,/"kernels":\[/s//"kernels":1,"x":[/'
head -c 5000 keep.json >broken.json
trouble '^mltc: broken.json:[0-9]+: no JSON: ends too early$' keep.json broken.json
for text in '' '[]' 'null' '7' '{}' '"mltc-plan"' '{"schema":1}' '{"schema":"mltc-plan"}' '{"schema":"mltc-plan","version":1,"model":{}}' \
  '{"schema":"mltc-plan","version":1,"model":"m","totals":{"arena":1},"buffers":[null],"functions":[]}' \
  '{"schema":"mltc-plan","version":1,"model":"m","totals":{"arena":1},"buffers":[],"functions":[[]]}'; do
  printf '%s' "$text" >broken.json
  trouble '^mltc: broken.json(:1)?: ' keep.json broken.json
done
printf '%s' '{"schema":"mltc-plan","version":1,"model":"m","totals":{"arena":99999999999999999999},"buffers":[],"functions":[]}' >odd.json
differ keep odd
