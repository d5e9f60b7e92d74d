"""Holds a page of --emit=report against what a page must be.

  check_page.py PAGE.html                  exits with 1 and says what is wrong
  check_page.py --large N PAGE.html OUT    the same page with a plan of N kernels
"""

import html.parser
import json
import re
import sys

VOID = {"meta", "link", "input", "br", "img"}


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.faults, self.open, self.ids, self.wanted, self.data = [], [], [], [], ""
        self.unnamed = None

    def handle_starttag(self, tag, attrs):
        have = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        self.ids += [have["id"]] if "id" in have else []
        for key in ("aria-labelledby", "aria-describedby", "for"):
            self.wanted += have.get(key, "").split()
        for key in ("src", "href"):
            if key in have and not have[key].startswith("data:"):
                self.faults.append(f"<{tag}> asks for {have[key]}")
        if tag in ("input", "select") and "label" not in self.open and "aria-label" not in have:
            self.faults.append(f"{tag} {have.get('id')} has no label")
        if tag == "button":
            self.unnamed = None if "aria-label" in have else have.get("id", "")

    def handle_endtag(self, tag):
        if not self.open or self.open[-1] != tag:
            self.faults.append(f"</{tag}> closes {self.open[-1:]}")
        else:
            self.open.pop()
        if tag == "button" and self.unnamed is not None:
            self.faults.append(f"button {self.unnamed} has no name")
            self.unnamed = None

    def handle_data(self, data):
        self.unnamed = None if data.strip() else self.unnamed
        if self.open[-1:] == ["script"]:
            self.data = self.data or data


def check(path):
    text = open(path, encoding="utf-8").read()
    page = Page()
    page.feed(text)
    page.faults += [f"{tag} is not closed" for tag in page.open]
    page.faults += [f"id {name} twice" for name in set(page.ids) if page.ids.count(name) > 1]
    page.faults += [f"nothing has id {name}" for name in page.wanted if name not in page.ids]
    page.faults += [f"an address: {u}" for u in re.findall(r"(?:https?:)?//[a-z]+\.[a-z]+", text)]
    if "default-src 'none'" not in text or 'name="viewport"' not in text or '<html lang="en">' not in text:
        page.faults.append("the head is not as it should be")
    if text.count("<script") != 2 or json.loads(page.data)["plan"]["schema"] != "mltc-plan":
        page.faults.append("the data are not as they should be")
    for fault in page.faults:
        print(f"{path}: {fault}")
    return 1 if page.faults else 0


def enlarge(kernels, path, out):
    text = open(path, encoding="utf-8").read()
    found = re.search(r'(<script type="application/json" id="data">)(.*)(</script>\n<script>)', text)
    data = json.loads(found.group(2))
    step = next(f for f in data["plan"]["functions"] if f["name"] == "step")
    some, own = step["kernels"], step["buffers"][:]
    step["kernels"] = [dict(some[i % len(some)], name=f"k{i}", reads=[f"b{i - 1}"], writes=[f"b{i}"]) for i in range(kernels)]
    step["buffers"] = [
        dict(own[i % len(own)], name=f"b{i}", first=i, last=min(kernels - 1, i + 1 + i % 97)) for i in range(kernels)
    ]
    for b in step["buffers"]:
        b.pop("in_place_of", None)
    data["plan"]["functions"], data["members"] = [step], [[0] * kernels]
    body = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    open(out, "w", encoding="utf-8").write(text[: found.start(2)] + body + text[found.end(2) :])


if sys.argv[1] == "--large":
    enlarge(int(sys.argv[2]), sys.argv[3], sys.argv[4])
else:
    sys.exit(check(sys.argv[1]))
