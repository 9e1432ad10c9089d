#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Do tables of the documentation agree with the sources?

A comment in front of a table says which source it is compared with:

  .. table: STRUCTURE   the first column has the members of the structure
  .. table: values      rows NAME, range, default: the range of a default that is a
                        parameter of kofi_sock is the range of the parameter
  .. table: orders      rows then, cells after: the providers that promise the order
  .. table: capabilities
                        the first column has the capabilities of all providers
  .. table: locks       the first column has the mutexes and spinlocks of core and
                        providers, as STRUCTURE.MEMBER or as the name of a variable
  .. table: statistics  rows class, names: the second column has the statistics of the core
  .. table: fi_errno    rows NAME, value: the codes of fi_errno.h that are none of Linux
  .. table: wc_errors   rows STATUS, code: the errors of kofi_verbs for a status
  .. table: refusals    the first column has the codes that fi_endpoint.h lists for posts
  .. table: returns FUNCTION
                        the first column has the codes in the kernel-doc of the function
  .. table: attributes  the rows of numbers in the configfs of kofi_blk have "MIN to MAX" and
                        the default in brackets
  .. table: options PREFIX
                        the first column has the macros of kofi.h with this prefix
  .. table: constants   lines TEXT = CONSTANT follow, indented: the table or list has the
                        text, and its last number is the value of the constant

