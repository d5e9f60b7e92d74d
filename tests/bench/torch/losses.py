"""From equal weights and equal batches, do a trainer and PyTorch have equal losses?

    losses.py NAME --trainer PATH --data DIR

The trainer writes its initial weights (--steps=0), then trains and logs every step. PyTorch starts
from those weights and gets the same batches, in single precision and again in double, which
shows how much of a difference is rounding. Prints one line of JSON.
"""

import argparse
import json
import os
import subprocess
import tempfile

import numpy as np
import torch
from torch.nn import functional as F

import data
import models

# The seed of each graph: the order of its batches follows from it.
SEEDS = {"mlp_sgd": 0, "mlp_adam": 0, "char_gpt": 1337}


def trainer_run(options, folder, steps):
    metrics, checkpoint = os.path.join(folder, "metrics.jsonl"), os.path.join(folder, "w.safetensors")
    command = [os.path.abspath(options.trainer), "--quiet", f"--steps={steps}", "--log-every=1",
               f"--metrics={metrics}", f"--save={checkpoint}", f"--threads={options.threads}",
               f"--data-dir={options.data}"]
    subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL)
    with open(metrics, encoding="utf-8") as f:
        lines = [json.loads(line) for line in f]
    return [line["loss"] for line in lines if "eval" not in line], checkpoint


# --- weights: the trainer's linear.w is [in, out], PyTorch's is [out, in] ---------------------------

def put(parameter, value, transpose=False):
    value = torch.from_numpy(np.ascontiguousarray(value.T if transpose else value))
    assert parameter.shape == value.shape, (parameter.shape, value.shape)
    with torch.no_grad():
        parameter.copy_(value)


def put_linear(layer, weights, name):
    put(layer.weight, weights[name + ".w"], transpose=True)
    put(layer.bias, weights[name + ".b"])


def put_norm(layer, weights, name):
    put(layer.weight, weights[name + ".g"])
    put(layer.bias, weights[name + ".b"])


def put_mlp(model, weights):
    linears = [m for m in model if isinstance(m, torch.nn.Linear)]
    for i, layer in enumerate(linears):
        put_linear(layer, weights, "linear" if i == 0 else f"linear_{i + 1}")


def put_gpt(model, weights):
    put(model.wte.weight, weights["wte"])
    put(model.wpe.weight, weights["wpe"])
    put_norm(model.norm, weights, "layernorm")
    for i, layer in enumerate(model.layers):
        path = f"layer.{i}."
        put_norm(layer.norm1, weights, path + "layernorm")
        put_norm(layer.norm2, weights, path + "layernorm_2")
        put_linear(layer.attn.qkv, weights, path + "attn.linear")
        put_linear(layer.attn.out, weights, path + "attn.linear_2")
        put_linear(layer.up, weights, path + "linear")
        put_linear(layer.down, weights, path + "linear_2")


# --- the same steps in PyTorch -----------------------------------------------------------------------

def mlp_losses(options, weights, steps, dtype, sizes, batch, make_optimizer):
    images, labels, _, _ = data.mnist(options.data)
    model = models.mlp(*sizes).to(dtype)
    put_mlp(model, weights)
    optimizer = make_optimizer(model.parameters())
    for pick in data.batches(SEEDS[options.name], len(images), batch, steps):
        # In single precision first, as the graph says: f32(image) / 255.
        x = torch.from_numpy((images[pick].astype(np.float32) / np.float32(255)).reshape(batch, -1))
        loss = F.cross_entropy(model(x.to(dtype)), torch.from_numpy(labels[pick]).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


def gpt_losses(options, weights, steps, dtype):
    ids = data.shakespeare(options.data)
    ids = ids[: int(len(ids) * 0.9)]
    window = 64
    model = models.CharGPT().to(dtype)
    put_gpt(model, weights)
    optimizer = models.gpt_optimizer(model)
    picks = data.batches(SEEDS["char_gpt"], len(ids) - window, 12, steps)
    for step, pick in enumerate(picks):
        for group in optimizer.param_groups:
            group["lr"] = models.cosine(step, total=steps)
        at = pick[:, None] + np.arange(window + 1)[None, :]
        rows = torch.from_numpy(ids[at])
        loss = model(rows[:, :-1], rows[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        yield loss.item()


def peer_losses(options, weights, steps, dtype):
    if options.name == "char_gpt":
        return list(gpt_losses(options, weights, steps, dtype))
    if options.name == "mlp_sgd":
        return list(mlp_losses(options, weights, steps, dtype, (784, 128, 10), 64,
                               lambda p: torch.optim.SGD(p, lr=0.1)))
    return list(mlp_losses(options, weights, steps, dtype, (784, 512, 256, 10), 128,
                           lambda p: torch.optim.Adam(p, lr=1e-3)))


def worst(a, b):
    """The largest relative difference, and its step."""
    each = [abs(x - y) / abs(y) for x, y in zip(a, b)]
    return max(each), each.index(max(each)) + 1


def main():
    p = argparse.ArgumentParser()
    p.add_argument("name", choices=SEEDS)
    p.add_argument("--trainer", required=True)
    p.add_argument("--data", required=True)
    p.add_argument("--steps", type=int, default=100)
    p.add_argument("--threads", type=int, default=2)
    options = p.parse_args()
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory(prefix="mltc-losses-") as folder:
        _, checkpoint = trainer_run(options, folder, 0)
        weights = data.read_safetensors(checkpoint)
        ours, _ = trainer_run(options, folder, options.steps)
    single = peer_losses(options, weights, options.steps, torch.float32)
    double = peer_losses(options, weights, options.steps, torch.float64)
    assert len(ours) == len(single) == options.steps, (len(ours), len(single))
    off, step = worst(ours, single)
    print(json.dumps({"name": options.name, "worst": off, "at_step": step,
                      "ours_to_double": worst(ours, double)[0],
                      "pytorch_to_double": worst(single, double)[0],
                      "first": [ours[0], single[0]], "last": [ours[-1], single[-1]]}))


if __name__ == "__main__":
    main()
