"""Do the peers compute the same networks? Each of JAX gets the weights and a batch of PyTorch's; losses and the norms
of gradients have to agree.

    PYTHON tests/bench/torch/agree.py          one that has both; exit code 1 when a network differs
"""

import functools
import math
import os
import sys

import numpy as np
import torch
from torch.nn import functional as F

os.environ.setdefault("JAX_PLATFORMS", "cpu")
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

import jax_networks as net  # noqa: E402
import models  # noqa: E402
import physics  # noqa: E402
import tables  # noqa: E402

MOST = 1e-5  # relative


def array(tensor):
    return jnp.asarray(tensor.detach().contiguous().numpy())


def linear(layer):
    return {"w": array(layer.weight.t()), "b": array(layer.bias)}


def mlp(layers):
    return [linear(x) for x in layers.modules() if isinstance(x, torch.nn.Linear)]


def norm(layer):
    return {"g": array(layer.weight), "b": array(layer.bias)}


def filters(layer):
    return array(layer.weight.permute(2, 3, 1, 0))


def size(gradients):
    return math.sqrt(sum(float(np.sum(np.square(np.asarray(g, np.float64)))) for g in gradients))


def mlp_adam():
    model, x, y = models.mlp(784, 512, 256, 10), torch.rand(128, 784), torch.randint(10, (128,))
    return F.cross_entropy(model(x), y), model.parameters(), net.mlp_loss, mlp(model), array(x), array(y)


def mnist_cnn():
    """Without dropout, whose numbers are each one's own."""
    model, x, y = models.MnistCNN().eval(), torch.rand(64, 1, 28, 28), torch.randint(10, (64,))
    flat = model.linear1.weight.view(-1, 32, 4, 4).permute(2, 3, 1, 0).reshape(512, -1)  # channels come last
    weights = {"conv1": filters(model.conv1), "bias1": array(model.conv1.bias), "conv2": filters(model.conv2),
               "bias2": array(model.conv2.bias),
               "linear": [{"w": array(flat), "b": array(model.linear1.bias)}, linear(model.linear2)]}
    loss = functools.partial(net.cnn_loss, key=None)
    return F.cross_entropy(model(x), y), model.parameters(), loss, weights, array(x.permute(0, 2, 3, 1)), array(y)


def resnet20():
    model, x, y = models.ResNet20(), torch.rand(32, 1, 28, 28), torch.randint(10, (32,))
    convs, norms = [model.conv], [model.norm]
    for block in model.blocks:
        convs += [block.conv1, block.conv2]
        norms += [block.norm1, block.norm2]
    weights = {"conv": [filters(c) for c in convs], "norm": [norm(n) for n in norms], "linear": linear(model.linear)}
    _, running = net.resnet_weights(jax.random.key(0))

    def loss(*arguments):
        return net.resnet_loss(*arguments, running)[0]

    return F.cross_entropy(model(x), y), model.parameters(), loss, weights, array(x.permute(0, 2, 3, 1)), array(y)


def gpt(tanh_gelu):
    gelu = functools.partial(F.gelu, approximate="tanh") if tanh_gelu else F.gelu
    model, text = models.CharGPT(gelu=gelu), torch.randint(65, (12, 65))
    tokens, targets = text[:, :-1], text[:, 1:]
    layers = [{"norm1": norm(x.norm1), "norm2": norm(x.norm2), "qkv": linear(x.attn.qkv), "out": linear(x.attn.out),
               "up": linear(x.up), "down": linear(x.down)} for x in model.layers]
    weights = {"wte": array(model.wte.weight), "wpe": array(model.wpe.weight), "norm": norm(model.norm),
               "layers": layers}
    loss = functools.partial(net.gpt_loss, heads=4, tanh_gelu=tanh_gelu)
    return model(tokens, targets), model.parameters(), loss, weights, array(tokens), array(targets)


