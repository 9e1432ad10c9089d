# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What modules_install and DKMS leave behind, and whether it can be used.

modprobe has to find the modules with what they need of the kernel's, and a client
has to build with the installed headers and Module.symvers alone. make test looks
at that in a folder. make soak does it in a clean Debian: what prereq asks for is
all that is installed there besides the kernel's headers; a build has no network.
Then a machine loads what has been installed, and the client.
"""

import os
import pathlib
import re
import shutil

import kernel
import packages
from base import (BUILD, CACHE, CPUS, HERE, REPORT, TOP, call, lock, output,
                  run, say)
from image import find_program, our_modules
from scenario import Run, Scenario
from schedule import Job

NAME = "install"
FLAVOUR = "stock"
CLIENT = TOP / "tests/client"
MODULE = "kofi_testclient"
JOB = f"{NAME}@{FLAVOUR}"


def build_client(kdir, headers, where):
    """The command of README.md that builds CLIENT's copy WHERE with HEADERS."""
    return ["make", "-C", kdir, f"M={where}",
            f"KCFLAGS=-I{headers}/include -Werror",
            f"KBUILD_EXTRA_SYMBOLS={headers}/Module.symvers"]


# --- in a folder -----------------------------------------------------------

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
    # the kernel loads a module of that name for every user who asks for the family
    _, alias = modprobe(root, k.release, "--resolve-alias",
                        "net-pf-16-proto-16-family-kofi")
    bad = unresolved(root, k.release, our_modules(FLAVOUR))
    if alias.strip() == "kofi":
        bad.append("any user's request for the family kofi loads kofi.ko")
    return bad


# --- in a clean Debian -----------------------------------------------------

class Clean:
    """A minimal Debian in the folder ROOT, of the release CODENAME or this
    system's; its steps go to the report as those of JOB."""

    def __init__(self, root, report, job=JOB, codename=None):
        self.root = root
        self.report = report
        self.job = job
        self.logs = REPORT / "logs" / job
        self.codename = codename or re.search(
            r"^VERSION_CODENAME=(\w+)$",
            pathlib.Path("/etc/os-release").read_text(), re.M)[1]

    def command(self, cmd, network):
        """CMD inside; what is mounted for it is gone when it ends."""
        return ["unshare", "-m", *([] if network else ["-n"]), "sh", "-c",
                'mount -t proc proc "$0/proc" && exec chroot "$0" env -i '
                "PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C "
                'DEBIAN_FRONTEND=noninteractive "$@"', self.root, *cmd]

    def step(self, name, cmd, network=False, status=0):
        """Run CMD inside, which has to end with STATUS; what it says, or None
        if it failed."""
        return self.judge(name, *call(self.command(cmd, network)), status)

    def judge(self, name, status, text, wanted=0, bad=()):
        self.logs.mkdir(parents=True, exist_ok=True)
        (self.logs / f"{name}.log").write_text(text)
        why = list(bad)
        if status != wanted:
            why += [f"exit status {status}", *text.splitlines()[-30:]]
        self.report.add(f"{self.job}/{name}", "not" if why else "ok", why)
        return None if why else text

    def copy(self, source, to, *options):
        """A copy of the folder SOURCE inside, at the path TO."""
        (self.root / to.lstrip("/")).mkdir(parents=True, exist_ok=True)
        run(["rsync", "-a", *options, f"{source}/", f"{self.root}{to}/"], None,
            "rsync")

    def make(self):
        """What debootstrap makes; then its apt knows where this kernel is."""
        sites = packages.sites()
        cache = CACHE / "debootstrap"
        cache.mkdir(parents=True, exist_ok=True)
        say(f"    {self.job}: a clean Debian, {self.codename}")
        if self.judge("debootstrap", *call(
                ["debootstrap", "--variant=minbase", f"--cache-dir={cache}",
                 self.codename, self.root, sites["Debian"]])) is None:
            return False
        suites = [("Debian", ""), ("Debian", "-updates"),
                  ("Debian-Security", "-security")]
        (self.root / "etc/apt/sources.list").write_text("".join(
            f"deb {sites[label]} {self.codename}{more} main\n"
            for label, more in suites if label in sites))
        return self.step("apt-update", ["apt-get", "update"], True) is not None

    def prerequisites(self):
        """The line that prereq prints is enough for prereq."""
        ask = ["sh", "/root/kofi/tools/vm/prereq", "build"]
        said = self.step("prereq", ask, status=2)
        line = re.search(r"^  (apt-get install .*)$", said or "", re.M)
        return (line and self.step("prereq-install", [
            *line[1].split(), "-y"], True) is not None
                and self.step("prereq-again", ask) is not None)

    def installed(self, name, release, wanted):
        """The modules WANTED are below updates/, and nothing else; a client
        builds with what lies beside them. Both go into the archive NAME.tar."""
        at = self.root / "lib/modules" / release / "updates"
        there = {re.sub(r"\.ko.*", "", f.name) for f in at.rglob("*.ko*")}
        bad = [f"{ko} is {'missing' if ko in wanted else 'too much'}"
               for ko in sorted(there ^ wanted)]
        if self.judge(f"{name}-modules", 0, " ".join(sorted(there)),
                      bad=bad) is None:
            return False
        shutil.rmtree(self.root / "root/client", ignore_errors=True)
        self.copy(CLIENT, "/root/client")
        if self.step(f"{name}-client", build_client(
                f"/lib/modules/{release}/build", f"/usr/src/kofi/{release}",
                "/root/client")) is None:
            return False
        shutil.copy(self.root / f"root/client/{MODULE}.ko", at)
        return self.judge(f"{name}-archive", *call(
            ["tar", "-C", self.root / "usr", "-cf",
             BUILD / NAME / f"{name}.tar",
             f"lib/modules/{release}/updates"])) is not None

    def by_make(self, release):
        kdir = f"KDIR=/lib/modules/{release}/build"
        make = ["make", "-C", "/root/kofi", kdir, f"JOBS=-j{CPUS}"]
        return (self.step("make", make) is not None
                and self.step("make-install", [*make, "modules_install"])
                is not None and self.installed("make", release, PRODUCT))

    def by_dkms(self, release):
        shutil.rmtree(self.root / "lib/modules" / release / "updates")
        shutil.rmtree(self.root / "usr/src/kofi")
        if self.step("dkms-sources", ["make", "-C", "/root/kofi",
                                      "install-dkms"]) is None:
            return False
        which = [f"kofi/{version()}", "-k", release]
        if (self.step("dkms-install", ["dkms", "install", *which]) is None
                or not self.installed("dkms", release, PRODUCT)):
            return False
        self.step("dkms-remove", ["dkms", "remove", *which])
        left = [f"{f} has been left" for f in
                [self.root / "usr/src/kofi",
                 *(self.root / "lib/modules" / release).rglob("kofi*.ko*")]
                if f.exists() and MODULE not in f.name]
        self.judge("dkms-removed", 0, "", bad=left)
        return True


