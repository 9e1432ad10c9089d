# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Results: what is written to the report, and what a console gives away.

A report is a TAP file with one line per test case or step under its full name
and, below a failure, why. A kernel's complaint on a console (a splat) is a
failure whatever the steps said.
"""

import re
import threading

from base import Meter, say

# A printk line's time stamp, so that a program's output cannot look like one.
STAMP = re.compile(r"\[ *\d+\.\d+\](?:\[ *[TC]\d+\])? ?")

SPLATS = re.compile("|".join((
    r"\bBUG: ", r"\bBUG [\w-]+ \(", r"kernel BUG at", r"\bOops\b",
    r"\bWARNING: (?!Unprivileged|Spectre|.*unsupported)", r"Kernel panic",
    r"general protection fault", r"double fault", r"stack guard page",
    r"INFO: (?:possible|trying to register|suspicious|inconsistent|task )",
    r"suspicious RCU usage", r"INFO: rcu\w* .*(?:stall|detected)",
    r"sleeping function called from invalid context",
    r"scheduling while atomic", r"DEBUG_LOCKS_WARN_ON",
    r"workqueue: WQ_MEM_RECLAIM", r"Voluntary context switch within RCU",
    r"UBSAN: ", r"KASAN: ", r"KCSAN: ",
    r"refcount_t: ", r"ODEBUG: ", r"blocked for more than \d+ seconds",
    r"DMA-API: (?!preallocated|debugging enabled|dma_debug)",
    r"list_(?:add|del) corruption", r"detected buffer overflow",
    r"usercopy: Kernel memory", r"leaked reference", r"Objects remaining",
    r"unregister_netdevice: waiting", r"Bad page state",
    r"kobject .*tried to (?:init|add)", r"sysfs: cannot create duplicate",
    r"Module has invalid ELF", r"Unknown symbol", r"disagrees about version",
)))


def splats(lines, allow=None):
    """The kernel's complaints on a console: a list of excerpts."""
    found = []
    skip_to = 0
    for n, line in enumerate(lines):
        at = STAMP.search(line)
        if n < skip_to or not at or not SPLATS.search(line, at.end()):
            continue
        if allow and re.search(allow, line):
            continue
        found.append([STAMP.sub("", l) for l in lines[n:n + 45]])
        skip_to = n + 45
        if len(found) == 3:
            break
    return found


def stale_code(lines):
    """The kernel died of a breakpoint that its memory does not hold. The kernel
    patches branches by breakpoints; QEMU 7.2 with two processors sometimes runs
    one after it has been overwritten and all processors have been synchronised."""
    for n, line in enumerate(lines):
        at = STAMP.search(line)
        if at and line.startswith("Oops: int3", at.end()):
            code = re.search(r"Code: .*\b([0-9a-f]{2}) <", "\n".join(lines[n:n + 12]))
            return bool(code) and code[1] != "cc"
    return False


class Report:
    """A TAP file that grows as results come in."""

    def __init__(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.file = open(path, "w", buffering=1)
        self.file.write("TAP version 13\n")
        self.passed = self.failed = self.skipped = 0
        self.failures = []
        self.lock = threading.Lock()

    def add(self, name, status, why=(), quiet=False):
        """STATUS is ok, not or skip; WHY, lines for below a failure or the
        reason of a skip."""
        why = [why] if isinstance(why, str) else list(why)
        name = name.replace("#", "_")
        meter = Meter.current()
        if meter:
            meter.add(results=1)
        with self.lock:
            number = self.passed + self.failed + self.skipped + 1
            line = f"{'not ok' if status == 'not' else 'ok'} {number} - {name}"
            if status == "skip":
                self.skipped += 1
                line += " # SKIP " + " ".join(why)
            elif status == "not":
                self.failed += 1
            else:
                self.passed += 1
            self.file.write(line + "\n")
            if status == "not":
                self.failures.append((name, why))
                for text in why:
                    self.file.write(f"  # {text}\n")
        if status == "not" and not quiet:
            say(f"  FAIL  {name}")
            for text in why[:30]:
                say(f"        {text}")

    def finish(self):
        """Write the plan, say once more what failed, where the end of a long
        output is all that is kept, print the last line; the exit status."""
        total = self.passed + self.failed + self.skipped
        self.file.write(f"1..{total}\n")
        self.file.close()
        for name, why in self.failures[:40]:
            # The first lines state the cause; a console's last ones are the newest.
            say("\n        ".join([f"  FAIL  {name}", *why[:6]]
                                  if len(why) <= 12 else
                                  [f"  FAIL  {name}", *why[:4], "...", *why[-8:]]))
        say(f"{self.passed} passed, {self.failed} failed"
            + (f", {self.skipped} skipped" if self.skipped else ""))
        return 0 if self.passed and not self.failed else 1
