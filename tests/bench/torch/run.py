"""Trainers made by mltc beside PyTorch and JAX, on this machine, in one run.

    python3 tests/bench/torch/run.py --mltc build/bin/mltc --data DIR [--only NAME,...]

DIR holds the MNIST files and tinyshakespeare.txt (scripts/fetch-data). PyTorch is looked for in
$MLTC_TORCH_PYTHON, else in python3: `pip install torch numpy`; JAX in $MLTC_JAX_PYTHON, where that is set:
`pip install jax`. README.md says more.
"""

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

from trainers import Trainer

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

import machine  # noqa: E402  (of all benches)
import rows  # noqa: E402
from pytorch import ON_AVX2, PYTHON, ROOT, add_options, rows_to_keep, settle  # noqa: E402

JAX_PYTHON = os.environ.get("MLTC_JAX_PYTHON")
JAX = "JAX "  # begins the names of its styles
BF16 = "_bf16"  # ends the names of rows where both sides multiply bf16


class Bench:
    def __init__(self, options):
        self.options = options
        self.folder = tempfile.mkdtemp(prefix="mltc-bench-")
        self.rows = []
        self.trainers = {}
        self.failed = set()
        self.jax = None  # its version, where it was measured

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def trainer(self, graph, *defines):
        key = " ".join([graph, *defines])
        if key not in self.trainers and not self.options.peer_only:
            folder = os.path.join(self.folder, str(len(self.trainers)))
            os.mkdir(folder)
            self.trainers[key] = Trainer(self.options.mltc, os.path.join(ROOT, graph), folder, *defines,
                                         *(ON_AVX2 if self.options.avx2 else []))
        return self.trainers.get(key)

    def synthetic(self, name):
        """The folder of data that synthetic.py makes for a benchmark."""
        folder = os.path.join(self.folder, "data-" + name)
        subprocess.run([PYTHON, os.path.join(HERE, "synthetic.py"), name, folder], check=True)
        return folder

    def peer(self, name, style, *arguments):
        program = [JAX_PYTHON, "jax_peers.py"] if style.startswith(JAX) else [PYTHON, "peers.py"]
        command = [program[0], os.path.join(HERE, program[1]), name.removesuffix(BF16), "--style", style.removeprefix(JAX),
                   "--data", self.options.data, "--threads", str(self.options.threads), *arguments]
        command += ["--bf16"] if name.endswith(BF16) else []
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:  # older PyTorch lacks some styles: said, and left out
            reason = done.stderr.strip().splitlines()[-1:] or ["no message"]
            print(f"  {name}: style '{style}' does not run: {reason[0]}", flush=True)
            self.failed.add((name, style))
            return None
        out = json.loads(done.stdout.strip().splitlines()[-1])
        self.jax = out.get("jax", self.jax)
        return out

    def row(self, name, what, ours, peer, bar, unit="", higher=False, detail=None, beside=None):
        """`bar`: a number that `ours` must not pass, or None where there is none. `beside`: what others reach."""
        ok = None
        if ours is not None and bar is not None:
            ok = ours >= bar if higher else ours <= bar
        self.rows.append({"benchmark": name, "what": what, "ours": ours, "peer": peer, "bar": bar,
                          "unit": unit, "pass": ok, **({"beside": beside} if beside else {}),
                          "detail": detail or {}})

    # Both sides take turns, so that what else the machine does hurts them alike.
    def alternate(self, name, styles, field, ours, *arguments):
        peers = {style: [] for style in styles}
        mine = []
        for i in range(self.options.repeat):
            for style in styles:
                run = None
                if (name, style) not in self.failed:
                    run = self.peer(name, style, "--seed", str(i), *arguments)
                if run:
                    peers[style].append(run[field])
            if not self.options.peer_only:
                mine.append(ours(i))
        medians = {s: statistics.median(v) for s, v in peers.items() if v}
        if styles[0] not in medians:
            sys.exit(f"PyTorch does not run in '{PYTHON}': pip install torch numpy, or set "
                     "MLTC_TORCH_PYTHON to a Python that has them")
        return medians, mine


def mnist_mlp(b):
    trainer = b.trainer("examples/mnist_mlp.graph")
    accuracies = []

    def ours(seed):
        seconds, lines = trainer.run(b.options.data, b.options.threads, f"--seed={seed}", "--no-save")
        accuracies.append([line["accuracy"] for line in lines if "eval" in line][-1])
        return seconds

    styles = ["tensors"] if b.options.quick else ["tensors", "loader"]
    peers, mine = b.alternate("mnist_mlp", styles, "seconds", ours)
    best = min(peers.values())
    b.row("mnist_mlp", "10 epochs, whole run", statistics.median(mine) if mine else None, best,
          best / 4, "s", detail={"peers": peers, "runs": mine})
    mean = statistics.mean(accuracies) if accuracies else None
    b.row("mnist_mlp", "test accuracy, mean of seeds", mean and 100 * mean, None, 97.3, "%", True,
          {"runs": accuracies})


