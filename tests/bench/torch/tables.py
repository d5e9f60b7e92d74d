"""The peers of `dlrm` and `gcn`: networks that read and add up rows by index, as PyTorch users write
them. Styles: dlrm "sparse" (EmbeddingBag's sparse gradients) and "dense"; gcn "matrix" (the normalised
graph as a sparse matrix, made once) and "index" (index_select and index_add_ over the edges).
"""

import torch
from torch import nn
from torch.nn import functional as F

import data
import models


def load(folder, *names):
    return [torch.from_numpy(x) for x in data.arrays(folder, *names)]


class DLRM(nn.Module):
    def __init__(self, tables, rows, width, sparse):
        super().__init__()
        self.bottom = nn.Sequential(models.mlp(13, 512, 256, width), nn.ReLU())
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum", sparse=sparse)
                                    for _ in range(tables))
        pairs = torch.tril_indices(tables + 1, tables + 1, -1)
        self.register_buffer("row", pairs[0])
        self.register_buffer("column", pairs[1])
        self.top = models.mlp(width + pairs.size(1), 512, 256, 1)

    def forward(self, numbers, bags):
        x = self.bottom(numbers)
        every = torch.stack([x] + [t(bags[:, i]) for i, t in enumerate(self.tables)], 1)
        meet = torch.bmm(every, every.transpose(1, 2))[:, self.row, self.column]
        return self.top(torch.cat([x, meet], 1)).squeeze(1)


def dlrm(options):
    numbers, bags, clicks = load(options.data, "numbers", "bags", "clicks")
    bags, clicks = bags.long(), clicks.float()
    model = DLRM(bags.size(1), 20000, 16, options.style == "sparse")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    order, at = torch.randperm(len(bags)), 0

    def step():
        nonlocal at
        pick = order[at:at + 128]
        at = (at + 128) % len(bags)
        optimizer.zero_grad(set_to_none=True)
        logits = model(numbers[pick], bags[pick])
        F.binary_cross_entropy_with_logits(logits, clicks[pick]).backward()
        optimizer.step()

    return step


class ByMatrix(nn.Module):
    """D^-1/2 (A + 1) D^-1/2 as a sparse matrix."""

    def __init__(self, source, target, nodes):
        super().__init__()
        here = torch.arange(nodes)
        source, target = torch.cat([source, here]), torch.cat([target, here])
        scale = torch.bincount(target, minlength=nodes).float().rsqrt()
        self.matrix = torch.sparse_coo_tensor(
            torch.stack([target, source]), scale[target] * scale[source], (nodes, nodes)).coalesce()

    def forward(self, h):
        return torch.sparse.mm(self.matrix, h)


class ByIndex(nn.Module):
    """The same edge by edge; a node's edge to itself is its own row."""

    def __init__(self, source, target, nodes):
        super().__init__()
        self.source, self.target = source, target
        self.scale = (torch.bincount(target, minlength=nodes).float() + 1).rsqrt()[:, None]

    def forward(self, h):
        h = h * self.scale
        return h.index_add(0, self.target, h.index_select(0, self.source)) * self.scale


class GCN(nn.Module):
    def __init__(self, around, words, hidden, fields):
        super().__init__()
        self.around = around
        self.first, self.second = nn.Linear(words, hidden, bias=False), nn.Linear(hidden, fields, bias=False)
        self.bias1, self.bias2 = nn.Parameter(torch.zeros(hidden)), nn.Parameter(torch.zeros(fields))

    def forward(self, x):
        h = F.relu(self.around(self.first(x)) + self.bias1)
        return self.around(self.second(F.dropout(h, 0.5, self.training))) + self.bias2


def gcn(options):
    words, source, target, field = [x[0] for x in load(options.data, "words", "source", "target", "field")]
    x, field = words.float(), field.long()
    around = {"matrix": ByMatrix, "index": ByIndex}[options.style](source.long(), target.long(), len(x))
    model = GCN(around, x.size(1), 16, 7)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)

    def step():
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(x), field, ignore_index=-1).backward()
        optimizer.step()

    return step
