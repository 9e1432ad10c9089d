# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The bench: kOFI against raw sockets and raw verbs, and against libfabric in
user space.

Two machines, one after the other: User-mode Linux, whose clock is the host's
(unit: time), and Debian's kernel in QEMU under -icount, whose clock counts
instructions (one is a nanosecond). In each the two sides of a comparison take
turns, A B A B, and each pair gives one ratio; what counts is the median, and
the distance between the quartiles is the spread.

Times are worth what the host is: before they are measured it must be quiet
(host.py), or each row says that it was not. The machine stays on one processor.

A missed target is a result, not a failure: the bench fails if something could
not be measured, or if a run of ours has stood still.

tests/bench/ has what is measured: kofi_bench.ko and the script that drives it.
"""

import fnmatch
import json
import re
import statistics

import host
import kernel
import plan
import races
import rnbd
import scenario as scenarios
import sizes
from base import BUILD, CPUS, REPORT, TOP, Fail, clock, run, say
from report import Report

SIZES = [(64, "64 B"), (512, "512 B"), (4096, "4 KiB"), (16384, "16 KiB"),
         (65536, "64 KiB"), (262144, "256 KiB"), (1048576, "1 MiB")]
KINDS = ("send", "write", "read")
WINDOW = 8
WINDOWS = {"uml": (2, WINDOW, 32, 128), "icount": (WINDOW,)}
LARGE = 65536           # bytes, from here on it is bandwidth that counts
SMALL = 4096            # bytes, up to here it is messages
MIB = 1 << 20
UNDER_WAY = 8 << 20     # bytes at most

# RDMA devices in software, by machine, and their addresses; Debian has no siw
DEVICES = {"uml": ("rxe", "siw"), "icount": ("rxe",)}
ADDRESSES = {"lo": "127.0.0.1", "rxe": "10.99.1.1", "siw": "10.99.2.1"}

# How often each comparison is made, and how often again where the ratios are
# further apart than that
PAIRS = {"uml": 7, "icount": 3}
AGAIN = {"uml": 14, "icount": 0}
APART = 0.03
KERNELS = {"uml": "uml-fast", "icount": "stock"}
MODULES = "dummy crc32_generic rdma_ucm rdma_rxe"     # of Debian's
MODULES_9P = "9p 9pnet_fd"
MODULES_DISK = "configfs null_blk nvme_tcp nvmet_tcp nvme_rdma nvmet_rdma"
PROGRAMS_9P = ["kofi-bench-9p", "kofi-9pd", "diod"]

# What run.sh and profile.sh read
SCRIPTS = ("devices.sh", "disks.sh", "mounts.sh", "../vm/blk-alone/steps.sh")

# Targets, of the ratio or of the two figures
NEAR = "<= 1.03"        # time of one at a time, of the raw client's
NEAREST = "<= 1.02"     # of 64 bytes over an RDMA device
TWO = ">= 0.97"         # bandwidth of two at a time
MANY = ">= 1.2"         # of more small ones, which are sent together
WIDE = ">= 1.0"         # of longer ones
VERBS = (">= 0.98", ">= 0.99")  # over an RDMA device, small and large ones
STREAM = ">= 0.97"      # of reliable datagrams, of connected endpoints'
USER = ">= 1.3"         # round trips, of those in user space
ASLEEP = ">= 2.5"       # the same over connections, both with threads that sleep
NONE = "== 0"           # allocations of ours
SAME = "<= +0.02"       # context switches more than the raw socket's
DATAGRAM = "<= 1.10"    # time of reliable datagrams, of connected ones
LAYERED = "<= 1.15"     # the same over an RDMA device, of raw verbs
FLAT = "<= 1.03"        # with many receives posted, of that with one
EAGER = 16384           # bytes, up to here it is one packet
OURS = "<= +250"        # instructions more than raw verbs, one end of a message
MOUNT = ("<= 1.0", ">= 1.0")    # of the kernel's own 9p over TCP: time, bandwidth
DISK = "<= 1.0"         # time of a request, of NVMe's or RNBD's
FRAME = "<= 0.91"       # of reads that have one frame less: 10 % more of them

# Clients that do not use kOFI, and mounts
FOREIGN = ("raw", "rawverbs", "raweager", "relay", "tcp", "tcpcrc", "sqflow", "rdma")

# Milliseconds without progress, beside what the messages under way take, that
# are no longer an accident. TCP's shortest timer takes 20.
STALL = 10
# The same that the last message of zero copy may take besides: it ends with the
# acknowledgement, which TCP delays.
DELAYED = 50

# About how long the measured part of a run is. Shorter ones have shown how an
# endpoint warms up, and hidden streams that stand still.
LENGTH = {"uml": 60e6, "icount": 10e6}  # ns, instructions

# The same of programs that use disks and mounts: fio tells whole milliseconds
PROGRAMS = {"uml": 300e6, "icount": 100e6}

# How much longer those of streams of short messages over TCP are: it changes how it
# deals with them during some hundred milliseconds.
LONGER = {"uml": 10, "icount": 1}

# Warm-up during which a program enables a histogram: ns, or instructions
ENABLES = 250e6


def single(kind, window):
    """Are operations one message each, and not two?"""
    return kind == "send" and window > 1


def cost(accel, kind, window, size):
    """About what an operation takes, in the units of LENGTH."""
    one = single(kind, window)
    return {"uml": (600 if one else 4000) + size / 5,
            "icount": (10000 if one else 30000) + 2.2 * size}[accel]


def operations(accel, kind, window, size):
    """How many operations are measured at a time."""
    length = LENGTH[accel]
    if single(kind, window) and size <= 4096:
        length *= LONGER[accel]
    return max(int(length / cost(accel, kind, window, size)), 2 * window)


def verbs_operations(accel, window, size):
    """The same over an RDMA device in software."""
    one = {"uml": 4000 + size, "icount": 40000 + 8 * size}[accel]
    return max(int(LENGTH[accel] / one), 4 * window)


class Measure:
    """One row. LINES are what the machine runs in turn, ours first."""

    def __init__(self, name, unit, lines, value, target=None, repeat=True):
        self.name = name
        self.unit = unit
        self.lines = lines
        self.value = value          # of the words after "=": a number
        self.target = target
        self.repeat = repeat
        self.got = ([], [])
        self.watched = ([], [])     # (ns, gap, counters) of each run

    def stalls(self, side):
        """The runs of a side that have stood still, in words."""
        found = []
        for line, runs in zip(self.lines[side:side + 1],
                              self.watched[side:side + 1]):
            message = statistics.median(r[0] for r in runs) if runs else 0
            what, *rest = line.split()
            window, count = (int(rest[2]), int(rest[5])) if what == "run" \
                else (0, 1)
            limit = STALL + window * message / count / 1e6
            if line.startswith("run zerocopy "):
                limit += DELAYED
            for ns, gap, moved in runs:
                if gap > limit:
                    found.append(f"no progress for {gap} ms of {ns / 1e6:.0f}"
                                 f" in: {line}{words_of(moved)}")
        return found

    def row(self, accel):
        """None if it was not measured."""
        ours, theirs = self.got
        if not ours or len(ours) != len(theirs):
            return None
        ratios = [a / b for a, b in zip(ours, theirs) if b]
        ratio = statistics.median(ratios) if ratios else None
        kofi, baseline = statistics.median(ours), statistics.median(theirs)
        return {"name": self.name, "unit": self.unit,
                "kofi": round(kofi, 4), "baseline": round(baseline, 4),
                "ratio": ratio and round(ratio, 4),
                "spread": round(spread(ratios), 4), "target": self.target,
                "verdict": verdict(self.target, kofi, baseline, ratios),
                "samples": len(ours), "accel": accel,
                "slowest": [slowest(runs) for runs in self.watched],
                "moved": [most(runs) for runs in self.watched],
                "stalls": [t for side in (0, 1) if not self.foreign(side)
                           for t in self.stalls(side)],
                "baseline_stalls": self.stalls(1) if self.foreign(1) else []}

    def foreign(self, side):
        """Is what that side measures no code of ours?"""
        return any({"user", *FOREIGN} & set(l.split()[:2])
                   for l in self.lines[side:side + 1])

    def apart(self):
        """Does it need more turns?"""
        ratios = [a / b for a, b in zip(*self.got) if b]
        return self.repeat and spread(ratios) > APART


def spread(values):
    if len(values) < 2:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return high - low


def slowest(runs):
    """The longest run, of a median one, and the longest gap in ms."""
    if not runs:
        return None
    times = [ns for ns, _, _ in runs]
    median = statistics.median(times)
    return {"of_median": round(max(times) / median, 3) if median else None,
            "gap": max(gap for _, gap, _ in runs)}


def most(runs):
    """TCP's counters: how much each has moved in a run, at most."""
    found = {}
    for _, _, moved in runs:
        for name, n in moved.items():
            found[name] = max(n, found.get(name, 0))
    return found


