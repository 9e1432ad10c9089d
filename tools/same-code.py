#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Do two commits differ in nothing but comments and white space?

    same-code.py BASE [HEAD]

Compares the C files (*.c, *.h) of both trees in git without a checkout. A comment
counts as white space, and a run of white space as one space. String literals,
character constants, continued lines and the line structure of preprocessor
directives are respected. Prints each file that differs with its first differing
line, and exits 1.

Line numbers, and so __LINE__, may differ.
"""

import re
import subprocess
import sys
from bisect import bisect_right
from itertools import zip_longest

# A quote without its partner is a character by itself, as in "#error don't".
TOKEN = re.compile(r"""
    (?P<space>(?: [^\S\n] | /\*.*?\*/ | //[^\n]* )+)
  | (?P<line>\n)
  | (?P<text>"(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | \w+ | .)""", re.X | re.S)


def tokens(source):
    """Yield (token, with a space in front if white space is there, line number)."""
    text, splices = "", []
    for part in source.split("\\\n"):
        text += part
        splices.append(len(text))
    # first: only white space is before it in the line; fresh: a space says nothing
    directive, first, fresh, space = False, True, True, ""
    line, seen = 1, 0
    for m in TOKEN.finditer(text):
        line += text.count("\n", seen, m.start())
        seen = m.start()
        if m["space"] or m["line"] and not directive:
            space = " "
            first = first or bool(m["line"])
            continue
        at = line + bisect_right(splices[:-1], m.start())
        # a directive is a line of its own
        starts = first and m["text"] == "#"
        if starts or m["line"]:
            yield "\n", at
            directive, first, fresh = starts, True, True
        if m["text"]:
            yield ("" if fresh else space) + m["text"], at
            first, fresh = False, False
        space = ""


def difference(old, new):
    """None, or the numbers of the first lines that differ in OLD and in NEW."""
    ends = [(None, text.count("\n") + 1) for text in (old, new)]
    for a, b in zip_longest(tokens(old), tokens(new)):
        a, b = a or ends[0], b or ends[1]
        if a[0] != b[0]:
            return a[1], b[1]
    return None


def git(*args):
    return subprocess.run(["git", *args], check=True, capture_output=True,
                          text=True, errors="surrogateescape").stdout


def files(commit):
    """Path -> blob of each C file of a commit."""
    found = {}
    for entry in git("ls-tree", "-rz", "--full-tree", commit).split("\0"):
        head, _, path = entry.partition("\t")
        if path.endswith((".c", ".h")):
            found[path] = head.split()[2]
    return found


def main(base, head="HEAD"):
    old, new = files(base), files(head)
    bad = []
    for path in sorted(old.keys() | new.keys()):
        if old.get(path) == new.get(path):
            continue
        if path not in old or path not in new:
            bad.append(f"{path}: only in {head if path in new else base}")
            continue
        found = difference(*(git("cat-file", "blob", tree[path])
                             for tree in (old, new)))
        if found:
            bad.append(f"{path}:{found[1]}: differs from line {found[0]} of {base}")
    print("\n".join(bad) or f"no difference between {base} and {head}")
    return bool(bad)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
