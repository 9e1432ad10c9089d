#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What kofi/names.c makes its tables of: the names of a netlink spec as C macros.

The generator of the kernel renders constants and policies, but neither
libfabric's spelling as text nor which member of a structure an attribute is.
One macro per definition, and KOFI_NAMES for all of them, calls its argument
with the name and value of each entry; one per set that describes a structure
of the same name calls it with the structure, the member, the attribute, the
form of its text and the names of its values.
"""

import sys
import textwrap

import yaml

# Structures that are described, member by member. What else is in an info has
# no set of its own, or members the spec knows nothing of: see names.c.
STRUCTS = ("tx-attr", "rx-attr", "ep-attr", "domain-attr", "fabric-attr",
           "device-attr", "pci-attr", "link-attr")
# Forms that the type of an attribute does not tell.
FORMS = {
    "api-version": "VERSION",
    "comp-order": "ORDER",
    "ep-attr.rx-ctx-cnt": "CONTEXTS",
    "ep-attr.tx-ctx-cnt": "CONTEXTS",
    "max-cntr-value": "HIDDEN",
    "max-ep-auth-key": "HIDDEN",
    "max-err-cntr-value": "HIDDEN",
    "max-group-id": "HIDDEN",
    "mem-tag-format": "HEX64",
    "protocol": "OPEN_ENUM",
    "prov-version": "VERSION",
    "tclass": "HEX",
}


def c_name(name):
    return name.replace("-", "_")


def constant(name):
    c = c_name(name.upper())
    return c if c.startswith("KOFI_") else "FI_" + c


def macro(name, arg, calls):
    print(f"\n#define {name}({arg}) \\")
    # blanks within a call are no place to break a line at
    lines = textwrap.wrap(" ".join(c.replace(" ", "\0") for c in calls), 90,
                          break_on_hyphens=False, break_long_words=False)
    print(" \\\n".join("\t" + line.replace("\0", " ") for line in lines))


def names_macro(definition):
    return "KOFI_NAMES_" + c_name(definition["name"]).upper()


def names(definition):
    value = definition.get("value-start", 0)
    for e in definition["entries"]:
        if isinstance(e, dict):
            value = e.get("value", value)
            e = e["name"]
        number = f"1ULL << {value}" if definition["type"] == "flags" else value
        yield f"X({constant(e)}, {number})"
        value += 1


def fields(owner, definitions):
    for a in owner["attributes"]:
        name = owner["name"] + "." + a["name"]
        # flags have the name of their definition
        table = a.get("enum", a["name"])
        form = FORMS.get(name, FORMS.get(a["name"]))
        if not form and table in definitions:
            form = definitions[table]["type"].upper()
        if not form:
            form = "TEXT" if a["type"] == "string" else "NUMBER"
        if table not in definitions and form != "ORDER":
            table = "none"
        attribute = c_name(name).replace(".", "_").upper()
        yield (f"F({c_name(owner['name'])}, {c_name(a['name'])}, {attribute}, "
               f"{form}, {c_name(table)})")


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        text = f.read()
    spec = yaml.safe_load(text)
    print("/* " + text.splitlines()[0].lstrip("# ") + " */")
    print("/* Do not edit directly, auto-generated from: */")
    print("/*\tDocumentation/netlink/specs/" + spec["name"] + ".yaml */")
    print("/* by tools/kofi/names.py */")
    definitions = {d["name"]: d for d in spec["definitions"]
                   if d["type"] in ("enum", "flags")}
    for d in definitions.values():
        macro(names_macro(d), "X", names(d))
    macro("KOFI_NAMES", "X",
          [names_macro(d) + "(X)" for d in definitions.values()])
    for s in spec["attribute-sets"]:
        if s["name"] in STRUCTS:
            macro("KOFI_FIELDS_" + c_name(s["name"]).upper(), "F",
                  fields(s, definitions))


main()
