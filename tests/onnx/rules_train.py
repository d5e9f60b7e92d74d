"""Rules for recurrent layers, unrolled, and for optimisers."""
import rules
from protobuf import Unreadable
from rules import rule

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


class Cell:
    """The weights of a layer: x[b, n] @ w + h @ r + bias, gate by gate."""

    def __init__(self, f, call, w, r, bias):
        self.f, self.call = f, call
        self.hidden = r.shape[2]
        self.w, self.r = (f.transpose(rules.at_place(f, v, 0, 0), [1, 0]) for v in (w, r))
        both = rules.at_place(f, bias, 0, 0) if bias is not None else None
        half = self.hidden * GATES[call.op]
        self.bias = [f.slice(both, 0, i * half, i * half + half) if both else None for i in (0, 1)]

    def gate(self, x, index):
        return self.f.slice(x, x.rank - 1, index * self.hidden, (index + 1) * self.hidden)

    def product(self, x, weights, bias):
        y = self.f.matmul(x, weights)
        return y if bias is None else self.f.binary("add", y, bias)

    def rnn(self, x, h, _):
        sums = self.f.binary("add", self.product(x, self.w, self.bias[0]), self.product(h, self.r, self.bias[1]))
        return self.f.unary("tanh", sums), None

    def gru(self, x, h, _):
        f, apart = self.f, self.call.get("linear_before_reset", 0)
        from_x, from_h = self.product(x, self.w, self.bias[0]), self.product(h, self.r, self.bias[1])
        keep, reset = (f.unary("sigmoid", f.binary("add", self.gate(from_x, i), self.gate(from_h, i))) for i in (0, 1))
        if apart:
            memory = f.binary("mul", reset, self.gate(from_h, 2))
        else:
            bias = self.gate(self.bias[1], 2) if self.bias[1] else None
            memory = self.product(f.binary("mul", reset, h), self.gate(self.r, 2), bias)
        new = f.unary("tanh", f.binary("add", self.gate(from_x, 2), memory))
        return f.binary("add", new, f.binary("mul", keep, f.binary("sub", h, new))), None

    def lstm(self, x, h, c, peep=None):
        f = self.f
        sums = f.binary("add", self.product(x, self.w, self.bias[0]), self.product(h, self.r, self.bias[1]))
        i, o, forget, new = (self.gate(sums, n) for n in range(4))
        if peep is not None:
            p = [self.gate(peep, n) for n in range(3)]
            i, forget = f.binary("add", i, f.binary("mul", p[0], c)), f.binary("add", forget, f.binary("mul", p[2], c))
        kept = f.binary("mul", f.unary("sigmoid", forget), c)
        c = f.binary("add", kept, f.binary("mul", f.unary("sigmoid", i), f.unary("tanh", new)))
        if peep is not None:
            o = f.binary("add", o, f.binary("mul", p[1], c))
        return f.binary("mul", f.unary("sigmoid", o), f.unary("tanh", c)), c


def begin(f, given, w, batch, hidden):
    return rules.at_place(f, given, 0, 0) if given is not None else f.full(w.dtype, [batch, hidden], 0)


@rule("LSTM", "GRU", "RNN")
def recurrent(f, call, x, w, r, bias=None, lengths=None, h=None, c=None, peep=None):
    if call.get("direction", "forward") != "forward" or call.get("activations") or call.get("clip"):
        raise Unreadable("recurrent layers of other directions or activations")
    layout = call.get("layout", 0)
    if layout:
        x, h, c = (v and rules.moved(f, v, 1, 0) for v in (x, h, c))
    steps, batch = x.shape[:2]
    if lengths is not None and any(n != steps for n in rules.known(lengths)):
        raise Unreadable("sequences of different lengths")
    cell = Cell(f, call, w, r, bias)
    step = getattr(cell, call.op.lower())
    state, memory = begin(f, h, w, batch, cell.hidden), begin(f, c, w, batch, cell.hidden)
    seen, more = [], [rules.at_place(f, peep, 0, 0)] if peep is not None else []
    for t in range(steps):
        state, memory = step(rules.at_place(f, x, 0, t), state, memory, *more)
        seen.append(rules.with_axes(f, state, [0, 1]))
    outputs = [f.concat(seen, 0), rules.with_axes(f, state, [0])]
    if call.op == "LSTM":
        outputs.append(rules.with_axes(f, memory, [0]))
    if layout:
        outputs = [f.transpose(outputs[0], [2, 0, 1, 3])] + [rules.moved(f, v, 0, 1) for v in outputs[1:]]
    return outputs[:call.num_outputs]


