"""Rules for operators that move elements, or make tensors of known values."""
import math

import rules
from ir_text import Value
from protobuf import Unreadable, dtype_of, elements
from rules import axes_of, axis_of, known, list_of, rule


@rule("Reshape")
def reshape(f, call, x, shape=None):
    sizes = list(list_of(call, "shape", shape))
    if not call.get("allowzero"):
        sizes = [x.shape[i] if d == 0 else d for i, d in enumerate(sizes)]
    if -1 in sizes:
        sizes[sizes.index(-1)] = elements(x.shape) // -elements(sizes)
    return f.reshape(x, sizes)


@rule("Flatten")
def flatten(f, call, x):
    axis = axis_of(x, call.get("axis", 1))
    return f.reshape(x, [elements(x.shape[:axis]), elements(x.shape[axis:])])


@rule("Squeeze")
def squeeze(f, call, x, axes=None):
    axes = list_of(call, "axes", axes, [i for i, d in enumerate(x.shape) if d == 1])
    return rules.without(f, x, axes_of(x, axes))


@rule("Unsqueeze")
def unsqueeze(f, call, x, axes=None):
    axes = list_of(call, "axes", axes)
    return rules.with_axes(f, x, sorted(a + x.rank + len(axes) if a < 0 else a for a in axes))


@rule("Transpose")
def transpose(f, call, x):
    return f.transpose(x, call.get("perm", range(x.rank)[::-1]))


@rule("Expand")
def expand(f, _, x, shape):
    sizes = known(shape)
    rank = max(x.rank, len(sizes))
    sizes = [1] * (rank - len(sizes)) + sizes
    own = [1] * (rank - x.rank) + x.shape
    return f.broadcast(x, [max(a, b) for a, b in zip(own, sizes)])


@rule("Tile")
def tile(f, call, x, repeats, axis=None):
    counts = known(repeats)
    if axis is not None and len(counts) < x.rank:
        raise Unreadable("Tile of one axis")
    x = rules.with_axes(f, x, range(len(counts) - x.rank))
    apart = f.reshape(x, [d for size in x.shape for d in (1, size)])
    spread = f.broadcast(apart, [d for pair in zip(counts, x.shape) for d in pair])
    return f.reshape(spread, [n * size for n, size in zip(counts, x.shape)])


@rule("Concat")
def concat(f, call, *values):
    return f.concat(list(values), axis_of(values[0], call.get("axis", 1)))


@rule("Split")
def split(f, call, x, sizes=None):
    axis = axis_of(x, call.get("axis", 0))
    sizes = list_of(call, "split", sizes, [x.shape[axis] // call.num_outputs] * call.num_outputs)
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return [f.slice(x, axis, start, start + size) for start, size in zip(starts, sizes)]


@rule("Slice")
def slices(f, call, x, starts=None, ends=None, axes=None, steps=None):
    starts, ends = list_of(call, "starts", starts), list_of(call, "ends", ends)
    axes = list_of(call, "axes", axes, range(len(starts)))
    steps = known(steps) if steps is not None else [1] * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps):
        axis = axis_of(x, axis)
        places = list(range(x.shape[axis])[slice(start, end if end > -2**31 else None, step)])
        x = rules.take(f, x, axis, places)
    return x


@rule("Pad")
def pad(f, call, x, pads=None, value=None):
    pads, mode = list_of(call, "pads", pads), call.get("mode", "constant")
    lo, hi = pads[:x.rank], pads[x.rank:]
    if mode == "constant":
        return f.pad(x, lo, hi, known(value)[0] if value is not None else call.get("value", 0))
    for axis, n in enumerate(x.shape):
        if mode == "edge":
            places = [min(max(i, 0), n - 1) for i in range(-lo[axis], n + hi[axis])]
        else:
            places = [n - 1 - abs(n - 1 - abs(i)) for i in range(-lo[axis], n + hi[axis])]
        x = rules.take(f, x, axis, places)
    return x


@rule("DepthToSpace")
def depth_to_space(f, call, x):
    n, c, h, w = x.shape
    b = call.get("blocksize")
    if call.get("mode", "DCR") == "DCR":
        y = f.transpose(f.reshape(x, [n, b, b, c // (b * b), h, w]), [0, 3, 4, 1, 5, 2])
    else:
        y = f.transpose(f.reshape(x, [n, c // (b * b), b, b, h, w]), [0, 1, 4, 2, 5, 3])
    return f.reshape(y, [n, c // (b * b), h * b, w * b])


@rule("SpaceToDepth")
def space_to_depth(f, call, x):
    n, c, h, w = x.shape
    b = call.get("blocksize")
    y = f.transpose(f.reshape(x, [n, c, h // b, b, w // b, b]), [0, 3, 5, 1, 2, 4])
    return f.reshape(y, [n, c * b * b, h // b, w // b])


# --- sizes and constants
@rule("Shape")
def shape(f, call, x):
    sizes = x.shape[slice(call.get("start", 0), call.get("end"))]
    return f.literal("i64", [len(sizes)], sizes)


@rule("Size")
def size(f, _, x):
    return f.full("i64", [], elements(x.shape))


@rule("Constant")
def constant(f, call):
    for name, dtype in (("value_float", "f32"), ("value_int", "i64")):
        if call.get(name) is not None:
            return f.full(dtype, [], call.get(name))
    for name, dtype in (("value_floats", "f32"), ("value_ints", "i64")):
        if call.get(name) is not None:
            return f.literal(dtype, [len(call.get(name))], call.get(name))
    return f.constant(call.get("value"))


@rule("ConstantOfShape")
def constant_of_shape(f, call, sizes):
    value = call.get("value")
    return f.full(value.dtype if value else "f32", known(sizes), value.values[0] if value else 0)


@rule("Range")
def range_(f, _, start, limit, delta):
    (first,), (last,), (step,) = known(start), known(limit), known(delta)
    count = max(0, math.ceil((last - first) / step))
    steps = f.iota(start.dtype, [count], 0)
    return f.binary("add", f.binary("mul", steps, delta), start)


@rule("EyeLike")
def eye_like(f, call, x):
    dtype = dtype_of(call.get("dtype")) if call.get("dtype") else x.dtype
    column, row = f.iota("i32", x.shape, 1), f.iota("i32", x.shape, 0)
    return f.cast(f.binary("eq", column, f.binary("add", row, call.get("k", 0))), dtype)


@rule("Trilu")
def trilu(f, call, x, k=None):
    if not elements(x.shape):
        return Value(None, x.dtype, x.shape, [])
    column, row = f.iota("i32", x.shape, x.rank - 1), f.iota("i32", x.shape, x.rank - 2)
    edge = f.binary("add", row, known(k)[0] if k is not None else 0)
    return f.select(f.binary("ge" if call.get("upper", 1) else "le", column, edge), x, 0)


WINDOWS = {"HannWindow": (0.5, -0.5, 0), "HammingWindow": (25 / 46, -21 / 46, 0), "BlackmanWindow": (0.42, -0.5, 0.08)}


@rule(*WINDOWS)
def window(f, call, size):
    count = known(size)[0]
    turn = 2 * math.pi / (count if call.get("periodic", 1) else count - 1)
    level, *waves = WINDOWS[call.op]
    y = f.full("f32", [count], level)
    for i, wave in enumerate(waves):
        angle = f.binary("mul", f.iota("f32", [count], 0), turn * (i + 1))
        y = f.binary("add", y, f.binary("mul", f.unary("cos", angle), wave))
    return y
