# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Kernels, kept in the cache folder and never installed.

Flavours:
  stock     Debian's newest 6.12: image, modules and headers, unpacked
  newest    the same of the newest kernel that Debian has as a backport to its
            stable release, as far as dkms.conf goes
  RELEASE   the same of another kernel of Debian: 6.12.117+deb12-amd64, or 6.12
  debug     linux-source-6.12 with test-kernel.config, for QEMU
  uml       the same source as User-mode Linux with all checkers
  uml-fast  User-mode Linux without checkers, for wall-clock measurements
  uml-smp   like uml, with two CPUs, which User-mode Linux has since Linux 6.19:
            the source of Debian's backports

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

from base import (CACHE, CPUS, HERE, TOP, Fail, digest, errors_in, fresh_dir,
                  lock, output, run, say)
from packages import LOGS, Apt, backports, refresh_lists

SERIES = "6.12"
LATER = {"uml-smp": "7.3"}      # flavours built from Debian's backports
RECIPE = "1"            # raise when a kernel built before must not be used

FRAGMENTS = {
    "debug": ["test-kernel.config"],
    "uml": ["uml.config", "uml-debug.config"],
    "uml-fast": ["uml.config", "uml-fast.config"],
    "uml-smp": ["uml.config", "uml-debug.config", "uml-smp.config"],
}
FLAVOURS = ["stock", "newest", *FRAGMENTS]
RELEASE = re.compile(r"\d+\.\d+[\w.+-]*$")


class Kernel:
    """What the rest needs to know about one kernel that is ready."""

    def __init__(self, flavour, kdir, image, modules=None):
        self.flavour = flavour
        self.kdir = kdir            # make -C kdir M=... builds modules
        self.image = image          # what boots
        self.modules = modules      # folder of the kernel's own .ko files
        self.uml = flavour.startswith("uml")
        self.checked = flavour in ("debug", "uml", "uml-smp")

    @property
    def release(self):
        return (self.kdir / "include/config/kernel.release").read_text().strip()


def get(flavour, fetch=True):
    """The kernel of that flavour, made first if need be; without FETCH, apt is
    not asked and nothing is built."""
    if flavour in FRAGMENTS:
        return built(flavour, fetch)
    if flavour in FLAVOURS or RELEASE.match(flavour):
        return debian(flavour, fetch)
    raise Fail(f"there is no kernel '{flavour}'; it is one of "
               f"{', '.join(FLAVOURS)} or a release of Debian's", status=2)


def missing(flavour):
    return Fail(f"the kernel {flavour} is not here yet: 'make fetch "
                f"FLAVOUR={flavour}' gets it, or give KDIR=, the folder of a "
                "prepared kernel", status=2)


# --- Debian packages -------------------------------------------------------

def fits(release):
    """Is it a kernel that kOFI is built for?"""
    wanted = re.search(r'^BUILD_EXCLUSIVE_KERNEL="(.*)"$',
                       (TOP / "dkms.conf").read_text(), re.M)
    return re.match(wanted[1], release) is not None


def newest_of(flavour):
    """(release, version of its package, Apt) of a kernel that apt offers."""
    apts = [Apt()] * (flavour != "newest") + [backports()] * (flavour != "stock")
    series = {"stock": SERIES + ".", "newest": ""}.get(
        flavour, re.match(r"(\d+\.\d+)?", flavour)[0])
    for apt in apts:
        found = apt.releases(series)
        if not found and not apt.options:
            refresh_lists()
            found = apt.releases(series)
        if flavour == "newest":
            every, found = found, [f for f in found if fits(f[1])]
            if found and max(every) > max(found):
                say(f"    Debian has {max(every)[1]}, newer than what kOFI is "
                    "built for")
        elif flavour != "stock":
            found = [f for f in found
                     if re.match(re.escape(flavour) + r"(?!\d)", f[1])]
        if found:
            release = max(found)[1]
            return release, apt.version(f"linux-image-{release}"), apt
    raise Fail(f"apt offers no kernel '{flavour}'"
               + "; Debian 12 and 13 have 6.12 in their main and security "
               "archives" * (flavour == "stock"))


def recall(flavour, fetch):
    """(release, package version, Apt or None) of a Debian kernel; asking apt
    takes a second, so the answer is kept as long as its lists are the same."""
    memory = CACHE / "kernel" / f"{flavour}-newest"
    lists = str(max((p.stat().st_mtime_ns for p in
                     [pathlib.Path("/var/lib/apt/lists"),
                      *pathlib.Path("/etc/apt").rglob("*.[ls]*")]
                     if p.exists()), default=0))
    known = memory.read_text().split() if memory.exists() else []
    if len(known) == 3 and (not fetch or known[2] == lists) and (
            not fetch or flavour == "stock" or
            time.time() - memory.stat().st_mtime < 86400):
        return known[0], known[1], None
    if not fetch:
        raise missing(flavour)
    release, version, apt = newest_of(flavour)
    memory.parent.mkdir(parents=True, exist_ok=True)
    memory.write_text(f"{release} {version} {lists}\n")
    return release, version, apt


