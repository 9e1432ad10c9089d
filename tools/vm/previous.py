# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The modules and the tool of the previous version, for scenarios with the key
`previous`, in which they meet the modules and the tool of this tree.

PREVIOUS is the tag of the last release; the commit after each release sets it
(Documentation/stability.rst). It is a commit as long as there is no tag. It is built
once for each kernel, and kept in the cache folder.

Without git, and in a shallow clone, the commit is not there. Such scenarios are
skipped then.
"""

import shutil
import subprocess

import kernel as kernels
from base import CACHE, HERE, REPORT, TOP, Fail, digest, fresh_dir, lock, run, say
from schedule import Job

# has kofi bw, version 2 of kofi_blk's protocol, and kofi blk save
PREVIOUS = "d716f45fe00c"

RECIPE = "1"
# what no such scenario loads
FLAGS = ["CONFIG_KOFI_9P=n"]


def git(*args, **kw):
    return subprocess.run(["git", "-c", f"safe.directory={TOP}", *args], cwd=TOP,
                          stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          check=False, **kw)


def missing():
    """The reason why the previous version cannot be built here, or None."""
    try:
        found = git("cat-file", "-e", f"{PREVIOUS}^{{commit}}").returncode == 0
    except FileNotFoundError:
        return "the program git is missing, which extracts the previous version"
    return None if found else (f"this checkout does not have {PREVIOUS}, the previous "
                               "version: it is no git repository, or a shallow clone")


def folder(kernel):
    """Where ko/ and bin/ of the previous version are for KERNEL."""
    return CACHE / "previous" / (f"{kernel.flavour}-"
                                 + digest(RECIPE, PREVIOUS, str(kernel.kdir), *FLAGS))


def make(kernel, temp):
    tree = temp / "tree"
    tree.mkdir()
    tar = temp / "tree.tar"
    with open(tar, "wb") as out:
        if git("archive", PREVIOUS, stdout=out).returncode:
            raise Fail(f"git archive {PREVIOUS} failed")
    run(["tar", "-C", tree, "-xf", tar], None, "tar")
    log = REPORT / "logs" / f"previous-{kernel.flavour}.log"
    arch = ["ARCH=um"] if kernel.uml else []
    run([HERE / "within", kernel.kdir, "sh", "-c", 'exec "$@" "M=$PLACE"', "make", "make",
         "-C", kernel.kdir, *arch, *FLAGS, "modules"],
        log, f"make modules of {PREVIOUS}", cwd=tree, beat=60)
    (temp / "ko").mkdir()
    for ko in tree.rglob("*.ko"):
        run(["strip", "-g", "-o", temp / "ko" / ko.name, ko], None, "strip")
    run(["make", "-C", tree / "tools/kofi", f"OUT={temp}/tool"],
        log.with_name("previous-tool.log"), f"make of the tool of {PREVIOUS}")
    (temp / "bin").mkdir()
    shutil.copy(temp / "tool/kofi", temp / "bin")
    for rest in (tree, temp / "tool"):
        shutil.rmtree(rest)
    tar.unlink()


def build(kernel):
    final = folder(kernel)
    with lock("previous"):
        if not final.exists():
            say(f"    building the previous version, {PREVIOUS}, for {kernel.flavour}, once")
            with fresh_dir(final) as temp:
                make(kernel, temp)


def payload(where, kernel):
    """The folder `previous` of a machine: ko/ and bin/, or the file `missing`."""
    where.mkdir()
    why = missing()
    if why:
        (where / "missing").write_text(f"{why}\n")
        return
    for part in ("ko", "bin"):
        shutil.copytree(folder(kernel) / part, where / part)


def name(flavour):
    return f"previous@{flavour}"


def job(flavour):
    def work():
        if not missing():
            build(kernels.get(flavour))
        return True
    return Job(name(flavour), 1, work, guess=120)