def per_step(b, name, graph, steps, warm, factor, styles=("tensors", "fused"), defines=(), data=None, scan=True):
    """`data`: a folder in place of --data. `scan`: JAX is tried with all steps in one call, too, which
    can gain where steps are short."""
    others = {"PyTorch compiled": ["compile"] if b.options.compile else [],
              "JAX": [JAX + "jit"] + [JAX + "scan"] * scan if JAX_PYTHON and not b.options.bf16 else []}
    if b.options.bf16:
        name, defines, factor = name + BF16, [*defines, "--precision=bf16"], None
    trainer = b.trainer(graph, *defines)
    peers, mine = b.alternate(
        name, [*styles, *sum(others.values(), [])], "step_seconds",
        lambda i: 1e3 * trainer.step_seconds(data or b.options.data, b.options.threads, steps, warm),
        "--steps", str(steps - warm), *(["--data", data] if data else []))
    peers = {style: 1e3 * v for style, v in peers.items()}
    best = min(v for style, v in peers.items() if not style.startswith(JAX))
    beside = {who: min(peers[style] for style in tried if style in peers)
              for who, tried in others.items() if peers.keys() & set(tried)}
    b.row(name, "time per step", statistics.median(mine) if mine else None, best, factor and best * factor,
          "ms", detail={"peers": peers, "runs": mine}, beside=beside)


def mlp_adam(b):
    per_step(b, "mlp_adam", "tests/bench/torch/mlp_adam.graph", 1000, 100, 1 / 3)


def mnist_cnn(b):
    per_step(b, "mnist_cnn", "examples/mnist_cnn.graph", 300, 50, 1 / 2, ("tensors", "channels_last"), scan=False)


def resnet20(b):
    per_step(b, "resnet20", "examples/resnet20.graph", 40, 10, 2 / 3, ("tensors", "channels_last"), scan=False)


def moe_block(b):
    per_step(b, "moe_block", "tests/bench/torch/moe_block.graph", 24, 4, 1 / 2, ("tensors", "one_by_one"),
             data=b.synthetic("moe_block"))


def char_lstm(b):
    # No evaluation falls into the time: that is every 500 steps.
    per_step(b, "char_lstm", "examples/char_lstm.graph", 60, 10, 1 / 3)


def dlrm(b):
    per_step(b, "dlrm", "tests/bench/torch/dlrm.graph", 300, 50, 1 / 3, ("dense", "sparse"),
             data=b.synthetic("dlrm"))


def gcn(b):
    per_step(b, "gcn", "tests/bench/torch/gcn.graph", 120, 20, 1 / 3, ("index", "matrix"),
             data=b.synthetic("gcn"))


def heat(b):
    folder = os.path.join(b.folder, "data-heat")
    os.mkdir(folder)
    subprocess.run([PYTHON, os.path.join(ROOT, "examples", "data", "heat.py"), folder], check=True)
    # No evaluation falls into the time: that is every 1000 steps.
    per_step(b, "heat", "examples/heat.graph", 990, 90, 1 / 3, data=folder)


def char_gpt(b):
    # 200 of 250 steps, so that no evaluation falls into the time.
    per_step(b, "char_gpt", "examples/char_gpt.graph", 240, 40, 2 / 3)


def sized(**sizes):
    return [word for name, n in sizes.items() for word in ("-D", f"{name}={n}")]


def small_gpt(b):
    per_step(b, "small_gpt", "examples/char_gpt.graph", 15, 3, 2 / 3,
             defines=sized(B=4, T=256, C=384, H=6, L=6), scan=False)


def gpt2(b):
    per_step(b, "gpt2", "examples/gpt2.graph", 6, 2, 1, defines=sized(B=1, T=256),
             data=b.synthetic("gpt2"), scan=False)


def char_gpt_loss(b):
    trainer = b.trainer("examples/char_gpt.graph")
    if trainer is None:
        return
    seconds, lines = trainer.run(b.options.data, b.options.threads, "--steps=2000", "--no-save")
    losses = {line["step"]: line["loss"] for line in lines if "eval" in line}
    b.row("char_gpt", "validation loss, step 2000", losses[2000], None, 1.90,
          detail={"losses": losses, "seconds": seconds})


def char_gpt_dropout(b):
    """Equal within noise: at four steps the means of the seeds differ by less than twice what such a
    difference varies by from seeds to seeds, or by 0.01."""
    trainer = b.trainer("examples/char_gpt.graph", *sized(drop=0.1))
    seeds = max(b.options.repeat, 3)
    mine, peers = [], []
    for seed in range(seeds):
        peers.append(b.peer("char_gpt_dropout", "tensors", f"--seed={seed}", "--steps=2000")["losses"])
        if trainer:
            _, lines = trainer.run(b.options.data, b.options.threads, f"--seed={seed}", "--no-save")
            losses = {line["step"]: line["loss"] for line in lines if "eval" in line}
            mine.append([losses[step] for step in (500, 1000, 1500, 2000)])
    for i, step in enumerate((500, 1000, 1500, 2000)):
        other = [run[i] for run in peers]
        own = [run[i] for run in mine]
        noise = math.sqrt((statistics.variance(own or other) + statistics.variance(other)) / seeds)
        b.row("char_gpt_dropout", f"validation loss, step {step}", statistics.mean(own) if own else None,
              statistics.mean(other), statistics.mean(other) + max(2 * noise, 0.01),
              detail={"own": own, "peer": other})


