#!/usr/bin/env bash
# scripts/quickstart from a clean copy of the sources, twice; then each command that it suggests. A
# terminal gets a progress line. mltc itself is built without optimisation here, as the suite's own build has it.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
need_plain_build

mkdir tree
export CMAKE_BUILD_TYPE=None
if git -C "$root" rev-parse --git-dir >git.txt 2>&1; then
  git -C "$root" ls-files -co --exclude-standard >files.txt
  while IFS= read -r file; do
    [ ! -e "$root/$file" ] || echo "$file"
  done <files.txt | tar -C "$root" -cf - -T - | tar -C tree -xf -
else
  tar -C "$root" --exclude='./build*' --exclude=./data -cf - . | tar -C tree -xf -
fi
cd tree || exit

for run in first second; do
  scripts/quickstart >said.txt 2>&1 || {
    cat said.txt
    fail "the $run quickstart"
  }
  sed -n '/^== result/,$p' said.txt >end.txt
  grep -qE '^test: +loss .* accuracy 0\.9[0-9]+ ' end.txt || fail "no test accuracy at the end ($run)"
  grep -qE '^memory +[0-9]+ bytes: states' end.txt || fail "no exact memory at the end ($run)"
  grep -q '^What to try next:' end.txt || fail "nothing to try next ($run)"
done

# Commands stand before two spaces or the end of the line; remarks behind.
sed -n '/^What to try next:/,$p' end.txt | sed -nE 's/^  ((build|scripts)\/[^ ]+( [^ ]+)*).*/\1/p' >next.txt
[ "$(wc -l <next.txt)" -ge 8 ] || fail "only $(wc -l <next.txt) commands are suggested"
if [ -d "$data" ]; then
  mkdir data
  cp "$data"/*ubyte.gz data # kept by fetch-data: their checksums are right
else
  grep -v mnist next.txt >rest.txt
  mv rest.txt next.txt
fi
while IFS= read -r command; do
  bash -c "$command" >said.txt 2>&1 </dev/null || {
    cat said.txt
    fail "suggested, but does not work: $command"
  }
done <next.txt

# For GPUs: with NVRTC where there is one, and with clang in its place.
for place in "${MLTC_NVRTC:-}" /nonexistent; do
  MLTC_NVRTC=$place XDG_CACHE_HOME=$scratch scripts/quickstart --cuda >said.txt 2>&1 || {
    cat said.txt
    fail "quickstart --cuda"
  }
  grep -q '^NVRTC, the compiler for GPUs: ' said.txt || fail "quickstart --cuda does not speak of NVRTC"
  grep -qE '^build/digits-cuda: [0-9]+ bytes' said.txt || fail "quickstart --cuda makes no program"
  grep -oE '^  build/bin/mltc .*[^ ]' said.txt >next.txt
  [ "$(wc -l <next.txt)" = 2 ] || fail "quickstart --cuda suggests $(wc -l <next.txt) commands"
  while IFS= read -r command; do
    MLTC_NVRTC=$place XDG_CACHE_HOME=$scratch bash -c "$command" >out.txt || fail "suggested, but does not work: $command"
  done <next.txt
done
grep -q 'apt-get install cuda-nvrtc' said.txt || fail "quickstart --cuda does not say what to install"

if command -v script >script.txt; then
  script -qec "build/digits --no-save --epochs=40" terminal.txt >said.txt </dev/null
  grep -qE $'\r.*step [0-9]+/1760 .* left' terminal.txt || fail "no progress line on a terminal"
fi
