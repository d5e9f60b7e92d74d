"""The memory of one PyTorch training step, in a process of its own: prints one line of JSON.

    peak_peer.py NETWORK --style STYLE --data DIR [--threads N]

`peak`: the most bytes of CPU tensors that are alive at one time in a step that is like all others:
  - what stays: the storages of parameters, buffers and the optimiser's state, each once; and
  - what comes and goes: allocations less frees as torch.profiler (profile_memory) tells them, over
    three steps after warming up. It cannot tell frees of what was allocated before it began, such as
    the gradients of the step before; so the first step only makes up for those, and the largest sum
    after it counts.
Not counted: the data set, which lies in memory, and what libraries (MKL, oneDNN) allocate besides
tensors. `resident` is the most that the process had resident in those steps, all of that, the
interpreter and its libraries included (VmHWM, reset before them).
"""

import functools
import gc
import re

import torch
from torch import nn
from torch.nn import functional as F

import data
import models
import peers

STEPS = 3


def storages(tensors):
    return {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}


def staying_bytes():
    """Of all modules and optimisers of this process."""
    found = {}
    for thing in gc.get_objects():
        if isinstance(thing, nn.Module):
            found.update(storages([*thing.parameters(), *thing.buffers()]))
        elif isinstance(thing, torch.optim.Optimizer):
            found.update(storages(v for state in thing.state.values() for v in state.values()
                                  if torch.is_tensor(v)))
    return sum(found.values())


def resident_peak():
    with open("/proc/self/status", encoding="utf-8") as f:
        return int(re.search(r"VmHWM:\s+(\d+)", f.read()).group(1)) * 1024


def traced(step):
    """The running sum of allocated bytes at each event, and the index of the first of the second step."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                profile_memory=True) as profile:
        for i in range(STEPS):
            with torch.profiler.record_function(f"memory step {i}"):
                step()
    events = profile.profiler.kineto_results.events()
    second = next(e.start_ns() for e in events if e.name() == "memory step 1")
    memory = sorted(((e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]"),
                    key=lambda e: e[0])
    total, most = 0, 0
    for at, size in memory:
        total += size
        if at >= second:
            most = max(most, total)
    return most


def peak_of_steps(step, warm, _timed):
    """In place of peers.time_steps."""
    for _ in range(min(warm, 3)):
        step()
    with open("/proc/self/clear_refs", "w", encoding="utf-8") as f:
        f.write("5")
    step()
    resident = resident_peak()
    stays = staying_bytes()
    moves = traced(step)
    return {"peak": stays + moves, "stays": stays, "resident": resident}


def unet(options):
    images = peers.as_floats(data.mnist(options.data)[0]).view(-1, 1, 28, 28)
    model = models.UNet()
    if options.style == "channels_last":
        model = model.to(memory_format=torch.channels_last)
        images = images.to(memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    order, at = torch.randperm(len(images)), 0

    def step():
        nonlocal at
        pick = order[at:at + 16]
        at = (at + 16) % (len(images) - 16)
        optimizer.zero_grad(set_to_none=True)
        model(images[pick]).backward()
        optimizer.step()

    return peers.time_steps(step, 10, options.steps)


def gpt2_1024(options):
    ids = torch.from_numpy(data.tokens(options.data))
    model = models.CharGPT(50257, 1024, 768, 12, 12, functools.partial(F.gelu, approximate="tanh"))
    return peers.time_steps(peers.gpt_stepper(options, ids, model, 1, 1024), 1, options.steps)


NETWORKS = {**peers.BENCHMARKS, "unet": unet, "gpt2_1024": gpt2_1024}


def main():
    peers.time_steps = peak_of_steps
    out = peers.run(NETWORKS, steps=1)
    peers.report(out.get("step_seconds", out))  # what the benchmark took for a time


if __name__ == "__main__":
    main()
