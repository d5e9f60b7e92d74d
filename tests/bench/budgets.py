#!/usr/bin/env python3
"""Measures what less memory costs: steps under budgets of 0.8 to 0.3 of the keep-all arena, and under
--extra-time=10%.

    tests/bench/budgets.py [--mltc=build/bin/mltc] [--data=../shared/data] [--only=resnet20,...] [--repeat=3]

All programs of a network run in turn, each several times, on one machine; extra time is the median against
that of the program that keeps everything. Writes tests/bench/results/budgets.json, rows that were not
measured keep what they are; scripts/bench-table takes it into the README.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "bench", "torch"))

import rows  # noqa: E402
from trainers import Trainer  # noqa: E402  (beside run.py)

RESULT = os.path.join(ROOT, "tests", "bench", "results", "budgets.json")
SHARES = (0.8, 0.6, 0.5, 0.4, 0.3)
EXTRA = "--extra-time=10%"

# network: steps, warm ones among them, the most time at half of the memory
NETWORKS = {"resnet20": (60, 10, 1.15), "unet": (300, 50, 1.20), "gpt2": (2, 1, 1.10)}


def plan(mltc, graph, *options):
    """The plan, and whether it is within its budget."""
    p = subprocess.run([mltc, graph, "--emit=plan.json", *options], check=False, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE)
    if p.returncode not in (0, 3):
        sys.exit(p.stderr.decode())
    return json.loads(p.stdout), p.returncode == 0


def build(o, graph, folder):
    """For each share of memory, and EXTRA, its row, and the trainer of those that fit."""
    keep_all = plan(o.mltc, graph, "--checkpoint=none")[0]["totals"]["arena"]
    for share in (1.0, *SHARES, EXTRA):
        budget = keep_all if share == EXTRA else int(keep_all * share)
        option = EXTRA if share == EXTRA else f"--memory-budget={budget}"
        found, fits = plan(o.mltc, graph, option)
        row = {"share": share, "budget": budget, "arena": found["totals"]["arena"], "fits": fits,
               "proved": fits or found["bound_ws"] > budget, "predicted": found["ratios"]["recompute_time"]}
        place = os.path.join(folder, str(share))
        os.makedirs(place)
        yield row, Trainer(o.mltc, graph, place, option) if fits else None


def make_data(name, folder):
    script = os.path.join(ROOT, "tests", "bench", "torch", "synthetic.py")
    subprocess.run([sys.executable, script, name, os.path.join(folder, "data")], check=True)
    return os.path.join(folder, "data")


def measure(o, name, folder):
    steps, warm, bar = NETWORKS[name]
    graph = os.path.join(ROOT, "examples", name + ".graph")
    data = make_data(name, folder) if name == "gpt2" else o.data
    programs = list(build(o, graph, folder))
    times = {row["share"]: [] for row, _ in programs}
    for _ in range(o.repeat):
        for row, trainer in programs:
            if trainer:
                times[row["share"]].append(trainer.step_seconds(data, o.threads, steps, warm))
    base = statistics.median(times[1.0])
    for row, trainer in programs:
        row["measured"] = round(statistics.median(times[row["share"]]) / base, 4) if trainer else None
        row["bar"] = bar if row["share"] == 0.5 else None
        print(name, row, flush=True)
        yield {"network": name, **row, "repeat": o.repeat}


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--mltc", default=os.path.join(ROOT, "build", "bin", "mltc"))
    p.add_argument("--data", default=os.path.join(ROOT, "..", "shared", "data"))
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--repeat", type=int, default=3)
    rows.add_only(p, NETWORKS)
    o = p.parse_args()
    o.mltc, o.data = os.path.abspath(o.mltc), os.path.abspath(o.data)
    names = rows.chosen(p, o, NETWORKS)
    known = rows.load(RESULT).get("rows", [])
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            new = list(measure(o, name, folder))
        known = [r for r in known if r["network"] != name] + new
        rows.save(RESULT, {"schema": "mltc-bench-budgets", "version": 1, "threads": o.threads}, known)


if __name__ == "__main__":
    main()
