"""Which tiles of matmuls keep their sums on the stack: loop_spills.py FILE.s

A line for each innermost loop of fused multiply-adds in a tile: how many it has, how many vectors it moves to or
from the stack, and its function. Sums belong in registers: a few moves are for an operand, one for each product
are not.
"""

import re
import sys

LEAST = 8  # multiply-adds of a loop over steps: those of edges have fewer
VECTOR_ON_STACK = re.compile(r"\b(vmov|vfmadd)\w*\s.*\(%rsp")


def functions(lines):
    name, body = None, []
    for line in lines:
        label = re.match(r"([A-Za-z_]\w*):", line)
        if label:
            if name:
                yield name, body
            name, body = label.group(1), []
        else:
            body.append(line)
    if name:
        yield name, body


def innermost(body):
    """First and last line of each loop that has none inside."""
    at = {line.split(":")[0]: i for i, line in enumerate(body) if re.match(r"\.L\w+:", line)}
    found = []
    for end, line in enumerate(body):
        jump = re.match(r"\s+j\w+\s+(\.L\w+)", line)
        if jump and at.get(jump.group(1), end) < end:
            begin = at[jump.group(1)]
            if not any(b >= begin for b, _ in found):
                found.append((begin, end))
    return found


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        for name, body in functions(f):
            if "_tile_" not in name:
                continue
            for begin, end in innermost(body):
                loop = body[begin:end + 1]
                products = sum("vfmadd" in line for line in loop)
                if products >= LEAST:
                    print(products, sum(bool(VECTOR_ON_STACK.search(line)) for line in loop), name)


main()
