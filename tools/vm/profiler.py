# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Where the instructions of a message go: make bench PROFILE='send 1 64'.

The words are those of kofi_bench's file: what is done (send, write, read), how
many at a time, and of how many bytes; then rxe or siw, if it is to go over that, rxm,
for datagrams over it against raw verbs with headers, rxm-sock, rdm or tagged, for
datagrams of kofi_rxm or kofi_sock against connected endpoints of kofi_sock, or sread,
for threads that sleep in fi_cq_sread() against callbacks; and clock, if time is to be
measured. Of a disk it is what is done (read, write), 1, of how many bytes, and disk or
disk-rxe; of a 9p mount what is done (read, write, stat, create), how many at a time,
of how many bytes, and 9p. What is printed is sorted by the difference between kOFI and
raw sockets or verbs, or the kernel's NVMe, or its own 9p transport with a relay before
the server.

Instructions: Debian's kernel runs it in QEMU, which writes down the address of
every instruction. They are summed up by function and divided by the messages. It
is the same count as the bench's, which gives one number for all of it.

Time: User-mode Linux runs it for some seconds. It is a process of the host,
whose perf looks every 200 us where that process is; the samples are what a
message takes, in proportion.
"""

import base64
import bisect
import collections
import gzip
import re
import shutil
import signal
import subprocess

import bench
import kernel
import plan
import scenario as scenarios
from base import BUILD, CPUS, REPORT, TOP, Fail, clock, say
from report import Report

# How the names of a client's functions begin, if not as those of kOFI's
PREFIX = {"raw": "raw", "rawverbs": "rv", "raweager": "rv"}
# What is compared, by the last word
CLIENTS = {"lo": ["kofi", "raw"], "rdm": ["rdm", "kofi"],
           "tagged": ["tagged", "kofi"], "rxe": ["verbs", "rawverbs"],
           "siw": ["verbs", "rawverbs"], "sread": ["sread", "kofi"],
           "rxm": ["rxmverbs", "raweager"], "rxm-sock": ["rxm", "kofi"]}
# The RDMA device below, by the same
DEVICES = {"rxe": "rxe", "siw": "siw", "rxm": "rxe"}
# The same of disks and mounts, and how many requests are recorded
DISKS = {"disk": ["sock", "tcp"], "disk-rxe": ["verbs", "rdma"]}
MOUNTS = {"9p": ["kofi", "relay"]}
REQUESTS = 24
SCRIPTS = ("profile.sh", *bench.SCRIPTS)
KERNEL = "the kernel"
# How often a client's post is called per message
POSTS = {"send": 2, "write": 1, "read": 1}

# Longer stretches of the kernel's instructions are none of a helper
HELPER = 100

# How many times a short run of the bench's is sampled: some seconds
SECONDS = 500

TRACED = re.compile(rb"\[[0-9a-f]+/([0-9a-f]+)/")
SHOWN = 60


def function(client, what):
    return f"{PREFIX.get(client, 'bench_kofi')}_{what}[kofi_bench]"


class Symbols:
    """The functions of a kernel by address."""

    def __init__(self, text):
        found = sorted((int(a, 16), name) for a, name in
                       (l.split(" ", 1) for l in text.splitlines()))
        self.starts = [a for a, _ in found]
        self.names = [n for _, n in found]
        self.known = {}

    def at(self, pc):
        """Its name, and whether PC is the first instruction."""
        got = self.known.get(pc)
        if got is None:
            n = bisect.bisect_right(self.starts, pc) - 1
            got = (self.names[n], self.starts[n] == pc) if n >= 0 else \
                ("user space", False)
            self.known[pc] = got
        return got


class Profile:
    """Sums over the second half of a run, which has N messages."""

    def __init__(self, log, symbols, client, kind, window, n):
        self.cost = collections.Counter()       # function -> instructions
        self.calls = collections.Counter()
        with open(log, "rb") as f:
            pcs = [int(m[1], 16) for m in map(TRACED.search, f) if m]
        first, last, n = self.part(
            [i for i, pc in enumerate(pcs)
             if symbols.at(pc) == (function(client, "post"), True)],
            [i for i, pc in enumerate(pcs)
             if symbols.at(pc) == (function(client, "close"), True)],
            POSTS[kind], window, n)
        for pc in pcs[first:last]:
            name, start = symbols.at(pc)
            self.cost[name] += 1
            self.calls[name] += start
        for counter in (self.cost, self.calls):
            for name in counter:
                counter[name] /= n
        self.own = self.alone([module(symbols.at(pc)[0])
                               for pc in pcs[first:last]]) / n

    @staticmethod
    def alone(modules):
        """The instructions of our modules, and of the kernel's functions that
        they call and that return to them without any other module: locks, lists.
        That leaves out what the device does."""
        own = 0
        between = HELPER
        for m in modules:
            if m.startswith("[kofi"):
                own += 1 + (between if between < HELPER else 0)
                between = 0
            else:
                between += 1 if m == KERNEL else HELPER
        return own

    @staticmethod
    def part(posted, closed, posts, window, n):
        """From where to where, and how many messages that is. One at a time,
        messages are alike, and beginning and end are best left out; of several,
        work of one is done in another, and only all are whole."""
        # a message follows writes
        if (len(posted) - 2 * n * posts not in (0, POSTS["send"])
                or len(closed) != 1):
            raise Fail(f"{len(posted)} posts were recorded, not "
                       f"{2 * n * posts}")
        end = (posted + closed)[2 * n * posts]
        posted = posted[n * posts:2 * n * posts]
        if window > 1:
            return posted[0], end, n
        return posted[2 * posts], posted[-posts], n - 3


class Recorder(scenarios.Run):
    """Does what the script's "trace" asks for."""

    def __init__(self, *args, where):
        super().__init__(*args)
        self.trace = where
        self.symbols = []

    def on_ctl(self, m, line):
        verb, _, rest = line.partition(" ")
        if verb != "trace":
            super().on_ctl(m, line)
            return
        state, run = rest.split()
        words = [f"logfile {self.trace}.{run}", "singlestep on",
                 "log exec,nochain"] if state == "on" else \
            ["log none", "singlestep off"]
        wrong = m.monitor({"execute": "stop"}, *(
            {"execute": "human-monitor-command",
             "arguments": {"command-line": w}} for w in words),
            {"execute": "cont"})
        m.reply(f"fail {wrong}" if wrong else "ok")

    def console(self, m, line):
        if line.startswith("symbols: "):
            self.symbols.append(line[9:])


