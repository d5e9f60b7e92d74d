"""Rules for operators that take images at places between their elements: resizing, where the places are known,
and sampling at places that are data."""
import math

import rules
from protobuf import Unreadable, elements
from rules import known, rule


# --- resizing: each axis by itself, a weighted sum of places that are known
def coordinate(call, i, size, new, scale, part):
    """Of place i of the result in x. `part`: from where to where, edges being 0 and 1, if not all of it."""
    mode = call.get("coordinate_transformation_mode", "half_pixel")
    if call.op == "Upsample" or mode == "asymmetric":
        return i / scale
    if mode == "align_corners":
        return i * (size - 1) / (size * scale - 1) if new > 1 else 0
    if mode == "tf_half_pixel_for_nn":
        return (i + 0.5) / scale
    if mode == "tf_crop_and_resize":
        return (part[0] + (part[1] - part[0]) * (i / (new - 1) if new > 1 else 0.5)) * (size - 1)
    return (i + 0.5) / scale - 0.5 if mode == "half_pixel" or new > 1 else 0


def nearest(call, at):
    mode = "floor" if call.op == "Upsample" else call.get("nearest_mode", "round_prefer_floor")
    rounded = {"floor": math.floor(at), "ceil": math.ceil(at), "round_prefer_floor": math.ceil(at - 0.5),
               "round_prefer_ceil": math.floor(at + 0.5)}
    return [(rounded[mode], 1.0)]


def linear(at):
    low = math.floor(at)
    return [(low, low + 1 - at), (low + 1, at - low)]


def cubic(at, a):
    low = math.floor(at)

    def weight(d):
        d = abs(d)
        if d <= 1:
            return (a + 2) * d**3 - (a + 3) * d**2 + 1
        return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a

    return [(low + k, weight(at - low - k)) for k in (-1, 0, 1, 2)]


def taps(call, at, size):
    """(place, weight) of the elements of x that make one of the result."""
    mode = call.get("mode", "nearest")
    if mode == "nearest":
        found = nearest(call, at)
    else:
        found = linear(at) if mode == "linear" else cubic(at, call.get("cubic_coeff_a", -0.75))
    if call.get("exclude_outside"):
        found = [(p, w if 0 <= p < size else 0) for p, w in found]
        total = sum(w for _, w in found)
        found = [(p, w / total) for p, w in found]
    return [(min(max(p, 0), size - 1), w) for p, w in found]


def resized(f, call, x, axis, new, scale, part):
    size = x.shape[axis]
    places = [coordinate(call, i, size, new, scale, part) for i in range(new)]
    found = [taps(call, at, size) for at in places]
    along = [new] + [1] * (x.rank - axis - 1)
    total = None
    for tap in zip(*found):
        share = rules.take(f, x, axis, [p for p, _ in tap])
        if len(found[0]) > 1:
            weights = f.literal(x.dtype, [new], [w for _, w in tap])
            share = f.binary("mul", share, f.reshape(weights, along))
        total = share if total is None else f.binary("add", total, share)
    outside = [not 0 <= at <= size - 1 for at in places]
    if is_crop(call) and any(outside):
        beyond = f.reshape(f.literal("bool", [new], outside), along)
        total = f.select(beyond, call.get("extrapolation_value", 0.0), total)
    return total


def is_crop(call):
    return call.get("coordinate_transformation_mode") == "tf_crop_and_resize"


@rule("Resize", "Upsample")
def resize(f, call, x, *rest):
    scales = rest[0] if len(rest) == 1 else rest[1]
    if len(rest) > 2:
        sizes = known(rest[2])
        factors = [n / old for n, old in zip(sizes, x.shape)]
    else:
        factors = known(scales)
        sizes = [int(n * s) for n, s in zip(x.shape, factors)]
    edges = known(rest[0]) if is_crop(call) else [0] * x.rank + [1] * x.rank
    parts = zip(edges[:x.rank], edges[x.rank:])
    for axis, (new, scale, part) in enumerate(zip(sizes, factors, parts)):
        if new != x.shape[axis] or scale != 1 or part != (0, 1):
            x = resized(f, call, x, axis, new, scale, part)
    return x


# --- places that are data: x[n, c, h, w] at grid[n, h', w', (x, y)], -1 and 1 being the edges
def in_elements(f, call, at, size):
    """Coordinates in elements."""
    if call.get("align_corners"):
        return f.binary("mul", f.binary("add", at, 1), (size - 1) / 2)
    return f.binary("sub", f.binary("mul", f.binary("add", at, 1), size / 2), 0.5)


def reflected(f, call, at, size):
    """Back inside, as often as it takes."""
    low, high = (0, size - 1) if call.get("align_corners") else (-0.5, size - 0.5)
    span = high - low
    off = f.binary("mod", f.binary("sub", at, low), 2 * span)
    return f.binary("add", f.binary("min", off, f.binary("sub", 2 * span, off)), low)


def clamped(f, at, size):
    return f.binary("max", f.binary("min", at, size - 1), 0)


def element_at(f, call, x, across, down):
    """[n, h', w', c] of whole coordinates, which may lie outside."""
    n, c, h, w = x.shape
    mode = call.get("padding_mode", "zeros")
    if mode == "reflection":
        across, down = reflected(f, call, across, w), reflected(f, call, down, h)
    inside_across, inside_down = clamped(f, across, w), clamped(f, down, h)
    row = f.binary("add", f.binary("mul", f.iota("i32", across.shape, 0), h), f.cast(inside_down, "i32"))
    place = f.binary("add", f.binary("mul", row, w), f.cast(inside_across, "i32"))
    found = f.gather(f.reshape(f.transpose(x, [0, 2, 3, 1]), [elements([n, h, w]), c]), place)
    if mode != "zeros":
        return found
    inside = f.binary("and", f.binary("eq", inside_across, across), f.binary("eq", inside_down, down))
    return f.select(rules.with_axes(f, inside, [3]), found, 0)


