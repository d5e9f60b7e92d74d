#!/usr/bin/env python3
"""Makes what check_gpu.py runs; called by scripts/check-gpu, on a machine that needs no GPU.

    prepare.py FOLDER --mltc PATH --tools DIR --target cuda:sm_80,sm_90a --data DIR [--small]

FOLDER gets programs.json, which says what there is, the programs, their data, and what the device
wrappers must compute. With --small the networks are small, and NAME-kept has the kernels as text
(KEPT/wrappers as libraries): for machines that only pretend to have a GPU.
"""

import argparse
import json
import os
import platform
import random
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
STEPS = 20

MNIST = ["train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz",
         "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"]
EXAMPLES = {"digits_mlp": [], "mnist_mlp": MNIST, "mnist_cnn": MNIST, "char_gpt": ["tinyshakespeare.txt"]}
SEEDS_OF_A_PROGRAM, RANDOM_PROGRAMS = 8, 5

GPT2 = {"B": 8, "T": 1024, "C": 768, "H": 12, "L": 12, "V": 50257}
SMALL_GPT2 = {"B": 2, "T": 20, "C": 16, "H": 2, "L": 1, "V": 300}
CHAR_GPT = {"B": 12, "T": 64, "C": 128, "H": 4, "L": 4, "V": 65}
SMALL_CHAR_GPT = {"B": 2, "T": 40, "C": 32, "H": 4, "L": 2, "V": 65}

# name: m, n, k, whether a and b are transposed: the products of a step of GPT-2 124M, forward and
# backward, by what they compute.
MATMULS = {"qkv": (8192, 2304, 768, False, False), "out": (8192, 768, 768, False, False),
           "up": (8192, 3072, 768, False, False), "down": (8192, 768, 3072, False, False),
           "logits": (8192, 50257, 768, False, True), "d_up": (8192, 768, 3072, False, True),
           "d_up_w": (768, 3072, 8192, True, False), "d_logits": (8192, 768, 50257, False, False),
           "d_wte": (50257, 768, 8192, True, False)}


