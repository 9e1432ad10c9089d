#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Are the module parameters that README.md lists those of the sources?

A line for each one that is missing, superfluous, or has another default or
range than the code, or describes itself as having another.
"""

import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent.parent


def number(text, name):
    """Default and range of a parameter that checks its range, or None."""
    limits = re.search(rf"struct \w+ \w+ = {{ &(\w*_{name}), (\w+), (\w+) }};",
                       text)
    if not limits:
        return None
    start = re.search(rf"^unsigned int {limits[1]}(?: = (\w+))?;", text, re.M)
    return start[1] or "0", f"{limits[2]} to {limits[3]}"


def of_sources():
    """name -> ((default, range) or None, its description)."""
    found = {}
    for folder in ("kofi", "providers", "samples"):
        for path in sorted((TOP / folder).rglob("*.c")):
            if path.name.endswith(".mod.c"):
                continue
            text = path.read_text()
            for m in re.finditer(r"^module_param\w*\((\w+),", text, re.M):
                says = re.search(rf"MODULE_PARM_DESC\({m[1]},\s*\"(.*)\"\);",
                                 text)
                found[m[1]] = (number(text, m[1]), says[1] if says else "")
    return found


def main():
    text = (TOP / "README.md").read_text()
    text = text[text.index("## Module parameters"):]
    text = text[:text.index("\n## ", 1)]
    listed = {m[1]: (m[2], m[3]) for m in re.finditer(
        r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|", text, re.M)}
    sources = of_sources()
    bad = [f"{name} is not there" for name in listed if name not in sources]
    for name, (value, says) in sources.items():
        if name not in listed:
            bad.append(f"{name} is missing")
        elif value and value != listed[name]:
            bad.append(f"{name}: {value[0]}, {value[1]} in the sources")
        if value and not says.endswith(f"({value[1]}, default {value[0]})"):
            bad.append(f"{name}: its MODULE_PARM_DESC says otherwise")
    for line in bad:
        print(f"README.md: module parameters: {line}")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
