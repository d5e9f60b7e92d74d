#!/usr/bin/env bash
# examples/dlrm.graph on the clicks that examples/data/clicks.py makes: it learns them, better with the
# products of pairs than without; the same bits for any number of threads, and whether tables are updated by rows or whole. An empty
# place of a bag is -1, other numbers beyond the table are errors.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
need_plain_build
command -v python3 >python.txt || skip "no python3"

python3 "$root/examples/data/clicks.py" clicks
for meet in true false; do
  "$mltc" -O1 -D meet=$meet "$root/examples/dlrm.graph" -o dlrm.$meet
  for run in 1 3; do
    ./dlrm.$meet --data-dir=clicks --quiet --no-times --no-save --threads=$run --metrics=$meet.$run >said.txt
  done
  same $meet.1 $meet.3 "metrics of 1 and 3 threads"
  grep '"eval"' $meet.1 | tail -n 1 | sed 's/.*"loss":\([0-9.]*\).*/\1/' >$meet.loss
done
echo "loss $(cat true.loss) with products, $(cat false.loss) without; a coin has 0.693"
awk '{last[++n] = $1}
  END {exit !(last[1] < 0.35 && last[2] < 0.42 && last[1] < last[2] - 0.02)}' true.loss false.loss || fail "losses"

# Plain SGD updates the rows that a batch names, Adagrad too: the numbers of updating whole tables.
for optimiser in 'sgd(lr)' 'adagrad(lr)' 'adagrad(lr, eps=0)'; do
  sed "s/adagrad(lr)/$optimiser/" "$root/examples/dlrm.graph" >rows.graph
  grep -qF "$optimiser" rows.graph
  "$mltc" -O1 rows.graph -o rows
  "$mltc" -O1 rows.graph --disable-pass=row_updates -o whole
  ./whole info >info.txt
  grep -q '^options .* --disable-pass=row_updates$' info.txt || fail "the trainer does not say which pass was left out"
  "$mltc" rows.graph -D V=1000000 --emit=plan >plan.txt
  grep -q 'table.0.new: scatter' plan.txt || fail "$optimiser: tables are not updated by rows"
  for program in rows whole; do
    ./$program --data-dir=clicks --quiet --no-times --no-save --threads=2 --metrics=$program.2 >said.txt
  done
  ./rows --data-dir=clicks --quiet --no-times --no-save --threads=3 --metrics=rows.3 >said.txt
  same rows.2 rows.3 "$optimiser by rows: metrics of 2 and 3 threads"
  same rows.2 whole.2 "$optimiser: metrics by rows and of whole tables"
done

size=$(stat -c %s clicks/bags.npy)
printf '\024\0\0\0' | dd of=clicks/bags.npy bs=1 seek=$((size - 4)) conv=notrunc status=none
expect_error 1 "20 does not fit input .bags.: the model takes whole numbers from 0 to 19, and -1" \
  ./dlrm.true --data-dir=clicks --quiet --no-save
echo "recommendation: as it should be"
