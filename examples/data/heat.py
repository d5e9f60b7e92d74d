#!/usr/bin/env python3
"""Writes measurements of a rod that cools down, for examples/heat.graph.   heat.py FOLDER

1000 lines x, t, u: the temperature at a place and a time, both between 0 and 1, measured with an error of 0.02. The
rod's ends are kept at 0, and its diffusivity is 0.1. The same file on every machine.
"""
import math
import os
import random
import sys

LINES, DIFFUSIVITY, ERROR = 1000, 0.1, 0.02


def temperature(x, t):
    """What sin(pi x) + sin(3 pi x) / 2 has become at time t."""
    waves = ((1, 1), (3, 0.5))
    return sum(a * math.exp(-DIFFUSIVITY * (k * math.pi) ** 2 * t) * math.sin(k * math.pi * x) for k, a in waves)


def main():
    draw = random.Random(0)
    with open(os.path.join(sys.argv[1], "heat.csv"), "w", encoding="ascii") as file:
        file.write("x,t,u\n")
        for _ in range(LINES):
            x, t = draw.random(), draw.random()
            file.write(f"{x:.6f},{t:.6f},{temperature(x, t) + draw.gauss(0, ERROR):.6f}\n")


main()
