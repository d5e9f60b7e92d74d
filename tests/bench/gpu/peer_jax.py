"""JAX as a peer (peer.py): the networks of jax_networks.py, one jitted step, in f32 or tf32.

The whole step is one compiled function that takes over the buffers of weights and moments.
"""

import os
import sys
from functools import partial

import peer

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

try:
    import jax
    import jax.numpy as jnp
    import jax_networks as net  # of all benches
except ImportError as e:
    peer.absent(f"JAX: {e}")

if peer.WANT_CPU:
    jax.config.update("jax_platforms", "cpu")
elif jax.default_backend() != "gpu":
    peer.absent(f"JAX {jax.__version__} finds no GPU")


@partial(jax.jit, donate_argnums=0)
def mlp_step(weights, images, labels):
    return net.sgd(weights, jax.grad(net.mlp_loss)(weights, images.astype(jnp.float32) / 255, labels), 0.1)


def mlp(network):
    widths = network["widths"]
    keys = jax.random.split(jax.random.key(1), 3)
    images = jax.random.randint(keys[0], (network["batch"], widths[0]), 0, 256).astype(jnp.uint8)
    labels = jax.random.randint(keys[1], (network["batch"],), 0, widths[-1])
    return net.mlp_weights(keys[2], *widths), lambda w: mlp_step(w, images, labels)


@partial(jax.jit, donate_argnums=0, static_argnums=3)
def gpt_step(state, tokens, targets, heads):
    weights, moments, step = state
    d = jax.grad(net.gpt_loss)(weights, tokens, targets, heads)
    return *net.adam(weights, moments, net.clipped(d), net.cosine(step), step, 0.99, 0.1), step + 1


def gpt(network):
    s = network["sizes"]
    weights = net.gpt_weights(jax.random.key(1), s["V"], s["T"], s["C"], s["L"])
    tokens, targets = jax.random.randint(jax.random.key(2), (2, s["B"], s["T"]), 0, s["V"])
    moments = net.zeros_like(weights), net.zeros_like(weights)
    return (weights, moments, jnp.float32(0)), lambda x: gpt_step(x, tokens, targets, s["H"])


def main():
    _, network = peer.arguments()
    known = {"f32": "highest", "tf32": "tensorfloat32"}
    if network["precision"] not in known:
        peer.absent(f"JAX: {network['precision']} is not tried")
    jax.config.update("jax_default_matmul_precision", known[network["precision"]])
    state, advance = {"mlp": mlp, "gpt": gpt}[network["model"]](network)

    def step():
        nonlocal state
        state = advance(state)

    time_step = peer.timer(step, lambda: jax.block_until_ready(state))
    peer.serve(f"JAX {jax.__version__}", lambda: {"step_us": time_step()})


if __name__ == "__main__":
    main()
