#!/usr/bin/env bash
# The networks of tests/bench/zoo compile, and each has its like in PyTorch and a line in the README.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash

zoo="$root/tests/bench/zoo"
for graph in "$zoo"/*.graph; do
  name=$(basename "$graph" .graph)
  "$mltc" "$graph" --emit=kernels >kernels.txt || fail "$name does not compile"
  grep -q '^step:' kernels.txt || fail "$name has no step"
  grep -q "^    \"$name\": (" "$zoo/networks.py" || fail "networks.py lacks $name"
  grep -q "\`$name\`" "$zoo/README.md" || fail "README.md lacks $name"
done
listed=$(grep -c '^    "[a-z]*": (' "$zoo/networks.py")
[ "$listed" = "$(find "$zoo" -name '*.graph' | wc -l)" ] || fail "networks.py has $listed networks"
