# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What each make target does, in what order, and how many things at a time."""

import fnmatch
import os
import shutil
import threading
import time

import base
import check as checks
import image
import kernel
import kunit as kunit_
import machine
import scenario as scenarios
from base import (BUILD, CPUS, REPORT, TOP, Fail, clock, errors_in, run, say)
from report import Report

# Of make: all modules there are, as check builds them, but warnings pass
RELAXED = "KFLAGS=KOFI_TESTBLK=m"

DEFAULT_PROGRAMS = ["fi_info", "fi_pingpong"]


def build(flavour, flags=RELAXED):
    """Our modules, or programs ("tools", "peer"), through the Makefile."""
    log = REPORT / "logs" / f"build-{flavour}.log"
    what = flavour if flavour in ("tools", "peer") else "modules"
    run(["make", "-C", TOP, what, f"FLAVOUR={flavour}", "KDIR=", flags], log,
        f"make {what} FLAVOUR={flavour}")


def builds(flavours, report=None):
    """Build for each flavour; those that worked. With a report, as strictly as
    check does, which so finds the work done; what only warns still runs."""
    worked = []
    for flavour in flavours:
        strict = report and flavour in ("stock", "debug")
        began = time.monotonic()
        try:
            build(flavour, checks.STRICT if strict else RELAXED)
        except Fail as e:
            if not report:
                raise
            report.add(f"build@{flavour}", "not",
                       [str(e), *errors_in(e.log).splitlines()])
            if strict and lenient(flavour):
                worked.append(flavour)
            continue
        worked.append(flavour)
        if report:
            report.add(f"build@{flavour}", "ok")
            say(f"  PASS  build@{flavour} ({time.monotonic() - began:.0f} s)")
    return worked


def programs(wanted):
    """What is to be built besides modules for these scenarios."""
    return ["tools"] + ["peer"] * any("kofi-peer" in s.programs
                                      for s in wanted)


def lenient(flavour):
    """Build with warnings let pass; whether there are modules now."""
    try:
        build(flavour)
    except Fail:
        return False
    return True


def kernels(flavours):
    for flavour in flavours:
        k = kernel.get(flavour)
        say(f"  kernel {flavour}: {k.release}")


class Job:
    """Something that runs beside others; WEIGHT of the processors are its."""

    def __init__(self, name, weight, work, where=None):
        self.name = name
        self.weight = min(weight, CPUS)
        self.work = work
        self.where = where or (lambda: name)


def run_all(jobs, report):
    """Run the jobs in order, as many at a time as there are processors."""
    free = CPUS
    active = {}
    turn = threading.Condition()

    def one(job):
        nonlocal free
        try:
            job.work()
        except Fail as e:
            report.add(job.name, "not", str(e).splitlines())
        except Exception as e:      # the run goes on, the report shows it
            report.add(job.name, "not", f"{type(e).__name__}: {e}")
        with turn:
            free += job.weight
            del active[job]
            turn.notify_all()

    with turn:
        for job in jobs:
            beat(turn, active, lambda job=job: free >= job.weight)
            free -= job.weight
            active[job] = time.monotonic()
            threading.Thread(target=one, args=(job,), daemon=True).start()
        beat(turn, active, lambda: not active)


def beat(turn, active, done):
    """Wait for DONE; every 15 s a line on what is running, if all is quiet."""
    while not turn.wait_for(done, 15):
        now = time.monotonic()
        if now - base.said < 5:
            continue
        for job, began in list(active.items()):
            if now - began > 10:
                say(f"    ... {clock()} {job.where()}: {now - began:.0f} s")


def scenario_job(s, flavour, report, loud=False):
    r = scenarios.Run(s, kernel.get(flavour), report, loud)

    def work():
        began = time.monotonic()
        if loud:
            say(f"\n== {s.keys.get('title', s.name)} ({r.name})")
        good = r()
        say(f"  {'PASS' if good else 'FAIL'}  {r.name}: {r.steps} steps, "
            f"{r.failures} failed ({time.monotonic() - began:.0f} s)")
    # machines mostly wait, for each other or for a timer: two pairs fit
    return Job(r.name, CPUS if s.alone else 1, work, r.where)


# The unit tests, and the contract's over RDMA devices
UNITS = {"test": [("", "uml"), ("", "debug"), ("rxe", "uml"), ("siw", "uml")],
         "soak": [("rxe", "debug"), ("siw", "debug"), ("dma", "uml"),
                  ("dma", "debug")]}


def kunit_name(device, flavour):
    return f"kunit-{device}@{flavour}" if device else f"kunit@{flavour}"


def kunit_job(device, flavour, report):
    name = kunit_name(device, flavour)
    runs = []
    return Job(name, 1 if flavour == "uml" else CPUS,
               lambda: kunit_.run(flavour, report, runs=runs, device=device),
               lambda: runs[0].where() if runs else name)


def chosen(name, only):
    return any(fnmatch.fnmatch(n, only) for n in (name, name.split("@")[0]))


# --- the targets -----------------------------------------------------------

def check(*_):
    report = Report(REPORT / "check.tap")
    kernels(["stock", "debug"])
    checks.run_all(report)
    return report.finish()


