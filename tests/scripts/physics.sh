#!/usr/bin/env bash
# examples/heat.graph on the measurements that examples/data/heat.py makes: a network that obeys the equation of heat finds
# the rod's diffusivity, 0.1, and no more than the error of the measurements remains; the same bits for any number of threads.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
need_plain_build
command -v python3 >python.txt || skip "no python3"

mkdir rod again
python3 "$root/examples/data/heat.py" rod
python3 "$root/examples/data/heat.py" again
diff -r rod again || fail "heat.py makes other measurements"

"$mltc" -O1 "$root/examples/heat.graph" -o heat
for run in 1 3; do
  ./heat --data-dir=rod --quiet --no-times --no-save --steps=600 --log-every=50 --threads=$run --metrics="$run.jsonl" >said.txt
done
same 1.jsonl 3.jsonl "metrics of 1 and 3 threads"

./heat --data-dir=rod --quiet --no-save --metrics=long.jsonl
field() { # NAME
  grep '"eval"' long.jsonl | tail -n 1 | sed "s/.*\"$1\":\([-+.0-9e]*\).*/\1/"
}
echo "diffusivity $(field a), what does not fit $(field fit)"
awk -v a="$(field a)" 'BEGIN {exit !(a > 0.098 && a < 0.102)}' || fail "diffusivity: $(field a)"
awk -v e="$(field fit)" 'BEGIN {exit !(e < 0.00048)}' || fail "more than the errors of 0.02: $(field fit)"
