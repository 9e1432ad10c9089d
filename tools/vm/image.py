# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What a machine finds when it starts.

The payload is a folder: init, lib.sh, parts/ with the files of each scenario that
runs in the machine, ko/ with our modules, stock/ with the kernel's own, and
previous/ with the previous version where a scenario needs it. User-mode Linux reads
it from the host; for QEMU it becomes the folder /vm of an initramfs that also holds
the host's programs a scenario names, with the libraries they need. The archive is
not compressed (machines under TCG decompress slowly) and written here, so that
neither root nor cpio is needed.
"""

import glob
import lzma
import os
import pathlib
import re
import shutil
import subprocess

import packages
import previous
from base import BUILD, HERE, TOP, Fail, output

# dash is sh: busybox's would run its own applets where a real program is there
BASE_PROGRAMS = ["ip", "timeout", "env"]
KMOD = ["modprobe", "depmod", "insmod", "rmmod", "lsmod", "modinfo"]


# --- modules ---------------------------------------------------------------

def our_modules(flavour):
    """The .ko files built for a flavour, in the order of the build. Kernels before
    6.13 list them by the path at which the build sees the checkout (within)."""
    copy = BUILD / flavour
    order = copy / "modules.order"
    names = order.read_text().split() if order.exists() else []
    return [copy / pathlib.Path(name.partition(f"/build/{flavour}/")[2] or name)
            .with_suffix(".ko") for name in names]


def needed_by(ours):
    """Names of the kernel's modules that our files OURS need. They have to be in
    every machine, as the core asks for its providers by itself."""
    out = subprocess.run(["modinfo", "-F", "depends", *ours], check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    return {name for line in out.splitlines() for name in line.split(",")
            if name} - {ko.stem.replace("-", "_") for ko in ours}


def with_dependencies(kernel, names):
    """The kernel's modules NAMES and all they need, as files."""
    depends = {}
    for line in (kernel.modules / "modules.dep").read_text().splitlines():
        path, needs = line.split(":", 1)
        key = re.sub(r"\.ko.*", "", pathlib.Path(path).name).replace("-", "_")
        depends[key] = [path, *needs.split()]
    builtin = {pathlib.Path(l).stem.replace("-", "_") for l in
               (kernel.modules / "modules.builtin").read_text().split()}
    files = {}
    for name in names:
        key = name.rstrip("?").replace("-", "_")
        if key in builtin:
            continue
        if key not in depends:
            if name.endswith("?"):
                continue
            raise Fail(f"the {kernel.flavour} kernel has no module {name}")
        for path in depends[key]:
            files[path] = kernel.modules / path
    return files.values()


def unpacked(path):
    """A module's content; distributions compress them."""
    data = path.read_bytes()
    if path.suffix == ".xz":
        return lzma.decompress(data)
    if path.suffix == ".zst":
        return subprocess.run(["zstd", "-dcq", path], check=True,
                              stdout=subprocess.PIPE).stdout
    return data


# --- the payload -----------------------------------------------------------

def own_tools(programs=()):
    """The programs of tools/, in every machine's PATH, and of what the tests
    have besides those that are among PROGRAMS."""
    return [p for p in (*sorted((BUILD / "tools").glob("*")),
                        *(BUILD / "peer" / name for name in programs))
            if p.is_file() and os.access(p, os.X_OK)]


def of_others(programs):
    """Those of PROGRAMS that come from another release of Debian."""
    return [name for name in programs if packages.split(name)[1]]


def payload(where, kernel, parts, programs=()):
    """Fill the folder WHERE for the scenarios PARTS, with their PROGRAMS."""
    shutil.rmtree(where, ignore_errors=True)
    (where / "ko").mkdir(parents=True)
    for f in [HERE / "init", TOP / "tests/vm/lib.sh",
              TOP / "tests/vm/allocations.awk"]:
        shutil.copy(f, where)
    for part in parts:
        (where / "parts" / part.name).mkdir(parents=True)
        for f in part.files:
            shutil.copy(f, where / "parts" / part.name)
        (where / "parts" / part.name / "mtu").write_text(part.mtu + "\n")
    ours = our_modules(kernel.flavour)
    for ko in ours:     # without what only a debugger reads: most of them
        output(["strip", "-g", "-o", where / "ko" / ko.name, ko])
    (where / "bin").mkdir()
    for tool in own_tools(programs):
        shutil.copy(tool, where / "bin")
    for name in of_others(programs):
        path = where / "bin" / name
        path.write_text(packages.Program(name).script())
        path.chmod(0o755)
    if any(part.previous for part in parts):
        previous.payload(where / "previous", kernel)
    if kernel.modules:
        (where / "stock").mkdir()
        needed = needed_by(ours)
        if "libcrc32c" in needed:   # which asks for it by an alias
            needed |= {"crc32c_generic?", "crc32c_intel?"}
        names = {"virtio_net"}.union(needed,
                                     *(part.modules for part in parts))
        for f in with_dependencies(kernel, names):
            name = re.sub(r"\.ko.*", ".ko", f.name)
            (where / "stock" / name).write_bytes(unpacked(f))
        for f in {f for part in parts for f in part.built}:
            output(["strip", "-g", "-o", where / "stock" / f.name, f])
        for part in parts:
            (where / "parts" / part.name / "load").write_text("".join(
                m.rstrip("?") + "\n" for m in part.modules if m[-1] != "?"
                or (where / "stock" / f"{m[:-1]}.ko").exists()))


