#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Are the module parameters that README.md lists those of the sources?

A line for each one that is missing, superfluous, or has another default or
range than the code.
"""

import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent.parent


def of_sources():
    """name -> (default, range), or None for one whose range is not checked."""
    found = {}
    for folder in ("kofi", "providers", "clients", "samples"):
        for path in sorted((TOP / folder).rglob("*.c")):
            if path.name.endswith(".mod.c"):
                continue
            text = path.read_text()
            for m in re.finditer(r"^module_param\w*\((\w+),", text, re.M):
                found[m[1]] = None
            for m in re.finditer(r"^KOFI_PARAM\((\w+), \w+, (\w+), (\w+), (\w+),",
                                 text, re.M):
                found[m[1]] = m[2], f"{m[3]} to {m[4]}"
    return found


def main():
    text = (TOP / "README.md").read_text()
    text = text[text.index("## Module parameters"):]
    text = text[:text.index("\n## ", 1)]
    listed = {m[1]: (m[2], m[3]) for m in re.finditer(
        r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|", text, re.M)}
    sources = of_sources()
    bad = [f"{name} is not there" for name in listed if name not in sources]
    for name, value in sources.items():
        if name not in listed:
            bad.append(f"{name} is missing")
        elif value and value != listed[name]:
            bad.append(f"{name}: {value[0]}, {value[1]} in the sources")
    for line in bad:
        print(f"README.md: module parameters: {line}")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
