# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Two machines run the commands of the pages.

Both are copies of a Debian with the packages. The target and the client run the commands of
README.md and of Documentation/blk.rst in the order of the pages (tests/docs/commands.py), and
nothing else sets them up. Each volume gets data. Both reboot, and the file systems have to be
mounted again with their data. Then the power of both is cut, and the client is switched on
before the target. At last one path of two is cut below multipathd while a program writes.
"""

import base64
import pathlib
import queue
import re
import shutil
import sys
import tempfile
import time

import machine
from base import HERE, TOP, Fail, call, run, slow
from report import splats

sys.path.insert(0, str(TOP / "tests/docs"))
import commands  # noqa: E402, pylint: disable=wrong-import-position

LIMIT = 300             # seconds for a command, or for the machine to boot
# what the pages take for granted, and multipathd
PROGRAMS = ["iproute2", "e2fsprogs", "keyutils", "nftables", "multipath-tools"]
NAMES = {"target": 1, "client": 2}
DISKS = "bcde"          # of the target
MOUNTS = ("/srv/vol0", "/srv/vol1", "/srv/vol3")
NETWORK = """[Match]
MACAddress=52:54:00:00:00:{0:02x}
[Network]
Address=10.0.0.{0}/24
"""
AGENT = """[Service]
ExecStart=/bin/bash /root/tests/pages
"""


def readme(role):
    """The commands of README.md for a role that is no machine."""
    return [command for block in commands.blocks(TOP / commands.PAGES[0])
            if block.role == role for command, _ in block.commands()]


def shown(block):
    return (f"cat >{block.path} <<END\n{block.text}END" if block.path
            else block.text).splitlines()


class Host(machine.Qemu):
    """A machine whose root does what ask() wants."""

    def __init__(self, name, log):
        super().__init__(name, log, lambda _, line: self.answers.put(line))
        self.answers = queue.Queue()

    def line(self, until):
        while True:
            try:
                return self.answers.get(timeout=1)
            except queue.Empty:
                if not self.alive():
                    raise Fail(f"{self.name} has stopped, see {self.log}") from None
                if time.monotonic() > until:
                    raise Fail(f"{self.name} does not answer") from None

    def booted(self):
        until = time.monotonic() + LIMIT * slow()
        while self.line(until) != "up":
            pass

    def ask(self, how, *words):
        """(exit status, output, what it has said on standard error)"""
        self.reply(" ".join([how, *(
            base64.b64encode(w.encode()).decode() for w in words)]))
        until = time.monotonic() + LIMIT * slow()
        said = {"|": "", "!": ""}
        while True:
            kind, _, rest = self.line(until).partition(" ")
            if kind == "=":
                return int(rest), said["|"], said["!"]
            if kind in said:
                said[kind] += rest + "\n"

    def run(self, command):
        """What it prints; Fail if it fails."""
        status, output, errors = self.ask("run", command)
        if status:
            raise Fail(f"{self.name}: '{command}' ended with {status}: "
                       f"{output}{errors}")
        return output

    def retry(self, command):
        """As soon as COMMAND succeeds there, what it prints."""
        until = time.monotonic() + LIMIT * slow()
        while True:
            status, output, errors = self.ask("run", command)
            if not status:
                return output
            if time.monotonic() > until:
                raise Fail(f"{self.name}: '{command}' still ends with {status}: "
                           f"{output}{errors}")
            time.sleep(1)


class Pages:
    """Both machines, made of the folder of DEBIAN, which has the kernel RELEASE."""

    def __init__(self, debian, release):
        self.debian = debian
        self.root = debian.root
        self.release = release
        self.where = debian.root.parent / "pages"
        self.hosts = {}
        self.sums = {}
        self.wwids = {}

    # --- the machines ---

    def prepare(self):
        """All that is there before the first command of a page; whether that worked."""
        etc = self.root / "etc/systemd"
        for number in NAMES.values():
            (etc / f"network/{number}.network").write_text(NETWORK.format(number))
        (etc / "system/pages.service").write_text(AGENT)
        wants = etc / "system/multi-user.target.wants"
        wants.mkdir(parents=True, exist_ok=True)
        (wants / "pages.service").symlink_to("/etc/systemd/system/pages.service")
        (self.root / "root/tests").mkdir(exist_ok=True)
        shutil.copy(HERE / "pages.sh", self.root / "root/tests/pages")
        self.where.mkdir()
        if (self.debian.step("pages-install", [
                "apt-get", "install", "-y", "--no-install-recommends", *PROGRAMS], True)
                is None or self.debian.step("pages-network", [
                    "systemctl", "enable", "systemd-networkd"]) is None
                or self.debian.judge("pages-image", *call([
                    "mke2fs", "-q", "-F", "-t", "ext4", "-d", self.root,
                    self.image("target"), "6G"])) is None):
            return False
        # a machine that is made of this folder later has other steps
        (wants / "pages.service").unlink()
        run(["cp", "--sparse=always", self.image("target"), self.image("client")])
        for disk in DISKS:
            with open(self.where / disk, "wb") as f:
                f.truncate(64 << 20)
        return True

    def image(self, name):
        return self.where / f"{name}.img"

    def start(self, *names):
        for name in names:
            old = self.hosts.get(name)
            if old:
                old.end()
            host = self.hosts[name] = Host(name, self.debian.logs / f"{name}.log")
            host.log_mode = "a" if old else "w"
            boot = self.root / "boot"
            cmd = host.command(
                boot / f"vmlinuz-{self.release}", boot / f"initrd.img-{self.release}",
                "tcg", 2, 1536, "console=ttyS0 root=/dev/vda rw panic=-1 net.ifnames=0 "
                f"systemd.hostname={name} systemd.machine_id={NAMES[name]:032x}",
                self.cables.netdev(name), NAMES[name], self.image(name))
            for disk in DISKS if name == "target" else ():
                cmd += ["-drive", f"if=none,id=v{disk},format=raw,cache=unsafe,"
                        f"file={self.where / disk}",
                        "-device", f"virtio-blk-pci,drive=v{disk}"]
            host.start(cmd, self.sockets)
        for name in names:
            self.hosts[name].booted()

    def off(self, name):
        """Reboot NAME, as far as to the end of its shutdown."""
        host = self.hosts[name]
        host.reply("run " + base64.b64encode(b"systemctl reboot").decode())
        if not host.wait(time.monotonic() + LIMIT * slow()):
            raise Fail(f"{name} does not shut down")

    # --- what is done ---

    def block(self, block, name):
        """A block of a page on the machine NAME: lines that say what is wrong."""
        host = self.hosts[name]
        if block.path:
            status, _, errors = host.ask("file", block.path, block.text)
            return [f"cannot write {block.path}: {errors}"] if status else []
        for command, output in block.commands():
            status, got, errors = host.ask("run", command)
            if status:
                return [f"line {block.line}: '{command}' ended with {status}",
                        *(got + errors).splitlines()]
            if output is not None and not commands.same(got, output):
                return [f"line {block.line}: '{command}' printed", *got.splitlines(),
                        "but the page has", *output.splitlines()]
            # the client has a copy of the file
            for key in re.findall(r">(/\S+\.key)$", command):
                self.hosts["client"].ask("file", key, host.run(f"base64 {key}"))
                self.hosts["client"].run(f"base64 -d {key} >{key}.new && mv {key}.new {key}")
        return []

    def follow(self):
        for page in commands.PAGES:
            for block in commands.blocks(TOP / page):
                if block.role not in commands.MACHINES:
                    continue
                for name in NAMES if block.role == "both" else [block.role]:
                    bad = self.block(block, name)
                    step = f"page-{block.name}" + f"-{name}" * (block.role == "both")
                    if self.debian.judge(step, 0, "\n".join(shown(block)), bad=bad) is None:
                        return False
        return True

    def step(self, name, work):
        """Judge WORK, a function."""
        try:
            work()
            bad = []
        except Fail as e:
            bad = str(e).splitlines()
        return self.debian.judge(f"pages-{name}", 0, "", bad=bad) is not None

    def data(self):
        client = self.hosts["client"]
        for mount in MOUNTS:
            client.run(f"head -c 8M /dev/urandom >{mount}/data")
            self.sums[mount] = client.run(f"sha256sum <{mount}/data")
        client.run("dd if=/srv/vol0/data of=/dev/disk/by-id/kofiblk-"
                   f"{self.wwid('vol2')} bs=1M oflag=direct conv=fsync status=none; sync")
        self.wwids = {name: self.wwid(name) for name in ("vol0", "vol1", "vol2")}

    def wwid(self, mapping):
        return self.hosts["client"].run(
            f"cat /sys/block/$(cat /sys/kernel/config/kofi_blk/{mapping}/device)/wwid").strip()

    def there(self):
        """All volumes are there with their data, and no unit has failed."""
        client = self.hosts["client"]
        for mount in MOUNTS:
            client.retry(f"findmnt {mount}")
        for mount, wanted in self.sums.items():
            if client.run(f"sha256sum <{mount}/data") != wanted:
                raise Fail(f"{mount} has other data")
        device = f"/dev/disk/by-id/kofiblk-{self.wwids['vol2']}"
        client.retry(f"[ -b {device} ]")
        if client.run(f"head -c 8M {device} | sha256sum") != self.sums["/srv/vol0"]:
            raise Fail("vol2 has other data")
        for name, wwid in self.wwids.items():
            if self.wwid(name) != wwid:
                raise Fail(f"{name} is another volume")
        providers = client.run(
            "cd /sys/kernel/config/kofi_blk && cat vol0/provider vol1/provider; cd").split()
        if providers != ["sock", "verbs"]:
            raise Fail(f"vol0 and vol1 are mapped over {providers}")
        for host in self.hosts.values():
            host.retry('failed=$(systemctl --failed --no-legend --plain); '
                       'echo "$failed"; [ -z "$failed" ]')

    def reboot(self):
        self.off("client")
        self.off("target")
        self.start("target", "client")

    def power_cut(self):
        """The client is up first, and repeats what has failed."""
        self.hosts["client"].run("sync")
        for host in self.hosts.values():
            host.kill()
            host.wait(time.monotonic() + LIMIT)
        self.start("client")
        self.hosts["client"].retry(
            "[ $(systemctl show -P NRestarts kofi-blk@vol0) -gt 0 ]")
        self.start("target")

    # --- two paths ---

    def ready(self):
        """multipathd uses both paths."""
        self.hosts["client"].retry(
            'paths=$(multipathd show paths raw format "%d %t %T" | grep ^kofiblk) && '
            'echo "$paths" && [ $(echo "$paths" | grep -c "active *ready") = 2 ]')

    def cut(self, name, away, back):
        """While a program writes, one path is away for a while."""
        client, target = self.hosts["client"], self.hosts["target"]
        self.ready()
        target.run(away)
        client.retry('multipathd show paths raw format "%d %t %T" | grep -q "failed *faulty"')
        before = client.run("cat /run/rounds").strip()
        client.retry(f"[ $(cat /run/rounds) -ge $(({before} + 3)) ]")
        client.run("[ ! -e /run/failed ]")
        target.run(back)
        self.ready()

    def load(self):
        self.hosts["client"].run(
            "(n=0; while [ ! -e /run/stop ]; do head -c 1M /dev/urandom | dd of=/srv/vol3/load "
            "bs=64k iflag=fullblock conv=fsync status=none || touch /run/failed; "
            "n=$((n + 1)); echo $n >/run/rounds; done) >/run/load 2>&1 & echo 0 >/run/rounds")

    def unload(self):
        client = self.hosts["client"]
        client.run("touch /run/stop; wait; [ ! -e /run/failed ]")
        client.run("! dmesg | grep -E 'I/O error, dev dm-|Buffer I/O error on dev dm-'")

    def firewall(self):
        """The filter drops packets of another network than that of the clients."""
        client, target = self.hosts["client"], self.hosts["target"]
        connect = "timeout 20 bash -c '</dev/tcp/10.0.0.1/4421'"
        target.run("ip addr add 10.9.0.1/24 dev eth0")
        client.run("ip addr add 10.9.0.2/24 dev eth0")
        target.run("nft delete table inet kofi 2>/dev/null || :")
        client.run(f"{connect}")
        client.run("ip route add 10.0.0.1/32 dev eth0 src 10.9.0.2")
        client.run(connect)
        target.run("nft -f /usr/share/doc/kofi-tools/examples/nftables.conf")
        client.run(f"{connect}; [ $? = 124 ]")
        client.run("ip route del 10.0.0.1/32 dev eth0")
        client.run(connect)

    def work(self):
        ports = "/sys/kernel/config/kofi_blkt/ports"
        vol3 = "/sys/kernel/config/kofi_blkt/volumes/vol3"
        rdma = f"{ports}/verbs-10.0.0.1-4421/volumes"
        return (self.step("boot", lambda: self.start("target", "client"))
                and self.follow()
                and self.step("data", self.data)
                and self.step("reboot", self.reboot)
                and self.step("there", self.there)
                and self.step("power-cut", self.power_cut)
                and self.step("there-again", self.there)
                and self.step("firewall", self.firewall)
                and self.step("paths", self.ready)
                and self.step("load", self.load)
                and self.step("path-tcp", lambda: self.cut(
                    "tcp", "nft insert rule inet kofi input tcp dport 4421 drop",
                    "nft delete table inet kofi"))
                and self.step("path-rdma", lambda: self.cut(
                    "rdma", f"rm {rdma}/vol3", f"ln -s {vol3} {rdma}"))
                and self.step("load-good", self.unload)
                and self.step("shutdown", lambda: (self.off("client"), self.off("target"))))

    def __call__(self):
        """Whether all of it worked."""
        shutil.rmtree(self.where, ignore_errors=True)
        try:
            if not self.prepare():
                return False
            with tempfile.TemporaryDirectory(prefix="kofi-") as sockets:
                self.sockets = pathlib.Path(sockets)
                self.cables = machine.Cables(list(NAMES), self.sockets)
                try:
                    good = self.work()
                finally:
                    for host in self.hosts.values():
                        host.end()
                    self.cables.close()
            return self.judge() and good
        finally:
            shutil.rmtree(self.where, ignore_errors=True)

    def judge(self):
        """What the consoles give away."""
        good = True
        for name, host in self.hosts.items():
            text = host.log.read_text(errors="replace")
            bad = [line for excerpt in splats(text.splitlines()) for line in excerpt]
            bad += re.findall(r"Failed unmounting.*", text)
            good = self.debian.judge(f"pages-console-{name}", 0, text, bad=bad) is not None and good
        return good
