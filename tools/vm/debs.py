# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The packages, in clean Debians of two releases.

They are built there by the commands of README.md, and lintian judges them. Where they
are installed from a folder, DKMS builds the modules; the tests of debian/tests look at
those. They are upgraded and downgraded, and autopkgtest runs them once more. Then that
Debian starts as a virtual machine, transfers, and is upgraded while a device is in use.
It starts with Secure Boot, too, with the certificate of DKMS and without (secureboot.py).
Two copies of it run the commands of the pages (pages.py). More kernels are installed, and the
machine starts with each of them. At last the packages are removed.
"""

import pathlib
import re
import shutil
import tempfile
import time

import machine
import packages
import pages
import secureboot
from base import BUILD, HERE, TOP, call, lock, say, slow
from install import OURS, Clean, skipped, version
from report import splats
from schedule import Job

NAME = "packages"
# release: its packages of a kernel that kOFI is built for, without linux-image-; and
# whether its backports have newer ones
RELEASES = {"bookworm": ("6.12-amd64", ["6.12-cloud-amd64", "6.12-rt-amd64"], False),
            "trixie": ("amd64", ["cloud-amd64", "rt-amd64"], True)}
INSTALLED = ("kofi-dkms", "kofi-tools", "kofi-dev")
APT = ["apt-get", "install", "-y"]
LIMIT = 600             # seconds of the machine


def inside(folder, commands):
    """Run these commands of a page in FOLDER."""
    return ["sh", "-exc", "\n".join([f"cd {folder}", *commands])]


def unattended(debian, recommends):
    """Have apt ask nothing, as no page says "yes"."""
    (debian.root / "etc/apt/apt.conf.d/99unattended").write_text(
        'APT::Get::Assume-Yes "true";\n'
        f'APT::Install-Recommends "{str(recommends).lower()}";\n')


class Builder(Clean):
    """A Debian that builds the packages, of this version and of a later one."""

    def packages(self, name, newer=""):
        """Build them into the folder /root/NAME; whether that worked."""
        self.copy(TOP, f"/root/{name}/kofi", *OURS)
        for path, line in (
                ("include/linux/kofi/version.h", f'"{version()}"'),
                ("dkms.conf", f'"{version()}"'),
                ("debian/changelog", f"({version()})")):
            file = self.root / "root" / name / "kofi" / path
            file.write_text(file.read_text().replace(
                line, line[0] + version() + newer + line[-1], 1))
        return self.step(f"build-{name}", inside(
            f"/root/{name}/kofi", pages.readme("build")[-1:])) is not None

    def work(self):
        self.copy(TOP, "/root/kofi", *OURS)
        unattended(self, False)
        if (self.step("build-depends", inside("/root/kofi", [
                *pages.readme("build")[:-1], "apt-get install lintian"]), True) is None
                or not self.packages("this") or not self.packages("next", ".1")):
            return False
        # packages that work are tested, whatever it thinks of them
        self.step("lintian", ["sh", "-c", "lintian --allow-root --info --fail-on "
                              "error,warning /root/this/kofi_*.changes"])
        return True


class Target(Clean):
    """A Debian that has a kernel and becomes a machine."""

    ROOT = "console=ttyS0 root=/dev/vda rw panic=-1"

    def work(self, tools, image, others, backports):
        """TOOLS is a Debian of the release, for what the machine does without."""
        if self.step("kernel", [*APT, "--no-install-recommends",
                                "systemd-sysv", "udev", "initramfs-tools",
                                f"linux-image-{image}"], True) is None:
            return False
        release = next((self.root / "lib/modules").iterdir()).name
        this, newer = ([f"/root/{name}/{p.name}" for p in sorted(
            (self.root / "root" / name).glob("*.deb"))
            if p.name.startswith(tuple(f"{i}_" for i in INSTALLED))]
            for name in ("this", "next"))
        unattended(self, True)
        (self.root / "root/this/kofi").mkdir()
        began = time.monotonic()
        if (self.step("install", inside("/root/this/kofi", [
                command.replace("linux-headers-amd64", f"linux-headers-{image}")
                for command in pages.readme("install")]), True) is None
                or self.step("install-dev", [*APT, *this]) is None):
            return False
        took = time.monotonic() - began
        dkms = ["sh", "/root/tests/dkms"]
        return (self.step("dkms", dkms) is not None
                and self.step("upgrade", [*APT, *newer]) is not None
                and self.step("upgraded", [*dkms, release]) is not None
                and self.step("downgrade", [*APT, "--allow-downgrades", *this])
                is not None
                and self.step("downgraded", [*dkms, release]) is not None
                and self.autopkgtest() and self.boots(release, took)
                and (self.codename not in secureboot.RELEASES
                     or secureboot.SecureBoot(self, tools, release)())
                and pages.Pages(self, release)()
                and self.step("more-kernels", [
                    *APT, "--no-install-recommends",
                    *(f"linux-{what}-{other}" for other in others
                      for what in ("image", "headers"))], True) is not None
                and all([self.smoke(other) for other in others])
                and (not backports or self.newest(image))
                and self.step("more-dkms", dkms) is not None
                and self.step("purge", ["apt-get", "purge", "-y", *INSTALLED])
                is not None and self.clean())

    def newest(self, image):
        """The kernel of the backports, for which DKMS builds as it is installed."""
        suite = f"{self.codename}-backports"
        (self.root / "etc/apt/sources.list.d/backports.list").write_text(
            f"deb {packages.sites()['Debian']} {suite} main\n")
        return (self.step("backports-update", ["apt-get", "update"], True) is not None
                and self.step("backports", [*APT, "-t", suite,
                                            f"linux-headers-{image}"], True)
                is not None)

    def autopkgtest(self):
        """Debian's runner is there; it runs the test that needs no machine. What its tests
        and the machine depend on is there, too."""
        return (self.step("autopkgtest-install", [
            *APT, "--no-install-recommends", "autopkgtest", "diod",
            "nftables", "stunnel4"], True) is not None
                and self.step("autopkgtest", [
                    "autopkgtest", "-B", "--test-name=dkms", "/root/source/",
                    "--", "null"], True) is not None)

    def clean(self):
        left = [f"{f} has been left" for pattern in (
            "usr/src/kofi*", "var/lib/dkms/kofi", "lib/modules/*/updates/**/kofi*",
            "usr/lib/udev/rules.d/*kofi*", "etc/**/*kofi*")
            for f in self.root.glob(pattern)]
        return self.judge("purged", 0, "", bad=left) is not None

    def boots(self, release, took):
        """TOOK seconds were for apt and DKMS."""
        lines = []
        good = self.machine("machine", self.kernel(release, ""), lines)
        first = re.search(r"first verified transfer after ([\d.]+) s",
                          "\n".join(lines))
        if first:
            say(f"    {self.job}: apt and DKMS took {took:.0f} s, the first "
                f"verified transfer {float(first[1]):.1f} s")
        return good

    def smoke(self, image):
        """A kernel of another flavour transfers, too."""
        flavour = image.rsplit("-", 2)[-2]
        release = next((self.root / "boot").glob(
            f"vmlinuz-*-{flavour}-amd64")).name.removeprefix("vmlinuz-")
        return self.machine(f"machine-{flavour}",
                            self.kernel(release, "packages.smoke"), [])

    def kernel(self, release, words):
        """The command, for a machine and its disk, that has QEMU start the kernel RELEASE
        with WORDS on its command line."""
        return lambda guest, disk: guest.command(
            self.root / f"boot/vmlinuz-{release}", self.root / f"boot/initrd.img-{release}",
            "tcg", 2, 2048, f"{self.ROOT} {words}", None, 1, disk)

    def machine(self, name, command, lines, reached=None):
        """Whether the steps of debs.sh succeed in the machine that COMMAND starts. LINES
        get its console. None if that lacks REACHED, and the report is left alone."""
        unit = "etc/systemd/system/packages-test.service"
        wants = self.root / "etc/systemd/system/multi-user.target.wants"
        wants.mkdir(parents=True, exist_ok=True)
        (self.root / unit).write_text(
            "[Service]\nType=oneshot\nExecStart=/bin/sh /root/tests/machine\n")
        (wants / pathlib.Path(unit).name).symlink_to(f"/{unit}")
        # it would hang up what the script says
        getty = self.root / "etc/systemd/system/serial-getty@ttyS0.service"
        getty.unlink(missing_ok=True)
        getty.symlink_to("/dev/null")
        disk = self.root.with_suffix(".img")
        if self.judge(f"{name}-image", *call([
                "mke2fs", "-q", "-F", "-t", "ext4", "-d", self.root, disk,
                "6G"])) is None:
            return False
        done = []

        def result(_, line):
            word, _, name = line.strip().partition(" ")
            if word in ("ok", "not", "done"):
                done.append((word, name))

        self.logs.mkdir(parents=True, exist_ok=True)
        guest = machine.Qemu(name, self.logs / f"{name}-console.log", result,
                             lambda _, line: lines.append(line))
        with tempfile.TemporaryDirectory() as sockets:
            guest.start(command(guest, disk), pathlib.Path(sockets))
            ended = guest.wait(time.monotonic() + LIMIT * slow())
            guest.end()
        disk.unlink()
        (wants / pathlib.Path(unit).name).unlink()
        if reached and not any(reached in line for line in lines):
            return None
        for word, step in done:
            if word != "done":
                self.report.add(f"{self.job}/{name}-{step}", word,
                                [] if word == "ok" else lines[-30:])
        bad = [line for excerpt in splats(lines) for line in excerpt]
        if not ended or ("done", "") not in done:
            bad += ["the machine has not finished", *lines[-20:]]
        return (self.judge(name, 0, "\n".join(lines), bad=bad) is not None
                and all(word != "not" for word, _ in done))


def work(codename, report):
    job = f"{NAME}@{codename}"
    if skipped(job, report):
        return True
    where = BUILD / NAME / codename
    with lock(job, BUILD / "vm"):
        shutil.rmtree(where, ignore_errors=True)
        (where / "build").mkdir(parents=True)
        try:
            builder = Builder(where / "build", report, job, codename)
            if not builder.make():
                return False
            target = Target(where / "target", report, job, codename)
            target.copy(builder.root, "")
            if not builder.work():
                return False
            for name in ("this", "next"):
                target.copy(builder.root / "root" / name, f"/root/{name}",
                            "--exclude=/kofi")
            target.copy(TOP / "debian", "/root/source/debian")
            target.copy(TOP / "debian/tests", "/root/tests")
            shutil.copy(HERE / "debs.sh", target.root / "root/tests/machine")
            return target.work(builder, *RELEASES[codename])
        finally:
            shutil.rmtree(where, ignore_errors=True)


def jobs(report):
    return [Job(f"{NAME}@{d}", 1, lambda d=d: work(d, report), guess=900)
            for d in RELEASES]
