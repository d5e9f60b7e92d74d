"""Files of results: a head, and a row for each thing that was measured, a line each. And --only, which
measures some of them."""

import json


def load(path):
    """{} when there is no such file yet."""
    try:
        with open(path, encoding="utf-8") as f:
            return json.load(f)
    except FileNotFoundError:
        return {}


def save(path, head, rows):
    lines = ",\n  ".join(json.dumps(r) for r in rows)
    with open(path, "w", encoding="utf-8") as f:
        f.write(json.dumps(head)[:-1] + ', "rows": [\n  ' + lines + "]}\n")


def add_only(parser, known):
    parser.add_argument("--only", help="names, separated by commas: " + ", ".join(known))


def chosen(parser, options, known):
    """What --only names, or all. Names that nobody knows are wrong usage."""
    names = options.only.split(",") if options.only else list(known)
    unknown = [n for n in names if n not in known]
    if unknown:
        parser.error(f"--only: nobody knows {', '.join(unknown)}; there are {', '.join(known)}")
    return names
