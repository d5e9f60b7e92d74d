#!/usr/bin/env python3
"""Measures mltc-pack on public instances and on generated training steps.

    tests/bench/pack/run.py [--pack=build/bin/mltc-pack] [--seconds=5] [--quick]

Writes tests/bench/results/pack.json; scripts/bench-table takes it into the README. Seconds are of CPU,
of the whole command. A public instance that is not there ($MLTC_SHARED, or ../shared) keeps its row.
"""

import argparse
import os
import platform
import sys
import tempfile

import generate
import packing

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "bench"))

import rows  # noqa: E402  (of all benches)

RESULT = os.path.join(ROOT, "tests", "bench", "results", "pack.json")

# name, capacity (0: the bound), highest ratio that is good enough
PUBLIC = [("A.1048576", 1048576, 1.0), ("C.1048576", 1039360, 1.0), ("E.1048576", 1048576, 1.0),
          ("F.1048576", 1048576, 1.0), ("H.1048576", 1048576, 1.0), ("resnet50", 0, 1.0), ("G_1", 0, 1.0)]
SIZES, SEEDS, GENERATED_BAR = (20000, 60000), (1, 2, 3), 1.005


def row(kind, name, result, bar, seconds):
    met = result["ratio"] <= bar and result["exit_code"] == 0 and result["cpu_s"] <= seconds
    keep = ("buffers", "bound", "height", "steps")
    return {"kind": kind, "name": name, **{k: result[k] for k in keep}, "ratio": round(result["ratio"], 6),
            "cpu_s": round(result["cpu_s"], 3), "bar": bar, "bar_s": seconds, "met": met}


def public_rows(o, folder, old):
    shared = os.environ.get("MLTC_SHARED", os.path.join(ROOT, "..", "shared"))
    for name, capacity, bar in PUBLIC:
        path = os.path.join(shared, "bench", "dsa", name + ".csv")
        if not os.path.exists(path):
            print(f"skipped: {path} is not there", file=sys.stderr)
            yield from (r for r in old if r["name"] == name)
            continue
        options = [f"--seconds={o.seconds}"] + ([f"--capacity={capacity}"] if capacity else [])
        result = packing.pack(o.pack, path, os.path.join(folder, "out.csv"), *options)
        yield row("public", name, result, bar, o.seconds)


def generated_rows(o, folder):
    before, after = os.path.join(folder, "in.csv"), os.path.join(folder, "out.csv")
    for size in SIZES:
        for shape in generate.SHAPES:
            for seed in SEEDS[:1] if o.quick else SEEDS:
                with open(before, "w", encoding="utf-8") as f:
                    generate.write(generate.generate(shape, size, seed), f)
                # A little less than the bar: reading, writing and the last look at the clock take time.
                result = packing.pack(o.pack, before, after, f"--seconds={o.seconds - 0.7}")
                yield row(f"{size}", f"{shape} {seed}", result, GENERATED_BAR, o.seconds)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--pack", default=os.path.join(ROOT, "build", "bin", "mltc-pack"))
    p.add_argument("--seconds", type=float, default=5)
    p.add_argument("--quick", action="store_true", help="one seed of each shape")
    o = p.parse_args()
    known, measured = rows.load(RESULT).get("rows", []), []
    with tempfile.TemporaryDirectory() as folder:
        for make in (public_rows(o, folder, known), generated_rows(o, folder)):
            for r in make:
                print(f"{r['kind']:>7} {r['name']:<16} {r['buffers']:>6} buffers, ratio {r['ratio']:.6f}, "
                      f"{r['cpu_s']:.2f} s{'' if r['met'] else '   MISSED'}", flush=True)
                measured.append(r)
    head = {"schema": "mltc-bench-pack", "version": 1, "machine": platform.machine()}
    rows.save(RESULT, head, measured)
    return int(not all(r["met"] for r in measured))


if __name__ == "__main__":
    sys.exit(main())
