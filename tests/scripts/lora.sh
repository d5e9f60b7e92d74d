#!/usr/bin/env bash
# examples/char_lora.graph, small: a base network is trained, adapters beside it learn another text. The
# adapted network begins as the base, only the adapters change, nothing else has a gradient or a moment. And
# --weights: what it says it loads, converts, misses and leaves; files that will not do are errors.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
need_plain_build
command -v python3 >python.txt || skip "no python3"

cat >files.py <<'PYTHON'
"""texts | changed FILE FILE | begins FILE FILE NETWORK... | rewrite FROM TO TYPE [WITHOUT...] | renamed FROM TO | huge FROM TO"""
import json
import struct
import sys


def read(path):
    with open(path, "rb") as f:
        head = json.loads(f.read(int.from_bytes(f.read(8), "little")))
        data = f.read()
    head.pop("__metadata__", None)
    return {name: (t["dtype"], t["shape"], data[slice(*t["data_offsets"])]) for name, t in head.items()}


def write(path, tensors):
    head, data = {}, b""
    for name, (dtype, shape, part) in tensors.items():
        head[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(head).encode()
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text + data)


def converted(part, dtype):
    numbers = struct.unpack(f"<{len(part) // 4}f", part)
    if dtype == "BF16":  # the nearest is one of the two around it
        return b"".join(((struct.unpack("<I", struct.pack("<f", v))[0] + 0x8000) >> 16).to_bytes(2, "little")
                        for v in numbers)
    if dtype == "I32":
        return struct.pack(f"<{len(numbers)}i", *map(int, numbers))
    return struct.pack(f"<{len(numbers)}{'e' if dtype == 'F16' else 'd'}", *numbers)


