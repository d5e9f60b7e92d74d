#!/usr/bin/env python3
"""Writes a graph of papers that cite each other, for examples/gcn.graph.   citations.py FOLDER

1200 papers of 5 fields, one after the other. A paper has 12 of 100 words, of which each field prefers 20,
and cites three earlier papers, mostly of its own field. The field of 20 papers of each is known to
training (train.npy), that of the others is what the network is asked for (test.npy); -1 elsewhere.
The same files on every machine.
"""
import os
import random
import sys

from npy import write_npy

PAPERS, FIELDS, WORDS, KNOWN = 1200, 5, 100, 20


def main():
    folder = sys.argv[1]
    draw = random.Random(1).random
    field = [int(draw() * FIELDS) for _ in range(PAPERS)]
    words = bytearray(PAPERS * WORDS)
    for i, own in enumerate(field):
        for _ in range(12):
            preferred = draw() < 0.3
            word = own * (WORDS // FIELDS) + int(draw() * (WORDS // FIELDS)) if preferred else int(draw() * WORDS)
            words[i * WORDS + word] = 1
    source, target = [], []
    for i in range(3, PAPERS):
        cited = set()
        while len(cited) < 3:
            j = int(draw() * i)
            if field[j] == field[i] or draw() < 0.08:
                cited.add(j)
            elif draw() < 0.02:  # there may be no other paper of the field yet
                cited.add(j)
        for j in sorted(cited):  # both ways
            source += [i, j]
            target += [j, i]
    train, test, known = [], [], [0] * FIELDS
    for own in field:
        known[own] += 1
        train.append(own if known[own] <= KNOWN else -1)
        test.append(own if known[own] > KNOWN else -1)
    os.makedirs(folder, exist_ok=True)
    for name, dtype, shape, values in (("words", "|u1", (1, PAPERS, WORDS), words),
                                      ("source", "<i4", (1, len(source)), source),
                                      ("target", "<i4", (1, len(target)), target),
                                      ("train", "<i4", (1, PAPERS), train),
                                      ("test", "<i4", (1, PAPERS), test)):
        write_npy(os.path.join(folder, name + ".npy"), dtype, shape, values)


if __name__ == "__main__":
    main()
