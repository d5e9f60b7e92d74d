"""Data of the benchmarks, read without any package but numpy, and in the trainer's order."""

import gzip
import json
import os

import numpy as np


def read_idx(path):
    with gzip.open(path, "rb") as f:
        head = f.read(4)
        dims = [int.from_bytes(f.read(4), "big") for _ in range(head[3])]
        return np.frombuffer(bytearray(f.read()), dtype=np.uint8).reshape(dims)


def mnist(folder):
    """images u8[n,28,28] and labels u8[n] of the training set, then of the test set."""
    names = ["train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz",
             "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"]
    return [read_idx(os.path.join(folder, name)) for name in names]


def tokens(folder):
    return np.fromfile(os.path.join(folder, "tokens.bin"), np.uint16).astype(np.int64)


def arrays(folder, *names):
    """What synthetic.py has made."""
    return [np.load(os.path.join(folder, name + ".npy")) for name in names]


def heat(folder):
    """Places f32[800,2] and temperatures f32[800] of the training set."""
    lines = np.loadtxt(os.path.join(folder, "heat.csv"), delimiter=",", skiprows=1, dtype=np.float32)[:800]
    return lines[:, :2].copy(), lines[:, 2].copy()


def shakespeare(folder):
    """Ids of all characters: distinct bytes, sorted, are 0, 1, ..."""
    text = np.fromfile(os.path.join(folder, "tinyshakespeare.txt"), dtype=np.uint8)
    return np.unique(text, return_inverse=True)[1].astype(np.int64)


# --- the trainer's permutation (runtime/shuffle.c), for whole arrays of positions -----------------

def _mix(x):
    x = x ^ (x >> np.uint64(30))
    x = x * np.uint64(0xBF58476D1CE4E5B9)
    x = x ^ (x >> np.uint64(27))
    x = x * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _keys(seed, epoch, rounds):
    golden = np.uint64(0x9E3779B97F4A7C15)
    state = _mix(_mix(np.array([seed], dtype=np.uint64) + golden) + np.uint64(epoch))
    keys = []
    for _ in range(rounds):
        state = state + golden
        keys.append(_mix(state)[0])
    return keys


def shuffled(seed, epoch, n, positions):
    """The samples at `positions` of an epoch."""
    half = 4
    while half < 32 and (1 << (2 * half)) < n:
        half += 1
    half, mask = np.uint64(half), np.uint64((1 << half) - 1)
    keys = _keys(seed, epoch, 6)

    def once(x):
        left, right = x >> half, x & mask
        for key in keys:
            left, right = right, left ^ (_mix(right + key) & mask)
        return left << half | right

    x = once(np.asarray(positions, dtype=np.uint64))
    while (x >= n).any():
        x = np.where(x >= n, once(x), x)
    return x.astype(np.int64)


def batches(seed, samples, size, steps):
    """Sample indices i64[size] of each step: the incomplete batch of an epoch is left out."""
    per_epoch = samples // size
    for step in range(steps):
        epoch, at = divmod(step, per_epoch)
        yield shuffled(seed, epoch, samples, np.arange(at * size, (at + 1) * size))


# --- checkpoints -----------------------------------------------------------------------------------

_DTYPES = {"F32": np.float32, "F64": np.float64, "I32": np.int32, "I64": np.int64,
           "U8": np.uint8, "BOOL": np.uint8, "I8": np.int8, "U16": np.uint16, "U32": np.uint32}


def read_safetensors(path):
    """name -> array, in the order of the data."""
    with open(path, "rb") as f:
        length = int.from_bytes(f.read(8), "little")
        head = json.loads(f.read(length))
        data = bytearray(f.read())
    head.pop("__metadata__", None)
    out = {}
    for name, t in sorted(head.items(), key=lambda item: item[1]["data_offsets"][0]):
        begin, end = t["data_offsets"]
        out[name] = np.frombuffer(data[begin:end], _DTYPES[t["dtype"]]).reshape(t["shape"])
    return out
