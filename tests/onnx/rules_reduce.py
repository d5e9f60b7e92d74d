"""Rules for operators that reduce axes, and for what is made of reductions: softmax, norms, sorting, sums
along an axis."""
from functools import reduce as fold

import rules
from ir_text import broadcast_shape
from protobuf import Unreadable
from rules import axes_of, axis_of, list_of, rule

REDUCTIONS = {
    "ReduceSum": lambda f, x, axes: f.reduce("sum", x, axes),
    "ReduceMax": lambda f, x, axes: f.reduce("reduce_max", x, axes),
    "ReduceMin": lambda f, x, axes: f.reduce("reduce_min", x, axes),
    "ReduceMean": rules.mean,
    "ReduceL1": lambda f, x, axes: f.reduce("sum", f.unary("abs", x), axes),
    "ReduceSumSquare": lambda f, x, axes: f.reduce("sum", f.binary("mul", x, x), axes),
    "ReduceL2": lambda f, x, axes: f.unary("sqrt", f.reduce("sum", f.binary("mul", x, x), axes)),
    "ReduceLogSum": lambda f, x, axes: f.unary("log", f.reduce("sum", x, axes)),
    "ReduceLogSumExp": lambda f, x, axes: log_sum_exp(f, x, axes),
    "ReduceProd": lambda f, x, axes: fold(lambda y, axis: product(f, y, axis), axes, x),
}


def log_sum_exp(f, x, axes):
    largest = f.reduce("reduce_max", x, axes)
    e = f.unary("exp", f.binary("sub", x, largest))
    return f.binary("add", f.unary("log", f.reduce("sum", e, axes)), largest)


def product(f, x, axis):
    """Written out: there is no such reduction."""
    return fold(lambda y, z: f.binary("mul", y, z), [f.slice(x, axis, i, i + 1) for i in range(x.shape[axis])])


@rule(*REDUCTIONS)
def reduction(f, call, x, axes=None):
    chosen = list_of(call, "axes", axes)
    if not chosen and call.get("noop_with_empty_axes"):
        return f.unary("copy", x)
    chosen = axes_of(x, chosen or range(x.rank))
    y = REDUCTIONS[call.op](f, x, chosen)
    return y if call.get("keepdims", 1) else rules.without(f, y, chosen)


@rule("ArgMax", "ArgMin")
def arg(f, call, x):
    axis = axis_of(x, call.get("axis", 0))
    op = call.op.lower()
    if call.get("select_last_index"):
        place = f.binary("sub", x.shape[axis] - 1, f.arg(op, rules.reverse(f, x, axis), axis))
    else:
        place = f.arg(op, x, axis)
    place = f.cast(place, "i64")
    return place if call.get("keepdims", 1) else rules.without(f, place, [axis])


# --- softmax and its kin
def in_rows(f, call, x, function):
    """Along one axis; before version 13 over this axis and all that follow."""
    if call.opset >= 13:
        return function(f, x, [axis_of(x, call.get("axis", -1))])
    axis = axis_of(x, call.get("axis", 1))
    return function(f, x, list(range(axis, x.rank)))


@rule("Softmax")
def softmax(f, call, x):
    return in_rows(f, call, x, rules.softmax)


@rule("LogSoftmax")
def log_softmax(f, call, x):
    return in_rows(f, call, x, rules.log_softmax)


@rule("Hardmax")
def hardmax(f, call, x):
    axis = axis_of(x, call.get("axis", -1))
    return f.cast(f.binary("eq", f.iota("i32", x.shape, axis), f.arg("argmax", x, axis)), x.dtype)


# --- norms
@rule("BatchNormalization")
def batch_norm(f, call, x, scale, bias, mean, variance):
    axes = [i for i in range(x.rank) if i != 1]
    epsilon, keep = call.get("epsilon", 1e-5), call.get("momentum", 0.9)
    scale, bias = (rules.channels_of(f, v, x.rank) for v in (scale, bias))
    if not call.get("training_mode"):
        mean, variance = (rules.channels_of(f, v, x.rank) for v in (mean, variance))
        unit = f.binary("mul", f.binary("sub", x, mean), f.unary("rsqrt", f.binary("add", variance, epsilon)))
        return f.binary("add", f.binary("mul", unit, scale), bias)
    unit, now, _ = rules.normalised(f, x, axes, epsilon)
    off = f.binary("sub", x, now)
    spread = rules.mean(f, f.binary("mul", off, off), axes)
    running = [f.binary("add", f.binary("mul", old, keep), f.binary("mul", f.reshape(new, old.shape), 1 - keep))
               for old, new in ((mean, now), (variance, spread))]
    return [f.binary("add", f.binary("mul", unit, scale), bias)] + running


