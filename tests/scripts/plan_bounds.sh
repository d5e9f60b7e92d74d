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