def losses(b):
    if b.options.peer_only:
        return
    for name in ("mlp_sgd", "mlp_adam", "char_gpt"):
        graph = "examples/char_gpt.graph" if name == "char_gpt" else f"tests/bench/torch/{name}.graph"
        trainer = b.trainer(graph)
        command = [PYTHON, os.path.join(HERE, "losses.py"), name, "--trainer", trainer.path,
                   "--data", b.options.data, "--threads", str(b.options.threads)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"losses.py {name} failed:\n{done.stderr}")
        out = json.loads(done.stdout.strip().splitlines()[-1])
        b.row("losses_equal", f"{name}, 100 steps, worst relative", out["worst"], None, 1e-5,
              detail=out)


BENCHMARKS = {"mnist_mlp": mnist_mlp, "mlp_adam": mlp_adam, "char_gpt": char_gpt,
              "mnist_cnn": mnist_cnn, "resnet20": resnet20, "char_lstm": char_lstm,
              "small_gpt": small_gpt, "gpt2": gpt2, "moe_block": moe_block, "gcn": gcn, "dlrm": dlrm, "heat": heat,
              "char_gpt_loss": char_gpt_loss, "char_gpt_dropout": char_gpt_dropout,
              "losses_equal": losses}


IN_BF16 = {name: BENCHMARKS[name] for name in ("mlp_adam", "char_gpt", "mnist_cnn", "resnet20", "char_lstm", "small_gpt",
                                               "gpt2", "moe_block")}


def number(v):
    return "-" if v is None else f"{v:.4g}"


def show(measured):
    print(f"\n{'benchmark':14} {'what':38} {'mltc':>9} {'PyTorch':>9} {'bar':>9} {'':2} result; beside")
    for r in measured:
        result = {True: "pass", False: "MISS", None: "" if r["bar"] is None else "not measured"}[r["pass"]]
        print(f"{r['benchmark']:14} {r['what']:38} {number(r['ours']):>9} {number(r['peer']):>9} "
              f"{number(r['bar']):>9} {r['unit']:2} {result}", *(f" {who} {number(v)}" for who, v in r.get("beside", {}).items()))


def kept_rows(out, new, path):
    """Of an earlier run beside the same PyTorch (and JAX) on such a machine: what this one has not measured."""
    old = rows.load(path)
    out["jax"] = out["jax"] or old.get("jax")
    if out["jax"] != (old.get("jax") or out["jax"]):  # a file without it is of no other version
        return []
    kept = rows_to_keep(old, out, new, lambda row: (row["benchmark"], row["what"]))
    if kept:
        out["compile_seconds"] = {**old["compile_seconds"], **out["compile_seconds"]}
    return kept


def place(row):
    """In the order of the benchmarks; those in bf16 after all others."""
    name = row["benchmark"]
    return name.endswith(BF16), list(BENCHMARKS).index(name.removesuffix(BF16))


def save(b, path):
    version = subprocess.run([PYTHON, "-c", "import torch; print(torch.__version__)"],
                             capture_output=True, text=True, check=False).stdout.strip()
    out = {"schema": "mltc-bench-torch", "version": 1, "torch": version, "jax": b.jax,
           "threads": b.options.threads, "repeat": b.options.repeat, "cpu": machine.cpu_name(b.options.avx2),
           "compile_seconds": {g: t.compile_seconds for g, t in b.trainers.items()}}
    kept = kept_rows(out, b.rows, path)
    rows.save(path, out, sorted(kept + b.rows, key=place))
    print(f"\nPyTorch {version}, JAX {b.jax or 'not measured'}, {b.options.threads} threads, median of {b.options.repeat}; "
          f"details in {os.path.relpath(path)}")


def parse():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--data", required=True, help="folder with MNIST and tinyshakespeare.txt")
    rows.add_only(p, BENCHMARKS)
    p.add_argument("--peer-only", action="store_true", help="measure PyTorch alone")
    p.add_argument("--quick", action="store_true", help="leave out PyTorch's DataLoader")
    kind = p.add_mutually_exclusive_group()
    kind.add_argument("--bf16", action="store_true", help="times per step with matmuls of bf16 on both sides")
    add_options(p, kind)
    options = p.parse_args()
    settle(options, "torch")
    options.data = os.path.abspath(options.data)
    return options, rows.chosen(p, options, IN_BF16 if options.bf16 else BENCHMARKS)


def main():
    options, names = parse()
    b = Bench(options)
    try:
        for name in names:
            print(f"running {name}", flush=True)
            BENCHMARKS[name](b)
    finally:
        b.close()
    show(b.rows)
    save(b, options.out)
    return 1 if any(r["pass"] is False for r in b.rows) else 0


if __name__ == "__main__":
    sys.exit(main())
