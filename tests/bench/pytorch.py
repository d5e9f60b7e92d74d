"""What benchmarks beside PyTorch share: the Python that has it, their options, and rows of earlier runs."""

import os

import machine

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PYTHON = os.environ.get("MLTC_TORCH_PYTHON", "python3")
# What keeps PyTorch, and the libraries that multiply for it, from AVX-512.
AVX2_ONLY = {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}
ON_AVX2 = ["--target=cpu:x86-64-v3"]  # what keeps mltc's programs from it


def add_options(parser, kinds):
    """`kinds`: the parser, or a group of it, that takes --avx2."""
    parser.add_argument("--mltc", default=os.path.join(ROOT, "build", "bin", "mltc"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3, help="runs of each side; medians count")
    parser.add_argument("--compile", action="store_true", help="also PyTorch with torch.compile")
    kinds.add_argument("--avx2", action="store_true", help="neither side uses AVX-512, though this machine has it")
    parser.add_argument("--out", help="the file of results (default: that of this kind of machine)")


def settle(options, bench):
    """After parsing: what the options do not say, and the environment of the peers."""
    options.out = options.out or machine.result_path(bench, options.avx2)
    options.mltc = os.path.abspath(options.mltc)
    os.environ.update(AVX2_ONLY if options.avx2 else {})


def rows_to_keep(old, head, measured, key):
    """Of the earlier file `old`, if it is of the same PyTorch on such a machine: rows whose `key` is of none of `measured`."""
    if any(old.get(k) != head[k] for k in ("version", "torch", "threads", "cpu")):
        return []
    new = {key(row) for row in measured}
    return [row for row in old["rows"] if key(row) not in new]
