#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Do the packages, dkms.conf, the modules and the pages agree?

Compared are the version in all places that name it, the modules of dkms.conf with
those that Kbuild builds, and the files that the Makefile installs with the lists of
debian/. A line for each difference.
"""

import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
SOURCE = "include/linux/kofi/version.h"
# what has the version, and how
PLACES = {
    "dkms.conf": r'^PACKAGE_VERSION="(.*)"$',
    "debian/changelog": r"\A\w+ \(([^)-]+)(?:-[^)]*)?\) ",
    "Documentation/changelog.rst": r"\n(\d\S*)\n=+\n",
    "README.md": r"^\* Version (\S+)\. ",
    "Documentation/install.rst": r"/usr/src/kofi-([\d.]+\d)",
}
# folders with modules that are released, and what is built on request only
FOLDERS = ("kofi", "providers", "clients", "samples")
ON_REQUEST = "CONFIG_KOFI_SAMPLES"
# the targets of the Makefile that install what packages have
INSTALL = ("install", "install-dkms", "install-dev", "install-doc")


def text(name):
    return (TOP / name).read_text()


def versions():
    wanted = re.search(r'KOFI_VERSION\s+"(.*)"', text(SOURCE))[1]
    for name, pattern in PLACES.items():
        found = re.findall(pattern, text(name), re.M)[:1]
        if found != [wanted]:
            yield f"{name}: version {' '.join(found) or 'none'}, not {wanted}"
    for folder in FOLDERS:
        for path in sorted((TOP / folder).rglob("*.c")):
            source = path.read_text()
            if ("\nMODULE_LICENSE(" in source
                    and "\nMODULE_VERSION(KOFI_VERSION);" not in source):
                yield f"{path.relative_to(TOP)}: no MODULE_VERSION(KOFI_VERSION)"


def modules():
    """The {name: folder} of dkms.conf against those of the Kbuild files."""
    conf = text("dkms.conf")
    names = re.findall(r'^\s*BUILT_MODULE_NAME\[\w+\]="(.*)"$', conf, re.M)
    places = re.findall(r'^\s*BUILT_MODULE_LOCATION\[\w+\]="(.*)"$', conf, re.M)
    if len(names) != len(places):
        yield "dkms.conf: not one location for each module"
    built = {}
    for folder in FOLDERS:
        for path in (TOP / folder).rglob("Kbuild"):
            for option, name in re.findall(
                    r"^obj-\$\((\w+)\) \+= (\w+)\.o$", path.read_text(), re.M):
                if option != ON_REQUEST:
                    built[name] = str(path.parent.relative_to(TOP))
    listed = dict(zip(names, places))
    for name in sorted(built.keys() | listed.keys()):
        if built.get(name) != listed.get(name):
            yield (f"dkms.conf: {name} in {listed.get(name)}, but Kbuild has it "
                   f"in {built.get(name)}")


def files():
    """What the Makefile would install is in one list of debian/ each."""
    root = "/DESTDIR/"
    said = subprocess.run(["make", "-n", *INSTALL, f"DESTDIR={root[:-1]}",
                           "PREFIX=/usr"], cwd=TOP, text=True, check=True,
                          stdout=subprocess.PIPE).stdout
    installed = {word[len(root):] for word in said.split()
                 if word.startswith(root)}
    lists = {line: path.name for path in sorted(TOP.glob("debian/*.install"))
             for line in path.read_text().split()}
    for name in sorted(installed):
        owners = [f for line, f in lists.items()
                  if f"{name}/".startswith(f"{line}/")]
        if len(owners) != 1:
            yield f"debian: {name} is in {' and '.join(owners) or 'no package'}"
    for line, name in lists.items():
        if not any(f"{f}/".startswith(f"{line}/") for f in installed):
            yield f"debian/{name}: the Makefile installs nothing in {line}"
    packages = set(re.findall(r"^Package: (.*)$", text("debian/control"), re.M))
    for name in sorted(packages ^ {n.removesuffix(".install")
                                   for n in lists.values()}):
        yield f"debian: {name} has no list of files, or is no package"


def main():
    bad = [*versions(), *modules(), *files()]
    print("\n".join(bad), end="\n" if bad else "")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
