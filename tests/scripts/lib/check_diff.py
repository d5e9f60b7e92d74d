"""Works out again what two plans differ in: check_diff.py A.json B.json OUT.json OUT.txt."""

import json
import sys

a, b, out = (json.load(open(path, encoding="utf-8")) for path in sys.argv[1:4])
text = open(sys.argv[4], encoding="utf-8").read()
LIMIT = 2**63 - 1


def sizes(items, key):
    found = {}
    for item in items:
        found.setdefault(item["name"], min(item[key], LIMIT))
    return found


def whole(o):
    return {k: min(v, LIMIT) for k, v in o.items() if type(v) is int}


def sums(f):
    kernels = f["kernels"]
    return {
        "kernels": len(kernels),
        "again": sum(k["clone_of"] is not None for k in kernels),
        "flops": sum(k["flops"] for k in kernels),
        "traffic": sum(k["bytes_read"] + k["bytes_written"] for k in kernels),
        "copied": sum(c["bytes"] for c in f["copies"]),
        "buffers": len(f["buffers"]),
        **whole(f),
    }


def expect(what, x, y, got):
    want = {n: (x.get(n), y.get(n)) for n in {**x, **y} if x.get(n) != y.get(n)}
    have = {c["name"]: (c["a"], c["b"]) for c in got["changed"]}
    if want != have or len(got["changed"]) != len(have):
        sys.exit(f"{what}: {set(want.items()) ^ set(have.items())}")
    steps = [abs((c["b"] or 0) - (c["a"] or 0)) for c in got["changed"]]
    if steps != sorted(steps, reverse=True):
        sys.exit(f"{what}: not the greatest first")
    for c in got["changed"][:12]:
        if c["name"] not in text:
            sys.exit(f"{what}: {c['name']} is not in the text")


def look_alike(what, x, y, key, got):
    """What both have: how many of one size differ otherwise, and whether their order does."""
    first_x, first_y = ({}, {})
    for items, found in ((x, first_x), (y, first_y)):
        for item in items:
            found.setdefault(item["name"], {k: v for k, v in item.items() if k != "source"})
    both = [n for n in first_x if n in first_y]
    others = sum(first_x[n][key] == first_y[n][key] and first_x[n] != first_y[n] for n in both)
    reordered = both != [n for n in first_y if n in first_x]
    if (got["others"], got["reordered"]) != (others, reordered):
        sys.exit(f"{what}: {others} others, reordered: {reordered}; not {got['others']}, {got['reordered']}")


def figures(p):
    return {**whole(p["totals"]), **whole(p), "buffers": len(p["buffers"]), "functions": len(p["functions"])}


expect("figures", figures(a), figures(b), out["figures"])
expect("shares", a["totals"].get("shares", {}), b["totals"].get("shares", {}), out["shares"])
expect("buffers", sizes(a["buffers"], "bytes"), sizes(b["buffers"], "bytes"), out["buffers"])
look_alike("buffers", a["buffers"], b["buffers"], "bytes", out["buffers"])
empty = {"kernels": [], "buffers": [], "copies": []}
left, right = ({f["name"]: f for f in p["functions"]} for p in (a, b))
seen = {f["name"]: f for f in out["functions"]}
for name in {**left, **right}:
    x, y = left.get(name, empty), right.get(name, empty)
    got = seen.get(name)
    if got is None:
        same = {"changed": [], "others": 0, "reordered": False}
        got = dict.fromkeys(("figures", "shares", "kernels", "buffers", "host", "copies"), same)
    expect(name, sums(x) if name in left else {}, sums(y) if name in right else {}, got["figures"])
    expect(name + " shares", x.get("shares", {}), y.get("shares", {}), got["shares"])
    expect(name + " kernels", sizes(x["kernels"], "flops"), sizes(y["kernels"], "flops"), got["kernels"])
    expect(name + " buffers", sizes(x["buffers"], "bytes"), sizes(y["buffers"], "bytes"), got["buffers"])
    look_alike(name + " kernels", x["kernels"], y["kernels"], "flops", got["kernels"])
    look_alike(name + " buffers", x["buffers"], y["buffers"], "bytes", got["buffers"])
    for key in ("host", "copies"):
        of_x, of_y = ([{"name": i.get("state"), **i} for i in f.get(key, [])] for f in (x, y))
        expect(f"{name} {key}", sizes(of_x, "bytes"), sizes(of_y, "bytes"), got[key])
        look_alike(f"{name} {key}", of_x, of_y, "bytes", got[key])
if out["same"]:
    sys.exit("not the same")