def char_lstm():
    """PyTorch's layer has two biases, which are always added up: JAX gets their sum, and the gradient once."""
    model, text, state = models.CharLSTM(), torch.randint(65, (32, 65)), 0.1 * torch.randn(2, 1, 32, 256)
    tokens, targets, layer = text[:, :-1], text[:, 1:], model.lstm
    weights = {"table": array(model.table.weight), "inside": array(layer.weight_ih_l0.t()),
               "again": array(layer.weight_hh_l0.t()), "b": array(layer.bias_ih_l0 + layer.bias_hh_l0),
               "out": [linear(model.out)]}
    once = [p for name, p in model.named_parameters() if name != "lstm.bias_hh_l0"]

    def loss(*arguments):
        return net.lstm_loss(*arguments, (array(state[0, 0]), array(state[1, 0])))[0]

    return model(tokens, targets, tuple(state))[0], once, loss, weights, array(tokens), array(targets)


def moe_block():
    model, x = models.Experts(256, 8, 1024), 2 * torch.rand(1024, 256) - 1
    y, balance = model(x)
    weights = {"router": array(model.router.weight.t()),
               **{name: array(getattr(model, name)) for name in ("w_in", "b_in", "w_out", "b_out")}}
    return F.mse_loss(y, x) + 0.01 * balance, model.parameters(), net.experts_loss, weights, array(x)


def gcn():
    nodes, words = 500, torch.randint(2, (500, 90)).float()
    source, target, field = *torch.randint(nodes, (2, 2000)), torch.randint(-1, 7, (nodes,))
    around = tables.ByIndex(source, target, nodes)
    model = tables.GCN(around, 90, 16, 7).eval()
    weights = {"first": array(model.first.weight.t()), "second": array(model.second.weight.t()),
               "bias1": array(model.bias1), "bias2": array(model.bias2)}
    loss = functools.partial(net.gcn_loss, key=None)
    edges = array(source), array(target), array(around.scale)
    return (F.cross_entropy(model(words), field, ignore_index=-1), model.parameters(), loss, weights, array(words), edges,
            array(field))


def dlrm():
    """Of the tables JAX has the gradients of the rows found, which are no parameters: without them."""
    model, numbers, clicks = tables.DLRM(8, 500, 16, False), torch.rand(128, 13), torch.randint(2, (128,)).float()
    bags = torch.randint(500, (128, 8, 4))
    found = jnp.stack([array(t.weight) for t in model.tables])[jnp.arange(8)[:, None], array(bags)]
    weights = {"bottom": mlp(model.bottom), "top": mlp(model.top)}
    own = [*model.bottom.parameters(), *model.top.parameters()]
    loss = F.binary_cross_entropy_with_logits(model(numbers, bags), clicks)
    return loss, own, net.dlrm_loss, weights, found, array(numbers), array(clicks)


def heat():
    rod, a = physics.rod(), torch.nn.Parameter(torch.ones(()))
    at, u, place = torch.rand(200, 2), torch.rand(200), torch.rand(200, 2, requires_grad=True)
    weights = {"rod": mlp(rod), "a": array(a)}
    return physics.loss(rod, a, at, u, place), [a, *rod.parameters()], net.heat_loss, weights, array(at), array(u), array(place)


def differs(make):
    """How far apart the two are, in parts of PyTorch's."""
    loss, parameters, jax_loss, weights, *batch = make()
    loss.backward()
    theirs, gradients = jax.value_and_grad(jax_loss)(weights, *batch)
    norms = size(p.grad for p in parameters), size(jax.tree.leaves(gradients))
    return max(abs(loss.item() - float(theirs)) / loss.item(), abs(norms[0] - norms[1]) / norms[0])


def main():
    torch.manual_seed(0)
    net.dropout = lambda key, x, rate: x  # each draws its own
    networks = {f.__name__: f for f in (mlp_adam, mnist_cnn, resnet20, char_lstm, moe_block, gcn, dlrm, heat)}
    networks.update(char_gpt=functools.partial(gpt, False), gpt2=functools.partial(gpt, True))
    found = {name: differs(make) for name, make in networks.items()}
    for name, difference in found.items():
        print(f"{name:10} {difference:.1e}" + ("" if difference <= MOST else "   differs"))
    return int(max(found.values()) > MOST)


if __name__ == "__main__":
    sys.exit(main())
