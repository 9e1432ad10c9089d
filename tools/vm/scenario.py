# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Scenarios: a folder tests/vm/NAME with one shell script per machine.

run.sh is the script of the only machine; a.sh, b.sh, … (up to h.sh) are those
of several, joined by one cable. The file `scenario` beside them says the rest,
one KEY=VALUE per line, # for comments:

  title     one line for the reader
  kernels   each listed kernel gives a run: stock newest debug uml uml-fast
            uml-smp (default: stock)
  tags      test (default), demo, soak: which target runs it
  soak      those of its kernels on which test does not run it, but soak
  programs  host programs the machines need, beyond busybox, ip, kmod and our
            own tools (on uml all programs of the host are there);
            fi_pingpong@trixie is that of Debian's release trixie, called so
  modules   modules of Debian's kernels to load (other kernels have them built in);
            with a ? behind, only where the kernel has it
  timeout   seconds for the whole scenario (default 120; 2.5 times that on debug,
            and more while the host is busy); soak-timeout: in make soak
  mem, smp  MiB and processors of each machine (512; 1024 on debug; 2 processors,
            1 each with several machines)
  mtu       of the cable between machines in QEMU (default 9000)
  disk      MiB of a disk of each machine, /dev/vda, which has no cache of its own
            and keeps its content when the machine is switched off; QEMU
  cmdline   further kernel parameters; on uml, time-travel=inf-cpu makes time
            simulated: computing takes none, timers expire at once, in order
  alone     yes: measures time, so nothing else may run beside it
  icount    yes: time of the machines counts instructions; QEMU, smp 1
  leaks     no: do not unload everything and look for leaks at the end
  boot      a name: scenarios that have the same share their machines on each
            kernel, one after the other, each with its modules loaded again
  last      yes: a demo ends with it
  previous  yes: machines have the previous version, too, in /run/vm/previous
            (previous.py)
  allow     a regular expression of kernel messages that are meant to appear

