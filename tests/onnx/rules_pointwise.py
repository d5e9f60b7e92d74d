"""Rules for operators that work element by element."""
import math
from functools import reduce as fold

import rules
from protobuf import Unreadable, dtype_of
from rules import highest, is_integer, lowest, rule

SAME = {"Abs": "abs", "Neg": "neg", "Sign": "sign", "Floor": "floor", "Sqrt": "sqrt", "Exp": "exp", "Log": "log",
        "Sin": "sin", "Cos": "cos", "Tanh": "tanh", "Sigmoid": "sigmoid", "Erf": "erf", "Not": "not", "Identity": "copy"}
PAIRS = {"Add": "add", "Sub": "sub", "Mul": "mul", "And": "and", "Or": "or", "Xor": "ne", "Equal": "eq",
         "Greater": "gt", "GreaterOrEqual": "ge", "Less": "lt", "LessOrEqual": "le"}
LISTS = {"Max": "max", "Min": "min", "Sum": "add"}


@rule(*SAME)
def same(f, call, x):
    return f.unary(SAME[call.op], x)


@rule(*PAIRS)
def pairs(f, call, x, y):
    return f.binary(PAIRS[call.op], x, old_broadcast(f, call, x, y))


@rule(*LISTS)
def lists(f, call, *values):
    return fold(lambda x, y: f.binary(LISTS[call.op], x, y), values) if len(values) > 1 else f.unary("copy", values[0])


def old_broadcast(f, call, x, y):
    """Before version 7 the second operand's axes stood at `axis`."""
    if call.opset >= 7 or not call.get("broadcast") or call.get("axis") is None:
        return y
    return f.reshape(y, y.shape + [1] * (x.rank - call.get("axis") - y.rank))


@rule("Mean")
def mean(f, call, *values):
    return f.binary("div", lists(f, rules.Call("Sum", call.opset, {}, 1), *values), len(values))


# --- arithmetic
def truncated(f, op, x, y):
    """Integers as C divides them: with the signs of the quotient, or of the rest, apart."""
    if x.dtype.startswith("u"):
        return f.binary(op, x, y)
    size = f.binary(op, f.unary("abs", x), f.unary("abs", y))
    sign = f.unary("sign", x)
    return f.binary("mul", size, f.binary("mul", sign, f.unary("sign", y)) if op == "div" else sign)


@rule("Div")
def div(f, call, x, y):
    y = old_broadcast(f, call, x, y)
    return truncated(f, "div", x, y) if is_integer(x.dtype) else f.binary("div", x, y)


@rule("Mod")
def mod(f, call, x, y):
    return truncated(f, "mod", x, y) if call.get("fmod") else f.binary("mod", x, y)


@rule("Pow")
def power(f, call, x, y):
    """Integers by way of f64, which is exact up to 2^53."""
    wide = "f64" if is_integer(x.dtype) else x.dtype
    y = old_broadcast(f, call, x, y)
    return f.cast(f.binary("pow", f.cast(x, wide), f.cast(y, wide)), x.dtype)


@rule("BitShift")
def bit_shift(f, call, x, y):
    factor = f.cast(f.binary("pow", 2, f.cast(y, "f64")), x.dtype)
    return f.binary("mul" if call.get("direction") == "LEFT" else "div", x, factor)


@rule("Reciprocal")
def reciprocal(f, _, x):
    return f.binary("div", 1, x)


@rule("Ceil")
def ceil(f, _, x):
    return rules.ceil(f, x)


@rule("Round")
def round_(f, _, x):
    return rules.round_to_even(f, x)


@rule("Tan")
def tan(f, _, x):
    return f.binary("div", f.unary("sin", x), f.unary("cos", x))


@rule("Sinh", "Cosh")
def hyperbolic(f, call, x):
    op = "sub" if call.op == "Sinh" else "add"
    return f.binary("mul", f.binary(op, f.unary("exp", x), f.unary("exp", f.unary("neg", x))), 0.5)


@rule("Asinh", "Acosh")
def area(f, call, x):
    inside = f.binary("add" if call.op == "Asinh" else "sub", f.binary("mul", x, x), 1)
    return f.unary("log", f.binary("add", x, f.unary("sqrt", inside)))


@rule("Atanh")
def atanh(f, _, x):
    off = f.binary("sub", f.unary("log1p", x), f.unary("log1p", f.unary("neg", x)))
    return f.binary("mul", off, 0.5)


@rule("IsNaN")
def is_nan(f, _, x):
    return f.binary("ne", x, x)


@rule("IsInf")
def is_inf(f, call, x):
    up = f.binary("eq", x, math.inf) if call.get("detect_positive", 1) else None
    down = f.binary("eq", x, -math.inf) if call.get("detect_negative", 1) else None
    if up and down:
        return f.binary("or", up, down)
    return up or down or f.full("bool", x.shape, False)


