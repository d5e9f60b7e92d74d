#!/usr/bin/env bash
# What a causal mask leaves out changes nothing: with and without pass_bands, three steps of a small
# transformer give the same checkpoint, byte for byte, and `check` finds every kernel right.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
need_plain_build

for i in $(seq 400); do
  printf 'line %d of a text about %d things\n' "$i" $((i * 7919 % 1000))
done > text.txt
sed -e 's/tinyshakespeare.txt/text.txt/' -e 's/V = 65/V = 26/' "$root/examples/char_gpt.graph" > gpt.graph
sizes=(-D B=2 -D T=150 -D C=32 -D H=2 -D L=2)
"$mltc" -O1 "${sizes[@]}" gpt.graph -o with
"$mltc" -O1 "${sizes[@]}" gpt.graph -o without --disable-pass=bands
for name in with without; do
  ./$name --quiet --steps=3 --threads=2 --no-times --save=$name.safetensors --metrics=$name.jsonl
done
same with.safetensors without.safetensors "checkpoints with and without bands"
same with.jsonl without.jsonl "metrics with and without bands"
./with check > check.txt || fail "check: $(grep FAILED check.txt)"

"$mltc" "${sizes[@]}" gpt.graph --emit=plan > with.txt
"$mltc" "${sizes[@]}" gpt.graph --emit=plan --disable-pass=bands > without.txt
! cmp -s with.txt without.txt || fail "the plan counts the same work with and without bands"
