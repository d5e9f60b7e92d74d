"""The steps that jax_peers.py times: a benchmark gives the state before the first one, the data, and what makes of both
the next state. Batches are chosen in the step, from data in memory.
"""

import os
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import data  # noqa: E402
import jax_networks as net  # noqa: E402  (of all benches)


def images(options):
    pixels, labels, _, _ = data.mnist(options.data)
    return (jnp.asarray(pixels.reshape(len(pixels), 28, 28, 1), jnp.float32) / 255, jnp.asarray(labels, jnp.int32),
            jax.random.permutation(jax.random.key(options.seed), len(labels)))


def pick(order, step, batch):
    """Of an order of all samples, those of a step."""
    return lax.dynamic_slice(order, (step % (len(order) // batch) * batch,), (batch,))


def with_adam(weights):
    return weights, (net.zeros_like(weights), net.zeros_like(weights)), jnp.int32(0)


def mlp_adam(options, key):
    def step(state, known):
        weights, moments, count = state
        x, y, order = known
        at = pick(order, count, 128)
        d = jax.grad(net.mlp_loss)(weights, x[at].reshape(128, -1), y[at])
        return *net.adam(weights, moments, d, 1e-3, count), count + 1

    return with_adam(net.mlp_weights(key, 784, 512, 256, 10)), images(options), step


def mnist_cnn(options, key):
    def step(state, known):
        weights, moments, count = state
        x, y, order = known
        at = pick(order, count, 64)
        d = jax.grad(net.cnn_loss)(weights, x[at], y[at], jax.random.fold_in(key, count))
        return *net.momentum(weights, moments, d, 0.05), count + 1

    weights = net.cnn_weights(key)
    return (weights, net.zeros_like(weights), jnp.int32(0)), images(options), step


def resnet20(options, key):
    def step(state, known):
        weights, moments, running, count = state
        x, y, order = known
        at = pick(order, count, 32)
        d, running = jax.grad(net.resnet_loss, has_aux=True)(weights, x[at], y[at], running)
        weights, moments = net.momentum(weights, moments, d, 0.05, 1e-4)
        return weights, moments, running, count + 1

    weights, running = net.resnet_weights(key)
    return (weights, net.zeros_like(weights), running, jnp.int32(0)), images(options), step


def gpt(ids, key, batch, window, heads, sizes, tanh_gelu=False):
    def step(state, ids):
        weights, moments, count = state
        starts = jax.random.randint(jax.random.fold_in(key, count), (batch,), 0, len(ids) - window)
        text = ids[starts[:, None] + jnp.arange(window + 1)]
        d = jax.grad(net.gpt_loss)(weights, text[:, :-1], text[:, 1:], heads, tanh_gelu)
        weights, moments = net.adam(weights, moments, net.clipped(d), net.cosine(count), count, 0.99, 0.1)
        return weights, moments, count + 1

    return with_adam(net.gpt_weights(key, *sizes)), jnp.asarray(ids, jnp.int32), step


def shakespeare(options):
    ids = data.shakespeare(options.data)
    return ids[:int(len(ids) * 0.9)]


def char_gpt(options, key):
    return gpt(shakespeare(options), key, 12, 64, 4, (65, 64, 128, 4))


def small_gpt(options, key):
    return gpt(shakespeare(options), key, 4, 256, 6, (65, 256, 384, 6))


def gpt2(options, key):
    return gpt(data.tokens(options.data), key, 1, 256, 12, (50257, 256, 768, 12), tanh_gelu=True)


def char_lstm(options, key):
    ids = shakespeare(options)
    lane = len(ids) // 32
    lanes = jnp.asarray(ids[:32 * lane].reshape(32, lane), jnp.int32)

    def step(state, lanes):
        weights, moments, count, inside = state
        text = lax.dynamic_slice(lanes, (0, count * 64 % (lane - 65)), (32, 65))
        d, inside = jax.grad(net.lstm_loss, has_aux=True)(weights, text[:, :-1], text[:, 1:], inside)
        lr = net.cosine(count, lr=2e-3, low=2e-4)
        return *net.adam(weights, moments, net.clipped(d), lr, count), count + 1, inside

    zero = jnp.zeros((32, 256))
    return (*with_adam(net.lstm_weights(key)), (zero, zero.copy())), lanes, step


def moe_block(options, key):
    def step(state, batches):
        weights, count = state
        d = jax.grad(net.experts_loss)(weights, batches[count % len(batches)])
        return net.sgd(weights, d, 0.1), count + 1

    batches = jax.random.uniform(key, (8, 1024, 256), minval=-1, maxval=1)
    return (net.experts_weights(key, 256, 8, 1024), jnp.int32(0)), batches, step


def gcn(options, key):
    """The factors of the nodes are made once."""
    words, source, target, field = [x[0] for x in data.arrays(options.data, "words", "source", "target", "field")]
    scale = (1 + np.bincount(target, minlength=len(words))) ** -0.5
    edges = [jnp.asarray(x) for x in (source, target, scale.astype(np.float32)[:, None])]

    def step(state, known):
        weights, moments, count = state
        d = jax.grad(net.gcn_loss)(weights, *known, jax.random.fold_in(key, count))
        d = jax.tree.map(lambda g, w: g + 5e-4 * w, d, weights)
        return *net.adam(weights, moments, d, 0.01, count), count + 1

    known = jnp.asarray(words, jnp.float32), edges, jnp.asarray(field, jnp.int32)
    return with_adam(net.gcn_weights(key, words.shape[1], 16, 7)), known, step


def dlrm(options, key):
    """The tables' gradients are of the rows that a batch names, and go there alone."""
    numbers, bags, clicks = data.arrays(options.data, "numbers", "bags", "clicks")
    which = jnp.arange(bags.shape[1])[:, None]

    def step(state, known):
        (weights, tables), count = state
        numbers, bags, clicks, order = known
        at = pick(order, count, 128)
        d, rows = jax.grad(net.dlrm_loss, argnums=(0, 1))(weights, tables[which, bags[at]], numbers[at], clicks[at])
        return (net.sgd(weights, d, 0.1), tables.at[which, bags[at]].add(-0.1 * rows)), count + 1

    known = (jnp.asarray(numbers), jnp.asarray(bags, jnp.int32), jnp.asarray(clicks, jnp.float32),
             jax.random.permutation(key, len(bags)))
    return (net.dlrm_weights(key, bags.shape[1], 20000, 16), jnp.int32(0)), known, step


def heat(options, key):
    def step(state, known):
        weights, moments, count = state
        at, u, order = known
        samples = pick(order, count, 200)
        place = jax.random.uniform(jax.random.fold_in(key, count), (200, 2))
        d = jax.grad(net.heat_loss)(weights, at[samples], u[samples], place)
        lr = net.cosine(count, lr=1e-2, warmup=0, total=8000, low=1e-4)
        return *net.adam(weights, moments, d, lr, count), count + 1

    places, temperatures = data.heat(options.data)
    known = jnp.asarray(places), jnp.asarray(temperatures), jax.random.permutation(key, 800)
    return with_adam(net.heat_weights(key)), known, step


WARM = {"small_gpt": 3, "gpt2": 2, "moe_block": 4, "char_lstm": 5}  # steps before the clock; else 20
BENCHMARKS = {f.__name__: f for f in (mlp_adam, mnist_cnn, resnet20, char_gpt, small_gpt, gpt2, char_lstm, moe_block,
                                      gcn, dlrm, heat)}


def run(options):
    """Seconds of a step, and of compiling it."""
    state, known, step = BENCHMARKS[options.benchmark](options, jax.random.key(options.seed))
    count = options.steps if options.style == "scan" else 1

    def many(state, known):
        return lax.scan(lambda s, _: (step(s, known), None), state, length=count)[0] if count > 1 else step(state, known)

    begun = time.perf_counter()
    call = jax.jit(many, donate_argnums=0).lower(state, known).compile()
    compile_seconds = time.perf_counter() - begun

    def seconds(steps):
        nonlocal state
        begun = time.perf_counter()
        for _ in range(max(1, steps // count)):
            state = call(state, known)
        jax.block_until_ready(state)
        return (time.perf_counter() - begun) / steps

    seconds(max(count, WARM.get(options.benchmark, 20)))
    return {"step_seconds": seconds(options.steps), "compile_seconds": compile_seconds}