# --- the initramfs ---------------------------------------------------------

class Archive:
    """A cpio archive in the kernel's format (newc)."""

    def __init__(self):
        self.parts = []
        self.names = set()

    def _entry(self, name, mode, data=b""):
        if name in self.names:
            return
        parent = os.path.dirname(name)
        if parent:
            self._entry(parent, 0o040755)
        self.names.add(name)
        self._write(name, mode, data)

    def _write(self, name, mode, data):
        raw = name.encode() + b"\0"
        fields = [len(self.names), mode, 0, 0, 1, 0, len(data),
                  0, 0, 0, 0, len(raw), 0]
        head = b"070701" + b"".join(b"%08x" % f for f in fields) + raw
        self.parts += [head, b"\0" * (-len(head) % 4),
                       data, b"\0" * (-len(data) % 4)]

    def folder(self, name):
        self._entry(name.strip("/"), 0o040755)

    def link(self, name, to):
        self._entry(name.strip("/"), 0o120777, str(to).encode())

    def text(self, name, text):
        self._entry(name.strip("/"), 0o100644, text.encode())

    def file(self, name, path):
        mode = 0o100755 if os.access(path, os.X_OK) else 0o100644
        self._entry(name.strip("/"), mode, pathlib.Path(path).read_bytes())

    def tree(self, name, path):
        self.folder(name)
        for p in sorted(path.rglob("*")):
            if p.is_file():
                self.file(f"{name}/{p.relative_to(path)}", p)

    def save(self, path):
        self._write("TRAILER!!!", 0, b"")
        path.write_bytes(b"".join(self.parts))


def libraries(path):
    """The shared libraries PATH is linked to; none for a static program."""
    got = subprocess.run(["ldd", path], text=True, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, check=False)
    return re.findall(r"(/\S+)", got.stdout) if got.returncode == 0 else []


def find_program(name):
    where = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    path = shutil.which(name, path=where)
    if not path:
        raise Fail(f"a scenario needs the program {name}, "
                   "which is not installed here", status=2)
    return pathlib.Path(path)


def initramfs(out, programs, vm):
    """Write the archive OUT with PROGRAMS and the payload folder VM."""
    a = Archive()
    for d in ("proc", "sys", "dev", "run", "tmp", "root", "etc", "var/log",
              "sbin", "usr/bin", "usr/sbin", "lib64"):
        a.folder(d)
    a.link("var/run", "../run")
    needed = set()

    def add(where, path):
        a.file(where, path)
        needed.update(libraries(path))

    own = own_tools(programs)
    for tool in own:
        needed.update(libraries(tool))
    others = of_others(programs)
    for name in others:     # where the script in the payload looks for them
        for f in packages.Program(name).files():
            a.file(str(f), f)
    for name in [*BASE_PROGRAMS, *programs]:
        if name not in [tool.name for tool in own] + others:
            add(f"bin/{name}", find_program(name))
    add("bin/dash", find_program("dash"))
    a.link("bin/sh", "dash")
    add("bin/kmod", find_program("modprobe").resolve())
    for name in KMOD:
        a.link(f"bin/{name}", "kmod")
    a.link("sbin/modprobe", "../bin/kmod")
    busybox = find_program("busybox")
    add("bin/busybox", busybox)
    for applet in output([busybox, "--list"]).split():
        a.link(f"bin/{applet}", "busybox")
    # What ldd does not show: verbs providers, and what a thread's end needs.
    if any("libibverbs" in lib for lib in needed):
        for soft in ("rxe", "siw"):
            for f in [f"/etc/libibverbs.d/{soft}.driver",
                      *glob.glob(f"/usr/lib/*/libibverbs/lib{soft}-*.so")]:
                if os.path.exists(f):
                    add(f, f)
    for f in glob.glob("/lib/x86_64-linux-gnu/libgcc_s.so.1"):
        needed.add(f)
    for lib in sorted(needed):
        a.file(lib, lib)
    a.text("etc/nsswitch.conf", "hosts: files\npasswd: files\n")
    a.text("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"
           "nobody:x:65534:65534::/:/bin/sh\n")
    a.text("etc/group", "root:x:0:\n")
    a.text("etc/hosts", "127.0.0.1 localhost\n::1 localhost\n" + "".join(
        f"10.0.0.{n + 1} {c}\nfd00::{n + 1} {c}6\n"
        for n, c in enumerate("abcdefgh")))
    a.link("init", "vm/init")
    a.tree("vm", vm)
    a.save(out)