def cubic_weight(f, distance, a):
    """The polynomials of `cubic` above: near is for up to 1, far for up to 2."""
    d = f.unary("abs", distance)

    def polynomial(*factors):
        y = f.full(d.dtype, d.shape, factors[0])
        for factor in factors[1:]:
            y = f.binary("add", f.binary("mul", y, d), factor)
        return y

    near, far = polynomial(a + 2, -(a + 3), 0, 1), polynomial(a, -5 * a, 8 * a, -4 * a)
    return f.select(f.binary("le", d, 1), near, far)


def sample_taps(f, call, at):
    """(whole coordinate, weight) of what makes one place along an axis."""
    mode = call.get("mode", "bilinear")
    if mode == "nearest":
        return [(rules.round_to_even(f, at), f.full(at.dtype, at.shape, 1))]
    low = f.unary("floor", at)
    places = [f.binary("add", low, k) for k in ((0, 1) if mode == "bilinear" else (-1, 0, 1, 2))]
    off = [f.binary("sub", at, p) for p in places]
    if mode == "bilinear":
        return [(p, f.binary("sub", 1, f.unary("abs", o))) for p, o in zip(places, off)]
    return [(p, cubic_weight(f, o, -0.75)) for p, o in zip(places, off)]


@rule("GridSample")
def grid_sample(f, call, x, grid):
    sizes = (x.shape[3], x.shape[2])
    at = [in_elements(f, call, rules.at_place(f, grid, 3, i), size) for i, size in enumerate(sizes)]
    if call.get("mode", "bilinear") != "bicubic" and call.get("padding_mode") == "reflection":
        at = [reflected(f, call, v, size) for v, size in zip(at, sizes)]
    if call.get("mode", "bilinear") != "bicubic" and call.get("padding_mode", "zeros") != "zeros":
        at = [clamped(f, v, size) for v, size in zip(at, sizes)]
    across, down = (sample_taps(f, call, v) for v in at)
    total = None
    for row, height in down:
        for column, width in across:
            weight = rules.with_axes(f, f.binary("mul", height, width), [3])
            part = f.binary("mul", element_at(f, call, x, column, row), weight)
            total = part if total is None else f.binary("add", total, part)
    return f.transpose(total, [0, 3, 1, 2])


# --- regions: [r, c, h', w'] of boxes[r, (x, y, x, y)] in the images that batch[r] says
def region_places(f, call, boxes, axis, count):
    """Coordinates [r, count * samples] along x (0) or y (1)."""
    samples = call.get("sampling_ratio", 0)
    if samples == 0:
        raise Unreadable("shapes that depend on data")
    half = call.get("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    start, end = (f.binary("mul", f.slice(boxes, 1, i, i + 1), call.get("spatial_scale", 1.0))
                  for i in (axis, axis + 2))
    length = f.binary("sub", end, start)
    length = length if half else f.binary("max", length, 1)
    start = f.binary("sub", start, 0.5) if half else start
    steps = f.binary("div", f.binary("add", f.iota("f32", [count * samples], 0), 0.5), count * samples)
    return f.binary("add", f.binary("mul", length, steps), start)


def region_taps(f, at, size):
    """(i32 places, weights) of the two elements around; no weight beyond one element outside."""
    inside = f.binary("and", f.binary("ge", at, -1), f.binary("le", at, size))
    at = clamped(f, at, size)
    low = f.unary("floor", at)
    high = f.binary("min", f.binary("add", low, 1), size - 1)
    share = f.binary("sub", at, low)
    weights = (f.binary("sub", 1, share), share)
    return [(f.cast(p, "i32"), f.select(inside, w, 0)) for p, w in zip((low, high), weights)]


@rule("RoiAlign")
def roi_align(f, call, x, boxes, batch):
    if call.get("mode", "avg") != "avg":
        raise Unreadable("the largest of weighted parts")
    n, c, h, w = x.shape
    count, (rows, columns) = boxes.shape[0], (call.get("output_height", 1), call.get("output_width", 1))
    samples = call.get("sampling_ratio")
    across = region_taps(f, region_places(f, call, boxes, 0, columns), w)
    down = region_taps(f, region_places(f, call, boxes, 1, rows), h)
    table = f.reshape(f.transpose(x, [0, 2, 3, 1]), [elements([n, h, w]), c])
    first = f.binary("mul", f.reshape(f.cast(batch, "i32"), [count, 1, 1]), h * w)
    total = None
    for y, height in down:
        for z, width in across:
            y_row, height_row = (rules.with_axes(f, v, [2]) for v in (y, height))
            z_row, width_row = (rules.with_axes(f, v, [1]) for v in (z, width))
            place = f.binary("add", f.binary("add", f.binary("mul", y_row, w), z_row), first)
            weight = rules.with_axes(f, f.binary("mul", height_row, width_row), [3])
            part = f.binary("mul", f.gather(table, place), weight)
            total = part if total is None else f.binary("add", total, part)
    apart = f.reshape(total, [count, rows, samples, columns, samples, c])
    return f.transpose(rules.without(f, rules.mean(f, apart, [2, 4]), [2, 4]), [0, 3, 1, 2])
