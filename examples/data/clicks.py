#!/usr/bin/env python3
"""Writes clicks of users on films, for examples/dlrm.graph.   clicks.py FOLDER

20000 samples: 4 numbers, and three bags of up to 4 ids below 20 (what a user has seen, what the film is
about, who plays in it), -1 where a bag has fewer. Every id has a hidden direction; whether a user clicks
depends on how well the directions of the bags agree, and a little on the numbers. Same files everywhere.
"""
import math
import os
import random
import sys

from npy import write_npy

SAMPLES, BAGS, PLACES, IDS, NUMBERS, HIDDEN = 20000, 3, 4, 20, 4, 3


def main():
    folder = sys.argv[1]
    draw = random.Random(2).random
    hidden = [[[2 * draw() - 1 for _ in range(HIDDEN)] for _ in range(IDS)] for _ in range(BAGS)]
    numbers, bags, clicks = [], [], []
    for _ in range(SAMPLES):
        own = [2 * draw() - 1 for _ in range(NUMBERS)]
        score, sums = 0.5 * (own[0] - own[1]), []
        for table in hidden:
            ids = [int(draw() * IDS) for _ in range(1 + int(draw() * PLACES))]
            sums.append([sum(table[i][d] for i in ids) for d in range(HIDDEN)])
            bags += ids + [-1] * (PLACES - len(ids))
        for a in range(BAGS):
            for b in range(a):
                score += 1.5 * sum(x * y for x, y in zip(sums[a], sums[b]))
        numbers += own
        clicks.append(int(draw() < 1 / (1 + math.exp(-score))))
    os.makedirs(folder, exist_ok=True)
    write_npy(os.path.join(folder, "numbers.npy"), "<f4", (SAMPLES, NUMBERS), numbers)
    write_npy(os.path.join(folder, "bags.npy"), "<i4", (SAMPLES, BAGS, PLACES), bags)
    write_npy(os.path.join(folder, "clicks.npy"), "<i4", (SAMPLES,), clicks)


if __name__ == "__main__":
    main()
