#!/usr/bin/env bash
# Random stacks of standard layers, as people write them, are planned for CPUs and GPUs without a fault: 60 of them,
# and 1,500 with MLTC_SLOW. A NaN stays one through every activation.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
need_plain_build
command -v python3 >python.txt || skip "no python3"

cat >layers.py <<'EOT'
import random, subprocess, sys

ACTS = "relu gelu silu tanh sigmoid leaky_relu softplus abs elu selu mish hard_silu prelu".split()

# A layer is a function of the random numbers and of the stack so far (size, channels); it returns lines.
def conv(r, s):
    s["c"] = r.choice([4, 8, 12])
    return [f"h = conv2d(h, {s['c']}, padding=1{r.choice(['', '', ', bias=false'])})"]

def residual(r, s):
    norm = r.choice(["batchnorm", "layernorm"])
    return [f"h = h + {r.choice(ACTS)}({norm}(conv2d(h, {s['c']}, padding=1)))"]

def groups(r, s):
    return [f"h = groupnorm(h, {r.choice([g for g in (1, 2, 4) if s['c'] % g == 0])})"]

def pool(r, s):
    if s["size"] < 4:
        return []
    s["size"] //= 2
    return [f"h = {r.choice(['max', 'avg'])}_pool2d(h, 2)"]

def overlapping(r, s):
    kind = r.choice(["max", "avg"])
    if r.random() < 0.5:
        part = r.choice([g for g in (1, 2, 4, s["c"]) if s["c"] % g == 0])
        return [f"h = conv2d(h, {s['c']}, size={r.choice([2, 3])}, padding=1, groups={part})"
                f"[:, 0:{s['size']}, 0:{s['size']}, :]"]
    if r.random() < 0.5 or s["size"] < 2:
        return [f"h = {kind}_pool2d(h, 3, step=1, padding=1)"]
    s["size"] = (s["size"] - 1) // 2 + 1
    return [f"h = {kind}_pool2d(h, 3, step=2, padding=1)"]

def attend(r, s):
    c, heads, norm = s["c"], r.choice([1, 2, 4]), r.choice(["layernorm", "rmsnorm"])
    options = r.choice(["", ", causal=true", ", window=2", ", drop=0.1, causal=true"])
    return [f"{n} = heads(linear({norm}(h), {c}), {heads})" for n in "qkv"] + [
        f"h = h + linear(merge_heads(attention(q, k, v{options})), {c})"]

def along_time(r, s):
    if r.random() < 0.2 and s["size"] >= 4:
        s["size"] //= 2
        return [f"h = {r.choice(['max', 'avg'])}_pool1d(h, 2)[:, 0:{s['size']}]"]
    part = r.choice([g for g in (1, 2, 4, s["c"]) if s["c"] % g == 0])
    return r.choice([
        [f"h = h + {r.choice(ACTS)}(conv1d(h, {s['c']}, size={r.choice([2, 3])}, causal=true, groups={part}))"],
        [f"h = conv1d(h, {s['c']}, padding=2, dilate=2, groups={part})"],
        [f"h = groupnorm(h, {part})"],
        ["h = h + softmax(h, axis=1)"],
        ["h = running_sum(h, axis=1) / (f32(iota([1, shape(h)[1], 1], axis=1)) + 1)"],
        ["h = h - 0.5 * flip(h, axis=1)"],
        ["h = (h - mean(h, axis=1, keep=true)) / (deviation(h, axis=1, keep=true) + 0.1)"],
        ["h = unit(h) * clamp(h, -1, 2)"]])

def one_of(*lines):
    return lambda r, s: [r.choice(lines).format(a=r.choice(ACTS), m=r.choice([1, 8, 16, 64]), c=s["c"], c2=2 * s["c"])]

KINDS = [ # sizes, channels, the input, layers, ends
    ([4, 7, 8, 12], [1, 3, 4, 8], "x: f32[B,{size},{size},{c}]",
     [conv, conv, residual, groups, pool, overlapping, overlapping,
      one_of("h = {a}(h)", "h = dropout(h, 0.2)", "h = batchnorm(h)", "h = {a}(batchnorm(h))")],
     ["h = global_avg_pool(h)", "h = reshape(h, [B, -1])", "h = max(h, axis=[1, 2])"]),
    ([1, 3, 8, 16], [4, 8, 16], "x: f32[B,{size},{c}]",
     [attend, attend, along_time, along_time, one_of("h, last, cell = lstm(h, {c})", "h, last = gru(h, {c})"),
      one_of("h = batchnorm(linear({a}(h), {c}))",
             "h = layernorm(h + dropout(linear({a}(linear(h, {c2})), {c}), 0.1))")],
     ["h = mean(h, axis=1)", "h = h[:,-1]", "h = reshape(h, [B, -1])"]),
    ([1], [1, 4, 16, 100], "x: f32[B,{c}]",
     [one_of("h = {a}(batchnorm(linear(h, {m})))", "h = {a}(linear(h, {m}))", "h = layernorm({a}(linear(h, {m})))",
             "h = concat([h, {a}(linear(h, {m}))], axis=-1)", "h = dropout(rmsnorm(linear(h, {m})), 0.3)")],
     ["h = 2 * h"])]

