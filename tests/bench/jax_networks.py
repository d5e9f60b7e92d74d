"""Networks and optimisers of the benchmarks in jax.numpy, as JAX users write them: weights are trees of arrays, a loss
is a function of them. Images lie as XLA likes them on CPUs and GPUs, channels last.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax


def cross_entropy(logits, labels):
    log_p = jax.nn.log_softmax(logits)
    return -jnp.mean(jnp.take_along_axis(log_p, labels[..., None], axis=-1))


def normal(key, *shape, std=0.02):
    return std * jax.random.normal(key, shape)


def uniform(key, inputs, *shape):
    """PyTorch's default for layers of so many inputs."""
    return jax.random.uniform(key, shape, minval=-inputs ** -0.5, maxval=inputs ** -0.5)


def linear(p, x):
    return x @ p["w"] + p["b"]


def layernorm(p, x):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * p["g"] + p["b"]


def norm_weights(c):
    return {"g": jnp.ones(c), "b": jnp.zeros(c)}


# --- MLP

def mlp_weights(key, *widths):
    keys = jax.random.split(key, len(widths))
    return [{"w": uniform(k, a, a, b), "b": jnp.zeros(b)} for k, a, b in zip(keys, widths, widths[1:])]


def mlp(weights, x, between=jax.nn.relu):
    for p in weights[:-1]:
        x = between(linear(p, x))
    return linear(weights[-1], x)


def mlp_loss(weights, images, labels):
    return cross_entropy(mlp(weights, images), labels)


# --- convolutions

