# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Is the host quiet enough to measure times on?

Three things are looked at for a second: how much of the processors others use,
how much of them the hypervisor takes away (steal), and how far the times of a
loop that always does the same are apart. A bench waits for a quiet host for a
while, and says what it found if there was none.
"""

import contextlib
import ctypes
import functools
import mmap
import os
import platform
import statistics
import time

from base import CPUS, say

RDTSC = bytes.fromhex("0f31 48c1e220 4809d0 c3")    # rax = the counter
LOOPS = 80
BUSY, STOLEN, APART = 0.15, 0.01, 0.05  # processors, of them, of the median
PATIENCE = 120                          # seconds


def _ticks():
    """Busy and stolen seconds of all processors, and those of this process."""
    with open("/proc/stat", encoding="ascii") as f:
        user, nice, system, _, _, irq, softirq, steal = \
            map(int, f.readline().split()[1:9])
    hz = os.sysconf("SC_CLK_TCK")
    return ((user + nice + system + irq + softirq) / hz, steal / hz,
            time.process_time())


def _loop():
    began = time.perf_counter()
    sum(n * n for n in range(150000))
    return time.perf_counter() - began


def look():
    """What the host is like now."""
    busy, stolen, own = _ticks()
    began = time.perf_counter()
    took = [_loop() for _ in range(LOOPS)]
    span = time.perf_counter() - began
    now = _ticks()
    low, middle, high = statistics.quantiles(took, n=4, method="inclusive")
    found = {"busy": max(now[0] - busy - (now[2] - own), 0) / span,
             "stolen": (now[1] - stolen) / span / CPUS,
             "apart": (high - low) / middle}
    found["quiet"] = (found["busy"] <= BUSY and found["stolen"] <= STOLEN
                      and found["apart"] <= APART)
    return found


def words(found):
    return (f"{found['busy']:.2f} processors busy with other things, "
            f"{found['stolen']:.1%} of them taken away, a loop's times "
            f"{found['apart']:.1%} apart")


def wait(patience=PATIENCE):
    """Wait until it is quiet, but not for ever. Returns what it is like."""
    end = time.monotonic() + patience
    found = look()
    if not found["quiet"]:
        say(f"waiting for a quiet host: {words(found)}")
    while not found["quiet"] and time.monotonic() < end:
        time.sleep(2)
        found = look()
    if not found["quiet"]:
        say(f"THE HOST IS NOT QUIET: {words(found)}; times below say little")
    return found


@functools.lru_cache(maxsize=None)
def tsc_khz():
    """kHz of the time stamp counter, which QEMU shows to guests under TCG; None where it
    cannot be read."""
    if platform.machine() != "x86_64":
        return None
    try:
        code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE |
                         mmap.PROT_EXEC)
    except OSError:     # some hosts allow no code that was written
        return None
    with code:
        code.write(RDTSC)
        place = ctypes.c_char.from_buffer(code)
        rdtsc = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(place))

        def both():
            # of many tries, one that was not interrupted between the two clocks
            tries = [(time.monotonic_ns(), rdtsc(), time.monotonic_ns())
                     for _ in range(100)]
            return min(tries, key=lambda t: t[2] - t[0])[:2]

        began, first = both()
        time.sleep(0.05)
        ended, last = both()
        del rdtsc, place
    return (last - first) * 1000000 // (ended - began)


@contextlib.contextmanager
def pinned():
    """What is started now stays on one processor, the last of ours."""
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cpus)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cpus)
