"""Runs ONNX's operator tests (Debian's libonnx-testdata) on mltc and writes the table of what passed.

    python3 tests/onnx/run.py RUN_IR TARGET SCRATCH TABLE
    python3 tests/onnx/run.py --show FOLDER        the IR of one test

RUN_IR is the program of run_ir.c, TARGET what it compiles for, SCRATCH an empty folder. Exit code 1 when
a test failed.
"""
import subprocess
import sys
import textwrap
from collections import defaultdict
from pathlib import Path

import reader
from protobuf import Unreadable

DATA = Path("/usr/share/libonnx-testdata/data")
FOLDERS = ["node", "pytorch-converted", "pytorch-operator", "simple"]
TOLERANCE = 1e-5  # of the largest element; run_ir.c also holds ONNX's own tolerance, of each element

# Tests whose expected numbers are not what their models say.
NOT_MEANT = {
    "adam_multiple": "results of epsilon = 0.01, which the model does not say",
    "cast_FLOAT_to_BFLOAT16": "bf16 by cutting bits off, where mltc rounds to the nearest",
    "castlike_FLOAT_to_BFLOAT16": "bf16 by cutting bits off, where mltc rounds to the nearest",
    "castlike_FLOAT_to_BFLOAT16_expanded": "bf16 by cutting bits off, where mltc rounds to the nearest",
    "dynamicquantizelinear_expanded": "a tie of f32 arithmetic, which the double precision oracle does not meet",
}
# Tests whose expected results have fewer digits: computed with 3.1415 for pi, or written down with four.
LOOSE = {f"{window}window{form}{kind}": 1e-4 for window in ("blackman", "hamming", "hann")
         for form in ("", "_symmetric") for kind in ("", "_expanded")}
LOOSE |= {"roialign_aligned_false": 1e-4, "roialign_aligned_true": 1e-4}


def name_of(folder):
    return folder.name.removeprefix("test_").replace("-", "_")


def read_all():
    """Tests, and {reason: names} of those that there are none of."""
    tests, left_out, names = [], defaultdict(list), set()
    for folder in [f for group in FOLDERS for f in sorted((DATA / group).iterdir())]:
        name = name_of(folder)
        assert name not in names, f"two tests are called {name}"
        names.add(name)
        try:
            if name in NOT_MEANT:
                raise Unreadable(NOT_MEANT[name])
            tests.append(reader.read(folder, name))
        except Unreadable as why:
            left_out[str(why)].append(name)
    return tests, left_out


def run(program, target, scratch, tests):
    """{name: "ok", or what is wrong}."""
    for test in tests:
        (scratch / f"{test.name}.ir").write_text(test.text)
        (scratch / f"{test.name}.data").write_bytes(test.data)
    names = "".join(f"{t.name} {LOOSE.get(t.name, TOLERANCE)}\n" for t in tests)
    (scratch / "names").write_text(names)
    done = subprocess.run([program, target, scratch], stdout=subprocess.PIPE, text=True, check=False)
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    if done.returncode:
        print(done.stdout)
        sys.exit(f"{program} ended with code {done.returncode}")
    return {t.name: said.get(t.name, "did not run") for t in tests}


# --- the table
HEAD = """# ONNX's operator tests

Debian's libonnx-testdata 1.12: small models with inputs and the outputs they must have, here without `test_` in
their names. `tests/onnx` says them in mltc's IR, by rules as a graph file could say them; they run in the
interpreter and as compiled kernels. Integers and truth values are exact; floats are within 1e-5 of the largest
element (1e-4 where the results have fewer digits: window functions, computed with 3.1415 for pi, and roialign) and
within ONNX's tolerance, 1e-3, of each. `tests/scripts/onnx.sh` holds this file, and

    mkdir /tmp/onnx && python3 tests/onnx/run.py build/bin/onnx-run-ir cpu /tmp/onnx tests/onnx/table.md

writes it. "Functions written out" are models that have an operator's definition by simpler ones in its place.

| passed | not covered | failed |
|---|---|---|
| {passed} | {left_out} | {failed} |
"""


def entry(what, names):
    """**what** (n): names, in lines of bearable length."""
    words = f"**{what}** ({len(names)}):".split(" ") + sorted(names)
    return "\n".join(textwrap.wrap(" ".join(words), 118, break_long_words=False, break_on_hyphens=False)) + "\n"


def in_order(groups):
    return sorted(groups.items(), key=lambda item: item[0].lower())


def table(tests, said, left_out):
    passed = defaultdict(list)
    for test in tests:
        if said[test.name] == "ok":
            passed[test.operator].append(test.name)
    failed = {name: why for name, why in said.items() if why != "ok"}
    rows = [HEAD.format(passed=len(tests) - len(failed), left_out=sum(map(len, left_out.values())), failed=len(failed))]
    rows += [f"- **failed** {name}: {why}" for name, why in sorted(failed.items())]
    rows += ["## Not covered, and why\n"] + [entry(*item) for item in in_order(left_out)]
    rows += ["## Passed, by operator\n"] + [entry(*item) for item in in_order(passed)]
    return "\n".join(rows), failed


def main():
    if sys.argv[1] == "--show":
        folder = Path(sys.argv[2])
        print(reader.read(folder, name_of(folder)).text, end="")
        return
    program, target, scratch, out = sys.argv[1:]
    tests, left_out = read_all()
    text, failed = table(tests, run(program, target, Path(scratch), tests), left_out)
    Path(out).write_text(text)
    for name, why in failed.items():
        print(f"{name}: {why}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
