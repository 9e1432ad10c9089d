#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Are the module parameters that Documentation/parameters.rst lists those of the
sources?

A line for each one that is missing below its module, superfluous, or has another
default or range than the code.
"""

import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = TOP / "Documentation" / "parameters.rst"


def modules():
    """Source file -> name of its module, as the Kbuild files say."""
    found = {}
    for folder in ("kofi", "providers", "clients", "samples"):
        for path in (TOP / folder).rglob("Kbuild"):
            text = path.read_text().replace("\\\n", " ")
            for m in re.finditer(r"^([\w-]+)-(?:y|objs) [:+]= (.*)$", text, re.M):
                for part in m[2].split():
                    found[path.parent / part.replace(".o", ".c")] = m[1]
    return found


def of_sources():
    """(module, name) -> (default, range), or None if the code has no KOFI_PARAM()."""
    found = {}
    for path, module in modules().items():
        text = path.read_text() if path.exists() else ""
        for m in re.finditer(r"^module_param\w*\((\w+),", text, re.M):
            found[module, m[1]] = None
        for m in re.finditer(r"^KOFI_PARAM\((\w+), \w+, (\w+), (\w+), (\w+),",
                             text, re.M):
            found[module, m[1]] = m[2], f"{m[3]} to {m[4]}"
    return found


def of_page():
    found, module = {}, None
    for line in PAGE.read_text().splitlines():
        if m := re.fullmatch(r"``(\w+)``", line):
            module = m[1]
        elif m := re.match(r"   ``(\w+)`` \| ([^|]+) \| ([^|]+) \|", line):
            found[module, m[1]] = m[2], m[3]
    return found


def main():
    listed, sources = of_page(), of_sources()
    bad = [f"{m}: {name} is not there" for m, name in listed
           if (m, name) not in sources]
    for (m, name), value in sources.items():
        if (m, name) not in listed:
            bad.append(f"{m}: {name} is missing")
        elif value and value != listed[m, name]:
            bad.append(f"{m}: {name}: {value[0]}, {value[1]} in the sources")
    for line in bad:
        print(f"{PAGE.relative_to(TOP)}: {line}")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
