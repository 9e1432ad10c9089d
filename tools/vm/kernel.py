# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Kernels, kept in the cache folder and never installed.

Four flavours:
  stock     Debian's newest 6.12: image, modules and headers, unpacked
  debug     linux-source-6.12 with test-kernel.config, for QEMU
  uml       the same source as User-mode Linux with all checkers
  uml-fast  User-mode Linux without checkers, for wall-clock measurements

Each lives in CACHE/kernel/FLAVOUR-KEY, KEY being a digest of what it was made
from. A stamp written last says it is complete: an interrupted build goes on
where it stopped, an interrupted download starts again.
"""

import os
import pathlib
import re
import shutil
import subprocess
import time

from base import (CACHE, CPUS, HERE, Fail, digest, errors_in, fresh_dir, lock,
                  output, run, say)

SERIES = "6.12"
RECIPE = "1"            # raise when a kernel built before must not be used
LOGS = CACHE / "log"

FRAGMENTS = {
    "debug": ["test-kernel.config"],
    "uml": ["uml.config", "uml-debug.config"],
    "uml-fast": ["uml.config"],
}
FLAVOURS = ["stock", *FRAGMENTS]


class Kernel:
    """What the rest needs to know about one kernel that is ready."""

    def __init__(self, flavour, kdir, image, modules=None):
        self.flavour = flavour
        self.kdir = kdir            # make -C kdir M=... builds modules
        self.image = image          # what boots
        self.modules = modules      # folder of the kernel's own .ko files
        self.uml = flavour.startswith("uml")
        self.checked = flavour in ("debug", "uml")

    @property
    def release(self):
        return (self.kdir / "include/config/kernel.release").read_text().strip()


def get(flavour):
    """The kernel of that flavour, made first if need be."""
    if flavour == "stock":
        return stock()
    if flavour in FRAGMENTS:
        return built(flavour)
    raise Fail(f"there is no kernel '{flavour}'; "
               f"it is one of {', '.join(FLAVOURS)}", status=2)


# --- Debian packages -------------------------------------------------------

def refresh_lists():
    """As root, let apt fetch its lists once more; else nothing."""
    if os.geteuid() == 0:
        run(["apt-get", "-q", "update"], LOGS / "apt-update.log",
            "apt-get update")


def newest_release():
    """The newest 6.12 that apt offers, like 6.12.117+deb12-amd64, or None."""
    arch = output(["dpkg", "--print-architecture"]).strip()
    if arch != "amd64":
        raise Fail(f"the test machines are x86_64, this is {arch}", status=2)
    name = re.compile(rf"^linux-image-({re.escape(SERIES)}\.(\d+)"
                      r"(\+[a-z0-9.]+)?-amd64)$")
    # pkgnames lists names that are only mentioned; madison, what can be had
    names = [m for m in map(name.match,
                            output(["apt-cache", "pkgnames", "linux-image-"
                                    + SERIES + "."]).split()) if m]
    names.sort(key=lambda m: int(m[2]), reverse=True)
    for m in names:
        if output(["apt-cache", "madison", m[0]]).strip():
            return m[1]
    return None


def package_version(name):
    """The version apt would fetch, or None."""
    got = re.search(r"^  Candidate: (\S+)$",
                    output(["apt-cache", "policy", name]), re.M)
    return got[1] if got and got[1] != "(none)" else None


def download(names, where):
    """Unpack the packages NAMES below the folder WHERE."""
    debs = where / "debs"
    debs.mkdir()
    cmd = ["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download",
           *names]
    try:
        run(cmd, LOGS / "apt-download.log", "apt-get download", cwd=debs)
    except Fail:
        refresh_lists()
        run(cmd, LOGS / "apt-download.log", "apt-get download", cwd=debs)
    for deb in sorted(debs.iterdir()):
        output(["dpkg", "-x", deb, where])
    shutil.rmtree(debs)


def newest_stock():
    """(release, package version) of the newest kernel apt knows; asking apt
    takes a second, so the answer is kept as long as its lists are the same."""
    memory = CACHE / "kernel" / "stock-newest"
    lists = str(max((p.stat().st_mtime_ns for p in
                     [pathlib.Path("/var/lib/apt/lists"),
                      *pathlib.Path("/etc/apt").rglob("*.[ls]*")]
                     if p.exists()), default=0))
    if memory.exists():
        known = memory.read_text().split()
        if len(known) == 3 and known[2] == lists:
            return known[0], known[1]
    release = newest_release()
    if not release:
        refresh_lists()
        release = newest_release()
    if not release:
        raise Fail(f"apt offers no linux-image-{SERIES}.*-amd64; Debian 12 and "
                   "13 have it in their main and security archives")
    version = package_version(f"linux-image-{release}")
    memory.parent.mkdir(parents=True, exist_ok=True)
    memory.write_text(f"{release} {version} {lists}\n")
    return release, version


def stock():
    with lock("stock"):
        release, version = newest_stock()
        final = CACHE / "kernel" / f"stock-{digest(RECIPE, release, version)}"
        if not final.exists():
            say(f"    fetching Debian's kernel {release}")
            base = release.removesuffix("-amd64")
            with fresh_dir(final) as temp:
                download([f"linux-image-{release}", f"linux-headers-{release}",
                          f"linux-headers-{base}-common",
                          f"linux-kbuild-{base}"], temp)
                arrange_stock(temp, final, release)
    return Kernel("stock", final / "build", final / "vmlinuz",
                  final / "modules")


def arrange_stock(temp, final, release):
    """Fixed names for what we use; nothing may point outside the folder."""
    # The headers refer to each other by absolute paths.
    headers = temp / "usr/src" / f"linux-headers-{release}"
    for name in ("Makefile", ".kernelvariables"):
        path = headers / name
        if path.exists():
            path.write_text(re.sub(r"(?<![\w/])/usr/", f"{final}/usr/",
                                   path.read_text()))
    for link in [p for p in temp.rglob("*") if p.is_symlink()]:
        to = os.readlink(link)
        if to.startswith("/usr/") or to.startswith("/lib/"):
            link.unlink()
            link.symlink_to(os.path.relpath(temp / to[1:], link.parent))
    os.symlink(f"usr/src/linux-headers-{release}", temp / "build")
    os.symlink(f"boot/vmlinuz-{release}", temp / "vmlinuz")
    # lib and usr/lib are one on a merged system; kmod wants it so here too.
    if (temp / "usr/lib/modules" / release / "kernel").exists():
        shutil.rmtree(temp / "lib", ignore_errors=True)
        os.symlink("usr/lib", temp / "lib")
    os.symlink(f"lib/modules/{release}", temp / "modules")
    run(["depmod", "-b", temp, release], LOGS / "depmod.log", "depmod")


# --- built from linux-source -----------------------------------------------

def source():
    """The unpacked kernel source: (folder, version of its package)."""
    package = f"linux-source-{SERIES}"
    tarball = pathlib.Path(f"/usr/src/{package}.tar.xz")
    with lock("source"):
        version = None
        if tarball.exists():
            version = output(["dpkg-query", "-W", "-f", "${Version}",
                              package]).strip()
        else:
            version = package_version(package)
            if not version:
                refresh_lists()
                version = package_version(package)
            if not version:
                raise Fail(f"apt offers no {package}")
        final = CACHE / "src" / ("linux-" + version.split(":")[-1]
                                 .replace("~", "."))
        if not final.exists():
            with fresh_dir(final.with_name(final.name + ".unpack")) as temp:
                if not tarball.exists():
                    say(f"    fetching {package}")
                    download([package], temp)
                    tarball = temp / str(tarball)[1:]
                say(f"    unpacking {package} {version}")
                output(["tar", "-C", temp, "-xf", tarball])
                (temp / package).rename(final)
            shutil.rmtree(final.with_name(final.name + ".unpack"))
    return final, version


def settings(flavour):
    """The lines of a flavour's fragments that ask for something."""
    lines = []
    for name in FRAGMENTS[flavour]:
        for line in (HERE / name).read_text().splitlines():
            if re.match(r"(# )?CONFIG_", line):
                lines.append(line.strip())
    return lines