# Not of the sources
OURS = ("--exclude=/build", "--exclude=/.git")
# What is installed where nothing more is asked for
PRODUCT = {"kofi", "kofi_sock", "kofi_verbs", "kofi_rxm", "kofi_blk",
           "kofi_blkt", "kofi_9p", "kofi_perf"}


def version():
    return re.search(r'^PACKAGE_VERSION="(.*)"$',
                     (TOP / "dkms.conf").read_text(), re.M)[1]


def skipped(job, report):
    """Whether a clean Debian cannot be made here; the report then says why."""
    lacks = [f"not run without {what}" for what, there in (
        ("root's rights", os.geteuid() == 0),
        ("debootstrap", shutil.which("debootstrap")),
        ("unshare", shutil.which("unshare"))) if not there]
    if lacks:
        report.add(job, "skip", ", ".join(lacks))
    return bool(lacks)


def clean(report, runs):
    """All of it, on the stock kernel; the machine's Run goes into RUNS."""
    if skipped(JOB, report):
        return True
    k = kernel.get(FLAVOUR)
    root = BUILD / NAME / "debian"
    with lock(NAME, BUILD / "vm"):
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        try:
            good = installs(Clean(root, report), k.release)
        finally:
            shutil.rmtree(root, ignore_errors=True)
    if not good:
        return False
    script = BUILD / NAME / "run.sh"
    script.write_text((HERE / "install.sh").read_text())
    one = Run(Scenario(NAME, {"a": "run.sh"}, [
        script, *(BUILD / NAME / f"{how}.tar" for how in ("make", "dkms"))],
        kernels=FLAVOUR, programs="kofi"), k, report)
    runs.append(one)
    return one()


def installs(debian, release):
    if not debian.make():
        return False
    debian.copy(TOP, "/root/kofi", *OURS)
    return (debian.prerequisites()
            and debian.step("headers", [
                "apt-get", "install", "-y", "--no-install-recommends",
                f"linux-headers-{release}", "dkms"], True) is not None
            and debian.by_make(release) and debian.by_dkms(release))


def job(report):
    runs = []
    return Job(JOB, 1, lambda: clean(report, runs),
               lambda: runs[0].where() if runs else JOB,
               ["build@tools", f"build@{FLAVOUR}"], guess=600)