def words_of(moved):
    return "".join(f" {name}={n}" for name, n in moved.items())


def met(target, kofi, baseline, ratio):
    sign, limit = target.split()
    if target == NONE:
        return kofi == 0
    if limit.startswith("+"):
        return kofi - baseline <= float(limit)
    return ratio >= float(limit) if sign == ">=" else ratio <= float(limit)


def verdict(target, kofi, baseline, ratios):
    """Of a target: ok or MISSED, or unclear where half of the ratios say the one
    and half the other."""
    if target is None or not (ratios or target == NONE or "+" in target):
        return None
    middle = ratios or [0]
    if len(ratios) > 3:
        low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
        middle = [low, high]
    said = {met(target, kofi, baseline, r) for r in middle}
    if len(said) > 1:
        return "unclear"
    return "ok" if said == {True} else "MISSED"


# --- what is measured ------------------------------------------------------

def words(kind, window, size, count):
    return f"{kind} {window} {size} {max(count // 2, window)} {count}"


def microseconds(n):
    return lambda got: int(got[0]) / n / 1000


def megabytes(n, size):
    return lambda got: n * size / int(got[0]) * 1000


def rate(n):
    return lambda got: n / int(got[0]) * 1e9


def startup(got):
    return int(named(got)["start"]) / 1000


