#!/usr/bin/env bash
# The examples of `mltc --explain CODE` are true: each gives its code and no other, and none when it is changed as
# the text says.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash

cat >explanations.py <<'PY'
import re, subprocess, sys

mltc, codes = sys.argv[1], sys.argv[2:]

# Code: (what is around the example, changes that make it right, changes that make it wrong where it is right).
# Changes are "old => new"; the former are None where a file would have to be there.
NUMBERS = {"inputs": "x: f32[64,784]"}
LOSS = "... => loss cross_entropy(linear(x, 9), label)"
CASES = {
    "E0001": ({"inputs": "a: f32[64,8], b: f32[64,8]"}, ["$ => +"]),
    "E0002": (NUMBERS, ["64x => 64"]),
    "E0003": (NUMBERS, ['.gz) => .gz")']),
    "E0004": ({"first": "h = x"}, ["h 10 => h, 10"]),
    "E0006": (NUMBERS, None),
    "E0007": (NUMBERS, None),
    "E0201": ({"last": "x = y"}, ["hh) => h)"]),
    "E0202": ({"first": "y = x", "last": "x = y"}, ['"three" => 3']),
    "E0203": ({"last": "x = y"}, ["780 => 784"]),
    "E0204": ({"inputs": "x: f32[64,8], image: u8[64,784]"}, ["y = image => y = f32(image)"]),
    "E0205": ({"last": "x = y"}, ["biass= => bias="]),
    "E0206": (NUMBERS, ["let B = 32 => "]),
    "E0207": (NUMBERS, ["if mean(x) > 0 { x = -x } => x = where(mean(x) > 0, -x, x)"]),
    "E0208": ({"inputs": "x: f32[8,4], u: f32[8,128], v: f32[8,130]"}, ["v: f32[8,130] => v: f32[8,128]"]),
    "E0209": ({"last": "x = tower(x)"}, ["tower(relu => tanh(relu"]),
    "E0210": ({"inputs": "image: f32[64,784]", "loss": "loss mean(linear(x, 1)) + mean(image)"}, ["1000000, 1000000 => 10, 10"]),
    "E0211": (NUMBERS, ["n = 0 => n = 2"]),
    "E0212": ({"last": "x = h"}, ["flag H => let H"]),
    "E0213": (NUMBERS, ["axis=2 => axis=1"]),
    "E0214": ({"inputs": "x: f32[64,12]"}, ["split(x, 2 => split(x, 3"]),
    "E0215": (NUMBERS, ["{ return linear(x, 1) } => { loss mean(linear(x, 1)) }"]),
    "E0216": (NUMBERS, [], ["loss mse => apart = mse"]),
    "E0217": ({}, ["lr=0.01 => H=16"]),
    "E0218": ({"first": "n = 784\nm = 4", "last": "x = x @ w"}, [], ["uniform(1/sqrt(n)) => \"wide\""]),
    "E0219": (NUMBERS, ["relu(x)  => x = relu(x) "]),
    "E0220": ({"inputs": "x: f32[64,10]"}, ["10]  => 9] "]),
    "E0222": ({"blocks": "block discriminator(x: f[b,n]) -> f[b,1] { return linear(x, 1) }\n", "loss": "",
               "inputs": "real: f32[8,4], fake: f32[8,4]"}, ["with disk => with disc"]),
    "E0223": ({"first": "c = 784\nn = 5"}, ["n = 5 => n = 4"]),
    "E0224": ({}, [LOSS], [LOSS, "f[B => f[64"]),
    "E0225": ({}, [LOSS], [LOSS, "f[B => f[64"]),
    "E0227": ({"blocks": "block net(x: f[b,n]) -> f[b,1] { return tanh(linear(x, 1)) }\n", "first": "t = x",
               "last": "x = du"},
              ["u = net(2 * t) => z = 2 * t\nu = net(z)", "grad(sum(u), 2 * t) => grad(sum(u), z)"]),
    "W0221": ({"first": "param w: f[2] = ones\nx = x * mean(w)"}, ["output scale => metric scale"]),
    "W0228": (NUMBERS, ["steps = 500 => steps = steps"]),
    "W0229": ({"loss": ""}, ["tanh(x) => tanh(linear(x, 8))"]),
    "W0230": (NUMBERS, ['"bias" => ".b"']),
    "W0231": ({}, ["8) - x) => 8) - y)"]),
    "W0232": ({"last": "x = h"}, [" 16)) as first => 16) as first)"]),
    "W0502": ({"last": "x = logits"}, ["linear(x, 10) => linear(h, 10)"]),
    "E0301": (NUMBERS, ["epoch = => epochs ="]),
    "E0302": (NUMBERS, ["cvs => csv"]),
    "E0303": (NUMBERS, ["80%..20% => 20%..80%", "1e-50 => 1e-5"]),
    "E0304": (NUMBERS, ['csv("d.csv") => csv("d.csv"), test = csv("d.csv")']),
    "E0305": (NUMBERS, ["admw => adamw"]),
    "E0101": ({}, [], ["mltc-ir 1 => mltc-ir 2"]),
    "E0102": ({"inputs": "a: f32[64], b: f32[64]"}, ["%a %b => %a, %b"]),
    "E0103": ({"inputs": "a: f32[64], b: f32[64]"}, ["mult => mul"]),
    "E0104": ({"inputs": "a: f32[64,8]"}, ["axis=1 => axes=[1]"]),
    "E0105": ({}, ["f16x => f16"]),
    "E0106": ({}, ["%y = => %x = input : f32[4]\n%y ="]),
    "E0107": ({"inputs": "x: f32[4]"}, ["%y = abs => %y.2 = abs"]),
    "E0108": ({"states": "state w : f32[4] role=param\n"}, ["@weight => @w"]),
    "E0109": ({"inputs": "a: f32[4], b: f32[1]"}, ["%y = add %a, %b => %c = broadcast %b : f32[4]\n%y = add %a, %c"]),
    "E0110": ({}, ["role=weight => role=param"]),
    "E0111": ({"states": "state w : f32[4] role=param\n", "inputs": "a: f32[4], b: f32[4]"}, ["write @w, %b => "]),
    "W0112": ({}, ["log_evry => log_every"]),
    "E0503": ({}, [], ["=cse => =css"]),
    "E0504": ({}, [], ["algebra => fuse"]),
    "E0505": ({}, ["new/new => new"]),
    "E0506": ({}, [], ["bf16 => bf15"]),
    "E0507": ({}, ['"some" => "selective"']),
    "E0510": ({"inputs": "t: f32[4,4]"}, [], ["output o = %c => output o = %t"]),
    "E0901": ({}, ["mpl => mlp"]),
    "E0902": (NUMBERS, None),
}
# What an example cannot show in a few lines; and mltc-pack's, tests/scripts/pack.sh.
WITHOUT = {"E0005", "E0226", "E0501", "E0508", "E0509", "E0903", "W0225", "E0910"}
KINDS = {"E0902": "c"}  # of --emit
OPTIONS = {"E0224": ["--max-batch", "--memory-budget=1MiB"], "E0225": ["--allow=accumulate", "--memory-budget=20000"]}