def stack(r):
    sizes, channels, x, layers, ends = r.choice([KINDS[0], *KINDS])
    s = {"size": r.choice(sizes), "c": r.choice(channels)}
    lines = [x.format(**s)]
    for _ in range(r.randint(1, 5)):
        lines += r.choice(layers)(r, s)
    return lines + [r.choice(ends)]

def graph(r):
    lines = stack(r)
    optim = r.choice(["sgd(0.01)", "sgd(0.01, momentum=0.9)", "adam(0.001)", "adamw(0.001)\n  clip = 1.0"])
    loss = r.choice(["cross_entropy(o, y)", "mse(o, one_hot(y, 4))", "huber(softmax(o), one_hot(y, 4))"])
    train = r.choice(["", "", ", accumulate = 2", ", precision = bf16"])
    return (f"let B = {r.choice([1, 2, 5, 8, 32, 64, 128])}\nmodel m({lines[0]}, y: i32[B]) {{\n  h = x\n  "
            + "\n  ".join(lines[1:]) + f"\n  o = linear(h, 4)\n  loss {loss}\n}}\noptim {{\n  {optim}\n}}\n"
            f'train {{ steps = 2{train} }}\ndata {{ train = npy("x.npy", "y.npy") }}\n')

def run(*args):
    p = subprocess.run(args, capture_output=True, text=True, timeout=120)
    if p.returncode:
        sys.exit(f"{' '.join(args)}: {p.stderr}{p.stdout[-2000:]}\n{open('g.graph').read()}")

mltc, count = sys.argv[1], int(sys.argv[2])
for seed in range(count):
    with open("g.graph", "w") as f:
        f.write(graph(random.Random(seed)))
    run(mltc, "g.graph", "--emit=plan")
    run(mltc, "g.graph", "--emit=plan", "--target=cuda:sm_90a", "--checkpoint=all")
EOT
number=60
[ -z "${MLTC_SLOW:-}" ] || number=1500
python3 layers.py "$mltc" "$number" || fail "a stack of layers"

# A kernel gives all of its first members away to the backward pass; what is left sees two dimensions as one.
cat >norm.graph <<'EOT'
let B = 32
model m(x: f32[B,8,8,4], y: f32[B,2]) {
  h = relu(batchnorm(conv2d(x, 4, padding=1)))
  loss mean((linear(global_avg_pool(h), 2) - y) ** 2)
}
optim { sgd(0.01) }
data { train = npy("x.npy", "y.npy") }
EOT
"$mltc" norm.graph -O1 -o norm || fail "a norm of a convolution with a bias"
./norm check --threads=2 >check.txt || fail "check of a norm of a convolution: $(cat check.txt)"

# The gradient of its bias is 0 but for rounding, and so is the norm of that.
cat >bias.graph <<'EOT'
model m(x: f32[4,3], y: f32[4,2]) {
  z = batchnorm(linear(x, 2))
  loss mean((z - y) ** 2)
}
optim {
  sgd(0.01)
  clip = 1.0
}
data { train = npy("x.npy", "y.npy") }
train { steps = 3 }
EOT
"$mltc" bias.graph -O1 -o bias || fail "a bias in front of a norm"
./bias check --threads=2 >check.txt || fail "check of a bias in front of a norm: $(cat check.txt)"

# --- a NaN stays one through every activation, where it is and nowhere else
python3 - <<'EOT'
import struct
ACTS = ("relu gelu gelu_tanh silu tanh sigmoid leaky_relu softplus log_sigmoid elu selu mish hard_sigmoid hard_silu "
        "prelu").split()