def many(window, size):
    """The target of that many at a time, over sockets."""
    if window == 2:
        return TWO
    return MANY if size <= SMALL else WIDE


def windows(accel, size):
    return [w for w in WINDOWS[accel] if w * size <= UNDER_WAY]


def measures(accel):
    """What is compared in the machine with that clock."""
    found = against_raw(accel) + datagrams(accel) + zero_copy(accel)
    for device in DEVICES[accel]:
        found += against_verbs(accel, device)
    found += layered(accel, "rxe")
    found += tags(accel)
    found += histogram(accel)
    if accel == "icount":
        found += against_user() + counts() + verbs_counts("rxe")
        found += mounts()
    return found + disks(accel)


def against_raw(accel):
    found = []
    for kind in KINDS:
        for size, text in SIZES:
            n = operations(accel, kind, 1, size)
            one = words(kind, 1, size, n)
            found.append(Measure(
                f"{kind} {text}, one at a time", "us",
                [f"run {c} {one}" for c in ("kofi", "raw")],
                microseconds(n), NEAR))
        for size, text in SIZES:
            for window in windows(accel, size):
                n = operations(accel, kind, window, size)
                what = words(kind, window, size, n)
                found.append(Measure(
                    f"{kind} {text}, {window} at a time", "MB/s",
                    [f"run {c} {what}" for c in ("kofi", "raw")],
                    megabytes(n, size), many(window, size)))
    found.append(Measure(
        "connecting and the first message of 64 B", "us",
        [f"run {c} send 1 64 1 2" for c in ("kofi", "raw")], startup))
    return found


