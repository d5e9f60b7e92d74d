"""Rules for matrix products, convolutions and pooling."""
import rules
from ir_text import broadcast_shape
from protobuf import elements
from rules import axis_of, known, rule


# --- products of matrices
@rule("MatMul")
def matmul(f, _, x, y):
    """By numpy's rule: vectors become matrices, leading axes are broadcast."""
    gone = [axis for axis, v in ((-2, x), (-1, y)) if v.rank == 1]
    x = f.reshape(x, [1] + x.shape) if x.rank == 1 else x
    y = f.reshape(y, y.shape + [1]) if y.rank == 1 else y
    batch = broadcast_shape([x.shape[:-2], y.shape[:-2]])
    z = f.matmul(f.broadcast(x, batch + x.shape[-2:]), f.broadcast(y, batch + y.shape[-2:]))
    return rules.without(f, z, [axis_of(z, a) for a in gone])


@rule("MatMulInteger")
def matmul_integer(f, call, x, y, x_zero=None, y_zero=None):
    """In f64, which is exact."""
    x, y = (centred(f, v, zero, shape) for v, zero, shape in ((x, x_zero, [-1, 1]), (y, y_zero, [-1])))
    return f.cast(matmul(f, call, x, y), "i32")


def centred(f, x, zero, shape):
    wide = f.cast(x, "f64")
    if zero is None:
        return wide
    if zero.rank == 1:
        zero = f.reshape(zero, [zero.shape[0] if d == -1 else d for d in shape])
    return f.binary("sub", wide, f.cast(zero, "f64"))


@rule("Gemm")
def gemm(f, call, a, b, c=None):
    a = f.transpose(a, [1, 0]) if call.get("transA") else a
    b = f.transpose(b, [1, 0]) if call.get("transB") else b
    y = f.matmul(a, b)
    if call.get("alpha", 1) != 1:
        y = f.binary("mul", y, call.get("alpha"))
    if c is None:
        return y
    return f.binary("add", y, c if call.get("beta", 1) == 1 else f.binary("mul", c, call.get("beta")))


