"""Functions of tensor IR as text (docs/ir.md): one method per op, which finds the type of its result.

Of short tensors what can be known without running anything (sizes, axes, constants) is carried along:
`value.known`, a list of all elements. Floats are not computed with. A tensor without elements, which mltc does
not have, exists only so: it has no name in the text."""
import math
import operator
from dataclasses import dataclass

from protobuf import Tensor, Unreadable, elements, packed

RANGES = {"u8": (0, 255), "u16": (0, 65535), "u32": (0, 2**32 - 1), "i8": (-128, 127),
          "i32": (-2**31, 2**31 - 1), "i64": (-2**63, 2**63 - 1)}
FLOATS, NARROW = ("f32", "f64"), ("bf16", "f16")

EVALUATE = {"copy": lambda x: x, "neg": operator.neg, "abs": abs, "not": lambda x: not x,
            "add": operator.add, "sub": operator.sub, "mul": operator.mul,
            "div": lambda x, y: x // y if y else 0, "mod": lambda x, y: x % y if y else 0, "max": max, "min": min,
            "and": lambda x, y: x and y, "or": lambda x, y: x or y, "eq": operator.eq, "ne": operator.ne,
            "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
            "select": lambda c, x, y: x if c else y}
LONGEST_KNOWN = 64
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


@dataclass(eq=False)
class Value:
    name: str  # None: no elements
    dtype: str
    shape: list
    known: list = None

    @property
    def rank(self):
        return len(self.shape)


def number(value):
    """As the IR's text writes it."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value)) if value or math.copysign(1, value) > 0 else "-0"
    return repr(value) if isinstance(value, float) else str(int(value))


def listed(values):
    return "[" + ",".join(map(str, values)) + "]"


def positions(shape):
    """Coordinates of all elements, row-major."""
    for flat in range(elements(shape)):
        at = []
        for size in reversed(shape):
            at.append(flat % size)
            flat //= size
        yield at[::-1]


def flat_index(shape, at):
    flat = 0
    for size, i in zip(shape, at):
        flat = flat * size + i
    return flat


def broadcast_shape(shapes):
    """Numpy's rule."""
    rank = max(map(len, shapes))
    padded = [[1] * (rank - len(s)) + list(s) for s in shapes]
    return [next((d for d in sizes if d != 1), 1) for sizes in zip(*padded)]


