#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Is the table of scenarios in Documentation/testing as tools/vm/scenariopage.py
makes it from tests/vm?
"""

import pathlib
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "tools/vm"))
import scenariopage  # noqa: E402, pylint: disable=wrong-import-position


def main():
    path = scenariopage.TABLE
    if path.exists() and path.read_text() == scenariopage.table():
        return 0
    print(f"{path.relative_to(TOP)}: differs from the output of tools/vm/scenariopage.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
