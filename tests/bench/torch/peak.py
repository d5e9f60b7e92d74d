"""The memory of a training step: mltc's arena beside the tensors that PyTorch has alive.

    python3 tests/bench/torch/peak.py --mltc build/bin/mltc --data DIR [--only NAME,...]

mltc's side is `mltc memory`, which needs no run: the arena is all that a trainer of the network uses,
batches and workspaces included, and tests hold it to that. PyTorch's side is traced by peak_peer.py,
which says what is counted; the style that needs least is the peer. Rows go to
tests/bench/results/torch_peak.json; rows of networks that are not measured stay. The exit code is 1
when a bar is missed: what keeps everything may take 0.6 of PyTorch's.

Beside it stands what nothing can do without, `least`: states, both batches, and what the kernel that
needs most reads, writes and works in (bound_ws of plan.json); where gradients are clipped by their norm,
instead of that kernel all gradients. And `auto`: whether 0.6 is met by running kernels again, and at what
time by cost.h; and `tenth`: what --extra-time=10% makes of it.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

import rows  # noqa: E402  (of all benches)
from pytorch import PYTHON, ROOT  # noqa: E402

BAR = 0.6

TENSORS, FUSED, IMAGES = ("tensors",), ("tensors", "fused"), ("tensors", "channels_last")
# name: graph, sizes, styles of PyTorch, whether synthetic.py makes the data. (gcn has no batch but its
# whole data set, which only one side would count.)
NETWORKS = {
    "mlp_adam": ("tests/bench/torch/mlp_adam.graph", {}, FUSED, False),
    "mnist_cnn": ("examples/mnist_cnn.graph", {}, IMAGES, False),
    "resnet20": ("examples/resnet20.graph", {}, IMAGES, False),
    "unet": ("examples/unet.graph", {}, IMAGES, False),
    "char_lstm": ("examples/char_lstm.graph", {}, FUSED, False),
    "char_gpt": ("examples/char_gpt.graph", {}, FUSED, False),
    "small_gpt": ("examples/char_gpt.graph", {"B": 4, "T": 256, "C": 384, "H": 6, "L": 6}, FUSED, False),
    "moe_block": ("tests/bench/torch/moe_block.graph", {}, ("tensors", "one_by_one"), True),
    "dlrm": ("tests/bench/torch/dlrm.graph", {}, ("dense", "sparse"), True),
    "gpt2": ("examples/gpt2.graph", {"B": 1, "T": 256}, FUSED, True),
    "gpt2_1024": ("examples/gpt2.graph", {"B": 1, "T": 1024}, FUSED, True),
}


def ask(mltc, words, graph, sizes):
    defines = [word for name, n in sizes.items() for word in ("-D", f"{name}={n}")]
    done = subprocess.run([mltc, *words, os.path.join(ROOT, graph), *defines], check=False, capture_output=True,
                          text=True)
    if done.returncode not in (0, 3):  # 3: some policy does not fit
        sys.exit(f"mltc {' '.join(words)} {graph}:\n{done.stderr}")
    return json.loads(done.stdout)


def policies(mltc, graph, sizes, budget):
    found = ask(mltc, ["memory", "--json", f"--gpu={budget}"], graph, sizes)["policies"]
    return {p["checkpoint"]: p for p in found}


def tenth(mltc, graph, sizes):
    plan = ask(mltc, ["--extra-time=10%", "--emit=plan.json"], graph, sizes)
    return {"total": plan["totals"]["arena"], "time": plan["ratios"]["recompute_time"]}


def least(mltc, graph, sizes):
    plan = ask(mltc, ["--emit=plan.json"], graph, sizes)
    with open(os.path.join(ROOT, graph), encoding="utf-8") as f:
        clips = re.search(r"^\s*clip\s*=", f.read(), re.MULTILINE)
    totals = plan["totals"]
    gradients = totals["states"] + totals["staging"] + 4 * totals["parameters"]
    return max(plan["bound_ws"], gradients) if clips else plan["bound_ws"]


def peer(name, style, data, threads):
    done = subprocess.run([PYTHON, os.path.join(HERE, "peak_peer.py"), name, "--style", style, "--data",
                           data, "--threads", str(threads)], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"peak_peer.py {name} failed in '{PYTHON}':\n{done.stderr}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def trace(name, options, folder):
    """PyTorch's side, by style."""
    _, _, styles, synthetic = NETWORKS[name]
    data = options.data
    if synthetic:
        data = os.path.join(folder, name)
        subprocess.run([PYTHON, os.path.join(HERE, "synthetic.py"), name.split("_1024")[0], data], check=True)
    return {style: peer(name, style, data, options.threads) for style in styles}