def explained(code):
    text = subprocess.run([mltc, "--explain", code], capture_output=True, text=True, check=True).stdout
    return [line[4:] for line in text.split("\n") if line.startswith("    ")]


def graph_of(lines, inputs="x: f32[64,784]", blocks="", first="", last="", loss="loss mean(linear(x, 1))"):
    """Each line of the example where it belongs: before the model, in it, or in the recipe."""
    text = "\n".join(lines)
    before = [x for x in lines if re.match(r"(let|flag|import|block) ", x)]
    sections = [x for x in lines if re.match(r"(data|optim|train) \{", x)]
    body = [x for x in lines if x not in before + sections and not x.startswith("train = ")]
    if re.search(r"^model ", text, re.M):
        inputs, model = re.search(r"m\((.*?)\) \{", text).group(1), text
    else:
        model = "\n".join([*before, f"model m({inputs}) {{", first, *body, last, loss, "}"])
    files = ", ".join(f'"{i}.npy"' for i in range(inputs.count(": ")))
    own = "".join(x + "\n" for x in lines if x.startswith("train = ")) or f"train = npy({files})\n"
    rest = {"data": "data {\n" + own + "}", "optim": "optim { sgd(0.1) }", "train": "train { steps = 3 }"}
    rest = [v for k, v in rest.items() if not any(x.startswith(k + " {") for x in sections)]
    return "\n".join([blocks, model, *rest, *sections, ""])


