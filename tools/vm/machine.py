# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""One virtual machine: how it is started, watched, cabled and ended.

A machine has a console, saved line by line, and a second line to the runner
that carries results and the requests of tests/vm/lib.sh. Both kinds (QEMU,
User-mode Linux) offer the same calls. Machines belong to the process that
started them and are ended by their process id; cables are sockets in the
file system, so no packet is seen by the host's network.
"""

import atexit
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

import host
from base import CACHE, Fail, Meter, say, wait


# --- which accelerator -----------------------------------------------------

def accelerator(kernel, image):
    """tcg or kvm. /dev/kvm proves nothing: guests may hang under it, so a
    machine has to have started once."""
    choice = os.environ.get("KOFI_ACCEL", "auto")
    if choice in ("tcg", "kvm"):
        return choice
    if choice != "auto":
        raise Fail(f"KOFI_ACCEL is '{choice}'; it must be tcg, kvm or auto",
                   status=2)
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    flags = pathlib.Path("/proc/cpuinfo").read_text().split()
    if "vmx" not in flags and "svm" not in flags:
        return "tcg"
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    verdict = CACHE / "kvm-probe"
    if verdict.exists() and verdict.read_text().split()[:1] == [boot]:
        return verdict.read_text().split()[1]
    say("    trying whether machines start under KVM")
    got = b""
    try:
        got = subprocess.run(
            ["qemu-system-x86_64", "-M", "q35", "-accel", "kvm", "-cpu",
             "host", "-m", "512", "-nodefaults", "-no-reboot", "-display",
             "none", "-serial", "stdio", "-kernel", kernel, "-initrd", image,
             "-append", "console=ttyS0 panic=-1 vm.dir=/vm vm.name=probe "
             "vm.parts=probe:/dev/null:0"], timeout=20, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL).stdout
    except subprocess.TimeoutExpired:
        pass
    accel = "kvm" if b"VM-EXIT" in got else "tcg"
    verdict.write_text(f"{boot} {accel}\n")
    return accel


# --- machines --------------------------------------------------------------

running = set()     # what must be ended if this process is


def end_all():
    """End every machine of this process, whatever it is doing."""
    for m in list(running):
        m.kill()


atexit.register(end_all)


def last_words(lines=20):
    """What each machine of this process has said last, for a run that is ended."""
    return [line for m in list(running) if m.log.exists()
            for line in (f"--- {m.log}", *m.log.read_text(
                errors="replace").splitlines()[-lines:])]


class Machine:
    """Common to both kinds. on_ctl(machine, line) is called for each line of
    the second channel, in a thread of the machine's own."""

    def __init__(self, name, log, on_ctl=None, on_console=None):
        self.name = name
        self.log = pathlib.Path(log)
        self.on_ctl = on_ctl
        self.on_console = on_console
        self.proc = None
        self.ctl = None
        self.killed = False
        self.log_mode = "w"
        self.again = None               # the command to start it again
        self.meter = Meter.current() or Meter()
        self.up = threading.Event()
        self.threads = []
        self._ctl_lock = threading.Lock()

    def _spawn(self, cmd, **kw):
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.proc = subprocess.Popen(
            [str(c) for c in cmd], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **kw)
        running.add(self)
        self._thread(self._console)

    def _thread(self, what):
        t = threading.Thread(target=self.meter.helps(what), daemon=True)
        t.start()
        self.threads.append(t)

    def _console(self):
        with open(self.log, self.log_mode, buffering=1) as out:
            for raw in self.proc.stdout:
                line = raw.decode(errors="replace").rstrip("\r\n")
                out.write(line + "\n")
                if line.startswith("VM-UP"):
                    self.up.set()
                if self.on_console:
                    self.on_console(self, line)

    def _talk(self):
        """Read the second channel until the machine is gone."""
        pending = b""
        while True:
            try:
                data = self.ctl.recv(4096)
            except OSError:
                data = b""
            if not data:
                return
            pending += data
            *lines, pending = pending.split(b"\n")
            for line in lines:
                self.on_ctl(self, line.decode(errors="replace").rstrip("\r"))

    def reply(self, text):
        with self._ctl_lock:
            try:
                self.ctl.sendall(text.encode() + b"\n")
            except OSError:
                pass        # the machine is gone, its end is reported elsewhere

    def alive(self):
        if self.proc is None or self.proc.returncode is not None:
            return False
        try:    # wait() reads what it took, so it must not be reaped here
            return os.waitid(os.P_PID, self.proc.pid, os.WEXITED | os.WNOHANG
                             | os.WNOWAIT) is None
        except ChildProcessError:
            return False

    def status(self):
        """How the program of a machine that is gone ended."""
        code = self.proc.returncode
        if code is not None and code < 0:
            return f"killed by {signal.Signals(-code).name}"
        return f"exit status {code}"

    def kill(self):
        """Like a power cut."""
        self.killed = True
        self._signal(signal.SIGKILL)

    def _signal(self, number):
        if self.alive():
            self.proc.send_signal(number)

    def wait(self, until):
        """True if the machine ended before the time UNTIL (monotonic)."""
        try:
            wait(self.proc, max(0.1, until - time.monotonic()), self.meter)
        except subprocess.TimeoutExpired:
            return False
        for t in self.threads:
            t.join(5)
        return True

    def end(self):
        """Make sure nothing of it is left."""
        if self.alive():
            self._signal(signal.SIGKILL)
        if self.proc:
            wait(self.proc, meter=self.meter)
        running.discard(self)
        for t in self.threads:
            t.join(5)
        if self.ctl:
            self.ctl.close()


