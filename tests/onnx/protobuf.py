"""What ONNX's files hold, without a library: the wire format of protobuf, and the messages of onnx.proto
that node tests use. Tensors are lists of Python numbers, row-major."""
import struct
from dataclasses import dataclass


class Unreadable(Exception):
    """What a test asks for that this reader has no form for; the text is the reason."""


# --- the wire format: https://protobuf.dev/programming-guides/encoding
def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """{number: [values]} of a message: varints and fixed-size numbers as they lie there, all else bytes."""
    found, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        wire = key & 7
        if wire == 0:
            value, at = varint(data, at)
        else:
            if wire == 2:
                size, at = varint(data, at)
            else:
                size = {1: 8, 5: 4}[wire]
            value, at = data[at:at + size], at + size
        found.setdefault(key >> 3, []).append(value)
    return found


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def integers(values):
    """A repeated integer, packed or not."""
    out = []
    for value in values:
        if isinstance(value, int):
            out.append(signed(value))
            continue
        at = 0
        while at < len(value):
            number, at = varint(value, at)
            out.append(signed(number))
    return out


def numbers(values, letter):
    """A repeated float or double, packed or not."""
    data = b"".join(values)
    return list(struct.unpack(f"<{len(data) // struct.calcsize(letter)}{letter}", data))


def first(message, number, default=None):
    return message.get(number, [default])[0]


def text(message, number):
    return first(message, number, b"").decode()


# --- tensors
# Element types by their number in TensorProto.DataType: ONNX's name, mltc's (None: it has no such type),
# and the letter of `struct`.
DTYPES = {
    1: ("float", "f32", "f"), 2: ("uint8", "u8", "B"), 3: ("int8", "i8", "b"), 4: ("uint16", "u16", "H"),
    5: ("int16", None, "h"), 6: ("int32", "i32", "i"), 7: ("int64", "i64", "q"), 8: ("string", None, None),
    9: ("bool", "bool", "?"), 10: ("float16", "f16", "e"), 11: ("double", "f64", "d"), 12: ("uint32", "u32", "I"),
    13: ("uint64", None, "Q"), 14: ("complex64", None, None), 15: ("complex128", None, None),
    16: ("bfloat16", "bf16", "H"),
}
LETTERS = {name: letter for _, name, letter in DTYPES.values() if name}


def dtype_of(number):
    onnx, name, _ = DTYPES[number]
    if name is None:
        raise Unreadable(f"element type {onnx}")
    return name


@dataclass
class Tensor:
    name: str
    dtype: str
    shape: list
    values: list  # bf16: bit patterns


def elements(shape):
    count = 1
    for size in shape:
        count *= size
    return count


def typed_values(message, dtype):
    """The values of a tensor that are not in raw_data."""
    if dtype == "f32":
        return numbers(message.get(4, []), "f")
    if dtype == "f64":
        return numbers(message.get(10, []), "d")
    if dtype == "i64":
        return integers(message.get(7, []))
    if dtype == "u32":
        return integers(message.get(11, []))
    values = integers(message.get(5, []))
    if dtype == "f16":
        return list(struct.unpack(f"<{len(values)}e", struct.pack(f"<{len(values)}H", *values)))
    return values


def tensor(data):
    message = fields(data)
    dtype = dtype_of(first(message, 2))
    shape = integers(message.get(1, []))
    raw = first(message, 9)
    if raw is None:
        values = typed_values(message, dtype)
    else:
        values = list(struct.unpack(f"<{elements(shape)}{LETTERS[dtype]}", raw))
    return Tensor(text(message, 8), dtype, shape, values)


def packed(dtype, values):
    """The bytes of a tensor in memory."""
    return struct.pack(f"<{len(values)}{LETTERS[dtype]}", *values)


# --- graphs
@dataclass
class Node:
    op: str
    inputs: list
    outputs: list
    attributes: dict
    domain: str


@dataclass
class Graph:
    nodes: list
    constants: list
    inputs: dict   # name: element type, in order
    outputs: dict


FLOAT, INT, STRING, TENSOR, GRAPH, FLOATS, INTS, STRINGS = 1, 2, 3, 4, 5, 6, 7, 8


def attribute(data):
    message = fields(data)
    kind = first(message, 20, 0)
    readers = {
        FLOAT: lambda: struct.unpack("<f", first(message, 2, bytes(4)))[0],
        INT: lambda: signed(first(message, 3, 0)),
        STRING: lambda: text(message, 4),
        TENSOR: lambda: tensor(first(message, 5)),
        FLOATS: lambda: numbers(message.get(7, []), "f"),
        INTS: lambda: integers(message.get(8, [])),
        STRINGS: lambda: [s.decode() for s in message.get(9, [])],
    }
    # Control flow: whoever needs such an attribute has no rule here.
    return text(message, 1), readers[kind]() if kind in readers else None


def node(data):
    message = fields(data)
    attributes = dict(attribute(a) for a in message.get(5, []))
    return Node(text(message, 4), [n.decode() for n in message.get(1, [])],
                [n.decode() for n in message.get(2, [])], attributes, text(message, 7))


def named_type(data):
    """(name, element type) of a ValueInfoProto, which must be of a tensor."""
    message = fields(data)
    kinds = fields(first(message, 2, b""))
    if 1 not in kinds:
        raise Unreadable("sequences and optional values")
    return text(message, 1), dtype_of(first(fields(kinds[1][0]), 1))


def graph(data):
    message = fields(data)
    return Graph([node(n) for n in message.get(1, [])], [tensor(t) for t in message.get(5, [])],
                 dict(named_type(v) for v in message.get(11, [])), dict(named_type(v) for v in message.get(12, [])))


@dataclass
class Model:
    graph: Graph
    opset: int


def model(data):
    message = fields(data)
    opsets = {text(o, 1): first(o, 2, 1) for o in map(fields, message.get(8, []))}
    return Model(graph(first(message, 7)), opsets.get("", 1))
