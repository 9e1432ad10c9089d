# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""kofi bw by size: the counterpart of fabtests' table for fi_rma_bw.

The scenario perf-table runs kofi bw for each operation over each provider and device.
Here it runs in the kernel that times are measured with, five times. A figure is the
highest of the five, which other work on the host lowers least.
Documentation/performance/sizes.json keeps the report.
"""

import json
import re

import host
import kernel
import plan
import scenario as scenarios
from base import REPORT, TOP, clock, say

NAME = "sizes"
FLAVOUR = "uml-fast"
OPERATIONS = ("msg", "write", "read")
# the names in perf-table/run.sh
WAYS = ("sock", "sock-rdm", "sock-rxm", "rxe", "rxe-rxm", "siw", "siw-rxm")
SIZES = [1 << n for n in range(24)]
LINE = re.compile(r"sizes: ([\w-]+) (\w+) (\d+) (\d+(?:\.\d+)?)", re.M)


def rows(text):
    """A row for each operation, way and size of a console."""
    found = {}
    for way, operation, size, speed in LINE.findall(text):
        found.setdefault((operation, way, int(size)), []).append(float(speed) / 1e6)
    return [{"operation": o, "way": w, "bytes": s,
             "mb_per_sec": float(f"{max(found[o, w, s]):.4g}"),
             "lowest": float(f"{min(found[o, w, s]):.4g}")}
            for o in OPERATIONS for w in WAYS for s in SIZES if (o, w, s) in found]


def measure(report):
    plan.kernels([FLAVOUR])
    plan.build("tools")
    plan.build(FLAVOUR, plan.BENCH)
    s = scenarios.Scenario.load(TOP / "tests/vm/perf-table")
    quiet = host.wait()["quiet"]
    say(f"{clock()} measuring: {NAME}")
    r = scenarios.Run(s, kernel.get(FLAVOUR), report, name=NAME)
    with host.pinned():
        plan.run_all([plan.Job(NAME, 2, r, r.where)], report)
    after = host.look()
    if quiet and not after["quiet"]:
        quiet = False
        say(f"THE HOST HAS NOT STAYED QUIET: {host.words(after)}")
    found = rows((r.logs / "a.log").read_text(errors="replace"))
    there = {(f["operation"], f["way"], f["bytes"]) for f in found}
    # longer ones need not fit into an operation
    missing = [f"{o} {w} {s}" for o in OPERATIONS for w in WAYS for s in SIZES
               if s <= 1 << 20 and (o, w, s) not in there]
    report.add(f"bench-{NAME}", "not" if missing else "ok",
               [f"{len(missing)} figures are missing, first {missing[0]}"] if missing else [])
    path = REPORT / f"{NAME}.json"
    path.write_text(json.dumps({"quiet": quiet, "rows": found}, indent=1) + "\n")
    say(f"{clock()} {len(found)} figures; {path.relative_to(TOP)}")