# --- activations
@rule("Relu")
def relu(f, _, x):
    return f.binary("max", x, 0)


@rule("Softplus")
def softplus(f, _, x):
    tail = f.unary("log1p", f.unary("exp", f.unary("neg", f.unary("abs", x))))
    return f.binary("add", f.binary("max", x, 0), tail)


@rule("Softsign")
def softsign(f, _, x):
    return f.binary("div", x, f.binary("add", f.unary("abs", x), 1))


@rule("LeakyRelu")
def leaky_relu(f, call, x):
    return f.select(f.binary("lt", x, 0), f.binary("mul", x, call.get("alpha", 0.01)), x)


@rule("PRelu")
def prelu(f, call, x, slope):
    if call.opset < 7 and slope.rank == 1 and slope.shape[0] > 1:
        slope = f.reshape(slope, slope.shape + [1] * (x.rank - 2))
    return f.select(f.binary("lt", x, 0), f.binary("mul", x, slope), x)


def bent(f, x, alpha, gamma, inside):
    """gamma * (x where x > 0, else alpha * expm1(inside))."""
    low = f.binary("mul", f.unary("expm1", inside), alpha * gamma)
    return f.select(f.binary("gt", x, 0), f.binary("mul", x, gamma), low)


@rule("Elu")
def elu(f, call, x):
    return bent(f, x, call.get("alpha", 1.0), 1, x)


@rule("Selu")
def selu(f, call, x):
    return bent(f, x, call.get("alpha", 1.67326319217681884765625), call.get("gamma", 1.05070102214813232421875), x)


@rule("Celu")
def celu(f, call, x):
    alpha = call.get("alpha", 1.0)
    return bent(f, x, alpha, 1, f.binary("div", x, alpha))


def hard_sigmoid_of(f, x, alpha, beta):
    return f.binary("max", f.binary("min", f.binary("add", f.binary("mul", x, alpha), beta), 1), 0)


@rule("HardSigmoid")
def hard_sigmoid(f, call, x):
    return hard_sigmoid_of(f, x, call.get("alpha", 0.2), call.get("beta", 0.5))


@rule("HardSwish")
def hard_swish(f, _, x):
    return f.binary("mul", x, hard_sigmoid_of(f, x, 1 / 6, 0.5))


@rule("ThresholdedRelu")
def thresholded_relu(f, call, x):
    return f.select(f.binary("gt", x, call.get("alpha", 1.0)), x, 0)


@rule("Shrink")
def shrink(f, call, x):
    edge, bias = call.get("lambd", 0.5), call.get("bias", 0.0)
    low = f.select(f.binary("lt", x, -edge), f.binary("add", x, bias), 0)
    return f.select(f.binary("gt", x, edge), f.binary("sub", x, bias), low)


@rule("Clip")
def clip(f, call, x, low=None, high=None):
    low = low if low is not None else call.get("min", lowest(x.dtype))
    high = high if high is not None else call.get("max", highest(x.dtype))
    return f.binary("min", f.binary("max", x, low), high)


@rule("Where")
def where(f, _, condition, x, y):
    return f.select(condition, x, y)


@rule("Dropout")
def dropout(f, call, x, ratio=None, training=None):
    """Not in training, or with nothing to drop; else the outputs are those of another generator."""
    nothing = ratio is not None and rules.known(ratio) == [0]
    if training is not None and rules.known(training) == [True] and not nothing:
        raise Unreadable("random numbers of another generator")
    return [f.unary("copy", x), f.full("bool", x.shape, True)][:call.num_outputs]


# --- conversions
@rule("Cast")
def cast(f, call, x):
    return f.cast(x, dtype_of(call.get("to")))


@rule("CastLike")
def cast_like(f, _, x, like):
    return f.cast(x, like.dtype)


def along(f, call, x, values):
    """One for each place of an axis of x, or one for all, or None."""
    if values is None or values.rank == 0:
        return values
    return f.reshape(values, values.shape + [1] * (x.rank - 1 - rules.axis_of(x, call.get("axis", 1))))


@rule("QuantizeLinear")
def quantize(f, call, x, scale, zero=None):
    steps = rules.round_to_even(f, f.binary("div", x, along(f, call, x, scale)))
    if zero is None:
        return f.cast(steps, "u8")
    return f.cast(f.binary("add", steps, f.cast(along(f, call, x, zero), x.dtype)), zero.dtype)


@rule("DequantizeLinear")
def dequantize(f, call, x, scale, zero=None):
    steps = f.cast(x, "f32")
    if zero is not None:
        steps = f.binary("sub", steps, f.cast(along(f, call, x, zero), "f32"))
    return f.binary("mul", steps, along(f, call, x, scale))