# --- optimisers: R, T, then for each of n tensors x, then g, then each of its states
def per_tensor(call, states, inputs):
    n = len(inputs) // (2 + states)
    return [inputs[i::n] for i in range(n)]


def in_order(results):
    return [v for values in zip(*results) for v in values]


def decayed(f, call, g, x):
    norm = call.get("norm_coefficient", 0.0)
    return f.binary("add", g, f.binary("mul", x, norm)) if norm else g


@rule("Adagrad")
def adagrad(f, call, rate, step, *inputs):
    results = []
    factor = f.cast(f.binary("mul", f.cast(step, "f32"), call.get("decay_factor", 0.0)), "f32")
    rate = f.binary("div", rate, f.binary("add", factor, 1))
    for x, g, h in per_tensor(call, 1, inputs):
        g = decayed(f, call, g, x)
        h = f.binary("add", h, f.binary("mul", g, g))
        scale = f.binary("add", f.unary("sqrt", h), call.get("epsilon", 1e-6))
        results.append((f.binary("sub", x, f.binary("div", f.binary("mul", g, rate), scale)), h))
    return in_order(results)


@rule("Momentum")
def momentum(f, call, rate, step, *inputs):
    results = []
    alpha = call.get("alpha")
    beta = f.select(f.binary("gt", step, 0), f.full("f32", [], call.get("beta")), 1.0)
    for x, g, v in per_tensor(call, 1, inputs):
        g = decayed(f, call, g, x)
        v = f.binary("add", f.binary("mul", v, alpha), f.binary("mul", g, beta))
        move = f.binary("add", g, f.binary("mul", v, alpha)) if call.get("mode") == "nesterov" else v
        results.append((f.binary("sub", x, f.binary("mul", move, rate)), v))
    return in_order(results)


@rule("Adam")
def adam(f, call, rate, step, *inputs):
    results = []
    a, b = call.get("alpha", 0.9), call.get("beta", 0.999)
    t = f.cast(step, "f32")
    rest_a, rest_b = (f.binary("sub", 1, f.binary("pow", base, t)) for base in (a, b))
    corrected = f.binary("div", f.binary("mul", rate, f.unary("sqrt", rest_b)), rest_a)
    rate = f.select(f.binary("gt", step, 0), corrected, rate)
    for x, g, v, h in per_tensor(call, 2, inputs):
        g = decayed(f, call, g, x)
        v = f.binary("add", f.binary("mul", v, a), f.binary("mul", g, 1 - a))
        h = f.binary("add", f.binary("mul", h, b), f.binary("mul", f.binary("mul", g, g), 1 - b))
        scale = f.binary("add", f.unary("sqrt", h), call.get("epsilon", 1e-6))
        x = f.binary("sub", x, f.binary("div", f.binary("mul", v, rate), scale))
        post = call.get("norm_coefficient_post", 0.0)
        results.append((f.binary("mul", x, 1 - post) if post else x, v, h))
    return in_order(results)


@rule("Gradient")
def gradient(f, call, *_):
    """By values that the operator names."""
    y = call.values[call.get("y")]
    loss = f.reshape(f.reduce("sum", y, list(range(y.rank))), [])
    return [f.grad(loss, call.values[name]) for name in call.get("xs")]
