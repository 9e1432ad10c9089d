# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Jobs beside each other, and where their time goes.

A job starts when what it needs has been done and as much of the processors as
it takes is free. Of those that could, the one with the longest way to the end
of the run goes first: its own duration and that of what waits for it. How long
a job takes is known from the last run, kept in the cache folder, or declared.

Many jobs wait more than they compute: for timers, or machines for each other.
While the processors idle all the same, one more is started every few seconds.
"""

import json
import threading
import time

import base
from base import CACHE, CPUS, Fail, Meter, clock, say

TIMES = CACHE / "times.json"
LOOK = 4        # seconds between looks at the processors


class Job:
    """WEIGHT of the processors are its. WORK returns False if it failed; then
    nothing AFTER it is run. GUESS: seconds, if it has never been run."""

    def __init__(self, name, weight, work, where=None, after=(), guess=60):
        self.name = name
        self.weight = min(weight, CPUS)
        self.alone = weight >= CPUS > 1     # measures time
        self.work = work
        self.where = where or (lambda: name)
        self.after = set(after)
        self.guess = guess
        self.began = self.wall = self.cpu = 0.0
        self.results = 0
        self.notes = []
        self.good = None                # None: has not ended


def remembered():
    try:
        return json.loads(TIMES.read_text())
    except (OSError, ValueError):
        return {}


def remember(jobs):
    known = remembered()
    for job in jobs:
        if job.good:
            known[job.name] = round(job.wall, 1)
    try:
        TIMES.parent.mkdir(parents=True, exist_ok=True)
        TIMES.write_text(json.dumps(known, indent=0, sort_keys=True) + "\n")
    except OSError:
        pass        # only the order of the next run is the worse for it


def by_urgency(jobs):
    """The jobs, those with the longest way to the end first."""
    known = remembered()
    ways = {}

    def way(job):
        if job.name not in ways:
            ways[job.name] = known.get(job.name, job.guess) + max(
                (way(j) for j in jobs if job.name in j.after), default=0)
        return ways[job.name]

    return sorted(jobs, key=way, reverse=True)


class Idle:
    """How much of the processors' time has been idle since the last look."""

    def __init__(self):
        self.last = self.ticks()

    @staticmethod
    def ticks():
        with open("/proc/stat") as f:
            fields = [int(n) for n in f.readline().split()[1:9]]
        return fields[3] + fields[4], sum(fields)

    def share(self):
        (was, before), self.last = self.last, self.ticks()
        return (self.last[0] - was) / max(self.last[1] - before, 1)


def roomy():
    """Is there memory for another pair of machines?"""
    with open("/proc/meminfo") as f:
        free = dict(l.split(":") for l in f)["MemAvailable"]
    return int(free.split()[0]) >> 20 >= 4


def run_all(jobs, report):
    """Run the jobs, as many at a time as there are processors."""
    names = {job.name: job for job in jobs}
    waiting = by_urgency(jobs)
    active = {}
    turn = threading.Condition()
    for job in jobs:
        job.after &= set(names)         # others have been done, or are not to be

    def one(job):
        job.began = time.monotonic()
        try:
            with Meter() as meter:
                good = job.work()
        except Fail as e:
            report.add(job.name, "not", str(e).splitlines())
            good = False
        except Exception as e:      # the run goes on, the report shows it
            report.add(job.name, "not", f"{type(e).__name__}: {e}")
            good = False
        job.wall = time.monotonic() - job.began
        job.cpu, job.results = meter.cpu, meter.results
        job.notes = meter.notes
        with turn:
            job.good = good is not False
            del active[job]
            turn.notify_all()

    def start_some(more=False):
        """Start what can be; a job that needs more processors than are free is
        waited for, or those behind it would keep it out for ever. With MORE,
        one in addition."""
        free = CPUS - sum(job.weight for job in active)
        for job in list(waiting):
            needed = [names[n] for n in job.after]
            failed = [n.name for n in needed if n.good is False]
            if failed:
                report.add(job.name, "not",
                           f"not run, as {failed[0]} has failed")
                job.good = False
                waiting.remove(job)
            elif all(n.good for n in needed):
                if job.weight > free:
                    if not more or job.alone or any(j.alone for j in active):
                        return
                    more = False
                free -= job.weight
                waiting.remove(job)
                active[job] = time.monotonic()
                threading.Thread(target=one, args=(job,), daemon=True).start()

    idle = Idle()
    more = False
    with turn:
        while waiting or active:
            ended = sum(job.good is not None for job in jobs)
            start_some(more)
            more = active and not turn.wait_for(lambda: ended < sum(
                job.good is not None for job in jobs), LOOK) and (
                    idle.share() > 0.3 and roomy())
            beat(active)
    remember(jobs)


def beat(active):
    """A line on what is running, if nothing has been said for long."""
    now = time.monotonic()
    if now - base.said >= 15:
        for job, began in list(active.items()):
            if now - began > 10:
                say(f"    ... {clock()} {job.where()}: {now - began:.0f} s")


def table(jobs):
    """Where the time went: a line for each job, the longest first."""
    jobs = [j for j in jobs if j.began]
    if not jobs:
        return []
    first = min(j.began for j in jobs)
    whole = max(j.began + j.wall for j in jobs) - first
    cpu = sum(j.cpu for j in jobs)
    lines = [f"{'part':32} {'began':>6} {'seconds':>8} {'CPU s':>7} "
             f"{'of CPUs':>7} {'results':>7}"]
    for j in sorted(jobs, key=lambda j: j.wall, reverse=True):
        lines.append(f"{j.name:32} {j.began - first:6.0f} {j.wall:8.1f} "
                     f"{j.cpu:7.1f} {j.weight:7g} {j.results:7}")
        lines += [f"  {what:37} {seconds:8.1f} {'':15} {results:7}"
                  for what, seconds, results in j.notes]
    lines.append(f"{'all, on ' + str(CPUS) + ' processors':32} {0:6} "
                 f"{whole:8.1f} {cpu:7.1f} {CPUS:7} "
                 f"{sum(j.results for j in jobs):7}")
    lines.append(f"the processors were busy with it "
                 f"{100 * cpu / (whole * CPUS or 1):.0f} % of the time")
    return lines
