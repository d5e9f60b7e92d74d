#!/usr/bin/env bash
# plan.json is as docs/memory.md says: every field it has is in the table there with its type, and every
# field of the table is there; sums and bounds hold, and what kernels read and write are its buffers.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash

for name in digits_mlp char_gpt gan dlrm resnet20; do
  "$mltc" "$root/examples/$name.graph" --emit=plan.json -o $name.json
done
"$mltc" "$root/tests/lit/plan/mlp.ir" --emit=plan.json -o mlp.json # has a copy
"$mltc" "$root/examples/char_gpt.graph" --checkpoint=sqrt --emit=plan.json -o sqrt.json # runs kernels again
"$mltc" "$root/examples/resnet20.graph" --memory-budget=40MB --allow=accumulate --emit=plan.json -o divided.json \
  2>/dev/null # has micro-batches
"$mltc" "$root/examples/char_gpt.graph" --target=cuda:sm_80 --memory-budget=24MiB --emit=plan.json -o host.json # sends
cat >masks.graph <<'EOT'
model m(x: f32[256,32], y: i32[256]) {
  h = linear(x, 64)
  repeat 6 { h = h + dropout(linear(silu(linear(rmsnorm(h), 64)), 64), 0.2) }
  loss cross_entropy(linear(h, 10), y)
}
data { train = npy("x.npy", "y.npy") }
optim { adamw(0.001), clip = 1.0 }
train { steps = 6 }
EOT
"$mltc" masks.graph --target=cpu:x86-64-v3 --memory-budget=1500000 --emit=plan.json -o little.json # of other kernels
python3 "$root/tests/scripts/lib/plan_schema.py" "$root/docs/memory.md" ./*.json || fail "plan.json is not as documented"

# The check itself sees what is wrong.
broken() { # WHAT SED-EXPRESSION
  sed "$2" digits_mlp.json >broken.json
  ! cmp -s digits_mlp.json broken.json || fail "nothing is broken: $1"
  ! python3 "$root/tests/scripts/lib/plan_schema.py" "$root/docs/memory.md" broken.json >said.txt 2>&1 || fail "not seen: $1"
}
broken "a field that is not documented" '0,/"bound":/s//"bond":1,\n"bound":/'
broken "a number as text" '0,/"bound":\([0-9]*\)/s//"bound":"\1"/'
broken "another share" '0,/"share":"moment"/s//"share":"momentum"/'
broken "another peak" '0,/"peak_kernel":\([0-9]*\)/s//"peak_kernel":1\1/'
broken "memory taken over from nobody" '0,/"in_place_of":"/s//"in_place_of":"x/'
broken "kernels that run again, where none do" '0,/"recomputed":{ *$/!b;n;s/"kernels":0/"kernels":1/'
broken "a buffer that is nowhere" '0,/"@linear.w"/s//"@linear.v"/'

# The table has all buffers, too, each in one place: for a GPU as well, where lives are longer than they must be.
for target in cpu:x86-64-v3 cuda:sm_80; do
  "$mltc" "$root/examples/gan.graph" --target=$target --emit=plan >table.txt
  "$mltc" "$root/examples/gan.graph" --target=$target --emit=plan.json >all.json
  sed -n '/^  kernels, and/,/^function/s/^    \([^ ]*\) *\(temporary\|workspace\|result\) .*/\1/p' table.txt | sort >in_table.txt
  python3 -c "import json
for f in json.load(open('all.json'))['functions']:
    for b in f['buffers']: print(b['name'])" | sort >in_json.txt
  same in_table.txt in_json.txt "buffers in the table and in plan.json for $target"
done