def docs(*_):
    bad = checks.pages()
    print("\n".join(bad or [f"  {BUILD / 'html/index.html'}"]))
    return bool(bad)


def kunit(suite="*"):
    report = Report(REPORT / "kunit-uml.tap")
    kernel.get("uml")
    build("uml")
    kunit_.run("uml", report, suite or "*",
               device=os.environ.get("DEVICE", ""))
    return report.finish()


def test(only="*"):
    return everything("test", "tests.tap", only or "*")


def soak(only="*"):
    return everything("soak", "soak.tap", only or "*")


def everything(tag, name, only):
    report = Report(REPORT / name)
    wanted = [(s, k) for s in scenarios.find(tag) for k in s.kernels
              if chosen(f"{s.name}@{k}", only)]
    units = [(d, k) for d, k in UNITS[tag] if chosen(kunit_name(d, k), only)]
    checking = tag == "test" and chosen("check", only)
    needed = {k for _, k in wanted} | {k for _, k in units}
    if checking:
        needed |= {"stock", "debug"}
    if not needed:
        raise Fail(f"nothing is called '{only}'; there are "
                   + "check, " * (tag == "test")
                   + ", ".join(kunit_name(d, k) for d, k in UNITS[tag])
                   + " and the scenarios "
                   + ", ".join(f"{s.name}@{k}" for s in scenarios.find(tag)
                               for k in s.kernels), status=2)
    say(f"{clock()} kernels")
    order = [k for k in ("stock", "uml", "debug") if k in needed]
    kernels(order)
    say(f"{clock()} build")
    ready = builds([*programs(s for s, _ in wanted), *order], report)
    jobs = []
    if checking:
        jobs.append(Job("check", 1, lambda: checks.run_all(report)))
    jobs += [kunit_job(d, k, report) for d, k in units if k in ready]
    for s, k in sorted(wanted, key=lambda w: w[0].alone):
        if k in ready:
            jobs.append(scenario_job(s, k, report))
    say(f"{clock()} {len(jobs)} parts; consoles are saved below "
        f"{(REPORT / 'logs').relative_to(TOP)}")
    run_all(jobs, report)
    say(f"{clock()} done; the report is {report.path.relative_to(TOP)}")
    return report.finish()


def demo(only="*"):
    report = Report(REPORT / "demo.tap")
    wanted = [s for s in scenarios.find("demo")
              if chosen(f"{s.name}@stock", only or "*")]
    if not wanted:
        raise Fail(f"no scenario with the tag demo is called '{only}'",
                   status=2)
    kernels(["stock"])
    say(f"{clock()} building the modules and the kofi tool")
    builds([*programs(wanted), "stock"])
    for s in wanted:
        run_all([scenario_job(s, "stock", report, loud=True)], report)
    say("")
    return report.finish()


def adhoc(flavour):
    """Ready kernel, built modules and tools for a machine by hand."""
    k = kernel.get(flavour)
    builds([flavour, "tools"])
    programs = [p for p in (*DEFAULT_PROGRAMS, "rdma", "ss", "tc",
                            "strace") if shutil.which(p)]
    stock = "crc32_generic rdma_rxe ib_uverbs rdma_ucm veth dummy sch_netem"
    return k, {"programs": " ".join(programs),
               "modules": stock if flavour == "stock" else ""}


def run_(flavour=None, *scripts):
    """One machine per script; consoles on stdout."""
    if not scripts:
        raise Fail("vm run KERNEL SCRIPT...", status=2)
    k, keys = adhoc(flavour)
    paths = [scenarios.pathlib.Path(s).resolve() for s in scripts]
    for p in paths:
        if not p.is_file():
            raise Fail(f"there is no script {p}", status=2)
    report = Report(REPORT / "run.tap")
    s = scenarios.Scenario("run", dict(zip("abcdefgh",
                                           (p.name for p in paths))),
                           paths, kernels=flavour,
                           timeout=os.environ.get("TIMEOUT", "120"), **keys)
    scenarios.Run(s, k, report, echo=True,
                  cmdline=os.environ.get("CMDLINE", ""))()
    return report.finish()


def shell(flavour="stock"):
    k, keys = adhoc(flavour or "stock")
    s = scenarios.Scenario("shell", {"a": "shell"}, [], leaks="no", **keys)
    r = scenarios.Run(s, k, None)
    work = BUILD / "vm" / "shell"
    vm = work / "vm"
    image.payload(vm, k, [], ["virtio_net", *s.modules] if not k.uml else ())
    cmdline = r.cmdline("a", k.uml).replace("vm.ctl=", "vm.noctl=")
    if k.uml:
        cmd = machine.Uml.command(k.image, vm / "init", 1024,
                                  cmdline + f" vm.dir={vm}")
        cmd = [c.replace("con0=null,", "con0=fd:0,") for c in map(str, cmd)]
        return machine.interactive(cmd)
    initramfs = work / "initramfs"
    image.initramfs(initramfs, s.programs, vm)
    accel = machine.accelerator(k.image, initramfs)
    cmd = machine.Qemu("a", work / "log").command(
        k.image, initramfs, accel, 2, 1024, cmdline + " vm.dir=/vm", None, 1)
    return machine.interactive([*cmd, "-serial", "mon:stdio"])
