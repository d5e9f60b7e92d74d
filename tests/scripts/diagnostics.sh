#!/usr/bin/env bash
# Every code has an explanation; --diagnostics=json is JSON that says what the text says; what --emit
# prints can be read back.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash

# --- explanations
codes=$(sed -n 's/^CODE("\([EW][0-9]*\)".*/\1/p' "$root/ir/diag_codes.def")
[ "$(wc -w <<<"$codes")" -ge 40 ] || fail "only $(wc -w <<<"$codes") codes were found"
[ -z "$(sort <<<"$codes" | uniq -d)" ] || fail "codes are there twice"
for code in $codes; do
  "$mltc" --explain "$code" >out.txt
  [ "$(wc -w <out.txt)" -ge 15 ] || fail "--explain $code says too little"
done

# --- every code that the sources use is in the table, and every one in the table is used
used=$(grep -rhoE --include='*.c' '"[EW]0[0-9]{3}"' "$root"/{ir,frontend,passes,codegen,driver} | tr -d '"' | sort -u)
[ "$(sort <<<"$codes")" = "$used" ] || fail "codes in the table and in the sources differ: $(diff <(sort <<<"$codes") <(echo "$used"))"

# --- JSON says what the text says
cp -r "$root/tests/fuzz/seeds/graph" "$root/tests/fuzz/seeds/ir" .
for file in graph/errors.graph ir/errors.ir ir/rules.ir; do
  code=0
  "$mltc" "$file" 2>text.txt || code=$?
  [ $code -eq 1 ] || fail "exit code $code for $file"
  "$mltc" "$file" --diagnostics=json 2>json.txt || true
  python3 - text.txt json.txt <<'PY' || fail "the JSON of $file"
import json, re, sys
text = re.findall(r"^(\S+?):(\d+):(\d+): (error|warning)\[(\w+)\]: (.*)$", open(sys.argv[1]).read(), re.M)
rows = [json.loads(line) for line in open(sys.argv[2])]
got = [(d["file"], str(d["line"]), str(d["column"]), d["severity"], d["code"], d["message"]) for d in rows]
assert got and got == text, (got, text)
PY
done

# --- warnings are said once, and before an error that comes later, however many they are
{
  echo 'model m(x: f32[4,2]) {'
  for i in $(seq 60); do echo "  param p$i: f32[1] = zeros"; done
  echo '  param w: f32[2] = ones'
  echo "  loss mean(x * w)$(printf ' + 0 * stop(sum(p%d))' $(seq 60))"
  printf '}\ndata { train = npy("none.npy", embed=true) }\noptim { sgd(0.1) }\n'
} >warned.graph
code=0
"$mltc" warned.graph -O0 2>text.txt || code=$?
[ $code -eq 1 ] || fail "exit code $code for warnings and an error"
[ "$(grep -c 'warning\[W0502\]' text.txt)" -eq 50 ] || fail "$(grep -c 'warning\[W0502\]' text.txt) warnings of 60"
[ "$(grep -c '^10 more warnings not shown$' text.txt)" -eq 1 ] || fail "warnings that are not shown are not counted"
grep -q "error\[E0902\]: cannot embed 'none.npy'" text.txt || fail "the error behind 60 warnings: $(tail -n 3 text.txt)"
"$mltc" warned.graph -O0 --diagnostics=json 2>json.txt || true
[ "$(grep -c '"message":"10 more warnings not shown"' json.txt)" -eq 1 ] || fail "JSON does not count them"

# --- refusals, too, and what is searched for
cat >large.graph <<'EOT'
let B = 32
model m(x: f32[B,64], y: f32[B,1]) {
  loss mse(linear(relu(linear(x, 64)), 1), y)
}
data { train = npy("x.npy", "y.npy") }
optim { sgd(0.1) }
EOT
cat >said.py <<'PY'
import json, re, sys
text = [re.sub(r"^(mltc|note): ", "", line).strip() for line in open("text.txt").read().splitlines()]
rows = [json.loads(line) for line in open("json.txt")]
got = [line for row in rows for line in [row["message"], *(n["message"] for n in row["notes"]), *row["help"]]]
assert got == text, (got, text)
severities = " ".join(row["severity"] for row in rows)
assert severities == sys.argv[1], severities
PY
said() { # STATUS SEVERITIES OPTION...
  local status=$1 severities=$2 form code
  shift 2
  for form in text json; do
    code=0
    "$mltc" large.graph --diagnostics=$form "$@" 2>$form.txt >out.txt || code=$?
    [ "$code" -eq "$status" ] || fail "exit code $code for $*"
  done
  python3 said.py "$severities" || fail "the JSON of $*"
}
said 3 error --memory-budget=2000 --emit=plan
said 3 "error help" --memory-budget=52000 --emit=plan
said 3 "note error" --memory-budget=2000 --allow=accumulate --emit=plan
said 0 note --memory-budget=52000 --allow=accumulate --emit=plan
said 0 note --memory-budget=1MiB --max-batch --emit=plan
said 0 note --extra-time=10% --emit=plan
said 3 error --memory-budget=2000 --max-batch
said 2 error --max-batch --memory-budget=1MiB -D B=4
said 2 error --memory-budget=none
said 0 note -D B=4 -D B=8 --emit=plan
grep -qx 'note: -D B=8 takes the place of -D B=4' text.txt || fail "$(cat text.txt)"
said 0 "" -D B=8 -D B=8 --emit=plan
said 1 error -o no/such/folder/m

# --- and is UTF-8, whatever a file is called
name=$'caf\xe9.graph'
cp graph/errors.graph "$name"
"$mltc" "$name" --diagnostics=json 2>json.txt || true
cp "$root/examples/digits_mlp.graph" "good-$name"
cp -r "$root/examples/data" .
"$mltc" "good-$name" --emit=report -o report.html
"$mltc" "good-$name" --emit=plan.json -o plan.json
"$mltc" "good-$name" -o good
./good --quiet --no-save --epochs=1 --kernel-times=times.json
python3 - <<'PY' || fail "not UTF-8"
import json
rows = [json.loads(line) for line in open("json.txt", "rb").read().decode("utf-8").splitlines()]
assert rows and all(row["file"] == "caf\ufffd.graph" for row in rows), rows
for file in "plan.json", "times.json":
    json.loads(open(file, "rb").read().decode("utf-8"))
open("report.html", "rb").read().decode("utf-8")
PY

# --- what is printed reads back
cp -r "$root/examples/data" "$root"/examples/*.graph .
for name in digits_mlp mnist_mlp char_gpt; do
  "$mltc" $name.graph --emit=ast -o again.graph
  "$mltc" again.graph --emit=ast -o third.graph
  same again.graph third.graph "the printed source and its print"
  "$mltc" $name.graph --emit=ir -o $name.ir
  "$mltc" $name.ir --emit=ir -o again.ir
  same $name.ir again.ir "the printed IR and its print"
  "$mltc" again.graph --emit=ir | sed 's/ loc([0-9:]*)//' >again.ir
  sed 's/ loc([0-9:]*)//' $name.ir >plain.ir
  same plain.ir again.ir "the IR of a source and of its print"
  "$mltc" $name.graph --emit=dot -o $name.dot
  grep -q '^digraph' $name.dot || fail "no digraph"
done
"$mltc" --help >out.txt
grep -q "internal fault" out.txt
