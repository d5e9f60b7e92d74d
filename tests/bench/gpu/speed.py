"""Times of steps and kernels, beside PyTorch, JAX and cuBLAS in the same run.

Peers are processes that keep their network: they start together, say when they are ready, and are
then asked for a time in turn with the trainer. Their batches lie on the device; the trainer reads its
own from files.
"""

import json
import os
import re
import select
import statistics
import subprocess
import sys
import tempfile
import time

from work import Failed, ask_device, end_group, last_words

TURNS = 3
SECONDS = 0.5  # of one measurement, about
READY, MEASURED = 150, 60  # seconds that a peer may take
PEERS = {"eager": ("PyTorch eager", "peer_torch.py"), "compiled": ("PyTorch compiled", "peer_torch.py"),
         "jit": ("JAX jit", "peer_jax.py")}
CUBLAS = {"cuBLAS": ("peer_torch.py", "eager")}
ROOM = 60  # GiB of a device that has room for several large networks at once


class Peer:
    """A process that answers lines with lines of JSON."""

    def __init__(self, name, script, style, network):
        folder = os.environ.get("MLTC_GPU_PEERS", os.path.dirname(os.path.abspath(__file__)))
        command = [os.environ.get("MLTC_PEER_PYTHON", sys.executable), os.path.join(folder, script),
                   style, json.dumps(network)]
        self.name, self.buffer, self.errors = name, b"", tempfile.TemporaryFile()
        env = dict(os.environ, XLA_PYTHON_CLIENT_PREALLOCATE="false", PYTHONUNBUFFERED="1")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors, env=env, start_new_session=True)

    def close(self):
        end_group(self.process)
        for stream in (self.process.stdin, self.process.stdout, self.errors):
            stream.close()

    def words(self):
        self.errors.seek(0)
        return last_words(self.errors.read().decode(errors="replace"), 3) or "it said nothing"

    def answer(self, limit):
        """Its next line; Failed when it ends or takes too long."""
        end = time.monotonic() + limit
        while b"\n" not in self.buffer:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise Failed(f"no answer after {limit:.0f} s")
            more = os.read(self.process.stdout.fileno(), 65536)
            if not more:
                raise Failed(self.words())
            self.buffer += more
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)

    def measure(self, limit):
        try:
            self.process.stdin.write(b"measure\n")
            self.process.stdin.flush()
        except OSError as e:
            raise Failed(self.words()) from e
        return self.answer(limit)


class Peers:
    """Those of one network. What is not there or fails is in `missing`, with its words."""

    def __init__(self, kinds, network, clock):
        self.clock, self.missing, self.versions = clock, {}, {}
        self.running = {name: Peer(name, *how, network) for name, how in kinds.items()}
        end = time.monotonic() + clock.limit(READY)
        for name in list(self.running):
            hello = self.ask(name, lambda p: p.answer(max(1, end - time.monotonic())))
            if hello and "absent" in hello:
                self.drop(name, hello["absent"])
            elif hello:
                self.versions[name] = hello["version"]

    def drop(self, name, why):
        self.running.pop(name).close()
        self.missing[name] = why

    def ask(self, name, question):
        try:
            return question(self.running[name])
        except (Failed, ValueError, KeyError) as e:
            self.drop(name, str(e))
            return None

    def measure(self):
        """name -> answer, of those that are still there."""
        answers = {}
        for name in list(self.running):
            answer = self.ask(name, lambda p: p.measure(self.clock.limit(MEASURED)))
            if answer:
                answers[name] = answer
        return answers

    def close(self):
        for p in self.running.values():
            p.close()


# --- steps

