"""Holds plan.json files against the table in docs/memory.md.

  plan_schema.py MEMORY.md PLAN.json...

Rows of the table name fields by path: `functions[].kernels[]` of type `kernel` means that each element has
the fields `kernel.*`; `shares.*` is any key. Exits with 1 and says what is wrong.
"""

import json
import re
import sys

TYPES = {"string": str, "integer": int, "number": float, "null": type(None)}
RECORDS = ("buffer", "kernel", "copy")


def read_table(path):
    """{path of a field: the names of its types}."""
    text = open(path, encoding="utf-8").read()
    table = text[text.index("| field | type | what |") :].split("\n\n")[0]
    fields = {}
    for row in table.splitlines()[2:]:
        names, types = [cell.strip() for cell in row.strip("|").split("|")[:2]]
        for name in re.findall(r"`([^`]+)`", names):
            fields[name] = types.split(" or ")
    shares = text[text.index("| share | which buffers |") :].split("\n\n")[0]
    return fields, re.findall(r"`(\w+)`", "".join(row.split("|")[1] for row in shares.splitlines()[2:]))


class Checker:
    def __init__(self, fields, name):
        self.fields, self.name, self.seen, self.faults = fields, name, set(), []

    def fault(self, text):
        self.faults.append(f"{self.name}: {text}")

    def leaf(self, path, value):
        types = self.fields.get(path) or self.fields.get(re.sub(r"\.\w+$", ".*", path))
        if types is None:
            self.fault(f"{path} is not documented")
            return
        self.seen.add(path)
        if types[0] in RECORDS:
            self.walk(types[0], value)
        elif type(value) not in [TYPES[t] for t in types]:
            self.fault(f"{path} is {value!r}, not {' or '.join(types)}")

    def walk(self, path, value):
        if path in self.fields:
            self.leaf(path, value)
        elif isinstance(value, dict):
            for key, inner in value.items():
                self.walk(f"{path}.{key}" if path else key, inner)
        elif isinstance(value, list):
            for inner in value:
                self.each(path + "[]", inner)
        else:
            self.leaf(path, value)

    def each(self, path, inner):
        types = self.fields.get(path, [""])
        if types[0] in RECORDS:
            self.seen.add(path)
            for key, value in inner.items():
                self.walk(f"{types[0]}.{key}", value)
        else:
            self.walk(path, inner)

    def sums(self, plan, shares):
        totals = plan["totals"]
        if sorted(totals["shares"]) != sorted(shares):
            self.fault(f"shares are {sorted(totals['shares'])}, documented {sorted(shares)}")
        if sum(totals["shares"].values()) != plan["bound"]:
            self.fault("shares do not add up to the bound")
        if not plan["bound_ws"] <= plan["bound"] <= totals["arena"]:
            self.fault("bounds are not in order")
        self.shares_of(plan["buffers"], shares)
        whole = {("@" if b["kind"] == "state" else "") + b["name"] for b in plan["buffers"]}
        for f in plan["functions"]:
            self.function(f, whole, shares)

    def function(self, f, whole, shares):
        if sum(f["shares"].values()) != f["peak_bytes"]:
            self.fault(f"{f['name']}: shares do not add up to the peak")
        own = {b["name"]: b for b in f["buffers"]}
        host = {b["name"]: b for b in f.get("host", [])}
        for index, kernel in enumerate(f["kernels"]):
            for name in kernel["reads"] + kernel["writes"]:
                b = own.get(name) or host.get(name)
                if name not in whole and not b:
                    self.fault(f"{f['name']}: {kernel['name']} uses {name}, which is no buffer")
                if b and not b["first"] <= index <= b["last"]:
                    self.fault(f"{f['name']}: {kernel['name']} uses {name} outside of its life")
        self.shares_of(f["buffers"], shares)
        if [b["first"] for b in f["buffers"]] != sorted(b["first"] for b in f["buffers"]):
            self.fault(f"{f['name']}: buffers are not by first kernel")
        self.peak(f, own)
        self.recomputed(f)
        sends = [k for k in f["kernels"] if k["family"] == "send"]
        sent = f.get("sent", {"values": 0, "bytes": 0})
        if (sent["values"], sent["bytes"]) != (len(host), sum(k["bytes_written"] for k in sends)):
            self.fault(f"{f['name']}: {len(sends)} values are sent")

    def peak(self, f, own):
        """Takes from one buffer to the next in the same memory, and the first kernel at which most is live."""
        live = [0] * len(f["kernels"])
        for b in f["buffers"]:
            before = own.get(b.get("in_place_of"))
            if "in_place_of" in b and (not before or before["offset"] != b["offset"] or before["last"] != b["first"]):
                self.fault(f"{f['name']}: {b['name']} takes over no memory of {b['in_place_of']}")
            for k in range(b["first"] + (before is not None), b["last"] + 1):
                live[k] += -(-b["bytes"] // 64) * 64
        want = (live.index(max(live)), max(live)) if live else (None, 0)
        if (f["peak_kernel"], f["peak_bytes"]) != want:
            self.fault(f"{f['name']}: the peak is {want}")

    def recomputed(self, f):
        again = [k for k in f["kernels"] if k["clone_of"]]
        want = {"kernels": len(again), "flops": sum(k["flops"] for k in again),
                "bytes": sum(k["bytes_read"] + k["bytes_written"] for k in again)}
        if any(f["recomputed"][key] != n for key, n in want.items()) or (f["recomputed"]["time"] > 1) != bool(again):
            self.fault(f"{f['name']}: what runs again is {want}")

    def shares_of(self, buffers, shares):
        for b in buffers:
            if b["share"] not in shares:
                self.fault(f"{b['name']}: share {b['share']}")


def main():
    fields, shares = read_table(sys.argv[1])
    seen, faults = set(), []
    for path in sys.argv[2:]:
        plan = json.load(open(path, encoding="utf-8"))
        check = Checker(fields, path)
        check.walk("", plan)
        check.sums(plan, shares)
        seen |= check.seen
        faults += check.faults
    if len(sys.argv) > 3:
        faults += [f"{name} is documented and nowhere" for name in fields if name not in seen and not name.endswith("*")]
    for text in faults[:20]:
        print(text)
    sys.exit(1 if faults else 0)


main()
