#!/usr/bin/env bash
# examples/gcn.graph on the papers that examples/data/citations.py makes: all layers find the field of
# papers that training has not seen the label of, far better than the words alone; the same bits for any
# number of threads. Labels that a loss ignores are data, other numbers beyond the classes are errors.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
need_plain_build
command -v python3 >python.txt || skip "no python3"

python3 "$root/examples/data/citations.py" papers
python3 "$root/examples/data/citations.py" again
diff -r papers again || fail "citations.py makes other papers"

accuracy() { # KIND
  "$mltc" -O1 -D kind="\"$1\"" "$root/examples/gcn.graph" -o "$1"
  for run in 1 3; do
    "./$1" --data-dir=papers --quiet --no-times --no-save --threads=$run --metrics="$1.$run" >said.txt
  done
  same "$1.1" "$1.3" "metrics of 1 and 3 threads"
  accuracy=$(grep '"eval"' "$1.1" | tail -n 1 | sed 's/.*"accuracy":\([0-9.]*\).*/\1/')
  echo "$1: $accuracy of the papers without label"
}
accuracy gcn
awk -v a="$accuracy" 'BEGIN {exit !(a > 0.91)}' || fail "gcn: $accuracy"
accuracy sage
awk -v a="$accuracy" 'BEGIN {exit !(a > 0.89)}' || fail "sage: $accuracy"
accuracy gat
awk -v a="$accuracy" 'BEGIN {exit !(a > 0.90)}' || fail "gat: $accuracy"
accuracy words
awk -v a="$accuracy" 'BEGIN {exit !(a > 0.4 && a < 0.65)}' || fail "words: $accuracy"

# The label of the last paper, and the source of the last edge.
last() { # FILE BYTES (in octal) MESSAGE
  cp -r papers wrong
  size=$(stat -c %s "wrong/$1")
  printf '%b' "$2" | dd of="wrong/$1" bs=1 seek=$((size - 4)) conv=notrunc status=none
  expect_error 1 "$3" ./gcn --data-dir=wrong --quiet --no-save
  rm -r wrong
}
last train.npy '\05\0\0\0' "element 1199: 5 does not fit input .field.: the model takes whole numbers from 0 to 4, and -1"
last train.npy '\0376\0377\0377\0377' "element 1199: -2 does not fit input"
last source.npy '\0377\0377\0377\0377' "element 7181: -1 does not fit input .source.: .* from 0 to 1199$"

# A comparison with a class does not hide the label that the loss ignores.
sed 's/^  loss /  metric zeros = mean(field == 0)\n  loss /' "$root/examples/gcn.graph" >zeros.graph
"$mltc" -O1 zeros.graph -o zeros
./zeros --data-dir=papers --quiet --no-save --epochs=1
# Nor does any comparison that tells numbers below 0 apart: -1 is a place of padding.
cat >padding.py <<'EOT'
import random, sys
sys.path.insert(0, sys.argv[1])
from npy import write_npy
draw = random.Random(1)
index = [draw.randrange(-1, 6) for _ in range(20 * 5)]
write_npy("index.npy", "<i4", (20, 5), index)
write_npy("values.npy", "<f4", (20, 5), [draw.uniform(-1, 1) for _ in index])
EOT
python3 padding.py "$root/examples/data"
for use in 'index >= 0' 'index > -1' '0 <= index' 'not (index < 0)' 'index != -1' 'index < 3'; do
  cat >padding.graph <<EOT
model m(index: i32[2,5], v: f32[2,5]) {
  param w: f[6] = ones
  loss mean((segment_sum(v * f32($use), index, 6) * w) ** 2)
}
data { train = npy("index.npy", "values.npy") }
optim { sgd(0.1) }
train { steps = 3 }
EOT
  "$mltc" -O0 padding.graph -o padding
  case $use in
    'index < 3') expect_error 1 "-1 does not fit input .index.: .* from 0 to 5$" ./padding --quiet --no-save ;;
    *) ./padding --quiet --no-save || fail "padding of -1 is refused with $use" ;;
  esac
done
echo "networks on graphs: as they should be"
