#!/usr/bin/env python3
"""Packs a generated training step and looks at the result: for tests/scripts/pack.sh.

    check.py MLTC-PACK FOLDER SHAPE BUFFERS SEED MOST-RATIO [OPTION...]
"""

import os
import sys

import generate
import packing


def main():
    program, folder, shape, buffers, seed, most = sys.argv[1:7]
    before, after = os.path.join(folder, "before.csv"), os.path.join(folder, "after.csv")
    with open(before, "w", encoding="utf-8") as f:
        generate.write(generate.generate(shape, int(buffers), int(seed)), f)
    r = packing.pack(program, before, after, *sys.argv[7:])
    print(f"{shape} {seed}: {r['buffers']} buffers, ratio {r['ratio']:.5f}, {r['steps']} steps, "
          f"{r['cpu_s']:.2f} s")
    if r["buffers"] < int(buffers) or r["ratio"] > float(most):
        sys.exit(f"FAIL: {shape} {seed}: above {most}, or fewer buffers than {buffers}")


if __name__ == "__main__":
    main()
