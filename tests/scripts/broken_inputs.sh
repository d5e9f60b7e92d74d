#!/usr/bin/env bash
# Truncated, corrupted or missing files, and wrong usage: one clear error, the right exit code, no
# stray files; an earlier checkpoint stays as it was.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash

cp "$root/examples/data/digits.csv.gz" .
grep -v '^#' "$root/examples/digits_mlp.graph" | sed -e 's|"data/|"|g' -e 's/, *embed=true//' >digits.graph
"$mltc" -O1 digits.graph -o trainer
run=(./trainer --quiet --epochs=2)
"${run[@]}" --save=good.safetensors
cp good.safetensors kept.safetensors

head_of() { # FILE BYTES
  head -c "$2" "$1"
}

overwrite() { # FILE AT TEXT
  printf '%s' "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# --- checkpoints
size=$(stat -c %s good.safetensors)
for bytes in 0 4 8 9 100 1000 $((size - 1)); do
  head_of good.safetensors "$bytes" >bad.safetensors
  expect_error 1 "bad.safetensors" "${run[@]}" --resume=bad.safetensors --save=good.safetensors
done
for at in 0 5 9 300 $((size / 2)) $((size - 1)); do
  cp good.safetensors bad.safetensors
  overwrite bad.safetensors "$at" "#"
  cmp -s good.safetensors bad.safetensors && overwrite bad.safetensors "$at" "~"
  expect_error 1 "bad.safetensors" "${run[@]}" --resume=bad.safetensors --save=good.safetensors
done
head -c 5000 /dev/urandom >bad.safetensors
expect_error 1 "bad.safetensors" "${run[@]}" --resume=bad.safetensors --save=good.safetensors
cat good.safetensors good.safetensors >bad.safetensors
expect_error 1 "bad.safetensors" "${run[@]}" --resume=bad.safetensors --save=good.safetensors
expect_error 1 "missing.safetensors" "${run[@]}" --resume=missing.safetensors
expect_error 1 "missing.safetensors" "${run[@]}" eval --resume=missing.safetensors
mkdir folder
expect_error 1 "folder" "${run[@]}" --resume=folder
expect_error 2 "seed" "${run[@]}" --resume=good.safetensors --seed=5 --save=good.safetensors
"$mltc" -O0 -D H=24 digits.graph -o narrower
expect_error 1 "different|other|F32\[24" ./narrower --quiet --resume=good.safetensors --save=good.safetensors
same good.safetensors kept.safetensors "the checkpoint before and after errors"

# --- data
mkdir data
try_data() { # PATTERN
  expect_error 1 "$1" "${run[@]}" --data-dir=data --save=good.safetensors
  same good.safetensors kept.safetensors "the checkpoint before and after errors"
}
mv digits.csv.gz whole.gz
try_data "digits.csv.gz: no such file"
mkdir data/digits.csv.gz
try_data "digits.csv.gz"
rmdir data/digits.csv.gz
: >data/digits.csv.gz
try_data "digits.csv.gz"
for bytes in 1 10 1000 30000; do
  head_of whole.gz $bytes >data/digits.csv.gz
  try_data "digits.csv.gz"
done
cp whole.gz data/digits.csv.gz
overwrite data/digits.csv.gz 20000 "corrupted"
try_data "digits.csv.gz"
gunzip -c whole.gz >digits.csv
for edit in '7s/,[0-9]*,/,/' '7s/^[0-9]*/x/' '7s/$/,1/' '7s/[0-9]*$/11/' '7s/[0-9]*$/-1/' '7s/[0-9]*$/1.5/' \
  '7s/^[0-9]*/1e99/'; do
  sed -e "$edit" digits.csv | gzip >data/digits.csv.gz
  try_data "digits.csv.gz"
done
head -n 20 digits.csv | gzip >data/digits.csv.gz # less than one batch
try_data "samples"

# Files to train on and to evaluate on are read at the same time; the former come first in what is said.
sed '/test *= csv/s/digits.csv.gz/other.csv.gz/' digits.graph >two.graph
"$mltc" -O1 two.graph -o two
try_two() { # PATTERN
  for threads in 1 2; do
    expect_error 1 "$1" ./two --quiet --epochs=2 --data-dir=data --save=good.safetensors --threads=$threads
    same good.safetensors kept.safetensors "the checkpoint before and after errors"
  done
}
cp whole.gz data/digits.csv.gz
try_two "other.csv.gz: no such file"
head_of whole.gz 9000 >data/other.csv.gz
try_two "other.csv.gz: the .gz file is cut off"
cp whole.gz data/other.csv.gz
overwrite data/other.csv.gz $(($(stat -c %s whole.gz) - 8)) "XX"
try_two "other.csv.gz: the .gz file is damaged .*incorrect data check"
head_of whole.gz 5000 >data/digits.csv.gz
try_two "data .train.: .*digits.csv.gz: the .gz file is cut off"
if [ -z "${MLTC_SANITIZED:-}" ]; then # a file that is whole, and more than there is room for
  head -c 64000000 /dev/zero | gzip -1 >data/digits.csv.gz
  (ulimit -v 50000 && expect_error 3 "digits.csv.gz: no memory to unpack it" "${run[@]}" --threads=1 --data-dir=data --no-save)
  truncate -s 64000000 data/digits.csv.gz # not packed
  (ulimit -v 50000 && expect_error 3 "digits.csv.gz: no memory to map it" "${run[@]}" --threads=1 --data-dir=data --no-save)
fi
cp whole.gz digits.csv.gz

# --- what cannot be written
expect_error 1 "no/such/x.safetensors" "${run[@]}" --save=no/such/x.safetensors
expect_error 1 "folder" "${run[@]}" --save=folder
expect_error 1 "no/such/m.jsonl" "${run[@]}" --no-save --metrics=no/such/m.jsonl
echo precious >notes.txt
expect_error 1 "'notes.txt' is no checkpoint: it stays as it is" "${run[@]}" --save=notes.txt
[ "$(cat notes.txt)" = precious ] || fail "a file that --save refuses is another one"
"${run[@]}" --no-save --no-times --metrics=one.jsonl
for _ in 1 2; do "${run[@]}" --no-save --no-times --metrics=/dev/stdout >>two.jsonl; done
cat one.jsonl one.jsonl >wanted.jsonl
same two.jsonl wanted.jsonl "metrics of two runs, added to one stream"
[ ! -e two.jsonl.old ] || fail "a stream's file gets another name"
printf '{"step":1}\n' >lines.jsonl
expect_error 1 "'lines.jsonl' is no profile" "${run[@]}" --no-save --profile=lines.jsonl
for bytes in 1 7 8 9 100; do # the beginning of a checkpoint is kept
  head_of good.safetensors $bytes >cut.safetensors
  "${run[@]}" --save=cut.safetensors
  [ "$(stat -c %s cut.safetensors.old)" = $bytes ] || fail "a checkpoint of $bytes bytes is not kept"
done
for option in profile kernel-times; do # a slip of the keyboard
  expect_error 1 "'good.safetensors' is no .*begins with '{\"version\":': it stays as it is" \
    "${run[@]}" --no-save --$option=good.safetensors
  same good.safetensors kept.safetensors "a checkpoint and --$option"
done
expect_error 2 "--save and --metrics are one file, 'new'" "${run[@]}" --save=new --metrics=new
expect_error 2 "--save and --metrics are one file" "${run[@]}" --save=good.safetensors --metrics=./good.safetensors
if command -v flock >flock.txt; then # as a run holds it; what an evaluation adds is welcome
  echo '{"step":1}' >shared.jsonl
  expect_error 1 "'shared.jsonl': another run is writing it; give each its own" \
    flock shared.jsonl "${run[@]}" --no-save --metrics=shared.jsonl
  flock shared.jsonl ./trainer eval --quiet --resume=good.safetensors --metrics=shared.jsonl >out.txt || fail "eval beside a run"
  [ "$(head -n 1 shared.jsonl)" = '{"step":1}' ] || fail "a run that was refused has cut the metrics of another"
fi
cp digits.csv.gz before.gz
expect_error 2 "--save: './digits.csv.gz' has data" "${run[@]}" --save=./digits.csv.gz
expect_error 2 "--metrics: 'digits.csv.gz' has data" "${run[@]}" --no-save --metrics=digits.csv.gz
cp digits.graph mine.graph
expect_error 1 "'mine.graph' is no metrics file" "${run[@]}" --no-save --metrics=mine.graph
expect_error 1 "'mine.graph' is no metrics file" "${run[@]}" --resume=good.safetensors --no-save --metrics=mine.graph
same mine.graph digits.graph "a file that is no metrics file"
sed 's/epochs = 100/epochs = 0.001/' digits.graph >hardly.graph
"$mltc" -O1 hardly.graph -o hardly
expect_error 2 "make no whole step" ./hardly --quiet --save=untrained.safetensors
[ ! -e untrained.safetensors ] || fail "a run of no steps saves"
./trainer --quiet --epochs=0 --save=untrained.safetensors
same digits.csv.gz before.gz "data before and after it was named as an output"
cp good.safetensors w.st
expect_error 2 "--save: 'w.st' has the weights that this run reads; name another" "${run[@]}" --weights=w.st --save=w.st
expect_error 2 "--save and --metrics are one file" "${run[@]}" --save=none.st --metrics=./none.st
expect_error 2 "--save and --metrics are one file" "${run[@]}" --save=none.st --metrics="$PWD/none.st.tmp"
expect_error 2 "--metrics: 'w.st' has the weights" "${run[@]}" --no-save --weights=w.st --metrics=w.st
expect_error 2 "--profile: './w.st' has the weights" "${run[@]}" --no-save --weights=w.st --profile=./w.st
expect_error 2 "--metrics: 'w.st' is the checkpoint" "${run[@]}" --resume=w.st --save=other.st --metrics=w.st
ln -s none.st dangling
expect_error 2 "--save and --metrics are one file" "${run[@]}" --save=none.st --metrics=dangling
expect_error 2 "--save and --metrics are one file" "${run[@]}" --save=dangling --metrics=./none.st
rm dangling
expect_error 2 "--save and --metrics are one file, 'w.st.tmp'" "${run[@]}" --save=w.st --metrics=w.st.tmp
expect_error 2 "--metrics: 'w.st' is the checkpoint" ./trainer eval --quiet --save=w.st --metrics=w.st
same w.st kept.safetensors "weights before and after they were named as an output"
expect_error 2 "--metrics: './trainer' is this program" "${run[@]}" --no-save --metrics=./trainer
expect_error 2 "--profile: 'digits.graph' is what this program was made from" "${run[@]}" --no-save --profile=digits.graph
cp good.safetensors p-logits.npy
expect_error 2 "--out: 'p-logits.npy' has the weights" ./trainer predict --quiet --weights=p-logits.npy --out=p
same p-logits.npy kept.safetensors "weights before and after they were named as an output"
"${run[@]}" --resume=w.st --save=w.st --epochs=3 # a checkpoint may take the place of the one before it

# What is written or read may be no regular file: nothing waits for itself.
timeout 60 ./trainer eval --quiet --resume=good.safetensors --metrics=/dev/stdout | cat >lines.txt
grep -q '^{"eval":"test"' lines.txt || fail "no evaluation on a pipe: $(cat lines.txt)"
timeout 60 ./trainer eval --quiet --resume=good.safetensors --metrics=/dev/null >/dev/null

# Where the caller has closed the standard streams, no file takes their place and what is printed.
"${run[@]}" --save=open.st --metrics=open.jsonl --no-times
./trainer --epochs=2 --save=closed.st --metrics=closed.jsonl --no-times <&- >&- 2>&-
same open.st closed.st "checkpoints with open and closed streams"
same open.jsonl closed.jsonl "metrics with open and closed streams"
./trainer --epochs=2 --save=closed.st --metrics=closed.jsonl --no-times >&-
same open.jsonl closed.jsonl "metrics with open and closed output"
expect_error 1 "standard output" bash -c './trainer eval --resume=open.st >&-'
mkfifo pipe
expect_error 1 "pipe" timeout 60 "${run[@]}" --no-save --resume=pipe
expect_error 1 "pipe" timeout 60 "${run[@]}" --no-save --weights=pipe
mkfifo busy.st.tmp piped-logits.npy
expect_error 1 "'busy.st.tmp' is in the way, and no file" timeout 60 "${run[@]}" --save=busy.st
expect_error 1 "cannot write 'piped-logits.npy'" timeout 60 ./trainer predict --quiet --resume=good.safetensors --out=piped
[ -p piped-logits.npy ] || fail "predictions took the place of a pipe"
rm busy.st.tmp

# A link stays one: what it leads to is replaced.
mkdir linked
"${run[@]}" --epochs=1 --save=linked/real.st
ln -s linked/real.st link.st
"${run[@]}" --epochs=2 --save=link.st
[ -L link.st ] || fail "a checkpoint took the place of a link"
cmp -s link.st linked/real.st || fail "the link leads elsewhere"
./trainer eval --quiet --resume=linked/real.st >/dev/null
"${run[@]}" --epochs=2 --save=two.st
same link.st two.st "a checkpoint written through a link and one that was not"

ln -s linked/later.st later.st # nothing is there yet
ln -s later.st sooner.st
"${run[@]}" --epochs=2 --save=sooner.st
for link in later.st sooner.st; do
  [ -L $link ] || fail "a first checkpoint took the place of a link"
done
same two.st linked/later.st "a first checkpoint written through two links and one that was not"
cp good.safetensors linked/real.st.tmp # beside what the link leads to: where a checkpoint is written first
expect_error 2 "'linked/real.st.tmp' has the weights that this run reads" "${run[@]}" --weights=linked/real.st.tmp --save=link.st
expect_error 2 "are one file" "${run[@]}" --metrics=linked/real.st.tmp --save=link.st
same good.safetensors linked/real.st.tmp "weights before and after"
rm linked/real.st.tmp
ln -s "$PWD/linked/q.npy" q-logits.npy
./trainer predict --quiet --resume=good.safetensors --out=q
[ -L q-logits.npy ] || fail "predictions took the place of a link"
[ -f linked/q.npy ] || fail "predictions are not where their link leads"
ln -s round.st round.st
expect_error 1 "it is no file" timeout 60 "${run[@]}" --save=round.st

# Predictions that do not fit onto the disk leave no file.
( trap '' XFSZ && ulimit -f 1 && expect_error 1 "full-logits.npy" ./trainer predict --quiet --resume=good.safetensors --out=full )
ls full* 2>/dev/null && fail "predictions that could not be written left a file"
if [ -e /dev/full ]; then
  for command in "eval --resume=good.safetensors" check --help; do
    expect_error 1 "standard output" bash -c "./trainer $command >/dev/full"
  done
fi
expect_error 1 "no/such/p.json" "${run[@]}" --no-save --profile=no/such/p.json
if [ -e /dev/full ]; then
  expect_error 1 "/dev/full|standard output" bash -c './trainer info >/dev/full'
fi

# --- wrong usage of the trainer
expect_error 2 "did you mean --threads" "${run[@]}" --thread=2
expect_error 2 "needs a whole number" "${run[@]}" --threads=two
expect_error 2 "needs a whole number" "${run[@]}" --threads=0
expect_error 2 "needs a number" "${run[@]}" --lr=fast
expect_error 2 "needs a value" "${run[@]}" --save=
expect_error 2 "unknown command" ./trainer trian
expect_error 2 "has no option --save" ./trainer info --save=x
expect_error 2 "contradict" "${run[@]}" --save=x --no-save
expect_error 2 "epochs" ./trainer --epochs=-1
[ ! -e x ] || fail "wrong usage left a file"

# --- graphs
out=(-o made)
expect_error 1 "missing.graph.*No such file" "$mltc" missing.graph "${out[@]}"
expect_error 1 "folder.*folder" "$mltc" folder "${out[@]}"
: >empty.graph
expect_error 1 "no model" "$mltc" empty.graph "${out[@]}"
printf "\377\376l\0e\0t\0\n\0" >wide.graph
expect_error 1 "wide.graph:1:4: error.*text file" "$mltc" wide.graph "${out[@]}"
: >empty.ir
expect_error 1 "empty.ir:1:1" "$mltc" empty.ir "${out[@]}"
for seed in 1 2 3; do
  python3 -c "import random, sys
random.seed($seed)
sys.stdout.buffer.write(bytes(random.randrange(256) for _ in range(4000)))" >garbage.graph
  cp garbage.graph garbage.ir
  for file in garbage.graph garbage.ir; do
    code=0
    "$mltc" $file "${out[@]}" >out.txt 2>err.txt || code=$?
    [ $code -eq 1 ] || fail "exit code $code for $file"
    grep -qE "^$file:[0-9]+:[0-9]+: error\[E[0-9]+\]: " err.txt || fail "no error with a place for $file"
    [ "$(grep -c ': error\[' err.txt)" -le 51 ] || fail "a flood of errors for $file"
  done
done
total=$(stat -c %s digits.graph)
for bytes in $(seq 1 37 "$total"); do # cut anywhere: errors with a place, or a smaller program
  head_of digits.graph "$bytes" >cut.graph
  code=0
  "$mltc" cut.graph --emit=kernels -o cut.txt 2>err.txt || code=$?
  case $code in
  0) ;;
  1) grep -qE "^cut.graph:[0-9]+:[0-9]+: error\[E[0-9]+\]: " err.txt || fail "no error for $bytes bytes" ;;
  *) fail "exit code $code for $bytes bytes of digits.graph" ;;
  esac
