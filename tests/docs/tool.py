#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Do the manual pages and the help of the tools agree with each other and the sources?

tool.py KOFI 9PD MAN8: each command of "kofi help" has a page kofi-COMMAND.8 in the folder
MAN8, which has the commands and the options that its --help prints, and no other
option; so has kofi-9pd.8. "kofi stat --help" has the classes of objects that the core opens. A line for
each difference.
"""

import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
OPTION = r"(?<![\w-])(--[a-z][\w-]*|-\w)(?![\w-])"
OPENS = r"\b(?:kofi_obj_init|kofi_set_open|kofi_ep_setup)\([^;{]*?FI_CLASS_(\w+)"


def help_of(kofi, *words):
    return subprocess.run([kofi, *words], check=True, text=True,
                          stdout=subprocess.PIPE).stdout


def commands(kofi):
    """Command -> its usage."""
    said = help_of(kofi, "help").split("Commands:\n", 1)[1].split("\n\n", 1)[0]
    names = re.findall(r"^  (\w+) ", said, re.M)
    return {name: help_of(kofi, name, "--help") for name in names
            if name != "help"}


def below(name, usage):
    """Commands of a command, such as "map" of blk."""
    head = usage.split("\n\n", 1)[0]
    return set(re.findall(rf"\bkofi {name} ([a-z][\w-]*)", head))


def of_help(usage):
    """Options that begin a line of the help, and those of its first lines."""
    head, _, rest = usage.partition("\n\n")
    lines = re.findall(r"^ +(-.*?)(?:  .*)?$", rest, re.M)
    return set(re.findall(OPTION, "\n".join([head, *lines])))


def plain(line):
    """A line of a manual page without its macro, fonts and quotation marks."""
    line = re.sub(r"^\.(?:[BIR]{1,2}|SM)\s+", "", line).replace(r"\-", "-")
    joined = re.sub(r"\\f[BIRP]", "", line).replace('"', "")
    return re.sub(r"\\[&|/,]", "", joined)


def of_page(page):
    """(commands and options that the page explains, all its words)."""
    lines = page.splitlines()
    tags = [plain(line) for n, line in enumerate(lines) if n
            and lines[n - 1].rstrip() in (".TP", ".TQ")]
    sections = re.findall(r"^\.SS (\w[\w-]*)", page, re.M)
    options = set(re.findall(OPTION, "\n".join(tags)))
    return options | set(sections) | {t.split()[0] for t in tags if t}, \
        "\n".join(map(plain, lines))


def compare(name, usage, folder):
    path = folder / f"kofi-{name}.8"
    if not path.exists():
        yield f"kofi {name} has no manual page {path.name}"
        return
    page = path.read_text()
    explained, words = of_page(page)
    wanted = of_help(usage)
    for option in sorted(wanted - explained):
        yield f"{path.name}: {option} is missing"
    for option in sorted(set(re.findall(OPTION, "\n".join(
            w for w in explained if w[0] == "-"))) - wanted):
        yield f"{path.name}: {option} is not in kofi {name} --help"
    for command in sorted(below(name, usage)):
        if command not in explained:
            yield f"{path.name}: the command {command} is missing"
        if f"kofi {name} {command}" not in words:
            yield f"{path.name}: no synopsis of {command}"


def classes(usage, page):
    opened = set()
    for path in [*TOP.glob("kofi/*.c"), *TOP.glob("providers/**/*.c")]:
        opened |= {c.lower() for c in re.findall(OPENS, path.read_text())}
    if len(opened) < 5:
        yield "the sources are not as this script expects them"
    for name in sorted(opened):
        if not re.search(rf"\b{name}\b", usage):
            yield f"kofi stat --help: the class {name} is missing"
        if not re.search(rf"^\.BR? {name}\b", page, re.M):
            yield f"kofi-stat.8: the class {name} is missing"


def main(kofi, server, folder):
    folder = pathlib.Path(folder)
    bad = []
    there = commands(kofi)
    page = (folder / "kofi.8").read_text()
    explained, _ = of_page(page)
    for name, usage in there.items():
        if name not in explained:
            bad.append(f"kofi.8: the command {name} is missing")
        if f"kofi\\-{name} (8)" not in page and name != "list":
            bad.append(f"kofi.8: does not name the page of {name}")
        bad += compare(name, usage, folder)
    bad += compare("9pd", help_of(server, "-h"), folder)
    bad += classes(there["stat"], (folder / "kofi-stat.8").read_text())
    print("\n".join(bad), end="\n" if bad else "")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
