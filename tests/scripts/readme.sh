#!/usr/bin/env bash
# Runs every ```sh block of README.md, in order, in a scratch folder that looks like the source root.
# Data come from ../shared/data instead of the network: fetch-data keeps files with the right checksum.
set -euo pipefail
mltc=$1
build=$2
root=$PWD
data=$root/../shared/data
if [ ! -d "$data" ]; then
  echo "skipped: no ../shared/data"
  exit 77
fi
if [ -n "${MLTC_SANITIZED:-}" ]; then
  echo "skipped: ten epochs take too long with sanitizers"
  exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
ln -s "$root/scripts" "$root/examples" .
ln -s "$build" build
test -x "build/bin/$(basename "$mltc")"
mkdir data home
cp "$data"/*ubyte.gz data/

awk '/^```sh$/ {on = 1; next} /^```$/ {on = 0} on' "$root/README.md" >commands.sh
[ "$(wc -l <commands.sh)" -ge 10 ]
HOME=$scratch/home bash -euo pipefail -x commands.sh
[ -s mnist.jsonl ] && [ -x mnist-from-ir ]
for file in bin/mltc lib/mltc/libz.a share/man/man1/mltc.1 share/mltc/examples/digits_mlp.graph \
  share/doc/mltc/language.md; do
  [ -s "home/.local/$file" ] || {
    echo "not installed: $file"
    exit 1
  }
done

# The program in the README is the example, comments aside.
sed -n '/^## A program, whole/,/^Layers such as/p' "$root/README.md" | sed -n 's/^    //p' >shown.graph
build/bin/mltc shown.graph --emit=ast -o shown.txt
build/bin/mltc examples/mnist_mlp.graph --emit=ast -o example.txt
diff shown.txt example.txt