# --- windows over the places of an image
class Places:
    """What convolutions and pools say about the axes after batch and channels."""

    def __init__(self, call, sizes, kernel):
        rank = len(sizes)
        self.sizes, self.kernel = sizes, list(kernel)
        self.step = call.get("strides", [1] * rank)
        self.dilate = call.get("dilations", [1] * rank)
        self.span = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilate)]
        pads = call.get("pads", [0] * 2 * rank)
        self.lo, self.hi = list(pads[:rank]), list(pads[rank:])
        mode = call.get("auto_pad", "NOTSET")
        if mode.startswith("SAME"):
            for i in range(rank):
                total = max((-(-sizes[i] // self.step[i]) - 1) * self.step[i] + self.span[i] - sizes[i], 0)
                small, large = total // 2, total - total // 2
                self.lo[i], self.hi[i] = (small, large) if mode == "SAME_UPPER" else (large, small)
        self.more = [0] * rank  # room for a last window that is not whole
        if call.get("ceil_mode"):
            for i in range(rank):
                self.more[i] = -(sizes[i] + self.lo[i] + self.hi[i] - self.span[i]) % self.step[i]

    def padded(self, f, x, value, before, after):
        """x with room around the axes that follow `before` others; `after` more come at the end."""
        hi = [h + m for h, m in zip(self.hi, self.more)]
        return f.pad(x, [0] * before + self.lo + [0] * after, [0] * before + hi + [0] * after, value)

    def windows(self, f, x):
        return f.windows(x, list(range(2, 2 + len(self.sizes))), self.kernel, self.step, self.dilate)


def channels_last(f, x):
    return rules.moved(f, x, 1, x.rank - 1)


def channels_second(f, x):
    return rules.moved(f, x, x.rank - 1, 1)


def with_bias(f, y, bias):
    return y if bias is None else f.binary("add", y, rules.channels_of(f, bias, y.rank))


def grouped_conv(f, x, kernel, groups, step, dilate):
    """x[b, n..., c], kernel[k..., c / groups, m]."""
    c, m, last = x.shape[-1] // groups, kernel.shape[-1] // groups, x.rank - 1
    parts = [f.conv(f.slice(x, last, i * c, i * c + c), f.slice(kernel, last, i * m, i * m + m), step, dilate)
             for i in range(groups)]
    return f.concat(parts, last)


@rule("Conv")
def conv(f, call, x, w, bias=None):
    p = Places(call, x.shape[2:], w.shape[2:])
    room = p.padded(f, channels_last(f, x), 0, 1, 1)
    kernel = f.transpose(w, list(range(2, w.rank)) + [1, 0])
    y = grouped_conv(f, room, kernel, call.get("group", 1), p.step, p.dilate)
    return with_bias(f, channels_second(f, y), bias)


@rule("ConvInteger")
def conv_integer(f, call, x, w, x_zero=None, w_zero=None):
    x, w = centred(f, x, x_zero, [-1]), centred(f, w, w_zero, [-1] + [1] * (w.rank - 1))
    return f.cast(conv(f, call, x, w), "i32")


def spread_out(f, x, axis, step):
    """step - 1 zeros between neighbours."""
    if step == 1:
        return x
    n = x.shape[axis]
    apart = rules.with_axes(f, x, [axis + 1])
    hi = [step - 1 if i == axis + 1 else 0 for i in range(apart.rank)]
    filled = f.reshape(f.pad(apart, [0] * apart.rank, hi), x.shape[:axis] + [n * step] + x.shape[axis + 1:])
    return f.slice(filled, axis, 0, (n - 1) * step + 1)


def transposed_room(call, p):
    """What is cut off in front, and how long the result is, of each axis; it may be longer than what the
    kernel covers."""
    rank = len(p.sizes)
    extra = call.get("output_padding", [0] * rank)
    whole = [(n - 1) * s + span + e for n, s, span, e in zip(p.sizes, p.step, p.span, extra)]
    mode, sizes = call.get("auto_pad", "NOTSET"), call.get("output_shape")
    if sizes is None and mode.startswith("SAME"):
        sizes = [n * s for n, s in zip(p.sizes, p.step)]
    if sizes is None:
        return p.lo, [w - lo - hi for w, lo, hi in zip(whole, p.lo, p.hi)]
    total = [max(w - n, 0) for w, n in zip(whole, sizes)]
    return [t // 2 if mode == "SAME_UPPER" else t - t // 2 for t in total], sizes


@rule("ConvTranspose")
def conv_transpose(f, call, x, w, bias=None):
    """A convolution of x with zeros in between, by the kernel turned round."""
    p = Places(call, x.shape[2:], w.shape[2:])
    cut, sizes = transposed_room(call, p)
    x = channels_last(f, x)
    for i, step in enumerate(p.step):
        x = spread_out(f, x, i + 1, step)
    room = [0] + [s - 1 for s in p.span] + [0]
    kernel = transposed_kernel(f, w, call.get("group", 1))
    y = grouped_conv(f, f.pad(x, room, room), kernel, call.get("group", 1), [1] * len(sizes), p.dilate)
    for i, (start, size) in enumerate(zip(cut, sizes)):
        missing = max(0, start + size - y.shape[i + 1])
        y = f.pad(y, [0] * y.rank, [missing if a == i + 1 else 0 for a in range(y.rank)])
        y = f.slice(y, i + 1, start, start + size)
    return with_bias(f, channels_second(f, y), bias)


def transposed_kernel(f, w, groups):
    """w[c, m / groups, k...] turned round, as [k..., c / groups, m]."""
    for axis in range(2, w.rank):
        w = rules.reverse(f, w, axis)
    c = w.shape[0] // groups
    parts = [f.slice(w, 0, i * c, i * c + c) for i in range(groups)]
    return f.concat([f.transpose(part, list(range(2, w.rank)) + [0, 1]) for part in parts], w.rank - 1)


# --- pools
@rule("MaxPool")
def max_pool(f, call, x):
    p = Places(call, x.shape[2:], call.get("kernel_shape"))
    seen = p.windows(f, p.padded(f, x, rules.lowest(x.dtype), 2, 0))
    inside = list(range(x.rank, seen.rank))
    y = rules.without(f, f.reduce("reduce_max", seen, inside), inside)
    if call.num_outputs == 1:
        return y
    return [y, pool_indices(f, p, x, seen, call.get("storage_order", 0))]


def pool_indices(f, p, x, seen, column_major):
    """Where in x the largest element of each window is."""
    rank, flat = len(p.sizes), elements(p.kernel)
    best = f.arg("argmax", f.reshape(seen, seen.shape[:x.rank] + [flat]), x.rank)
    best = f.cast(rules.without(f, best, [x.rank]), "i64")
    place = f.binary("mul", f.iota("i64", best.shape, 0), x.shape[1])
    place = f.binary("add", place, f.iota("i64", best.shape, 1))
    place = f.binary("mul", place, elements(p.sizes))
    for i in range(rank):
        inner = elements(p.kernel[i + 1:])
        k = f.binary("mod", f.binary("div", best, inner), p.kernel[i])
        start = f.binary("sub", f.binary("mul", f.iota("i64", best.shape, i + 2), p.step[i]), p.lo[i])
        at = f.binary("add", start, f.binary("mul", k, p.dilate[i]))
        stride = elements(p.sizes[:i]) if column_major else elements(p.sizes[i + 1:])
        place = f.binary("add", place, f.binary("mul", at, stride))
    return place


@rule("AveragePool")
def average_pool(f, call, x):
    """The sum of each window over how many elements count in it."""
    p = Places(call, x.shape[2:], call.get("kernel_shape"))
    inside = list(range(x.rank, 2 * x.rank - 2))
    ones = f.full(x.dtype, x.shape, 1)
    if call.get("count_include_pad"):
        ones = f.pad(ones, [0, 0] + p.lo, [0, 0] + p.hi, 1)
        ones = f.pad(ones, [0] * x.rank, [0, 0] + p.more)
    else:
        ones = p.padded(f, ones, 0, 2, 0)
    sums = [f.reduce("sum", p.windows(f, v), inside) for v in (p.padded(f, x, 0, 2, 0), ones)]
    return rules.without(f, f.binary("div", *sums), inside)


@rule("GlobalAveragePool")
def global_average_pool(f, _, x):
    return rules.mean(f, x, list(range(2, x.rank)))


@rule("GlobalMaxPool")
def global_max_pool(f, _, x):
    return f.reduce("reduce_max", x, list(range(2, x.rank)))


@rule("MaxUnpool")
def max_unpool(f, call, x, index, sizes=None):
    p = Places(call, x.shape[2:], call.get("kernel_shape"))
    whole = x.shape[:2] + [(n - 1) * s + k - lo - hi
                           for n, s, k, lo, hi in zip(p.sizes, p.step, p.kernel, p.lo, p.hi)]
    flat = [elements(x.shape)]
    y = f.reshape(f.scatter_add(f.reshape(index, flat), f.reshape(x, flat), elements(whole)), whole)
    hi = [a - b for a, b in zip(known(sizes), whole)] if sizes is not None else [0] * x.rank
    return f.pad(y, [0] * x.rank, hi)