def conv(w, x, step=1, padding="SAME"):
    return lax.conv_general_dilated(x, w, (step, step), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"))


def max_pool(x):
    """2 x 2. lax.reduce_window says the same; XLA's gradient of it is slow on CPUs."""
    n, h, w, c = x.shape
    return x.reshape(n, h // 2, 2, w // 2, 2, c).max((2, 4))


def cnn_weights(key):
    k = jax.random.split(key, 3)
    return {"conv1": uniform(k[0], 25, 5, 5, 1, 16), "bias1": jnp.zeros(16),
            "conv2": uniform(k[1], 400, 5, 5, 16, 32), "bias2": jnp.zeros(32),
            "linear": mlp_weights(k[2], 512, 128, 10)}


def dropout(key, x, rate):
    return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0)


def cnn_loss(p, images, labels, key):
    """examples/mnist_cnn.graph."""
    x = max_pool(jax.nn.relu(conv(p["conv1"], images, padding="VALID") + p["bias1"]))
    x = max_pool(jax.nn.relu(conv(p["conv2"], x, padding="VALID") + p["bias2"]))
    x = jax.nn.relu(linear(p["linear"][0], x.reshape(len(x), -1)))
    return cross_entropy(linear(p["linear"][1], dropout(key, x, 0.25)), labels)


RESNET_WIDTHS = [16, 16, 16, 16, 32, 32, 32, 64, 64, 64]


def resnet_weights(key):
    """Weights, and the running means and variances of the norms."""
    sizes = [(1, 16)]
    for a, b in zip(RESNET_WIDTHS, RESNET_WIDTHS[1:]):
        sizes += [(a, b), (b, b)]
    keys = jax.random.split(key, len(sizes) + 1)
    convs = [uniform(k, 9 * a, 3, 3, a, b) for k, (a, b) in zip(keys, sizes)]
    running = [(jnp.zeros(b), jnp.ones(b)) for _, b in sizes]
    return {"conv": convs, "norm": [norm_weights(b) for _, b in sizes],
            "linear": {"w": uniform(keys[-1], 64, 64, 10), "b": jnp.zeros(10)}}, running


def batch_norm(p, x, running):
    mean, var = x.mean((0, 1, 2)), x.var((0, 1, 2))
    count = x.size // x.shape[-1]
    new = (0.9 * running[0] + 0.1 * mean, 0.9 * running[1] + 0.1 * var * count / (count - 1))
    return (x - mean) * lax.rsqrt(var + 1e-5) * p["g"] + p["b"], lax.stop_gradient(new)


def resnet_loss(p, images, labels, running):
    """examples/resnet20.graph: the loss, and the running values after it."""
    after = []

    def layer(x, step=1):
        i = len(after)
        y, new = batch_norm(p["norm"][i], conv(p["conv"][i], x, step, [(1, 1), (1, 1)]), running[i])
        after.append(new)
        return y

    x = jax.nn.relu(layer(jnp.pad(images - 0.13, [(0, 0), (2, 2), (2, 2), (0, 0)])))
    for a, b in zip(RESNET_WIDTHS, RESNET_WIDTHS[1:]):
        step = 1 if a == b else 2
        y = layer(jax.nn.relu(layer(x, step)))
        x = jax.nn.relu(y + jnp.pad(x[:, ::step, ::step], [(0, 0), (0, 0), (0, 0), (0, b - a)]))
    return cross_entropy(linear(p["linear"], x.mean((1, 2))), labels), after


# --- GPT

def linear_weights(key, a, b):
    return {"w": normal(key, a, b), "b": jnp.zeros(b)}


def layer_weights(key, c):
    k = jax.random.split(key, 4)
    return {"norm1": norm_weights(c), "norm2": norm_weights(c), "qkv": linear_weights(k[0], c, 3 * c),
            "out": linear_weights(k[1], c, c), "up": linear_weights(k[2], c, 4 * c),
            "down": linear_weights(k[3], 4 * c, c)}


def gpt_weights(key, vocab, window, width, layers):
    k = jax.random.split(key, layers + 2)
    return {"wte": normal(k[0], vocab, width), "wpe": normal(k[1], window, width), "norm": norm_weights(width),
            "layers": [layer_weights(x, width) for x in k[2:]]}


def attention(p, x, heads):
    b, t, c = x.shape
    q, k, v = (y.reshape(b, t, heads, c // heads) for y in jnp.split(linear(p["qkv"], x), 3, axis=-1))
    y = jax.nn.dot_product_attention(q, k, v, is_causal=True)
    return linear(p["out"], y.reshape(b, t, c))


def gpt_loss(p, tokens, targets, heads, tanh_gelu=False):
    x = p["wte"][tokens] + p["wpe"]
    for layer in p["layers"]:
        x = x + attention(layer, layernorm(layer["norm1"], x), heads)
        y = jax.nn.gelu(linear(layer["up"], layernorm(layer["norm2"], x)), approximate=tanh_gelu)
        x = x + linear(layer["down"], y)
    return cross_entropy(layernorm(p["norm"], x) @ p["wte"].T, targets)


# --- LSTM

def lstm_weights(key, vocab=65, embedding=64, width=256):
    k = jax.random.split(key, 4)
    return {"table": normal(k[0], vocab, embedding, std=0.1), "inside": uniform(k[1], width, embedding, 4 * width),
            "again": uniform(k[2], width, width, 4 * width), "b": jnp.zeros(4 * width),
            "out": mlp_weights(k[3], width, vocab)}


def lstm_loss(p, tokens, targets, state):
    """examples/char_lstm.graph: the loss, and the state after the window."""
    def step(state, x):
        h, c = state
        i, f, g, o = jnp.split(x + h @ p["again"], 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    inputs = p["table"][tokens.T] @ p["inside"] + p["b"]  # of all steps at once
    state, y = lax.scan(step, state, inputs)
    return cross_entropy(mlp(p["out"], y), targets.T), state


# --- mixture of experts

def experts_weights(key, width, experts, hidden):
    k = jax.random.split(key, 5)
    return {"router": uniform(k[0], width, width, experts), "w_in": uniform(k[1], width, experts, width, hidden),
            "b_in": uniform(k[2], width, experts, 1, hidden), "w_out": uniform(k[3], hidden, experts, hidden, width),
            "b_out": uniform(k[4], hidden, experts, 1, width)}


def experts(p, x, k=2, capacity=1.25):
    """moe_block.graph: first choices get their places first; tokens move by index. The result, and the balance."""
    t, n = len(x), len(p["w_in"])
    room = math.ceil(capacity * k * t / n)
    probability = jax.nn.softmax(x @ p["router"])
    gate, choice = lax.top_k(probability, k)
    gate = (gate / gate.sum(-1, keepdims=True)).T.ravel()
    chosen = jax.nn.one_hot(choice.T.ravel(), n, dtype=jnp.int32)
    balance = n * (chosen.mean(0) * probability.mean(0)).sum()
    place = (jnp.cumsum(chosen, 0) * chosen).sum(1) - 1
    slot = jnp.where(place < room, choice.T.ravel() * room + place, n * room)
    token = jnp.arange(k * t) % t
    inside = jnp.zeros((n * room, x.shape[1])).at[slot].set(x[token], mode="drop", unique_indices=True)
    h = jax.nn.gelu(inside.reshape(n, room, -1) @ p["w_in"] + p["b_in"], approximate=False)
    made = (h @ p["w_out"] + p["b_out"]).reshape(n * room, -1)
    rows = made.at[slot].get(mode="fill", fill_value=0) * gate[:, None]
    return rows.reshape(k, t, -1).sum(0), balance


def experts_loss(p, x):
    y, balance = experts(p, x)
    return jnp.mean((y - x) ** 2) + 0.01 * balance


# --- graphs and tables

def gcn_weights(key, words, hidden, fields):
    k = jax.random.split(key, 2)
    return {"first": uniform(k[0], words, words, hidden), "second": uniform(k[1], hidden, hidden, fields),
            "bias1": jnp.zeros(hidden), "bias2": jnp.zeros(fields)}


def gcn_loss(p, words, edges, field, key):
    """gcn.graph. `edges`: source, target, and the factor of a node."""
    source, target, scale = edges

    def around(h):
        h = h * scale
        return jax.ops.segment_sum(h[source], target, len(h)) * scale + h * scale

    h = dropout(key, jax.nn.relu(around(words @ p["first"]) + p["bias1"]), 0.5)
    logits = around(h @ p["second"]) + p["bias2"]
    known = field >= 0
    log_p = jnp.take_along_axis(jax.nn.log_softmax(logits), jnp.where(known, field, 0)[:, None], axis=-1)[:, 0]
    return -jnp.where(known, log_p, 0).sum() / known.sum()


def dlrm_weights(key, tables, rows, width):
    k = jax.random.split(key, 3)
    return {"bottom": mlp_weights(k[0], 13, 512, 256, width),
            "top": mlp_weights(k[1], width + tables * (tables + 1) // 2, 512, 256, 1)}, normal(
                k[2], tables, rows, width, std=0.1)


def dlrm_loss(p, found, numbers, clicks):
    """dlrm.graph, of the tables' rows that the batch names: [sample, table, id, width]."""
    x = jax.nn.relu(mlp(p["bottom"], numbers))
    every = jnp.concatenate([x[:, None], found.sum(2)], axis=1)
    row, column = jnp.tril_indices(every.shape[1], -1)
    meet = (every @ every.transpose(0, 2, 1))[:, row, column]
    logits = mlp(p["top"], jnp.concatenate([x, meet], axis=1))[:, 0]
    return jnp.mean(jax.nn.softplus(logits) - clicks * logits)


# --- physics

def heat_weights(key, width=48):
    return {"rod": mlp_weights(key, 2, width, width, width, 1), "a": jnp.ones(())}


def heat_loss(p, at, u, place, weight=0.1):
    """examples/heat.graph: derivatives by forward mode, of all places at once."""
    def rod(x, t):
        return mlp(p["rod"], 2 * jnp.stack([x, t], axis=1) - 1, jnp.tanh)[:, 0]

    x, t = place.T
    ones = jnp.ones_like(x)

    def slope(x):
        return jax.jvp(partial(rod, t=t), (x,), (ones,))[1]

    bend = jax.jvp(slope, (x,), (ones,))[1]
    by_time = jax.jvp(lambda t: rod(x, t), (t,), (ones,))[1]
    fit = jnp.mean((rod(*at.T) - u) ** 2)
    return fit + weight * jnp.mean((by_time - p["a"] * bend) ** 2)


# --- optimisers: state is a tree of weights and moments

def sgd(weights, d, lr):
    return jax.tree.map(lambda w, g: w - lr * g, weights, d)


def momentum(weights, moments, d, lr, decay=0.0):
    moments = jax.tree.map(lambda m, g, w: 0.9 * m + g + decay * w, moments, d, weights)
    return sgd(weights, moments, lr), moments


def zeros_like(weights):
    return jax.tree.map(jnp.zeros_like, weights)


def clipped(d):
    size = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(d)))
    return jax.tree.map(lambda g: g * jnp.minimum(1, 1 / (size + 1e-6)), d)


def adam(weights, moments, d, lr, step, second=0.999, decay=0.0):
    """`step` counts from 0; `decay` is AdamW's, of matrices."""
    first, square = moments
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, d)
    square = jax.tree.map(lambda v, g: second * v + (1 - second) * g * g, square, d)
    c1, c2 = 1 - 0.9 ** (step + 1), 1 - second ** (step + 1)

    def update(w, m, v):
        lost = decay * w if decay and w.ndim >= 2 else 0
        return w - lr * (m / c1 / (jnp.sqrt(v / c2) + 1e-8) + lost)

    return jax.tree.map(update, weights, first, square), (first, square)


def cosine(step, lr=1e-3, warmup=100, total=2000, low=1e-4):
    """nanoGPT's schedule; `step` counts from 0."""
    part = jnp.clip((step - warmup) / (total - warmup), 0, 1)
    return jnp.where(step < warmup, lr * (step + 1) / (warmup + 1), low + 0.5 * (1 + jnp.cos(math.pi * part)) * (lr - low))
