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


class UNet(nn.Module):
    """examples/unet.graph: the model adds the noise, and gives the loss."""

    def __init__(self, c=8):
        super().__init__()
        self.a, self.b, self.c = self.twice(1, c), self.twice(c, 2 * c), self.twice(2 * c, 4 * c)
        self.up_b, self.up_a = nn.ConvTranspose2d(4 * c, 2 * c, 2, 2), nn.ConvTranspose2d(2 * c, c, 2, 2)
        self.to_b, self.to_a = self.twice(4 * c, 2 * c), self.twice(2 * c, c)
        self.out = nn.Conv2d(c, 1, 1)

    @staticmethod
    def twice(inputs, outputs):
        layers = []
        for n in (inputs, outputs):
            layers += [nn.Conv2d(n, outputs, 3, padding=1), nn.GroupNorm(4, outputs), nn.ReLU(True)]
        return nn.Sequential(*layers)

    def forward(self, clean):
        a = self.a(clean + 0.5 * torch.randn_like(clean))
        b = self.b(F.max_pool2d(a, 2))
        c = self.c(F.max_pool2d(b, 2))
        b = self.to_b(torch.cat([self.up_b(c), b], 1))
        a = self.to_a(torch.cat([self.up_a(b), a], 1))
        return F.mse_loss(torch.sigmoid(self.out(a)), clean)


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
    def __init__(self, width, heads, drop=0.0):
        super().__init__()
        self.heads, self.drop = heads, drop
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).split(c, dim=2)
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in (q, k, v))
        y = self.attend(q, k, v)
        y = self.out(y.transpose(1, 2).contiguous().view(b, t, c))
        return F.dropout(y, self.drop, self.training)

    def attend(self, q, k, v):
        drop = self.drop if self.training else 0.0
        if hasattr(F, "scaled_dot_product_attention"):
            return F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=drop)
        scores = (q @ k.transpose(-2, -1)) / math.sqrt(q.size(-1))
        t = q.size(-2)
        mask = torch.tril(torch.ones(t, t, dtype=torch.bool))
        return F.dropout(F.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1), drop) @ v


class Layer(nn.Module):
    def __init__(self, width, heads, gelu, drop):
        super().__init__()
        self.gelu, self.drop = gelu, drop
        self.norm1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads, drop)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + F.dropout(self.down(self.gelu(self.up(self.norm2(x)))), self.drop, self.training)


class CharGPT(nn.Module):
    """examples/char_gpt.graph: nanoGPT's CPU configuration, tied weights; gpt2.graph with its sizes."""

    def __init__(self, vocab=65, window=64, width=128, heads=4, layers=4, gelu=F.gelu,
                 drop=0.0):
        super().__init__()
        self.drop = drop
        self.wte = nn.Embedding(vocab, width)
        self.wpe = nn.Embedding(window, width)
        self.layers = nn.ModuleList(Layer(width, heads, gelu, drop) for _ in range(layers))
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
        x = F.dropout(x, self.drop, self.training)
        for layer in self.layers:
            x = layer(x)
        logits = self.norm(x) @ self.wte.weight.t()
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1))


class Experts(nn.Module):
    """moe_block.graph: the sizes of all experts are those of their places, and tokens move by index."""

    def __init__(self, width, experts, hidden, k=2, capacity=1.25, one_by_one=False):
        super().__init__()
        self.k, self.capacity, self.one_by_one = k, capacity, one_by_one
        self.router = nn.Linear(width, experts, bias=False)
        self.w_in = self.draw(width, experts, width, hidden)
        self.b_in = self.draw(width, experts, 1, hidden)
        self.w_out = self.draw(hidden, experts, hidden, width)
        self.b_out = self.draw(hidden, experts, 1, width)

    @staticmethod
    def draw(inputs, *shape):
        return nn.Parameter(torch.empty(*shape).uniform_(-inputs ** -0.5, inputs ** -0.5))

    def forward(self, x):
        t, n = len(x), len(self.w_in)
        room = math.ceil(self.capacity * self.k * t / n)
        p = F.softmax(self.router(x), dim=-1)
        gate, choice = p.topk(self.k, dim=-1)
        gate = (gate / gate.sum(-1, keepdim=True)).t().flatten()
        choice = choice.t().flatten()  # first choices first, by position
        counts = torch.bincount(choice, minlength=n)
        balance = n * (counts / len(choice) * p.mean(0)).sum()
        order = choice.argsort(stable=True)
        expert = choice[order]
        place = torch.arange(len(order)) - (counts.cumsum(0) - counts)[expert]
        kept = place < room
        order = order[kept]
        run = self.each if self.one_by_one else self.together
        made = run(x[order % t], counts.clamp(max=room), expert[kept] * room + place[kept], room)
        # .to: index_add is none of the operations that autocast makes agree.
        return torch.zeros_like(x).index_add(0, order % t, (made * gate[order, None]).to(x.dtype)), balance

    def together(self, rows, counts, place, room):
        """All experts at once, empty places and all."""
        n, c = len(counts), rows.shape[1]
        inside = rows.new_zeros(n * room, c).index_copy(0, place, rows).view(n, room, c)
        h = F.gelu(torch.baddbmm(self.b_in, inside, self.w_in))
        return torch.baddbmm(self.b_out, h, self.w_out).view(-1, c)[place]

    def each(self, rows, counts, place, room):
        """One expert after the other, on the tokens that it has."""
        parts = rows.split(counts.tolist())
        return torch.cat([torch.addmm(self.b_out[e], F.gelu(torch.addmm(self.b_in[e], part, self.w_in[e])),
                                      self.w_out[e]) for e, part in enumerate(parts)])


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
