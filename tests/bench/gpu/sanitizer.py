"""compute-sanitizer on small cases, where the machine has it and it runs there."""

import glob
import os
import re
import shutil

from work import Absent, Clock, Failed, TooSlow, absent, call, ended_how, last_words

TOOLS = ["memcheck", "racecheck", "synccheck", "initcheck"]
LIMIT, TOGETHER = 60, 120  # seconds of one case, of all
FOUND = 99  # the exit code that it is told to use


def find():
    places = [os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", ""), "/usr/local/cuda",
              *sorted(glob.glob("/usr/local/cuda-*"), reverse=True)]
    path = os.pathsep.join([os.environ.get("PATH", ""), *(p + "/bin" for p in places if p)])
    return shutil.which("compute-sanitizer", path=path)


def check(program, tool, binary, clock, arguments):
    if clock.left() <= 0:
        raise Absent(f"the sanitizer's {TOGETHER} s are over")
    command = [binary, "--tool", tool, "--error-exitcode", str(FOUND),
               *program.command("gpu", *arguments)]
    try:
        code, out = call(command, f"{tool} of {program.name}", clock, program.work, program.env)
    except TooSlow as e: # it slows programs down a hundredfold: that says nothing about them
        raise Absent(str(e)) from e
    summary = re.findall(r"^=+ *(\S* SUMMARY: .*)$", out, flags=re.M)
    if code == FOUND or summary and code:
        raise Failed(f"{tool} of {program.name}: {ended_how(code)}\n{last_words(out, 30)}")
    if not summary: # it refuses the device, or the driver
        raise Absent("it does not run here: " + last_words(out, 2).replace("\n", " "))
    return {"summary": summary[-1]}


def cases(programs):
    """Kernels of a random program one by one, and a step of the smallest and of GPT's network."""
    kinds = {p.facts["kind"]: p for p in reversed(programs)}
    if "kernels" in kinds:
        yield kinds["kernels"], ["check"]
    for p in programs:
        if p.name in ("digits_mlp", "char_gpt"):
            yield p, [*p.training(1), "--no-save", "--no-cuda-graph"]


def try_all(report, programs, jobs):
    binary, clock = find(), Clock(TOGETHER, min(LIMIT, report.clock.command), report.clock)
    if not binary:
        report.step("all", "compute-sanitizer", absent, "it is not there")
        return
    report.beside([[(program.name, f"compute-sanitizer {tool}", check, program, tool, binary, clock,
                     arguments)] for program, arguments in cases(programs) for tool in TOOLS], jobs)
