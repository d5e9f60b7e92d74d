"""Networks as people train them on processors, none of which mltc was made fast on, beside PyTorch, in one run.

    python3 tests/bench/zoo/run.py --mltc build/bin/mltc [--only NAME,...]

PyTorch is that of $MLTC_TORCH_PYTHON, else of python3: `pip install torch numpy`. README.md says more.
"""

import argparse
import glob
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.dirname(HERE)
sys.path += [BENCH, os.path.join(BENCH, "torch")]

import machine  # noqa: E402  (of all benches)
import rows  # noqa: E402
from trainers import Trainer  # noqa: E402

PYTHON = os.environ.get("MLTC_TORCH_PYTHON", "python3")
NETWORKS = sorted(os.path.basename(path).removesuffix(".graph") for path in glob.glob(os.path.join(HERE, "*.graph")))
BATCHES = 8  # in the files of samples.py
WARM = 5  # steps before the clock
WHAT = ("step", "evaluation")


def script(name, *arguments):
    done = subprocess.run([PYTHON, os.path.join(HERE, name), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{name} {arguments[0]} fails:\n{done.stderr}")
    return done.stdout


def time_peer(name, style, options, data):
    out = script("peer.py", name, "--data", data, "--style", style, "--threads", str(options.threads),
                 "--steps", str(options.steps), "--warm", str(WARM))
    return json.loads(out.splitlines()[-1])


def time_ours(trainer, options, data):
    """The run ends with an evaluation of all batches: a line of its own, after that of the last step."""
    last = options.steps + WARM
    _, lines = trainer.run(data, options.threads, f"--steps={last}", f"--log-every={WARM}", "--no-save")
    at = {line["step"]: line["time"] for line in lines if "eval" not in line}
    ended = next(line["time"] for line in lines if "eval" in line)
    return {"step": (at[last] - at[WARM]) / options.steps, "evaluation": (ended - at[last]) / BATCHES}


def parameters(trainer):
    said = subprocess.run([trainer.path, "info"], capture_output=True, text=True, check=True).stdout
    return int(re.search(r"^parameters (\d+) ", said, re.MULTILINE).group(1))


def measure(name, options, folder):
    """Both sides take turns, so that what else the machine does hurts them alike."""
    data = os.path.join(folder, "data")
    script("samples.py", name, data)
    target = ["--target=cpu:x86-64-v3"] if options.avx2 else []
    trainer = Trainer(options.mltc, os.path.join(HERE, name + ".graph"), folder, *target)
    styles = ["plain"]
    if os.path.exists(os.path.join(data, "image.npy")):
        styles.append("channels_last")
    if options.compile:
        styles.append("compile")
    ours, peers = [], {style: [] for style in styles}
    for _ in range(options.repeat):
        for style in styles:
            peers[style].append(time_peer(name, style, options, data))
        ours.append(time_ours(trainer, options, data))
    torch = peers["plain"][0]
    if torch["parameters"] != parameters(trainer):
        sys.exit(f"{name}: {parameters(trainer)} parameters, PyTorch's network has {torch['parameters']}: not the same")
    return torch["torch"], [row(name, what, ours, peers) for what in WHAT]


def row(name, what, ours, peers):
    runs = {style: [1e3 * run[what] for run in times] for style, times in peers.items()}
    mine = [1e3 * run[what] for run in ours]
    best = min(statistics.median(times) for times in runs.values())
    return {"network": name, "what": what, "ours": statistics.median(mine), "peer": best, "unit": "ms",
            "detail": {"runs": mine, "peers": runs}}


def show(r):
    print(f"{r['network']:14} {r['what']:10} {r['ours']:9.4g} {r['peer']:9.4g} {r['ours'] / r['peer']:6.2f}", flush=True)


def save(measured, torch, options):
    """Rows of an earlier run beside the same PyTorch stay where this one has not measured."""
    out = {"schema": "mltc-bench-zoo", "version": 1, "torch": torch, "threads": options.threads, "repeat": options.repeat,
           "cpu": machine.cpu_name(options.avx2)}
    old = rows.load(options.out)
    new = {r["network"] for r in measured}
    kept = []
    if all(old.get(key) == out[key] for key in ("version", "torch", "threads", "cpu")):
        kept = [r for r in old["rows"] if r["network"] not in new]
    rows.save(options.out, out, sorted(kept + measured, key=lambda r: (r["network"], WHAT.index(r["what"]))))


def parse():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--mltc", default=os.path.join(os.path.dirname(os.path.dirname(BENCH)), "build", "bin", "mltc"))
    rows.add_only(p, NETWORKS)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--steps", type=int, default=20)
    p.add_argument("--repeat", type=int, default=3, help="runs of each side; medians count")
    p.add_argument("--compile", action="store_true", help="also PyTorch with torch.compile")
    p.add_argument("--avx2", action="store_true", help="neither side uses AVX-512, though this machine has it")
    p.add_argument("--out", help="the file of results (default: that of this kind of machine)")
    options = p.parse_args()
    options.out = options.out or machine.result_path("zoo", options.avx2)
    os.environ.update(machine.AVX2_ONLY if options.avx2 else {})
    options.mltc = os.path.abspath(options.mltc)
    return options, rows.chosen(p, options, NETWORKS)


def main():
    options, names = parse()
    print(f"{'network':14} {'ms':10} {'mltc':>9} {'PyTorch':>9} {'ratio':>6}")
    measured = []
    for name in names:
        folder = tempfile.mkdtemp(prefix="mltc-zoo-")
        try:
            torch, new = measure(name, options, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        for r in new:
            show(r)
        measured += new
        save(measured, torch, options)
    print(f"\nPyTorch {torch}, {options.threads} threads, median of {options.repeat}; details in {os.path.relpath(options.out)}")


if __name__ == "__main__":
    main()