def main():
    what, *args = sys.argv[1:]
    if what == "texts":
        for name, words in (("base", "one two three four five six seven"), ("other", "rouge vert bleu jaune")):
            words = words.split()
            with open(name + ".txt", "w", encoding="ascii") as f:
                f.write(" ".join(words[i * i * 7 % 61 % len(words)] for i in range(2000)))
    elif what == "changed":  # names of the first file's floats that the second has otherwise
        one, two = map(read, args)
        print(*sorted(n for n, t in one.items() if t[0] == "F32" and two.get(n) != t), sep="\n")
    elif what == "begins":  # all networks of the first file are the second's `online`
        one, two = read(args[0]), read(args[1])
        names = [n[6:] for n in two if n.startswith("online.")]
        sys.exit(not names or any(one[network + n] != two["online" + n] for network in args[2:] for n in names))
    elif what == "rewrite":
        tensors = read(args[0])
        kept = {n: t for n, t in tensors.items() if t[0] == "F32" and not n.endswith((".m", ".v"))}
        for name in args[3:]:
            del kept[name]
        write(args[1], {n: (args[2], s, converted(d, args[2])) for n, (_, s, d) in kept.items()})
    elif what == "renamed":
        write(args[1], {"model." + n: t for n, t in read(args[0]).items()})
    elif what == "huge":
        tensors = read(args[0])
        tensors["wpe"] = ("F64", tensors["wpe"][1], struct.pack("<d", 1e300) * (len(tensors["wpe"][2]) // 4))
        write(args[1], tensors)


main()
PYTHON
python3 files.py texts
sizes=(-D B=4 -D T=16 -D C=16 -D H=2 -D L=1)
compile() { # NAME TEXT MORE...
  "$mltc" -O1 "${sizes[@]}" -D FILE="\"$2.txt\"" "${@:3}" "$root/examples/char_lora.graph" -o "$1"
}
loss_of() { # PROGRAM ARGUMENTS...: on `val`, with all its digits
  "./$1" eval --quiet --no-times --metrics=loss.jsonl "${@:2}" >loss.txt
  tail -n 1 loss.jsonl | sed 's/.*"loss":\([0-9.e-]*\).*/\1/'
  rm loss.jsonl
}
near() { # X Y RELATIVE
  awk -v x="$1" -v y="$2" -v by="$3" 'BEGIN {d = x - y; exit !((d < 0 ? -d : d) <= by * y)}'
}

compile base base
compile other other
compile tune other -D R=3
./base --quiet --steps=300 --lr=0.01 --save=base.st

# --- the adapted network begins as the base
begins=$(loss_of tune --weights=base.st --allow-missing)
base=$(loss_of other --resume=base.st)
near "$begins" "$base" 1e-6 || fail "the adapted network begins with loss $begins, the base has $base"

# --- only adapters learn
./tune --weights=base.st --allow-missing --lr=0.03 --steps=200 --save=tuned.st >said.txt
cat >want.txt <<'TEXT'
weights: base.st: 16 loaded, 8 missing, 34 not used
  missing in the file: layer.0.dense.linear.lora.a
  missing in the file: layer.0.dense.linear.lora.b
  missing in the file: layer.0.dense_2.linear.lora.a
  missing in the file: layer.0.dense_2.linear.lora.b
  missing in the file: 4 more
  not used: seed
  not used: step
  not used: layer.0.dense.linear.b.m
  not used: layer.0.dense.linear.b.v
  not used: 30 more
TEXT
head -n 11 said.txt | diff want.txt - || fail "the report of --weights"
learned=$(loss_of tune --resume=tuned.st)
echo "loss on the other text: $begins, after LoRA $learned"
awk -v a="$begins" -v b="$learned" 'BEGIN {exit !(b < 0.8 * a)}' || fail "the adapters learned little"
[ "$(loss_of tune --weights=tuned.st)" = "$learned" ] || fail "--weights and --resume read other networks"
python3 files.py changed base.st tuned.st | grep -vE '\.[mv]$' >changed.txt || true
[ ! -s changed.txt ] || fail "frozen parameters have changed: $(head -n 1 changed.txt)"
./tune --quiet --weights=base.st --allow-missing --steps=0 --save=begun.st
python3 files.py changed begun.st tuned.st | grep -vE '\.[mv]$' >changed.txt
[ "$(grep -c . changed.txt)-$(grep -c lora changed.txt)" = 8-8 ] || fail "not all adapters learned"

# --- what is frozen has no gradient and no moments; the plan has all bytes
"$mltc" "${sizes[@]}" -D R=3 --emit=ir "$root/examples/char_lora.graph" >tune.ir
grep -q '^state wte : .* role=frozen' tune.ir || fail "wte is not frozen"
! grep -E '^state .*role=moment' tune.ir | grep -v lora || fail "a frozen parameter has a moment"
! grep -E '%d\.(wte|wpe|layer\.0\.(dense(_[234])?\.linear\.[wb]|layernorm\.[gb])) =' tune.ir ||
  fail "a frozen parameter has a gradient"
grep -qE '%d\.layer\.0\.dense\.linear\.lora\.a' tune.ir || fail "an adapter has no gradient"

./tune info | awk '$3 == "parameter" {trained += $4} $3 == "moment" {moments += $4} $3 == "frozen" {frozen += $4}
  END {print trained, moments, frozen; exit !(trained > 0 && moments == 2 * trained && frozen > 4 * trained)}' ||
  fail "these bytes are not those of trained parameters, two moments for each, and the frozen ones"

# --- a run that is broken off goes on to the same bits
./tune --quiet --weights=base.st --allow-missing --steps=50 --save=part.st
./tune --quiet --resume=part.st --steps=200 --save=part.st
./tune --quiet --weights=base.st --allow-missing --steps=200 --save=tuned2.st --threads=3
same part.st tuned2.st "a resumed run and a whole one"

# --- other floating-point types; other programs' files, which have no metadata
for type in F64 F16 BF16; do
  python3 files.py rewrite base.st $type.st $type
  ./other eval --weights=$type.st >said.txt
  grep -q "^weights: $type.st: 16 loaded (16 converted), 0 missing, 0 not used$" said.txt || fail "$type: $(head -n 3 said.txt)"
  near "$(loss_of other --weights=$type.st)" "$base" "$([ $type = F64 ] && echo 1e-9 || echo 1e-2)" || fail "the loss with $type"
done
./other predict --weights=F64.st --out=p >said.txt
./other predict --resume=base.st --out=q >said.txt
same p-output.npy q-output.npy "predictions"

# --- a copy of a network begins as the network of the file does, or as its own in the file
cat >single.graph <<'GRAPH'
let B = 4, COPY = 1
flag steps = 5
block net(x: f[b,n]) -> f[b,3] { return linear(tanh(linear(x, 5)), 3) }
model m(x: f32[B,6]) {
  y = net(x) as online
  if COPY == 0 {
    loss mean(y ** 2)
  } else {
    state target: like online = online
    state second: like target = target
    loss apart = mean((y - net(x) with target + 1) ** 2) over online
    target <- 0.9 * target + 0.1 * online
    second <- 0.5 * second + 0.5 * target
  }
}
data { train = npy("x.npy") }
optim { sgd(0.1) }
train { steps = steps, seed = 5 }
GRAPH
PYTHONPATH=$root/examples/data python3 -c 'from npy import write_npy
write_npy("x.npy", "<f4", (20, 6), [(i * 37 % 101) / 50 - 1 for i in range(120)])'
"$mltc" -O1 single.graph -D COPY=0 -o alone
"$mltc" -O1 single.graph -o pair
./alone --quiet --save=alone.st
./pair --weights=alone.st --steps=0 --save=first.st >said.txt
grep -q '^weights: alone.st: 12 loaded, 0 missing' said.txt || fail "copies: $(head -n 3 said.txt)"
python3 files.py begins first.st alone.st online target second || fail "copies do not begin as the weights of the file"
./pair --quiet --save=later.st
./pair --quiet --weights=later.st --steps=0 --save=again.st
for name in online target second; do
  ! python3 files.py changed later.st again.st | grep "^$name" || fail "$name of the file is not what it begins with"
done

# --- what will not do
expect_error 1 "base.st': parameters are missing" ./tune --weights=base.st --no-save
grep -q '^help: --allow-missing' err.txt || fail "no help about --allow-missing"
python3 files.py rewrite base.st less.st F64 wte
expect_error 1 "less.st': frozen parameters are missing" ./tune --weights=less.st --allow-missing --no-save
grep -q 'missing in the file: wte (frozen)' err.txt || fail "which frozen parameter"
compile wide other -D C=24
expect_error 1 "base.st': shapes or types differ" ./wide --weights=base.st --allow-missing --no-save
grep -q 'different: wte is F32\[256,16\] in the file and F32\[256,24\] in the program' err.txt || fail "which shapes"
python3 files.py rewrite base.st whole.st I32
expect_error 1 "shapes or types differ" ./other --weights=whole.st --no-save
grep -q 'different: wte is I32\[256,16\] in the file and F32\[256,16\] in the program' err.txt || fail "which types"
python3 files.py renamed base.st renamed.st
expect_error 1 "none of its names is a parameter's" ./tune --weights=renamed.st --allow-missing --no-save
python3 files.py huge base.st huge.st
expect_error 1 "reading 'wpe': a number is beyond the range of F32" ./other --weights=huge.st --no-save
cp base.st damaged.st
printf '\377' | dd of=damaged.st bs=1 seek=$(($(stat -c %s base.st) - 100)) conv=notrunc status=none
expect_error 1 "its data are damaged" ./other --weights=damaged.st --no-save
head -c 5000 base.st >short.st
expect_error 1 "cannot use the weights 'short.st'" ./other --weights=short.st --no-save
expect_error 1 "cannot open the weights 'none.st'" ./other --weights=none.st --no-save
expect_error 2 "goes on with one" ./other --weights=base.st --resume
expect_error 2 "is about --weights" ./other --allow-missing
echo "lora: as it should be"
