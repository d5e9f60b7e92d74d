"""JAX as a peer (peer.py): the same networks in jax.numpy, one jitted step, fp32 products.

The whole step is one compiled function that takes over the buffers of weights and moments.
"""

import math
from functools import partial

import peer

try:
    import jax
    import jax.numpy as jnp
except ImportError as e:
    peer.absent(f"JAX: {e}")

if peer.WANT_CPU:
    jax.config.update("jax_platforms", "cpu")
elif jax.default_backend() != "gpu":
    peer.absent(f"JAX {jax.__version__} finds no GPU")
jax.config.update("jax_default_matmul_precision", "highest")  # not TF32


def cross_entropy(logits, labels):
    log_p = jax.nn.log_softmax(logits)
    return -jnp.mean(jnp.take_along_axis(log_p, labels[..., None], axis=-1))


def normal(key, *shape, std=0.02):
    return std * jax.random.normal(key, shape)


# --- the MLP, SGD

def mlp_loss(weights, images, labels):
    x = images.astype(jnp.float32) / 255
    for i, (w, b) in enumerate(weights):
        x = x @ w + b
        x = jax.nn.relu(x) if i + 1 < len(weights) else x
    return cross_entropy(x, labels)


@partial(jax.jit, donate_argnums=0)
def mlp_step(weights, images, labels):
    d = jax.grad(mlp_loss)(weights, images, labels)
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, d)


def mlp(network):
    key, widths = jax.random.key(1), network["widths"]
    keys = jax.random.split(key, len(widths) + 1)
    weights = [(normal(keys[i], a, b), jnp.zeros(b)) for i, (a, b) in enumerate(zip(widths, widths[1:]))]
    images = jax.random.randint(keys[-1], (network["batch"], widths[0]), 0, 256).astype(jnp.uint8)
    labels = jax.random.randint(keys[-2], (network["batch"],), 0, widths[-1])
    return weights, lambda w: mlp_step(w, images, labels)


# --- GPT, AdamW with clipping

def linear_weights(key, a, b):
    return {"w": normal(key, a, b), "b": jnp.zeros(b)}


def norm_weights(c):
    return {"g": jnp.ones(c), "b": jnp.zeros(c)}


def layer_weights(key, c):
    k = jax.random.split(key, 4)
    return {"norm1": norm_weights(c), "norm2": norm_weights(c), "qkv": linear_weights(k[0], c, 3 * c),
            "out": linear_weights(k[1], c, c), "up": linear_weights(k[2], c, 4 * c),
            "down": linear_weights(k[3], 4 * c, c)}


def gpt_weights(s):
    k = jax.random.split(jax.random.key(1), s["L"] + 2)
    return {"wte": normal(k[0], s["V"], s["C"]), "wpe": normal(k[1], s["T"], s["C"]),
            "norm": norm_weights(s["C"]), "layers": [layer_weights(x, s["C"]) for x in k[2:]]}


def linear(p, x):
    return x @ p["w"] + p["b"]


def layernorm(p, x):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * p["g"] + p["b"]


def attention(p, x, heads):
    b, t, c = x.shape
    q, k, v = (y.reshape(b, t, heads, c // heads) for y in jnp.split(linear(p["qkv"], x), 3, axis=-1))
    y = jax.nn.dot_product_attention(q, k, v, is_causal=True)
    return linear(p["out"], y.reshape(b, t, c))


def gpt_loss(p, tokens, targets, heads):
    x = p["wte"][tokens] + p["wpe"]
    for layer in p["layers"]:
        x = x + attention(layer, layernorm(layer["norm1"], x), heads)
        y = jax.nn.gelu(linear(layer["up"], layernorm(layer["norm2"], x)), approximate=False)
        x = x + linear(layer["down"], y)
    return cross_entropy(layernorm(p["norm"], x) @ p["wte"].T, targets)


def rate(step):
    """nanoGPT's schedule."""
    part = jnp.clip((step - 100) / 1900, 0, 1)
    return jnp.where(step < 100, 1e-3 * (step + 1) / 101,
                     1e-4 + 0.5 * (1 + jnp.cos(math.pi * part)) * 9e-4)


@partial(jax.jit, donate_argnums=0, static_argnums=3)
def gpt_step(state, tokens, targets, heads):
    weights, first, second, step = state
    d = jax.grad(gpt_loss)(weights, tokens, targets, heads)
    size = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(d)))
    d = jax.tree.map(lambda g: g * jnp.minimum(1, 1 / (size + 1e-6)), d)
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, d)
    second = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, second, d)
    lr, c1, c2 = rate(step), 1 - 0.9 ** (step + 1), 1 - 0.99 ** (step + 1)

    def update(w, m, v):
        decay = 0.1 * w if w.ndim >= 2 else 0
        return w - lr * (m / c1 / (jnp.sqrt(v / c2) + 1e-8) + decay)

    return jax.tree.map(update, weights, first, second), first, second, step + 1


def gpt(network):
    s = network["sizes"]
    weights = gpt_weights(s)
    first, second = (jax.tree.map(jnp.zeros_like, weights) for _ in range(2))
    tokens, targets = jax.random.randint(jax.random.key(2), (2, s["B"], s["T"]), 0, s["V"])
    return (weights, first, second, jnp.float32(0)), lambda x: gpt_step(x, tokens, targets, s["H"])


def main():
    _, network = peer.arguments()
    state, advance = {"mlp": mlp, "gpt": gpt}[network["model"]](network)

    def step():
        nonlocal state
        state = advance(state)

    time_step = peer.timer(step, lambda: jax.block_until_ready(state))
    peer.serve(f"JAX {jax.__version__}", lambda: {"step_us": time_step()})


if __name__ == "__main__":
    main()
