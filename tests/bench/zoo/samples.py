"""Random samples for a network of networks.py, eight batches of them: an .npy file for each input.

    samples.py NETWORK FOLDER
"""

import os
import sys

import numpy as np

from networks import NETWORKS

BATCHES = 8


def draw(random, count, what):
    """`what`: the shape of a sample, of numbers in 0..1; [n, shape...] or n: of whole numbers below n."""
    if isinstance(what, tuple):
        return random.random((count, *what), dtype=np.float32)
    below, *shape = what if isinstance(what, list) else [what]
    return random.integers(0, below, (count, *shape)).astype(np.int32)


def main():
    name, folder = sys.argv[1:]
    _, _, size, inputs = NETWORKS[name]
    random = np.random.default_rng(1)
    os.makedirs(folder, exist_ok=True)
    for key, what in inputs.items():
        np.save(os.path.join(folder, key + ".npy"), draw(random, BATCHES * size, what))


if __name__ == "__main__":
    main()