Other files of the folder are at $VM in each machine. tests/vm/lib.sh says what
scripts can say.
"""

import math
import pathlib
import shutil
import tempfile
import threading
import time

import image
import kernel as kernels
import machine
from base import BUILD, REPORT, TOP, Fail, Meter, lock, say, slow
from report import splats, stale_code

FOLDER = TOP / "tests/vm"
KEYS = {"title", "kernels", "tags", "programs", "modules", "timeout", "mem",
        "smp", "cmdline", "leaks", "allow", "machines", "alone", "icount", "boot",
        "soak", "last", "disk", "mtu", "soak-timeout", "previous"}


class Scenario:
    def __init__(self, name, scripts, files, **keys):
        self.name = name
        self.scripts = scripts          # machine name -> script file name
        self.files = files
        self.keys = keys
        self.kernels = keys.get("kernels", "stock").split()
        self.tags = keys.get("tags", "test").split()
        self.soak = keys.get("soak", "").split()
        self.programs = keys.get("programs", "").split()
        self.modules = keys.get("modules", "").split()
        self.built = []     # .ko files that are neither the kernel's nor ours
        self.leaks = keys.get("leaks", "yes") != "no"
        self.alone = keys.get("alone") == "yes"
        self.previous = keys.get("previous") == "yes"
        self.allow = keys.get("allow")
        self.boot = keys.get("boot")
        # of a machine's cable; each packet is a system call of two emulators
        self.mtu = keys.get("mtu", "9000")

    @classmethod
    def load(cls, folder):
        keys = {}
        where = f"tests/vm/{folder.name}/scenario"
        for n, line in enumerate((folder / "scenario").read_text()
                                 .splitlines(), 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            key, eq, value = line.partition("=")
            key, value = key.strip(), value.strip()
            if value[:1] in "\"'" and value[-1:] == value[:1]:
                value = value[1:-1]
            if not eq or key not in KEYS:
                raise Fail(f"{where}:{n}: '{line}' is none of "
                           f"{', '.join(sorted(KEYS))}")
            keys[key] = value
        for key in ("timeout", "soak-timeout", "mem", "smp", "machines", "disk"):
            if key in keys and not keys[key].isdigit():
                raise Fail(f"{where}: {key} must be a number")
        names = [c for c in "abcdefgh" if (folder / f"{c}.sh").exists()]
        if (folder / "run.sh").exists():
            scripts = {"a": "run.sh"}
        else:
            scripts = {c: f"{c}.sh" for c in names}
        if not scripts:
            raise Fail(f"tests/vm/{folder.name} has neither run.sh nor a.sh")
        if int(keys.get("machines", len(scripts))) != len(scripts):
            raise Fail(f"{where}: machines={keys['machines']}, but there are "
                       f"scripts for {len(scripts)}")
        files = [f for f in folder.iterdir() if f.is_file()]
        self = cls(folder.name, scripts, files, **keys)
        for k in self.kernels:
            if k not in kernels.FLAVOURS:
                raise Fail(f"{where}: there is no kernel '{k}'")
            if k.startswith("uml") and len(scripts) > 1:
                raise Fail(f"{where}: a uml machine has no cable")
            if k.startswith("uml") and "disk" in keys:
                raise Fail(f"{where}: a uml machine has no disk")
        if not set(self.soak) <= set(self.kernels):
            raise Fail(f"{where}: soak names kernels that kernels does not")
        return self

    def timeout(self, flavour, soak=False):
        """Seconds of a host that has nothing else to do."""
        usual = self.keys.get("timeout", 120)
        return (int(self.keys.get("soak-timeout", usual) if soak else usual)
                * (2.5 if flavour == "debug" else 1))

    def mem(self, flavour):
        return int(self.keys.get("mem", 1024 if flavour == "debug" else 512))

    def smp(self):
        return int(self.keys.get("smp", 1 if len(self.scripts) > 1 else 2))


def find(tag):
    """The runs of a target, by name: [(scenario, kernel)]."""
    def has(s, k):
        if k in s.soak and tag != "demo":
            return tag == "soak"
        return tag in s.tags
    return [(s, k) for s in (Scenario.load(f.parent) for f in
                             sorted(FOLDER.glob("*/scenario")))
            for k in s.kernels if has(s, k)]


def boots(wanted):
    """The scenarios and kernels WANTED, [(scenario, kernel)], as [(name, those
    which share machines, kernel)]. User-mode Linux starts in a second, and its
    KASAN does not forget the variables of modules that have gone."""
    found = {}
    for s, k in wanted:
        key = (s.boot, k) if s.boot and not k.startswith("uml") else (s.name, k)
        found.setdefault(key, []).append(s)
    return [(name, some, k) for (name, k), some in found.items()]


class Run:
    """Scenarios on one kernel, one after the other in the same machines: one of
    them most often."""

    def __init__(self, parts, kernel, report, loud=False, echo=False,
                 cmdline="", name=None, soak=False):
        self.parts = [parts] if isinstance(parts, Scenario) else parts
        self.kernel = kernel
        self.report = report
        self.loud = loud                # a demo: show what scripts say
        self.soak = soak                # as long as there is time for
        self.echo = echo                # show consoles
        self.extra = cmdline
        self.boot = name or self.parts[0].name
        self.name = f"{self.boot}@{kernel.flavour}"
        self.logs = REPORT / "logs" / self.name
        self.lock = threading.RLock()
        self.clear()

    def clear(self):
        """Before the machines start, also if they start again."""
        self.at = -1                    # which of the parts is running
        self.machines = {}
        self.gone = []                  # machines that were switched on again
        self.watchers = []
        self.asking = set()             # machines that are ready for the next
        self.exits = {}                 # (part, machine) -> failures it reported
        self.steps = self.failures = 0
        self.held = []                  # results: (name, status, why)
        self.times = []                 # when each of them began
        self.lines = []                 # what is to be said of each
        self.counts = [[0, 0] for _ in self.parts]      # steps, failures
        self.forget()

    def forget(self):
        """What the machines of one scenario have told each other."""
        self.began = {}                 # machine -> step under way
        self.diag = {}                  # machine -> lines for its next failure
        self.arrived = {}               # barrier -> machines that wait at it
        self.signals = set()
        self.values = {}
        self.waiting = []               # (machine, kind, key)

    @property
    def s(self):
        return self.parts[max(self.at, 0)]

    # --- results ---

    def full(self, name, step):
        who = f"{self.s.name}@{self.kernel.flavour}"
        if list(self.s.scripts.values()) == ["run.sh"]:
            return f"{who}/{step}"
        return f"{who}/{name}/{step}"

    def result(self, name, status, step, why=()):
        with self.lock:
            self.steps += 1
            self.failures += status == "not"
            count = self.counts[max(self.at, 0)]
            count[0] += 1
            count[1] += status == "not"
            self.held.append((self.full(name, step), status, why))
        if self.loud and status != "not":
            text = step if status == "ok" else f"{step} (skipped: {why})"
            say(f"  ok    {name}: {text}")

    # --- the second channel: lib.sh is the other end ---

    def on_ctl(self, m, line):
        verb, _, rest = line.partition(" ")
        with self.lock:
            diag = self.diag.setdefault(m.name, [])
            if verb == "begin":
                self.began[m.name] = rest
                diag.clear()
            elif verb == "diag":
                diag.append(rest)
            elif verb in ("ok", "not"):
                self.began.pop(m.name, None)
                self.result(m.name, verb, rest, diag[-60:])
                diag.clear()
            elif verb == "skip":
                step, _, why = rest.partition(" # ")
                self.result(m.name, "skip", step, why)
            elif verb == "say":
                if self.loud:
                    say(f"  {m.name} | {rest}")
            elif verb == "exit":
                self.exits[self.at, m.name] = int(rest or 0)
            elif verb == "part" and self.at >= 0 and rest == self.s.name:
                off = self.sockets / f"{m.name}.off"
                if off.exists():        # switched on again in the middle
                    off.rename(off.with_suffix(".net"))
                m.reply("ok")
            elif verb == "part":
                self.asking.add(m.name)
                self.settle()
            elif verb == "sync":
                self.arrived.setdefault(rest, set()).add(m.name)
                self.settle()
            elif verb == "signal":
                self.signals.add(rest)
                m.reply("ok")
                self.settle()
            elif verb == "put":
                key, _, value = rest.partition(" ")
                self.values[key] = value
                m.reply("ok")
                self.settle()
            elif verb in ("wait", "get"):
                self.waiting.append((m.name, verb, rest))
                self.settle()
            elif verb == "link":
                state, _, which = rest.partition(" ")
                target = self.machines.get(which)
                if target is None or state not in ("up", "down"):
                    m.reply(f"fail link {rest}")
                else:
                    m.reply(target.link(state == "up"))
            elif verb == "start":
                m.reply(self.restart(rest))
            elif verb == "kill":
                if rest in self.machines and rest != m.name:
                    self.machines[rest].kill()
                    m.reply("ok")
                else:
                    m.reply(f"fail there is no other machine {rest}")

    def present(self):
        return {n for n, m in self.machines.items()
                if m.alive() and (self.at, n) not in self.exits}

    def next_part(self):
        """All machines have come to the end of a scenario, or started."""
        self.at += 1
        self.forget()
        self.times.append(time.monotonic())
        for n in self.asking:
            self.machines[n].reply("ok")
        self.asking = set()

    def settle(self):
        """Release who need not wait any longer. Under the lock."""
        if self.asking and self.asking >= {n for n, m in self.machines.items()
                                           if m.alive()}:
            self.next_part()
        present = self.present()
        for name, who in list(self.arrived.items()):
            if present <= who:
                for n in who:
                    self.machines[n].reply("ok")
                del self.arrived[name]
        for entry in list(self.waiting):
            n, verb, key = entry
            if verb == "wait" and key in self.signals:
                self.machines[n].reply("ok")
            elif verb == "get" and key in self.values:
                self.machines[n].reply(f"ok {self.values[key]}")
            elif present <= {n}:
                self.machines[n].reply("fail no machine is left to say so")
            else:
                continue
            self.waiting.remove(entry)

    def restart(self, name):
        """Switch a machine on that was killed; the sentence to reply with. Under
        the lock."""
        old = self.machines.get(name)
        if old is None or not old.killed or self.kernel.uml:
            return f"fail {name} has not been switched off"
        while old.alive():
            time.sleep(0.05)
        for who in self.arrived.values():
            who.discard(name)
        self.waiting = [w for w in self.waiting if w[0] != name]
        self.began.pop(name, None)
        self.gone.append(old)
        boots = sum(m.name == name for m in self.gone) + 1
        m = self.machines[name] = machine.Qemu(name, old.log, self.on_ctl,
                                               self.console)
        m.log_mode = "a"
        m.again = old.again
        cmd = [f"{w} vm.boot={boots}" if str(w).startswith("console=") else w
               for w in m.again]
        if len(self.machines) == 2:
            # what the other one sends until this one is up is lost, and does not
            # fill the sender's queue
            cmd = [str(w).replace(f"/{name}.net,", f"/{name}.off,") for w in cmd]
        m.start(cmd, self.sockets)
        self.look_after(m)
        return "ok"

    # --- start to end ---

    def where(self):
        """What it is doing, for a progress line."""
        with self.lock:
            now = [f"{n}: {s}" if len(self.s.scripts) > 1 else s
                   for n, s in self.began.items()]
            if len(self.parts) > 1:
                now.insert(0, self.s.name)
        return f"{self.name} ({', '.join(now)})" if now else self.name

    def cmdline(self, name, uml=False):
        words = ["console=tty0" if uml else "console=ttyS0", "panic=-1",
                 "oops=panic", "bonding.max_bonds=0", "printk.time=1", "printk.devkmsg=on",
                 f"vm.name={name}", f"vm.index={ord(name) - ord('a') + 1}",
                 f"vm.kernel={self.kernel.flavour}",
                 "vm.parts=" + ",".join(
                     f"{s.name}:{s.scripts[name]}:{int(s.leaks)}"
                     for s in self.parts), f"vm.loud={int(self.loud)}",
                 f"vm.soak={int(self.soak)}",
                 f"vm.slow={min(math.ceil(slow()), 8)}",
                 "vm.ctl=" + ("/dev/ttyS0" if uml else "/dev/ttyS1")]
        if uml:     # it has the host's files
            words.append(f"vm.source={kernels.source()[0]}")
        else:
            # The first gives a timer's interrupt ten ticks to come. With the
            # second a panic of a machine that is falling asleep can be read.
            words += ["no_timer_check", "no_console_suspend"]
        if self.kernel.flavour == "uml-smp":
            # Two CPUs only without ptrace. A report of KASAN hides no later one.
            # kmemleak frees by RCU on the second CPU before RCU knows of it.
            words += ["ncpus=2", "seccomp=on", "kasan_multi_shot", "kmemleak=off"]
        if self.kernel.flavour == "debug":
            # slow machines on a shared host: no false alarms
            words += ["watchdog_thresh=30", "workqueue.watchdog_thresh=90"]
        return " ".join([*words, self.s.keys.get("cmdline", ""), self.extra])

    def console(self, m, line):
        if self.echo and m.up.is_set():     # the boot is in the saved log
            say(f"{m.name}| {line}" if len(self.s.scripts) > 1 else line)

    def __call__(self):
        with lock(self.name, BUILD / "vm"):
            good = self.locked()
            if not good and self.misled():
                kept = self.logs.with_name(f"{self.name}.stale")
                shutil.rmtree(kept, ignore_errors=True)
                self.logs.rename(kept)
                say(f"  {self.name}: QEMU ran code that memory does not hold; again"
                    f" ({kept})")
                self.clear()
                good = self.locked()
        for result in self.held:
            self.report.add(*result)
        rest = self.parts[max(self.at, 0) + 1:]
        if rest:        # they did not get as far; new machines for the others
            others = Run(rest, self.kernel, self.report, self.loud, self.echo,
                         self.extra, self.boot + "+", self.soak)
            good = others() and good
            self.lines += others.lines
        return good

    def locked(self):
        work = BUILD / "vm" / self.name
        vm = work / "vm"
        programs = sorted({p for s in self.parts for p in s.programs})
        image.payload(vm, self.kernel, self.parts, programs)
        shutil.rmtree(self.logs, ignore_errors=True)
        # short, as the path of a socket is
        self.sockets = sockets = pathlib.Path(tempfile.mkdtemp(prefix="kofi-"))
        cables = machine.Cables(list(self.s.scripts), sockets)
        began = time.monotonic()
        try:
            self.start(work, vm, sockets, cables, programs)
            with self.lock:
                for m in self.machines.values():
                    self.look_after(m)
            for t in self.watchers:     # it grows while machines are there
                t.join()
        finally:
            for m in [*self.gone, *self.machines.values()]:
                m.end()
            cables.close()
            shutil.rmtree(sockets, ignore_errors=True)
            for f in [work / "initramfs", *work.glob("*.disk")]:
                f.unlink(missing_ok=True)
        self.times = [began, *self.times[1:], time.monotonic()]
        for self.at in range(max(self.at, 0) + 1):
            for n, m in self.machines.items():
                self.judge(n, m)
            self.conclude()
        return self.failures == 0

    def misled(self):
        """QEMU has executed stale code in a machine, which proves nothing."""
        return not self.kernel.uml and any(
            stale_code(m.log.read_text(errors="replace").splitlines())
            for m in self.machines.values() if m.log.exists())

    def conclude(self):
        """What is said of a scenario at its end."""
        steps, failures = self.counts[self.at]
        seconds = self.times[self.at + 1] - self.times[self.at]
        name = f"{self.s.name}@{self.kernel.flavour}"
        self.lines.append(
            f"  {'FAIL' if failures else 'PASS'}  {name}: {steps} steps, "
            f"{failures} failed ({seconds:.0f} s)")
        if len(self.parts) > 1 and Meter.current():
            Meter.current().notes.append((name, seconds, steps))

    def start(self, work, vm, sockets, cables, programs):
        k = self.kernel
        accel = "tcg"
        initramfs = work / "initramfs"
        if not k.uml:
            image.initramfs(initramfs, programs, vm)
            accel = ("icount" if self.s.keys.get("icount") == "yes"
                     else machine.accelerator(k.image, initramfs))
        mem = max(s.mem(k.flavour) for s in self.parts)
        smp = max(s.smp() for s in self.parts)
        kind = machine.Uml if k.uml else machine.Qemu
        for n in self.s.scripts:
            self.machines[n] = kind(n, self.logs / f"{n}.log", self.on_ctl,
                                    self.console)
        for index, (n, m) in enumerate(self.machines.items(), 1):
            if k.uml:
                cmd = m.command(k.image, vm / "init", mem,
                                f"{self.cmdline(n, True)} vm.dir={vm}")
            else:
                cmd = m.command(k.image, initramfs, accel, smp, mem,
                                self.cmdline(n) + " vm.dir=/vm",
                                cables.netdev(n), index, self.disk(work, n))
                m.again = cmd
            m.start(cmd, sockets)

    def disk(self, work, name):
        """A new disk of a machine, if the scenario wants one."""
        if "disk" not in self.s.keys:
            return None
        path = work / f"{name}.disk"
        with open(path, "wb") as f:
            f.truncate(int(self.s.keys["disk"]) << 20)
        return path

    def look_after(self, m):
        t = threading.Thread(target=self.watch, daemon=True, args=(m,))
        self.watchers.append(t)
        t.start()

    def watch(self, m):
        """Until M has ended or used up its time, which passes more slowly
        while others use the processors."""
        at, left = self.at, self.s.timeout(self.kernel.flavour, self.soak)
        while not m.wait(time.monotonic() + 5):
            if at != self.at:
                at, left = self.at, self.s.timeout(self.kernel.flavour, self.soak)
            left -= 5 / slow()
            if left > 0:
                continue
            m.timed_out = True
            m.kill()
            m.wait(time.monotonic() + 10)
            break
        with self.lock:
            self.settle()

    def judge(self, name, m):
        """The line about a machine's console and end."""
        text = m.log.read_text(errors="replace") if m.log.exists() else ""
        if self.at:
            text = text.partition(f"VM-PART: {self.s.name}\n")[2]
        if self.at + 1 < len(self.parts):
            text = text.partition(
                f"VM-PART: {self.parts[self.at + 1].name}\n")[0]
        lines = text.splitlines()
        why = []
        for excerpt in splats(lines, self.s.allow):
            why += ["the kernel complained:", *excerpt]
        if (self.at, name) in self.exits:
            pass
        elif getattr(m, "timed_out", False):
            step = self.began.get(name)
            why.append("no end after "
                       f"{self.times[-1] - self.times[self.at]:.0f} s"
                       f"{f', in step {step}' if step else ''}; "
                       "it said last:")
            why += lines[-15:]
        elif not m.killed:
            why.append("the machine ended before its script did "
                       f"({m.status()}); it said last:")
            why += lines[-25:]
        if why:
            why.append(f"all of it: {m.log}")
        self.result(name, "not" if why else "ok", "console", why)
