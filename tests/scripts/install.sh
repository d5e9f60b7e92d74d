#!/usr/bin/env bash
# After `cmake --install`, mltc works from any folder and needs nothing of the source or build tree; so
# does the trainer that it makes.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash

cmake --install "$build" --prefix "$scratch/prefix" >install.txt || {
  cat install.txt
  fail "cmake --install"
}
mv prefix moved # a prefix is no constant of the program
for file in bin/mltc bin/mltc-pack share/man/man1/mltc-pack.1 lib/mltc/libmlrt.a lib/mltc/mlrt.h lib/mltc/mltc-nvrtc; do
  [ -e "moved/$file" ] || fail "$file is not installed"
done
for file in "$build"/lib/mltc/aarch64-linux-gnu/*; do
  [ ! -e "$file" ] || [ -e "moved/lib/mltc/aarch64-linux-gnu/${file##*/}" ] || fail "${file##*/} for aarch64 is not installed"
done
if [ -e "$root/docs/mltc.1" ]; then
  [ -e moved/share/man/man1/mltc.1 ] || fail "the man page is not installed"
fi
if [ -z "${MLTC_SANITIZED:-}" ]; then # debug information and sanitizers may name sources
  strip -g -o bare moved/bin/mltc
  ! grep -qF "$root/" bare || fail "mltc names its source folder"
  strip -g -o bare moved/bin/mltc-pack
  ! grep -qF "$root/" bare || fail "mltc-pack names its source folder"
  strip -g -o bare moved/lib/mltc/mltc-nvrtc
  ! grep -qF "$root/" bare || fail "mltc-nvrtc names its source folder"
fi

mkdir -p work/data
cp "$root/examples/digits_mlp.graph" work
cp "$root/examples/data/digits.csv.gz" work/data
cd "$scratch/work" || exit
PATH=$scratch/moved/bin:$PATH
mltc digits_mlp.graph -O1 -o digits
rm -r data digits_mlp.graph # the data travel in the program
./digits --epochs=3 >out.txt
grep -q "^test after step .*accuracy 0\.[6-9]" out.txt || {
  cat out.txt
  fail "no accuracy"
}
./digits info >/dev/null
mltc --version >out.txt
grep -q '^mltc [0-9]' out.txt
mltc --help >out.txt
grep -q -- '--emit=KIND' out.txt
printf 'id,lower,upper,size\nx,0,1,64\n' | mltc-pack /dev/stdin >out.txt
grep -qx 'x,0,1,64,0' out.txt