A line for each difference, and for each file with exported functions that api.rst lacks.
"""

import pathlib
import re
import sys

import params

TOP = params.TOP
DOCS = TOP / "Documentation"
HEADERS = TOP / "include/linux/kofi"
MARK = r"\.\. table: .+\n(?:   .+\n)*"
CODE = ("include/linux/kofi", "kofi", "providers", "clients")


def rows(text):
    """The cells of each row of the list-table that TEXT begins with, but the head."""
    table = re.match(r"\.\. list-table::.*?\n\n(.*?)(?=^\S|\Z)", text, re.M | re.S)
    found = re.split(r"^   \* - ?", table[1], flags=re.M)[1:] if table else []
    head = bool(table) and ":header-rows:" in table[0]
    return [[" ".join(cell.split()) for cell in re.split(r"^     - ?", row, flags=re.M)]
            for row in found[head:]]


def names(cell):
    return re.findall(r"``-?([^`]+)``", cell)


def differ(what, listed, there):
    return ([f"{what}: {name} is missing" for name in there if name not in listed]
            + [f"{what}: there is no {name}" for name in listed if name not in there])


def sources(*folders):
    """Texts of the C files, without comments."""
    for folder in folders:
        for path in sorted((TOP / folder).rglob("*.[ch]")):
            yield re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)


def members(name):
    for path in HEADERS.glob("*.h"):
        m = re.search(rf"^struct {name} {{\n(.*?)^}};", path.read_text(), re.M | re.S)
        if m:
            return [a or b for a, b in re.findall(r"(\w+);|\(\*(\w+)\)\(", m[1])]
    return []


def structure(name, table):
    there = members(name)
    return (differ(name, [member for row in table for member in names(row[0])], there)
            + ([] if there else [f"there is no structure {name}"]))


def options(prefix, table):
    there = re.findall(rf"^#define\s+({prefix}\w+)\s", (HEADERS / "kofi.h").read_text(), re.M)
    return differ("options", {name for row in table for name in names(row[0])}, there)


def orders(table):
    """A cell "all", or with names of providers, that have the order in brackets."""
    macros = {"kofi_sock": ("sock/info.c", "KSK_MSG_ORDER"), "kofi_rxm": ("rxm/main.c",
              "RXM_ORDER"), "kofi_verbs": ("verbs/info.c", "VRB_MSG_ORDER")}
    there, listed = set(), set()
    for provider, (path, name) in macros.items():
        text = (TOP / "providers" / path).read_text().replace("\\\n", "")
        # also with the suffix _BELOW: granted if the provider below promises it
        found = re.findall(rf"^#define {name}\w*\s+(.*)", text, re.M)
        there |= {(provider, order)
                  for order in re.findall(r"FI_ORDER_([A-Z]+)\b", " ".join(found))}
    for cell in (cell for row in table for cell in row[1:]):
        order = re.search(r"\(``(\w+)``\)", cell)
        if order:
            listed |= {(provider, order[1]) for provider in macros
                       if cell.startswith("all") or provider in cell}
    return differ("orders", listed, there)


def capabilities(table):
    there = set()
    for path in (TOP / "providers").rglob("*.c"):
        text = path.read_text().replace("\\\n", "")
        for m in re.finditer(r"^#define (?:KSK|RXM|VRB)_\w*CAPS\s+(.*)", text, re.M):
            there |= set(re.findall(r"FI_\w+", m[1]))
    return differ("capabilities", {name for row in table for name in names(row[0])},
                  there | {"FI_ATOMIC"})


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


def locks(table):
    there = set()
    for text in sources("include/linux/kofi", "kofi", "providers"):
        there |= set(re.findall(r"^(?:static )?DEFINE_(?:MUTEX|SPINLOCK)\((\w+)\)", text,
                                re.M))
        for m in re.finditer(r"^struct (\w+) \{\n(.*?)^\}", text, re.M | re.S):
            there |= {f"{m[1]}.{lock}" for lock in re.findall(
                r"^\s+(?:struct mutex|spinlock_t)\s+(\w+)", m[2], re.M)}
    # the lock of a counter is the one of its wait queue; rdma_cm is a module
    there |= {"kofi_cntr.wait.lock", "rdma_cm"}
    return differ("locks", {name for row in table for name in names(row[0])}, there)


def statistics(table):
    there = {"events_lost"}
    for path in (TOP / "kofi").glob("*.c"):
        text = path.read_text()
        there |= set(re.findall(r'\bfn\(arg, "(\w+)"', text))
        for m in re.finditer(r"names\[2\]\[5\] = {(.*?)};", text, re.S):
            there |= {name[3:] for name in re.findall(r'"(\w+)"', m[1])}
    return differ("statistics", {name for row in table for name in names(row[1])}, there)


def fi_errno(table):
    text = (HEADERS / "fi_errno.h").read_text()
    text = text.replace("= FI_ERRNO_OFFSET", "= 256")
    there = set(re.findall(r"^\s+(FI_E\w+)\s*=\s*(\d+)", text, re.M))
    return differ("codes", {(row[0].strip("`"), row[1]) for row in table}, there)


def wc_errors(table):
    text = (TOP / "providers/verbs/cq.c").read_text()
    m = re.search(r"vrb_wc_errors\[\] = {(.*?)};", text, re.S)
    there = set(re.findall(r"\[(\w+)\]\s*= (\w+),", m[1])) if m else set()
    return differ("status", {(status, names(row[1])[0]) for row in table
                             for status in names(row[0])}, there)


def refusals(table):
    text = (HEADERS / "fi_endpoint.h").read_text()
    there = {code for line in re.findall(r"^ \*   -.*", text, re.M)
             for code in re.findall(r"-((?:FI_)?E[A-Z0-9]+)\b", line)}
    return differ("refusals", {name for row in table for name in names(row[0])}, there)


def returns(function, table):
    for path in sorted((TOP / "kofi").rglob("*.c")) + sorted(HEADERS.glob("*.h")):
        m = re.search(rf"^ \* {function}\(?\)? - .*?\*/", path.read_text(), re.M | re.S)
        m = m and re.search(r"Return:(.*)", m[0], re.S)
        if m:
            there = set(re.findall(r"-((?:FI_)?E[A-Z0-9]+)\b", m[1]))
            return differ(function, {name for row in table for name in names(row[0])
                                     if re.match("(FI_)?E", name)}, there)
    return [f"there is no {function}() with a description of its value"]


def attributes(table):
    text = (TOP / "clients/blk/config.c").read_text()
    limits = {"KBLK_QUEUES": constant("KBLK_QUEUES", defines())}
    defaults = dict(re.findall(r"k->opt\.(\w+) = (\d+);", text))
    said = {name: row[1] for row in table for name in names(row[0])}
    bad = differ("attributes", said, re.findall(r"&kblk_attr_(\w+),", text))
    for name, low, high in re.findall(r"^KBLK_STORE_NUMBER\((\w+), (\d+), (\w+)\)", text,
                                      re.M):
        wanted = f"{low} to {limits.get(high, high)} ({defaults.get(name, 0)}"
        if wanted not in said.get(name, ""):
            bad.append(f"{name}: the text does not have '{wanted})'")
    return bad


def defines():
    """Name -> text of the macros, enumerators and parameters of the sources."""
    found = {}
    for source in sources(*CODE):
        for name, expression in re.findall(r"^#define\s+(\w+)[ \t]+(\S.*)$", source, re.M):
            found[name] = expression.strip()
        for name, number in re.findall(r"^\t(\w+)\s*= (\d+),", source, re.M):
            found.setdefault(name, number)
        for name, default in re.findall(r"^KOFI_PARAM\((\w+), \w+, (\w+),", source, re.M):
            found.setdefault(name, default)
    return found


def constant(name, defined, depth=0):
    """Value of a constant, or None."""
    text = defined.get(name)
    if text is None or depth > 4:
        return None
    text = re.sub(r"\((?:size_t|u\d+|unsigned int)\)", "", text)
    text = re.sub(r"\bSZ_(\d+)([KMG])\b", lambda m: str(
        int(m[1]) << {"K": 10, "M": 20, "G": 30}[m[2]]), text)
    text = re.sub(r"\b(\d+)[UL]+\b", r"\1", text).replace("MAX_RW_COUNT", "2147479552")
    text = re.sub(r"\b[A-Z_][A-Z0-9_]*\b",
                  lambda m: str(constant(m[0], defined, depth + 1)), text)
    text = text.strip('"')
    if not re.fullmatch(r"[\d\s()+*<-]+", text):
        return None
    return eval(text, {"__builtins__": {}})  # pylint: disable=eval-used


def constants(wanted, text):
    defined = defines()
    text = " ".join(re.split(r"\n\n(?=[^\s*])|\Z", text, maxsplit=2)[0].split())
    bad = []
    for line in wanted:
        said, _, name = line.partition(" = ")
        m = re.search(r"([\d,]*\d)\s*(KiB|MiB|GiB|s\b)?\D*$", said)
        got = constant(name, defined)
        unit = {None: 1, "s": 1000, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
        if said not in text:
            bad.append(f"{name}: the text does not have '{said}'")
        if got is None:
            bad.append(f"there is no constant {name} with a number")
        elif not m or int(m[1].replace(",", "")) * unit[m[2]] != got:
            bad.append(f"{name} is {got}, not {said}")
    return bad


def compare(mark, lines, text):
    name, *args = mark.split()
    # one table may have several marks
    text = re.sub(rf"\A(?:{MARK}\n*)+", "", text)
    if name == "constants":
        return constants(lines, text)
    table = rows(text)
    if not table:
        return [f"there is no table behind the mark {mark}"]
    known = {"values": values, "locks": locks, "statistics": statistics,
             "fi_errno": fi_errno, "wc_errors": wc_errors, "refusals": refusals,
             "attributes": attributes, "orders": orders, "capabilities": capabilities}
    if name in ("returns", "options"):
        return {"returns": returns, "options": options}[name](*args, table)
    return known[name](table) if name in known else structure(name, table)


def api():
    """The files with exported functions that api.rst does not have."""
    page = (DOCS / "api.rst").read_text()
    for path in sorted((TOP / "kofi").rglob("*.c")):
        name = path.relative_to(TOP)
        if "EXPORT_SYMBOL_GPL(" in path.read_text() and f"kernel-doc:: {name}\n" not in page:
            yield f"Documentation/api.rst: {name} is missing"


def main():
    bad, seen = list(api()), 0
    for path in sorted(DOCS.rglob("*.rst")):
        text = path.read_text()
        for m in re.finditer(r"^\.\. table: (.+)\n((?:   .+\n)*)\n*", text, re.M):
            seen += 1
            lines = [line.strip() for line in m[2].splitlines()]
            bad += [f"{path.relative_to(TOP)}: {line}"
                    for line in compare(m[1], lines, text[m.end():])]
    if not seen:
        bad.append("no table has a mark")
    for line in bad:
        print(line)
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
