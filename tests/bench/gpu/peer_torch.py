"""PyTorch, eager or compiled, as a peer (peer.py): the same networks and batches.

f32 is without tf32; bf16 is autocast, as is usual. The models are those of tests/bench/torch. A batch lies on the device; a step converts it, computes
loss and gradients, clips where the trainer does, and runs the (fused) optimiser. Nothing waits for
the device in a step.
"""

import os
import sys

import peer

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "torch"))
try:
    import torch
    from torch.nn import functional as F

    import models
except ImportError as e:
    peer.absent(f"PyTorch: {e}")

DEVICE = torch.device("cpu" if peer.WANT_CPU else "cuda")
if DEVICE.type == "cuda" and not torch.cuda.is_available():
    peer.absent(f"PyTorch {torch.__version__} finds no GPU")


def wait():
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()


def compiled(function, style):
    return torch.compile(function) if style == "compiled" else function


def allow_tf32(precision):
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"


def autocast(precision):
    return torch.autocast(DEVICE.type, torch.bfloat16, enabled=precision == "bf16")


def fused():
    return {"fused": True} if DEVICE.type == "cuda" else {}


def mlp(network, style):
    model = models.mlp(*network["widths"]).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, **fused())
    count, pixels = network["batch"], network["widths"][0]
    images = torch.randint(256, (count, pixels), dtype=torch.uint8, device=DEVICE)
    labels = torch.randint(network["widths"][-1], (count,), device=DEVICE)
    loss = compiled(lambda x, y: F.cross_entropy(model(x.float() / 255), y), style)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss(images, labels).backward()
        optimizer.step()

    return step


def gpt(network, style):
    s = network["sizes"]
    model = models.CharGPT(s["V"], s["T"], s["C"], s["H"], s["L"]).to(DEVICE)
    optimizer = models.gpt_optimizer(model, **fused())
    tokens, targets = torch.randint(s["V"], (2, s["B"], s["T"]), device=DEVICE)
    loss, count = compiled(model, style), 0

    def step():
        nonlocal count
        for group in optimizer.param_groups:
            group["lr"] = models.cosine(count)
        count += 1
        optimizer.zero_grad(set_to_none=True)
        with autocast(network["precision"]):
            error = loss(tokens, targets)
        error.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def product(dtype, m, n, k, ta, tb):
    a = torch.randn((k, m) if ta else (m, k), device=DEVICE, dtype=dtype)
    b = torch.randn((n, k) if tb else (k, n), device=DEVICE, dtype=dtype)
    a, b = a.t() if ta else a, b.t() if tb else b
    out = torch.empty((m, n), device=DEVICE, dtype=dtype)
    return lambda: torch.matmul(a, b, out=out)


def matmuls(shapes, precision):
    """{name: us}: cuBLAS, as PyTorch calls it; bf16 in and out."""
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    return {"us": {name: peer.timer(product(dtype, *shape), wait, 0.1)()
                   for name, shape in shapes.items()}}


def main():
    style, network = peer.arguments()
    torch.manual_seed(1)
    version = f"PyTorch {torch.__version__}"
    allow_tf32(network["precision"])
    if network["model"] == "matmuls":
        peer.serve(version, lambda: matmuls(network["shapes"], network["precision"]))
        return
    step = {"mlp": mlp, "gpt": gpt}[network["model"]](network, style)
    time_step = peer.timer(step, wait)
    peer.serve(version, lambda: {"step_us": time_step()})


if __name__ == "__main__":
    main()
