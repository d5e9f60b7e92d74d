"""What PyTorch computes for the networks of this folder: NAME.json, which the suite compares with.

    python3 tests/oracle/make.py [--mltc=build/bin/mltc] [NAME...]

A trainer writes its initial weights (--steps=0); PyTorch starts from them, in double
precision, reads the same batches, and stores losses, norms of all gradients together, and the loss of
an evaluation at the end. Needs PyTorch (Debian: python3-torch); the suite does not.
"""
import argparse
import inspect
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch

import inputs
import networks

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "bench", "torch"))
from data import read_safetensors  # noqa: E402


def initial_weights(mltc, name, folder):
    graph = os.path.join(HERE, name + ".graph")
    program, checkpoint = os.path.join(folder, name), os.path.join(folder, "w.safetensors")
    subprocess.run([mltc, "-O1", graph, "-o", program], check=True)
    subprocess.run([program, "--quiet", "--steps=0", "--save=" + checkpoint, "--data-dir=" + folder], check=True)
    return read_safetensors(checkpoint)


def batches(name, folder, dtype):
    size, files = inputs.NETWORKS[name]
    subprocess.run([sys.executable, os.path.join(HERE, "inputs.py"), name, folder], check=True)
    arrays = [torch.tensor(np.load(os.path.join(folder, f + ".npy"))) for f in files]
    arrays = [x.to(dtype) if x.is_floating_point() else x.long() for x in arrays]
    return [[x[i * size:(i + 1) * size] for x in arrays] for i in range(inputs.STEPS)]


def losses_of(name, weights, batch):
    """(name, loss, path of the parameters that it trains; None: a metric), one after the other."""
    weights.begin()
    result = networks.NETWORKS[name][0](weights, *batch)
    return result if inspect.isgenerator(result) else [("loss", result, "")]


def train(name, weights, data):
    make_optimizer, optimizers, numbers = networks.NETWORKS[name][1], {}, {}
    for batch in data:
        for loss_name, loss, path in losses_of(name, weights, batch):
            if path is None:
                numbers.setdefault(loss_name, []).append(loss.item())
                continue
            params = [p for k, p in weights.params.items() if k.startswith(path)]
            if loss_name not in optimizers:
                make = make_optimizer[loss_name] if isinstance(make_optimizer, dict) else make_optimizer
                optimizers[loss_name] = make(params)
            grads = torch.autograd.grad(loss, params, retain_graph=True, allow_unused=True)
            for p, g in zip(params, grads):
                p.grad = g
            norm = torch.stack([g.norm() for g in grads if g is not None]).norm()
            optimizers[loss_name].step()
            numbers.setdefault(loss_name, []).append(loss.item())
            norm_name = "grad_norm" if loss_name == "loss" else loss_name + ".grad_norm"
            numbers.setdefault(norm_name, []).append(norm.item())
    return numbers


def evaluate(name, weights, data):
    weights.training = False
    totals = {}
    with torch.no_grad():
        for batch in data:
            for loss_name, loss, _ in losses_of(name, weights, batch):
                totals[loss_name] = totals.get(loss_name, 0) + loss.item()
    return {"eval" if k == "loss" else "eval." + k: [v / len(data)] for k, v in totals.items()}


def make(mltc, name):
    with tempfile.TemporaryDirectory() as folder:
        data = batches(name, folder, torch.float64)
        trained = networks.TRAINED.get(name, lambda path: True)
        weights = networks.Weights(initial_weights(mltc, name, folder), torch.float64, trained)
    numbers = train(name, weights, data)
    with open(os.path.join(HERE, name + ".graph"), encoding="utf-8") as f:
        if "eval =" in f.read():
            numbers.update(evaluate(name, weights, data))
    numbers = {k: [float(f"{x:.9g}") for x in v] for k, v in numbers.items()}
    with open(os.path.join(HERE, name + ".json"), "w", encoding="utf-8") as f:
        json.dump({"torch": torch.__version__, "numbers": numbers}, f, indent=1)
        f.write("\n")
    first = next(iter(numbers.values()))
    print(name, first[0], "...", first[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mltc", default="build/bin/mltc")
    parser.add_argument("names", nargs="*", default=None)
    options = parser.parse_args()
    for name in options.names or sorted(networks.NETWORKS):
        make(os.path.abspath(options.mltc), name)


if __name__ == "__main__":
    main()