@rule("InstanceNormalization")
def instance_norm(f, call, x, scale, bias):
    unit, _, _ = rules.normalised(f, x, list(range(2, x.rank)), call.get("epsilon", 1e-5))
    return f.binary("add", f.binary("mul", unit, rules.channels_of(f, scale, x.rank)),
                    rules.channels_of(f, bias, x.rank))


@rule("LayerNormalization")
def layer_norm(f, call, x, scale, bias=None):
    axes = list(range(axis_of(x, call.get("axis", -1)), x.rank))
    unit, mean, deviation = rules.normalised(f, x, axes, call.get("epsilon", 1e-5))
    y = f.binary("mul", unit, scale)
    return [y if bias is None else f.binary("add", y, bias), mean, deviation][:call.num_outputs]


@rule("MeanVarianceNormalization")
def mean_variance_norm(f, call, x):
    return rules.normalised(f, x, axes_of(x, call.get("axes", [0, 2, 3])), 1e-9)[0]


@rule("LRN")
def lrn(f, call, x):
    size = call.get("size")
    lo, hi = [0] * x.rank, [0] * x.rank
    lo[1], hi[1] = (size - 1) // 2, size - 1 - (size - 1) // 2
    squares = f.windows(f.pad(f.binary("mul", x, x), lo, hi), [1], [size], [1], [1])
    sums = rules.without(f, f.reduce("sum", squares, [x.rank]), [x.rank])
    scale = f.binary("add", f.binary("mul", sums, call.get("alpha", 1e-4) / size), call.get("bias", 1.0))
    return f.binary("div", x, f.binary("pow", scale, call.get("beta", 0.75)))


# --- along an axis
@rule("CumSum")
def cumulative_sum(f, call, x, axis):
    axis = axis_of(x, rules.known(axis)[0])
    n = x.shape[axis]
    lo, hi = [0] * x.rank, [0] * x.rank
    if call.get("reverse"):
        hi[axis] = n - 1
    else:
        lo[axis] = n - 1
    seen = f.windows(f.pad(x, lo, hi), [axis], [n], [1], [1])
    sums = rules.without(f, f.reduce("sum", seen, [x.rank]), [x.rank])
    return f.binary("sub", sums, x) if call.get("exclusive") else sums


@rule("TopK")
def top_k(f, call, x, k=None):
    """One after the other: the largest of what is left."""
    axis = axis_of(x, call.get("axis", -1))
    largest = call.get("largest", 1)
    out = rules.lowest(x.dtype) if largest else rules.highest(x.dtype)
    values, places = [], []
    for _ in range(list_of(call, "k", k)[0]):
        places.append(f.arg("argmax" if largest else "argmin", x, axis))
        values.append(f.reduce("reduce_max" if largest else "reduce_min", x, [axis]))
        x = f.select(f.binary("eq", f.iota("i32", x.shape, axis), places[-1]), out, x)
    return [f.concat(values, axis), f.cast(f.concat(places, axis), "i64")]


# --- sums of products
@rule("Einsum")
def einsum(f, call, *operands):
    """All operands over all axes that any of them names, multiplied, then summed."""
    left, _, right = call.get("equation").replace(" ", "").partition("->")
    terms = [list(t.replace("...", "~")) for t in left.split(",")]
    result = list(right.replace("...", "~"))
    spread = {x.rank - len(t) + 1 for t, x in zip(terms, operands) if "~" in t}
    if len(spread) > 1:
        raise Unreadable("ellipses of different lengths")
    batch = [f"~{i}" for i in range(spread.pop())] if spread else []
    *terms, result = [[y for s in t for y in (batch if s == "~" else [s])] for t in terms + [result]]
    axes = result + sorted({s for t in terms for s in t} - set(result))
    aligned = [einsum_operand(f, x, t, axes) for x, t in zip(operands, terms)]
    y = fold(lambda a, b: f.binary("mul", a, b), aligned)
    y = f.broadcast(y, broadcast_shape([x.shape for x in aligned]))
    summed = list(range(len(result), len(axes)))
    return rules.without(f, f.reduce("sum", y, summed), summed)


def einsum_operand(f, x, names, axes):
    """x with an axis for each of `axes`, size 1 where it has none; of repeated names the diagonal."""
    while len(set(names)) < len(names):
        second = next(i for i, s in enumerate(names) if s in names[:i])
        first = names.index(names[second])
        same = f.binary("eq", f.iota("i32", x.shape, first), f.iota("i32", x.shape, second))
        x = rules.without(f, f.reduce("sum", f.select(same, x, 0), [second]), [second])
        names = names[:second] + names[second + 1:]
    x = f.transpose(x, [names.index(s) for s in axes if s in names])
    return rules.with_axes(f, x, [i for i, s in enumerate(axes) if s not in names])
