#!/usr/bin/env bash
# A run that is killed anywhere and resumed ends in the same checkpoint and metrics, byte for byte, as
# one that was left alone. SIGTERM ends a step, saves and exits with 143.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
RANDOM=20240807 # rounds are the same in every run of this script, as far as the clock lets them be

"$mltc" -O1 "$root/examples/digits_mlp.graph" -o trainer
epochs=30
[ -z "${MLTC_SANITIZED:-}" ] || epochs=3
options=(--quiet "--epochs=$epochs" --log-every=10 --no-times)
begun=${EPOCHREALTIME/[.,]/}
./trainer "${options[@]}" --threads=2 --save=whole.safetensors --metrics=whole.jsonl --save-every=50
took=$(((${EPOCHREALTIME/[.,]/} - begun) / 1000)) # ms

wait_for() { # FILE
  local tries=0
  until [ -s "$1" ]; do
    tries=$((tries + 1))
    [ $tries -lt 2000 ] || fail "$1 does not appear"
    sleep 0.005
  done
}

pause() { # up to 0.3 s, and to half of what a whole run takes
  local most=$((took / 2 < 300 ? took / 2 + 1 : 300))
  sleep "0.$(printf %03d $((RANDOM % most)))"
}

same_end() { # NAME
  same whole.safetensors "$1.safetensors" "checkpoints of $1"
  same whole.jsonl "$1.jsonl" "metrics of $1"
  [ ! -e "$1.safetensors.tmp" ] || fail "$1: a temporary file is left"
}

# --- kill -9, again and again, until the run is through
killed=0
for round in 1 2 3 4 5; do
  name=killed_$round
  every=$((RANDOM % 3 * 20 + 1)) # 1: many kills fall into a save
  rm -f stop
  for attempt in $(seq 100); do
    resume=()
    [ ! -e "$name.safetensors" ] || resume=(--resume)
    [ -e "$name.safetensors" ] || rm -f "$name.jsonl"
    ./trainer "${options[@]}" "${resume[@]}" --threads=$((RANDOM % 3 + 1)) \
      --save="$name.safetensors" --metrics="$name.jsonl" --save-every=$every &
    pid=$!
    if [ "$attempt" -gt 4 ]; then # long enough: let it end
      wait $pid || fail "$name: the last attempt failed"
      break
    fi
    pause
    if kill -9 $pid 2>/dev/null; then
      killed=$((killed + 1))
    fi
    code=0
    wait $pid 2>/dev/null || code=$?
    [ $code -ne 0 ] || break
    [ $code -eq 137 ] || fail "$name: exit code $code"
  done
  same_end "$name"
done
[ "$killed" -ge 8 ] || fail "only $killed runs were killed before they ended"

# --- the same command again, killed anywhere: the checkpoint of the first run is there, whole, and so is what it is
# under the name that both save to
for round in 1 2 3 4 5 6; do
  rm -f again.safetensors again.safetensors.old # which may be two names of one file
  cp whole.safetensors again.safetensors
  ./trainer "${options[@]}" --seed=$round --save=again.safetensors --save-every=1 &
  pid=$!
  case $round in
    1 | 2) pause ;;
    *) wait_for again.safetensors.old ;; # right in the first save, or soon behind it
  esac
  kill -9 $pid 2>/dev/null || true
  wait $pid 2>/dev/null || true
  cmp -s whole.safetensors again.safetensors || same whole.safetensors again.safetensors.old "what was kept"
  ./trainer eval --quiet --resume=again.safetensors >out.txt || fail "round $round: half a checkpoint"
done