class Qemu(Machine):
    """A machine with a network card for each cable it is given."""

    @staticmethod
    def cmdline(words, accel):
        """The kernel's command line for WORDS."""
        khz = host.tsc_khz() if accel == "tcg" else None
        # a guest that a busy host interrupts while it measures this is wrong by
        # two orders, and all of its times with it
        return f"{words} tsc_early_khz={khz}" if khz else words

    def command(self, kernel, image, accel, smp, mem, cmdline, netdev, index,
                disk=None):
        return [*self.hardware(accel, smp, mem, netdev, index, disk), "-kernel", kernel,
                "-initrd", image, "-append", self.cmdline(cmdline, accel)]

    @staticmethod
    def hardware(accel, smp, mem, netdev, index, disk=None):
        """The machine without anything to start."""
        cmd = ["qemu-system-x86_64", "-M", "q35", "-smp", smp, "-m", mem,
               "-nodefaults", "-no-reboot", "-display", "none"]
        if accel == "kvm":
            cmd += ["-accel", "kvm", "-cpu", "host"]
        elif accel == "icount":
            # time is the number of instructions executed, one per ns
            cmd += ["-accel", "tcg,thread=single", "-cpu", "max",
                    "-icount", "shift=0,sleep=off"]
        else:
            # the emulator's cmpxchg16b, made by a helper, now and then
            # returns with flags that were not set, and the guest falls over
            cmd += ["-accel", "tcg,thread=multi", "-cpu", "max,-cx16"]
        if netdev:
            cmd += ["-netdev", netdev, "-device",
                    "virtio-net-pci,netdev=n0,romfile=,"
                    f"mac=52:54:00:00:00:{index:02x}"]
        if disk:    # what is written is the host's at once, and outlives QEMU
            cmd += ["-drive", f"if=none,id=d0,format=raw,cache=unsafe,file={disk}",
                    "-device", "virtio-blk-pci,drive=d0,write-cache=off"]
        return cmd

    def start(self, cmd, sockets):
        ctl = sockets / f"{self.name}.ctl"
        qmp = sockets / f"{self.name}.qmp"
        self._spawn([*cmd, "-serial", "stdio",
                     "-chardev", f"socket,id=ctl,path={ctl},server=on,wait=off",
                     "-serial", "chardev:ctl",
                     "-qmp", f"unix:{qmp},server=on,wait=off"])
        self.qmp_path = qmp
        self.ctl = self._connect(ctl)
        if self.ctl:
            self._thread(self._talk)

    def _connect(self, path):
        for _ in range(1200):
            s = socket.socket(socket.AF_UNIX)
            try:
                s.connect(str(path))
                return s
            except OSError:
                s.close()
                if not self.alive():
                    return None
                time.sleep(0.05)
        return None

    def monitor(self, *commands):
        """Give QEMU's monitor these commands, one after the other. None if all
        of them worked, else what it says."""
        s = self._connect(self.qmp_path)
        if not s:
            return "no monitor"
        with s, s.makefile("rw") as f:
            f.readline()                        # the greeting
            for what in ({"execute": "qmp_capabilities"}, *commands):
                f.write(json.dumps(what) + "\n")
                f.flush()
                got = {}
                while "return" not in got and "error" not in got:
                    got = json.loads(f.readline() or '{"error": "gone"}')
                if "error" in got:
                    return str(got["error"])
        return None

    def link(self, up):
        """Plug or pull the cable; the sentence to reply with."""
        wrong = self.monitor({"execute": "set_link",
                              "arguments": {"name": "n0", "up": up}})
        return f"fail {wrong}" if wrong else "ok"


