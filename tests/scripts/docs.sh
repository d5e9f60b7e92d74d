#!/usr/bin/env bash
# What the documents say can be done, works: the graphs of docs/language.md compile, error codes can be
# explained, links lead somewhere, and the passes named are the passes there are.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash

# --- the first file of docs/language.md, as it stands; it is also the README's
indented_after() { # HEADING FILE: the first indented block after it
  awk -v heading="$1" 'index($0, heading) == 1 {on = 1; next}
    on && /^    / {print substr($0, 5); seen = 1; next}
    on && seen && /^$/ {print; next}
    on && seen {exit}' "$2"
}
indented_after "## A first file" "$root/docs/language.md" >first.graph
"$mltc" first.graph --emit=ir -o first.ir
indented_after "## A program, whole" "$root/README.md" >readme.graph
"$mltc" readme.graph --emit=ir -o readme.ir

# --- its blocks, optimisers and schedules, all in one file
awk '/^    (block|optimizer|schedule|initializer) / {on = 1}
  on && !/^    / {on = 0}
  on {print substr($0, 5)}' "$root/docs/language.md" >blocks.graph
[ "$(grep -cE '^(block|optimizer|schedule|initializer) ' blocks.graph)" -ge 7 ] || fail "blocks of language.md"
grep -q '^optimizer signs' blocks.graph
cat >>blocks.graph <<'GRAPH'
model all(x: f32[8,6,4], y: f32[8,10]) {
  param d: f[4,4] = diagonal(2)
  h = heads_of(scale(x @ d, 4), 2)
  z = batchnorm(linear2(reshape(add(x[0], x[1]), [1, 24]), 10))
  loss mse(broadcast(z, [8, 10]), y) + mean(h ** 2)
}
data { train = npy("x.npy", "y.npy") }
optim {
  signs(0.001, keep=0.95)
  schedule = halves(100)
}
train { steps = 10 }
GRAPH
"$mltc" blocks.graph --emit=plan -o plan.txt || fail "the blocks of docs/language.md"

# --- its models, each with the blocks that stand before it, and data and a recipe where it has none
cat >models.py <<'PY'
import re, sys
chunks, now = [], []
for line in open(sys.argv[1], encoding="utf-8").read().split("\n") + ["end"]:
    if line.startswith("    ") or (not line and now):
        now.append(line[4:])
        continue
    text = "\n".join(now)
    if re.search(r"^model ", text, re.M):
        chunks.append(text)
    now = []
sizes = {"B": 8, "T": 6, "V": 11, "C": 4, "H": 5}
for number, text in enumerate(chunks):
    own = set(re.findall(r"(\w+) = \d", "".join(re.findall(r"^let .*", text, re.M))))
    files = ", ".join(f'"{i}.npy"' for i in range(text[text.index("model "):].split(")")[0].count(":")))
    rest = {"data": f"{{ train = npy({files}) }}", "optim": "{ adam(0.01) }", "train": "{ steps = 3 }"}
    with open(f"model{number}.graph", "w", encoding="utf-8") as f:
        f.write("".join(f"let {k} = {v}\n" for k, v in sizes.items() if k not in own))
        f.write(text + "".join(f"\n{k} {v}" for k, v in rest.items() if not re.search(rf"^{k}\b", text, re.M)))
print(len(chunks))
PY
models=$(python3 models.py "$root/docs/language.md")
[ "$models" -ge 4 ] || fail "only $models models in docs/language.md"
for ((i = 0; i < models; i++)); do
  "$mltc" "model$i.graph" --emit=plan -o plan.txt || fail "a model of docs/language.md: $(cat "model$i.graph")"
done

# --- its tables: arguments have the names, and what may be left out the values, that blocks and built-ins have
cat >signatures.py <<'PY'
import glob, re, sys

root = sys.argv[1]
TWO = "max min iota zeros ones constant".split()  # one name for two things


def parts(text):
    """At the commas that are in no brackets."""
    depth, out = 0, [""]
    for c in text:
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            out.append("")
        else:
            out[-1] += c
    return [x.strip() for x in out if x.strip()]


