#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Names and numbers of the constants a netlink spec defines, as C macros.

The generator of the kernel renders a constant for the kernel or for uapi, but
not libfabric's spelling as text, which the kofi tool prints and parses. One
macro per definition calls its argument for each entry; the tool makes tables
of it, and the kernel's tests compare it with linux/kofi/fabric.h.
"""

import sys

import yaml


def constant(name):
    c = name.upper().replace("-", "_")
    return c if c.startswith("KOFI_") else "FI_" + c


def main():
    text = open(sys.argv[1], encoding="utf-8").read()
    spec = yaml.safe_load(text)
    print("/* " + text.splitlines()[0].lstrip("# ") + " */")
    print("/* Do not edit directly, auto-generated from: */")
    print("/*\tDocumentation/netlink/specs/" + spec["name"] + ".yaml */")
    print("/* by tools/kofi/names.py */")
    for d in spec["definitions"]:
        if d["type"] not in ("enum", "flags"):
            continue
        rows = []
        value = d.get("value-start", 0)
        for e in d["entries"]:
            if isinstance(e, dict):
                value = e.get("value", value)
                e = e["name"]
            number = f"1ULL << {value}" if d["type"] == "flags" else value
            rows.append(f"\tX({constant(e)}, {number})")
            value += 1
        print(f"\n#define KOFI_NAMES_{d['name'].upper().replace('-', '_')}(X) \\")
        print(" \\\n".join(rows))


main()
