#!/usr/bin/env bash
# Equal input, equal output: every kind of --emit, and the trainers themselves, come out byte for byte
# the same, wherever the compiler runs, whatever surrounds it, and however many processors it finds.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
need_plain_build

cp -r "$root/examples/data" "$root"/examples/*.graph .
kinds=(ast ir kernels plan plan.json c llvm asm dot resources report)

emit_all() { # FOLDER
  local name kind
  for name in digits_mlp mnist_mlp char_gpt; do
    for kind in "${kinds[@]}"; do
      case $name-$kind in mnist_mlp-llvm | mnist_mlp-asm | char_gpt-llvm | char_gpt-asm) continue ;; esac # seconds each
      "$mltc" $name.graph --emit="$kind" -O1 -o "$1/$name.$kind"
      [ -s "$1/$name.$kind" ] || fail "--emit=$kind of $name is empty"
    done
  done
  "$mltc" digits_mlp.graph --no-cache -O0 -o "$1/digits"
  "$mltc" mnist_mlp.graph --no-cache -D H=48 -o "$1/mnist"
}

mkdir first second tmp
emit_all first
export TMPDIR=$scratch/tmp MALLOC_PERTURB_=85 COLUMNS=40 TZ=Asia/Kathmandu EXTRA=1
if command -v taskset >/dev/null; then
  mltc_real=$mltc
  printf '#!/bin/sh\nexec taskset -c %s %q "$@"\n' "$(taskset -pc $$ | sed 's/.*: *\([0-9]*\).*/\1/')" "$mltc_real" >mltc
  chmod +x mltc
  mltc=./mltc
fi
emit_all second
for file in first/*; do
  same "$file" "second/${file#*/}" "two outputs for equal input"
done
[ -z "$(ls tmp)" ] || fail "mltc leaves files in \$TMPDIR: $(ls tmp)"

# --- with the cache of compiled files: the same programs, cold, warm, and where comments are others
export XDG_CACHE_HOME=$scratch/cache
mkdir cache
cached() { # NAME OPTION...: how many files came from the cache
  "$mltc" digits_mlp.graph -O0 -v "${@:2}" -o "$1" 2>said.txt
  grep -c '^+ from the cache: ' said.txt || true
}
[ "$(cached cold)" = 0 ] || fail "an empty cache has something"
all=$(cached warm)
[ "$all" -ge 4 ] || fail "$all files from the cache"
! grep -q -- ' -c ' said.txt || fail "compiled again: $(cat said.txt)"
same first/digits cold "programs without the cache, and with an empty one"
same first/digits warm "programs without the cache, and from it"
[ "$(cached none --no-cache)" = 0 ] || fail "--no-cache uses the cache"
[ "$(cached other -O1)" = 0 ] || fail "-O1 takes what was compiled with -O0"
[ "$(cached wider --target=cpu:x86-64-v3)" = 0 ] || fail "another target takes what was compiled for this machine"
some=$(cached sqrt --checkpoint=all)
[ "$some" -ge 2 ] || fail "kernels are compiled again for another plan: $some of $all from the cache"
[ "$some" -lt "$all" ] || fail "another plan, and the same program"
for entry in cache/mltc/*.image; do
  printf 'x' | dd of="$entry" bs=1 seek=100 conv=notrunc status=none
done
[ "$(cached damaged)" = 0 ] || fail "takes damaged files"
same first/digits damaged "programs without the cache, and with a damaged one"
python3 -c 'import json, sys; [json.load(open(f)) for f in sys.argv[1:]]' first/*.plan.json

# Configuration files, which clang 16 and newer says that it has read: of each other text objects of its own; where one
# may name further files, none are kept.
cat >compiler <<EOF
#!/bin/sh
${MLTC_CC:-clang} "\$@" || exit
case " \$* " in *" --version "*) echo "Configuration file: $scratch/clang.cfg" ;; esac
EOF
chmod +x compiler
configured() { # TEXT all|none: what comes from the cache where that is configured
  echo "$1" >clang.cfg
  local found
  found=$(MLTC_CC=./compiler cached configured -O0)
  if [ "$2" = none ]; then
    [ "$found" = 0 ] || fail "$found files from the cache with '$1'"
  elif grep -q -- ' -c ' said.txt || [ "$found" = 0 ]; then
    fail "compiled again with '$1': $(cat said.txt)"
  fi
}
configured -DA=1 none
configured -DA=1 all
configured -DA=2 none
configured '@other.cfg' none
configured '@other.cfg' none

# --- the plan's hash, by which a trainer tells whose checkpoint it resumes: of what is computed, not of how memory is saved
hash_of() { # MLTC-OPTION...
  "$mltc" "$@" --emit=c | sed -n 's/.*\.plan_hash = *//p'
}
hash=$(hash_of digits_mlp.graph)
[ -n "$hash" ] || fail "no plan hash"
for policy in all sqrt none; do
  [ "$(hash_of digits_mlp.graph --checkpoint=$policy)" = "$hash" ] || fail "--checkpoint=$policy changes the plan's hash"
done
for edit in 's/, 0\.2)/, 0.3)/' 's/decay=0\.05/decay=0.04/' 's/dropout(relu(/dropout(gelu(/' 's/ *rank >= 2/ rank >= 1/'; do
  sed -e "$edit" digits_mlp.graph >other.graph
  ! cmp -s other.graph digits_mlp.graph || fail "$edit edits nothing"
  [ "$(hash_of other.graph)" != "$hash" ] || fail "$edit leaves the plan's hash as it was"
done
