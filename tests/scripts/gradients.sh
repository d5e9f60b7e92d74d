#!/usr/bin/env bash
# ./trainer check compares gradients with finite differences: it finds gradients that are wrong, wherever
# the IR was edited and however little, names the parameters they belong to and no others, and passes
# a network of many kinds of op and random graphs.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash
need_plain_build

cat >mixed.graph <<'GRAPH'
let B = 6
block conv(x: f[b,c,h,w], out) -> f[b,out,h,w] {
  param k: f[c,out] = normal(0.3)
  return transpose(transpose(x, [0, 2, 3, 1]) @ k, [0, 3, 1, 2])
}
model mixed(image: u8[B,8,8], word: i32[B], label: i32[B]) {
  param table: f[20,16] = normal(1)
  param extra: f[5] = zeros               # its gradient is that of linear_4.b
  x = relu(conv(reshape(f32(image) / 255, [B, 1, 8, 8]), 4))
  x = max(reshape(x, [B, 4, 4, 2, 8]), axis=3)
  h = linear(reshape(x, [B, 128]), 16) + embedding(table, word)
  h = dropout(gelu(layernorm(h)), 0.3)
  h = h + abs(linear(h, 16)) + tanh(linear(h, 16))
  loss cross_entropy(linear(h, 5) + extra, label)
}
data { train = csv("none.csv") }
optim { adamw(0.01), clip = 1.0 }
train { steps = 2 }
GRAPH
top="linear_4.w linear_4.b extra"
middle="linear_2.w linear_2.b linear_3.w linear_3.b"
bottom="layernorm.g layernorm.b linear.w linear.b table conv.k"

# The lines of gradients that end with $2: one name per word.
verdict() { # FILE VERDICT
  sed -n '/^gradient /,/^[0-9]* steps/p' "$1" |
    awk -v verdict="$2" '$2 ~ /^[0-9]+$/ && index($0, verdict) { print $1 }' | sort | xargs
}

expect_gradients() { # PROGRAM CODE OK FAILED
  local code=0
  "./$1" check --threads=2 >"$1.txt" || code=$?
  if [ "$code" -ne "$2" ] || [ "$(verdict "$1.txt" " ok")" != "$(xargs -n1 <<<"$3" | sort | xargs)" ] ||
    [ "$(verdict "$1.txt" FAILED)" != "$(xargs -n1 <<<"$4" | sort | xargs)" ]; then
    cat "$1.txt"
    fail "check of $1: exit code $code; not the gradients that are right ($3) and wrong ($4)"
  fi
}

"$mltc" -O0 mixed.graph --keep=kept -o mixed
expect_gradients mixed 0 "$top $middle $bottom" ""

# The same with gradients that are summed over three batches.
sed 's/steps = 2/steps = 2, accumulate = 3/' mixed.graph >summed.graph
"$mltc" -O0 summed.graph -o summed
expect_gradients summed 0 "$top $middle $bottom" ""

# Gradients whose last step, a sign or a factor, the optimiser's arithmetic could take in (as algebra draws constants
# together): they keep their names.
cat >signs.graph <<'GRAPH'
model signs(x: f32[8,6]) {
  param away: f[6] = normal(0.3)
  param scaled: f[6] = normal(0.3)
  param gate: f[] = ones
  param spread: f[6] = normal(0.3)
  loss mean(((1 - away) * x + 3 * scaled) ** 2) + mean(sigmoid(-gate) * x * x) + mean((x - sum(spread)) ** 2)
}
data { train = csv("none.csv") }
optim { sgd(0.1) }
train { steps = 2 }
GRAPH
"$mltc" signs.graph -o signs
expect_gradients signs 0 "away scaled gate spread" ""
for optimizer in 'adam(0.1)' 'sgd(0.1, momentum=0.9)' 'own(0.1)'; do
  { # one of its own takes sizes and sums of gradients
    echo 'optimizer own(w, g, lr) { state u: like w = zeros'
    echo '  u <- max(0.9 * u, abs(g))'
    echo '  w <- w - lr * u - lr * sum(g) }'
    sed "s/sgd(0.1)/$optimizer/" signs.graph
  } >other.graph
  "$mltc" other.graph -o other
  expect_gradients other 0 "away scaled gate spread" ""
