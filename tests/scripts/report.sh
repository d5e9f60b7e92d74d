#!/usr/bin/env bash
# The page of --emit=report: one file that asks for nothing, byte for byte the same, whatever names are in
# the graph; in a browser its script counts what plan.json has, shows what is selected, pointed at and tapped, and
# fits a phone.
# shellcheck source=/dev/null disable=SC2154
source tests/scripts/lib/common.bash

# --- the text
cp "$root/examples/char_gpt.graph" .
sed -n '/^mltc-ir/,$p' "$root/tests/lit/plan/mlp.ir" >'a<!--<script>&.ir'
"$mltc" char_gpt.graph --emit=report -o gpt.html
"$mltc" char_gpt.graph --emit=report -o again.html
same gpt.html again.html "two reports"
"$mltc" 'a<!--<script>&.ir' --emit=report -o odd.html
"$mltc" "$root/examples/digits_mlp.graph" --target=cuda:sm_90a --emit=report -o gpu.html
for page in gpt odd gpu; do
  python3 "$root/tests/scripts/lib/check_page.py" $page.html || fail "$page.html"
done

# --- in a browser, for which it is the same page
[ -z "${MLTC_SANITIZED:-}" ] || exit 0
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip "no chromium (scripts/install-deps test)"
flags=(--headless --no-sandbox --disable-gpu --disable-background-networking --disable-component-update --no-first-run
  --user-data-dir="$scratch/profile" --enable-logging=stderr --hide-scrollbars --dump-dom --virtual-time-budget=10000)
look() { # WIDTH PAGE#HASH OPTION...: what the script says is in console.txt
  timeout 120 "$browser" "${flags[@]}" --window-size="$1,900" "${@:3}" "file://$scratch/$2" >dom.html 2>err.txt || {
    cat err.txt
    fail "chromium: $2"
  }
  grep CONSOLE err.txt >console.txt || true
  [ ! -s console.txt ] || fail "$2: $(cat console.txt)"
}
has() { # TEXT
  grep -qF -- "$1" dom.html || fail "the page has no $1"
}

counts() { # GRAPH PAGE
  "$mltc" "$1" --emit=plan.json -o plan.json
  python3 - <<'PYTHON' >counts.txt
import json
p = json.load(open("plan.json"))
f = p["functions"]
print(f'data-functions="{len(f)}" data-kernels="{sum(len(x["kernels"]) for x in f)}"'
      f' data-buffers="{len(p["buffers"]) + sum(len(x["buffers"]) for x in f)}"')
PYTHON
  look 1300 "$2"
  has "$(cat counts.txt)"
  ! grep -q 'data-error' dom.html || fail "$2: the script failed"
}
counts char_gpt.graph gpt.html
counts 'a<!--<script>&.ir' odd.html

# The address bar opens the page at a buffer or a kernel.
look 1300 "gpt.html#function=step&buffer=layer.2.gelu.mul.3"
has "<h3>layer.2.gelu.mul.3</h3>"
has "<dd>1,572,864 (1.50 MiB)</dd>"
has "char_gpt.graph:12"
look 1300 "gpt.html#function=eval&kernel=1"
has "<h3>kernel 1: "
has "fused ops ("
look 1300 "gpt.html#function=step&buffer=nobody"
has "There is no nobody in step."

# A pointer over a block and a tap on it, and nothing wider than the window.
cat >hands.txt <<'HTML'
<script>
const block = functionAt(1).byKey.get("layer.1.linear.matmul"), seen = document.documentElement.dataset;
const box = byId("memory").getBoundingClientRect();
const at = { pointerId: 1, clientX: box.left + 1 + memory.x((block.first + block.last + 1) / 2),
  clientY: box.top + 1 + memory.y(block.offset + block.bytes / 2) };
byId("memory").dispatchEvent(new PointerEvent("pointermove", at));
seen.tip = byId("tip").hidden ? "" : byId("tip").textContent;
byId("memory").dispatchEvent(new PointerEvent("pointerdown", at));
byId("memory").dispatchEvent(new PointerEvent("pointerup", at));
seen.tapped = byId("detail").querySelector("h3").textContent;
const circle = functionAt(1).kernels.filter((k) => k.flops && k.bytes).reduce((least, k) => (k.time < least.time ? k : least));
const roof = byId("roofline").getBoundingClientRect();
const summit = { clientX: roof.left + 1 + roofline.x(circle.intensity), clientY: roof.top + 1 + roofline.y(roofline.roof(circle.intensity)) };
byId("roofline").dispatchEvent(new PointerEvent("pointermove", summit));
seen.rooftip = byId("rooftip").hidden ? "" : byId("rooftip").querySelector("b").textContent === circle.name;
byId("roofline").dispatchEvent(new MouseEvent("click", summit));
seen.circle = byId("detail").querySelector("h3").textContent === "kernel " + groupDigits(circle.index) + ": " + circle.name;
byId("find").value = "softmax-like nonsense";
byId("find").dispatchEvent(new Event("input"));
seen.found = byId("kernels").children.length;
seen.wide = document.documentElement.scrollWidth - window.innerWidth;
seen.small = [...document.querySelectorAll("button")].filter((b) => b.offsetHeight && b.offsetHeight < 34).length;
</script>
HTML
sed -e '/<\/body>/{
r hands.txt
N
}' gpt.html >hands.html
for width in 1300 390; do
  look $width "hands.html#function=step" --screenshot="$scratch/page.png"
  has 'data-tip="layer.1.linear.matmul1.50 MiB'
  has 'data-tapped="layer.1.linear.matmul"'
  has 'data-rooftip="true"'
  has 'data-circle="true"'
  has 'data-found="0"'
  has 'data-wide="0"'
  has 'data-small="0"'
  [ "$(wc -c <page.png)" -gt 30000 ] || fail "the page is empty at $width"
done

# 20,000 kernels: the same page with a plan of that many.
python3 "$root/tests/scripts/lib/check_page.py" --large 20000 gpt.html large.html
look 1300 "large.html#function=step&kernel=19999"
has 'data-kernels="20000"'
has "<h3>kernel 19,999: "