have = {}  # name: [[(argument, value or "none" or None), ...], ...]
for path in glob.glob(root + "/frontend/std/*.graph"):
    text = open(path, encoding="utf-8").read()
    for kind, name, rest in re.findall(r"^(block|optimizer|schedule|initializer) (\w+)\((.*?)\)(?: ->[^{]*)? \{", text, re.M | re.S):
        found = [re.match(r"(\w+)(?:\s*:\s*\w+\[.*?\])?(?:\s*=\s*(.*))?$", x).groups() for x in parts(" ".join(rest.split()))]
        first = {"block": 0, "optimizer": 2}.get(kind, 1)
        have.setdefault(name, []).append(found[first:])
table = open(root + "/frontend/builtins.c", encoding="utf-8").read()
for name, words, least in re.findall(r'\{"(\w+)", \{([^}]*)\}, (\d+)', table):
    words = re.findall(r'"(\w+)"', words)
    have.setdefault(name, []).append([(w, "none" if i >= int(least) else None) for i, w in enumerate(words)])

checked = 0
for line in open(root + "/docs/language.md", encoding="utf-8"):
    if not line.startswith("| `"):
        continue
    for name, rest in re.findall(r"`(\w+)\(((?:[^`()]|\([^`()]*\))*)\)`", re.split(r" \| ", line)[0]):
        said = [re.match(r"\[(\w+)(?:=(.*))?\]$|(\w+)$", x) for x in parts(rest)]
        if name not in have or not all(said) or name in TWO:
            continue
        said = [(m[1] or m[3], (m[2] or "none") if m[1] else None) for m in said]
        checked += 1
        if not any(
            len(said) == len(h) and all(a == b and (v is None) == (w is None) and (w == "none" or v in (w, "none"))
                                        for (a, v), (b, w) in zip(said, h)) for h in have[name]):
            sys.exit(f"docs/language.md: {name}({rest}), but there is {have[name]}")
assert checked >= 90, checked
PY
python3 signatures.py "$root" || fail "a signature of docs/language.md"

# --- error codes
grep -ohE '\bE0[0-9]{3}\b' "$root"/docs/*.md "$root/README.md" | sort -u >codes.txt
[ "$(wc -l <codes.txt)" -ge 4 ] || fail "only $(wc -l <codes.txt) error codes in docs/"
while IFS= read -r code; do
  "$mltc" --explain "$code" >text.txt || fail "docs/ name $code, which has no explanation"
done <codes.txt

# --- passes: the table of docs/passes.md against what runs
"$mltc" first.graph --emit=ir -o first.ir --time-passes 2>times.txt
sed -nE '/^(pass|total) /d; s/^([a-z_]+) .*/\1/p' times.txt | sort >have.txt
sed -n '/^| pass /,/^$/p' "$root/docs/passes.md" | grep '^| `' | cut -d'|' -f2 |
  grep -oE '[a-z_]+' | sort >named.txt
diff have.txt named.txt || fail "docs/passes.md lists other passes than the pipeline has"

# --- links to files, and to headings (as GitHub spells their anchors)
anchors_of() { # FILE
  sed -nE 's/^#+ //p' "$1" | tr '[:upper:]' '[:lower:]' | sed -E 's/[^a-z0-9 _-]//g; s/ /-/g'
}
cd "$root" || exit
for page in README.md CONTRIBUTING.md docs/*.md tests/bench/torch/README.md tests/bench/zoo/README.md; do
  sed -nE 's/\]\(([^)]+)\)/\n](\1)\n/gp' "$page" | sed -nE '/^\]\(https?:/d; s/^\]\(([^)]+)\)$/\1/p' |
    while IFS= read -r link; do
      file=${link%%#*}
      target=$page
      [ -z "$file" ] || target=$(dirname "$page")/$file
      [ -e "$target" ] || fail "$page links to $link, which is not there"
      case $link in
      *#*) anchors_of "$target" | grep -qx -- "${link#*#}" || fail "$page: no heading for $link" ;;
      esac
    done
done
