# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Races that are planted: do the unit tests on two CPUs find them?

A copy of the sources gets one fault after the other, each of which needs two CPUs
or a softirq at a bad moment, and one suite runs on uml-smp. The suite has to fail, or
the kernel to complain. A race need not happen each time, so the suite has several
tries; a run is ended as soon as the first case fails or the kernel complains.

Two suites need both CPUs at the same moment. In kofi_cntr.cntr_crowd_test two tasks
on two CPUs pass a gate before each addition. In kofi_ep.ep_refuse_test the task that
came first in a round waits a little longer in the next. Its stores go to many cache
lines of the other CPU, so a store is still pending while a later load is done.
"""

import os
import re
import subprocess

from base import BUILD, REPORT, TOP, Fail, lock, run, say, wait
from report import splats
from schedule import Job

FLAVOUR = "uml-smp"
NAME = f"races@{FLAVOUR}"
WHERE = BUILD / "races"
LOGS = REPORT / "logs" / NAME
TRIES = 5

# name, file, text that is there once, text in its place, device or "", suite
RACES = [
    ("lock", "include/linux/kofi/freelist.h",
     "	spin_lock_irqsave(lock, irq);", "	local_irq_save(irq);", "", "lib_rxq_stress"),
    ("reference", "providers/rxm/tx.c",
     "	refcount_inc(&op->refs);\n"
     "	err = rxm_send_vec(c, &v, &op->cqe, op->flags, c->flow.reserve);\n"
     "	if (err)\n		refcount_dec(&op->refs);",
     "	err = rxm_send_vec(c, &v, &op->cqe, op->flags, c->flow.reserve);\n"
     "	if (!err)\n		refcount_inc(&op->refs);",
     "", "rdm_mesh"),
    ("grace", "kofi/av.c",
     "	synchronize_rcu();\n	while ((peer = list)) {", "	while ((peer = list)) {",
     "", "kofi_av.av_remove_wait_test"),
    ("barrier", "kofi/complete.c",
     "	unsigned long flags;\n\n	smp_mb();	/*", "	unsigned long flags;\n\n	/*",
     "", "kofi_ep.ep_refuse_test"),
    ("counter", "kofi/cntr.c",
     "	spin_lock_irqsave(&c->wait.lock, flags);\n"
     "	*number = set ? value : *number + value;\n",
     "	*number = set ? value : *number + value;\n"
     "	spin_lock_irqsave(&c->wait.lock, flags);\n",
     "", "kofi_cntr.cntr_crowd_test"),
]

# the change of the build without a histogram: file, text, text in its place
WITHOUT = ("kofi/latency.h", "	return static_branch_unlikely(&kofi_latency_on);",
           "	return false;")


def copy(where=WHERE):
    run(["rsync", "-a", "--delete", "--exclude=.git", "--exclude=/build",
         "--filter=:- .gitignore", f"{TOP}/", where], None, "a copy of kOFI")


def misplaced():
    """A line for each change whose text is not exactly once in its file."""
    bad = []
    for name, file, old, *_ in [*RACES, ("the bench", *WITHOUT)]:
        path = TOP / file
        n = path.read_text().count(old) if path.exists() else 0
        if n != 1:
            bad.append(f"tools/vm/races.py: {file} has the text of "
                       f"\"{name}\" {n} times, not once")
    return bad


def without(flavour, flags):
    """kofi.ko of a FLAVOUR built without the branch of the histogram of latency."""
    where = BUILD / "without"
    where.mkdir(parents=True, exist_ok=True)
    copy(where)
    plant(*WITHOUT, where)
    run(["make", "modules", f"FLAVOUR={flavour}", "KDIR=", flags],
        REPORT / "logs" / f"without-{flavour}.log",
        f"make modules FLAVOUR={flavour} without a branch", cwd=where)
    return where / "build" / flavour / "kofi/kofi.ko"


def plant(file, old, new, where=WHERE):
    path = where / file
    text = path.read_text()
    if text.count(old) != 1:
        raise Fail(f"{file} has changed: the fault is to be planted elsewhere")
    path.write_text(text.replace(old, new))


def fails(console):
    """Has a case failed, or the kernel complained, on a console so far?"""
    if not console.exists():
        return False
    lines = console.read_text(errors="replace").splitlines()
    return bool(splats(lines)) or any(re.match(r"\[ *[\d.]+\] *not ok ", l)
                                      for l in lines)


def attempt(name, device, suite):
    """Run the suite until it is through, or has found something: whether it has."""
    console = (WHERE / "build/report/logs" / f"kunit{device and '-' + device}@{FLAVOUR}"
               / "a.log")
    console.unlink(missing_ok=True)
    log = LOGS / f"{name}.log"
    with open(log, "w") as out, subprocess.Popen(
            [WHERE / "tools/vm/vm", "kunit", suite], stdout=out,
            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=WHERE,
            env={**os.environ, "KERNEL": FLAVOUR, "DEVICE": device}) as proc:
        try:
            while True:
                try:
                    status = wait(proc, 1)
                    break
                except subprocess.TimeoutExpired:
                    if fails(console):
                        return True
        finally:
            # ends its machine, too
            proc.terminate()
            wait(proc)
    if fails(console):
        return True
    # a run that was none is no finding
    if status:
        raise Fail(f"race {name}: the run failed", log)
    return False


def found(name, device, suite):
    """In which try a suite has failed, 0: in none."""
    return next((n for n in range(1, TRIES + 1) if attempt(name, device, suite)), 0)


def race(report, name, file, old, new, device, suite):
    copy()
    plant(file, old, new)
    run(["make", "modules", f"FLAVOUR={FLAVOUR}", "KFLAGS=CONFIG_KOFI_TESTS=m"],
        LOGS / f"{name}-build.log", f"make with the race {name}", cwd=WHERE)
    n = found(name, device, suite)
    report.add(f"{NAME}/{name}", "ok" if n else "not",
               [] if n else [f"{suite} has passed {TRIES} times"])
    say(f"    {name}: {suite} has found it in run {n}" if n else
        f"    {name}: {suite} has not found it")
    return bool(n)


def job(report):
    def work():
        with lock("races", BUILD / "vm"):
            LOGS.mkdir(parents=True, exist_ok=True)
            WHERE.mkdir(parents=True, exist_ok=True)
            good = [race(report, *r) for r in RACES]
        return all(good)
    return Job(NAME, 1, work, after=[f"build@{FLAVOUR}"], guess=900)