def verbs_lines(device, *what, verb="run"):
    return [f"{verb} {c} {words(*what)} {ADDRESSES[device]}"
            for c in ("verbs", "rawverbs")]


def verbs_kinds(device):
    """On iWARP a read needs a region of its own, which raw verbs has not."""
    return [k for k in KINDS if k != "read" or device != "siw"]


def verbs_windows(accel, size):
    """Contiguous memory, which raw verbs need, has an end."""
    return [w for w in WINDOWS[accel] if w * size <= 2 << 20] or [2]


def against_verbs(accel, device):
    found = []
    for kind in verbs_kinds(device):
        for size, text in SIZES[::2]:
            n = verbs_operations(accel, 1, size)
            found.append(Measure(
                f"{kind} {text} over {device}, one at a time", "us",
                verbs_lines(device, kind, 1, size, n), microseconds(n),
                NEAREST if size == 64 else NEAR))
        for size, text in SIZES[::2]:
            for window in verbs_windows(accel, size):
                n = verbs_operations(accel, window, size)
                found.append(Measure(
                    f"{kind} {text} over {device}, {window} at a time", "MB/s",
                    verbs_lines(device, kind, window, size, n),
                    megabytes(n, size), VERBS[size >= LARGE]))
    found.append(Measure(
        f"connecting and the first message of 64 B over {device}", "us",
        [f"run {c} send 1 64 1 2 {ADDRESSES[device]}"
         for c in ("verbs", "rawverbs")], startup))
    return found


# What is counted by function
OWN = [(kind, f"{kind} 64 B over rxe: instructions of a post and its completion")
       for kind in KINDS]


def verbs_counts(device):
    """The device's work queues make context switches, as they like."""
    found = []
    for kind in KINDS:
        for window, size, text, n in ((1, 64, "64 B over {}, one", 400),
                                      (WINDOW, 65536, "64 KiB over {}, 8", 64),
                                      (2, 1048576, "1 MiB over {}, 2", 8)):
            found += counted(
                f"{kind} {text.format(device)} at a time",
                verbs_lines(device, kind, window, size, n, verb="count"), n,
                switches=None)
    return found


def own_instructions(wanted):
    """Rows about what is done between the device and the program: an
    operation's post and its completion. A message has two of them."""
    import profiler
    runs = [(c, kind, 1, 64, "rxe") for kind, _ in wanted
            for c in ("verbs", "rawverbs")]
    found = profiler.record(runs)
    rows = []
    for (kind, name), ours, theirs in zip(wanted, found[::2], found[1::2]):
        m = Measure(name, "1", [], None, OURS)
        ends = 2 if kind == "send" else 1
        m.got = ([ours.own / ends], [theirs.own / ends])
        rows.append(m.row("icount") | {"quiet": True})
    return rows


def connected(accel, clients, name, where=""):
    """Datagrams against connected endpoints: the clients, and the address"""
    found = []
    for window, unit in ((1, "one"), (WINDOW, WINDOW)):
        for size, text in SIZES[::2]:
            if not where:
                n = operations(accel, "send", window, size)
            elif window == 1 or window in verbs_windows(accel, size):
                n = verbs_operations(accel, window, size)
            else:
                continue
            what = f"{words('send', window, size, n)} {where}".strip()
            one = window == 1
            target = ((DATAGRAM if size == 64 else None) if one else
                      (STREAM if size >= LARGE else None))
            found.append(Measure(
                f"send {text}, {unit} at a time, {name} against connected",
                "us" if one else "MB/s", [f"run {c} {what}" for c in clients],
                microseconds(n) if one else megabytes(n, size), target))
    return found