def debian(flavour, fetch):
    arch = output(["dpkg", "--print-architecture"]).strip()
    if arch != "amd64":
        raise Fail(f"the test machines are x86_64, this is {arch}", status=2)
    with lock("stock"):
        release, version, apt = recall(flavour, fetch)
        final = CACHE / "kernel" / f"stock-{digest(RECIPE, release, version)}"
        if not final.exists():
            if not fetch:
                raise missing(flavour)
            apt = apt or newest_of(flavour)[2]
            say(f"    fetching Debian's kernel {release}")
            with fresh_dir(final) as temp:
                apt.download(apt.packages(release), temp)
                if not runs_here(temp, release):
                    say("    fetching the compiler of that kernel's release")
                    apt.with_dependencies([f"linux-headers-{release}"],
                                          temp / "tools", ["linux-headers"])
                arrange_stock(temp, final, release)
    return Kernel(flavour, final / "build", final / "vmlinuz",
                  final / "modules")


def runs_here(kernel, release):
    """Whether this system can build modules for the unpacked KERNEL: it has the
    compiler, and libraries as new as the programs of the kernel's build want."""
    used = re.search(r"\bgcc-\d+", (kernel / "usr/src" / (
        f"linux-headers-{release}") / ".kernelvariables").read_text())
    fixdep = next(kernel.glob("usr/lib/linux-kbuild-*/scripts/basic/fixdep"))
    done = subprocess.run([fixdep], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, check=False)
    return "GLIBC" not in done.stderr and (
        not used or shutil.which(used[0]) is not None)


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
    image = f"boot/vmlinuz-{release}"
    if not (temp / image).exists():         # since 7.1
        image = f"usr/lib/modules/{release}/vmlinuz"
    os.symlink(image, temp / "vmlinuz")
    # lib and usr/lib are one on a merged system; kmod wants it so here too.
    if (temp / "usr/lib/modules" / release / "kernel").exists():
        shutil.rmtree(temp / "lib", ignore_errors=True)
        os.symlink("usr/lib", temp / "lib")
    os.symlink(f"lib/modules/{release}", temp / "modules")
    run(["depmod", "-b", temp, release], LOGS / "depmod.log", "depmod")


# --- built from linux-source -----------------------------------------------

def patches(series):
    """Changes of the kernel source that its machines need here."""
    return sorted((HERE / "patches").glob(f"{series}-*.patch"))


def patched(series):
    """What the patches come to; the key of kernels that they change."""
    return digest(*(p.read_text() for p in patches(series)))


def offered(package, series, fetch):
    """(version of a source package, Apt that has it, or None if not asked)."""
    if series == SERIES:
        apt = Apt()
        version = apt.version(package)
        if not version:
            refresh_lists()
            version = apt.version(package)
    else:       # backports are asked once a day, and not by a build
        memory = CACHE / "src" / f"{package}-newest"
        if memory.exists() and (not fetch or time.time()
                                - memory.stat().st_mtime < 86400):
            return memory.read_text(), None
        if not fetch:
            return None, None
        apt = backports()
        version = apt.version(package)
        if version:
            memory.parent.mkdir(parents=True, exist_ok=True)
            memory.write_text(version)
    if not version:
        raise Fail(f"apt offers no {package}")
    return version, apt


def source(series=SERIES, fetch=True):
    """The unpacked kernel source, with our patches: (folder, version of its
    package); without FETCH, None if it is not here."""
    package = f"linux-source-{series}"
    tarball = pathlib.Path(f"/usr/src/{package}.tar.xz")
    with lock("source"):
        apt = None
        if tarball.exists():
            version = output(["dpkg-query", "-W", "-f", "${Version}",
                              package]).strip()
        else:
            version, apt = offered(package, series, fetch)
            if not version:
                return None
        final = CACHE / "src" / ("linux-" + version.split(":")[-1]
                                 .replace("~", "."))
        stamp = final / "kofi-patches"
        if not stamp.exists() or stamp.read_text() != patched(series):
            if not fetch:
                return None
            shutil.rmtree(final, ignore_errors=True)
            with fresh_dir(final.with_name(final.name + ".unpack")) as temp:
                if not tarball.exists():
                    say(f"    fetching {package}")
                    (apt or backports()).download([package], temp)
                    tarball = temp / str(tarball)[1:]
                say(f"    unpacking {package} {version}")
                output(["tar", "-C", temp, "-xf", tarball])
                for change in patches(series):
                    output(["patch", "-sp1", "-d", temp / package, "-i", change])
                (temp / package / stamp.name).write_text(patched(series))
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


def built(flavour, fetch):
    series = LATER.get(flavour, SERIES)
    src, version = source(series, fetch) or (None, None)
    if not src:
        raise missing(flavour)
    compiler = output(["gcc", "--version"]).splitlines()[0]
    wanted = settings(flavour)
    parts = [RECIPE, version, compiler, *sorted(set(wanted))]
    if flavour.startswith("uml"):       # all patches are of arch/um
        parts.append(patched(series))
    final = CACHE / "kernel" / f"{flavour}-{digest(*parts)}"
    stamp = final / "complete"
    image = final / ("linux" if flavour.startswith("uml")
                     else "arch/x86/boot/bzImage")
    with lock(flavour):
        if not stamp.exists():
            if not fetch:
                raise missing(flavour)
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