class Requests:
    """Sums of a request: by what a recording of many has more than one of few."""

    def __init__(self, few, many, symbols, n):
        self.cost = collections.Counter()
        self.calls = collections.Counter()
        for log, sign in ((few, -1), (many, 1)):
            with open(log, "rb") as f:
                for m in filter(None, map(TRACED.search, f)):
                    name, start = symbols.at(int(m[1], 16))
                    self.cost[name] += sign
                    self.calls[name] += sign * start
        for counter in (self.cost, self.calls):
            for name in counter:
                counter[name] /= n


def recorded(text, **keys):
    """The symbols of a machine that did what the plan TEXT says, and its logs."""
    work = BUILD / "bench"
    work.mkdir(parents=True, exist_ok=True)
    (work / "plan").write_text("".join(text))
    report = Report(REPORT / "profile.tap")
    s = scenarios.Scenario(
        "profile", {"a": "profile.sh"},
        [TOP / "tests/bench" / f for f in SCRIPTS] + [work / "plan"],
        kernels="stock", timeout="300", smp="1", mem="1024", leaks="no",
        icount="yes", **keys)
    r = Recorder(s, kernel.get("stock"), report, where=work / "trace")
    plan.run_all([plan.Job("profile", CPUS, r, r.where)], report)
    if report.finish():
        raise Fail(f"it did not run; see {r.logs.relative_to(TOP)}")
    symbols = Symbols(gzip.decompress(base64.b64decode(
        "".join(r.symbols))).decode())
    return symbols, [work / f"trace.{i}" for i in range(len(text))]


def record(runs):
    """A profile of each of the runs: client, kind, window, size, device."""
    text = []
    counts = []
    for client, kind, window, size, device in runs:
        n = max(12, 4 * window)
        text.append(f"run {client} {kind} {window} {size} {n} {n} "
                    f"{bench.ADDRESSES[device]}\n")
        # a round trip has two messages
        counts.append(2 * n if kind == "send" and window == 1 else n)
    symbols, logs = recorded(text, programs="rdma", modules=bench.MODULES)
    found = []
    for (client, kind, window, _, _), log, n in zip(runs, logs, counts):
        found.append(Profile(log, symbols, client, kind, window, n))
        log.unlink()
    return found