done

number=0
kept=kept
wrong() { # STAGE PATTERN REPLACEMENT OK FAILED
  local file
  number=$((number + 1))
  file=$(find $kept -name "*-$1.ir")
  sed "s/$2/$3/" "$file" >"wrong$number.ir"
  ! cmp -s "$file" "wrong$number.ir" || fail "nothing in $file is '$2'"
  "$mltc" -O0 "wrong$number.ir" -o "wrong$number"
  expect_gradients "wrong$number" 1 "$4" "$5"
}

# A sign; the wrong side of a relu; a factor that is wrong by 0.06%; a tensor that stands for another.
wrong autodiff 'sub %d.tanh.const, %d.tanh.mul' 'add %d.tanh.const, %d.tanh.mul' \
  "$top linear_2.w linear_2.b" "linear_3.w linear_3.b $bottom"
wrong autodiff 'select %relu.gt, %d.x, %d.x.const' 'select %relu.gt, %d.x.const, %d.x' \
  "$top $middle ${bottom% conv.k}" "conv.k"
wrong autodiff 'value=1.1283791670955126' 'value=1.129' "$top $middle" "$bottom"
wrong autodiff 'scatter_add %word, %d.h ' 'scatter_add %word, %d.layernorm.centred ' \
  "$top $middle ${bottom/ table/}" "table"
# In IR that has its kernels already.
wrong order 'value=1.1283791670955126' 'value=1.129' "$top $middle" "$bottom"

# Two losses: a gradient of the one is not taken for one of the other, not even where it is 0.
cat >two.graph <<'GRAPH'
block net(x: f[b,n], m) -> f[b,m] { return linear(tanh(linear(x, 8)), m) }
model two(x: f32[6,5]) {
  made = net(x, 4) as gen
  a = net(made, 3) as disc
  loss first = mean((a - 1) ** 2) over disc
  b = net(made, 3) with disc
  loss second = -mean(b ** 2) over gen
}
data { train = npy("none.npy") }
optim { adam(0.01), clip = 1.0 }
train { steps = 2 }
GRAPH
parts() { # NAME
  echo "$1.linear.w $1.linear.b $1.linear_2.w $1.linear_2.b"
}
"$mltc" -O0 two.graph --keep=kept2 -o two
kept=kept2
expect_gradients two 0 "$(parts gen) $(parts disc)" ""
wrong autodiff '%d.first = const {value=1.0}' '%d.first = const {value=1.0006}' "$(parts gen)" "$(parts disc)"
wrong autodiff '%d.first = const {value=1.0}' '%d.first = const {value=0.0}' "$(parts gen)" "$(parts disc)"
wrong autodiff '%d.second = const {value=1.0}' '%d.second = const {value=-1.0}' "$(parts disc)" "$(parts gen)"

# Losses of gradients: second and third derivatives, of which the inner ones are kernels like others.
cat >slopes.graph <<'GRAPH'
let B = 7
block net(t: f[b,n], c) -> f[b,1] { return linear(tanh(linear(sigmoid(linear(t, c)), c)), 1) }
model slopes(t: f32[B,3], image: f32[B,6,6,2]) {
  u = net(t, 9)
  du = grad(sum(u), t)
  ddu = grad(sum(du[:, 0]), t)
  x = max_pool2d(gelu(conv2d(image, 4, size=3, padding=1)), 2)
  slope = grad(sum(linear(reshape(groupnorm(x, 2), [B, -1]), 1) ** 2), image)
  param w: f[3,2] = normal(0.5)
  better = w - 0.3 * grad(mean((t @ w - 1) ** 2), w)
  loss mean((ddu[:, 0] + u[:, 0]) ** 2) + mean(sqrt(sum(slope ** 2, axis=[1, 2, 3]) + 0.01)) + mean(sin(t @ better) ** 2)
}
data { train = npy("none.npy", "none.npy") }
optim { adam(0.01), clip = 1.0 }
train { steps = 2 }
GRAPH
"$mltc" -O0 slopes.graph --keep=kept3 -o slopes
others=$(printf 'net.%s ' linear.{w,b} linear_2.{w,b} linear_3.{w,b})
others="$others conv2d.w conv2d.b groupnorm.g groupnorm.b linear.w linear.b"
expect_gradients slopes 0 "$others w" ""
kept=kept3
wrong autodiff '%d.better, %d.matmul.matmul' '%d.better, %d.better' "$others" "w"

