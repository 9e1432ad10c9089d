#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Do tables of the documentation agree with the sources?

A comment in front of a table says which source it is compared with:

  .. table: STRUCTURE   the first column has the members of the structure
  .. table: values      rows NAME, range, default: the range of a default that is a
                        parameter of kofi_sock is the range of the parameter

A line for each difference.
"""

import pathlib
import re
import sys

import params

TOP = params.TOP
DOCS = TOP / "Documentation"


def rows(text):
    """The cells of each row of the list-table that TEXT begins with, but the head."""
    table = re.match(r"\.\. list-table::.*?\n\n(.*?)(?=^\S|\Z)", text, re.M | re.S)
    found = re.split(r"^   \* - ", table[1], flags=re.M)[2:] if table else []
    return [[" ".join(cell.split()) for cell in re.split(r"^     - ", row, flags=re.M)]
            for row in found]


def members(name):
    for path in (TOP / "include/linux/kofi").glob("*.h"):
        m = re.search(rf"^struct {name} {{\n(.*?)^}};", path.read_text(), re.M | re.S)
        if m:
            return re.findall(r"(\w+);", m[1])
    return []


def structure(name, table):
    listed, there = [row[0].strip("`") for row in table], members(name)
    return ([f"{name}: {m} is missing" for m in there if m not in listed]
            + [f"{name} has no member {m}" for m in listed if m not in there]
            + ([] if there else [f"there is no structure {name}"]))


def values(table):
    ranges = {name: value[1] for (module, name), value in params.of_sources().items()
              if module == "kofi_sock" and value}
    bad = []
    for name, text, default in table:
        default = default.strip("`")
        m = re.search(r"(\d+)(?: \(never\))? to (\d+)", text)
        if default in ranges and (not m or f"{m[1]} to {m[2]}" != ranges[default]):
            bad.append(f"{name}: the range of {default} is {ranges[default]}")
        elif default not in ranges and not re.fullmatch(r"-?\d+", default):
            bad.append(f"{name}: there is no parameter {default}")
    return bad


def main():
    bad, seen = [], 0
    for path in sorted(DOCS.rglob("*.rst")):
        text = path.read_text()
        for m in re.finditer(r"^\.\. table: (\w+)\n+", text, re.M):
            seen += 1
            table = rows(text[m.end():])
            said = (values(table) if m[1] == "values" else structure(m[1], table))
            if not table:
                said = [f"there is no table behind the mark {m[1]}"]
            bad += [f"{path.relative_to(TOP)}: {line}" for line in said]
    if not seen:
        bad.append("no table has a mark")
    for line in bad:
        print(line)
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
