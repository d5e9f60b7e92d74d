#!/usr/bin/env bash
# Random stacks of standard layers, as people write them, are planned for CPUs and GPUs without a fault: 60 of them,
# and 1,500 with MLTC_SLOW.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
need_plain_build
command -v python3 >python.txt || skip "no python3"

cat >layers.py <<'EOT'
import random, subprocess, sys

ACTS = "relu gelu silu tanh sigmoid leaky_relu softplus abs".split()

def conv_stack(r):
    size, c = r.choice([4, 7, 8, 12]), r.choice([1, 3, 4, 8])
    lines = [f"x: f32[B,{size},{size},{c}]"]
    for _ in range(r.randint(1, 5)):
        kind, act = r.randrange(8), r.choice(ACTS)
        if kind < 3:
            c, bias = r.choice([4, 8, 12]), r.choice(["", "", ", bias=false"])
            lines.append(f"h = conv2d(h, {c}, padding=1{bias})")
        elif kind == 3:
            lines.append(f"h = {act}(batchnorm(h))")
        elif kind == 4:
            lines.append(f"h = groupnorm(h, {r.choice([g for g in (1, 2, 4) if c % g == 0])})")
        elif kind == 5:
            lines.append(f"h = h + {act}({r.choice(['batchnorm', 'layernorm'])}(conv2d(h, {c}, padding=1)))")
        elif kind == 6 and size >= 4:
            size //= 2
            lines.append(f"h = {r.choice(['max', 'avg'])}_pool2d(h, 2)")
        else:
            lines.append(r.choice([f"h = {act}(h)", "h = dropout(h, 0.2)", "h = batchnorm(h)"]))
    return lines + [r.choice(["h = global_avg_pool(h)", "h = reshape(h, [B, -1])", "h = max(h, axis=[1, 2])"])]

def sequence(r):
    t, c = r.choice([1, 3, 8, 16]), r.choice([4, 8, 16])
    lines = [f"x: f32[B,{t},{c}]"]
    for _ in range(r.randint(1, 4)):
        kind, act, heads = r.randrange(6), r.choice(ACTS), r.choice([1, 2, 4])
        if kind < 2:
            options = r.choice(["", ", causal=true", ", window=2", ", drop=0.1, causal=true"])
            norm = r.choice(["layernorm", "rmsnorm"])
            lines += [f"{n} = heads(linear({norm}(h), {c}), {heads})" for n in "qkv"]
            lines.append(f"h = h + linear(merge_heads(attention(q, k, v{options})), {c})")
        elif kind == 2:
            lines.append(f"h, last, cell = lstm(h, {c})")
        elif kind == 3:
            lines.append(f"h, last = gru(h, {c})")
        elif kind == 4:
            lines.append(f"h = batchnorm(linear({act}(h), {c}))")
        else:
            lines.append(f"h = layernorm(h + dropout(linear({act}(linear(h, {2 * c})), {c}), 0.1))")
    return lines + [r.choice(["h = mean(h, axis=1)", "h = h[:,-1]", "h = reshape(h, [B, -1])"])]

def dense(r):
    lines = [f"x: f32[B,{r.choice([1, 4, 16, 100])}]"]
    for _ in range(r.randint(1, 5)):
        m, act = r.choice([1, 8, 16, 64]), r.choice(ACTS)
        lines.append(r.choice([
            f"h = {act}(batchnorm(linear(h, {m})))", f"h = {act}(linear(h, {m}))",
            f"h = layernorm({act}(linear(h, {m})))", f"h = concat([h, {act}(linear(h, {m}))], axis=-1)",
            f"h = dropout(rmsnorm(linear(h, {m})), 0.3)"]))
    return lines

def graph(r):
    lines = r.choice([conv_stack, conv_stack, sequence, dense])(r)
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
