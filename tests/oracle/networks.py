"""The networks of this folder in PyTorch, with the weights of a trainer's checkpoint.

Images are [batch, height, width, channels] there and kernels [height, width, in, out]; here they are
turned. A network is a function of weights and a batch that gives the loss.
"""
import math

import numpy as np
import torch
import torch.nn.functional as F

from updates import F32_EPS, Updates, lamb, lion, muon


def is_buffer(name):
    """The graphs of this folder name statistics and states that are carried on like this."""
    return "running_" in name or name in ("h", "c", "g")


class Weights:
    """Parameters by name, as leaves that ask for gradients; blocks number themselves like mltc's."""

    def __init__(self, arrays, dtype, trained):
        floats = {k: v for k, v in arrays.items() if v.dtype == np.float32}
        self.at = {k: torch.tensor(v, dtype=dtype) for k, v in floats.items()}
        self.buffers = {k: v for k, v in self.at.items() if is_buffer(k)}
        own = {k: v for k, v in self.at.items() if k not in self.buffers and trained(k)}
        self.params = {k: v.requires_grad_() for k, v in own.items()}
        self.training = True
        self.path, self.used = [], [{}]

    def begin(self):
        self.path, self.used = [], [{}]

    def enter(self, block):
        count = self.used[-1].get(block, 0) + 1
        self.used[-1][block] = count
        self.path.append(block if count == 1 else f"{block}_{count}")
        self.used.append({})

    def enter_named(self, name):
        self.path.append(name)
        self.used.append({})

    def leave(self):
        self.path.pop()
        self.used.pop()

    def __call__(self, name):
        return self.at[".".join(self.path + [name])]

    def has(self, name):
        return ".".join(self.path + [name]) in self.at


def block(function):
    """A function of Weights and more that is a block of its own name in the graph."""
    def run(w, *args, **options):
        w.enter(function.__name__)
        result = function(w, *args, **options)
        w.leave()
        return result
    return run


# --- layers of std, on [batch, channels, height, width] ----------------------------------------------
@block
def linear(w, x):
    y = x @ w("w")
    return y + w("b") if w.has("b") else y


@block
def conv2d(w, x, **options):
    bias = w("b") if w.has("b") else None
    return F.conv2d(x, w("w").permute(3, 2, 0, 1).contiguous(), bias, **options)


@block
def conv_transpose2d(w, x, **options):
    return F.conv_transpose2d(x, w("w").permute(2, 3, 0, 1), w("b"), **options)


@block
def batchnorm(w, x):
    return F.batch_norm(x, w("running_mean"), w("running_var"), w("g"), w("b"), w.training, 0.1, 1e-5)


@block
def groupnorm(w, x, groups):
    return F.group_norm(x, groups, w("g"), w("b"), 1e-5)


def image(x):
    return x.permute(0, 3, 1, 2)


def flat(x):
    return x.permute(0, 2, 3, 1).flatten(1)


# --- recurrent layers of std, on [batch, time, n] ----------------------------------------------------
@block
def lstm(w, x, h=None, c=None):
    zero = x.new_zeros(x.shape[0], w("w_state").shape[0])
    start = [(zero if s is None else s)[None] for s in (h, c)]
    params = [w("w_in").t(), w("w_state").t(), w("b_in"), w("b_state")]
    y, h, c = torch._VF.lstm(x, start, params, True, 1, 0.0, False, False, True)
    return y, h[0], c[0]


@block
def gru(w, x, h=None):
    zero = x.new_zeros(x.shape[0], w("w_state").shape[0])
    params = [w("w_in").t(), w("w_state").t(), w("b_in"), w("b_state")]
    y, h = torch._VF.gru(x, (zero if h is None else h)[None], params, True, 1, 0.0, False, False, True)
    return y, h[0]


