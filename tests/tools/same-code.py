#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Does tools/same-code.py see changed code, and only that? A line per failure."""

import importlib.util
import sys
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "same-code.py"

SAME = [
    ("int a; /* one */\n", "/*\n * two\n * lines\n */\nint a;\n"),
    ("f(a, /* in */ b);\n", "f(a,\n  b); // out\n"),
    ("int a; // x \\\n y\nint b;\n", "int a;\nint b;\n"),
    ("#define A(x) \\\n\t((x) + 1)\t/* x */\n", "#define A(x) ((x) + 1)\n"),
    ("a; /* it's */\n'\"'; /* \" */ \"b\";\n", "a; '\"'; \"b\";\n"),
    ("#define A /* of\n two lines */ 1\n", "#define A 1 /* one */\n"),
    ("#error don't\n/* 'x' */ int a;\n", "#error don't\nint a;\n"),
    ("a;\n#if B\nc;\n", "/* x */ a; /* y */\n  #if B // z\nc;\n\n"),
]
# old, new, line of the difference in new
OTHER = [
    ("int a;\n", "int b;\n", 1),
    ("a;\nb;\n", "a;\n/* b; */\n", 3),
    ("a;\n", "a;\n\n\nb;\n", 4),
    ('s = "/* x */";\n', 's = "/* y */";\n', 1),
    ('s = "a b";\n', 's = "a  b";\n', 1),
    ("c = '\"'; /* \" */ d;\n", "c = '\"'; /* \" */ e;\n", 1),
    ("x = a - -b;\n", "x = a --b;\n", 1),
    ("#define A(x) x\n", "#define A (x) x\n", 1),
    ("#define A b\nc;\n", "#define A b c;\n", 1),
    ("a; // x\nb;\n", "a; // x \\\nb;\n", 3),
    ("#define A \\\n\tb \\\n\tc\n", "#define A \\\n\tb \\\n\td\n", 3),
    ("/* x\n y */\na\\\nb;\nc;\n", "/* x\n y */\na\\\nb;\nd;\n", 5),
    ("#if A\nb;\n", "if A\nb;\n", 1),
]


def main():
    spec = importlib.util.spec_from_file_location("same_code", TOOL)
    tool = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True
    spec.loader.exec_module(tool)
    bad = [f"finds a difference at {tool.difference(old, new)}: {old!r}, {new!r}"
           for old, new in SAME if tool.difference(old, new)]
    for old, new, line in OTHER:
        found = tool.difference(old, new)
        if not found or found[1] != line:
            bad.append(f"finds {found}, not line {line}: {old!r}, {new!r}")
    print("\n".join(bad), end="\n" if bad else "")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
