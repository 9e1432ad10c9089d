#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Does Documentation/troubleshooting.rst have the trace events of the sources, each with
its fields, and only commands, options and parameters that there are?

A line for each difference.
"""

import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = TOP / "Documentation" / "troubleshooting.rst"


def events():
    """Event -> its fields, as the headers of trace points have them."""
    found, classes = {}, {}
    for folder in ("kofi", "providers", "clients"):
        for path in sorted((TOP / folder).rglob("*trace.h")):
            for m in re.finditer(r"^(DECLARE_EVENT_CLASS|DEFINE_EVENT|TRACE_EVENT\w*)"
                                 r"\((\w+),(.*?)^\)?", path.read_text(), re.M | re.S):
                body = path.read_text()[m.start(3):]
                if m[1] == "DEFINE_EVENT":
                    found[re.match(r"\s*(\w+)", body)[1]] = classes[m[2]]
                    continue
                body = body.split("TP_fast_assign", 1)[0]
                fields = set()
                for f in re.finditer(r"__(field|array|string|sockaddr)\(([^;\n]*)\)", body):
                    parts = [p.strip() for p in f[2].split(",")]
                    fields.add(parts[1 if f[1] in ("field", "array") else 0])
                where = classes if m[1] == "DECLARE_EVENT_CLASS" else found
                where[m[2]] = fields
    return found


def documented(page):
    """Event -> its fields, as the table has them."""
    return {m[1]: set(re.findall(r"``(\w+)``", m[2])) for m in re.finditer(
        r"^   \* - ``(kofi_\w+)``\n     - (.*?)\n     - ", page, re.M | re.S)}


def commands():
    """Commands of the tool, and below "blk", and its long options."""
    tool = TOP / "tools/kofi"
    names = set(re.findall(r'^\t\{ "(\w+)", cmd_', (tool / "main.c").read_text(), re.M))
    below = set(re.findall(r'^\t\{ "(\w+)", blk_', (tool / "blk.c").read_text(), re.M))
    options = set(re.findall(r'^\t\{ "([\w-]+)",\s+\w+_argument',
                             "".join(p.read_text() for p in tool.glob("*.c")), re.M))
    return names, below, options


def classes():
    text = (TOP / "kofi/names-gen.h").read_text()
    return {name.lower() for name in re.findall(r"FI_CLASS_(\w+)", text)}


def main():
    page = PAGE.read_text()
    bad = []
    there, listed = events(), documented(page)
    for name in sorted(there.keys() | listed.keys()):
        if name not in there:
            bad.append(f"there is no trace event {name}")
        elif name not in listed:
            bad.append(f"the trace event {name} is missing")
        elif there[name] != listed[name]:
            bad.append(f"{name}: its fields are {', '.join(sorted(there[name]))}")
    for name in re.findall(r"trace events? ((?:``\w+``(?:, | and )?)+)", page):
        bad += [f"there is no trace event {event}"
                for event in re.findall(r"\w+", name) if event not in there | {"and": 0}]
    names, below, options = commands()
    for words in re.findall(r"``kofi ([^`]*)``", page):
        first, *rest = words.split()
        if first not in names:
            bad.append(f"kofi {first}: no such command")
        if first == "blk" and rest and rest[0] not in below:
            bad.append(f"kofi blk {rest[0]}: no such command")
        if first == "stat" and rest and rest[0].islower() and rest[0] not in classes():
            bad.append(f"kofi stat {rest[0]}: no such class")
    for option in re.findall(r"(?<![\w-])--([\w-]+)", page):
        if option not in options:
            bad.append(f"--{option}: no such option")
    if not there or not names or not options:
        bad.append("the sources are not as this script expects them")
    for line in bad:
        print(f"{PAGE.relative_to(TOP)}: {line}")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