def lost(wanted, config):
    """The requested settings that the kernel's .config does not have."""
    have = set(config.read_text().splitlines())
    values = {}
    for line in wanted:                 # a later fragment wins
        values[re.search(r"CONFIG_\w+", line)[0]] = line
    return [line for symbol, line in values.items()
            if (any(l.startswith(symbol + "=") for l in have)
                if line.startswith("#") else line not in have)]


def built(flavour):
    src, version = source()
    compiler = output(["gcc", "--version"]).splitlines()[0]
    wanted = settings(flavour)
    final = CACHE / "kernel" / (
        f"{flavour}-{digest(RECIPE, version, compiler, *sorted(set(wanted)))}")
    stamp = final / "complete"
    image = final / ("linux" if flavour.startswith("uml")
                     else "arch/x86/boot/bzImage")
    with lock(flavour):
        if not stamp.exists():
            make_kernel(flavour, src, final, wanted)
            stamp.write_text(f"{version}\n{compiler}\n")
    return Kernel(flavour, final, image)


def make_kernel(flavour, src, final, wanted):
    arch = ["ARCH=um"] if flavour.startswith("uml") else []
    log = LOGS / f"{flavour}.log"
    env = {"KBUILD_BUILD_TIMESTAMP": "@0", "KBUILD_BUILD_USER": "kofi",
           "KBUILD_BUILD_HOST": "kofi"}
    say(f"    building the {flavour} kernel, once; this takes about "
        f"{'10' if arch else '15'} minutes on two processors ({log})")
    final.mkdir(parents=True, exist_ok=True)
    make = ["make", "-C", src, f"O={final}", *arch]
    fragment = final / "kofi.config"
    fragment.write_text("\n".join(wanted) + "\n")
    try:
        if arch:
            run([*make, "defconfig"], log, "kernel configuration", env)
            run([src / "scripts/kconfig/merge_config.sh", "-m", "-O", final,
                 final / ".config", fragment], log, "merging the fragments",
                {**env, "ARCH": "um"})
            run([*make, "olddefconfig"], log, "kernel configuration", env)
        else:
            run([*make, f"KCONFIG_ALLCONFIG={fragment}", "allnoconfig"], log,
                "kernel configuration", env)
        missing = lost(wanted, final / ".config")
        if missing:
            raise Fail(f"the {flavour} kernel would not have: "
                       + ", ".join(missing))
        # "all", not only the image: module builds need Module.symvers
        run([*make, f"-j{CPUS}", "all"], log, f"{flavour} kernel", env,
            beat=60)
    except Fail as e:
        if e.log:
            raise Fail(f"{e}:\n{errors_in(e.log)}", e.log) from None
        raise
