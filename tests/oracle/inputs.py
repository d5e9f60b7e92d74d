"""Writes the data files of a network of this folder: the same numbers on every machine.

    python3 inputs.py NAME FOLDER

Only the standard library: the suite runs it. 24 batches' worth of samples, read in order.
"""
import math
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "examples", "data"))
from npy import write_npy

STEPS = 20

# name -> (batch, {file: (dtype, shape of a sample, number of classes)})
NETWORKS = {
    "lenet": (8, {"image": ("<f4", (20, 18, 2), 0), "label": ("<i4", (), 5)}),
    "resnet": (8, {"image": ("<f4", (16, 16, 3), 0), "label": ("<i4", (), 5)}),
    "unet": (4, {"image": ("<f4", (16, 12, 2), 0), "target": ("<f4", (16, 12, 1), 0)}),
    "recurrent": (4, {"seen": ("<f4", (7, 6), 0), "label": ("<i4", (7,), 5)}),
    "truncated": (4, {"seen": ("<f4", (5, 6), 0), "target": ("<f4", (5, 3), 0)}),
    "llama": (2, {"tokens": ("<i4", (10,), 9), "targets": ("<i4", (10,), 9)}),
    "translate": (3, {"source": ("<i4", (9,), 8), "length": ("<i4", (), 8),
                      "tokens": ("<i4", (7,), 8), "targets": ("<i4", (7,), 8)}),
    "vit": (4, {"image": ("<f4", (12, 12, 1), 0), "label": ("<i4", (), 5)}),
    "mobilenet": (4, {"image": ("<f4", (14, 13, 3), 0), "label": ("<i4", (), 5)}),
    "derivatives": (6, {"image": ("<f4", (9, 8, 2), 0), "words": ("<f4", (5, 8), 0), "t": ("<f4", (3,), 0),
                        "label": ("<i4", (), 4)}),
    "losses": (16, {"x": ("<f4", (10,), 0), "label": ("<i4", (), 6), "y": ("<f4", (6,), 0), "same": ("<i4", (), 2)}),
    "signals": (4, {"x": ("<f4", (16, 6), 0), "label": ("<i4", (16,), 5), "far": ("<f4", (5,), 0)}),
    "speech": (4, {"x": ("<f4", (21, 6), 0), "label": ("<i4", (5,), 25), "length": ("<i4", (), 10),
                   "count": ("<i4", (), 6)}),
    "segments": (4, {"image": ("<f4", (12, 10, 3), 0), "there": ("<i4", (12, 10), 2), "label": ("<i4", (), 4)}),
    "optimisers": (8, {"image": ("<f4", (6, 5, 2), 0), "label": ("<i4", (), 4)}),
    "graphs": (1, {"x": ("<f4", (40, 12), 0), "source": ("<i4", (150,), 40), "target": ("<i4", (150,), 40),
                   "label": ("<i4", (40,), 6)}),
    "byol": (8, {"x": ("<f4", (10,), 0), "y": ("<f4", (10,), 0)}),
    "gan": (16, {"noise": ("<f4", (5,), 0), "real": ("<f4", (3,), 0)}),
    "lora": (8, {"x": ("<f4", (12,), 0), "label": ("<i4", (), 7)}),
    "experts": (4, {"seen": ("<f4", (7, 6), 0), "label": ("<i4", (7,), 5)}),
    "dlrm": (16, {"dense": ("<f4", (7,), 0), "bags": ("<i4", (3, 4), 9), "click": ("<i4", (), 2)}),
}


def numbers(seed, count):
    """In [-1, 1): a linear congruential generator, upper bits."""
    state = seed * 2654435761 % 2**32 + 1
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield (state >> 40) / 2**23 - 1


def main():
    name, folder = sys.argv[1:]
    batch, files = NETWORKS[name]
    samples = batch * STEPS
    for i, (file, (dtype, shape, classes)) in enumerate(files.items()):
        count = samples * math.prod(shape)
        values = list(numbers(i + 1, count))
        if classes:
            values = [int((v + 1) / 2 * classes) for v in values]
        write_npy(os.path.join(folder, file + ".npy"), dtype, (samples, *shape), values)


if __name__ == "__main__":
    main()