# --- networks --------------------------------------------------------------------------------------
def lenet(w, x, label):
    x = F.max_pool2d(F.relu(conv2d(w, image(x))), 2)
    x = F.max_pool2d(F.relu(conv2d(w, x, padding=1)), 3, 2, padding=1)
    x = F.relu(conv2d(w, x, stride=(1, 2), padding=(0, 1)))
    return F.cross_entropy(linear(w, F.relu(linear(w, flat(x)))), label)


@block
def unit(w, x, step):
    y = F.relu(batchnorm(w, conv2d(w, x, stride=step, padding=1)))
    y = batchnorm(w, conv2d(w, y, padding=1))
    if step != 1 or y.shape[1] != x.shape[1]:
        x = batchnorm(w, conv2d(w, x, stride=step))
    return F.relu(x + y)


def resnet(w, x, label):
    x = F.relu(batchnorm(w, conv2d(w, image(x), padding=1)))
    for step in 1, 2, 2:
        x = unit(w, x, step)
    return F.cross_entropy(linear(w, x.mean((2, 3))), label)


@block
def twice(w, x):
    x = F.relu(groupnorm(w, conv2d(w, x, padding=1), 2))
    return F.relu(groupnorm(w, conv2d(w, x, padding=1), 2))


def unet(w, x, target):
    a = twice(w, image(x))
    b = twice(w, F.max_pool2d(a, 2))
    c = twice(w, F.avg_pool2d(b, 2))
    b = twice(w, torch.cat([conv_transpose2d(w, c, stride=2), b], 1))
    up = conv_transpose2d(w, b, stride=2, padding=1) + conv2d(w, F.interpolate(b, scale_factor=2))
    a = twice(w, torch.cat([up, a], 1))
    return F.mse_loss(conv2d(w, a), image(target))


@block
def inverted(w, x, wide, step):
    y = F.relu(batchnorm(w, conv2d(w, x)))
    y = F.relu(batchnorm(w, conv2d(w, y, stride=step, padding=1, groups=wide)))
    y = batchnorm(w, conv2d(w, y))
    return x + y if y.shape == x.shape else y


def mobilenet(w, x, label):
    x = F.relu(conv2d(w, image(x), stride=2, padding=1))
    x = inverted(w, x, 16, 1)
    x = inverted(w, x, 16, 2)
    x = F.relu(conv2d(w, x, padding=2, dilation=2, groups=3))
    x = F.relu(conv2d(w, x, padding=(1, 0), groups=4, stride=(2, 1)))
    return F.cross_entropy(linear(w, x.mean((2, 3))), label)


def recurrent(w, x, label):
    x, h, c = lstm(w, x)
    x, h, c = lstm(w, x, h, c)
    x, _ = gru(w, x)
    x, _ = gru(w, x, h * c)
    return F.cross_entropy(linear(w, x).flatten(0, 1), label.flatten())


# The last states of a batch begin the next one; evaluation begins with zeros.
def truncated(w, x, target):
    old = [w.buffers[k] if w.training else torch.zeros_like(w.buffers[k]) for k in ("h", "c", "g")]
    x, h, c = lstm(w, x, old[0], old[1])
    x, g = gru(w, x, old[2])
    if w.training:
        for k, v in zip(("h", "c", "g"), (h, c, g)):
            w.buffers[k] = v.detach()
    return F.mse_loss(linear(w, x), target)


# --- losses of gradients ----------------------------------------------------------------------------
def grad(y, x):
    return torch.autograd.grad(y, x, create_graph=True)[0]


def critic(w, x):
    x = F.max_pool2d(F.silu(groupnorm(w, conv2d(w, x, padding=1), 2)), 2)
    x = F.avg_pool2d(F.gelu(conv2d(w, x, stride=2, padding=1)), 2)
    return linear(w, flat(x))