def datagrams(accel):
    """Reliable datagrams, untagged, tagged and of kofi_rxm"""
    return (connected(accel, ("rdm", "kofi"), "datagrams") +
            connected(accel, ("tagged", "kofi"), "tagged datagrams") +
            connected(accel, ("rxm", "kofi"), "datagrams of kofi_rxm"))


def tags(accel):
    """Tagged receives that nothing matches beside those of the run."""
    n = operations(accel, "send", 1, 64)
    one = words("send", 1, 64, n)
    return [Measure(
        f"send 64 B, one at a time, {posted} tagged receives against 1", "us",
        [f"run tagged {one} posted={posted}", f"run tagged {one} posted=1"],
        microseconds(n), FLAT) for posted in (64, 4096)]


def histogram(accel):
    """The histogram of latency: its branch, and its samples. A program enables it
    while the run warms up, which has to take longer."""
    n = operations(accel, "send", 1, 64)
    one = f"send 1 64 {int(ENABLES / cost(accel, 'send', 1, 64))} {n}"
    return [Measure(f"send 64 B, one at a time, {name}", "us",
                    [f"{verb} kofi {one}" for verb in lines], microseconds(n))
            for lines, name in (
                (("run", "without"), "histogram off against a build without it"),
                (("latency", "run"), "histogram on against off"))]


def layered(accel, device):
    """Reliable datagrams over an RDMA device against raw verbs, which send with
    a header and receive into buffers, too, what is short enough for that."""
    found = []
    for size, text in SIZES[::2]:
        n = verbs_operations(accel, 1, size)
        one = f"{words('send', 1, size, n)} {ADDRESSES[device]}"
        found.append(Measure(
            f"send {text} over {device}, one at a time, datagrams", "us",
            [f"run {c} {one}" for c in
             ("rxmverbs", "raweager" if size <= EAGER else "rawverbs")],
            microseconds(n), LAYERED if size <= EAGER else None))
    return found + connected(accel, ("rxmverbs", "verbs"),
                             f"datagrams of kofi_rxm over {device}",
                             ADDRESSES[device])


def zero_copy(accel):
    found = []
    for kind in ("send", "write"):
        for size, text in SIZES:
            if size < LARGE:
                continue
            n = operations(accel, kind, WINDOW, size)
            what = words(kind, WINDOW, size, n)
            found.append(Measure(
                f"{kind} {text}, {WINDOW} at a time, zero copy against copies",
                "MB/s", [f"run {c} {what}" for c in ("zerocopy", "pages")],
                megabytes(n, size)))
    return found


def against_user():
    """Ours with threads that sleep as the programs do, but for the first."""
    n = operations("icount", "send", 1, 64)
    one = words("send", 1, 64, n)
    found = [Measure("send 64 B, one at a time, call-backs against user space",
                     "1/s", [f"run kofi {one}", f"user {one}"], rate(n), USER)]
    for client, provider in (("rdmsread", "net"), ("rxmsread", "tcp;ofi_rxm")):
        for size, text in SIZES[::2]:
            n = operations("icount", "send", 1, size)
            one = words("send", 1, size, n)
            found.append(Measure(
                f"send {text}, one at a time, datagrams against user space's "
                f"{provider}", "1/s",
                [f"run {client} {one}", f"user {one} {provider}"], rate(n),
                USER if size == 64 else None))
    for kind in KINDS:
        for size, text in SIZES[::2]:
            n = operations("icount", kind, 1, size)
            one = words(kind, 1, size, n)
            found.append(Measure(
                f"{kind} {text}, one at a time, against user space", "1/s",
                [f"run sread {one}", f"user {one}"], rate(n),
                ASLEEP if size == 64 else None))
        for size, text in SIZES[::2]:
            n = operations("icount", kind, WINDOW, size)
            what = words(kind, WINDOW, size, n)
            found.append(Measure(
                f"{kind} {text}, {WINDOW} at a time, against user space",
                "MB/s", [f"run sread {what}", f"user {what}"],
                megabytes(n, size)))
    return found


