#!/usr/bin/env bash
# The arena of every example is the lower bound for its order of kernels, to the byte: the most bytes that are
# live at a time, and nothing lost between buffers.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash

found=0
cp -r "$root/examples/data" .
for file in "$root"/examples/*.graph; do
  name=$(basename "$file" .graph)
  "$mltc" "$file" --emit=plan.json -o "$name.json"
  found=$((found + 1))
done
[ "$found" -ge 10 ] || fail "only $found examples"
python3 - <<'PYTHON'
import glob, json, sys

above = []
for file in sorted(glob.glob("*.json")):
    plan = json.load(open(file))
    arena, bound = plan["totals"]["arena"], plan["bound"]
    print("%-12s arena %13d  bound %13d" % (file[:-5], arena, bound))
    if arena != bound:
        above.append("%s: an arena of %d bytes, %d would do" % (file[:-5], arena, bound))
sys.exit("\n".join(above) or 0)
PYTHON

# On every kind of machine, whatever its vectors: what no order and no recomputation can do with less than is far below
# what a plan that keeps everything takes. Workspaces that a tile of one width does without must not come with another.
for model in resnet20:0.20 unet:0.27 gpt2:0.40; do
  for target in x86-64-v3 x86-64-v4 aarch64; do
    "$mltc" "$root/examples/${model%:*}.graph" --target="cpu:$target" --checkpoint=none --emit=plan.json -o least.json
    python3 -c "import json
p = json.load(open('least.json'))
share = p['bound_ws'] / p['totals']['arena']
print('${model%:*} on $target: at least %.3f of what all takes' % share)
assert share <= ${model#*:}, share" || fail "${model%:*} on $target has a kernel that takes too much"
  done
done
