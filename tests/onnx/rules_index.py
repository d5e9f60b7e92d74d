"""Rules for operators whose addresses are data, and for losses, which look up labels."""
import rules
from protobuf import Unreadable, elements
from rules import axis_of, rule


def counted_from_the_end(f, index, size):
    """Negative indices as what they mean; as i64."""
    index = f.cast(index, "i64")
    return f.select(f.binary("lt", index, 0), f.binary("add", index, size), index)


# --- rows
@rule("Gather")
def gather(f, call, x, index):
    axis = axis_of(x, call.get("axis", 0))
    return rules.gather_along(f, x, counted_from_the_end(f, index, x.shape[axis]), axis)


def flat_places(f, shape, index, axis):
    """Places in a tensor of `shape`, row-major: an index's own, but along `axis` what it says."""
    place = None
    for i in range(len(shape)):
        own = index if i == axis else f.iota("i64", index.shape, i)
        step = f.binary("mul", own, elements(shape[i + 1:]))
        place = step if place is None else f.binary("add", place, step)
    return place


@rule("GatherElements")
def gather_elements(f, call, x, index):
    axis = axis_of(x, call.get("axis", 0))
    place = flat_places(f, x.shape, counted_from_the_end(f, index, x.shape[axis]), axis)
    return f.gather(f.reshape(x, [elements(x.shape)]), place)


def nd_places(f, shape, index, batch):
    """Row-major places of the tuples in the last axis of an index, the first `batch` axes being its own."""
    place, last = None, index.rank - 1
    depth = index.shape[-1]
    for i in range(batch + depth):
        if i < batch:
            own = f.iota("i64", index.shape[:-1], i)
        else:
            own = counted_from_the_end(f, rules.at_place(f, index, last, i - batch), shape[i])
        step = f.binary("mul", own, elements(shape[i + 1:batch + depth]))
        place = step if place is None else f.binary("add", place, step)
    return place


@rule("GatherND")
def gather_nd(f, call, x, index):
    batch = call.get("batch_dims", 0)
    depth = batch + index.shape[-1]
    table = f.reshape(x, [elements(x.shape[:depth])] + x.shape[depth:])
    return f.gather(table, nd_places(f, x.shape, index, batch))


# --- scattering
def scattered(f, x, place, update, reduction):
    """x[v, ...] with rows replaced or added to; places that are replaced twice have no meaning."""
    sums = f.scatter_add(place, update, x.shape[0])
    if reduction == "add":
        return f.binary("add", x, sums)
    if reduction != "none":
        raise Unreadable("no such operator: products of what is scattered")
    hits = f.scatter_add(place, f.full("i32", update.shape, 1), x.shape[0])
    return f.select(f.binary("gt", hits, 0), sums, x)


@rule("ScatterElements", "Scatter")
def scatter_elements(f, call, x, index, update):
    axis = axis_of(x, call.get("axis", 0))
    place = flat_places(f, x.shape, counted_from_the_end(f, index, x.shape[axis]), axis)
    flat = [elements(update.shape)]
    y = scattered(f, f.reshape(x, [elements(x.shape)]), f.reshape(place, flat), f.reshape(update, flat),
                  call.get("reduction", "none"))
    return f.reshape(y, x.shape)


@rule("ScatterND")
def scatter_nd(f, call, x, index, update):
    depth = index.shape[-1]
    rows = f.reshape(x, [elements(x.shape[:depth])] + x.shape[depth:])
    y = scattered(f, rows, nd_places(f, x.shape, index, 0), update, call.get("reduction", "none"))
    return f.reshape(y, x.shape)


# --- labels
def equals_class(f, index, axis, classes):
    """A new axis that is true where it is the index's number."""
    label = rules.with_axes(f, index, [axis])
    shape = label.shape[:axis] + [classes] + label.shape[axis + 1:]
    return f.binary("eq", f.iota(label.dtype, shape, axis), label)


@rule("OneHot")
def one_hot(f, call, index, depth, values):
    classes = int(rules.known(depth)[0])
    axis = call.get("axis", -1)
    axis = axis + index.rank + 1 if axis < 0 else axis
    hit = equals_class(f, counted_from_the_end(f, index, classes), axis, classes)
    off, on = (rules.at_place(f, values, 0, i) for i in (0, 1))
    return f.select(hit, on, off)


def likelihood_loss(f, call, log_probability, label, weight):
    """-log_probability[label] of each place, weighted, with the reduction that the call asks for."""
    ignore = call.get("ignore_index")
    hit = equals_class(f, label, 1, log_probability.shape[1])
    if ignore is not None:
        counts = rules.with_axes(f, f.binary("ne", label, ignore), [1])
        hit = f.binary("and", hit, counts)
    weights = f.full(log_probability.dtype, [log_probability.shape[1]], 1) if weight is None else weight
    weights = f.select(hit, rules.channels_of(f, weights, log_probability.rank), 0)
    chosen = f.select(hit, log_probability, 0)
    losses = f.unary("neg", rules.without(f, f.reduce("sum", f.binary("mul", chosen, weights), [1]), [1]))
    return reduced(f, call.get("reduction", "mean"), losses, weights)


def reduced(f, reduction, losses, weights):
    if reduction == "none":
        return losses
    total = f.reshape(f.reduce("sum", losses, list(range(losses.rank))), [])
    if reduction == "sum":
        return total
    return f.binary("div", total, f.reshape(f.reduce("sum", weights, list(range(weights.rank))), []))


@rule("NegativeLogLikelihoodLoss")
def nll_loss(f, call, x, label, weight=None):
    return likelihood_loss(f, call, x, label, weight)


@rule("SoftmaxCrossEntropyLoss")
def cross_entropy(f, call, x, label, weight=None):
    log_probability = rules.log_softmax(f, x, [1])
    return [likelihood_loss(f, call, log_probability, label, weight), log_probability][:call.num_outputs]


@rule("ReverseSequence")
def reverse_sequence(f, call, x, lengths):
    batch, time = call.get("batch_axis", 1), call.get("time_axis", 0)
    shape = [1] * x.rank
    shape[batch] = x.shape[batch]
    n = f.broadcast(f.reshape(lengths, shape), x.shape)
    own = f.iota("i64", x.shape, time)
    turned = f.binary("sub", f.binary("sub", n, 1), own)
    index = f.select(f.binary("lt", own, n), turned, own)
    return f.gather(f.reshape(x, [elements(x.shape)]), flat_places(f, x.shape, index, time))
