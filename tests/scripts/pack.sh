#!/usr/bin/env bash
# mltc-pack: options, exit codes and errors of broken files; training steps of 20,000 and 60,000 buffers
# come within 0.5% of their bound, in a number of steps, and twice the same way.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
pack=$build/bin/mltc-pack
export PYTHONDONTWRITEBYTECODE=1

# --- what it reads and writes
printf 'size,id,upper,lower\r\n64,a b,4,0\r\n\r\n128,c,3,-1\r\n' >set.csv
"$pack" set.csv >out.csv 2>said.txt || fail "a plain file"
[ "$(head -2 out.csv | cut -d, -f1-4)" = $'id,lower,upper,size\na b,0,4,64' ] || fail "$(cat out.csv)"
grep -qE '^2 buffers, bound 192, height 192, ratio 1\.0000, [0-9.]+ s, [0-9]+ steps$' said.txt ||
  fail "$(cat said.txt)"
"$pack" out.csv -o again.csv 2>said.txt && same out.csv again.csv "a file with offsets and one without"
"$pack" --capacity=192 --seconds=0.5 --output=again.csv set.csv 2>said.txt || fail "a capacity that is met"
printf 'id,lower,upper,size\n' >empty.csv
"$pack" empty.csv >again.csv 2>said.txt || fail "no intervals"
grep -q '^0 buffers, bound 0, height 0, ratio 1.0000' said.txt || fail "$(cat said.txt)"
code=0
"$pack" --capacity=150 set.csv -o again.csv 2>said.txt || code=$?
[ $code = 3 ] || fail "exit code $code above the capacity"
grep -q 'set.csv: 42 bytes above the capacity of 150, which no packing reaches' said.txt || fail "$(cat said.txt)"
same out.csv again.csv "offsets with and without a capacity"
"$pack" --capacity=9223372036854775807 set.csv -o again.csv 2>said.txt || fail "a capacity without end"
same out.csv again.csv "offsets with and without a capacity without end"

# --- a proof: 10 bytes are live at all times but the last, and no packing has 10
printf '%s\n' id,lower,upper,size a,0,3,5 b,0,4,5 c,3,5,3 d,3,7,2 e,4,5,1 f,4,7,4 g,5,8,4 h,7,9,6 i,8,9,4 >proof.csv
"$pack" proof.csv >again.csv 2>said.txt
grep -q 'bound 10, height 11, ratio 1.1000' said.txt || fail "$(cat said.txt)"
grep -qx 'proved: no packing is lower than 11' said.txt || fail "no proof: $(cat said.txt)"

# --- broken files and wrong usage
broken() { # PATTERN TEXT
  printf '%b' "$2" >broken.csv
  expect_error 1 "broken.csv:$1" "$pack" broken.csv
}
broken "1:1: error\[E0910\]: the file is empty" ''
broken "1:10: error\[E0910\]: there is no column 'uper'" 'id,lower,uper,size\n'
broken "1:1: error\[E0910\]: there is no column 'size'" 'id,lower,upper\n'
broken "1:4: error\[E0910\]: there are two columns 'id'" 'id,id,lower,upper,size\n'
broken "1:1: error\[E0910\]: there are 7 columns" 'id,lower,upper,size,offset,a,b\n'
broken "3:1: error\[E0910\]: 3 values for 4 columns" 'id,lower,upper,size\na,0,1,1\nb,0,1\n'
broken "2:5: error\[E0910\]: the upper '9223372036854775808' is not" 'id,lower,upper,size\na,0,9223372036854775808,1\n'
broken "2:7: error\[E0910\]: the size '' is not" 'id,lower,upper,size\na,0,1,\n'
broken "2:7: error\[E0910\]: the size is negative" 'id,lower,upper,size\na,0,1,-1\n'
broken "2:5: error\[E0910\]: the interval ends at 3, and begins at 3" 'id,lower,upper,size\na,3,3,1\n'
broken "3:1: error\[E0910\]: a second interval has the id 'a'" 'id,lower,upper,size\na,0,1,1\na,0,1,1\n'
broken "2:1: error\[E0910\]: this interval has no id" 'id,lower,upper,size\n,0,1,1\n'
broken "2:1: error\[E0910\]: the id has a control" 'id,lower,upper,size\na\0b,0,1,1\n'
broken "3:7: error\[E0910\]: the sizes up to here add up" \
  'id,lower,upper,size\na,0,1,2305843009213693951\nb,0,1,1\n'
expect_error 1 "mltc-pack: cannot read 'none.csv'" "$pack" none.csv
expect_error 1 "mltc-pack: cannot write 'none/out.csv'" "$pack" set.csv -o none/out.csv
expect_error 2 "no input file" "$pack"
expect_error 2 "more than one input" "$pack" set.csv set.csv
for option in --capacity=0 --capacity=1x --seconds=-1 --seconds=x --steps=0; do
  expect_error 2 "mltc-pack: $option: not a" "$pack" set.csv "$option"
done
"$pack" set.csv -o - 2>said.txt | cmp -s - <("$pack" set.csv 2>said.txt) || fail "-o - is no standard output"
[ ! -e ./- ] || fail "-o - makes a file"
cp set.csv set.copy
expect_error 2 "mltc-pack: --output=set.csv: it would take the place of what is read" "$pack" set.csv -o set.csv
same set.csv set.copy "what was to be packed and what is there"
"$pack" --help >help.txt
"$pack" --version | grep -qE '^mltc-pack [0-9]' || fail "--version"
sed 's/\\-/-/g' "$root/docs/mltc-pack.1" >page.txt
grep -oE -- '--[a-z]+' help.txt | sort -u >options.txt
[ "$(wc -l <options.txt)" -ge 6 ] || fail "options of --help"
while IFS= read -r option; do
  grep -qwF -- "$option" page.txt || fail "$option is not in docs/mltc-pack.1"
done <options.txt

# --- training steps
command -v python3 >python.txt || skip "no python3"
check() { python3 "$root/tests/bench/pack/check.py" "$pack" . "$@"; }
shapes="gpt flat flat_uneven update probabilities experts mixed recompute uneven uneven_update translate"
[ -z "${MLTC_SANITIZED:-}" ] || shapes="flat_uneven recompute" # all without them
for shape in $shapes; do
  check "$shape" 20000 2 1.005 --steps=100000000 || fail "$shape, 20,000"
done
[ -z "${MLTC_SANITIZED:-}" ] || exit 0
check gpt 60000 2 1.005 --steps=300000000 || fail "gpt, 60,000"
check flat_uneven 60000 2 1.005 --steps=300000000 || fail "flat_uneven, 60,000"
[ -n "${MLTC_SLOW:-}" ] || exit 0
for shape in gpt flat flat_uneven experts recompute; do
  for seed in 3 4; do
    check "$shape" 60000 $seed 1.005 --steps=600000000 || fail "$shape, 60,000"
  done
done