def ir_of(lines, inputs="", states=""):
    if lines[0].startswith("mltc-ir"):
        return "\n".join([*lines, "func f {", "}", ""])
    values = [f"%{x.split(': ')[0]} = input : {x.split(': ')[1]}" for x in inputs.split(", ") if x]
    heads = [x for x in lines if re.match(r"(state|config) ", x)]
    body = [x for x in lines if x not in heads]
    return "\n".join(["mltc-ir 1", "module m", states, *heads, "func f {", *values, *body, "}", ""])


def codes_of(code, lines, around):
    ir = re.match(r"mltc-ir|%|state |config |write |kernel ", lines[0])
    if lines[0].startswith("mltc "):
        arguments = re.sub(r"#.*", "", lines[0]).split()[1:]
    else:
        arguments = ["x.ir" if ir else "x.graph", *OPTIONS.get(code, [])]
        with open(arguments[0], "w", encoding="utf-8") as f:
            f.write((ir_of if ir else graph_of)(lines, **around))
    kind = KINDS.get(code, "ir")
    run = subprocess.run([mltc, *arguments, f"--emit={kind}", "-o", "out.txt"], capture_output=True, text=True, check=False)
    return sorted(set(re.findall(r"(?:error|warning)\[(\w+)\]", run.stderr))), run


def changed(code, lines, around, changes):
    text, rest = "\n".join(lines), dict(around)
    for change in changes:
        old, new = change.split(" => ")
        found = old in text
        text = text.replace(old, new)
        for k, v in rest.items():
            found = found or old in v
            rest[k] = v.replace(old, new)
        if not found:
            sys.exit(f"{code}: there is no '{old}' in its example")
    return text.split("\n"), rest


def check(code, lines, around, want):
    got, run = codes_of(code, lines, around)
    if code < "E0004" and want:  # the parser goes on behind what it cannot read, and may stumble once more
        got = [x for x in got if x != "E0004"]
    if got != want or (not want and run.returncode):
        text = "\n".join([*lines, run.stderr])
        sys.exit(f"{code}: {got or run.returncode} instead of {want or 'nothing'} for\n{text}")


for name, text in {"mlp": graph_of(["let H = 8", "flag lr = 0.1", "optim { sgd(lr) }"]), "b": 'import "x.graph"\n'}.items():
    with open(name + ".graph", "w", encoding="utf-8") as f:
        f.write(text)
for code in codes:
    lines = explained(code)
    if code in WITHOUT:
        continue
    if code not in CASES or not lines:
        sys.exit(f"{code}: an example and its case here, or a word in WITHOUT")
    around, right, *wrong = CASES[code]
    if code == "E0007":
        lines = lines[:1]
    check(code, *(changed(code, lines, around, wrong[0]) if wrong else (lines, around)), [code])
    if right is not None:
        check(code, *changed(code, lines, around, right), [])
PY
mapfile -t codes < <(sed -n 's/^CODE("\([EW][0-9]*\)".*/\1/p' "$root/ir/diag_codes.def")
[ "${#codes[@]}" -ge 40 ] || fail "only ${#codes[@]} codes were found"
python3 explanations.py "$mltc" "${codes[@]}" || fail "an example of --explain"
