"""The graphs of this folder in PyTorch: for each a module that gives the loss of a batch, what a sample
consists of, and the optimiser. Initial numbers are PyTorch's own: they change no time."""

import torch
from torch import nn
from torch.nn import functional as F


def cat(*layers):
    return nn.Sequential(*layers)


class Residual(nn.Module):
    """behind(short(x) + body(x))"""

    def __init__(self, body, short=None, behind=None):
        super().__init__()
        self.body, self.short, self.behind = body, short or nn.Identity(), behind or nn.Identity()

    def forward(self, x):
        return self.behind(self.short(x) + self.body(x))


class Images(nn.Module):
    """Of images [batch, channels, height, width] to classes."""

    def __init__(self, *layers):
        super().__init__()
        self.layers = cat(*layers)

    def forward(self, image, label):
        return F.cross_entropy(self.layers(image), label)


class Pooled(nn.Module):
    def forward(self, x):
        return x.mean((2, 3))


def conv(n, m, size=3, step=1, groups=1):
    return nn.Conv2d(n, m, size, step, size // 2, groups=groups, bias=False)


def unit(n, m, size=3, step=1, groups=1):
    return cat(conv(n, m, size, step, groups), nn.BatchNorm2d(m))


def vgg():
    layers = []
    for n, m in ((3, 64), (64, 128), (128, 256)):
        layers += [unit(n, m), nn.ReLU(), unit(m, m), nn.ReLU(), nn.MaxPool2d(2)]
    return Images(*layers, nn.Flatten(), nn.Linear(256 * 16, 10))


def bottleneck():
    def block(n, m, step):
        body = cat(unit(n, m, 1), nn.ReLU(), unit(m, m, 3, step), nn.ReLU(), unit(m, 4 * m, 1))
        return Residual(body, None if n == 4 * m and step == 1 else unit(n, 4 * m, 1, step), nn.ReLU())
    blocks = [block(64, 32, 1), block(128, 32, 1), block(128, 64, 2), block(256, 64, 1), block(256, 128, 2),
              block(512, 128, 1)]
    return Images(unit(3, 64), nn.ReLU(), *blocks, Pooled(), nn.Linear(512, 10))


def mobilenet():
    def block(n, m, step):
        w = 6 * n
        body = cat(unit(n, w, 1), nn.ReLU6(), unit(w, w, 3, step, w), nn.ReLU6(), unit(w, m, 1))
        return Residual(body) if n == m and step == 1 else body
    blocks = [block(24, 24, 1), block(24, 24, 1), block(24, 32, 2), block(32, 32, 1), block(32, 64, 2),
              block(64, 64, 1)]
    return Images(unit(3, 24), nn.ReLU6(), *blocks, unit(64, 256, 1), nn.ReLU6(), Pooled(), nn.Linear(256, 10))


class ChannelNorm(nn.LayerNorm):
    """Layer norm over the channels of images."""

    def __init__(self, c):
        super().__init__(c, eps=1e-6)

    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Turned(nn.Module):
    """Layers over the channels of images, which lie last for them."""

    def __init__(self, *layers):
        super().__init__()
        self.layers = cat(*layers)

    def forward(self, x):
        return self.layers(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def convnext():
    def block(c):
        behind = Turned(nn.LayerNorm(c, eps=1e-6), nn.Linear(c, 4 * c), nn.GELU(), nn.Linear(4 * c, c))
        return Residual(cat(nn.Conv2d(c, c, 7, 1, 3, groups=c), behind))
    return Images(nn.Conv2d(3, 64, 4, 4), ChannelNorm(64), block(64), block(64), ChannelNorm(64),
                  nn.Conv2d(64, 128, 2, 2), block(128), block(128), Pooled(), nn.LayerNorm(128, eps=1e-6),
                  nn.Linear(128, 10))


class Dense(nn.Module):
    def __init__(self, n, growth):
        super().__init__()
        self.layers = nn.ModuleList(
            cat(nn.BatchNorm2d(c), nn.ReLU(), conv(c, 4 * growth, 1), nn.BatchNorm2d(4 * growth), nn.ReLU(),
                conv(4 * growth, growth)) for c in range(n, n + 4 * growth, growth))

    def forward(self, x):
        for layer in self.layers:
            x = torch.cat([x, layer(x)], 1)
        return x


def densenet():
    return Images(conv(3, 48), Dense(48, 24), nn.BatchNorm2d(144), nn.ReLU(), conv(144, 72, 1), nn.AvgPool2d(2),
                  Dense(72, 24), nn.BatchNorm2d(168), nn.ReLU(), Pooled(), nn.Linear(168, 10))


class Excite(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.gate = cat(Pooled(), nn.Linear(c, c // 8), nn.ReLU(), nn.Linear(c // 8, c), nn.Sigmoid())

    def forward(self, x):
        return x * self.gate(x)[:, :, None, None]


def excite():
    def block(c):
        return Residual(cat(conv(c, c), nn.GroupNorm(8, c), nn.ReLU(), conv(c, c), nn.GroupNorm(8, c), Excite(c)),
                        None, nn.ReLU())

    def halve(n, m):
        return cat(conv(n, m, 3, 2), nn.GroupNorm(8, m), nn.ReLU())
    return Images(halve(3, 64), block(64), block(64), halve(64, 128), block(128), block(128), Pooled(),
                  nn.Linear(128, 10))


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.into = cat(nn.Conv2d(3, 32, 4, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 4, 2, 1), nn.ReLU(),
                        nn.Conv2d(64, 128, 4, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(2048, 128))
        self.back = cat(nn.Linear(64, 2048), nn.ReLU(), nn.Unflatten(1, (128, 4, 4)),
                        nn.ConvTranspose2d(128, 64, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.ReLU(),
                        nn.ConvTranspose2d(32, 3, 4, 2, 1), nn.Sigmoid())

    def forward(self, image):
        centre, spread = self.into(image).chunk(2, 1)
        y = self.back(centre + (0.5 * spread).exp() * torch.randn_like(centre))
        return F.mse_loss(y, image) - 5e-4 * (1 + spread - centre * centre - spread.exp()).mean()


class Causal(nn.Module):
    def __init__(self, c, dilate):
        super().__init__()
        self.room, self.conv = 2 * dilate, nn.Conv1d(c, c, 3, dilation=dilate)

    def forward(self, x):
        return self.conv(F.pad(x, (self.room, 0)))


class Temporal(nn.Module):
    """Series lie [batch, time, values], as data do; PyTorch's convolutions want time last."""

    def __init__(self, c=64):
        super().__init__()
        blocks = [Residual(cat(Causal(c, 2 ** i), nn.ReLU(), Causal(c, 2 ** i), nn.ReLU()), None, nn.ReLU())
                  for i in range(5)]
        self.layers, self.last = cat(nn.Conv1d(8, c, 1), *blocks), nn.Linear(c, 8)

    def forward(self, seen, after):
        return F.mse_loss(self.last(self.layers(seen.transpose(1, 2)).transpose(1, 2)), after)


class EncoderLayer(nn.Module):
    def __init__(self, c, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(c, 3 * c), nn.Linear(c, c)
        self.first, self.second, self.drop = nn.LayerNorm(c), nn.LayerNorm(c), nn.Dropout(0.1)
        self.layers = cat(nn.Linear(c, 4 * c), nn.GELU(), nn.Dropout(0.1), nn.Linear(4 * c, c), nn.Dropout(0.1))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=0.1 if self.training else 0)
        x = self.first(x + self.drop(self.out(y.transpose(1, 2).reshape(b, t, c))))
        return self.second(x + self.layers(x))


class Encoder(nn.Module):
    def __init__(self, words=4000, times=128, c=256):
        super().__init__()
        self.table, self.position = nn.Embedding(words, c), nn.Parameter(torch.randn(times, c) * 0.02)
        self.layers = cat(*(EncoderLayer(c, 4) for _ in range(4)))
        self.last = cat(nn.Linear(c, c), nn.Tanh(), nn.Linear(c, 10))

    def forward(self, token, label):
        return F.cross_entropy(self.last(self.layers(self.table(token) + self.position)[:, 0]), label)


class Mix(nn.Module):
    def __init__(self, places, c):
        super().__init__()
        self.first, self.second = nn.LayerNorm(c), nn.LayerNorm(c)
        self.across, self.within = self.dense(places, 128), self.dense(c, 512)

    @staticmethod
    def dense(n, m):
        return cat(nn.Linear(n, m), nn.GELU(), nn.Linear(m, n))

    def forward(self, x):
        x = x + self.across(self.first(x).transpose(1, 2)).transpose(1, 2)
        return x + self.within(self.second(x))


class Mixer(nn.Module):
    def __init__(self, c=256):
        super().__init__()
        self.cut, self.layers = nn.Conv2d(3, c, 4, 4), cat(*(Mix(64, c) for _ in range(4)), nn.LayerNorm(c))
        self.last = nn.Linear(c, 10)

    def forward(self, image, label):
        x = self.layers(self.cut(image).flatten(2).transpose(1, 2))
        return F.cross_entropy(self.last(x.mean(1)), label)


class Table(nn.Module):
    def __init__(self, numbers=24, kinds=8, words=1000):
        super().__init__()
        self.table, self.norm = nn.Embedding(kinds * words, 16), nn.BatchNorm1d(numbers)
        self.register_buffer("first", words * torch.arange(kinds))
        sizes = [numbers + 16 * kinds, 512, 512, 512]
        self.layers = cat(*(cat(nn.Linear(n, m), nn.BatchNorm1d(m), nn.ReLU(), nn.Dropout(0.2))
                            for n, m in zip(sizes, sizes[1:])), nn.Linear(512, 2))

    def forward(self, number, category, label):
        words = self.table(category + self.first).flatten(1)
        return F.cross_entropy(self.layers(torch.cat([self.norm(number), words], 1)), label)


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = [784, 1000, 500, 250, 30, 250, 500, 1000, 784]
        layers = []
        for n, m in zip(sizes, sizes[1:]):
            layers += [nn.Linear(n, m)] + [nn.ReLU()] * (m not in (30, 784))
        self.layers = cat(*layers)

    def forward(self, x):
        return F.binary_cross_entropy_with_logits(self.layers(x), x)


class Bidirectional(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(5000, 128)
        self.layers, self.last = nn.LSTM(128, 128, 2, batch_first=True, bidirectional=True), nn.Linear(256, 2)

    def forward(self, token, label):
        return F.cross_entropy(self.last(self.layers(self.table(token))[0].mean(1)), label)


class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.last = nn.GRU(16, 128, 2, batch_first=True), nn.Linear(128, 24)

    def forward(self, seen, after):
        return F.mse_loss(self.last(self.layers(seen)[1][-1]), after)


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9, fused=True)


def adam(parameters):
    return torch.optim.Adam(parameters, lr=1e-3, fused=True)


def adamw(parameters):
    return torch.optim.AdamW(parameters, lr=1e-3, weight_decay=0.05, fused=True)


def image(size):
    return {"image": (size, size, 3), "label": 10}


SERIES = {"seen": (256, 8), "next": (256, 8)}

# name: (network, optimiser, batch, {input: the shape of a sample of f32, or [n, shape...] or n for i32 below n})
NETWORKS = {
    "vgg": (vgg, sgd, 32, image(32)),
    "bottleneck": (bottleneck, sgd, 16, image(32)),
    "mobilenet": (mobilenet, sgd, 16, image(32)),
    "densenet": (densenet, sgd, 16, image(32)),
    "excite": (excite, sgd, 16, image(32)),
    "convnext": (convnext, adamw, 8, image(64)),
    "vae": (Vae, adam, 32, {"image": (32, 32, 3)}),
    "temporal": (Temporal, adam, 16, SERIES),
    "encoder": (Encoder, adamw, 8, {"token": [4000, 128], "label": 10}),
    "mixer": (Mixer, adamw, 16, image(32)),
    "table": (Table, adam, 512, {"number": (24,), "category": [1000, 8], "label": 2}),
    "autoencoder": (Autoencoder, adam, 256, {"x": (784,)}),
    "bidirectional": (Bidirectional, adam, 32, {"token": [5000, 48], "label": 2}),
    "forecast": (Forecast, adam, 64, {"seen": (96, 16), "next": (24,)}),
}
