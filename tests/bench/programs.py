#!/usr/bin/env python3
"""What mltc and its trainers cost: compile time, size, start, memory, time of the passes.

    python3 tests/bench/programs.py --mltc build/bin/mltc --data DIR [--build build]

Medians of several; a table with the bars on stdout, every figure in results/programs.json. The exit
code is 1 when a bar is missed.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GRAPHS = {"digits_mlp": 1.5, "mnist_mlp": 1.5, "char_gpt": 5.0}  # seconds to compile
SIZE_BAR, START_BAR = 500 * 1024, 0.020


def timed(command):
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    elapsed = time.perf_counter() - begin
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return elapsed, done.stdout


def peak_bytes(command):
    """Peak resident bytes: the high-water mark of the process, read until it ends. (ru_maxrss would
    also count this interpreter, whose memory the child has before it becomes the trainer.)"""
    peak = 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as child:
        while child.poll() is None:
            try:
                with open(f"/proc/{child.pid}/status", encoding="utf-8") as f:
                    found = re.search(r"VmHWM:\s+(\d+)", f.read())
                if found and os.readlink(f"/proc/{child.pid}/exe") == os.path.realpath(command[0]):
                    peak = int(found.group(1)) * 1024
            except OSError:
                break
            time.sleep(0.002)
    return peak


def announced(text):
    """Bytes that the trainer says it uses: the plan, and data kept beside it."""
    plan = int(re.search(r"memory: (\d+) bytes", text).group(1))
    data = sum(int(n) for n in re.findall(r"(\d+) bytes beside the plan", text))
    return plan, data


def measure(mltc, graph, data, repeat, rows):
    with tempfile.TemporaryDirectory() as tmp:
        exe = os.path.join(tmp, graph)
        source = os.path.join(ROOT, "examples", graph + ".graph")
        times = [timed([mltc, source, "--no-cache", "-o", exe])[0] for _ in range(repeat)]
        row(rows, f"{graph} compile s", statistics.median(times), GRAPHS[graph])
        row(rows, f"{graph} bytes, stripped", os.path.getsize(exe), SIZE_BAR)
        starts = [timed([exe, "info"])[0] for _ in range(max(repeat, 5))]
        row(rows, f"{graph} start (info) s", statistics.median(starts), START_BAR)
        run = [exe, "train", "--no-save", "--threads=2", "--data-dir=" + data]
        if graph == "char_gpt":
            run.append("--steps=20")
        _, text = timed(run)
        plan, beside = announced(text)
        peak = peak_bytes(run)
        row(rows, f"{graph} peak resident bytes", peak, (plan + beside) * 1.1 + 4e6)
        rows.append({"name": f"{graph} plan bytes", "value": plan, "beside": beside})


def passes(build, rows):
    binary = os.path.join(build, "bin", "test_passes_scale")
    if not os.path.exists(binary):
        return
    _, text = timed([binary])
    lines = text.splitlines()
    nodes = re.findall(r"(\d+) >", lines[0])
    sums = [0.0] * len(nodes)
    for line in lines[1:]:
        for i, ms in enumerate(re.findall(r"([\d.]+) ms", line)[:len(nodes)]):
            sums[i] += float(ms)
    for n, ms in zip(nodes, sums):
        row(rows, f"all passes, {n} nodes s", ms / 1000, 3.0)


def row(rows, name, value, bar):
    rows.append({"name": name, "value": value, "bar": bar, "met": value <= bar})
    shown = f"{value:,.0f}" if value > 1000 else f"{value:.4f}"
    print(f"{name:44} {shown:>14} {bar:>16,.3f}  {'ok' if value <= bar else 'MISSED'}", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--mltc", default=os.path.join(ROOT, "build", "bin", "mltc"))
    p.add_argument("--build", default=os.path.join(ROOT, "build"))
    p.add_argument("--data", required=True, help="folder with MNIST and tinyshakespeare.txt")
    p.add_argument("--repeat", type=int, default=5)
    p.add_argument("--out", default=os.path.join(ROOT, "tests/bench/results/programs.json"))
    o = p.parse_args()
    rows = []
    print(f"{'':44} {'measured':>14} {'at most':>16}")
    for graph in GRAPHS:
        measure(o.mltc, graph, os.path.abspath(o.data), o.repeat, rows)
    passes(o.build, rows)
    os.makedirs(os.path.dirname(o.out), exist_ok=True)
    with open(o.out, "w", encoding="utf-8") as f:
        json.dump({"cores": os.cpu_count(), "load": os.getloadavg()[0], "rows": rows}, f, indent=1)
    sys.exit(any(not r.get("met", True) for r in rows))


if __name__ == "__main__":
    main()
