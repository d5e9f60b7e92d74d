"""What the rules for ONNX's operators share: the list of them, and steps that several take.

A rule is a function of a Function (ir_text.py), a Call and the operator's inputs as Values (None: left out).
It gives the outputs: a Value, or a list of them."""
from dataclasses import dataclass, field

from ir_text import RANGES, Value
from protobuf import Unreadable

RULES = {}


def rule(*names):
    def keep(function):
        for name in names:
            RULES[name] = function
        return function
    return keep


@dataclass
class Call:
    op: str
    opset: int
    attributes: dict
    num_outputs: int
    values: dict = field(default_factory=dict)  # of the graph so far, by name

    def get(self, name, default=None):
        return self.attributes.get(name, default)


def known(x, what="shapes that depend on data"):
    """The elements of x, which must be known before the function runs."""
    if x.known is None:
        raise Unreadable(what)
    return x.known


def list_of(call, name, x, default=None):
    """A list of integers: an attribute in old versions of an operator, an input in new ones."""
    if x is not None:
        return known(x)
    return call.get(name, default)


def axis_of(x, axis):
    return axis + x.rank if axis < 0 else axis


def axes_of(x, axes):
    return sorted(axis_of(x, a) for a in axes)


# --- arithmetic
def is_integer(dtype):
    return dtype in RANGES


def lowest(dtype):
    return RANGES[dtype][0] if is_integer(dtype) else -float("inf")


def highest(dtype):
    return RANGES[dtype][1] if is_integer(dtype) else float("inf")


def ceil(f, x):
    return f.unary("neg", f.unary("floor", f.unary("neg", x)))


def round_to_even(f, x):
    below = f.unary("floor", x)
    rest = f.binary("sub", x, below)
    odd = f.binary("eq", f.binary("mod", below, 2), 1)
    up = f.binary("or", f.binary("gt", rest, 0.5), f.binary("and", f.binary("eq", rest, 0.5), odd))
    return f.binary("add", below, f.cast(up, x.dtype))


def size_along(x, axes):
    count = 1
    for a in axes:
        count *= x.shape[a]
    return count


def mean(f, x, axes):
    return f.binary("div", f.reduce("sum", x, axes), size_along(x, axes))


def normalised(f, x, axes, epsilon):
    """Mean 0 and variance 1 over axes; also the mean and 1 / deviation."""
    middle = mean(f, x, axes)
    off = f.binary("sub", x, middle)
    variance = mean(f, f.binary("mul", off, off), axes)
    scale = f.unary("rsqrt", f.binary("add", variance, epsilon))
    return f.binary("mul", off, scale), middle, scale


def log_softmax(f, x, axes):
    off = f.binary("sub", x, f.reduce("reduce_max", x, axes))
    return f.binary("sub", off, f.unary("log", f.reduce("sum", f.unary("exp", off), axes)))


def softmax(f, x, axes):
    e = f.unary("exp", f.binary("sub", x, f.reduce("reduce_max", x, axes)))
    return f.binary("div", e, f.reduce("sum", e, axes))


# --- axes
def without(f, x, axes):
    """Axes of size 1 taken out."""
    return f.reshape(x, [d for i, d in enumerate(x.shape) if i not in axes])


def with_axes(f, x, axes):
    """Axes of size 1 put in: `axes` are places in the result, ascending."""
    shape = list(x.shape)
    for a in axes:
        shape.insert(a, 1)
    return f.reshape(x, shape)


def channels_of(f, x, rank):
    """[c] as [1, c, 1, ...]."""
    return f.reshape(x, [1, x.shape[0]] + [1] * (rank - 2))


def moved(f, x, source, target):
    """One axis elsewhere."""
    perm = [i for i in range(x.rank) if i != source]
    perm.insert(target, source)
    return f.transpose(x, perm)


def at_place(f, x, axis, place):
    """x[..., place, ...] with the axis gone."""
    return without(f, f.slice(x, axis, place, place + 1), [axis])


def affine(f, size, scale, offset):
    """scale * i + offset for i below size."""
    return f.binary("add", f.binary("mul", f.iota("i32", [size], 0), scale), offset)


def gather_along(f, x, index, axis):
    """Rows of any axis: its place is taken by the index's axes."""
    moved_there = f.gather(moved(f, x, axis, 0), index)
    n = index.rank
    rest = list(range(n, moved_there.rank))
    return f.transpose(moved_there, rest[:axis] + list(range(n)) + rest[axis:])


def reverse(f, x, axis):
    n = x.shape[axis]
    return gather_along(f, x, affine(f, n, -1, n - 1), axis)


def take(f, x, axis, places):
    """Known places of an axis: a slice where they are evenly spaced, else runs of them joined."""
    if not places:
        return Value(None, x.dtype, x.shape[:axis] + [0] + x.shape[axis + 1:], [])
    steps = {b - a for a, b in zip(places, places[1:])}
    if len(steps) <= 1:
        step = steps.pop() if steps else 1
        if step > 0:
            return f.slice(x, axis, places[0], places[-1] + 1, step)
        return gather_along(f, x, affine(f, len(places), step, places[0]), axis)
    return f.concat([f.slice(x, axis, p, p + 1) for p in places], axis)
