"""Programs on the GPU: their kernels, their losses beside the CPU's, the same bits."""

import filecmp
import json
import math
import os
import shutil
import tempfile

from work import Failed, run

TOLERANCE = 1e-5  # of losses, relative to the CPU's
STEPS, FIRST = 20, 10
WHOLE = "whole-"  # runs of all steps, made once


class Program:
    """NAME-gpu and NAME-cpu of the folder; on the stand-in driver NAME.kernels names libraries."""

    def __init__(self, folder, facts, clock):
        self.folder, self.name, self.facts, self.clock = folder, facts["name"], facts, clock
        self.work = tempfile.mkdtemp(prefix="check-gpu-")
        self.env = dict(os.environ, TMPDIR=self.work)
        kernels = os.path.join(folder, self.name + ".kernels")
        if os.path.exists(kernels):
            with open(kernels, encoding="utf-8") as f:
                self.env["MLTC_STANDIN_KERNELS"] = f.read().strip()

    def close(self):
        shutil.rmtree(self.work, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.work, name)

    def command(self, which, *arguments):
        return [os.path.join(self.folder, f"{self.name}-{which}"), *arguments]

    def run(self, which, *arguments):
        what = f"{self.name}-{which} {' '.join(arguments)}"
        return run(self.command(which, *arguments), what, self.clock, self.work, self.env)

    def training(self, steps):
        return ["train", f"--data-dir={self.folder}/data", f"--check_steps={steps}", "--quiet"]

    def train(self, which, out, *more, steps=STEPS):
        self.run(which, *self.training(steps), f"--save={out}.st", "--no-times",
                 f"--metrics={out}.jsonl", "--log-every=1", *more)

    def trained(self, which):
        """A whole run, made when it is first asked for."""
        out = WHOLE + which
        if not os.path.exists(self.path(out + ".st")):
            self.train(which, out)
        return out

    def metrics(self, out):
        with open(self.path(out + ".jsonl"), encoding="utf-8") as f:
            return [json.loads(line) for line in f]

    def losses(self, out):
        return [r["loss"] for r in self.metrics(out) if "loss" in r]

    def must_be_same(self, one, other):
        for suffix in (".st", ".jsonl"):
            if not filecmp.cmp(self.path(one + suffix), self.path(other + suffix), shallow=False):
                raise Failed(f"'{one}{suffix}' and '{other}{suffix}' differ")
        for out in (one, other):
            if not out.startswith(WHOLE):  # nobody reads it again; of large networks it is gigabytes
                os.remove(self.path(out + ".st"))


def compare(ours, theirs):
    if len(ours) != len(theirs) or not ours:
        raise Failed(f"{len(ours)} losses, not {len(theirs)}")
    if None in ours or None in theirs:
        raise Failed("a loss is not finite")
    worst = max(abs(x - y) / max(abs(y), 1e-30) for x, y in zip(ours, theirs))
    if not worst <= TOLERANCE:
        raise Failed(f"losses differ by {worst:.3g} relative, allowed are {TOLERANCE:.0e}")
    return worst


def kernels(p):
    out = p.run("gpu", "check")
    # NAME FLOPS ERROR ok
    checked = [line.split() for line in out.splitlines() if " ok" in line]
    errors = [float(w[2]) for w in checked if len(w) > 3 and w[1].isdigit()]
    return {"kernels": len(errors), "worst_relative": max(errors, default=None)}


def against_cpu(p):
    cpu, gpu = p.trained("cpu"), p.trained("gpu")
    return {"worst_relative": compare(p.losses(gpu), p.losses(cpu))}


def same_bits(p):
    once = p.trained("gpu")
    p.train("gpu", "again")
    p.train("gpu", "plain", "--no-cuda-graph")
    p.must_be_same(once, "again")
    p.must_be_same(once, "plain")


def resume(p):
    cpu, gpu = p.trained("cpu"), p.trained("gpu")
    for first, then in (("cpu", "gpu"), ("gpu", "cpu"), ("gpu", "gpu")):
        out = f"{first}-{then}"
        p.train(first, out, steps=FIRST)
        p.train(then, out, "--resume")
        if first == then:
            p.must_be_same(out, gpu)
        else:
            compare(p.losses(out), p.losses(cpu))


def trains(p):
    """A network too large for the CPU, or that rounds as no CPU does: its losses fall."""
    losses = p.losses(p.trained("gpu"))
    if len(losses) != STEPS or not all(isinstance(x, float) and math.isfinite(x) for x in losses):
        raise Failed(f"losses are {losses}")
    if not losses[-1] < losses[0]:
        raise Failed(f"the loss does not fall: from {losses[0]:.6g} to {losses[-1]:.6g}")
    return {"first_loss": losses[0], "last_loss": losses[-1]}


def same_twice(p):
    once = p.trained("gpu")
    p.train("gpu", "plain", "--no-cuda-graph")
    p.must_be_same(once, "plain")


STEPS_OF = {
    "example": [("kernels against plain references", kernels),
                ("losses against the CPU's", against_cpu),
                ("same bits: twice, without a graph", same_bits),
                ("resume, also across targets", resume)],
    "kernels": [("kernels against plain references", kernels)],
    "precise": [("kernels against plain references", kernels), ("trains: the loss falls", trains),
                ("same bits: with and without a graph", same_twice)],
    "large": [("trains: the loss falls", trains), ("same bits: with and without a graph", same_twice)],
    "matmuls": [],
}


def tasks(programs):
    """Of Report.beside: a program each, and first the large ones, one after the other: a device may
    have no room for two."""
    large = [p for p in programs if p.facts["kind"] == "large"]
    groups = [large] + [[p] for p in programs if p not in large]
    return [[(p.name, what, step, p) for p in group for what, step in STEPS_OF[p.facts["kind"]]]
            for group in groups]
