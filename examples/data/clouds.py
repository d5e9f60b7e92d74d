#!/usr/bin/env python3
"""Writes points of the plane, for examples/gan.graph.   clouds.py FOLDER

4096 points in four clouds round the corners (1,1), (1,-1), (-1,1), (-1,-1), with a deviation of 0.1 on
either axis. Same file everywhere.
"""
import os
import random
import sys

from npy import write_npy

POINTS, DEVIATION = 4096, 0.1


def main():
    folder = sys.argv[1]
    draw = random.Random(3).random
    points = []
    for _ in range(2 * POINTS):
        near_normal = sum(draw() for _ in range(12)) - 6  # of deviation 1
        points.append((1 if draw() < 0.5 else -1) + DEVIATION * near_normal)
    os.makedirs(folder, exist_ok=True)
    write_npy(os.path.join(folder, "points.npy"), "<f4", (POINTS, 2), points)


if __name__ == "__main__":
    main()
