# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Static checks: one result each, everything they say below a failure.

Compiler warnings (W=1) and sparse see the sources as a kernel build does, once
without KUnit (stock) and once with it (debug); checkpatch, kernel-doc and
coccinelle's scripts come from the kernel source.
"""

import os
import pathlib
import py_compile
import re
import shutil
import sys
import time

import install
import kernel
import races
from base import (BUILD, CACHE, CPUS, REPORT, TOP, Fail, call, digest, output,
                  run, say)
from schedule import Job

LOGS = REPORT / "logs"
CLEAN = CACHE / "checkpatch"    # digests of files without a finding
MODULES = ("include", "kofi", "providers", "clients", "samples")
# A kernel build of ours that is to be judged: no warning is let pass.
STRICT = "KFLAGS=W=1 CONFIG_KOFI_TESTS=m KCFLAGS=-Werror"


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
    status, text = call(cmd, cwd=cwd)
    return status, text.splitlines()


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
    # ccache has the compiler say where a file is from elsewhere
    text = re.sub(rf"(\.\./)*\S*/{re.escape(str(copy.relative_to(TOP)))}/", "",
                  log.read_text(errors="replace"))
    return worked, text.splitlines()


# --- the checks: each returns the lines that make it fail -------------------

def warnings(flavour):
    """Build a flavour; (worked, what is to be mended)."""
    worked, lines = build_lines(flavour, "build")
    bad = [l for l in lines
           if re.search(r"\b(warning|error|ERROR|WARNING): ", l)]
    return worked, bad or ([] if worked else lines[-20:])


def sparse():
    """All files, unless none has changed since it has found nothing."""
    flags = ["C=2", "CF=-D__CHECK_ENDIAN__"]
    files = [f for f in sources(".c", ".h", "") if f.parts[0] != "tools"]
    key = digest(kernel.get("debug").kdir.name, output(["sparse", "--version"]),
                 STRICT, *flags,
                 *(f"{f} {digest((TOP / f).read_text(errors='replace'))}"
                   for f in [*files, "Kbuild", "Kconfig", "Makefile"]))
    clean = CACHE / "sparse"
    if clean.exists() and clean.read_text() == key:
        return []
    worked, lines = build_lines("debug", "sparse", *flags)
    bad = [l for l in lines if re.match(r"[\w./-]+:\d+:\d+: ", l)
           and not l.startswith("/")]
    if worked and not bad:
        clean.write_text(key)
    return bad or ([] if worked else lines[-20:])


def checkpatch(part):
    """Every CPUS-th file, from number PART on; but none that was looked at
    before, as it is and by the same checkpatch, with nothing found."""
    src, _ = kernel.source()
    conf = (TOP / ".checkpatch.conf").read_text()
    CLEAN.mkdir(parents=True, exist_ok=True)
    known = {key for f in CLEAN.iterdir() for key in f.read_text().split()}
    clean = set()
    # not in the top folder, where checkpatch would leave a file behind
    where = BUILD / f"checkpatch-{part}"
    where.mkdir(parents=True, exist_ok=True)
    shutil.copy(TOP / ".checkpatch.conf", where)
    files = [f for f in sources(".c", ".h") if not generated(f)][part::CPUS]
    user = [f for f in files if f.parts[0] == "tools"
            or {"peer", "user"} & set(f.parts)]
    bad = []
    trace = [f for f in files if f.name.endswith("_trace.h")]
    # the files that may look at the kernel's version
    versions = [f for f in files if f.name == "backport.h"]
    # 9p has enumerators of its own kind
    nine = [f for f in files if f.parts[:2] == ("clients", "9p")]
    # TRACE_EVENT has a layout of its own; a program has not the kernel's
    # macros but the C library's (PRIu64), and speaks to users of its usage
    for some, more in (([f for f in files
                         if f not in user + trace + versions + nine], []),
                       (nine, ["--ignore", "CAMELCASE"]),
                       # names of functions that macros declare
                       (versions, ["--ignore", "LINUX_VERSION_CODE,"
                                   "CONSTANT_COMPARISON,"
                                   "MACRO_ARG_PRECEDENCE"]),
                       (trace, ["--ignore",
                                "OPEN_ENDED_LINE,PARENTHESIS_ALIGNMENT"]),
                       (user, ["--ignore", "ARRAY_SIZE,CAMELCASE,"
                               "EMBEDDED_FUNCTION_NAME,"
                               "PREFER_DEFINED_ATTRIBUTE_MACRO,"
                               "PREFER_KERNEL_TYPES"])):
        keys = {f: digest(src.name, conf, *more, str(f),
                          (TOP / f).read_text(errors="replace")) for f in some}
        clean |= known & set(keys.values())
        some = [f for f in some if keys[f] not in known]
        if some:
            status, lines = lines_of(
                ["perl", src / "scripts/checkpatch.pl", f"--root={src}",
                 "--strict", "--terse", "--show-types", "--no-summary", "--quiet", *more, "-f",
                 *(f"../../{f}" for f in some)], where)
            lines = [l.removeprefix("../../") for l in lines]
            bad += lines or (
                [f"checkpatch ended with {status}"] if status else [])
            if not status or lines:
                clean |= {keys[f] for f in some if not any(
                    l.startswith(f"{f}:") for l in lines)}
    (CLEAN / str(part)).write_text("\n".join(sorted(clean)) + "\n")
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


def spatch(script, options, where):
    """What a script finds in the files below WHERE; no lines if this version
    of spatch cannot run it, which says nothing about us."""
    src, _ = kernel.source()
    # no finding in two minutes of a processor: not worth the wait
    status, text = call(
        ["prlimit", "--cpu=120", "spatch", "-D", "report", "--no-show-diff",
         "--very-quiet", "--cocci-file", script, *options,
         "--dir", where, "-I", where / "include",
         "-I", src / "arch/x86/include", "-I", src / "include"], quiet=True)
    return [] if status else [
        l.replace(f"{where}/", "") + f" [{script.stem}]"
        for l in text.splitlines() if l.strip()]


def component(path):
    """The folder whose headers a file includes by their names."""
    return path.parts[:2] if path.parts[0] in (
        "providers", "clients", "samples") \
        else path.parts[:1]


def coccinelle(part):
    """Every CPUS-th script, from number PART on, on what a user loads; but not
    on files that were looked at before, as they are and with the headers that
    such scripts read, with nothing found."""
    src, _ = kernel.source()
    known_in = CLEAN / f"coccinelle-{part}"
    known = set(known_in.read_text().split()) if known_in.exists() else set()
    scripts = {}                # what they read of a file's includes -> some
    for s in sorted((src / "scripts/coccinelle").rglob("*.cocci"))[part::CPUS]:
        found = re.search(r"^// +Options: *(.*)$", s.read_text(), re.M)
        options = found[1].split() if found else []
        reads = "nothing" if "--no-includes" in options else \
            "all" if "--all-includes" in options else "own"
        # looks at one driver of the kernel
        if s.stem != "check_bq27xxx_data":
            scripts.setdefault(reads, []).append((s, options))
    files = {f: (TOP / f).read_text(errors="replace")
             for f in sources(".c", ".h") if f.parts[0] in MODULES}
    headers = {f: text for f, text in files.items() if f.suffix == ".h"}
    bad, clean = [], set()
    for reads, some in scripts.items():
        version = digest(src.name, *(s.read_text() for s, _ in some))

        def key(f):
            return digest(version, str(f), files[f], *(
                text for h, text in headers.items() if reads == "all"
                or reads == "own" and component(h) == component(f)))
        keys = {f: key(f) for f in files}
        look = [f for f in files if keys[f] not in known]
        where = BUILD / f"coccinelle-{part}"
        shutil.rmtree(where, ignore_errors=True)
        for f in [*look, *(headers if look and reads != "nothing" else ())]:
            (where / f).parent.mkdir(parents=True, exist_ok=True)
            (where / f).write_text(files[f])
        lines = [l for s, options in some if look
                 for l in spatch(s, options, where)]
        bad += lines
        clean |= {keys[f] for f in files
                  if not any(l.startswith(f"{f}:") for l in lines)}
    CLEAN.mkdir(parents=True, exist_ok=True)
    if all(pathlib.Path(l.split(":")[0]) in files for l in bad):
        known_in.write_text("\n".join(sorted(clean)) + "\n")
    return bad


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
    bad += races.misplaced()
    return bad + lines_of([sys.executable, "tests/tools/same-code.py"])[1]


def shell():
    bad = []
    for f in [*sources(".sh"), *map(pathlib.Path, (
            ".ci/run", "tools/install-headers", "tools/vm/init",
            "tools/vm/prereq", "tools/vm/within", "debian/tests/dkms",
            "debian/tests/smoke", "debian/tests/units", "debian/kofi-dkms.postinst",
            "debian/kofi-dkms.prerm"))]:
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


def noted(script):
    """As docs(), of a script that prints notes when it finds nothing."""
    status, lines = lines_of([sys.executable, f"tests/docs/{script}.py"])
    if not status:
        for l in lines:
            say(f"  NOTE  {l}")
        return []
    return lines or [f"{script}.py ended with {status}"]


def examples():
    return docs("examples", kernel.get("stock").kdir, BUILD / "check-docs")


def installed():
    return install.folder(STRICT)


def tool():
    """What kofi and kofi-9pd refuse and print, and what their install leaves behind, as
    far as programs that are here can judge it."""
    root = BUILD / "check-tool"
    shutil.rmtree(root, ignore_errors=True)
    for folder, out in (("kofi", "tools"), ("9pd", "peer")):
        status, bad = lines_of(["make", "-s", "-C", f"tools/{folder}", "install",
                                f"OUT={BUILD / out}", f"PREFIX={root}"])
        if status:
            return bad
    bad = lines_of(["sh", "tools/kofi/test/blk-usage.sh", root / "bin/kofi"])[1]
    bad += lines_of(["sh", "tools/kofi/test/json.sh", root / "bin/kofi",
                     root / "share/kofi/kofi.schema.json"])[1]
    bad += lines_of(["sh", "tools/9pd/test/usage.sh", root / "sbin/kofi-9pd"])[1]
    bad += lines_of(["bash", "tools/kofi/test/completion.bash", root / "bin/kofi",
                     root / "share/bash-completion/completions/kofi"])[1]
    man = root / "share/man/man8"
    bad += docs("tool", root / "bin/kofi", root / "sbin/kofi-9pd", man)
    for cmd in (*([*program, page] for page in sorted(man.iterdir())
                  for program in (["groff", "-man", "-Tutf8", "-ww", "-z"],
                                  ["mandoc", "-Tlint", "-Wwarning"])),
                # it looks for the program, too
                ["systemd-analyze", "verify", "--man=no",
                 *(root / "lib/systemd/system" / unit
                   for unit in ("kofi-blk@vol0.service", "kofi-blkt.service",
                                "kofi-blkt-restore.service",
                                "kofi-9pd@srv.service",
                                "kofi-9p-tls@srv.service"))],
                # how much a service could do, in tenths of 10
                ["systemd-analyze", "security", "--offline=yes", "--threshold=20",
                 "--no-pager", *(root / "lib/systemd/system" / unit for unit in
                                 ("kofi-9pd@.service", "kofi-9p-tls@.service"))],
                ["udevadm", "verify", "--no-summary",
                 root / "lib/udev/rules.d/60-kofi-blk.rules"]):
        # older ones of udev cannot
        if shutil.which(cmd[0]) and call([*cmd[:2], "--help"])[0] == 0:
            status, lines = lines_of(cmd)
            if not status and "security" in cmd:
                continue
            bad += lines or ([f"{cmd[0]} ended with {status}"] if status
                             else [])
    return bad


# name, function, the build it needs, seconds
CHECKS = [
    ("sparse", sparse, "build@debug", 150),
    *((f"checkpatch-{n + 1}", lambda n=n: checkpatch(n), None, 60)
      for n in range(CPUS)),
    ("kernel-doc", kernel_doc, None, 10),
    ("specs", specs, None, 10),
    *((f"coccinelle-{n + 1}", lambda n=n: coccinelle(n), None, 80)
      for n in range(CPUS)),
    ("install", installed, "build@stock", 20),
    ("tool", tool, "build@tools", 3),
    ("python", python, None, 2),
    ("shell", shell, None, 2),
    ("docs-html", pages, None, 30),
    ("docs-examples", examples, None, 30),
    ("packages", lambda: docs("packages"), None, 2),
    ("docs-commands", lambda: docs("commands"), None, 2),
    ("docs-contract", lambda: docs("contract"), None, 2),
    ("docs-params", lambda: docs("params"), None, 2),
    ("docs-trouble", lambda: docs("trouble"), None, 2),
    ("docs-tables", lambda: docs("tables"), None, 2),
    ("docs-performance", lambda: docs("performance"), None, 2),
    ("docs-testing", lambda: docs("testing"), None, 2),
    ("docs-features", lambda: noted("features"), None, 2),
    ("docs-prose", lambda: noted("prose"), None, 2),
]


def jobs(report):
    """A job for each check, with one result."""
    def job(name, check, build, guess):
        def work():
            began = time.monotonic()
            try:
                bad = check()
            except Fail as e:
                bad = str(e).splitlines()
            report.add(name, "not" if bad else "ok", bad)
            if not bad:
                say(f"  PASS  {name} ({time.monotonic() - began:.0f} s)")
            return not bad
        return Job(name, 1, work, after=[build] if build else [], guess=guess)
    return [job(f"check/{name}", *rest) for name, *rest in CHECKS]