# --- a polite stop: the step is finished, the state saved, and the rest comes out the same
for signal in TERM INT; do
  name=stopped_$signal
  code=0
  (exec env --default-signal=INT ./trainer "${options[@]}" --threads=2 --save=$name.safetensors \
    --metrics=$name.jsonl) &
  pid=$!
  wait_for $name.jsonl
  kill -$signal $pid
  wait $pid || code=$?
  [ $code -eq $((128 + $(kill -l $signal))) ] || fail "exit code $code after SIG$signal"
  cp $name.safetensors early.safetensors
  ! cmp -s early.safetensors whole.safetensors || fail "SIG$signal came too late"
  ./trainer "${options[@]}" --resume --threads=3 --save=$name.safetensors --metrics=$name.jsonl
  same_end $name
done

# --- also where nobody reads what it has to say: it is saved first, and no line of --metrics is lost
mkfifo full
exec 3<>full
lines=$(wc -l <whole.jsonl)
for what in stdout metrics; do
  name=full_$what
  head -c 65536 /dev/zero >&3
  case $what in
    stdout) ./trainer "${options[@]:1}" --save=$name.safetensors --metrics=$name.jsonl >full & ;;
    metrics) ./trainer "${options[@]}" --save=$name.safetensors --metrics=full & ;;
  esac
  pid=$!
  code=0
  sleep 1.5 # it waits for somebody to read by now
  kill -0 $pid || fail "a full pipe: it does not wait"
  kill -TERM $pid
  wait_for $name.safetensors
  if [ $what = metrics ]; then
    head -c 65536 <&3 >zeros.bin # there is room again
    sleep 0.2
  fi
  wait $pid || code=$?
  [ $code -eq 143 ] || fail "exit code $code after SIGTERM with a full pipe"
  case $what in
    stdout) head -c 65536 <&3 >zeros.bin ;;
    metrics)
      IFS= read -r -t 10 line <&3 || fail "the line that waited is lost"
      [ "$line" = "$(head -n 1 whole.jsonl)" ] || fail "the line that waited is '$line'"
      echo "$line" >$name.jsonl
      ;;
  esac
  ./trainer "${options[@]}" --resume --save=$name.safetensors --metrics=$name.jsonl
  same_end $name
done
exec 3>&-
[ "$lines" = "$(wc -l <full_metrics.jsonl)" ] || fail "other lines"