def precisions(mltc):
    """Those of matmuls beside f32 that the compiler offers."""
    text = subprocess.run([mltc, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return ["tf32", "bf16"] if "--precision=" in text else []


class Maker:
    def __init__(self, options):
        self.o = options
        self.programs = []
        self.precisions = ["f32", *precisions(options.mltc)]
        os.makedirs(self.path("data"), exist_ok=True)

    def path(self, name):
        return os.path.join(self.o.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)

    def compile(self, source, out, target, *options):
        kept = [f"--keep={out}-kept"] if self.o.small and target != "cpu" else []
        machine = "cpu:x86-64-v3" if platform.machine() == "x86_64" else "cpu"
        command = [self.o.mltc, source, *options, *kept, "-o", out,
                   f"--target={machine if target == 'cpu' else target}"]
        done = subprocess.run(command, cwd=self.o.folder, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            sys.exit(f"{done.stderr}check-gpu: {source} does not compile for {target}")

    def add_all(self, name, kind, source, *options, **facts):
        """In each precision: NAME, NAME_tf32, ... A rehearsal has others elsewhere (add_precise)."""
        for p in self.precisions[:1] if self.o.small else self.precisions:
            more, suffix = ([], "") if p == "f32" else ([f"--precision={p}"], "_" + p)
            self.add(name + suffix, kind, source, *options, *more, precision=p, **facts)

    def wants(self, name):
        return not self.o.only or name in self.o.only.split(",")

    def add(self, name, kind, source, *options, **facts):
        """Facts are what check_gpu.py needs to know: the network, for its peers."""
        if not self.wants(name):
            return
        print(f"  {name}", flush=True)
        self.compile(source, name + "-gpu", self.o.target, *options)
        if kind == "example":
            self.compile(source, name + "-cpu", "cpu", *options)
        self.programs.append({"name": name, "kind": kind, **facts})


def defines(sizes):
    return [x for name, value in sizes.items() for x in ("-D", f"{name}={value}")]


def short(example, data=None):
    """The example's text with another recipe, and with other data where that is given."""
    with open(os.path.join(ROOT, "examples", example + ".graph"), encoding="utf-8") as f:
        text = f.read()
    recipe = f"flag check_steps = {STEPS}\ntrain {{ steps = check_steps, seed = 1 }}"
    text = re.sub(r"^train \{[^}]*\}", recipe, text, flags=re.M)
    return re.sub(r"^data \{.*?^\}", data, text, flags=re.M | re.S) if data else text


def gpt(sizes):
    return {"model": "gpt", "sizes": sizes}


def add_examples(m):
    char_gpt = SMALL_CHAR_GPT if m.o.small else CHAR_GPT
    networks = {"mnist_mlp": {"model": "mlp", "batch": 64, "widths": [784, 128, 10]},
                "char_gpt": gpt(char_gpt)}
    shutil.copytree(os.path.join(ROOT, "examples", "data"), m.path("data"), dirs_exist_ok=True)
    for name, files in EXAMPLES.items():
        missing = [f for f in files if not os.path.exists(os.path.join(m.o.data, f))]
        if missing:
            print(f"  {name}: left out: no {missing[0]} in {m.o.data} (scripts/fetch-data)", flush=True)
            m.programs.append({"name": name, "kind": "missing", "why": f"prepared without {missing[0]}"})
            continue
        for f in files:
            shutil.copyfile(os.path.join(m.o.data, f), m.path("data/" + f))
        m.write(name + ".graph", short(name))
        options = defines(char_gpt) if name == "char_gpt" else []
        more = {"network": networks[name]} if name in networks else {}
        m.add(name, "example", name + ".graph", *options, **more)


def add_precise(m):
    """Kernels that multiply in other precisions, each against its plain version."""
    for p in m.precisions[1:]:
        if os.path.exists(m.path("char_gpt.graph")):
            m.add("char_gpt_" + p, "precise", "char_gpt.graph", f"--precision={p}",
                  *defines(SMALL_CHAR_GPT if m.o.small else CHAR_GPT))


def write_tokens(m, name, count, vocabulary):
    """Ids of which low ones are frequent, so that there is something to learn."""
    chance = random.Random(1)
    with open(m.path("data/" + name), "wb") as f:
        for _ in range(count):
            f.write(int(vocabulary * chance.random() ** 4).to_bytes(2, "little"))


def add_gpt2(m):
    sizes = SMALL_GPT2 if m.o.small else GPT2
    write_tokens(m, "tokens.bin", 40 * sizes["B"] * (sizes["T"] + 1), sizes["V"])
    m.write("gpt2.graph", short("char_gpt", 'data {\n  train = tokens("tokens.bin", window=T)\n}'))
    m.add_all("gpt2", "large", "gpt2.graph", *defines(sizes), network=gpt(sizes))


def add_random(m):
    programs, seeds = (1, 3) if m.o.small else (RANDOM_PROGRAMS, SEEDS_OF_A_PROGRAM)
    for i in range(programs):
        first, last = i * seeds + 1, (i + 1) * seeds
        name = f"random_{first}_{last}"
        text = subprocess.run([os.path.join(m.o.tools, "random_modules"), str(first), str(last)],
                              stdout=subprocess.PIPE, text=True, check=True).stdout
        m.write(name + ".ir", text)
        m.add(name, "kernels", name + ".ir")


def matmul_lines(name, stream, m, n, k, ta, tb):
    """Lines of states, of init, and of step. Operands are random: zeros are multiplied faster."""
    a, b = ([k, m] if ta else [m, k]), ([n, k] if tb else [k, n])
    flags = f"{{ta={str(ta).lower()}, tb={str(tb).lower()}}}"
    a, b, c = (f"f32[{x},{y}]" for x, y in (a, b, (m, n)))
    states = [f"state {name}.a : {a} role=param", f"state {name}.b : {b} role=param",
              f"state {name}.c : {c} role=buffer"]
    nodes = [f"  %{name}.a = read @{name}.a : {a}", f"  %{name}.b = read @{name}.b : {b}",
             f"  %{name} = matmul %{name}.a, %{name}.b {flags} : {c}", f"  write @{name}.c, %{name}"]
    init = [line for i, (x, t) in enumerate((("a", a), ("b", b)))
            for line in (f"  %{name}.{x} = normal %seed, %zero {{stream={2 * stream + i}}} : {t}",
                         f"  write @{name}.{x}, %{name}.{x}")]
    return states, init, nodes


def add_matmuls(m):
    """One program that multiplies, and nothing else: its kernels' times are cuBLAS's to beat."""
    shapes = {name: [*(max(16, x // 64) if m.o.small else x for x in s[:3]), *s[3:]]
              for name, s in MATMULS.items()}
    parts = [matmul_lines(name, i, *shape) for i, (name, shape) in enumerate(shapes.items())]
    states, init, nodes = ([line for p in parts for line in p[i]] for i in range(3))
    write_tokens(m, "few.bin", 4000, 60)
    m.write("matmuls.ir", "\n".join([
        "mltc-ir 1", "module matmuls", "", "state step : i64[] role=counter",
        "state seed : i64[] role=seed",
        f"state check_steps : f32[] role=flag value={STEPS}", *states,
        'data train = tokens("few.bin") {window=8}', "config steps = $check_steps", "",
        "func init {", "  %seed = read @seed : i64[]", "  %zero = const {value=0.0} : i64[]", *init, "}",
        "", "func step {", "  %ids = input : i32[1,8]", "  %next = input : i32[1,8]",
        "  %step = read @step : i64[]", "  %one = const {value=1.0} : i64[]", *nodes,
        "  %after = add %step, %one : i64[]", "  write @step, %after", "}", ""]))
    m.add_all("matmuls", "matmuls", "matmuls.ir", shapes=shapes)


def start_wrappers(m):
    """One process with much to compile: beside the others."""
    folder = m.path("wrappers")
    os.makedirs(folder, exist_ok=True)
    command = [os.path.join(m.o.tools, "wrapper_results"), m.o.target, folder]
    if m.o.small:
        os.makedirs(m.path("wrappers-kept"), exist_ok=True)
        command.append(m.path("wrappers-kept"))
    return subprocess.Popen(command, cwd=ROOT)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("folder")
    p.add_argument("--mltc", required=True)
    p.add_argument("--tools", required=True, help="folder of random_modules and wrapper_results")
    p.add_argument("--target", default="cuda")
    p.add_argument("--data", required=True, help="folder of MNIST and tinyshakespeare.txt")
    p.add_argument("--small", action="store_true", help="for a rehearsal")
    p.add_argument("--only", help="names of programs, and wrappers, with commas; default: all")
    o = p.parse_args()
    o.folder, o.mltc, o.tools = (os.path.abspath(x) for x in (o.folder, o.mltc, o.tools))
    m = Maker(o)
    wrappers = start_wrappers(m) if m.wants("wrappers") else None
    try:
        for add in (add_examples, add_random, add_gpt2, add_matmuls, add_precise):
            add(m)
        if wrappers and wrappers.wait():
            sys.exit("check-gpu: what the wrappers must compute cannot be made")
    finally:
        if wrappers:
            wrappers.kill()
    m.write("programs.json", json.dumps({"target": o.target, "small": o.small, "wrappers": bool(wrappers),
                                         "programs": m.programs}, indent=1) + "\n")


if __name__ == "__main__":
    main()
