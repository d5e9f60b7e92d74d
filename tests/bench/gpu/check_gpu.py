#!/usr/bin/env python3
"""Runs prepared programs on a GPU and writes what came out; called by scripts/check-gpu.

    check_gpu.py FOLDER --out FILE

FOLDER has, for each NAME of programs.txt, NAME-gpu and NAME-cpu (a recipe of a few steps), and
NAME-first-gpu and NAME-first-cpu (the first half of it). Everything is tried, whatever fails before;
the file has every failure and its words. On the stand-in driver of the tests NAME.kernels names the
libraries that hold the kernels. Exit code: 1 when anything failed.
"""

import argparse
import datetime
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

TOLERANCE = 1e-5  # of losses, relative to the CPU's
LIMIT = 240  # seconds of one command


class Failed(Exception):
    pass


class Program:
    def __init__(self, folder, data, name):
        self.folder, self.data, self.name = os.path.abspath(folder), data, name
        self.work = tempfile.mkdtemp(prefix="check-gpu-")
        self.env = dict(os.environ)
        kernels = os.path.join(self.folder, name + ".kernels")
        if os.path.exists(kernels):
            with open(kernels, encoding="utf-8") as f:
                self.env["MLTC_STANDIN_KERNELS"] = f.read().strip()

    def run(self, which, *arguments):
        command = [os.path.join(self.folder, f"{self.name}-{which}"), *arguments]
        try:
            p = subprocess.run(command, cwd=self.work, env=self.env, capture_output=True, text=True,
                               timeout=LIMIT, check=False)
        except subprocess.TimeoutExpired as e:
            raise Failed(f"{' '.join(command[1:])}: more than {LIMIT} s") from e
        if p.returncode != 0:
            words = (p.stdout + p.stderr).strip().splitlines()[-12:]
            raise Failed(f"{which} {' '.join(arguments)}: exit code {p.returncode}\n" + "\n".join(words))
        return p.stdout

    def train(self, which, out, *more):
        self.run(which, "train", f"--data-dir={self.data}", f"--save={out}.st", "--no-times",
                 f"--metrics={out}.jsonl", "--log-every=1", "--quiet", *more)

    def losses(self, out):
        with open(os.path.join(self.work, out + ".jsonl"), encoding="utf-8") as f:
            return [r["loss"] for r in map(json.loads, f) if "loss" in r]

    def bytes_of(self, out):
        with open(os.path.join(self.work, out + ".st"), "rb") as f:
            return f.read()


def compare(ours, theirs):
    if len(ours) != len(theirs) or not ours:
        raise Failed(f"{len(ours)} losses, not {len(theirs)}")
    worst = max(abs(x - y) / max(abs(y), 1e-30) for x, y in zip(ours, theirs))
    if not worst <= TOLERANCE:
        raise Failed(f"losses differ by {worst:.3g} relative, allowed are {TOLERANCE:.0e}")
    return worst


def kernels(p, _):
    p.run("gpu", "check")
    return {}


def against_cpu(p, _):
    p.train("cpu", "cpu")
    p.train("gpu", "gpu")
    return {"worst_relative": compare(p.losses("gpu"), p.losses("cpu"))}


def same_bits(p, _):
    p.train("gpu", "again")
    p.train("gpu", "plain", "--no-cuda-graph")
    for other in ("again", "plain"):
        if p.bytes_of("gpu") != p.bytes_of(other):
            raise Failed(f"checkpoints 'gpu' and '{other}' differ")
    return {}


def resume(p, _):
    for first, then in (("first-cpu", "gpu"), ("first-gpu", "cpu"), ("first-gpu", "gpu")):
        out = f"{first}-{then}"
        p.train(first, out)
        p.train(then, out, "--resume")
        if then == "gpu" and first == "first-gpu":
            if p.bytes_of(out) != p.bytes_of("gpu"):
                raise Failed("a stopped and resumed run ends with other bits")
        else:
            compare(p.losses(out)[-1:], p.losses("cpu")[-1:])
    return {}


def speed(p, _):
    p.run("gpu", "train", f"--data-dir={p.data}", "--no-save", "--quiet", "--profile=profile.json")
    with open(os.path.join(p.work, "profile.json"), encoding="utf-8") as f:
        steps = [e["dur"] for e in json.load(f)["traceEvents"] if e.get("name") == "step"]
    return {"step_us": statistics.median(steps[len(steps) // 2:])} if steps else {}


STEPS = [("kernels against plain references", kernels), ("losses against the CPU's", against_cpu),
         ("same bits: twice, without a graph", same_bits), ("resume, also across targets", resume),
         ("time of a step", speed)]


def try_all(folder, data, names):
    rows = []
    for name in names:
        p = Program(folder, data, name)
        for what, step in STEPS:
            row = {"program": name, "what": what, "passed": True}
            try:
                row.update(step(p, rows))
            except (Failed, OSError, ValueError, KeyError) as e:
                row.update(passed=False, failure=str(e))
            print(f"{name:12} {what:36} {'ok' if row['passed'] else 'FAILED'}", flush=True)
            if not row["passed"]:
                print("    " + row["failure"].replace("\n", "\n    "), flush=True)
            rows.append(row)
        shutil.rmtree(p.work, ignore_errors=True)
    return rows


def device():
    """Name and driver as nvidia-smi says them; the stand-in has neither."""
    try:
        out = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                             capture_output=True, text=True, timeout=60, check=True).stdout
        name, driver = [x.strip() for x in out.splitlines()[0].split(",")]
        return name, driver
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return "unknown", "unknown"


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("folder")
    p.add_argument("--data", required=True)
    p.add_argument("--out", help="result file; default: gpu-NAME.json among the results")
    o = p.parse_args()
    with open(os.path.join(o.folder, "programs.txt"), encoding="utf-8") as f:
        names = f.read().split()
    name, driver = device()
    rows = try_all(o.folder, os.path.abspath(o.data), names)
    out = o.out or os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "results",
                                "gpu-" + re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-") + ".json")
    result = {"schema": "mltc-bench-gpu", "version": 1, "device": name, "driver": driver,
              "date": datetime.date.today().isoformat(), "rows": rows}
    with open(out, "w", encoding="utf-8") as f:
        json.dump(result, f, indent=1)
        f.write("\n")
    failed = sum(not r["passed"] for r in rows)
    print(f"{len(rows) - failed} of {len(rows)} passed; written to {os.path.relpath(out)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
