"""Runs mltc-pack and looks at what it wrote, knowing nothing of how it was made."""

import bisect
import re
import resource
import subprocess


def read(path):
    with open(path, encoding="utf-8") as f:
        names = f.readline().strip().split(",")
        return [dict(zip(names, line.strip().split(","))) for line in f if line.strip()]


def numbers(rows, *names):
    return [tuple(int(r[n]) for n in names) for r in rows]


def bound_of(intervals):
    """Most bytes that are live at one time; ends come before starts."""
    events = sorted([(upper, -size) for _, upper, size in intervals]
                    + [(lower, size) for lower, _, size in intervals])
    live = most = 0
    for _, size in events:
        live += size
        most = max(most, live)
    return most


def clashes(placed):
    """How many intervals start where another that is live lies."""
    events = sorted([(upper, 0, i) for i, (_, upper, _, _) in enumerate(placed)]
                    + [(lower, 1, i) for i, (lower, _, _, _) in enumerate(placed)])
    live, bad = [], 0  # (offset, end), by offset
    for _, starts, i in events:
        _, _, size, offset = placed[i]
        here = (offset, offset + size)
        at = bisect.bisect_left(live, here)
        if not starts:
            del live[at]
            continue
        bad += at > 0 and live[at - 1][1] > offset
        bad += at < len(live) and live[at][0] < offset + size
        live.insert(at, here)
    return bad


def height_of(before, after):
    """The height of what mltc-pack wrote for `before`. Raises where it is no packing of it."""
    same = ("id", "lower", "upper", "size")
    if [[r[n] for n in same] for r in read(before)] != [[r[n] for n in same] for r in read(after)]:
        raise ValueError(f"{after} has other intervals than {before}")
    placed = [p for p in numbers(read(after), "lower", "upper", "size", "offset") if p[2]]
    bad = clashes(placed) + sum(offset < 0 for *_, offset in placed)
    if bad:
        raise ValueError(f"{after}: {bad} intervals overlap")
    return max((size + offset for *_, size, offset in placed), default=0)


def cpu_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def pack(program, before, after, *options):
    """One run: what it says, checked, and the seconds of CPU that it took (reading and writing, too)."""
    start = cpu_of_children()
    run = subprocess.run([program, before, "-o", after, *options], stderr=subprocess.PIPE, text=True,
                         check=False)
    cpu = cpu_of_children() - start
    if run.returncode not in (0, 3):
        raise ValueError(f"{program} {before}: exit code {run.returncode}: {run.stderr}")
    said = re.match(r"(\d+) buffers, bound (\d+), height (\d+), ratio \S+, \S+ s, (\d+) steps", run.stderr)
    buffers, bound, height, steps = (int(n) for n in said.groups())
    if bound != bound_of(numbers(read(before), "lower", "upper", "size")):
        raise ValueError(f"{before}: the bound is not {bound}")
    if height != height_of(before, after):
        raise ValueError(f"{before}: the height is not {height}")
    return {"buffers": buffers, "bound": bound, "height": height, "ratio": height / bound if bound else 1,
            "steps": steps, "cpu_s": cpu, "exit_code": run.returncode}
