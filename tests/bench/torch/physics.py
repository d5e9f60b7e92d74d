"""The peer of `heat`: a network that obeys a differential equation, with derivatives by autograd as PyTorch users write
them. Styles: "tensors", and "fused" with a fused Adam.
"""

import math

import torch
from torch import nn

import data

BATCH, WIDTH, WEIGHT, STEPS = 200, 48, 0.1, 8000


def slopes(y, x):
    """dy/dx of each row, which later derivatives go through."""
    return torch.autograd.grad(y.sum(), x, create_graph=True)[0]


def schedule(step, lr=1e-2):
    low = lr / 100
    return low + (lr - low) * (1 + math.cos(math.pi * min(step / STEPS, 1))) / 2


def rod():
    return nn.Sequential(nn.Linear(2, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH),
                         nn.Tanh(), nn.Linear(WIDTH, 1))


def loss(model, a, at, u, place):
    fit = ((model(2 * at - 1)[:, 0] - u) ** 2).mean()
    slope = slopes(model(2 * place - 1)[:, 0], place)
    bend = slopes(slope[:, 0], place)[:, 0]
    return fit + WEIGHT * ((slope[:, 1] - a * bend) ** 2).mean()


def heat(options):
    at, u = map(torch.from_numpy, data.heat(options.data))
    model, a = rod(), nn.Parameter(torch.ones(()))
    fused = {"fused": True} if options.style == "fused" else {}
    optimizer = torch.optim.Adam([a, *model.parameters()], lr=1e-2, **fused)
    order, count = torch.randperm(800), 0

    def step():
        nonlocal order, count
        for group in optimizer.param_groups:
            group["lr"] = schedule(count)
        if count % 4 == 0:
            order = torch.randperm(800)
        pick = order[count % 4 * BATCH:][:BATCH]
        count += 1
        optimizer.zero_grad(set_to_none=True)
        place = torch.rand(BATCH, 2, requires_grad=True)
        loss(model, a, at[pick], u[pick], place).backward()
        optimizer.step()

    return step