done
mkdir elsewhere
sed -e '0,/label=last/s//label=last, embed=true/' digits.graph >elsewhere/embed.graph
expect_error 1 "E0902.*digits.csv.gz" "$mltc" elsewhere/embed.graph "${out[@]}"
sed 's/label=last/label=last, embed=true/' digits.graph >elsewhere/embed.graph
"$mltc" elsewhere/embed.graph "${out[@]}" 2>err.txt && fail "a file that is not there is embedded"
[ "$(grep -c 'error\[' err.txt)" -eq 1 ] || fail "a missing file of two data sets is not one error"
grep -q "note: it is also to be embedded here" err.txt || fail "nothing is said of the second data set"

# --- wrong usage of mltc, and outputs
expect_error 2 "did you mean '--target'" "$mltc" --targt=cpu digits.graph
expect_error 2 "it can be cpu" "$mltc" --target=tpu digits.graph
expect_error 2 "did you mean 'plan'" "$mltc" --emit=plam digits.graph
expect_error 2 "no file" "$mltc"
expect_error 2 "one file at a time" "$mltc" digits.graph digits.graph
expect_error 2 "O7" "$mltc" -O7 digits.graph
expect_error 2 "no such error code" "$mltc" --explain E9999
expect_error 2 "needs a value" "$mltc" digits.graph -o
expect_error 1 "E0217" "$mltc" digits.graph -D nothing=3
expect_error 1 "E0503" "$mltc" digits.graph --disable-pass=nothing
expect_error 1 "no/such/made" "$mltc" digits.graph -O0 -o no/such/made
expect_error 1 "folder" "$mltc" digits.graph -O0 -o folder
expect_error 1 "no/such/made" "$mltc" digits.graph --emit=ir -o no/such/made
expect_error 1 "no/such/keep" "$mltc" digits.graph --keep=no/such/keep --emit=ir
expect_error 1 "MLTC_CC is '/no/such/compiler', which is no program here; mltc needs clang" env MLTC_CC=/no/such/compiler "$mltc" digits.graph "${out[@]}"
expect_error 1 "clang" env MLTC_CC="$PWD/folder" "$mltc" digits.graph "${out[@]}"
for word in 'gcc 9' 'clang version 13.1.0'; do
  printf '#!/bin/sh\ncase " $* " in *--version*) echo "%s" ;; *) exit 1 ;; esac\n' "$word" >other-compiler
  chmod +x other-compiler
  expect_error 1 "^help: mltc needs clang 14 or newer; '.*other-compiler' is: $word" env MLTC_CC="$PWD/other-compiler" "$mltc" digits.graph --no-cache "${out[@]}"