def measure(name, options, peers):
    graph, sizes, _, _ = NETWORKS[name]
    peer_bytes = min(p["peak"] for p in peers.values())
    found = policies(options.mltc, graph, sizes, int(BAR * peer_bytes))
    ours, auto = {name: p["total"] for name, p in found.items() if name != "auto"}, found["auto"]
    return {"network": name, "sizes": sizes, "ours": ours, "peer": peer_bytes,
            "ratio": ours["free"] / peer_bytes, "bar": BAR, "met": ours["free"] / peer_bytes <= BAR,
            "least": least(options.mltc, graph, sizes),
            "auto": {"total": auto["total"], "time": 1 + auto["recomputed"], "met": auto["fits"]},
            "tenth": tenth(options.mltc, graph, sizes), "peers": peers}


def known_rows(path):
    return {row["network"]: row for row in rows.load(path).get("rows", [])}


def save(path, known):
    versions = sorted({p["torch"] for row in known.values() for p in row["peers"].values()})
    head = {"schema": "mltc-bench-torch-peak", "version": 1, "torch": versions}
    rows.save(path, head, [known[name] for name in NETWORKS if name in known])


def show(measured):
    names = list(measured[0]["ours"])
    print(f"\n{'network':10} {'PyTorch':>15} {'mltc':>15}  " + " ".join(f"{p:>9}" for p in (*names, "least")))
    for row in measured:
        sizes = [*(row["ours"][p] for p in names), *([row["least"]] if "least" in row else [])]
        shares = " ".join(f"{size / row['peer']:>9.2f}" for size in sizes)
        auto = row.get("auto", {"met": False})
        again = f", met in {auto['time']:.2f} of the time" if auto["met"] and not row["met"] else ""
        if "tenth" in row:
            again += f"; {row['tenth']['total'] / row['peer']:.2f} in {row['tenth']['time']:.2f}"
        print(f"{row['network']:10} {row['peer']:>15,} {row['ours']['none']:>15,}  {shares}  "
              f"{'met' if row['met'] else 'missed'}{again}")


def parse():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--mltc", default=os.path.join(ROOT, "build", "bin", "mltc"))
    p.add_argument("--data", required=True, help="folder with MNIST and tinyshakespeare.txt")
    rows.add_only(p, NETWORKS)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--keep-peers", action="store_true",
                   help="PyTorch's side as it is in the results: only mltc has changed")
    p.add_argument("--out", default=os.path.join(ROOT, "tests", "bench", "results", "torch_peak.json"))
    options = p.parse_args()
    options.data = os.path.abspath(options.data)
    return options, rows.chosen(p, options, NETWORKS)


def main():
    options, names = parse()
    folder = tempfile.mkdtemp(prefix="mltc-peak-")
    known = known_rows(options.out)
    measured = []
    try:
        for name in names:
            print(f"measuring {name}", flush=True)
            keep = options.keep_peers and name in known
            peers = known[name]["peers"] if keep else trace(name, options, folder)
            known[name] = measure(name, options, peers)
            measured.append(known[name])
            save(options.out, known)  # the slow ones are last
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    show(measured)
    return 1 if any(not row["met"] for row in measured) else 0


if __name__ == "__main__":
    sys.exit(main())
