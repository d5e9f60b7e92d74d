"""Optimisers of optimisers.graph that PyTorch has not, or not in double precision."""
import torch

F32_EPS = torch.finfo(torch.float32).eps


class Updates(torch.optim.Optimizer):
    """A step is update(state, parameter, gradient)."""

    def __init__(self, params, update):
        super().__init__(params, {})
        self.update = update

    def step(self, closure=None):
        for p in (p for p in self.param_groups[0]["params"] if p.grad is not None):
            state = self.state[p]
            state["step"] = state.get("step", 0) + 1
            with torch.no_grad():
                self.update(state, p, p.grad)


def average(state, name, b, g):
    state[name] = b * state.get(name, torch.zeros_like(g)) + (1 - b) * g
    return state[name]


def adam_direction(state, g, b1, b2, eps):
    m, v, t = average(state, "m", b1, g), average(state, "v", b2, g * g), state["step"]
    return m / (1 - b1 ** t) / ((v / (1 - b2 ** t)).sqrt() + eps)


def lion(state, p, g):
    before = state.get("m", torch.zeros_like(g))
    p.mul_(1 - 0.003 * 0.1).sub_(0.003 * torch.sign(0.9 * before + 0.1 * g))
    average(state, "m", 0.99, g)


def lamb(state, p, g):
    u = adam_direction(state, g, 0.9, 0.999, 1e-6) + 0.01 * p
    trust = p.norm() / u.norm() if p.norm() > 0 and u.norm() > 0 else 1
    p.sub_(0.02 * trust * u)


def muon(state, p, g):
    kept = p * (1 - 0.01 * 0.1)
    if p.dim() != 2 or p.shape[1] == 4:     # not the last layer
        p.copy_(kept - 0.01 * adam_direction(state, g, 0.9, 0.95, 1e-8))
        return
    m = average(state, "m", 0.95, g)
    x = (0.95 * m + 0.05 * g).T     # PyTorch's layout
    x = x / x.norm()
    for _ in range(5):
        a = x @ x.T
        x = 3.4445 * x + (-4.775 * a + 2.0315 * a @ a) @ x
    p.copy_(kept - 0.01 * 0.2 * max(p.shape) ** 0.5 * x.T)