done
expect_error 1 "^help: '.*false --version' fails, too: it is no clang 14 or newer, or a limit" env MLTC_CC="$(type -P false)" "$mltc" digits.graph --no-cache "${out[@]}"
expect_error 1 "^help: TMPDIR names another place" env TMPDIR=/no/such "$mltc" digits.graph --no-cache "${out[@]}"
echo '#!/no/such/shell' >no_compiler
chmod +x no_compiler
expect_error 1 "cannot run '$PWD/no_compiler': No such file" env MLTC_CC="$PWD/no_compiler" "$mltc" digits.graph "${out[@]}"
cp digits.graph mine.graph
expect_error 2 "would take the place of .mine.graph" "$mltc" mine.graph -O0 -o ./mine.graph
expect_error 2 "would take the place of .mine.graph" "$mltc" mine.graph --emit=ast -o mine.graph
cp mine.graph brief.tmp
"$mltc" brief.tmp --emit=ir -o brief
same mine.graph brief.tmp "a graph before and after an output whose temporary file might be called the same"
rm brief brief.tmp
same digits.graph mine.graph "a graph, and what is left of it,"
cat >tool.graph <<'EOT'
block twice(x: f[...]) { return 2 * x }
EOT
{
  echo 'import "tool.graph"'
  cat digits.graph
} >imports.graph
cp tool.graph tool.kept
expect_error 2 "would take the place of .*tool.graph" "$mltc" imports.graph --emit=ir -o tool.graph
expect_error 2 "would take the place of .*tool.graph" "$mltc" imports.graph --emit=ast -o tool.graph
same tool.graph tool.kept "an imported file, and what is left of it,"
mkdir beside
sed 's/digits.csv.gz"/emb.csv.gz", embed=true/' digits.graph >beside/emb.csv.gz.graph
cp whole.gz beside/emb.csv.gz
expect_error 2 "would take the place of 'emb.csv.gz', which has the data" "$mltc" beside/emb.csv.gz.graph -O0 -o beside/emb.csv.gz
expect_error 2 "would take the place of 'emb.csv.gz', which has the data" "$mltc" beside/emb.csv.gz.graph --emit=ast -o beside/emb.csv.gz
(
  cd beside || exit
  expect_error 2 "the trainer 'emb.csv.gz' would take the place of 'emb.csv.gz'" "$mltc" emb.csv.gz.graph -O0
  cp emb.csv.gz.graph made.d
  expect_error 2 "made would take the place of 'made.d', which it is made from" "$mltc" made.d -O0 -MD -o made
  same emb.csv.gz.graph made.d "a graph, and what is left of it,"
  rm made.d
)
same whole.gz beside/emb.csv.gz "data, and what is left of them,"
"$mltc" digits.graph -O0 --keep=passes --emit=ir -o all.ir
fused=$(echo passes/*-fuse.ir)
sed -i 's/^module .*/module edited/' "$fused"
cp "$fused" edited.ir
expect_error 2 "--keep=.*passes would write over '$fused', which it is made from" "$mltc" "$fused" -O0 --keep="$PWD/passes" -o edited
same edited.ir "$fused" "IR that was edited, and what is left of it,"
# One that is made quickly, for where a program has to be made, but not to train; it reads a file that may change.
cat >short.graph <<'EOT'
model short(x: u8[4,3]) { loss mean(linear(f32(x), 1)) }
data { train = text("short.txt", window=3, vocab=bytes) }
optim { sgd(1e-9) }
train { steps = 1000000000, log every 1 }
EOT
long=$(printf 'n%.0s' {1..250})
"$mltc" short.graph -O0 -o "$long" || fail "a trainer with a name of 250 bytes"
expect_error 1 "cannot write 'nn*': File name too long" "$mltc" digits.graph -O0 -o "$long$long"
[ ! -d /proc/self ] || expect_error 1 "cannot write '/proc/trainer'" "$mltc" digits.graph -O0 -o /proc/trainer
expect_error 1 "make reads no name with a line break" "$mltc" digits.graph -O0 -MD -o $'two\nlines'
expect_error 1 "make reads no name with a line break.*'rate=1'" "$mltc" digits.graph -O0 -MD -o rate=1
# What means something to make, it is to take for a part of a name.
for odd in 'at 12:30' '50%' 'a\ b' $'b\\' 'all*?[' "#\$x"; do
  cp short.graph "$odd.graph"
  "$mltc" "$odd.graph" -O0 -MD -o "$odd" || fail "-MD for $odd"
  touch -d '+1 hour' "$odd.graph"
  ! command -v make >out.txt || LC_ALL=C make -f "$odd.d" -rRdn "$odd" 2>&1 | grep 'is newer than target' >out.txt ||
    fail "make does not see that $odd is old: $(cat "$odd.d")"
done
[ "$(cat 'at 12:30.d')" = 'at\ 12\:30: at\ 12\:30.graph' ] || fail "$(cat 'at 12:30.d')"
if [ -e /dev/full ]; then
  expect_error 1 "standard output" bash -c "'$mltc' digits.graph --emit=ir >/dev/full"
  for text in --help --version "--explain E0203" "digits.graph --max-batch --memory-budget=2MiB"; do
    expect_error 1 "standard output" bash -c "'$mltc' $text >/dev/full"
  done
fi
"$mltc" digits.graph --emit=ir >printed.ir
"$mltc" digits.graph --emit=ir -o - | cmp - printed.ir || fail "-o - is not standard output"
expect_error 2 "a program is a file" "$mltc" digits.graph -o -
if [ -e made ] || [ -e - ]; then
  fail "an error left an output file"
fi

stray=$(find . -name '*.tmp' -o -name 'mltc-*' -o -name 'made*')
[ -z "$stray" ] || fail "files are left: $stray"

# --- an error in each of many lines: none takes the time of all others
{
  echo 'model m(x: f32[4,3]) {'
  awk 'BEGIN { for (i = 0; i < 40000; i++) print "  y = nowhere + 1" }'
  echo '  loss mean(linear(y, 1))'
  echo '}'
} >wrong.graph
timeout 30 "$mltc" wrong.graph 2>err.txt || [ $? -eq 1 ] || fail "errors in many lines take too long"
grep -q '^39951 more errors not shown$' err.txt || fail "$(tail -n 1 err.txt)"

# --- a data file that is shortened under a run: small batches are copied by the threads of the step, large ones by another
sed 's/model short(x: u8\[4,3\])/model large(x: u8[4,70000])/; s/short.txt/large.txt/; s/window=3/window=70000/' \
  short.graph >large.graph
printf 'more than two batches of windows' >short.txt
head -c 300000 /dev/zero >large.txt
for name in short large; do
  "$mltc" -O0 $name.graph -o $name
  ./$name --quiet --no-save --metrics=$name.jsonl 2>err.txt &
  pid=$!
  until [ -s $name.jsonl ]; do
    kill -0 $pid || fail "$(cat err.txt)"
    sleep 0.01
  done
  : >$name.txt
  code=0
  wait $pid || code=$?
  [ $code = 1 ] || fail "exit code $code, not 1, when $name.txt is shortened"
  grep -q "^$name: error: a data file has become shorter" err.txt || fail "$(cat err.txt)"
done

# --- a signal while compilers run: they end, and so does the folder of their files
mkdir tmp
for stop in TERM:143 XCPU:152; do
  signal=${stop%:*}
  TMPDIR=$PWD/tmp "$mltc" --no-cache "$root/examples/char_gpt.graph" -o stopped &
  pid=$!
  until compgen -G 'tmp/mltc-*/*.c' >/dev/null; do
    kill -0 $pid || fail "mltc ended before the signal"
    sleep 0.01
  done
  kill -"$signal" $pid
  code=0
  wait $pid || code=$?
  [ $code -eq "${stop#*:}" ] || fail "exit code $code after SIG$signal"
  [ -z "$(ls -A tmp)" ] || fail "SIG$signal left $(find tmp)"
  [ ! -e stopped ] || fail "SIG$signal left a trainer"
done

# --- nobody reads what mltc says, or files may not be as large as its own
export TMPDIR=$PWD/tmp
cat >unread.py <<'PY'
import os
import subprocess
import sys

reader, writer = os.pipe()
os.close(reader)
sys.exit(-subprocess.run(sys.argv[1:], stdout=writer, stderr=writer, check=False).returncode)
PY
code=0
python3 unread.py "$mltc" --no-cache -v digits.graph -o stopped || code=$?
[ $code -eq 13 ] || fail "not SIGPIPE but $code ended mltc where nobody reads"
[ -z "$(ls -A tmp)" ] || fail "SIGPIPE left $(find tmp)"
expect_error 1 "File too large" bash -c "ulimit -f 8; '$mltc' --no-cache digits.graph -o stopped"
[ -z "$(ls -A tmp)" ] || fail "a limit of files' sizes left $(find tmp)"

# --- a program stays until the next one is whole
echo 'an earlier program' >kept
expect_error 1 "compiling the generated .* failed: '/bin/true' has written nothing to " env MLTC_CC=/bin/true "$mltc" digits.graph --no-cache -o kept
# A parent that ignores the ends of its children; a compiler that ignores SIGTERM, for which a second one does not wait.
bash -c "trap '' CHLD; exec \"\$@\"" bash "$mltc" short.graph -O0 --no-cache -o orphan || fail "a parent that ignores SIGCHLD"
bash -c "trap '' CHLD; exec \"\$@\"" bash "$mltc" memory short.graph >out.txt || fail "a parent that ignores SIGCHLD, and plans"
# A process that looks for a plan and is ended from outside, as for want of memory.
"$mltc" memory "$root/examples/gpt2.graph" >out.txt 2>err.txt &
parent=$!
for _ in $(seq 3000); do
  ! pkill -KILL -P $parent || break
  sleep 0.02
done
code=0
wait $parent || code=$?
[ $code = 70 ] || fail "exit code $code where a process was ended that looks for a plan"
grep -q '^mltc: a process that looks for a plan was ended by signal 9 (Killed)$' err.txt || fail "$(cat err.txt)"
# And one whose mltc is: it is not left to look for what nobody wants.
"$mltc" memory "$root/examples/gpt2.graph" -D L=48 --gpu=9GiB >out.txt 2>&1 &
parent=$!
for _ in $(seq 3000); do
  ! pgrep -P $parent >out.txt || break
  sleep 0.02
done
sleep 0.1
child=$(pgrep -n -P $parent)
kill -TERM $parent
code=0
wait $parent || code=$?
[ $code = 143 ] || fail "exit code $code after SIGTERM while plans are made"
running() { # PROCESS: it is there, and not one that nobody has waited for
  [ -r "/proc/$1/stat" ] && ! grep -q ') Z' "/proc/$1/stat"
}
for _ in $(seq 25); do
  running "$child" || break
  sleep 0.02
done
! running "$child" || fail "mltc leaves a process behind that looks for a plan"
printf '#!/bin/sh\ncase "$*" in *--version*) exec clang "$@" ;; esac\ntrap "" TERM\n: >deaf-begun\nwhile :; do sleep 0.1; done\n' >deaf
chmod +x deaf
MLTC_CC="$PWD/deaf" "$mltc" digits.graph --no-cache -o orphan &
deaf=$!
for _ in $(seq 200); do
  [ -e deaf-begun ] && break
  sleep 0.05
done
kill -TERM $deaf
sleep 0.3
kill -0 $deaf || fail "mltc leaves a compiler behind"
kill -TERM $deaf
code=0
wait $deaf || code=$?
[ $code = 143 ] || fail "a compiler that ignores SIGTERM: exit code $code"
printf '#!/bin/sh\ncase " $* " in *" -c "*|*--version*) exec clang "$@" ;; esac\n' >links-nothing
chmod +x links-nothing
expect_error 1 "linking failed: '.*links-nothing' has written no program" env MLTC_CC="$PWD/links-nothing" "$mltc" short.graph -O0 --no-cache -o kept
[ "$(cat kept)" = 'an earlier program' ] || fail "a link that failed has replaced what was there"
! compgen -G 'kept.*.tmp' || fail "a link that failed leaves a file"
# Two at a time that make one program: both are well, and so is the program.
both=()
for each in 1 2; do
  "$mltc" short.graph -O0 -o twice 2>"twice-$each.txt" &
  both+=($!)
done
for pid in "${both[@]}"; do
  wait "$pid" || fail "two at a time: $(cat twice-?.txt)"
done
./twice info >/dev/null || fail "what two have made at a time"
