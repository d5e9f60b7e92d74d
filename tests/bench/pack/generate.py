#!/usr/bin/env python3
"""Writes packing instances like the training step of a large transformer, as mltc-pack reads them.

    generate.py SHAPE BUFFERS SEED      id,lower,upper,size on standard output

A step is a row of kernels: the forward kernels of all layers, the backward kernels in reverse, the
optimiser. Saved activations live from their forward kernel to their backward kernel; temporaries,
workspaces and gradients of activations live for a few kernels; gradients of weights wait for the
optimiser, or are used up at once. Shapes differ in what is saved and in how even the layers are.
"""

import random
import sys

SHAPES = {
    # what is saved, whether gradients wait for the optimiser, how much layers differ
    "gpt": {},
    "flat": {"tokens": 1152},  # gradients of weights take what activations leave
    "flat_uneven": {"tokens": 1152, "uneven": True},
    "update": {"update_at_once": True},
    "probabilities": {"probabilities": True, "dropout": True},
    "experts": {"experts": 8},
    "mixed": {"casts": True, "dropout": True},
    "recompute": {"segment": 8},
    "uneven": {"uneven": True, "dropout": True},
    "uneven_update": {"uneven": True, "update_at_once": True, "casts": True},
    "translate": {"cross": True, "dropout": True},
}


def aligned(size):
    return max(64, -(-int(size) // 64) * 64)


class Step:
    """Kernels in order; a buffer is known by the kernels between which it lives."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.now = 0
        self.buffers = []
        self.to_the_end = []  # alive until the optimiser has used them

    def kernel(self, workspace=0):
        if workspace:
            self.buffers.append((self.now, self.now + 1, aligned(workspace)))
        self.now += 1
        return self.now - 1

    def live(self, first, last, size):
        self.buffers.append((first, last + 1, aligned(size)))

    def temporary(self, size, longest=3):
        """Made by the last kernel, read by one of the next."""
        self.live(self.now - 1, self.now - 1 + self.random.randint(1, longest), size)


class Layer:
    def __init__(self, step, options, index):
        r = step.random
        self.options = options
        self.tokens = options.get("tokens", 2048)
        self.width = 64 * r.randint(8, 16) if options.get("uneven") else 768
        self.heads = self.width // 64
        self.index = index
        self.saved = []  # (first kernel, size), in the order of the forward kernels
        self.routed = [r.randint(1, 2 * self.tokens // 8) for _ in range(options.get("experts", 0))]

    def sizes(self):
        """Per forward kernel: what it saves, its temporaries, its workspace, its weights."""
        t, c, h, o = self.tokens, self.width, self.heads, self.options
        x = 2 * t * c
        mask = [t * c // 8] if o.get("dropout") else []
        yield [x, 8 * t], [], 0, [4 * c]  # normalise
        yield [3 * x], [2 * 3 * c * c] if o.get("casts") else [], 0, [12 * c * c]
        yield [x, 4 * t * h], [x, x, x], 4 * t * h * 32, []  # attention, with heads apart
        if o.get("probabilities"):
            yield [2 * h * t * t // 8], [2 * h * t * t // 8], 0, []
        yield [*mask], [x, 2 * c * c] if o.get("casts") else [x], 0, [4 * c * c, 4 * c]
        if o.get("cross"):
            yield [x, 2 * x, 4 * t * h], [x, x], 4 * t * h * 16, [12 * c * c]
        yield [x], [], 0, []  # residual
        yield [x, 8 * t], [], 0, [4 * c]
        if self.routed:
            yield [4 * t, 2 * t * len(self.routed)], [8 * t], 0, [4 * c * len(self.routed)]
            for n in self.routed:
                yield [2 * n * c, 8 * n * c], [8 * n * c], 0, [16 * c * c, 16 * c * c]
        else:
            yield [4 * x], [8 * c * c] if o.get("casts") else [], 0, [16 * c * c, 16 * c]
            yield [4 * x], [], 0, []
            yield [*mask], [x, 8 * c * c] if o.get("casts") else [x], 0, [16 * c * c, 4 * c]
        yield [x], [], 0, []  # residual

    def forward(self, step, keep):
        kernels = []
        for saved, temporaries, workspace, weights in self.sizes():
            at = step.kernel(workspace)
            for size in temporaries:
                step.temporary(size)
            kernels.append((at, saved, weights))
        if keep:
            self.saved = kernels
        else:
            for at, saved, _ in kernels:
                for size in saved:
                    step.live(at, at + step.random.randint(1, 4), size)

    def backward(self, step):
        x = 2 * self.tokens * self.width
        for at, saved, weights in reversed(self.saved):
            now = step.kernel(step.random.choice([0, 0, x // 2]))
            for size in saved:
                step.live(at, now, size)
                step.temporary(size if size >= x else x, 2)
            for size in weights:
                self.weight_gradient(step, size)

    def weight_gradient(self, step, size):
        now = step.kernel(size if step.random.random() < 0.3 else 0)
        if self.options.get("update_at_once"):
            step.live(now, step.kernel(), size)
            step.temporary(size, 1)
        else:
            step.to_the_end.append((now, size))


def optimiser(step):
    for first, size in step.to_the_end:
        now = step.kernel()
        step.live(first, now, size)
        step.live(now, now, size)


def one_step(options, layers, seed):
    step = Step(seed)
    stack = [Layer(step, options, i) for i in range(layers)]
    segment = options.get("segment", 0)
    entered = []  # inputs of segments
    for i, layer in enumerate(stack):
        if segment and i % segment == 0:
            entered.append(step.now)
        layer.forward(step, not segment)
    logits = step.kernel()
    step.live(logits, logits + 2, 2 * 2048 * 5024)
    step.temporary(2 * 2048 * 5024)
    if segment:
        for s in reversed(range(len(entered))):
            part = stack[s * segment:(s + 1) * segment]
            for layer in part:
                layer.forward(step, True)
            for layer in reversed(part):
                layer.backward(step)
            step.live(entered[s], step.now - 1, 2 * part[0].tokens * part[0].width)
    else:
        for layer in reversed(stack):
            layer.backward(step)
    optimiser(step)
    return step.buffers


def generate(shape, count, seed):
    """At least `count` buffers, by whole layers: [(lower, upper, size)]."""
    options = SHAPES[shape]
    per_layer = len(one_step(options, 64, seed)) // 64
    layers = -(-count // per_layer)
    buffers = one_step(options, layers, seed)
    while len(buffers) < count:  # layers differ, and so do those behind the first 64
        layers += 1
        buffers = one_step(options, layers, seed)
    return buffers


def write(buffers, out):
    out.write("id,lower,upper,size\n")
    for i, (lower, upper, size) in enumerate(buffers):
        out.write(f"{i},{lower},{upper},{size}\n")


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in SHAPES:
        sys.exit(f"usage: generate.py {'|'.join(SHAPES)} BUFFERS SEED")
    write(generate(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])), sys.stdout)


if __name__ == "__main__":
    main()