def save(path, shape, numbers):
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        f.write(struct.pack(f"<{len(numbers)}f", *numbers))
row = [1, -1, 0, float("nan"), -2, 3, 30, -30] + [0.5, -0.5, float("nan")] * 5 # a vector and a part of one
save("x.npy", (2, len(row)), 2 * row)
save("y.npy", (2,), [0, 0])
with open("nan.graph", "w") as f:
    f.write(f"model m(x: f32[2,{len(row)}], y: f32[2]) {{\n")
    f.writelines(f"  output {name} = {name}(x)\n" for name in ACTS)
    f.write('  loss mse(reshape(linear(prelu(x), 1), [2]), y)\n}\ndata { train = npy("x.npy", "y.npy") }\n'
            "optim { sgd(0.1) }\ntrain { steps = 1 }\n")
EOT
"$mltc" -O1 nan.graph -o nan 2>/dev/null
./nan --quiet 2>/dev/null
./nan predict --split=train --out=of
python3 - <<'EOT' || fail "a NaN is lost, or spreads"
import glob, math, struct
files = glob.glob("of-*.npy")
assert len(files) == 15, files
def read(path):
    data = open(path, "rb").read()
    return struct.unpack("<46f", data[-4 * 46:])
x = read("x.npy")
for path in files:
    assert [math.isnan(v) for v in read(path)] == [math.isnan(v) for v in x], (path, read(path))
EOT

# --- windows in padding: what lies beside them counts for nothing, be it ever so low
python3 - <<'EOT'
import struct
low = [float("-inf")] * 4 + [-3.3e38] * 4 + [-1, -2, -3, -4]
head = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2, 2, 1), }"
head += " " * (63 - (10 + len(head)) % 64) + "\n"
open("low.npy", "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack("<12f", *low))
EOT
cat >low.graph <<'GRAPH'
model m(x: f32[3,2,2,1]) {
  output pooled = max_pool2d(x, 3, step=1, padding=1)
  output bytes = f32(max(pad_lowest(i8(x), [0, 0, 0, 0], [0, 0, 0, 1]), axis=1))
  loss mean(linear(reshape(x, [3, 4]), 1))
}
data { train = npy("low.npy") }
optim { sgd(0.1) }
train { steps = 1 }
GRAPH
"$mltc" -O1 low.graph -o low
./low --quiet 2>/dev/null
./low predict --split=train --out=low
python3 - <<'EOT' || fail "maxima of windows in padding"
import glob, struct
def tail(path, n):
    return list(struct.unpack(f"<{n}f", open(path, "rb").read()[-4 * n:]))
f32 = lambda v: struct.unpack("<f", struct.pack("<f", v))[0]
assert tail("low-pooled.npy", 12) == [float("-inf")] * 4 + [f32(-3.3e38)] * 4 + [-1] * 4, tail("low-pooled.npy", 12)
assert tail("low-bytes.npy", 12) == [-128] * 8 + [-1, -128, -2, -128], tail("low-bytes.npy", 12)
EOT

# --- gradients that only a norm's epsilon keeps from being 0: rounding is much of them, and no fault
awk 'BEGIN {srand(3); for (i = 0; i < 8; i++) for (j = 0; j < 6; j++) printf "%.3f%s", 4 * rand() - 2, j < 5 ? "," : "\n"}' >even.csv
for after in '(batchnorm(layernorm(x * w)) - 0.1) ** 2' 'batchnorm(x * w) ** 2' 'layernorm(batchnorm(max(x * w, w))) ** 2'; do
  cat >even.graph <<EOT
model m(x: f32[8,6]) {
  param w: f[8,6] = normal(0.5)
  loss mean($after)
}
data { train = csv("even.csv") }
optim { sgd(0.1) }
train { steps = 2 }
EOT
  for level in 0 2; do
    "$mltc" -O$level even.graph -o even
    ./even check >said.txt || fail "check of $after: $(grep -A1 FAILED said.txt)"
  done
done

# --- infinity: softplus has its limits there, and what a slope or a square is not for does not reach its gradient; rows
# of -inf alone have a sum of logarithms, and a gradient of 0
printf '0,1,2,0\n1,0,3,1\n' >inf.csv
cat >inf.graph <<'GRAPH'
model m(x: f32[2,3], y: f32[2]) {
  param p: f[3] = zeros
  low = log(x) + p
  loss mean(exp(-softplus(low)) + exp(-prelu(abs(log(x))))) + mse(mean(exp(log_sigmoid(-low)), axis=1), y) +
    exp(-huber(low, 0 * x)) + exp(-smooth_l1(low, 0 * x)) + mean(exp(log_sum_exp(log(0 * x) + p)))
}
data { train = csv("inf.csv", label=last) }
optim { sgd(0.1) }
train { steps = 3 }
GRAPH
"$mltc" -O1 inf.graph -o inf
./inf --stop-on-nan --no-save --quiet || fail "a NaN from infinity"
