"""One timed PyTorch run in a process of its own: prints one line of JSON.

    peers.py BENCHMARK --style STYLE --data DIR [--seed N] [--threads N] [--bf16]
"""

import argparse
import functools
import json
import time

import torch
from torch.nn import functional as F

import data
import models
import physics
import tables


def as_floats(images):
    return torch.from_numpy(images.reshape(len(images), -1).copy()).float().div_(255)


def test_accuracy(model, images, labels):
    model.eval()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item()
                    for x, y in zip(images.split(1000), labels.split(1000)))
    model.train()
    return right / len(labels)


def tensor_batches(images, labels, size):
    """Whole set in memory, batches by index: the fastest common way."""
    order = torch.randperm(len(images))
    for i in range(0, len(images) - size + 1, size):
        pick = order[i:i + size]
        yield images[pick], labels[pick]


def loader_batches(images, labels, size):
    """The usual DataLoader over a TensorDataset."""
    from torch.utils.data import DataLoader, TensorDataset
    loader = DataLoader(TensorDataset(images, labels), batch_size=size, shuffle=True,
                        drop_last=True)
    return loader


def mnist_mlp(options):
    """10 epochs of SGD, test accuracy after each: the time of training and evaluation alone,
    without starting Python, importing or reading files."""
    batches = {"tensors": tensor_batches, "loader": loader_batches}[options.style]
    train_x, train_y, test_x, test_y = data.mnist(options.data)
    images, tests = as_floats(train_x), as_floats(test_x)
    labels, test_labels = torch.from_numpy(train_y).long(), torch.from_numpy(test_y).long()
    model = models.mlp(784, 128, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    begun = time.perf_counter()
    for _ in range(options.epochs):
        for x, y in batches(images, labels, 64):
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        accuracy = test_accuracy(model, tests, test_labels)
    return {"seconds": time.perf_counter() - begun, "accuracy": accuracy}


def time_steps(step, warm, timed):
    for _ in range(warm):
        step()
    begun = time.perf_counter()
    for _ in range(timed):
        step()
    return (time.perf_counter() - begun) / timed


def mlp_adam(options):
    train_x, train_y, _, _ = data.mnist(options.data)
    images, labels = as_floats(train_x), torch.from_numpy(train_y).long()
    model = models.mlp(784, 512, 256, 10)
    fused = {"fused": True} if options.style == "fused" else {}
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, **fused)
    run = torch.compile(model) if options.style == "compile" else model
    order = torch.randperm(len(images))
    at = 0

    def step():
        nonlocal at
        pick = order[at:at + 128]
        at = (at + 128) % (len(images) - 128)
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(run(images[pick]), labels[pick]).backward()
        optimizer.step()

    return {"step_seconds": time_steps(step, 50, options.steps)}


def image_steps(options, model, batch, momentum, decay):
    """Steps of SGD on MNIST's images; styles: tensors, channels_last, compile."""
    train_x, train_y, _, _ = data.mnist(options.data)
    images = as_floats(train_x).view(-1, 1, 28, 28)
    labels = torch.from_numpy(train_y).long()
    if options.style == "channels_last":
        model = model.to(memory_format=torch.channels_last)
        images = images.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=momentum, weight_decay=decay)
    run = torch.compile(model) if options.style == "compile" else model
    order, at = torch.randperm(len(images)), 0

    def step():
        nonlocal at
        pick = order[at:at + batch]
        at = (at + batch) % (len(images) - batch)
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(run(images[pick]), labels[pick]).backward()
        optimizer.step()

    return {"step_seconds": time_steps(step, 10, options.steps)}


def mnist_cnn(options):
    return image_steps(options, models.MnistCNN(), 64, 0.9, 0)


def resnet20(options):
    return image_steps(options, models.ResNet20(), 32, 0.9, 1e-4)


def gpt_stepper(options, ids, model, batch, window):
    fused = {"fused": True} if options.style == "fused" else {}
    optimizer = models.gpt_optimizer(model, **fused)
    run = torch.compile(model) if options.style == "compile" else model
    count = 0

    def step():
        nonlocal count
        for group in optimizer.param_groups:
            group["lr"] = models.cosine(count)
        count += 1
        starts = torch.randint(len(ids) - window, (batch,))
        tokens = torch.stack([ids[i:i + window] for i in starts])
        targets = torch.stack([ids[i + 1:i + 1 + window] for i in starts])
        optimizer.zero_grad(set_to_none=True)
        run(tokens, targets).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def gpt_steps(options, ids, model, batch, window, warm):
    step = gpt_stepper(options, ids, model, batch, window)
    return {"step_seconds": time_steps(step, warm, options.steps)}