# --- a bad label: what was done before it is saved, and with the file repaired the rest comes out the same, also where
# a step is in the making: sums of gradients, what dropout draws and running means are states like any other
cat >labels.graph <<'GRAPH'
model labels(x: f32[4,6], y: i32[4]) {
  h = dropout(relu(batchnorm(linear(x / 64, 8))), 0.2)
  loss cross_entropy(linear(h, 3), y)
}
data {
  train = idx("x.idx", "y.idx")
  test = idx("x.idx", "z.idx")
}
optim { adamw(0.01) }
train { steps = 12, accumulate = 2, shuffle = false, log every 5, eval = test every 4 }
GRAPH
write_idx() { # FILE FACTOR MODULUS AXIS... : numbers of a byte that repeat; that of sample $bad is 9
  local file=$1 factor=$2 modulus=$3 bytes=1 text number i
  shift 3
  printf -v text '\\0%03o' 0 0 8 $#
  for i in "$@"; do
    printf -v number '\\0%03o' 0 0 0 "$i"
    text+=$number
    bytes=$((bytes * i))
  done
  for ((i = 0; i < bytes; i++)); do
    printf -v number '\\0%03o' $((i == bad ? 9 : i * factor % modulus))
    text+=$number
  done
  printf '%b' "$text" >"$file"
}
bad=-1
"$mltc" -O1 labels.graph -o labels
write_idx x.idx 37 101 48 6
write_idx y.idx 5 3 48
cp y.idx z.idx
labels=(./labels --quiet --no-times --threads=2)
mkdir whole
mv whole.* whole
"${labels[@]}" --save=whole.safetensors --metrics=whole.jsonl
try_label() { # FILE SAMPLE SPLIT STEP
  local name=bad_$2 said="$1: sample $2, .*9 does not fit"
  cp "$1" good.idx
  bad=$2 write_idx "$1" 5 3 48
  expect_error 1 "$said" "${labels[@]}" "--save=$name.safetensors" "--metrics=$name.jsonl"
  grep -q "'$name.safetensors' is saved, after step $4: go on with --resume=" err.txt || fail "$(cat err.txt)"
  expect_error 1 "$said" ./labels eval "--save=$name.safetensors" "--split=$3"
  cp good.idx "$1"
  "${labels[@]}" --resume "--save=$name.safetensors" "--metrics=$name.jsonl"
  same_end "$name"
}
try_label y.idx 26 train 3 # in the first batch of step 4
try_label y.idx 29 train 3 # in the second
try_label z.idx 47 test 4
mv whole/* .

# --- a flag that holds whole numbers now takes no other one from a checkpoint
cp -r "$root/examples/data" .
for rate in 0.5 1; do
  sed -E "s/lr = [0-9.e-]+/lr = $rate/" "$root/examples/digits_mlp.graph" >rate.graph
  "$mltc" -O0 rate.graph -o "rate-$rate"
done
./rate-0.5 --quiet --epochs=1 --save=rate.safetensors
expect_error 1 'made with --lr=0.5, which the flag cannot be any more' ./rate-1 --quiet --epochs=2 --resume --save=rate.safetensors
./rate-1 --quiet --epochs=2 --resume --save=rate.safetensors --lr=2 || fail "another value of the flag is refused"
sed -E 's/\blr\b/pace/g' rate.graph >pace.graph
"$mltc" -O0 pace.graph -o pace
./pace eval --resume=rate.safetensors --data-dir=. >pace.txt || fail "a checkpoint of a program with another flag"
notes=$(grep -c "^note: 'rate.safetensors' \(was made with --lr=2, a flag that this program has not\|says nothing of the flag --pace: it is 1\)$" pace.txt)
[ "$notes" = 2 ] || fail "a renamed flag is not said: $(cat pace.txt)"
grep -q "^note: 'data/digits.csv.gz' is carried in the program: './data/digits.csv.gz' is not read$" pace.txt ||
  fail "a file that is not read is not said"

# --- a file that must not be replaced: said before the first step; when it becomes one later, nothing is lost
cp whole.safetensors fixed.safetensors
trap 'chattr -i "$scratch"/fixed* 2>/dev/null || true; rm -rf "$scratch"' EXIT
if chattr +i fixed.safetensors 2>chattr.txt; then
  expect_error 1 "cannot write the checkpoint 'fixed.safetensors': Operation not permitted$" ./trainer "${options[@]}" \
    --save=fixed.safetensors
  [ ! -e fixed.safetensors.tmp ] || fail "a temporary file is left"
  chattr -i fixed.safetensors
  echo old >fixed.safetensors.old # where this run would keep what is there
  chattr +i fixed.safetensors.old
  expect_error 1 "cannot write the checkpoint 'fixed.safetensors': 'fixed.safetensors.old': Operation not permitted" \
    ./trainer "${options[@]}" --save=fixed.safetensors
  chattr -i fixed.safetensors.old
  rm fixed.safetensors fixed.safetensors.old
  ./trainer "${options[@]}" --save=fixed.safetensors --metrics=fixed.jsonl 2>err.txt &
  pid=$!
  wait_for fixed.jsonl
  cp whole.safetensors fixed.safetensors
  chattr +i fixed.safetensors
  code=0
  wait $pid || code=$?
  [ $code -eq 1 ] || fail "exit code $code, though the file could not be replaced"
  grep -q "Operation not permitted; it is whole in 'fixed.safetensors.tmp'" err.txt || fail "$(cat err.txt)"
  same whole.safetensors fixed.safetensors.tmp "checkpoints, one under its temporary name,"
  chattr -i fixed.safetensors
fi

# --- --resume of what is done does nothing, and says so with exit code 0
cp whole.safetensors done.safetensors
./trainer "${options[@]}" --resume --save=done.safetensors
same whole.safetensors done.safetensors "checkpoints after resuming what was done"
