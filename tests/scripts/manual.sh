#!/usr/bin/env bash
# The man page is well formed, and names exactly the options that mltc and its trainers have.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash

page=$root/docs/mltc.1
if command -v mandoc >/dev/null; then
  mandoc -Tlint -Wwarning "$page" >lint.txt || true
elif command -v groff >/dev/null; then
  groff -man -ww -z "$page" 2>lint.txt
else
  skip "neither mandoc nor groff"
fi
[ ! -s lint.txt ] || {
  cat lint.txt
  fail "the man page has faults"
}

# Flags of the example itself (--lr, --epochs) are left out: they are not mltc's.
options_of() { # HELP-FILE
  sed -n '/^Flags of the model:/,/^$/d; p' "$1" | grep -oE -- '--[a-z][a-z-]+' | sort -u
}
sed 's/\\-/-/g' "$page" >page.txt
"$mltc" -O0 "$root/examples/digits_mlp.graph" -o trainer
"$mltc" --help >help.txt
./trainer --help >trainer.txt
# Programs for a GPU have more options, which the table of all says.
sed -nE 's/^ *\{"([a-z-]+)", (TEXT|NUMBER|SWITCH|MAYBE_TEXT), .*\| GPU,.*/--\1/p' "$root/runtime/args.c" >gpu.txt
[ "$(wc -l <gpu.txt)" -ge 2 ] || fail "no options of programs for a GPU in runtime/args.c"
cat help.txt trainer.txt gpu.txt >both.txt
options_of both.txt >have.txt
[ "$(wc -l <have.txt)" -ge 25 ] || fail "only $(wc -l <have.txt) options found in --help"
while IFS= read -r option; do
  grep -qwF -- "$option" page.txt || fail "$option is not in docs/mltc.1"
done <have.txt
grep -oE -- '--[a-z][a-z-]+' page.txt | sort -u >named.txt
while IFS= read -r option; do
  grep -qxF -- "$option" have.txt || [ "$option" = --lr ] || fail "docs/mltc.1 has $option, --help does not"
done <named.txt

# The short ones, and what --emit and the commands can be.
for word in -o -D -I -O0 -O3 -MD -v -- $(sed -n '/--emit=KIND/,/--print-after/p' help.txt |
  grep -oE '\b(ast|ir|kernels|plan|plan\.json|c|llvm|asm|dot|cuda|ptx|resources|report)\b' | sort -u) \
  $(sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' trainer.txt); do
  [ "$word" = -- ] || grep -qE -- "(^|[ .,\"(])${word//./\\.}([ .,\")]|$)" page.txt ||
    fail "$word is not in docs/mltc.1"
done