class Uml(Machine):
    """A plain process on the host's files; it has no cable."""

    @staticmethod
    def command(linux, init, mem, cmdline):
        return [linux, f"mem={mem}M", "root=/dev/root", "rootfstype=hostfs",
                "rootflags=/", "ro", "con0=null,fd:1", "con=null", "ssl=null",
                f"init={init}", *cmdline.split()]

    def start(self, cmd, sockets):
        self.ctl, theirs = socket.socketpair()
        with theirs:
            fd = theirs.fileno()
            # its helper processes must not outlive it: one process group
            self._spawn([*cmd, f"ssl0=fd:{fd},fd:{fd}",
                         f"uml_dir={sockets}/", f"umid={self.name}"],
                        pass_fds=[fd], start_new_session=True,
                        env={**os.environ, "TMPDIR": "/dev/shm"
                             if os.access("/dev/shm", os.W_OK) else "/tmp"})
        self._thread(self._talk)

    def _signal(self, number):
        try:
            os.killpg(self.proc.pid, number)
        except ProcessLookupError:
            pass

    def end(self):
        if self.proc:
            self._signal(signal.SIGKILL)
        super().end()

    def link(self, up):
        return "fail this machine has no cable"


def interactive(cmd):
    """Run a machine on this terminal; the exit status."""
    if not sys.stdin.isatty():
        say("(no terminal here: the machine reads commands from this input)")
    return subprocess.run([str(c) for c in cmd], check=False).returncode


# --- cables ----------------------------------------------------------------

class Cables:
    """One network segment for the machines NAMES: two share a cable, more
    meet at a hub in this process."""

    def __init__(self, names, sockets):
        self.sockets = sockets
        self.names = names
        self.hub = None
        if len(names) > 2:
            self.hub = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self.hub.bind(str(sockets / "hub"))
            threading.Thread(target=self._repeat, daemon=True).start()

    def netdev(self, name):
        if len(self.names) < 2:
            return None
        peer = "hub.net" if self.hub else next(
            n for n in self.names if n != name) + ".net"
        if self.hub:
            peer = "hub"
        return (f"dgram,id=n0,local.type=unix,"
                f"local.path={self.sockets}/{name}.net,"
                f"remote.type=unix,remote.path={self.sockets}/{peer}")

    def _repeat(self):
        ports = {n: str(self.sockets / f"{n}.net") for n in self.names}
        while True:
            try:
                frame, sender = self.hub.recvfrom(70000)
            except OSError:
                return
            for port in ports.values():
                if port != sender:
                    try:
                        self.hub.sendto(frame, socket.MSG_DONTWAIT, port)
                    except OSError:
                        pass    # not there, or does not keep up: a lost frame

    def close(self):
        if self.hub:
            self.hub.close()