def shakespeare(options):
    """Training and validation, 90% and 10%."""
    ids = torch.from_numpy(data.shakespeare(options.data))
    return ids.tensor_split([int(len(ids) * 0.9)])


def char_gpt(options):
    return gpt_steps(options, shakespeare(options)[0], models.CharGPT(), 12, 64, 20)


def small_gpt(options):
    model = models.CharGPT(65, 256, 384, 6, 6)
    return gpt_steps(options, shakespeare(options)[0], model, 4, 256, 3)


def mean_loss(model, ids, batch, window):
    """Over all whole batches of windows side by side, as the trainer's evaluation."""
    model.eval()
    count = (len(ids) - 1) // window // batch
    with torch.no_grad():
        losses = [model(tokens.view(batch, window), targets.view(batch, window)).item()
                  for tokens, targets in zip(ids.split(batch * window)[:count],
                                             ids[1:].split(batch * window)[:count])]
    model.train()
    return sum(losses) / len(losses)


def char_gpt_dropout(options):
    train, val = shakespeare(options)
    model = models.CharGPT(drop=0.1)
    step = gpt_stepper(options, train, model, 12, 64)
    losses = []
    for i in range(1, options.steps + 1):
        step()
        if i % 500 == 0:
            losses.append(mean_loss(model, val, 12, 64))
    return {"losses": losses}


def gpt2(options):
    ids = torch.from_numpy(data.tokens(options.data))
    model = models.CharGPT(50257, 256, 768, 12, 12, functools.partial(F.gelu, approximate="tanh"))
    return gpt_steps(options, ids, model, 1, 256, 2)


def moe_block(options):
    model = models.Experts(256, 8, 1024, one_by_one=options.style == "one_by_one")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = torch.compile(model) if options.style == "compile" else model
    batches, count = torch.rand(8, 1024, 256) * 2 - 1, 0

    def step():
        nonlocal count
        x = batches[count % len(batches)]
        count += 1
        optimizer.zero_grad(set_to_none=True)
        y, balance = run(x)
        (F.mse_loss(y, x) + 0.01 * balance).backward()
        optimizer.step()

    return {"step_seconds": time_steps(step, 4, options.steps)}


def char_lstm(options):
    """The text is cut into 32 lanes; a batch goes on where the last one has stopped."""
    ids = shakespeare(options)[0]
    model = models.CharLSTM()
    fused = {"fused": True} if options.style == "fused" else {}
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, **fused)
    run = torch.compile(model) if options.style == "compile" else model
    lane = len(ids) // 32
    lanes = ids[: 32 * lane].view(32, lane)
    state = (torch.zeros(1, 32, 256), torch.zeros(1, 32, 256))
    count = 0

    def step():
        nonlocal count, state
        for group in optimizer.param_groups:
            group["lr"] = models.cosine(count, lr=2e-3, low=2e-4)
        at = count * 64 % (lane - 64)
        count += 1
        optimizer.zero_grad(set_to_none=True)
        loss, (h, c) = run(lanes[:, at:at + 64], lanes[:, at + 1:at + 65], state)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        state = (h.detach(), c.detach())

    return {"step_seconds": time_steps(step, 5, options.steps)}


def dlrm(options):
    return {"step_seconds": time_steps(tables.dlrm(options), 10, options.steps)}


def gcn(options):
    return {"step_seconds": time_steps(tables.gcn(options), 10, options.steps)}


def heat(options):
    return {"step_seconds": time_steps(physics.heat(options), 20, options.steps)}


BENCHMARKS = {"mnist_mlp": mnist_mlp, "mlp_adam": mlp_adam, "char_gpt": char_gpt,
              "mnist_cnn": mnist_cnn, "resnet20": resnet20, "small_gpt": small_gpt, "gpt2": gpt2,
              "char_gpt_dropout": char_gpt_dropout, "moe_block": moe_block, "char_lstm": char_lstm,
              "dlrm": dlrm, "gcn": gcn, "heat": heat}


def run(benchmarks, **settings):
    """One of them by the command line; `settings` go before its options. What it returns."""
    p = argparse.ArgumentParser()
    p.add_argument("benchmark", choices=benchmarks)
    p.add_argument("--style", default="tensors")
    p.add_argument("--data", required=True)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--epochs", type=int, default=10)
    p.add_argument("--steps", type=int, default=200)
    p.add_argument("--bf16", action="store_true", help="autocast: matmuls and convolutions of bf16")
    options = p.parse_args()
    vars(options).update(settings)
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=options.bf16):
        return benchmarks[options.benchmark](options)


def report(out):
    print(json.dumps({**out, "torch": torch.__version__}))


if __name__ == "__main__":
    report(run(BENCHMARKS))
