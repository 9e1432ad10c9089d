#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Does the code that the documentation shows compile?

  examples.py KDIR FOLDER     compile in FOLDER with the kernel of KDIR
  examples.py -x FOLDER [NAME...]
                              only write the sources to FOLDER, or those called NAME
  examples.py -p NAME         print the source called NAME

Code is taken from the C blocks of README.md, and from the blocks below
Documentation/ that have a class build-NAME; all blocks with the same name make one source
file, in the order of pages. A block may have several names. Blocks with a class user-NAME
are programs of user space, over libfabric. A line for each complaint of the compiler.
"""

import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
DOCS = TOP / "Documentation"


def of_readme(sources):
    blocks = re.findall(r"^```c\n(.*?)^```$", (TOP / "README.md").read_text(),
                        re.M | re.S)
    for number, block in enumerate(blocks):
        sources[f"readme_{number}"] = block


def of_page(path, sources):
    lines = path.read_text().splitlines()
    number = 0
    while number < len(lines):
        if lines[number].strip() != ".. code-block:: c":
            number += 1
            continue
        names, block = [], []
        number += 1
        while number < len(lines):
            line = lines[number]
            option = re.fullmatch(r"   :class: ((?:(?:build|user)-[\w-]+ ?)+)", line)
            if option:
                names = [name.removeprefix("build-").replace("-", "_")
                         for name in option[1].split()]
            elif line and not line.startswith("   "):
                break
            else:
                block.append(line[3:])
            number += 1
        for name in names:
            sources.setdefault(name, "")
            sources[name] += "\n".join(block) + "\n"


def collect():
    sources = {}
    of_readme(sources)
    for path in sorted(DOCS.rglob("*.rst")):
        of_page(path, sources)
    return sources


def kernels(sources):
    return [name for name in sources if not name.startswith("user_")]


def tabs(text):
    text = re.sub(r"^( {8})+", lambda m: "\t" * (len(m[0]) // 8), text, flags=re.M)
    return text.strip("\n") + "\n"


def write(sources, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.[co]"):
        old.unlink()
    for name, text in sources.items():
        (folder / f"{name}.c").write_text(tabs(text))
    (folder / "Kbuild").write_text(
        f"ccflags-y := -I{TOP}/include -I{TOP}/include/uapi\n"
        + "".join(f"obj-m += {name}.o\n" for name in kernels(sources)))


def main(argv):
    if len(argv) < 3 or (len(argv) > 3 and argv[1] != "-x"):
        print(__doc__.strip())
        return 2
    sources = collect()
    names = argv[3:] if argv[1] == "-x" else argv[2:] if argv[1] == "-p" else []
    for name in names:
        if name not in sources:
            print(f"{name}: no page has this source", file=sys.stderr)
            return 1
    if argv[1] == "-p":
        print(tabs(sources[argv[2]]), end="")
        return 0
    folder = pathlib.Path(argv[2]).resolve()
    write({name: sources[name] for name in names or sources}, folder)
    if argv[1] == "-x":
        return 0
    commands = [["make", "-C", argv[1], f"M={folder}", "-k",
                 "KCFLAGS=-Werror -Wno-unused-function",
                 *(f"{name}.o" for name in kernels(sources))]]
    commands += [["cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-c",
                  "-o", folder / f"{name}.o", folder / f"{name}.c"]
                 for name in sources.keys() - set(kernels(sources))]
    failed = False
    for command in commands:
        got = subprocess.run(command, text=True, check=False,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT)
        if got.returncode:
            failed = True
            print(got.stdout.replace(f"{folder}/", ""), end="")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv))
