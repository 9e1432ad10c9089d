# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A machine with Secure Boot loads the modules that DKMS has signed.

QEMU's firmware is Debian's OVMF, with the keys of Microsoft. It starts Debian's signed shim,
shim starts Debian's signed GRUB, and GRUB starts the signed kernel. The machine starts twice.
With the certificate of DKMS in shim's list of keys, all modules load and transfer. Without it,
the kernel rejects each module. virt-fw-vars writes the list, as MokManager would.

Nothing of kOFI runs before the kernel. If apt cannot install one of these programs, or QEMU does
not get to the kernel, the report has a skip.
"""

import shutil

from base import call

RELEASES = {"trixie"}           # Debian 12 has no virt-fw-vars
PROGRAMS = ["ovmf", "python3-virt-firmware", "dosfstools", "mtools"]
SIGNED = ["shim-signed", "grub-efi-amd64-signed"]
ASK = ["mokutil"]               # in the machine
APT = ["apt-get", "-y", "--no-install-recommends"]
VARIABLES = "usr/share/OVMF/OVMF_VARS_4M.ms.fd"
CODE = "usr/share/OVMF/OVMF_CODE_4M.secboot.fd"
OWNER = "605dab50-e046-4300-abb6-3dd810dd8b23"  # shim's; any would do
STARTED = "] Linux version "    # the first line of a kernel

# Without a partition table the file system is the disk.
DISK = """truncate -s 256M esp
mkfs.vfat -F 32 esp
mmd -i esp ::/EFI ::/EFI/BOOT ::/EFI/debian
mcopy -i esp signed/usr/lib/shim/shimx64.efi.signed ::/EFI/BOOT/BOOTX64.EFI
mcopy -i esp signed/usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed ::/EFI/BOOT/grubx64.efi
mcopy -i esp vmlinuz initrd ::/
"""
GRUB = """linux /vmlinuz {}
initrd /initrd
boot
"""


class SecureBoot:
    """The machine TARGET with its kernel RELEASE. What only makes it is installed into the
    Debian TOOLS."""

    def __init__(self, target, tools, release):
        self.target = target
        self.tools = tools
        self.release = release
        self.where = tools.root / "root/secureboot"

    def skip(self, why):
        self.target.report.add(f"{self.target.job}/secure-boot", "skip", why)
        return True

    def within(self, commands):
        return ["sh", "-exc", f"cd /root/secureboot\n{commands}"]

    def fetch(self):
        """Fetch the programs; the names of those that cannot be had."""
        self.target.logs.mkdir(parents=True, exist_ok=True)
        for names, debian, cmd in (
                (PROGRAMS, self.tools, [*APT, "install", *PROGRAMS]),
                (SIGNED, self.tools, self.within(
                    f"mkdir signed; apt-get -o APT::Sandbox::User=root download "
                    f"{' '.join(SIGNED)}; for deb in *.deb; do dpkg -x $deb signed; done")),
                (ASK, self.target, [*APT, "install", *ASK])):
            status, text = call(debian.command(cmd, True))
            (self.target.logs / f"secure-boot-{names[0]}.log").write_text(text)
            if status:
                return names
        return []

    def disk(self):
        """The disk of the firmware, and its variables with the certificate and without."""
        boot = self.target.root / "boot"
        shutil.copy(boot / f"vmlinuz-{self.release}", self.where / "vmlinuz")
        shutil.copy(boot / f"initrd.img-{self.release}", self.where / "initrd")
        shutil.copy(self.target.root / "var/lib/dkms/mok.pub", self.where)
        shutil.copy(self.tools.root / VARIABLES, self.where / "unknown")
        return self.tools.step("secure-boot-disk", self.within(
            f"{DISK}virt-fw-vars -i unknown -o enrolled --add-mok {OWNER} mok.pub")) is not None

    def command(self, guest, disk, which):
        """QEMU with the variables and the step WHICH of debs.sh."""
        (self.where / "grub.cfg").write_text(GRUB.format(guest.cmdline(
            f"{self.target.ROOT} packages.{which}", "tcg")))
        self.tools.step(f"secure-boot-{which}-grub", self.within(
            "mcopy -o -i esp grub.cfg ::/EFI/debian/"))
        flash = "if=pflash,format=raw,unit="
        return [*guest.hardware("tcg", 2, 2048, None, 1, disk), "-machine", "smm=on",
                # only the firmware's own mode may write the variables
                "-global", "driver=cfi.pflash01,property=secure,value=on",
                "-drive", f"{flash}0,readonly=on,file={self.tools.root / CODE}",
                "-drive", f"{flash}1,file={self.where / which}",
                "-drive", f"if=none,id=d1,format=raw,readonly=on,file={self.where}/esp",
                "-device", "virtio-blk-pci,drive=d1,bootindex=1"]

    def starts(self, which):
        """Whether the steps of the machine succeed; None if its kernel does not start."""
        return self.target.machine(
            f"secure-boot-{which}", lambda *m: self.command(*m, which), [], STARTED)

    def __call__(self):
        """Whether it works, or cannot be tried."""
        shutil.rmtree(self.where, ignore_errors=True)
        self.where.mkdir()
        lacks = self.fetch()
        if lacks:
            return self.skip(f"not run, as apt cannot install {' '.join(lacks)} of "
                             f"{self.target.codename}")
        if not self.disk():
            return False
        for which in ("enrolled", "unknown"):
            good = self.starts(which)
            if good is None:
                return self.skip(
                    "not run, as QEMU does not start the kernel by OVMF with Secure Boot, see "
                    f"the log secure-boot-{which}-console.log")
            if not good:
                return False
        return True