def disk_line(where, kind, window, size, n):
    return f"disk {where} {kind} {size} {n}\n"


def mount_line(where, kind, window, size, n):
    return f"9p {where} {kind} {window} {size} {window} {n}\n"


def record_requests(where, kind, window, size, line, programs, modules):
    """A profile of requests to each of these disks or mounts."""
    # as many for each thread
    few = REQUESTS // window * window or window
    symbols, logs = recorded(
        [line(w, kind, window, size, n) for w in where for n in (few, 2 * few)],
        programs=" ".join(programs), modules=f"{bench.MODULES} {modules}")
    found = [Requests(one, two, symbols, few)
             for one, two in zip(logs[::2], logs[1::2])]
    for log in logs:
        log.unlink()
    return found


class Sampler(scenarios.Run):
    """Does what the script's "trace" asks for, with perf."""

    def __init__(self, *args, where):
        super().__init__(*args)
        self.trace = where
        self.symbols = []
        self.took = {}
        self.perf = None

    def on_ctl(self, m, line):
        verb, _, rest = line.partition(" ")
        if verb != "trace":
            super().on_ctl(m, line)
            return
        state, run = rest.split()
        if state == "on":
            self.perf = subprocess.Popen(
                ["perf", "record", "-q", "-e", "cpu-clock", "-F", "4999",
                 "-p", str(m.proc.pid), "-o", f"{self.trace}.{run}"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        else:
            self.perf.send_signal(signal.SIGINT)
            self.perf.wait()
        m.reply("ok")

    def console(self, m, line):
        if line.startswith("symbols: "):
            self.symbols.append(line[9:])
        elif line.startswith("took: "):
            _, run, ns = line.split()[:3]
            self.took[run] = int(ns)


class Clock:
    """Nanoseconds of a message by function, of a run of NS for N messages."""

    def __init__(self, log, symbols, ns, n):
        self.cost = collections.Counter()
        self.calls = collections.Counter()
        text = subprocess.run(["perf", "script", "-i", log, "-F", "ip"],
                              stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.DEVNULL, check=True).stdout
        for word in text.split():
            pc = int(word, 16)
            inside = symbols.starts[0] <= pc < symbols.starts[-1] + 4096
            self.cost[symbols.at(pc)[0] if inside else "the host"] += 1
        samples = sum(self.cost.values())
        if not samples:
            raise Fail("perf has seen nothing")
        for name in self.cost:
            self.cost[name] *= ns / n / samples


def sampled(text, counts, **keys):
    """By the clock: what each line of the plan TEXT costs, done so often."""
    if not shutil.which("perf"):
        raise Fail("there is no perf here; Debian has it in linux-perf",
                   status=2)
    work = BUILD / "bench"
    work.mkdir(parents=True, exist_ok=True)
    (work / "plan").write_text("".join(text))
    report = Report(REPORT / "profile.tap")
    s = scenarios.Scenario(
        "profile", {"a": "profile.sh"},
        [TOP / "tests/bench" / f for f in SCRIPTS] + [work / "plan"],
        kernels="uml-fast", timeout="300", mem="1024", leaks="no", **keys)
    r = Sampler(s, kernel.get("uml-fast"), report, where=work / "trace")
    plan.run_all([plan.Job("profile", CPUS, r, r.where)], report)
    if report.finish():
        raise Fail(f"it did not run; see {r.logs.relative_to(TOP)}")
    symbols = Symbols(gzip.decompress(base64.b64decode(
        "".join(r.symbols))).decode())
    found = []
    for i, n in enumerate(counts):
        log = work / f"trace.{i}"
        found.append(Clock(log, symbols, r.took[str(i)], n))
        log.unlink()
    return found


def sample(runs):
    """By the clock: as record(), with some seconds for each of the runs."""
    text, counts = [], []
    for client, kind, window, size, device in runs:
        n = SECONDS * (int(bench.LENGTH["uml"] /
                           bench.cost("uml", kind, window, size))
                       if device == "lo" else
                       bench.verbs_operations("uml", window, size))
        text.append(f"run {client} {kind} {window} {size} 100 {n} "
                    f"{bench.ADDRESSES[device]}\n")
        counts.append(n)
    return sampled(text, counts, modules=bench.MODULES)


def sample_requests(where, kind, window, size, line, programs, modules):
    """By the clock: the same, with some seconds for each of the disks or mounts."""
    n = int(10e9 / bench.disk_cost("uml", "rdma", size)) // window * window
    return sampled([line(w, kind, window, size, n) for w in where],
                   [n] * len(where), programs=" ".join(programs),
                   modules=f"{bench.MODULES} {modules}")


def module(name):
    return name[name.index("["):] if "[" in name else KERNEL


def lines(ours, theirs, verbs, unit):
    """The table: a line per function, the largest difference first."""
    title = (f"{'':>9} {'kofi':>9} {'calls':>6} {'raw':>9} {'calls':>6}  "
             f"{unit}")

    def line(name, cost, calls):
        a, b = cost
        c, d = calls
        return f"{a - b:+9.1f} {a:9.1f} {c:6} {b:9.1f} {d:6}  {name}"

    def called(n):
        return f"{n:.1f}" if n else ""

    out = [title, line("all", [sum(p.cost.values()) for p in (ours, theirs)],
                       ["", ""])]
    sums = [collections.Counter(), collections.Counter()]
    for p, by in zip((ours, theirs), sums):
        for name, n in p.cost.items():
            by[module(name)] += n
    names = sorted(set(sums[0]) | set(sums[1]),
                   key=lambda m: sums[1][m] - sums[0][m])
    if verbs:
        out.append(line("all but the device's", [ours.own, theirs.own],
                        ["", ""]))
    out += [line(m, [s[m] for s in sums], ["", ""]) for m in names]
    out.append("")
    names = sorted(set(ours.cost) | set(theirs.cost),
                   key=lambda f: theirs.cost[f] - ours.cost[f])
    out += [line(f, [ours.cost[f], theirs.cost[f]],
                 [called(ours.calls[f]), called(theirs.calls[f])])
            for f in names]
    return out


def profile(what):
    words = what.split()
    by_clock = words[-1:] == ["clock"] and bool(words.pop())
    known = next((k for k in (DISKS, MOUNTS) if words[-1:] and words[-1] in k),
                 CLIENTS)
    over = words.pop() if words[-1:] and words[-1] in known else "lo"
    kinds = {"read", "write"} | ({"stat", "create"} if known is MOUNTS else
                                 {"send"} if known is CLIENTS else set())
    if len(words) != 3 or words[0] not in kinds or \
            not all(w.isdigit() for w in words[1:]) or words[1] == "0" or \
            known is DISKS and words[1] != "1" or \
            over == "siw" and not by_clock:
        raise Fail("PROFILE='send|write|read WINDOW SIZE [rxe|siw|rxm|rxm-sock|rdm|tagged|sread] "
                   "[clock]', siw with clock alone, as in PROFILE='send 1 64', or "
                   "PROFILE='write|read 1 SIZE disk|disk-rxe [clock]', or "
                   "PROFILE='read|write|stat|create WINDOW SIZE 9p [clock]'",
                   status=2)
    kind, window, size = words[0], int(words[1]), int(words[2])
    device = DEVICES.get(over, "lo")
    verbs = device != "lo"
    flavour = "uml-fast" if by_clock else "stock"
    say(f"{clock()} kernel and build")
    plan.kernels([flavour])
    plan.build(flavour, "KFLAGS=CONFIG_KOFI_SAMPLES=m CONFIG_KOFI_BENCH=m")
    if known is MOUNTS:
        bench.build_user()
    say(f"{clock()} recording")
    each = "message" if known is CLIENTS else "request"
    unit = f"nanoseconds per {each}" if by_clock else f"instructions per {each}"
    if known is CLIENTS:
        runs = [(c, kind, window, size, device) for c in known[over]]
        found = (sample if by_clock else record)(runs)
    else:
        line, programs, modules = (
            (disk_line, ["dd", "rdma"], bench.MODULES_DISK) if known is DISKS else
            (mount_line, bench.PROGRAMS_9P + ["rdma"], bench.MODULES_9P))
        found = (sample_requests if by_clock else record_requests)(
            known[over], kind, window, size, line, programs, modules)
    text = lines(*found, verbs and not by_clock, unit)
    path = REPORT / "profile.txt"
    path.write_text("\n".join(text) + "\n")
    for line in text[:SHOWN]:
        say(line)
    say(f"{clock()} all of it is in {path.relative_to(TOP)}")
    return 0