def counted(name, lines, n, switches=SAME):
    """Rows about N operations that were traced."""
    return [Measure(f"{name}: {what}", "1/operation", lines,
                    lambda got, i=index: int(got[i]) / n, target,
                    repeat=False)
            for index, what, target in (
                (1, "allocations by kOFI", NONE),
                (0, "allocations by all", None),
                (2, "context switches", switches))]


def counts():
    """A machine has some of its own, of which there are not to be many in one run."""
    found = []
    for kind in KINDS:
        for window, size, text, n in ((1, 64, "64 B, one", 4000),
                                      (WINDOW, 65536, f"64 KiB, {WINDOW}", 1200),
                                      (WINDOW, 1048576, f"1 MiB, {WINDOW}", 160)):
            lines = [f"count {c} {words(kind, window, size, n)}"
                     for c in ("kofi", "raw")]
            found += counted(f"{kind} {text} at a time", lines, n)
    return found


def mounts():
    """The 9p file system: our transport, with kofi-9pd before the server, against
    the kernel's own over TCP, with a relay before the server, and with none."""
    found = []
    for other, name in (("relay", "tcp through a relay"), ("tcp", "tcp")):
        for kind, window, size, text in (
                ("read", 1, MIB, " 1 MiB"), ("read", WINDOW, MIB // 4, " 256 KiB"),
                ("write", 1, MIB, " 1 MiB"), ("write", WINDOW, MIB // 4, " 256 KiB"),
                ("read", 1, SMALL, " 4 KiB"), ("read", WINDOW, SMALL, " 4 KiB"),
                ("write", 1, SMALL, " 4 KiB"), ("write", WINDOW, SMALL, " 4 KiB"),
                ("stat", 1, 0, ""), ("create", 1, 0, "")):
            passes = max(int(50e6 / (200000 + 5 * size) / window / 2), 1)
            n = 2 * window * passes
            wide = size >= LARGE or window > 1
            found.append(Measure(
                f"9p {kind}{text}, {window if window > 1 else 'one'} at a time, "
                f"against {name}", "MB/s" if wide else "us",
                [f"9p {where} {words(kind, window, size, n)}"
                 for where in ("kofi", other)],
                megabytes(n, size) if wide else microseconds(n),
                MOUNT[wide] if other == "relay" else None))
    return found


def disk_cost(accel, other, size):
    """About what a request takes."""
    return {"uml": 15000 + (size if other == "rdma" else size / 4),
            "icount": (70000 + 11 * size) if other in ("rdma", "rnbd") else
                      (45000 + 2 * size)}[accel]


def disks(accel):
    """kofi_blk against the kernel's NVMe over the same transport, and its RNBD."""
    found = []
    for ours, other, name in (("sock", "tcp", "nvme-tcp"),
                              ("sock", "sqflow", "nvme-tcp with disable_sqflow"),
                              ("verbs", "rdma", "nvme-rdma"),
                              ("verbs", "rnbd", "rnbd"),
                              ("sockcrc", "tcpcrc", "nvme-tcp, both with digests"),
                              ("sockcrc", "sock", "itself without digests")):
        if (accel, other) == ("uml", "rnbd"):   # whose kernel has none
            continue
        for kind, window, size, text in (
                ("randread", 1, SMALL, "4 KiB"), ("randread", 32, SMALL, "4 KiB"),
                ("randwrite", 1, SMALL, "4 KiB"), ("randwrite", 32, SMALL, "4 KiB"),
                ("read", WINDOW, MIB // 8, "128 KiB"),
                ("write", WINDOW, MIB // 8, "128 KiB")):
            n = int(PROGRAMS[accel] / disk_cost(accel, other, size))
            found.append(Measure(
                f"disk {kind} {text}, {window} at a time, against {name}", "us",
                [f"disk {where} {kind} {window} {size} {n}"
                 for where in (ours, other)], microseconds(n),
                None if other == "sock" else
                FRAME if kind == "randread" and other not in ("rnbd", "tcpcrc") else
                DISK))
    return found


def build_user():
    run(["make", "-C", TOP, "bench-user"], REPORT / "logs/bench-user.log",
        "the bench's programs in user space")


# --- the machines ----------------------------------------------------------

def turns(wanted, pairs):
    """The plan: pass after pass over all measures, ours and theirs in turn."""
    lines = [f"settle raw {words('send', 1, 64, 200)}"]
    for n in range(pairs):
        for m in wanted:
            if m.repeat or n == 0:
                lines += [l for l in m.lines if m.repeat or l not in lines]
    return lines


def machine(name, accel, wanted, pairs, report):
    """Run them all in one machine and read what it says."""
    flavour = KERNELS[accel]
    work = BUILD / "bench" / name
    work.mkdir(parents=True, exist_ok=True)
    lines = turns(wanted, pairs)
    (work / "plan").write_text("\n".join(lines) + "\n")
    programs = [] if accel == "uml" else ["kofi-bench-user", "rdma"]
    modules = MODULES
    if any(l.startswith("9p ") for l in lines):
        programs += PROGRAMS_9P
        modules += f" {MODULES_9P}"
    if any(l.startswith("disk ") for l in lines):
        programs.append("fio")
        modules += f" {MODULES_DISK}"
    s = scenarios.Scenario(
        name, {"a": "run.sh"},
        [TOP / "tests/bench" / f for f in ("run.sh", *SCRIPTS)] +
        [TOP / "tests/vm/allocations.awk", work / "plan"],
        kernels=flavour, timeout=str(900 + len(lines)), smp="1", mem="1024", leaks="no",
        icount="no" if accel == "uml" else "yes", modules=modules,
        programs=" ".join(programs))
    k = kernel.get(flavour)
    if any(l.startswith("disk rnbd ") for l in lines):
        s.built = rnbd.modules(k)
    if any(l.startswith("without ") for l in lines):
        s.files.append(races.without(flavour, plan.BENCH))
    r = scenarios.Run(s, k, report)
    with host.pinned():
        plan.run_all([plan.Job(name, CPUS, r, r.where)], report)
    log = r.logs / "a.log"
    said = []
    for text in (log.read_text(errors="replace").splitlines()
                 if log.exists() else ()):
        m = re.fullmatch(r"bench: (\w.*) = (.*)", text)
        if m:
            said.append((m[1], m[2].split()))
    for line, got in said:
        if not measured(got):
            report.add(f"{name}/{line}", "not", [" ".join(got)])
    collect(wanted, said)


def measured(words):
    return words and words[0] != "failed"


def collect(wanted, said):
    """Ours and theirs follow each other; another row may have one of them."""
    for m in wanted:
        for (one, ours), (other, theirs) in zip(said, said[1:]):
            if ([one, other] == m.lines
                    and measured(ours) and measured(theirs)):
                m.got[0].append(m.value(ours))
                m.got[1].append(m.value(theirs))
                for runs, line, got in zip(m.watched, m.lines, (ours, theirs)):
                    if line.startswith("run "):
                        runs.append(watched(got))


def named(words):
    return dict(w.split("=") for w in words[2:])


def watched(words):
    """What a run has said: nanoseconds, gap, counters."""
    moved = {k: int(n) for k, n in named(words).items() if k != "start"}
    return int(words[0]), int(words[1]), moved


# --- the target ------------------------------------------------------------

def table(rows):
    names = {"uml": "User-mode Linux, wall clock",
             "icount": "QEMU -icount: 1 us is 1000 instructions"}
    for accel, title in names.items():
        some = [r for r in rows if r["accel"] == accel]
        if not some:
            continue
        say(f"\n{title}")
        say(f"  {'':58} {'kofi':>10} {'baseline':>10} {'ratio':>7} "
            f"{'spread':>7}  target")
        for r in some:
            ratio = "" if r["ratio"] is None else f"{r['ratio']:.3f}"
            end = f"{r['target']} {r['verdict']}" if r["verdict"] else ""
            if not r["quiet"]:
                end += ", host not quiet"
            say(f"  {r['name'] + ', ' + r['unit']:58} {r['kofi']:10.3f} "
                f"{r['baseline']:10.3f} {ratio:>7} {r['spread']:7.3f}  "
                f"{end}".rstrip())
            for who, runs, moved in zip(("kofi", "baseline"), r["slowest"],
                                        r["moved"]):
                if runs:
                    say(f"    {who}: slowest {runs['of_median']} of the median"
                        f", {runs['gap']} ms without progress"
                        f"{words_of(moved)}")
            for text in r["stalls"] + r["baseline_stalls"]:
                say(f"    STALL {text}")


def measure(accel, some, report):
    """All turns of these. Returns whether the host was quiet, before and after;
    instructions do not mind."""
    times = accel == "uml"
    quiet = not times or host.wait()["quiet"]
    say(f"{clock()} measuring: {accel}, {len(some)} comparisons")
    machine(f"bench-{accel}", accel, some, PAIRS[accel], report)
    apart = [m for m in some if m.apart()] if AGAIN[accel] else []
    if apart:
        say(f"{clock()} {len(apart)} of them again, as their ratios are more "
            f"than {APART} apart")
        machine(f"bench-{accel}-again", accel, apart, AGAIN[accel], report)
    after = host.look() if times else None
    if quiet and times and not after["quiet"]:
        quiet = False
        say(f"THE HOST HAS NOT STAYED QUIET: {host.words(after)}; times below "
            "say little")
    return quiet


def bench(only="*"):
    report = Report(REPORT / "bench.tap")
    rows = []
    wanted = {}
    for accel in KERNELS:
        some = [m for m in measures(accel)
                if any(fnmatch.fnmatch(n, only or "*")
                       for n in (accel, m.name))]
        if some:
            wanted[accel] = some
    own = [(kind, name) for kind, name in OWN
           if any(fnmatch.fnmatch(n, only or "*") for n in ("icount", name))]
    by_size = fnmatch.fnmatch(sizes.NAME, only or "*")
    if by_size:
        sizes.measure(report)
    if not wanted and not own:
        if by_size:
            return report.finish()
        raise Fail(f"nothing measured is called '{only}'", status=2)
    say(f"{clock()} kernels")
    needed = [KERNELS[a] for a in KERNELS
              if a in wanted or (own and a == "icount")]
    plan.kernels(needed)
    say(f"{clock()} build")
    build_user()
    for what in ("tools", *needed):
        plan.build(what, plan.BENCH)
    for accel, some in wanted.items():
        quiet = measure(accel, some, report)
        for m in some:
            row = m.row(accel)
            if row:
                row["quiet"] = quiet
                rows.append(row)
                if row["stalls"]:
                    report.add(f"bench@{accel}/{m.name}", "not", row["stalls"])
            else:
                report.add(f"bench@{accel}/{m.name}", "not",
                           [f"not measured; see the log of bench-{accel}"])
    if own:
        say(f"{clock()} counting instructions")
        rows += own_instructions(own)
        report.add("bench-instructions@stock", "ok")
    path = REPORT / "bench.json"
    path.write_text(json.dumps(rows, indent=1) + "\n")
    table(rows)
    said = [r["verdict"] for r in rows if r["verdict"]]
    say(f"\n{clock()} {len(rows)} measured, {said.count('MISSED')} of "
        f"{len(said)} targets missed, {said.count('unclear')} unclear; "
        f"{path.relative_to(TOP)}")
    return report.finish()
