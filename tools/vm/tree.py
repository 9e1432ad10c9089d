# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""kOFI in a kernel tree: the unit tests as kunit.py has them.

A copy of the kernel source gets what README.md says a tree of one's own needs,
and the command that README.md gives builds a User-mode Linux with kOFI in it and
runs the tests that need no RDMA device. All is built in, which nothing else here
tests: the order of initcalls, one name space of symbols, parameters that no one
gives.
"""

import math
import re
import shutil

import kernel
import kunit
from base import BUILD, CPUS, REPORT, TOP, Fail, lock, run, say, slow
from report import splats
from schedule import Job

NAME = "tree"
WHERE = BUILD / NAME / "linux"
BUILT = WHERE / ".kunit"                # where kunit.py builds if not told
LOGS = REPORT / "logs" / NAME
CONFIG = "net/kofi/.kunitconfig"
# What README.md adds to the tree
LINES = {"net/Kconfig": 'source "net/kofi/Kconfig"\n',
         "net/Makefile": "obj-$(CONFIG_KOFI) += kofi/\n"}
# All of a parameter's modules have it from one of them if they are built in.
SLOW = "kofi_contract_kunit.slow"


def copy():
    """The tree: links to the files of the cached source, which must not change,
    so the files with LINES are of its own."""
    src, _ = kernel.source()
    WHERE.mkdir(parents=True, exist_ok=True)
    keep = ["/.kunit", "/net/kofi", *(f"/{name}" for name in LINES)]
    run(["rsync", "-a", "--delete", f"--link-dest={src}",
         *(f"--exclude={name}" for name in keep), f"{src}/", WHERE], None,
        "a copy of the kernel source")
    for name, line in LINES.items():
        text = (src / name).read_text() + line
        ours = WHERE / name
        if not ours.exists() or ours.read_text() != text:
            ours.write_text(text)
    run(["rsync", "-a", "--delete", "--delete-excluded", "--exclude=.git",
         "--filter=:- .gitignore", f"{TOP}/", WHERE / "net/kofi"], None,
        "a copy of kOFI")


def kunit_py(verb, *more):
    """Has it worked, and what does it say?"""
    log = LOGS / f"{verb}.log"
    worked = True
    try:
        run(["./tools/testing/kunit/kunit.py", verb, "--kunitconfig", CONFIG,
             f"--jobs={CPUS}", *more], log, f"kunit.py {verb}", cwd=WHERE, beat=60)
    except Fail:
        worked = False
    return worked, log.read_text(errors="replace").splitlines()


def suites():
    """The names of the suites in those files that have been built."""
    found = set()
    tests = BUILT / "net/kofi/tests/kunit"
    for obj in tests.rglob("*.o"):
        source = TOP / "tests/kunit" / obj.relative_to(tests).with_suffix(".c")
        if source.exists():
            found |= set(re.findall(r"struct kunit_suite \w+ = \{\s*"
                                    r'\.name\s*=\s*"(\w+)"', source.read_text()))
    return found


def build(report):
    # what is compiled already has no warnings any more
    shutil.rmtree(BUILT / "net/kofi", ignore_errors=True)
    say(f"    {NAME}: building a kernel, which takes minutes")
    worked, lines = kunit_py("build")
    # not the linker's, which has something to say of each User-mode Linux
    bad = [l for l in lines if re.search("warning", l, re.I)
           and re.search("kofi|modpost", l)]
    if not worked:
        bad += lines[-30:]
    report.add(f"{NAME}/build", "not" if bad else "ok", bad)
    return worked


def tests(report):
    test_log = BUILT / "test.log"
    test_log.unlink(missing_ok=True)
    times = math.ceil(slow())
    worked, said = kunit_py("run", f"--timeout={times * 300}",
                            f"--kernel_args={SLOW}={min(times, 8)}",
                            "--kernel_args=printk.time=1")
    lines = (test_log.read_text(errors="replace").splitlines()
             if test_log.exists() else [])
    (LOGS / "console.log").write_text("\n".join(lines) + "\n")
    cases, failed, ran = kunit.report_ktap(lines, NAME, report)
    wanted = suites()
    bad = [f"the suite {s} has not been run" for s in sorted(wanted - ran)]
    if not wanted:
        bad.append("no suite has been built")
    if not worked and not failed:
        bad += said[-5:]
    report.add(f"{NAME}/suites", "not" if bad else "ok", bad)
    for excerpt in splats(lines):
        report.add(f"{NAME}/kernel", "not", excerpt)
        bad += excerpt
    say(f"  {'FAIL' if bad or failed else 'PASS'}  {NAME}: {len(ran)} suites, "
        f"{cases} cases, {failed} failed ({LOGS}/console.log)")
    return not bad and not failed


def job(report):
    def work():
        with lock(NAME, BUILD / "vm"):
            LOGS.mkdir(parents=True, exist_ok=True)
            copy()
            return build(report) and tests(report)
    return Job(NAME, CPUS, work, guess=900)
