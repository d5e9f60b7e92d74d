"""One network of networks.py in PyTorch, in a process of its own: times a step and an evaluated batch, in seconds, and
prints them as a line of JSON.

    peer.py NETWORK --data DIR [--style plain|channels_last|compile] [--threads N] [--steps N]
"""

import argparse
import json
import os
import time

import numpy as np
import torch

import networks


def batches(folder, inputs, size, style):
    """All batches of the folder, as lists of tensors. Images are turned to [batch, channels, height, width]."""
    columns = []
    for name in inputs:
        x = torch.from_numpy(np.load(os.path.join(folder, name + ".npy")))
        x = x.long() if x.dtype == torch.int32 else x
        if name == "image":
            x = x.permute(0, 3, 1, 2)
            x = x.contiguous(memory_format=torch.channels_last if style == "channels_last" else torch.contiguous_format)
        columns.append(x.split(size))
    return list(zip(*columns))


def seconds_each(run, data, warm, times):
    """`run` on one batch after another."""
    for i in range(warm):
        run(*data[i % len(data)])
    begun = time.perf_counter()
    for i in range(times):
        run(*data[i % len(data)])
    return (time.perf_counter() - begun) / times


def measure(options):
    make, optimiser, size, inputs = networks.NETWORKS[options.network]
    torch.manual_seed(1)
    torch.set_num_threads(options.threads)
    model = make()
    if options.style == "channels_last":
        model = model.to(memory_format=torch.channels_last)
    steps, data = optimiser(model.parameters()), batches(options.data, inputs, size, options.style)
    run = torch.compile(model) if options.style == "compile" else model

    def step(*batch):
        steps.zero_grad(set_to_none=True)
        run(*batch).backward()
        steps.step()

    def evaluate(*batch):
        with torch.no_grad():
            run(*batch)

    out = {"step": seconds_each(step, data, options.warm, options.steps)}
    model.eval()
    out["evaluation"] = seconds_each(evaluate, data, 2, len(data))
    return {**out, "parameters": sum(p.numel() for p in model.parameters()), "torch": torch.__version__}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("network", choices=networks.NETWORKS)
    p.add_argument("--data", required=True)
    p.add_argument("--style", default="plain", choices=["plain", "channels_last", "compile"])
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--steps", type=int, default=20)
    p.add_argument("--warm", type=int, default=5)
    print(json.dumps(measure(p.parse_args())))


if __name__ == "__main__":
    main()