def derivatives(w, x, words, t, label):
    x, words, t = (v.requires_grad_() for v in (x, words, t))
    judged = critic(w, image(x))
    slope = grad(judged.sum(), x)
    penalty = (((slope ** 2).sum((1, 2, 3)) + 1e-6).sqrt() - 1).pow(2).mean()
    q, k, v = linear(w, layernorm(w, words)).chunk(3, -1)
    felt = F.cross_entropy(linear(w, attention(q, k, v).mean(1)), label)
    owed = grad(felt, words)
    u = linear(w, torch.tanh(linear(w, torch.sigmoid(linear(w, t)))))
    du = grad(u.sum(), t)
    bent = sum(grad(du[:, i].sum(), t)[:, i] for i in range(3))
    inner = F.mse_loss(t @ w("w"), words[:, 0, :2])
    better = w("w") - 0.3 * grad(inner, w("w"))
    after = F.mse_loss(torch.sin(t @ better), words[:, 1, :2])
    even = grad(torch.tanh(batchnorm(w, t * t * w("lift") + t)).sum(), t)
    logits = w("head").expand(len(t), 2)
    pulled = grad(F.binary_cross_entropy_with_logits(logits, words[:, 2, :2]), w("head"))
    twice = (even * torch.sin(3 * t)).mean() + ((pulled - 0.1) ** 2).sum()
    return judged.mean() + penalty + felt + 10 * (owed ** 2).mean() + ((bent + u[:, 0]) ** 2).mean() + after + twice


# --- transformers ----------------------------------------------------------------------------------
@block
def layernorm(w, x):
    return F.layer_norm(x, x.shape[-1:], w("g"), w("b"), 1e-5)


@block
def rmsnorm(w, x):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w("g")


def named(w, name, x):
    """linear(x, ...) as name"""
    w.enter(name)
    y = x @ w("w") + (w("b") if w.has("b") else 0)
    w.leave()
    return y


