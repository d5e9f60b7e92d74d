#!/usr/bin/env bash
# What parameters start with, as a compiled program computes it: orthogonal matrices and kernels of any
# shape are orthogonal to 1e-5, truncated normal values keep to their range and deviation, initializers
# of one's own do what they say. Equal bits whatever the number of threads, other values for other seeds.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
need_plain_build
command -v python3 >python.txt || skip "no python3"

cat >start.graph <<'GRAPH'
flag steps = 0, level = 2.5
initializer diagonal(dims, values=[1, 2]) {
  on = iota(dims, axis=0) == iota(dims, axis=1)
  return where(on, values[0], 0) + where(iota(dims) == 1 and on, values[1] - values[0], 0)
}
initializer mean_of(dims, n) {
  x = zeros(dims)
  repeat n { x = x + uniform(dims) / n }
  return x
}
initializer as_set(dims) { return zeros(dims) + level }
model start(x: f32[2,4]) {
  param one: f[1,1] = orthogonal
  param row: f[9] = orthogonal()
  param odd: f[7,7] = orthogonal(1)
  param wide: f[31,100] = orthogonal(gain=1)
  param square: f[128,128] = orthogonal
  param kernel: f[3,3,4,20] = orthogonal
  param half: f[16,8] = orthogonal(gain=0.5)
  param cut: f[200,100] = truncated_normal(0.5)
  param own: f[3,3] = diagonal(values=[5, 7])
  param means: f[100,100] = mean_of(4)
  param set: f[2] = as_set
  w = sum(one) + sum(row) + sum(odd) + sum(wide) + sum(square) + sum(kernel)
  loss mean(x) + 0 * (w + sum(half) + sum(cut) + sum(own) + sum(means) + sum(set))
}
data { train = npy("x.npy") }
optim { sgd(0.1) }
train { steps = steps, seed = 3 }
GRAPH

cat >look.py <<'PYTHON'
import json, math, struct, sys

with open(sys.argv[1], "rb") as f:
    size = struct.unpack("<Q", f.read(8))[0]
    head, body = json.loads(f.read(size)), f.read()


def read(name):
    lo, hi = head[name]["data_offsets"]
    return head[name]["shape"], struct.unpack(f"<{(hi - lo) // 4}f", body[lo:hi])


def columns(name):
    """Those of the matrix, or its rows when there are fewer."""
    shape, x = read(name)
    m = shape[-1]
    rows = [x[i:i + m] for i in range(0, len(x), m)]
    return rows if len(rows) < m else list(zip(*rows))


def orthogonal(name, gain=1.0):
    v = columns(name)
    worst = max(abs(math.fsum(p * q for p, q in zip(v[i], v[k])) - (i == k) * gain * gain)
                for i in range(len(v)) for k in range(i + 1))
    print(f"{name}: {len(v)} vectors, at most {worst:.1e} from orthogonal")
    assert worst < 1e-5, name


def spread(name, mean, deviation, lo, hi):
    x = read(name)[1]
    m = math.fsum(x) / len(x)
    d = math.sqrt(math.fsum((v - m)**2 for v in x) / len(x))
    print(f"{name}: mean {m:.4f}, deviation {d:.4f}, {min(x):.4f} to {max(x):.4f}")
    assert abs(m - mean) < 0.02 and abs(d / deviation - 1) < 0.02 and lo <= min(x) and max(x) <= hi
    return min(x), max(x)


for name in "one", "row", "odd", "wide", "square", "kernel":
    orthogonal(name)
orthogonal("half", 0.5)
lowest, highest = spread("cut", 0, 0.5 * 0.8796257, -1, 1)  # the deviation of a normal cut at 2
assert lowest < -0.99 and highest > 0.99
assert read("own")[1] == (5, 0, 0, 0, 7, 0, 0, 0, 5), read("own")
assert read("set")[1] == ((7, 7) if "other" in sys.argv[1] else (2.5, 2.5)), read("set")
spread("means", 0.5, math.sqrt(1 / 48), 0, 1)
PYTHON

PYTHONPATH="$root/examples/data" python3 - <<'PYTHON'
from npy import write_npy
write_npy("x.npy", "<f4", (4, 4), range(16))
PYTHON

"$mltc" -O1 start.graph -o start
for run in 1 3; do
  ./start --quiet --threads=$run --save=start$run.safetensors
done
same start1.safetensors start3.safetensors "initial values of 1 and 3 threads"
./start --quiet --seed=4 --level=7 --save=other.safetensors
python3 look.py start1.safetensors
python3 look.py other.safetensors
cmp -s start1.safetensors other.safetensors && fail "another seed gives the same values"

# --- initializers that cannot be
expect_wrong() { # PATTERN LINE: the line declares a parameter, or an initializer before the model
  {
    grep '^initializer' <<<"$2" || true
    echo 'flag rate = 0.1'
    echo 'model m(x: f32[2,4]) {'
    grep -v '^initializer' <<<"$2"
    printf '  loss mean(x) + 0 * sum(p)\n}\noptim { sgd(0.1) }\n'
  } >wrong.graph
  expect_error 1 "$1" "$mltc" wrong.graph --emit=ir
}
expect_wrong "E0207.*known at compile time" '  param p: f[3,3] = orthogonal(gain=rate)'
expect_wrong "E0205.*no parameter 'gian'" '  param p: f[3,3] = orthogonal(gian=2)'
expect_wrong "E0205.*too many arguments" '  param p: f[3,3] = orthogonal(1, 2)'
expect_wrong "E0223.*one number has no columns" '  param p: f[] = orthogonal'
expect_wrong "E0218.*need element type f32 or f64, not bf16" '  frozen p: bf16[3,3] = orthogonal'
expect_wrong "E0201.*unknown name 'ortogonal'" '  param p: f[3,3] = ortogonal'
expect_wrong "E0203.*'p' is f32\[3,2\] and cannot start" 'initializer one(dims) { return zeros([2, 2]) }
  param p: f[3,2] = one'
expect_wrong "E0214.*'one' returns nothing" 'initializer one(dims) { y = dims }
  param p: f[3,2] = one'
expect_wrong "E0205.*begins with a parameter" 'initializer one() { return 1 }
  param p: f[3,2] = one'
expect_wrong "E0215.*parameters and states of its own" 'initializer one(dims) { param w: f[2] = one; return w }
  param p: f[2] = one'
expect_wrong "E0215.*'loss' only stands in a model" 'initializer one(dims) { loss 1; return zeros(dims) }
  param p: f[2] = one'
echo "initialisers: as they should be"
