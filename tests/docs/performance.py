#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Does Documentation/performance.rst agree with the reports in Documentation/performance?

The generated parts must equal the output of tools/vm/perfpage.py, and each target of
a row of bench.json must be the target in tools/vm/bench.py. A comment in front of a
section says which missed targets the section is about:

  .. missed: ACCEL/NAME     "*" stands for any text

Each missed target needs such a comment, and each comment a missed target. A line for
each fault.
"""

import fnmatch
import json
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "tools/vm"))
import perfpage  # noqa: E402, pylint: disable=wrong-import-position


def stale(rows, by_size):
    """The generated parts that are not as perfpage.py writes them."""
    if not perfpage.REGION.search(perfpage.PAGE.read_text()):
        yield "Documentation/performance.rst: the results have no marks"
    wanted = perfpage.files(rows, by_size)
    for path, words in wanted.items():
        if not path.exists() or path.read_text() != words:
            yield f"{path.relative_to(TOP)}: differs from the output of tools/vm/perfpage.py"
    for path in sorted(perfpage.FOLDER.iterdir()):
        if path not in wanted:
            yield f"{path.relative_to(TOP)}: tools/vm/perfpage.py does not write it"


def targets(rows):
    there = perfpage.measured()
    for row in rows:
        target = there.get(perfpage.key(row))
        if row["target"] not in (None, target):
            yield f"bench.json: {row['accel']}/{row['name']}: the target is {target}"


def reasons(rows):
    marks = re.findall(r"^\.\. missed: (.*)$", perfpage.PAGE.read_text(), re.M)
    missed = [f"{r['accel']}/{r['name']}" for r in rows if r["verdict"] == "MISSED"]
    for name in missed:
        if not any(fnmatch.fnmatchcase(name, m) for m in marks):
            yield f"Documentation/performance.rst: no section about the missed {name}"
    for m in marks:
        if not fnmatch.filter(missed, m):
            yield f"Documentation/performance.rst: no missed target is {m}"


def main():
    rows = json.loads(perfpage.KEPT.read_text())
    by_size = json.loads(perfpage.KEPT_SIZES.read_text())
    bad = [*stale(rows, by_size), *targets(rows), *reasons(rows)]
    print("\n".join(bad), end="\n" if bad else "")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
