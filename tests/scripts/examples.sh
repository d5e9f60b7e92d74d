#!/usr/bin/env bash
# Every example compiles, and its trainer's `check` passes: kernels against plain versions, every gradient
# against finite differences, the same bits with one, two and three threads, a checkpoint written and read.
# Large networks are small here, with odd sizes; char_gpt has all of its width, but for a build with sanitizers, which make
# kernels run twenty times slower. There, a few are enough; elsewhere one of each kind is optimised as programs
# are, the others not at all, and with MLTC_SLOW all are.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash

declare -A small=(
  [char_gpt]="-D B=2 -D T=21 -D L=1" [llama_char]="-D B=3 -D T=21 -D L=2"
  [seq2seq]="-D B=3 -D S=9 -D L=1" [mnist_vit]="-D B=3 -D L=1" [char_lstm]="-D B=3 -D T=5 -D H=24"
  [gpt2]="-D B=2 -D T=13 -D C=24 -D H=2 -D L=2 -D V=50"
  [char_lora]="-D B=3 -D T=21 -D L=1 -D R=2" [gan]="-D B=17 -D H=20"
  [moe_gpt]="-D B=3 -D T=21 -D L=1" [resnet20]="-D B=2 -D W=3" [unet]="-D B=2 -D C=4" [mnist_cnn]="-D B=5"
)
sanitized=" digits_mlp gcn mnist_vit "
optimised=" char_gpt char_lstm digits_mlp gcn mnist_cnn moe_gpt "
cp -r "$root/examples/data" .
found=0
while IFS= read -r file; do
  name=$(basename "$file" .graph)
  sizes=()
  [[ -z "${MLTC_SANITIZED:-}" || $sanitized == *" $name "* ]] || continue
  read -ra sizes <<<"${small[$name]:-}"
  if [[ $name == char_gpt && -z "${MLTC_SANITIZED:-}" ]]; then
    sizes=(-D B=4)
  fi
  level=-O2
  [[ -n "${MLTC_SLOW:-}" || $optimised == *" $name "* ]] || level=-O0
  [[ -z "${MLTC_SANITIZED:-}" ]] || level=-O1
  "$mltc" $level "${sizes[@]}" "$file" -o "$name"
  "./$name" check >out.txt || {
    cat out.txt
    fail "check of $name"
  }
  tail -n 1 out.txt | grep -q "all checks passed" || fail "check of $name says: $(tail -n 1 out.txt)"
  grep -q "^gradient " out.txt || fail "check of $name compares no gradients"
  ! grep "not compared" out.txt || fail "check of $name leaves gradients out"
  "./$name" info >out.txt
  grep -q '^memory *[0-9]* bytes' out.txt || fail "info of $name"
  "./$name" --help >out.txt
  grep -q -- '--resume' out.txt || fail "--help of $name"
  found=$((found + 1))
done < <(find "$root/examples" -name '*.graph' | sort)
[ "$found" -ge 3 ] || fail "only $found examples"
