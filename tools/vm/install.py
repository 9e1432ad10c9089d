# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What modules_install leaves behind, and whether it can be used.

modprobe has to find the modules with what they need of the kernel's, and a client
has to build with the installed headers and Module.symvers alone.
"""

import pathlib
import re
import shutil

import kernel
from base import BUILD, HERE, REPORT, TOP, call, output
from image import find_program, our_modules

NAME = "install"
FLAVOUR = "stock"
CLIENT = TOP / "tests/client"


def build_client(kdir, headers, where):
    """The command of README.md that builds CLIENT's copy WHERE with HEADERS."""
    return ["make", "-C", kdir, f"M={where}",
            f"KCFLAGS=-I{headers}/include -Werror",
            f"KBUILD_EXTRA_SYMBOLS={headers}/Module.symvers"]


def modprobe(root, release, option, name):
    """(exit status, what it says): nothing is loaded."""
    return call([find_program("modprobe"), "-d", root, "-S", release, option,
                 name])


def unresolved(root, release, files):
    """Those of the modules FILES that modprobe does not find below ROOT, or
    without something they need."""
    bad = []
    for ko in files:
        status, text = modprobe(root, release, "--show-depends", ko.stem)
        got = {re.sub(r"\.ko.*", "", pathlib.Path(line.split()[1]).name)
               for line in text.splitlines() if line.startswith("insmod ")}
        needs = {*output(["modinfo", "-F", "depends", ko]).strip().split(","),
                 ko.stem} - {""}
        lacks = {name.replace("-", "_") for name in needs} - {
            name.replace("-", "_") for name in got}
        if status or lacks:
            bad += [f"modprobe {ko.stem}: without {', '.join(sorted(lacks))}",
                    *text.splitlines()[:5]]
    return bad


def folder(make_flags):
    """Install what is built for the stock kernel, by make with MAKE_FLAGS, below
    a folder; the lines that say what is wrong there."""
    k = kernel.get(FLAVOUR)
    root = BUILD / NAME / "folder"
    shutil.rmtree(root, ignore_errors=True)
    modules = root / "lib/modules" / k.release
    modules.mkdir(parents=True)
    for name in ("kernel", "modules.order", "modules.builtin",
                 "modules.builtin.modinfo"):
        (modules / name).symlink_to((k.modules / name).resolve())
    where = root / "client"
    shutil.copytree(CLIENT, where)
    headers = root / "usr/src/kofi" / k.release
    for what, cmd in (
            ("modules_install", ["make", "-C", TOP, "modules_install",
                                 f"FLAVOUR={FLAVOUR}", "KDIR=", make_flags,
                                 f"INSTALL_MOD_PATH={root}",
                                 # debug information takes long to compress
                                 "INSTALL_MOD_STRIP=1"]),
            ("client", [HERE / "within", k.kdir,
                        *build_client(k.kdir, headers, where)])):
        status, text = call(cmd)
        (REPORT / "logs").mkdir(parents=True, exist_ok=True)
        (REPORT / "logs" / f"{NAME}-{what}.log").write_text(text)
        if status:
            return [f"{what} failed:", *text.splitlines()[-20:]]
    _, alias = modprobe(root, k.release, "--resolve-alias",
                        "net-pf-16-proto-16-family-kofi")
    bad = unresolved(root, k.release, our_modules(FLAVOUR))
    if alias.strip() != "kofi":
        bad.append(f"the family kofi is '{alias.strip()}', not kofi")
    return bad
