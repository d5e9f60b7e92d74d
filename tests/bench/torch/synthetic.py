"""Random data of realistic sizes for benchmarks: .npy files, and tokens.bin for `gpt2`.

    synthetic.py dlrm|gcn|gpt2|moe_block FOLDER
"""

import os
import sys

import numpy as np

TABLES, BAG, ROWS = 8, 4, 20000
PAPERS, WORDS, EDGES, FIELDS, KNOWN = 2708, 1433, 10556, 7, 140


def dlrm(random, samples=128 * 64):
    # Ids of clicks are seldom even: few are common, most are rare.
    bags = (ROWS * random.random((samples, TABLES, BAG)) ** 3).astype(np.int32)
    return {"numbers": random.standard_normal((samples, 13)).astype(np.float32), "bags": bags,
            "clicks": random.integers(0, 2, samples).astype(np.int32)}


def gcn(random):
    words = (random.random((1, PAPERS, WORDS)) < 0.0127).astype(np.uint8)
    ends = random.integers(0, PAPERS, (2, EDGES // 2)).astype(np.int32)
    field = random.integers(0, FIELDS, (1, PAPERS)).astype(np.int32)
    field[:, random.permutation(PAPERS)[KNOWN:]] = -1
    return {"words": words, "source": np.concatenate([ends[0], ends[1]])[None],
            "target": np.concatenate([ends[1], ends[0]])[None], "field": field}


def gpt2(random):
    # As of words: low ids are common.
    return {"tokens": (50257 * random.random(64 * 1024) ** 4).astype(np.uint16)}


def moe_block(random):
    return {"tokens": (2 * random.random((8 * 1024, 256)) - 1).astype(np.float32)}


MAKERS = {"dlrm": dlrm, "gcn": gcn, "gpt2": gpt2, "moe_block": moe_block}


def main():
    name, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    for file, values in MAKERS[name](np.random.default_rng(0)).items():
        if name == "gpt2":
            values.tofile(os.path.join(folder, file + ".bin"))
        else:
            np.save(os.path.join(folder, file + ".npy"), values)


if __name__ == "__main__":
    main()
