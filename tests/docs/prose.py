#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Is the English of added lines as plain as that of the kernel?

Counts turns of phrase that kernel developers rarely use, in the comments, pages
and manual pages that have been added since the commit BASE, including changes that
are not committed; lines that were moved are not new. Each phrase has a goal: occurrences
per 10,000 words. If the added text has more by two standard deviations, all places
are printed as file:line, and the check fails.

Older text is not judged, so BASE moves only to a commit whose own additions pass.
Without git or without the commit (a tarball, a shallow clone) nothing is judged,
and a note says so.

    prose.py                judge what was added since BASE
    prose.py COMMIT         judge what was added since COMMIT
    prose.py --all FILE...  print each place in whole files
"""

import math
import os
import re
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
BASE = "dc7c5eba3401"

# what to avoid, the goal per 10,000 words, patterns
PHRASES = [
    ("'what' or 'whatever' for a noun", 8, r"what(?:ever)?"),
    ("'who', 'whom' or 'whoever'", 2, r"who(?:m|ever)?"),
    ("'whose'", 3, r"whose"),
    ("'that of' or 'those of'", 1, r"(?:that|those) of"),
    # "the end" and "both ends" are nouns
    ("'end' for complete, fail, close", 10,
     r"(?<!the )(?<!both )(?<!its )(?<!other )(?<!either )(?<!an )ends?(?!-)"),
    ("'anew', 'beside', 'meanwhile', 'for want of', 'in vain'", 1,
     r"anew|besides?|meanwhile|for want of|in vain"),
    ("'no more' or 'any more'", 2, r"(?:no|any) more"),
    ("'tell of', 'hear of', 'say so'", 1,
     r"(?:tells?|told|hears?|heard) of|says? so"),
    ("'has to' or 'is to be'", 12,
     r"ha(?:s|ve|d) to|(?:is|are|was|were) to be"),
]
# never, and only in comments: a member's or function's line stands alone
LINES = [
    ("a member's text that needs the line above it",
     r"@\w+: (?:the same|likewise|as above|its|and|of (?:them|these|it))\b"),
    ("a question for a summary", r"\w+(?:\(\))? - .*\?$"),
]
GOALS = {name: goal for name, goal, _ in PHRASES} | {n: 0 for n, _ in LINES}
PHRASES = [(name, re.compile(rf"\b(?:{p})\b", re.I)) for name, _, p in PHRASES]
LINES = [(name, re.compile(rf"^[\s*/]*{p}")) for name, p in LINES]
# a string hides what looks like a comment
TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|(/\*.*?\*/|//[^\n]*)', re.S)


def prose(path, text):
    """Yield (line number, line) for each line of TEXT that is English."""
    if path.suffix not in (".c", ".h"):
        yield from enumerate(text.split("\n"), 1)
        return
    if "auto-generated from:" in text[:2000]:
        return
    for m in TOKEN.finditer(text):
        if m[1] and "SPDX" not in m[1]:
            yield from enumerate(m[1].split("\n"),
                                 text.count("\n", 0, m.start()) + 1)


def judged(path):
    """Comments of tests are for few readers."""
    return path.parts[0] != "tests" and \
        path.suffix in (".c", ".h", ".rst", ".md", ".8")


def git(*args):
    run = subprocess.run(
        ["git", "-c", f"safe.directory={TOP}", "-c", "core.quotePath=off", *args],
        cwd=TOP, text=True, errors="replace", stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, check=False)
    return run.stdout if run.returncode == 0 else None


def added(base):
    """path -> numbers of its lines added since BASE; None for all; or no dict."""
    found, removed, path, number = {}, set(), None, 0
    diff = git("diff", "-U0", "-M", "--no-color", "--no-ext-diff",
               "--src-prefix=a/", "--dst-prefix=b/", base)
    if diff is None:
        return None
    for line in diff.split("\n"):
        if line.startswith("+++ "):
            path = Path(line[6:].rstrip("\t"))
        elif m := re.match(r"@@ -\S+ \+(\d+)", line):
            number = int(m[1])
        elif line.startswith("+"):
            found.setdefault(path, {})[number] = line[1:].strip()
            number += 1
        elif line.startswith("-"):
            removed.add(line[1:].strip())
    for path, lines in found.items():
        found[path] = {n for n, line in lines.items() if line not in removed}
    for name in (git("ls-files", "-o", "--exclude-standard") or "").split("\n"):
        if name:
            found[Path(name)] = None
    return found


def look(files):
    """(words, {phrase: [place]}) of FILES, as added() returns them."""
    words, places = 0, {name: [] for name in GOALS}
    for path, lines in sorted(files.items()):
        if not judged(path):
            continue
        try:
            text = (TOP / path).read_text(errors="replace")
        except OSError:
            continue
        for number, line in prose(path, text):
            if lines is not None and number not in lines:
                continue
            words += len(re.findall(r"[A-Za-z']+", line))
            some = PHRASES + (LINES if path.suffix in (".c", ".h") else [])
            for name, pattern in some:
                for _ in pattern.finditer(line):
                    places[name].append(f"{path}:{number}: {name}: {line.strip()}")
    return words, places


def main():
    args = sys.argv[1:]
    if args[:1] == ["--all"]:
        here = Path.cwd()
        _, places = look({Path(os.path.relpath(here / f, TOP)): None
                          for f in args[1:]})
        for some in places.values():
            print(*some, sep="\n", end="\n" if some else "")
        return 0
    base = args[0] if args else BASE
    files = added(base)
    if files is None:
        print(f"nothing is judged: there is no git or no commit {base} here")
        return 0
    words, places = look(files)
    bad = False
    for name, some in places.items():
        mean = GOALS[name] * words / 10000
        most = math.ceil(mean + 2 * math.sqrt(mean))
        if len(some) > most:
            print(*some, sep="\n")
            print(f"{name}: {len(some)} in {words} added words, at most {most}")
            bad = True
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