# A step within a loss: the gradient of the loss is told from that of the step, also where it is one element and
# a shape of it is dropped.
cat >inner.graph <<'GRAPH'
let B = 8
block net(x: f[b,n]) -> f[b,1] { return linear(tanh(linear(x, 8)), 1) }
model inner(x: f32[B,6]) {
  param shift: f[1] = normal(1)
  y = x[:, 1:2]
  better = shift - 0.1 * grad(mean((x[:, 0:1] + shift - y) ** 4), shift)
  first = mean((net(x) as net - y) ** 2)
  state fast: like net = net
  fast <- net - 0.1 * grad(first, net)
  state far: like net = net
  far <- net + 0.05 * stop(grad(first, net))
  loss mse(x[:, 0:1] + better, y) + mse(net(x) with fast, y) + mse(net(x) with far, y)
}
data { train = npy("none.npy") }
optim { sgd(0.1) }
train { steps = 2 }
GRAPH
"$mltc" -O0 inner.graph -o inner
expect_gradients inner 0 "shift $(parts net)" ""

# What is all rounding in the kernel says nothing about it: tanh where it is 1, cosines of thousands.
for k in 30 400 1500; do
  cat >far.graph <<GRAPH
model far(x: f32[1,$k], y: f32[1], many: u8[1,$k]) {
  h = reshape(tanh(linear(x, 1)), [1])
  loss mean((h - y) ** 2) + mean(cos(linear(f32(many), 32)) ** 2)
}
data { train = npy("none.npy", "none.npy", "none.npy") }
optim { sgd(0.1) }
train { steps = 2 }
GRAPH
  "$mltc" -O1 far.graph -o far
  ./far check >out.txt || {
    cat out.txt
    fail "check of $k inputs"
  }
done

# A loss that goes up and down many times within a step of 1e-6; a gradient that is wrong there is found, too.
cat >waves.graph <<'GRAPH'
model waves(x: f32[8,4]) {
  param w: f[4] = normal(1)
  loss mean(sin(1e7 * (x @ w)))
}
data { train = npy("none.npy") }
optim { sgd(0.1) }
train { steps = 2 }
GRAPH
"$mltc" -O0 waves.graph --keep=kept5 -o waves
expect_gradients waves 0 "w" ""
kept=kept5
wrong autodiff '= cos' '= sin' "" "w"

# Terms that cancel leave rounding only, of the loss and of gradients; what is wrong is found beside them.
cat >cancel.graph <<'GRAPH'
model cancel(x: f32[6,5]) {
  param d: f[6,5] = normal(1)
  param e: f[6,5] = normal(1)
  param w: f[5,3] = normal(1)
  far = e * e + 2
  zero = 3 * d + (-3 * d / far) * far
  loss sum(zero) + 0.001 * sum(tanh(zero @ w)) + sum((1 / far) * far - 1) FIT
}
data { train = npy("none.npy") }
optim { sgd(0.01) }
train { steps = 2 }
GRAPH
sed 's/ FIT//' cancel.graph >nothing.graph
"$mltc" -O0 nothing.graph -o nothing
expect_gradients nothing 0 "d e w" ""
sed 's/ FIT/ + 1e-3 * sum(sin(d @ w))/' cancel.graph >something.graph
"$mltc" -O0 something.graph --keep=kept4 -o something
expect_gradients something 0 "d e w" ""
kept=kept4
wrong autodiff 'cos %matmul' 'sin %matmul' "e" "d w"

# Random graphs, biased to networks and not.
for seed in 2 3 7 12 17 24; do
  "$build/bin/test_plain_step" "$seed" >"random$seed.ir"
  "$mltc" -O0 "random$seed.ir" -o "random$seed" 2>warnings.txt || fail "random graph $seed"
  "./random$seed" check >out.txt || {
    cat out.txt
    fail "check of random graph $seed"
  }
  [ -n "$(verdict out.txt " ok")" ] || fail "random graph $seed has no gradients"
done
