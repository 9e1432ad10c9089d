#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Does tests/features-status.tsv name code and tests that exist?

A place is PATH, or PATH:NAME where the file has that name. A test is a KUnit case
(suite.case), a step of a scenario (scenario/step) or a part of "make check"
(check/part); a "*" stands for any text. What is done has both, what is struck has
the page that gives the reason. A line for each fault. Without a fault, the number
of must rows that are neither done nor struck.
"""

import fnmatch
import functools
import pathlib
import re
import sys

import contract

TOP = contract.TOP
TABLE = TOP / "tests/features-status.tsv"
COLUMNS = ["section", "row", "feature", "class", "libfabric", "status", "places",
           "tests", "remark"]
STATES = {"done", "struck", "partial", "untested", "missing"}
CASES = contract.kunit_names()
PARTS = re.findall(r'^    \("([\w-]+)",', (TOP / "tools/vm/check.py").read_text(), re.M)


@functools.cache
def words(path):
    return set(re.findall(r"\w+", path.read_text()))


def is_place(place):
    path, _, name = place.partition(":")
    if not (TOP / path).exists():
        return False
    return not name or ((TOP / path).is_file() and name in words(TOP / path))


def is_test(test):
    if "/" not in test:
        return bool(fnmatch.filter(CASES, test))
    scenario, step = test.split("/", 1)
    if scenario == "check":
        return step in PARTS
    scripts = (TOP / "tests/vm" / scenario).glob("*.sh")
    pattern = re.escape(step).replace(r"\*", r"[\w$-]*")
    return any(re.search(rf"(?<![\w-]){pattern}(?![\w-])", path.read_text())
               for path in scripts)


def faults(row):
    places, tests = ([x for x in row[c].split() if x != "-"]
                     for c in ("places", "tests"))
    bad = [f"no such place: {p}" for p in places if not is_place(p)]
    bad += [f"no such test: {t}" for t in tests if not is_test(t)]
    if row["class"] not in ("must", "should") or row["status"] not in STATES:
        bad.append(f"is a {row['class']} and {row['status']}")
    if row["status"] == "done" and not (places and tests):
        bad.append("is done without a place or a test")
    if row["status"] == "struck" and not any(p.endswith(".rst") for p in places):
        bad.append("is struck without a page that gives the reason")
    if row["status"] != "done" and not row["remark"]:
        bad.append(f"is {row['status']} without a remark")
    return bad


def main():
    lines = [l.split("\t") for l in TABLE.read_text().splitlines()
             if not l.startswith("#")]
    bad, seen, unfinished = [], set(), 0
    if lines[0] != COLUMNS:
        bad.append("other columns than " + " ".join(COLUMNS))
    for line in lines[1:]:
        if len(line) != len(COLUMNS):
            bad.append(f"{line[:2]}: {len(line)} columns")
            continue
        row = dict(zip(COLUMNS, line))
        bad += [f"{row['row']}: {text}" for text in faults(row)]
        if row["row"] in seen:
            bad.append(f"{row['row']}: is there twice")
        seen.add(row["row"])
        unfinished += row["class"] == "must" and row["status"] not in ("done", "struck")
    for text in bad:
        print(f"{TABLE.relative_to(TOP)}: {text}")
    if not bad:
        print(f"must rows that are neither done nor struck: {unfinished}")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
