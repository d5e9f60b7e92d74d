#!/usr/bin/env bash
# The IR that --keep writes after any pass, fed back to mltc, gives a trainer that ends in the same
# checkpoint as the direct one: the text form holds everything.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
need_plain_build

cp -r "$root/examples/data" "$root"/examples/*.graph .
[ ! -d "$data" ] || ln -s "$data"/* .
sed -i 's/epochs = 10/steps = 3/; s/every epoch/every 2/' mnist_mlp.graph
sed -i 's/, eval = val every 250//' char_gpt.graph # longer than the three steps

# Metadata name the source file: only the state counts.
state() { # CHECKPOINT
  python3 - "$1" <<'PY'
import json, struct, sys
data = open(sys.argv[1], "rb").read()
size = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + size])
for key in ("source_hash", "metadata_checksum", "plan_hash"):
    header["__metadata__"].pop(key)
sys.stdout.buffer.write(json.dumps(header).encode() + data[8 + size:])
PY
}

train() { # TRAINER NAME OPTION...
  local trainer=$1 name=$2
  shift 2
  "./$trainer" --quiet --threads=2 --save="$name.safetensors" "$@"
  state "$name.safetensors" >"$name.state"
}

round_trip() { # NAME STAGES OPTION...
  local name=$1 stages=$2 file stage last=/dev/null
  shift 2
  "$mltc" -O0 "$name.graph" --keep="$name.kept" -o "$name"
  train "$name" "$name" "$@"
  # shellcheck disable=SC2086 # stages are patterns
  for file in $(cd "$name.kept" && ls $stages); do
    stage=$name-${file%.ir}
    cp "$name.kept/$file" "$stage.ir"
    ! cmp -s "$last" "$stage.ir" || continue # a pass that changed nothing
    last=$stage.ir
    "$mltc" -O0 "$stage.ir" -o "$stage" || fail "$stage.ir does not compile"
    train "$stage" "$stage" "$@"
    same "$name.state" "$stage.state" "checkpoints of $name and of its IR after $stage"
  done
}

# Embedded files are looked for beside the file that is compiled: all lie in this folder.
round_trip digits_mlp '*.ir' --epochs=1
if [ -d "$data" ]; then
  round_trip mnist_mlp '0[12]-*.ir *order.ir'
  round_trip char_gpt '*fuse.ir' --steps=3
fi
