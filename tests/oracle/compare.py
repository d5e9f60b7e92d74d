"""Compares the metrics of a trainer with what PyTorch has computed.

    python3 compare.py NAME.json METRICS.jsonl
"""
import json
import sys

TOLERANCE = 1e-4


def read(path):
    """{name: numbers in the order of the steps} of a trainer's metrics."""
    found = {}
    with open(path, encoding="utf-8") as f:
        for row in map(json.loads, f):
            for name, number in row.items():
                if "eval" in row:
                    name = "eval" if name == "loss" else "eval." + name
                found.setdefault(name, []).append(number)
    return found


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        want = json.load(f)
    got = read(sys.argv[2])
    failed = False
    for name, numbers in want["numbers"].items():
        if len(numbers) != len(got.get(name, [])) or not numbers:
            print(f"{name}: {len(got.get(name, []))} numbers, not {len(numbers)}")
            failed = True
            continue
        worst = max(abs(x - y) / abs(y) for x, y in zip(got[name], numbers))
        print(f"{name}: {len(numbers)} numbers, at most {worst:.1e} apart")
        near = want.get("tolerance", TOLERANCE)
        failed |= not all(abs(x - y) <= near * abs(y) for x, y in zip(got[name], numbers))  # nan is not
    sys.exit(failed)


if __name__ == "__main__":
    main()
