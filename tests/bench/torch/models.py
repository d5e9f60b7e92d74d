"""The peers' models, written the way PyTorch users write them."""

import math

import torch
from torch import nn
from torch.nn import functional as F


def mlp(*sizes):
    layers = []
    for i in range(len(sizes) - 1):
        layers += [nn.Linear(sizes[i], sizes[i + 1]), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class MnistCNN(nn.Module):
    """examples/mnist_cnn.graph."""

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 16, 5), nn.Conv2d(16, 32, 5)
        self.linear1, self.linear2 = nn.Linear(512, 128), nn.Linear(128, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.linear1(x.flatten(1)))
        return self.linear2(F.dropout(x, 0.25, self.training))


class Residual(nn.Module):
    def __init__(self, inputs, outputs, step):
        super().__init__()
        self.step, self.more = step, outputs - inputs
        self.conv1 = nn.Conv2d(inputs, outputs, 3, step, 1, bias=False)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)

    def forward(self, x):
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        short = x[:, :, ::self.step, ::self.step]
        if self.more:
            short = F.pad(short, (0, 0, 0, 0, 0, self.more))
        return F.relu(y + short)


class ResNet20(nn.Module):
    """examples/resnet20.graph."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16)
        widths = [16, 16, 16, 16, 32, 32, 32, 64, 64, 64]
        self.blocks = nn.Sequential(*[Residual(a, b, 1 if a == b else 2)
                                      for a, b in zip(widths, widths[1:])])
        self.linear = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.norm(self.conv(F.pad(x - 0.13, (2, 2, 2, 2)))))
        return self.linear(self.blocks(x).mean((2, 3)))


class CharLSTM(nn.Module):
    """examples/char_lstm.graph: one layer, whose state goes on from window to window."""

    def __init__(self, vocab=65, embedding=64, width=256):
        super().__init__()
        self.table = nn.Embedding(vocab, embedding)
        self.lstm = nn.LSTM(embedding, width, batch_first=True)
        self.out = nn.Linear(width, vocab)
        nn.init.normal_(self.table.weight, std=0.1)

    def forward(self, tokens, targets, state):
        y, state = self.lstm(self.table(tokens), state)
        logits = self.out(y)
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1)), state


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).split(c, dim=2)
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in (q, k, v))
        y = self.attend(q, k, v)
        return self.out(y.transpose(1, 2).contiguous().view(b, t, c))

    @staticmethod
    def attend(q, k, v):
        if hasattr(F, "scaled_dot_product_attention"):
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        scores = (q @ k.transpose(-2, -1)) / math.sqrt(q.size(-1))
        t = q.size(-2)
        mask = torch.tril(torch.ones(t, t, dtype=torch.bool))
        return F.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1) @ v


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class CharGPT(nn.Module):
    """examples/char_gpt.graph: nanoGPT's CPU configuration, tied weights."""

    def __init__(self, vocab=65, window=64, width=128, heads=4, layers=4):
        super().__init__()
        self.wte = nn.Embedding(vocab, width)
        self.wpe = nn.Embedding(window, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        for name, p in self.named_parameters():
            if name.endswith("attn.out.weight"):
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * layers))
            elif name.endswith(("wte.weight", "wpe.weight", "qkv.weight")):
                nn.init.normal_(p, std=0.02)
            elif name.endswith(("qkv.bias", "out.bias")):
                nn.init.zeros_(p)

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe.weight[: tokens.size(1)]
        for layer in self.layers:
            x = layer(x)
        logits = self.norm(x) @ self.wte.weight.t()
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1))


def gpt_optimizer(model, lr=1e-3, **options):
    decay = [p for p in model.parameters() if p.dim() >= 2]
    plain = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.99), **options)


def cosine(step, lr=1e-3, warmup=100, total=2000, low=1e-4):
    """nanoGPT's schedule; `step` counts from 0."""
    if step < warmup:
        return lr * (step + 1) / (warmup + 1)
    if step > total:
        return low
    part = (step - warmup) / (total - warmup)
    return low + 0.5 * (1 + math.cos(math.pi * part)) * (lr - low)
