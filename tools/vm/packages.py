# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Packages of Debian, unpacked into the cache folder and never installed.

They come from what apt offers to this system, or from the lists of Debian's
release STABLE: its kernels and backports, and programs that are newer than this
system's, each with the libraries and the loader it was built for.
"""

import os
import re
import shutil
import time

from base import BUILD, CACHE, Fail, fresh_dir, lock, output, run, say

STABLE = "trixie"
LOGS = CACHE / "log"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
PROGRAMS = ("libfabric-bin", "ktls-utils")
LIBRARIES = "usr/lib/x86_64-linux-gnu"

def refresh_lists():
    """As root, let apt fetch its lists once more; else nothing."""
    if os.geteuid() == 0:
        run(["apt-get", "-q", "update"], LOGS / "apt-update.log",
            "apt-get update")


class Apt:
    """What apt offers: to this system, or with the OPTIONS of other lists."""

    def __init__(self, *options):
        self.options = options

    def ask(self, *words):
        return output(["apt-cache", *self.options, *words])

    def versions(self, names):
        """{name: version apt would fetch}; some NAMES it only mentions."""
        found = re.findall(r"^(\S+):\n  Installed: .*\n  Candidate: (\S+)$",
                           self.ask("policy", *names), re.M) if names else []
        return {n: v for n, v in found if v != "(none)"}

    def version(self, name):
        """The version apt would fetch, or None."""
        return self.versions([name]).get(name)

    def releases(self, series=""):
        """(numbers, release) of all kernels for which there are headers too."""
        name = re.compile(r"linux-headers-((\d+)\.(\d+)\.(\d+)\S*)-common$")
        found = [m for m in map(name.match, self.ask(
            "pkgnames", "linux-headers-" + series).split()) if m]
        images = {m[0]: f"linux-image-{m[1]}-amd64" for m in found}
        there = self.versions([*images, *images.values()])
        return [(tuple(map(int, m.groups()[1:])), f"{m[1]}-amd64")
                for m in found if m[0] in there and images[m[0]] in there]

    def packages(self, release):
        """What a kernel consists of; since 7.1 the image is only a name."""
        base = release.removesuffix("-amd64")
        names = [f"linux-image-{release}", f"linux-headers-{release}",
                 f"linux-headers-{base}-common", f"linux-kbuild-{base}"]
        return names + list(self.versions([f"linux-{part}-{release}" for part
                                           in ("base", "binary", "modules")]))

    def download(self, names, where):
        """Unpack the packages NAMES below the folder WHERE."""
        debs = where / "debs"
        debs.mkdir()
        cmd = ["apt-get", "-q", *self.options, "-o",
               "APT::Sandbox::User=root", "download", *names]
        try:
            run(cmd, LOGS / "apt-download.log", "apt-get download", cwd=debs)
        except Fail:
            if self.options:
                raise
            refresh_lists()
            run(cmd, LOGS / "apt-download.log", "apt-get download", cwd=debs)
        for deb in sorted(debs.iterdir()):
            output(["dpkg", "-x", deb, where])
        shutil.rmtree(debs)

    def with_dependencies(self, packages, where, besides=()):
        """Unpack below WHERE what PACKAGES depend on, as if nothing were
        installed, and themselves, but for packages whose names begin with BESIDES."""
        archives = where / "cache/archives"
        (archives / "partial").mkdir(parents=True)
        (where / "status").touch()
        run(["apt-get", "-qy", *self.options, "-o", f"Dir::Cache={where}/cache",
             "-o", f"Dir::State::status={where}/status", "-o",
             "APT::Sandbox::User=root", "--download-only",
             "--no-install-recommends", "install", *packages],
            LOGS / f"apt-{packages[0]}.log", f"fetching {' '.join(packages)}")
        for deb in sorted(archives.glob("*.deb")):
            if not deb.name.startswith(tuple(besides)):
                output(["dpkg", "-x", deb, where])
        shutil.rmtree(where / "cache")


def sites():
    """{label: where this system's apt has it from} of Debian's archives."""
    asked = ["apt-get", "indextargets", "--format", "$(LABEL) $(SITE)",
             "Created-By: Packages"]
    if "Debian " not in output(asked):
        refresh_lists()
    found = dict(l.split() for l in output(asked).splitlines()
                 if l.startswith("Debian"))
    if "Debian" not in found:
        raise Fail("apt has no list of Debian's own archive here")
    return found


def backports():
    """The lists of Debian's release STABLE, of its updates and backports, from
    the mirrors this system uses, in a folder of our own."""
    here = CACHE / "apt"
    sources = here / "sources.list"
    apt = Apt("-o", f"Dir::Etc::sourcelist={sources}",
              "-o", "Dir::Etc::sourceparts=/dev/null",
              "-o", f"Dir::State={here}/state", "-o", f"Dir::Cache={here}/cache",
              "-o", "Dir::State::status=/var/lib/dpkg/status")
    if sources.exists() and time.time() - sources.stat().st_mtime < 86400:
        return apt
    for folder in ("state/lists/partial", "cache/archives/partial"):
        (here / folder).mkdir(parents=True, exist_ok=True)
    mirrors = sites()
    known = sources.exists()
    text = "".join(f"deb [signed-by={KEYRING}] {mirrors[label]} {STABLE}{more} "
                   "main\n" for label, more in
                   (("Debian", ""), ("Debian", "-backports"),
                    ("Debian-Security", "-security")) if label in mirrors)
    fresh = sources.with_suffix(".new")
    fresh.write_text(text)
    try:
        run(["apt-get", "-q", *apt.options, "-o",
             f"Dir::Etc::sourcelist={fresh}", "-o", "APT::Sandbox::User=root",
             "update", "--error-on=any"], LOGS / "apt-backports.log",
            "apt-get update")
    except Fail:
        if not known:
            raise
        say("    apt cannot be asked for newer backports; going on with the "
            "lists of before")
        fresh.write_text(sources.read_text())
    fresh.rename(sources)
    return apt


def there(release):
    """Whether the programs of RELEASE have been fetched before."""
    return (CACHE / "programs" / release / "version").exists()


def root(release):
    """A folder with the programs of PROGRAMS as Debian's RELEASE has them, and
    all they need; asks for newer ones at most once a day."""
    if release != STABLE:
        raise Fail(f"there are no programs of Debian's release {release}, "
                   f"only of {STABLE}", status=2)
    final = CACHE / "programs" / release
    known = final / "version"
    with lock("programs"):
        # one version for each of PROGRAMS, unless the tree is older than the list
        complete = known.exists() and (len(known.read_text().split())
                                       == len(PROGRAMS))
        if complete and time.time() - known.stat().st_mtime < 86400:
            return final
        apt = backports()
        found = apt.versions(PROGRAMS)
        version = " ".join(found.get(name, "") for name in PROGRAMS)
        if known.exists() and (len(found) < len(PROGRAMS)
                               or complete and version == known.read_text()):
            known.touch()
            return final
        say(f"    fetching {' '.join(PROGRAMS)} of {release}")
        with fresh_dir(final) as temp:
            apt.with_dependencies(PROGRAMS, temp)
            (temp / "version").write_text(version)
            # others may use it until then
            shutil.rmtree(final, ignore_errors=True)
    return final


def split(name):
    """(program, release or None) of what a scenario calls NAME."""
    program, _, release = name.partition("@")
    return program, release or None


class Program:
    """A program NAME of another RELEASE than this system's, or one of the tests'
    own with the libraries of that."""

    def __init__(self, name):
        program, release = split(name)
        self.root = root(release)
        paths = [BUILD / "peer" / program, self.root / "usr/sbin" / program]
        self.path = next((p for p in paths if p.exists()),
                         self.root / "usr/bin" / program)
        self.loader = next(self.root.glob("usr/lib*/ld-linux-x86-64.so.2"))
        self.command = [self.loader, "--library-path",
                        self.root / LIBRARIES]

    def script(self):
        """What a machine calls by the program's name."""
        soft = ":".join(f"{self.root / LIBRARIES}/libibverbs/lib{d}"
                        for d in ("rxe", "siw"))
        return (f"#!/bin/sh\nexport IBV_DRIVERS={soft}\nexec "
                + " ".join(map(str, [*self.command, self.path])) + ' "$@"\n')

    def files(self):
        """All it reads."""
        text = output([*self.command, "--list", self.path])
        return [self.path, self.loader, *re.findall(r"=> (/\S+)", text),
                *self.root.glob(f"{LIBRARIES}/libibverbs/lib[rs][xi][ew]-*"),
                *self.root.glob(f"{LIBRARIES}/libgcc_s.so.1")]
