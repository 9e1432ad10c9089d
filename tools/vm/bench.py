# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The bench: kOFI against raw sockets, and against libfabric in user space.

Two machines, one after the other: User-mode Linux, whose clock is the host's
(unit: time), and Debian's kernel in QEMU under -icount, whose clock counts
instructions (one is a nanosecond). In each the two sides of a comparison take
turns, A B A B, and each pair gives one ratio; what counts is the median, and
the distance between the quartiles is the spread.

tests/bench/ has what is measured: kofi_bench.ko and the script that drives it.
"""

import fnmatch
import json
import re
import statistics

import kernel
import plan
import scenario as scenarios
from base import BUILD, CPUS, REPORT, TOP, Fail, clock, run, say
from report import Report

SIZES = [(64, "64 B"), (4096, "4 KiB"), (65536, "64 KiB"),
         (1048576, "1 MiB")]
WINDOW = 8
PAIRS = {"wall": 15, "icount": 3}

# Operations in a run: about 50 ms in User-mode Linux, and enough of them in
# flight under -icount that beginning and end do not matter.
COUNTS = {
    "wall": {64: 15000, 4096: 8000, 65536: 2000, 1048576: 120},
    "icount": {64: 1000, 4096: 500, 65536: 200, 1048576: 24},
}

SMALL = "<= 1.05"       # round trips, of the raw socket's
LARGE = ">= 0.97"       # bandwidth, of the raw socket's
USER = ">= 1.3"         # round trips, of those in user space
NONE = "== 0"           # allocations of ours
SAME = "<= baseline"    # context switches


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

    def row(self, accel):
        ours, theirs = self.got
        if not ours or len(ours) != len(theirs):
            raise Fail(f"'{self.name}' was not measured; see the console in "
                       f"{(REPORT / 'logs').relative_to(TOP)}")
        ratios = [a / b for a, b in zip(ours, theirs) if b]
        ratio = statistics.median(ratios) if ratios else None
        kofi, baseline = statistics.median(ours), statistics.median(theirs)
        return {"name": self.name, "unit": self.unit,
                "kofi": round(kofi, 4), "baseline": round(baseline, 4),
                "ratio": ratio and round(ratio, 4),
                "spread": round(spread(ratios), 4), "target": self.target,
                "ok": met(self.target, kofi, baseline, ratio),
                "samples": len(ours), "accel": accel}


def spread(values):
    if len(values) < 2:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return high - low


def met(target, kofi, baseline, ratio):
    if target is None:
        return None
    if target == NONE:
        return kofi == 0
    if target == SAME:
        # a switch or two of other threads fall into every run
        return kofi <= baseline + 0.01
    sign, limit = target.split()
    return ratio >= float(limit) if sign == ">=" else ratio <= float(limit)


def measures(accel):
    """What is compared in the machine with that clock."""
    found = []
    for kind in ("send", "write", "read"):
        for size, text in SIZES:
            count = COUNTS[accel][size]

            def line(client, window, n):
                return (f"run {client} {kind} {window} {size} "
                        f"{max(n // 5, 2 * WINDOW)} {n}")

            # a round trip is two messages
            trips = count // (2 if kind == "send" else 1)
            found.append(Measure(
                f"{kind} {text}, one at a time", "us",
                [line(c, 1, trips) for c in ("kofi", "raw")],
                lambda words, n=trips: int(words[0]) / n / 1000,
                SMALL if size < 65536 else None))
            found.append(Measure(
                f"{kind} {text}, {WINDOW} at a time", "MB/s",
                [line(c, WINDOW, 2 * count) for c in ("kofi", "raw")],
                lambda words, n=2 * count * size: n / int(words[0]) * 1000,
                LARGE if size >= 65536 else None))
    if accel == "icount":
        found += in_user_space() + counts()
    return found


def in_user_space():
    n = 1000

    def rate(words):
        return n / int(words[0]) * 1e9

    user = f"user 64 {n // 5} {n}"
    return [
        Measure("send 64 B, threads in fi_cq_sread, against user space",
                "round trips/s", [f"run sread send 1 64 {n // 5} {n}", user],
                rate, USER),
        Measure("send 64 B, call-backs, against user space",
                "round trips/s", [f"run kofi send 1 64 {n // 5} {n}", user],
                rate, USER),
    ]


def counts():
    found = []
    for kind, window, size, text in (
            ("send", 1, 64, "64 B"), ("write", 1, 64, "64 B"),
            ("read", 1, 64, "64 B"), ("send", WINDOW, 65536, "64 KiB")):
        n = 200
        lines = [f"count {c} {kind} {window} {size} 100 {n}"
                 for c in ("kofi", "raw")]
        for index, what, target in (
                (1, "allocations by kOFI", NONE),
                (0, "allocations by all", None),
                (2, "context switches", SAME)):
            found.append(Measure(
                f"{kind} {text}, {window} at a time: {what}", "per operation",
                lines, lambda words, i=index: int(words[i]) / n, target,
                repeat=False))
    return found


# --- the machines ----------------------------------------------------------

def turns(wanted, pairs):
    """The plan: pass after pass over all measures, ours and theirs in turn."""
    first = wanted[0].lines         # once for nothing: the machine settles
    lines = list(first)
    for n in range(pairs):
        for m in wanted:
            if m.repeat or n == 0:
                lines += [l for l in m.lines if m.repeat or l not in lines]
    return lines


def machine(accel, wanted, report):
    """Run them all in one machine and read what it says."""
    uml = accel == "wall"
    flavour = "uml-fast" if uml else "stock"
    work = BUILD / "bench"
    work.mkdir(parents=True, exist_ok=True)
    (work / "plan").write_text("\n".join(turns(wanted, PAIRS[accel])) + "\n")
    programs = [] if uml else ["kofi-bench-user"]
    s = scenarios.Scenario(
        f"bench-{accel}", {"a": "run.sh"},
        [TOP / "tests/bench/run.sh", work / "plan"],
        kernels=flavour, timeout="600", smp="1", mem="1024", leaks="no",
        icount="no" if uml else "yes", programs=" ".join(programs))
    r = scenarios.Run(s, kernel.get(flavour), report)
    plan.run_all([plan.Job(f"bench-{accel}", CPUS, r, r.where)], report)
    said = []
    for text in (r.logs / "a.log").read_text(errors="replace").splitlines():
        m = re.fullmatch(r"bench: (\w.*) = (.*)", text)
        if m:
            said.append((m[1], m[2].split()))
    collect(wanted, said[len(wanted[0].lines):])


def collect(wanted, said):
    for m in wanted:
        for got, line in zip(m.got, m.lines):
            for what, words in said:
                if what == line and words and words[0] != "failed":
                    got.append(m.value(words))


# --- the target ------------------------------------------------------------

def table(rows):
    names = {"wall": "User-mode Linux, wall clock",
             "icount": "QEMU -icount, 1000 instructions are 1 us"}
    for accel, title in names.items():
        some = [r for r in rows if r["accel"] == accel]
        if not some:
            continue
        say(f"\n{title}")
        say(f"  {'':58} {'kofi':>10} {'baseline':>10} {'ratio':>7} "
            f"{'spread':>7}  target")
        for r in some:
            ratio = "" if r["ratio"] is None else f"{r['ratio']:.3f}"
            verdict = "" if r["ok"] is None else \
                f"{r['target']} {'ok' if r['ok'] else 'MISSED'}"
            say(f"  {r['name'] + ', ' + r['unit']:58} {r['kofi']:10.3f} "
                f"{r['baseline']:10.3f} {ratio:>7} {r['spread']:7.3f}  "
                f"{verdict}")


def bench(only="*"):
    report = Report(REPORT / "bench.tap")
    rows = []
    wanted = {}
    for accel in ("wall", "icount"):
        some = [m for m in measures(accel)
                if any(fnmatch.fnmatch(n, only or "*")
                       for n in (accel, m.name))]
        if some:
            wanted[accel] = some
    if not wanted:
        raise Fail(f"nothing measured is called '{only}'", status=2)
    flavours = {"wall": "uml-fast", "icount": "stock"}
    say(f"{clock()} kernels")
    plan.kernels([flavours[a] for a in wanted])
    say(f"{clock()} build")
    run(["make", "-C", TOP, "bench-user"], REPORT / "logs/bench-user.log",
        "the bench's program in user space")
    for accel in wanted:
        plan.build(flavours[accel], "KFLAGS=KOFI_BENCH=m")
    for accel, some in wanted.items():
        say(f"{clock()} measuring: {accel}")
        machine(accel, some, report)
        rows += [m.row(accel) for m in some]
    path = REPORT / "bench.json"
    path.write_text(json.dumps(rows, indent=1) + "\n")
    table(rows)
    missed = [r for r in rows if r["ok"] is False]
    say(f"\n{clock()} {len(rows)} measured, {len(missed)} of "
        f"{len([r for r in rows if r['ok'] is not None])} targets missed; "
        f"{path.relative_to(TOP)}")
    return report.finish()