def step_us(p, steps):
    """Mean time of the second half of so many steps, by the log's clock."""
    p.run("gpu", *p.training(steps), "--no-save", "--metrics=speed.jsonl", f"--log-every={steps // 2}")
    at = {r["step"]: r["time"] for r in p.metrics("speed") if "time" in r}
    return (at[steps] - at[steps // 2]) / (steps - steps // 2) * 1e6


def enough_steps(p, seconds):
    first = step_us(p, 8)
    return 2 * min(10000, max(3, int(seconds * 1e6 / max(first, 1))))


def take_turns(p, peers, steps):
    """The trainer's times, and peer -> its times."""
    ours, theirs = [], {}
    try:
        for _ in range(TURNS):
            ours.append(step_us(p, steps))
            for name, answer in peers.measure().items():
                theirs.setdefault(name, []).append(answer["step_us"])
    finally:
        peers.close()
    return ours, theirs


def has_room():
    """For several large networks at once."""
    mib = ask_device(["memory.total"])
    return bool(mib) and mib[0].isdigit() and int(mib[0]) >= ROOM * 1024


def steps_beside_peers(p, seconds, styles, versions):
    network = {"precision": p.facts.get("precision", "f32"), **p.facts["network"]}
    steps, ours = enough_steps(p, seconds), []
    row = {"precision": network["precision"], "steps": steps, "missing": {}, "peers": {}}
    wanted = {PEERS[style][0]: (PEERS[style][1], style) for style in styles}
    together = p.facts["kind"] != "large" or has_room()
    for kinds in [wanted] if together else [{name: how} for name, how in wanted.items()]:
        peers = Peers(kinds, network, p.clock)
        row["missing"].update(peers.missing)
        if ours and not peers.running:
            continue
        mine, theirs = take_turns(p, peers, steps)
        for name, runs in theirs.items():
            median = statistics.median(runs)
            row["peers"][name] = {"step_us": median, "runs_us": runs,
                                  "ratio": statistics.median(mine) / median}
        row["missing"].update(peers.missing)
        versions.update(peers.versions)
        ours += mine
    row.update(step_us=statistics.median(ours), runs_us=ours)
    if "PyTorch eager" in row["peers"]:
        row["met"] = row["peers"]["PyTorch eager"]["ratio"] <= 1
    return row


def steps_alone(p, seconds):
    steps = enough_steps(p, seconds)
    runs = [step_us(p, steps) for _ in range(TURNS)]
    return {"step_us": statistics.median(runs), "runs_us": runs, "steps": steps}


# --- kernels

def kernel_times(p, steps=24):
    p.run("gpu", *p.training(steps), "--no-save", "--kernel-times=kernels.json")
    with open(p.path("kernels.json"), encoding="utf-8") as f:
        functions = json.load(f)["functions"]
    return next(f for f in functions if f["name"] == "step")


def each_kernel(p):
    step = kernel_times(p)
    runs = step["runs"]
    total = sum(k["total_us"] for k in step["kernels"])
    kernels = [{"name": k["name"], "ops": k["ops"], "where": k["where"],
                "launches": k["launches"] / runs, "mean_us": k["mean_us"], "min_us": k["min_us"],
                "share": k["total_us"] / total} for k in step["kernels"]]
    kernels.sort(key=lambda k: -k["share"])
    return {"runs": runs, "kernels_us": total / runs, "kernels": kernels}


def matmul_us(step, name):
    """All phases of the product that has this name."""
    phases = [k["mean_us"] for k in step["kernels"] if re.fullmatch(rf"matmul_{name}_\d+", k["name"])]
    if not phases:
        raise Failed(f"no kernel matmul_{name}: there are " + ", ".join(k["name"] for k in step["kernels"]))
    return sum(phases)


def matmuls(p, versions):
    shapes = p.facts["shapes"]
    ours, theirs = {name: [] for name in shapes}, {}
    network = {"model": "matmuls", "shapes": shapes, "precision": p.facts["precision"]}
    peers = Peers(CUBLAS, network, p.clock)
    try:
        for _ in range(TURNS):
            step = kernel_times(p)
            for name in shapes:
                ours[name].append(matmul_us(step, name))
            for answer in peers.measure().values():
                for name, us in answer["us"].items():
                    theirs.setdefault(name, []).append(us)
    finally:
        peers.close()
    versions.update(peers.versions)
    return {"precision": p.facts["precision"], "missing": peers.missing,
            "products": {name: product_row(name, shapes[name], ours[name], theirs) for name in shapes}}


def product_row(name, shape, ours, theirs):
    m, n, k, ta, tb = shape
    us = statistics.median(ours)
    row = {"m": m, "n": n, "k": k, "ta": ta, "tb": tb, "us": us,
           "tflops": 2 * m * n * k / max(us, 1e-3) / 1e6}
    if name in theirs:
        median = statistics.median(theirs[name])
        row["cuBLAS"] = {"us": median, "ratio": us / median}
    return row


def steps_of(report, programs, seconds, styles, versions):
    for p in programs:
        if "network" in p.facts:
            report.step(p.name, "time of a step beside peers", steps_beside_peers, p, seconds, styles,
                        versions)
        elif p.facts["kind"] == "example":
            report.step(p.name, "time of a step", steps_alone, p, seconds)


def try_all(report, programs, styles, small):
    """Versions of the peers that were there."""
    versions = {}
    for p in programs:
        if p.facts["kind"] in ("example", "large"):
            report.step(p.name, "time of each kernel", each_kernel, p)
        elif p.facts["kind"] == "matmuls":
            report.step(p.name, "matmuls beside cuBLAS", matmuls, p, versions)
    steps_of(report, programs, SECONDS / 20 if small else SECONDS, styles, versions)
    return versions