def heads(x, n):
    return x.unflatten(-1, (n, x.shape[-1] // n)).transpose(1, 2)


def merge_heads(x):
    return x.transpose(1, 2).flatten(2)


def attention(q, k, v, see=None, bias=0):
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + bias
    if see is not None:
        scores = scores.masked_fill(~see, float("-inf"))
    return scores.softmax(-1) @ v


def causal(t):
    return torch.ones(t, t, dtype=torch.bool).tril()


def split_heads(w, x, parts, n):
    return [heads(p, n) for p in linear(w, x).chunk(parts, -1)]


def angles(t, c):
    rate = 10000 ** (-torch.arange(0, c, 2, dtype=torch.float64) / c)
    return torch.arange(t, dtype=torch.float64)[:, None] * rate


def rope(x):
    angle = angles(x.shape[-2], x.shape[-1])
    turn = torch.polar(torch.ones_like(angle), angle)
    a, b = x.chunk(2, -1)
    y = torch.complex(a, b) * turn
    return torch.cat([y.real, y.imag], -1)


@block
def swiglu(w, x):
    return named(w, "down", F.silu(named(w, "gate", x)) * named(w, "up", x))


def llama(w, tokens, targets):
    x = w("table")[tokens]
    for i in range(2):
        x = llama_layer(w, x, i)
    return F.cross_entropy((rmsnorm(w, x) @ w("table").t()).flatten(0, 1), targets.flatten())


def llama_layer(w, x, i):
    w.enter_named(f"layer.{i}")
    x = x + llama_attn(w, rmsnorm(w, x))
    x = x + swiglu(w, rmsnorm(w, x))
    w.leave()
    return x


def llama_attn(w, x):
    w.enter("attn")
    q, k, v = (heads(named(w, p, x), n) for p, n in (("q", 4), ("k", 2), ("v", 2)))
    k, v = (p.repeat_interleave(2, 1) for p in (rope(k), v))
    y = named(w, "out", merge_heads(attention(rope(q), k, v, causal(x.shape[1]))))
    w.leave()
    return y


def sinusoids(t, c):
    angle = angles(t, c)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)


@block
def encode(w, x, see):
    y = attention(*split_heads(w, x, 3, 4), see)
    x = layernorm(w, x + linear(w, merge_heads(y)))
    return layernorm(w, x + linear(w, F.gelu(linear(w, x), approximate="tanh")))


@block
def relative_bias(w, t, far):
    away = torch.arange(t) - torch.arange(t)[:, None]
    return w("table")[away.clamp(1 - far, far - 1) + far - 1].permute(2, 0, 1)


@block
def decode(w, x, memory, see):
    t = x.shape[1]
    y = layernorm(w, x)
    q, k, v = (heads(linear(w, y), n) for n in (4, 1, 1))
    mask = causal(t) & ~causal(t).tril(-4)
    x = x + linear(w, merge_heads(attention(q, k, v, mask, relative_bias(w, t, 3))))
    q = heads(linear(w, layernorm(w, x)), 4)
    x = x + linear(w, merge_heads(attention(q, *split_heads(w, memory, 2, 4), see)))
    return x + linear(w, F.gelu(linear(w, layernorm(w, x))))


def translate(w, source, length, tokens, targets):
    s, t = source.shape[1], tokens.shape[1]
    see = (torch.arange(s) < length[:, None] + 2)[:, None, None]
    away = torch.arange(s) - torch.arange(s)[:, None]
    x = encode(w, w("table")[source] + sinusoids(s, 16), see)
    x = encode(w, x, see & (away.abs() < 8))
    y = w("table")[tokens] + sinusoids(t, 16)
    y = decode(w, y, x, see)
    return F.cross_entropy(linear(w, layernorm(w, y)).flatten(0, 1), targets.flatten())


def vit_layer(w, x, i):
    w.enter_named(f"layer.{i}")
    x = x + linear(w, merge_heads(attention(*split_heads(w, layernorm(w, x), 3, 2))))
    x = x + linear(w, F.gelu(linear(w, layernorm(w, x))))
    w.leave()
    return x


def vit(w, x, label):
    x = conv2d(w, image(x), stride=4).flatten(2).transpose(1, 2)
    x = torch.cat([w("first").expand(len(x), 1, 16), x], 1) + w("position")
    for i in range(2):
        x = vit_layer(w, x, i)
    return F.cross_entropy(linear(w, layernorm(w, x)[:, 0]), label)


# --- mixtures of experts ---------------------------------------------------------------------------
def expert(w, x, e, gated):
    h = x @ w("w_in")[e] + (w("b_in")[e] if w.has("b_in") else 0)
    h = F.silu(h) * (x @ w("w_up")[e]) if gated else F.gelu(h)
    return h @ w("w_out")[e] + (w("b_out")[e] if w.has("b_out") else 0)


@block
def experts(w, x, k, capacity, renormalise, gated=False):
    """One expert after the other. First choices come first, then second ones, by position."""
    shape, x = x.shape, x.flatten(0, -2)
    logits = x @ w("router")
    p = logits.softmax(-1)
    n, t = p.shape[1], p.shape[0]
    gate, choice = p.topk(k, -1)
    if renormalise:
        gate = gate / gate.sum(-1, keepdim=True)
    balance = n * (torch.bincount(choice.flatten(), minlength=n) / (k * t) * p.mean(0)).sum()
    room = math.ceil(capacity * k * t / n)
    gate, choice = gate.t().flatten(), choice.t().flatten()
    y = torch.zeros_like(x)
    w.enter_named("each")
    for e in range(n):
        mine = (choice == e).nonzero()[:room, 0]
        y = y.index_add(0, mine % t, gate[mine, None] * expert(w, x[mine % t], e, gated))
    w.leave()
    return y.view(shape), balance, logits.logsumexp(-1).pow(2).mean()


def mixtures(w, seen, label):
    x, balance, z = experts(w, seen, 2, 1.25, True)
    total = 0.1 * balance + 0.03 * z
    y, balance, z = experts(w, seen + x, 1, 1, False, gated=True)
    total = total + 0.2 * balance + 0.01 * z
    x, balance, z = experts(w, x + y, 2, 0.8, False)
    return F.cross_entropy(linear(w, x).flatten(0, 1), label.flatten()) + total + 0.02 * z


# --- losses, graphs, recommendation ------------------------------------------------------------------
def contrastive(x, y, same, margin):
    d = F.pairwise_distance(x, y)
    return torch.where(same != 0, d * d, F.relu(margin - d) ** 2).mean()


def losses(w, x, label, y, same):
    h = torch.tanh(linear(w, x))
    z = linear(w, h)
    ce = F.cross_entropy
    total = ce(z, label) + ce(linear(w, h), label, label_smoothing=0.1)
    total = total + ce(2 * z, label, ignore_index=3) + ce(z + 1, label, label_smoothing=0.2, ignore_index=0)
    total = total + ce(linear(w, h), F.softmax(3 * y, -1)) + ce(z, F.softmax(y, -1), label_smoothing=0.3)
    total = total + F.binary_cross_entropy_with_logits(3 * linear(w, h), (y > 0).to(y.dtype))
    total = total + F.binary_cross_entropy_with_logits(y * 0 + w("start"), (y > 0).to(y.dtype))
    total = total + F.kl_div(F.log_softmax(linear(w, h), -1), F.softmax(2 * y, -1), reduction="batchmean")
    u = linear(w, h)
    total = total + F.mse_loss(u, y) + F.l1_loss(2 * u, y) + F.huber_loss(3 * u, y, delta=0.7)
    total = total + F.smooth_l1_loss(u, 2 * y, beta=0.4) + F.huber_loss(u, y)
    return total + contrastive(u, linear(w, h), same, 1.5)


@block
def conv1d(w, x, causal=0, **options):
    """On [batch, time, n], with `causal` zeros before."""
    bias = w("b") if w.has("b") else None
    x = F.pad(x.transpose(1, 2), (causal, 0))
    return F.conv1d(x, w("w").permute(2, 1, 0), bias, **options).transpose(1, 2)


@block
def prelu(w, x):
    return torch.where(x > 0, x, w("a") * x)


def along_time(function, x, *args, **options):
    return function(x.transpose(1, 2), *args, **options).transpose(1, 2)


def signals(w, x, label, far):
    h = F.elu(conv1d(w, x, causal=4, dilation=2))
    h = h + F.mish(conv1d(w, h, padding=2, groups=2))
    h = h * F.hardsigmoid(conv1d(w, h, causal=3, groups=8))
    h = prelu(w, groupnorm(w, h.transpose(1, 2), 4).transpose(1, 2))
    back = F.selu(conv1d(w, h.flip(1), causal=1)).flip(1)
    pooled = along_time(F.max_pool1d, h, 3, 2, 1) + along_time(F.avg_pool1d, back, 3, 2, 1)
    short = F.hardswish(conv1d(w, pooled, stride=2, padding=1))
    z = (linear(w, back).softmax(1) * h.cumsum(1) + h).clamp(-1.5, 2)
    some = -F.nll_loss(F.log_softmax(linear(w, z), -1).flatten(0, 1), label.flatten())
    both = linear(w, z).logsumexp((1, 2)).mean() + (F.log_softmax(linear(w, z), 0) ** 2).mean()
    spread = z.var(1).mean() + short.std((0, 1), unbiased=False).mean() + z.var(unbiased=False)
    a, b = linear(w, short.mean(1)), linear(w, z.mean(1))
    angle = F.cosine_similarity(a, far).mean() + F.normalize(b)[:, 0].mean()
    return 3 * both - some + spread - angle + F.triplet_margin_loss(a, b, far, margin=0.5)


def recurrence(decay, x, start):
    rows, h = [], start
    for a, row in zip(decay, x):
        h = a * h + row
        rows.append(h)
    return torch.stack(rows)


def ctc(logits, label, length, count, blank=0):
    p = F.log_softmax(logits, -1).transpose(0, 1)
    return F.ctc_loss(p, label, length, count, blank=blank, zero_infinity=True)


def speech(w, x, label, length, count):
    h = torch.tanh(linear(w, x))
    kept = torch.sigmoid(linear(w, h)).transpose(0, 1)
    h = h.transpose(0, 1)
    h = h + recurrence(kept, (1 - kept) * h, torch.zeros_like(h[0]))
    h = (h + 0.5 * recurrence(kept[:3], h[:3], h[4])[2]).transpose(0, 1)
    t = h.shape[1]
    far = (torch.arange(t)[:, None] - torch.arange(t)).abs()
    bias = -torch.tensor([2.0 ** -4, 2.0 ** -8], dtype=h.dtype)[:, None, None] * far
    y = attention(*split_heads(w, h, 3, 2), causal(t), bias)
    h = h + merge_heads(y) + 0.1 * h.roll(3, 1) + 0.1 * h.roll(-1, -1)
    z = linear(w, h)
    said = ctc(z, 1 + label % 5, 12 + length % 10, count % 6)
    five, all_steps = label % 5, torch.full((len(x),), t)
    full = torch.full((len(x),), label.shape[1])
    every = ctc(2 * z, torch.where(five >= 2, five + 1, five), all_steps, full, 2)
    ordered = linear(w, h).sort(dim=1, stable=True)[0] * torch.arange(t)[:, None] / t
    down = h[:, :16].sort(dim=-1, descending=True, stable=True)[0] * torch.arange(8)
    return said + every + ordered.mean() + down.mean()


def bilinear(x, size):
    return F.interpolate(x, size, mode="bilinear", align_corners=False)


def focal(logits, label, gamma, alpha):
    y = label.to(logits.dtype)
    p = torch.sigmoid(logits)
    right, share = p * y + (1 - p) * (1 - y), alpha * y + (1 - alpha) * (1 - y)
    return (share * (1 - right) ** gamma * F.binary_cross_entropy_with_logits(logits, y, reduction="none")).mean()


def segments(w, x, there, label):
    h = F.relu(conv2d(w, image(x), stride=2, padding=1))
    seen = F.relu(conv2d(w, torch.cat([bilinear(bilinear(h, (4, 3)), (6, 5)), h], 1), padding=1))
    z = conv2d(w, bilinear(seen, (12, 10)), padding=1)[:, 0]
    named, y = linear(w, seen.mean((2, 3))), there.to(z.dtype)
    ce, numbers = F.cross_entropy, lambda *values: torch.tensor(values, dtype=z.dtype)
    total = ce(named, label, numbers(0.5, 1, 2, 3))
    total = total + ce(2 * named, label, numbers(1, 2, 0.25, 1), label_smoothing=0.2)
    total = total + ce(named, label, w("share").detach() + torch.arange(4), ignore_index=2)
    total = total + ce(named + 1, label, numbers(3, 1, 1, 2), ignore_index=1, label_smoothing=0.1)
    total = total + focal(z, there, 2, 0.25) + focal(3 * z, there == 0, 0.5, 0.6)
    p = torch.sigmoid(z)
    total = total + (1 - (2 * (p * y).sum((1, 2)) + 1) / (p.sum((1, 2)) + y.sum((1, 2)) + 1)).mean()
    total = total + F.binary_cross_entropy_with_logits(z, y, pos_weight=numbers(3))
    return total + 0.01 * (w("share") ** 2).sum()


def optimisers(w, x, label):
    for name, path in (("adafactor", "a"), ("relative", "r"), ("lion", "l"), ("lamb", "b"), ("muon", "m")):
        w.enter_named(path)
        h = torch.tanh(conv2d(w, image(x))).permute(0, 2, 3, 1).flatten(1)
        yield name, F.cross_entropy(linear(w, torch.tanh(linear(w, h))), label), path + "."
        w.leave()


def segment_sum(values, index, n):
    return torch.zeros(n, *values.shape[1:], dtype=values.dtype).index_add(0, index, values)


@block
def gcn_conv(w, x, source, target):
    """With self loops, as in Kipf and Welling 2017: D^-1/2 (A + 1) D^-1/2 x w."""
    n = len(x)
    a = torch.eye(n, dtype=x.dtype).index_put((target, source), torch.ones(len(source), dtype=x.dtype), True)
    scale = a.sum(1) ** -0.5
    return (scale[:, None] * a * scale) @ (x @ w("w")) + w("b")


@block
def sage_conv(w, x, source, target):
    count = segment_sum(torch.ones(len(source), dtype=x.dtype), target, len(x)).clamp(min=1)
    mean = segment_sum(x[source], target, len(x)) / count[:, None]
    return x @ w("own") + mean @ w("near") + w("b")


@block
def gat_conv(w, x, source, target, heads, join=True):
    """PyTorch Geometric's GATConv: with an edge from each node to itself, slope 0.2."""
    n = len(x)
    source, target = (torch.cat([e, torch.arange(n)]) for e in (source, target))
    h = (x @ w("w")).reshape(n, heads, -1)
    score = F.leaky_relu((h * w("from")).sum(-1)[source] + (h * w("to")).sum(-1)[target], 0.2)
    top = torch.full((n, heads), -math.inf, dtype=x.dtype)
    top = top.scatter_reduce(0, target[:, None].expand(-1, heads), score, "amax")
    p = (score - top[target]).exp()
    weight = p / segment_sum(p, target, n)[target]
    y = segment_sum(h[source] * weight[..., None], target, n)
    return (y.flatten(1) if join else y.mean(1)) + w("b")


def segment_max(values, index, n):
    zeros = torch.zeros(n, values.shape[1], dtype=values.dtype)
    return zeros.scatter_reduce(0, index[:, None].expand_as(values), values, "amax", include_self=False)


def graphs(w, x, source, target, label):
    x, edges = x[0], (source[0], target[0])
    a = gcn_conv(w, F.relu(gcn_conv(w, x, *edges)), *edges)
    b = sage_conv(w, F.relu(sage_conv(w, x, *edges)), *edges)
    h = gat_conv(w, x, *edges, 3)
    c = gat_conv(w, F.elu(h), *edges, 2, join=False)
    top = segment_max(h[edges[0]], edges[1], len(x))
    d = linear(w, top)
    some = top.gather(0, edges[0][:7, None].expand(-1, top.shape[1]))
    own = d.gather(1, label[0][:, None])
    losses = (F.cross_entropy(y, label[0], ignore_index=5) for y in (a, b, c))
    return sum(losses) - own.mean() + (some * some).mean()


def dlrm(w, dense, bags, click):
    x = F.relu(linear(w, dense))
    a = F.embedding_bag(bags[:, 0], w("first"), mode="sum")
    b = F.embedding_bag(bags[:, 1], w("second"), mode="sum", padding_idx=0)
    c = F.embedding_bag(bags[:, 2], w("third"), mode="mean", padding_idx=4)
    z = torch.stack([x, a, b, c], 1)
    z = z @ z.transpose(1, 2)
    i, j = torch.tril_indices(4, 4, offset=-1)
    y = linear(w, F.relu(linear(w, torch.cat([x, z[:, i, j]], 1))))
    return F.binary_cross_entropy_with_logits(y[:, 0], click.to(y.dtype))


# --- several losses, adapters ------------------------------------------------------------------------
def gan(w, noise, real):
    w.enter_named("gen")
    h = F.relu(linear(w, noise))
    made = linear(w, h)
    w.leave()

    def judge(x):
        w.enter_named("disc")
        w.enter("linear")
        h = x @ w("w")
        w.leave()
        w.enter("batchnorm")
        h = F.batch_norm(h, w("running_mean"), w("running_var"), w("g"), w("b"), w.training, 0.1, 1e-5)
        w.leave()
        logit = linear(w, F.leaky_relu(h))[:, 0]
        w.leave()
        return logit

    entropy = F.binary_cross_entropy_with_logits
    on_real, on_made = judge(real), judge(made)
    yield "d_loss", entropy(on_real, torch.ones_like(on_real)) + entropy(on_made, torch.zeros_like(on_made)), "disc."
    on_made = judge(made)
    yield "g_loss", entropy(on_made, torch.ones_like(on_made)), "gen."


def byol(w, x, y):
    def encoder(name, x):
        w.enter_named(name)
        y = linear(w, torch.tanh(batchnorm(w, linear(w, x))))
        w.leave()
        return y

    online, goal = encoder("online", x), F.normalize(encoder("target", y))
    made = F.normalize(linear(w, torch.tanh(linear(w, online))))
    yield "apart", F.mse_loss(made, goal) + 0.1 * (online ** 2).mean(), ("online", "linear")
    with torch.no_grad():
        for k, new in w.at.items():
            if w.training and "target" + k[6:] in w.at and k.startswith("online."):
                w.at["target" + k[6:]].lerp_(new, 0.1)
                w.at["total" + k[6:]].add_(new.abs())
        size = encoder("target", x).abs().mean() + 0.01 * encoder("total", y).abs().mean()
    yield "size", size, None


def lora(w, x, label):
    def adapted(x):
        w.enter("linear")
        y = x @ w("w") + w("b")
        w.enter("lora")
        y = y + x @ w("a") @ w("b") * 2
        w.leave()
        w.leave()
        return y
    return F.cross_entropy(adapted(torch.tanh(adapted(x))), label)


# name -> which parameters are trained, where not all are
TRAINED = {"lora": lambda path: "lora" in path, "byol": lambda path: path.startswith(("online", "linear"))}

# name -> network, optimiser (by loss, where there are several)
NETWORKS = {
    "gan": (gan, {"d_loss": lambda p: torch.optim.Adam(p, 0.004, (0.5, 0.999)),
                  "g_loss": lambda p: torch.optim.SGD(p, 0.2, momentum=0.5)}),
    "byol": (byol, lambda p: torch.optim.Adam(p, 0.01)),
    "lora": (lora, lambda p: torch.optim.AdamW(p, 0.01, weight_decay=0.1)),
    "lenet": (lenet, lambda p: torch.optim.SGD(p, 0.05, momentum=0.9)),
    "resnet": (resnet, lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, weight_decay=1e-4)),
    "unet": (unet, lambda p: torch.optim.Adam(p, 0.003)),
    "recurrent": (recurrent, lambda p: torch.optim.Adam(p, 0.01)),
    "truncated": (truncated, lambda p: torch.optim.SGD(p, 0.1)),
    "llama": (llama, lambda p: torch.optim.AdamW(p, 0.003, (0.9, 0.95), weight_decay=0.1)),
    "translate": (translate, lambda p: torch.optim.Adam(p, 0.003)),
    "vit": (vit, lambda p: torch.optim.Adam(p, 0.003)),
    "mobilenet": (mobilenet, lambda p: torch.optim.RMSprop(p, 0.002)),
    "derivatives": (derivatives, lambda p: torch.optim.Adam(p, 0.003)),
    "losses": (losses, lambda p: torch.optim.SGD(p, 0.05)),
    "signals": (signals, lambda p: torch.optim.Adam(p, 0.003)),
    "speech": (speech, lambda p: torch.optim.Adam(p, 0.003)),
    "segments": (segments, lambda p: torch.optim.Adam(p, 0.003)),
    "optimisers": (optimisers, {
        "adafactor": lambda p: torch.optim.Adafactor(p, 0.01, eps=(F32_EPS, 1e-3), weight_decay=0.1),
        "relative": lambda p: torch.optim.Adafactor(p, 0.5, beta2_decay=-0.5, eps=(F32_EPS, 0.01), d=1.5),
        "lion": lambda p: Updates(p, lion), "lamb": lambda p: Updates(p, lamb),
        "muon": lambda p: Updates(p, muon)}),
    "graphs": (graphs, lambda p: torch.optim.Adam(p, 0.01)),
    "experts": (mixtures, lambda p: torch.optim.Adam(p, 0.003)),
    "dlrm": (dlrm, lambda p: torch.optim.SGD(p, 0.1)),
}