class Function:
    def __init__(self, name):
        self.name = name
        self.lines, self.results = [], []
        self.data = []  # bytes of the inputs, in order
        self.count = 0

    def text(self):
        body = "".join(f"  {line}\n" for line in self.lines + self.results)
        return f"mltc-ir 1\nmodule {self.name}\n\nfunc predict {{\n{body}}}\n"

    # --- lines
    def value(self, op, operands, dtype, shape, attributes="", known=None):
        """known(): the elements."""
        if len(shape) > 8:
            raise Unreadable("tensors of more than 8 axes")
        if elements(shape) == 0:
            return Value(None, dtype, list(shape), [])
        if any(x.name is None for x in operands):
            raise Unreadable("tensors without elements")
        self.count += 1
        name = f"%{op}.{self.count}"
        used = " " * bool(operands) + ", ".join(x.name for x in operands)
        braces = f" {{{attributes}}}" if attributes else ""
        self.lines.append(f"{name} = {op}{used}{braces} : {dtype}{listed(shape)}")
        sure = known and elements(shape) <= LONGEST_KNOWN and all(x.known is not None for x in operands)
        return Value(name, dtype, list(shape), known() if sure else None)

    def result(self, name, x):
        if x.name is None:
            raise Unreadable("tensors without elements")
        self.results.append(f"result output {name} = {x.name}")

    # --- leaves
    def input(self, t: Tensor):
        """A tensor that is given when the function runs; what is known of it may shape the function."""
        x = self.value("input", [], t.dtype, t.shape, known=lambda: list(t.values))
        if x.name:
            self.data.append(packed(t.dtype, t.values))
        return x

    def constant(self, t: Tensor):
        """A tensor of the model: what mltc has no constant for is an input, too."""
        short = t.dtype not in FLOATS + NARROW and len(t.values) <= 8
        if t.values and (short or all(v == t.values[0] for v in t.values)) and t.dtype not in NARROW:
            return self.literal(t.dtype, t.shape, t.values)
        return self.input(t)

    def full(self, dtype, shape, value):
        return self.value("const", [], dtype, shape, f"value={number(value)}", lambda: [value] * elements(shape))

    def literal(self, dtype, shape, values):
        if not values or all(v == values[0] for v in values):
            return self.full(dtype, shape, values[0] if values else 0)
        x = self.concat([self.full(dtype, [1], v) for v in values], 0)
        return self.reshape(x, shape)

    def iota(self, dtype, shape, axis):
        return self.value("iota", [], dtype, shape, f"axis={axis}", lambda: [at[axis] for at in positions(shape)])

    # --- pointwise
    def pointwise(self, op, operands, dtype):
        def known():
            results = [EVALUATE[op](*at) for at in zip(*(x.known for x in operands))]
            return wrapped(results, dtype) if dtype in RANGES else results

        whole = op in EVALUATE and all(x.dtype not in FLOATS + NARROW for x in operands)
        return self.value(op, operands, dtype, operands[0].shape, known=known if whole else None)

    def unary(self, op, x):
        if x.dtype in NARROW and op != "copy":
            return self.cast(self.unary(op, self.cast(x, "f32")), x.dtype)
        return self.pointwise(op, [x], x.dtype)

    def binary(self, op, x, y):
        """x, y: values, or one of them a number."""
        x, y = self.matched(x, y)
        if x.dtype in NARROW and op not in COMPARISONS:
            return self.cast(self.binary(op, self.cast(x, "f32"), self.cast(y, "f32")), x.dtype)
        x, y = self.broadcast_together([x, y])
        return self.pointwise(op, [x, y], "bool" if op in COMPARISONS else x.dtype)

    def matched(self, x, y):
        """Numbers take the type of the tensor that they meet."""
        if not isinstance(x, Value):
            x = self.full(y.dtype, y.shape, x)
        if not isinstance(y, Value):
            y = self.full(x.dtype, x.shape, y)
        return x, y

    def select(self, condition, x, y):
        x, y = self.matched(x, y)
        return self.pointwise("select", self.broadcast_together([condition, x, y]), x.dtype)

    def cast(self, x, dtype):
        if x.dtype == dtype:
            return x
        if x.dtype in FLOATS + NARROW:
            return self.value("cast", [x], dtype, x.shape)
        convert = {"bool": lambda: [v != 0 for v in x.known]}
        if dtype in RANGES:
            convert[dtype] = lambda: wrapped(x.known, dtype)
        return self.value("cast", [x], dtype, x.shape, known=convert.get(dtype, lambda: x.known))

    # --- reductions; the axes stay
    def reduce(self, op, x, axes):
        if not axes:
            return x
        shape = [1 if i in axes else d for i, d in enumerate(x.shape)]
        return self.value(op, [x], x.dtype, shape, f"axes={listed(sorted(axes))}")

    def arg(self, op, x, axis):
        return self.value(op, [x], "i32", [1 if i == axis else d for i, d in enumerate(x.shape)], f"axis={axis}")

    # --- views
    def reshape(self, x, shape):
        return x if list(shape) == x.shape else self.value("reshape", [x], x.dtype, shape, known=lambda: x.known)

    def transpose(self, x, perm):
        perm = list(perm)
        if perm == list(range(x.rank)):
            return x
        shape = [x.shape[p] for p in perm]
        back = [perm.index(i) for i in range(x.rank)]
        return self.value("transpose", [x], x.dtype, shape, f"perm={listed(perm)}",
                          lambda: [x.known[flat_index(x.shape, [at[i] for i in back])] for at in positions(shape)])

    def broadcast(self, x, shape):
        """By numpy's rule: new axes come in front."""
        if list(shape) == x.shape:
            return x
        aligned = self.reshape(x, [1] * (len(shape) - x.rank) + x.shape)
        if aligned.shape == list(shape):
            return aligned
        return self.value("broadcast", [aligned], x.dtype, shape, known=lambda: [
            x.known[flat_index(aligned.shape, [i if d != 1 else 0 for i, d in zip(at, aligned.shape)])]
            for at in positions(shape)])

    def broadcast_together(self, values):
        shape = broadcast_shape([x.shape for x in values])
        return [self.broadcast(x, shape) for x in values]

    def slice(self, x, axis, start, stop, step=1):
        size = max(0, -(-(stop - start) // step))
        shape = x.shape[:axis] + [size] + x.shape[axis + 1:]
        if shape == x.shape:
            return x
        starts, stops, steps = [0] * x.rank, list(x.shape), [1] * x.rank
        starts[axis], stops[axis], steps[axis] = start, stop, min(step, x.shape[axis])
        lists = f"start={listed(starts)}, stop={listed(stops)}, step={listed(steps)}"
        return self.value("slice", [x], x.dtype, shape, lists, lambda: [
            x.known[flat_index(x.shape, at[:axis] + [start + step * at[axis]] + at[axis + 1:])]
            for at in positions(shape)])

    def windows(self, x, axes, size, step, dilate):
        shape = list(x.shape)
        for a, k, s, d in zip(axes, size, step, dilate):
            shape[a] = (x.shape[a] - (k - 1) * d - 1) // s + 1
        lists = ", ".join(f"{k}={listed(v)}" for k, v in
                          (("axes", axes), ("size", size), ("step", step), ("dilate", dilate)))
        return self.value("windows", [x], x.dtype, shape + list(size), lists)

    # --- the rest
    def pad(self, x, lo, hi, value=0):
        if not any(lo) and not any(hi):
            return x
        shape = [a + d + b for a, d, b in zip(lo, x.shape, hi)]
        return self.value("pad", [x], x.dtype, shape, f"lo={listed(lo)}, hi={listed(hi)}, value={number(value)}")

    def concat(self, values, axis):
        values = [x for x in values if elements(x.shape)] or values[:1]
        if len(values) == 1:
            return values[0]
        first = values[0]
        shape = first.shape[:axis] + [sum(x.shape[axis] for x in values)] + first.shape[axis + 1:]
        row = first.rank == 1
        return self.value("concat", values, first.dtype, shape, f"axis={axis}",
                          (lambda: [v for x in values for v in x.known]) if row else None)

    def gather(self, table, index):
        """Rows of the first axis."""
        row = table.rank == 1
        return self.value("gather", [table, index], table.dtype, index.shape + table.shape[1:], known=(
            lambda: [table.known[min(max(i, 0), table.shape[0] - 1)] for i in index.known]) if row else None)

    def scatter_add(self, index, update, rows):
        return self.value("scatter_add", [index, update], update.dtype, [rows] + update.shape[index.rank:])

    def matmul(self, x, y):
        return self.value("matmul", [x, y], x.dtype, x.shape[:-1] + y.shape[-1:], "ta=false, tb=false")

    def conv(self, x, kernel, step, dilate):
        places = [(n - (k - 1) * d - 1) // s + 1
                  for n, k, s, d in zip(x.shape[1:-1], kernel.shape[:-2], step, dilate)]
        return self.value("conv", [x, kernel], x.dtype, [x.shape[0]] + places + [kernel.shape[-1]],
                          f"step={listed(step)}, dilate={listed(dilate)}")

    def grad(self, of, by):
        return self.value("grad", [of, by], by.dtype, by.shape)


def wrapped(values, dtype):
    low, high = RANGES[dtype]
    return [(int(v) - low) % (high - low + 1) + low for v in values]
