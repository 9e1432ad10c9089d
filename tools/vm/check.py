# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Static checks: one result each, everything they say below a failure.

Compiler warnings (W=1) and sparse see the sources as a kernel build does, once
without KUnit (stock) and once with it (debug); checkpatch, kernel-doc and
coccinelle's scripts come from the kernel source.
"""

import concurrent.futures
import os
import pathlib
import py_compile
import re
import shutil
import subprocess
import sys
import time

import kernel
from base import BUILD, CPUS, REPORT, TOP, Fail, output, run, say

LOGS = REPORT / "logs"
MODULES = ("include", "kofi", "providers", "samples")
# A kernel build of ours that is to be judged: no warning is let pass.
STRICT = "KFLAGS=W=1 KOFI_TESTBLK=m KCFLAGS=-Werror"


def sources(*suffixes):
    """Our own source files, relative to the top."""
    found = []
    for folder in (*MODULES, "tests", "tools"):
        found += [p.relative_to(TOP) for p in (TOP / folder).rglob("*")
                  if p.suffix in suffixes and p.is_file()
                  and not p.name.endswith(".mod.c")]
    return sorted(found)


def generated(path):
    """Made from a netlink spec: its style is not ours to check."""
    with open(TOP / path, errors="replace") as f:
        return "auto-generated from:" in f.read(2000)


def lines_of(cmd, cwd=TOP):
    """(exit status, all lines printed)."""
    got = subprocess.run([str(c) for c in cmd], cwd=cwd, text=True,
                         errors="replace", stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         check=False)
    return got.returncode, got.stdout.splitlines()


def build_lines(flavour, what, *flags):
    """Build a flavour as for a test, with more FLAGS; (worked, what it said)."""
    copy = BUILD / flavour
    log = LOGS / f"{what}-{flavour}.log"
    # modpost repeats its warnings only if it has something to do
    (copy / "Module.symvers").unlink(missing_ok=True)
    worked = True
    try:
        run(["make", "-C", TOP, "modules", f"FLAVOUR={flavour}", "KDIR=",
             " ".join([STRICT, *flags])], log, what)
    except Fail:
        worked = False
    text = log.read_text(errors="replace").replace(f"{copy}/", "")
    return worked, text.splitlines()


# --- the checks: each returns the lines that make it fail -------------------

def warnings(flavour):
    worked, lines = build_lines(flavour, "warnings")
    bad = [l for l in lines
           if re.search(r"\b(warning|error|ERROR|WARNING): ", l)]
    return bad or ([] if worked else lines[-20:])


def sparse():
    worked, lines = build_lines("debug", "sparse", "C=2",
                                "CF=-D__CHECK_ENDIAN__")
    bad = [l for l in lines if re.match(r"[\w./-]+:\d+:\d+: ", l)
           and not l.startswith("/")]
    return bad or ([] if worked else lines[-20:])


def checkpatch():
    src, _ = kernel.source()
    # not in the top folder, where checkpatch would leave a file behind
    where = BUILD / "checkpatch"
    where.mkdir(parents=True, exist_ok=True)
    shutil.copy(TOP / ".checkpatch.conf", where)
    files = [f for f in sources(".c", ".h") if not generated(f)]
    user = [f for f in files if f.parts[0] == "tools"
            or {"peer", "user"} & set(f.parts)]
    bad = []
    trace = [f for f in files if f.name.endswith("_trace.h")]
    # TRACE_EVENT has a layout of its own; a program has not the kernel's
    # macros but the C library's (PRIu64), and speaks to users of its usage
    for some, more in (([f for f in files if f not in user + trace], []),
                       (trace, ["--ignore",
                                "OPEN_ENDED_LINE,PARENTHESIS_ALIGNMENT"]),
                       (user, ["--ignore", "ARRAY_SIZE,CAMELCASE,"
                               "EMBEDDED_FUNCTION_NAME,"
                               "PREFER_DEFINED_ATTRIBUTE_MACRO,"
                               "PREFER_KERNEL_TYPES"])):
        if some:
            status, lines = lines_of(
                ["perl", src / "scripts/checkpatch.pl", f"--root={src}",
                 "--strict", "--terse", "--show-types", "--no-summary", "--quiet", *more, "-f",
                 *(f"../../{f}" for f in some)], where)
            bad += [l.removeprefix("../../") for l in lines] or (
                [f"checkpatch ended with {status}"] if status else [])
    return bad


def kernel_doc():
    src, _ = kernel.source()
    files = [f for f in sources(".c", ".h")
             if f.parts[0] in MODULES
             and "uapi" not in f.parts and not generated(f)]
    if not files:
        return []
    status, lines = lines_of(["perl", src / "scripts/kernel-doc", "-none",
                              "-Werror", *files])
    return lines or ([f"kernel-doc ended with {status}"] if status else [])


def coccinelle():
    src, _ = kernel.source()
    copy = BUILD / "coccinelle"     # of what a user loads; tests are not
    output(["rsync", "-a", "--delete", "--delete-excluded",
            "--exclude=.*", *(TOP / d for d in MODULES), copy])
    scripts = [s for s in sorted((src / "scripts/coccinelle")
                                 .rglob("*.cocci"))
               # looks at one driver of the kernel
               if s.stem != "check_bq27xxx_data"]

    def one(script):
        text = script.read_text()
        options = re.search(r"^// Options: (.*)$", text, re.M)
        cmd = ["spatch", "-D", "report", "--no-show-diff", "--very-quiet",
               "--cocci-file", script,
               *(options[1].split() if options else []),
               "--dir", copy, "-I", copy / "include",
               "-I", src / "arch/x86/include", "-I", src / "include"]
        try:
            got = subprocess.run([str(c) for c in cmd], text=True,
                                 errors="replace", timeout=120, check=False,
                                 stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return []       # no finding in two minutes: not worth the wait
        # a script this version of spatch cannot run says nothing about us
        if got.returncode:
            return []
        return [l.replace(f"{copy}/", "") + f" [{script.stem}]"
                for l in got.stdout.splitlines()
                if l.strip()]

    with concurrent.futures.ThreadPoolExecutor(CPUS) as pool:
        return [l for found in pool.map(one, scripts) for l in found]


def specs():
    """Is what is checked in what the generator makes of the specs?"""
    src, _ = kernel.source()
    status, lines = lines_of(["sh", "tools/kofi/regen.sh", "--check", src])
    return lines or ([f"regen.sh ended with {status}"] if status else [])


def python():
    bad = []
    for f in [*sources(".py"), pathlib.Path("tools/vm/vm")]:
        try:
            py_compile.compile(str(TOP / f), cfile=os.devnull, doraise=True)
        except py_compile.PyCompileError as e:
            bad += str(e).splitlines()
        except OSError:
            pass
    return bad


def shell():
    bad = []
    for f in [*sources(".sh"), *map(pathlib.Path, (
            ".ci/run", "tools/vm/prereq", "tools/vm/init"))]:
        if (TOP / f).exists():
            bad += lines_of(["sh", "-n", f])[1]
    return bad


def pages():
    """Make HTML of the pages, into build/html."""
    src, _ = kernel.source()
    # all are read each time: what is kept from a run has its warnings lost
    status, lines = lines_of(
        ["env", f"KERNEL_SRC={src}", "sphinx-build", "-nWEq", "--keep-going",
         "-j", CPUS, "-d", BUILD / "doctrees", "Documentation",
         BUILD / "html"])
    return [l.removeprefix(f"{TOP}/") for l in lines] if status else []


def docs(script, *args):
    """A script of tests/docs: it prints a line for each finding."""
    status, lines = lines_of([sys.executable, f"tests/docs/{script}.py", *args])
    return lines or ([f"{script}.py ended with {status}"] if status else [])


def examples():
    return docs("examples", kernel.get("stock").kdir, BUILD / "check-docs")


CHECKS = [
    ("warnings@stock", lambda: warnings("stock")),
    ("warnings@debug", lambda: warnings("debug")),
    ("sparse", sparse),
    ("checkpatch", checkpatch),
    ("kernel-doc", kernel_doc),
    ("specs", specs),
    ("coccinelle", coccinelle),
    ("python", python),
    ("shell", shell),
    ("docs-html", pages),
    ("docs-examples", examples),
    ("docs-contract", lambda: docs("contract")),
    ("docs-params", lambda: docs("params")),
]


def run_all(report):
    """Every check, each with a result."""
    for name, check in CHECKS:
        began = time.monotonic()
        try:
            bad = check()
        except Fail as e:
            bad = str(e).splitlines()
        report.add(f"check/{name}", "not" if bad else "ok", bad)
        if not bad:
            say(f"  PASS  check/{name} ({time.monotonic() - began:.0f} s)")
