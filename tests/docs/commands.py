#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The commands that pages show, for tests that follow the pages.

  commands.py                 has each block of commands in PAGES a role?
  commands.py -s FILE [SECTION...]
                              print the blocks of a page, or of these sections of it, as
                              functions of the shell that tests/vm/blk-pages calls

A block of commands is a code block of the language console. Its first class, behind run-, is
the role of the machine that runs it: ".. code-block:: console" with ":class: run-target", or in
README.md a fence "```console run-target". The class not-run marks a block that no test runs.

A line with "# " in front is a command; lines below it are its output. A command without output
on the page may print anything. A UUID in an output stands for any UUID.

A code block of another language with a class file-ROLE and a ":caption:" is the content of the
file that the caption names.
"""

import pathlib
import re
import shlex
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
PAGES = ("README.md", "Documentation/blk.rst")
# machines of tools/vm/pages.py, and others of tools/vm/debs.py
MACHINES = ("target", "client", "both")
ROLES = ("build", "install", *MACHINES)
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Block:
    """Commands, or the content of the file PATH, for machines of a role."""

    def __init__(self, section, number, line, role, path, lines):
        self.section = section
        self.line = line
        self.role = role
        self.path = path
        self.text = "\n".join(lines).strip("\n") + "\n"
        words = re.findall(r"[a-z0-9]+", section.lower())
        self.name = "-".join([*words, role or "", str(number)])

    def commands(self):
        """[(command, its output on the page, or None)]"""
        found = []
        for line in self.text.splitlines():
            if line.startswith("# "):
                found.append((line[2:], None))
            elif found:
                command, output = found[-1]
                found[-1] = (command, (output or "") + line + "\n")
        return found


def same(output, shown):
    """Is OUTPUT of a command as the page has SHOWN it?"""
    return UUID.sub("UUID", output) == UUID.sub("UUID", shown)


def of_readme(text):
    """(section, line, language, classes, caption, lines) of each code block."""
    section, block = "", None
    for number, line in enumerate(text.splitlines(), 1):
        if block:
            if line == "```":
                yield block
                block = None
            else:
                block[-1].append(line)
        elif line.startswith("```"):
            language, *classes = line[3:].split() or [""]
            block = (section, number, language, classes, None, [])
        elif line.startswith("#"):
            section = line.lstrip("# ")


def of_page(text):
    """The same of reStructuredText."""
    lines = text.splitlines()
    section, number = "", 0
    while number < len(lines):
        line = lines[number]
        number += 1
        title = lines[number - 2] if number > 1 else ""
        if re.fullmatch(r"=+|-+", line) and 0 < len(title) <= len(line):
            section = title
        if not line.startswith(".. code-block:: "):
            continue
        block = (section, number, line.split()[-1], [], [], [])
        while number < len(lines) and (not lines[number] or lines[number].startswith("   ")):
            option = re.fullmatch(r"   :(class|caption): (.*)", lines[number])
            if option and option[1] == "class":
                block[3].extend(option[2].split())
            elif option:
                block[4].append(option[2])
            else:
                block[5].append(lines[number][3:])
            number += 1
        yield (*block[:4], " ".join(block[4]) or None, block[5])


def blocks(path):
    """The blocks of a page that a test uses, in its order; ValueError if one is not marked."""
    count = {}
    text = path.read_text()
    for section, line, language, classes, caption, lines in (
            of_readme if path.suffix == ".md" else of_page)(text):
        mark = re.fullmatch(r"(run|file)-(\w+)", classes[0] if classes else "")
        if language == "console" and not mark and classes != ["not-run"]:
            raise ValueError(f"{path.name}:{line}: the commands have no role")
        if not mark:
            continue
        if mark[2] not in ROLES or (mark[1] == "run") != (language == "console"):
            raise ValueError(f"{path.name}:{line}: a block of {language} with the class "
                             f"{classes[0]}")
        if mark[1] == "file" and not (caption or "").startswith("/"):
            raise ValueError(f"{path.name}:{line}: the caption names no file")
        key = (section, mark[2])
        count[key] = count.get(key, 0) + 1
        block = Block(section, count[key], line, mark[2], caption, lines)
        if not block.path and not block.commands():
            raise ValueError(f"{path.name}:{line}: the block has no command")
        yield block


def script(path, sections):
    """Functions of the shell, and calls of page_block with their names."""
    for number, block in enumerate(blocks(path)):
        if block.role not in MACHINES or sections and block.section not in sections:
            continue
        print(f"page_{number}() {{")
        if block.path:
            print(f"\tpage_file {shlex.quote(block.path)} {shlex.quote(block.text)}")
        for command, output in block.commands() if not block.path else ():
            print(f"\tpage_run {shlex.quote(command)} {shlex.quote(output or '')} || return")
        print(f"}}\npage_block {block.name} page_{number}")


def main(argv):
    if len(argv) > 2 and argv[1] == "-s":
        script(pathlib.Path(argv[2]), argv[3:])
        return 0
    if len(argv) > 1:
        print(__doc__.strip())
        return 2
    bad = []
    for page in PAGES:
        try:
            if not list(blocks(TOP / page)):
                bad.append(f"{page}: no test uses a command of it")
        except ValueError as e:
            bad.append(str(e))
    print("\n".join(bad), end="\n" if bad else "")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
