"""Networks as people train them on processors, none of which mltc was made fast on, beside PyTorch, in one run.

    python3 tests/bench/zoo/run.py --mltc build/bin/mltc [--only NAME,...]

PyTorch is that of $MLTC_TORCH_PYTHON, else of python3: `pip install torch numpy`. README.md says more.
"""

import argparse
import glob
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.dirname(HERE)
sys.path += [BENCH, os.path.join(BENCH, "torch")]

import machine  # noqa: E402  (of all benches)
import rows  # noqa: E402
from pytorch import ON_AVX2, PYTHON, add_options, rows_to_keep, settle  # noqa: E402
from trainers import Trainer  # noqa: E402

NETWORKS = sorted(os.path.basename(path).removesuffix(".graph") for path in glob.glob(os.path.join(HERE, "*.graph")))
BATCHES = 8  # in the files of samples.py
WARM = 5  # steps before the clock
PLAIN, COMPILED = "plain", "compile"  # styles of peer.py
WHAT = ("step", "evaluation")


def script(name, *arguments):
    return subprocess.run([PYTHON, os.path.join(HERE, name), *arguments], capture_output=True, text=True, check=False)


def time_peer(name, style, options, data):
    """None where a style other than the first does not run, which is said."""
    done = script("peer.py", name, "--data", data, "--style", style, "--threads", str(options.threads),
                  "--steps", str(options.steps), "--warm", str(WARM))
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1])
    if style == PLAIN:
        sys.exit(f"peer.py {name} fails in '{PYTHON}':\n{done.stderr}")
    reason = done.stderr.strip().splitlines()[-1:] or ["no message"]
    print(f"  {name}: style '{style}' does not run: {reason[0]}", flush=True)
    return None


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
    made = script("samples.py", name, data)
    if made.returncode:
        sys.exit(f"samples.py {name} fails in '{PYTHON}':\n{made.stderr}")
    trainer = Trainer(options.mltc, os.path.join(HERE, name + ".graph"), folder, *(ON_AVX2 if options.avx2 else []))
    styles = [PLAIN]
    if os.path.exists(os.path.join(data, "image.npy")):
        styles.append("channels_last")
    if options.compile:
        styles.append(COMPILED)
    ours, peers = [], {style: [] for style in styles}
    for _ in range(options.repeat):
        for style in list(peers):
            run = time_peer(name, style, options, data)
            if run:
                peers[style].append(run)
            else:
                del peers[style]
        ours.append(time_ours(trainer, options, data))
    torch = peers[PLAIN][0]
    if torch["parameters"] != parameters(trainer):
        sys.exit(f"{name}: {parameters(trainer)} parameters, PyTorch's network has {torch['parameters']}: not the same")
    return torch["torch"], [row(name, what, ours, peers) for what in WHAT]


def row(name, what, ours, peers):
    """The peer is PyTorch as it is; compiled it stands beside."""
    runs = {style: [1e3 * run[what] for run in times] for style, times in peers.items()}
    mine = [1e3 * run[what] for run in ours]
    medians = {style: statistics.median(times) for style, times in runs.items()}
    beside = {"PyTorch compiled": medians.pop(COMPILED)} if COMPILED in medians else {}
    return {"network": name, "what": what, "ours": statistics.median(mine), "peer": min(medians.values()), "unit": "ms",
            **({"beside": beside} if beside else {}), "detail": {"runs": mine, "peers": runs}}


def show(r):
    print(f"{r['network']:14} {r['what']:10} {r['ours']:9.4g} {r['peer']:9.4g} {r['ours'] / r['peer']:6.2f}",
          *(f" {who} {time:.4g}" for who, time in r.get("beside", {}).items()), flush=True)


def save(measured, torch, options):
    out = {"schema": "mltc-bench-zoo", "version": 1, "torch": torch, "threads": options.threads, "repeat": options.repeat,
           "cpu": machine.cpu_name(options.avx2)}
    kept = rows_to_keep(rows.load(options.out), out, measured, lambda r: r["network"])
    rows.save(options.out, out, sorted(kept + measured, key=lambda r: (r["network"], WHAT.index(r["what"]))))


def parse():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    rows.add_only(p, NETWORKS)
    p.add_argument("--steps", type=int, default=20)
    add_options(p, p)
    options = p.parse_args()
    settle(options, "zoo")
    return options, rows.chosen(p, options, NETWORKS)


def main():
    options, names = parse()
    print(f"{'network':14} {'ms':10} {'mltc':>9} {'PyTorch':>9} {'ratio':>6}")
    measured = []
    for name in names:
        with tempfile.TemporaryDirectory(prefix="mltc-zoo-") as folder:
            torch, new = measure(name, options, folder)
        for r in new:
            show(r)
        measured += new
        save(measured, torch, options)
    print(f"\nPyTorch {torch}, {options.threads} threads, median of {options.repeat}; details in {os.path.relpath(options.out)}")


if __name__ == "__main__":
    main()
