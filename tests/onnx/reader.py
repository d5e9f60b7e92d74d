"""Turns a test of ONNX into a function of IR, and the bytes of its inputs and of the results it must have."""
import re
from dataclasses import dataclass
from pathlib import Path

# Those called rules_... for what they put into RULES.
import protobuf
import rules_images
import rules_index
import rules_pointwise
import rules_reduce
import rules_sampling
import rules_shape
import rules_train
from ir_text import Function, Value
from protobuf import Unreadable
from rules import RULES, Call

# What there are no rules for.
NO_RULE = {
    "control flow": ["If", "Loop", "Scan"],
    "sequences and optional values": [
        "ConcatFromSequence", "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert",
        "SequenceLength", "SequenceMap", "SplitToSequence", "Optional", "OptionalGetElement", "OptionalHasElement"],
    "shapes that depend on data": ["Compress", "NonMaxSuppression", "NonZero", "Unique"],
    "no such operator: inverse trigonometric functions": ["Acos", "Asin", "Atan"],
    "random numbers of another generator": ["Bernoulli", "RandomUniformLike"],
    "no such operator: Fourier transforms and audio": ["DFT", "STFT", "MelWeightMatrix"],
    "text": ["TfIdfVectorizer"],
    "no such operator: arithmetic of quantised types": ["DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul"],
    "no such operator: determinants": ["Det"],
}
WHY_NOT = {op: why for why, ops in NO_RULE.items() for op in ops}


@dataclass
class Test:
    name: str      # an identifier
    operator: str
    text: str      # of the IR
    data: bytes    # inputs, then results


class Wrong(Exception):
    """The rules gave a result of another type than the test has."""


def operator_of(graph, name):
    """What a test is of: its one operator, or what the graph's functions have been written out from."""
    ops = {n.op for n in graph.nodes if n.op != "Constant"} or {"Constant"}
    if name.endswith("_expanded"):
        return "functions written out"
    return ops.pop() if len(ops) == 1 else "several"


def read_tensors(folder, kind):
    files = sorted(folder.glob(f"{kind}_*.pb"), key=lambda p: int(p.stem.split("_")[1]))
    return [protobuf.tensor(p.read_bytes()) for p in files]


def typed(t, dtype):
    """bf16 is in the files as u16, for numpy had no such type."""
    if dtype == "bf16" and t.dtype == "u16":
        t.dtype = dtype
    return t


def leaves(f, graph, tensors):
    """{name: value} of inputs and constants."""
    values = {t.name: f.constant(t) for t in graph.constants}
    names = [n for n in graph.inputs if n not in values]
    if len(names) != len(tensors):
        names = graph.inputs
    for name, t in zip(names, tensors):
        values[name] = f.input(typed(t, graph.inputs[name]))
    return values


def apply(f, node, opset, values):
    if node.op not in RULES:
        raise Unreadable(WHY_NOT[node.op])  # another operator is one that nobody has thought of
    call = Call(node.op, opset, node.attributes, len(node.outputs), values)
    inputs = [values[name] if name else None for name in node.inputs]
    made = RULES[node.op](f, call, *inputs)
    made = [made] if isinstance(made, Value) else made
    for name, value in zip(node.outputs, made):
        if name:
            values[name] = value


def put_results(f, graph, values, wanted):
    for i, (name, want) in enumerate(zip(graph.outputs, wanted)):
        got = values[name]
        typed(want, graph.outputs[name])
        if (got.dtype, got.shape) != (want.dtype, want.shape):
            raise Wrong(f"result {name} is {got.dtype}{got.shape}, not {want.dtype}{want.shape}")
        f.result(f"{re.sub('[^A-Za-z0-9_]', '_', name)}.{i}", got)


def read(folder: Path, name):
    """The test in a folder. Unreadable says why there is none."""
    model = protobuf.model((folder / "model.onnx").read_bytes())
    data = folder / "test_data_set_0"
    f = Function(name)
    values = leaves(f, model.graph, read_tensors(data, "input"))
    for node in model.graph.nodes:
        apply(f, node, model.opset, values)
    wanted = read_tensors(data, "output")
    put_results(f, model.graph, values, wanted)
    results = b"".join(protobuf.packed(t.dtype, t.values) for t in wanted)
    return Test(name, operator_of(model.graph, name), f.text(), b"".join(f.data) + results)
