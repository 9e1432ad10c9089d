#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Do the tests that Documentation/contract.rst names exist?

A line for each promise without a test and for each name that is neither a
KUnit case (suite.case) nor a step of a scenario (scenario/step).
"""

import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = TOP / "Documentation/contract.rst"


def kunit_names():
    """suite.case for every case in tests/kunit."""
    names = set()
    for path in (TOP / "tests/kunit").rglob("*.[ch]"):
        text = path.read_text()
        # two files may have arrays of one name
        cases = {array: re.findall(r"KUNIT_CASE\w*\(\s*(\w+)", body)
                 for array, body in re.findall(
                     r"struct kunit_case (\w+)\[\] = \{(.*?)\n\};", text, re.S)}
        for body in re.findall(r"struct kunit_suite \w+ = \{(.*?)\n\};", text,
                               re.S):
            name = re.search(r'\.name\s*=\s*"([^"]+)"', body)
            array = re.search(r"\.test_cases\s*=\s*(\w+)", body)
            if name and array:
                names |= {f"{name[1]}.{case}"
                          for case in cases.get(array[1], ())}
    return names


def is_step(scenario, step):
    """Does a script of the scenario speak of it?"""
    text = "\n".join(p.read_text() for p in
                     sorted((TOP / "tests/vm" / scenario).glob("*.sh")))
    return re.search(rf"(?<![\w-]){re.escape(step)}(?![\w-])", text)


def main():
    bad = []
    known = kunit_names()
    page = PAGE.read_text()
    for field in re.finditer(r"^:Tests:(.*?)(?=^\S|\Z)", page, re.M | re.S):
        if "``" not in field[1] and "none yet" not in field[1]:
            bad.append((page.count("\n", 0, field.start()) + 1,
                        "no test is named"))
        for name in re.finditer(r"``([^`]+)``", field[1]):
            line = page.count("\n", 0, field.start(1) + name.start()) + 1
            if "/" in name[1]:
                scenario, step = name[1].split("/", 1)
                if not is_step(scenario, step):
                    bad.append((line, f"no such step: {name[1]}"))
            elif name[1] not in known:
                bad.append((line, f"no such KUnit case: {name[1]}"))
    for line, text in bad:
        print(f"{PAGE.relative_to(TOP)}:{line}: {text}")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
