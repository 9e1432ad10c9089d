# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What each make target does, in what order, and how many things at a time."""

import fnmatch
import os
import shutil
import time

import check as checks
import debs
import image
import install
import kernel
import kunit as kunit_
import machine
import packages
import previous
import races
import scenario as scenarios
import schedule
import tree
from base import (BUILD, CPUS, REPORT, TOP, Fail, alone, clock, errors_in, run,
                  say)
from report import Report
from schedule import Job, run_all

# Of make: all modules there are, as check builds them, but warnings pass
RELAXED = "KFLAGS=CONFIG_KOFI_TESTS=m"

# The flags of builds that the bench measures
BENCH = "KFLAGS=CONFIG_KOFI_SAMPLES=m CONFIG_KOFI_BENCH=m"

DEFAULT_PROGRAMS = ["fi_info", "fi_pingpong"]

# Programs of tests over the libfabric of userspace
PEERS = {"kofi-peer", "kofi-9pd", "kofi-9p-peer", "kofi-9p-faults",
         "kofi-blk-peer", "kofi-blk-target", "kofi-atomic-peer",
         "kofi-again-peer", "kofi-porting"}


def build(flavour, flags=RELAXED, jobs=CPUS):
    """Our modules, or programs ("tools", "peer"), through the Makefile."""
    log = REPORT / "logs" / f"build-{flavour}.log"
    what = flavour if flavour in ("tools", "peer") else "modules"
    run(["make", "-C", TOP, what, f"FLAVOUR={flavour}", "KDIR=", flags,
         f"JOBS=-j{jobs}"], log, f"make {what} FLAVOUR={flavour}")


def build_job(flavour, report):
    """A build as strict as its kernel allows, in one process, as there are
    other jobs; what only warns still runs."""
    name = f"build@{flavour}"

    def work():
        began = time.monotonic()
        worked, bad = True, []
        if flavour in ("stock", "newest", "debug", "uml-smp"):
            worked, bad = checks.warnings(flavour)
        else:
            try:
                build(flavour, jobs=1)
            except Fail as e:
                worked, bad = False, [str(e), *errors_in(e.log).splitlines()]
        report.add(name, "not" if bad else "ok", bad)
        if not bad:
            say(f"  PASS  {name} ({time.monotonic() - began:.0f} s)")
        return worked or lenient(flavour)
    return Job(name, 1, work, guess=20 if flavour in ("tools", "peer")
               else 200)


def programs(wanted):
    """What is to be built besides modules for these scenarios."""
    return ["tools"] + ["peer"] * any(PEERS & set(s.programs) for s in wanted)


def lenient(flavour):
    """Build with warnings let pass; whether there are modules now."""
    try:
        build(flavour)
    except Fail:
        return False
    return True


def others(wanted):
    """Fetch the programs of other releases that these scenarios call."""
    for release in {packages.split(p)[1] for s in wanted
                    for p in s.programs} - {None}:
        packages.root(release)


def kernels(flavours):
    for flavour in flavours:
        k = kernel.get(flavour)
        say(f"  kernel {flavour}: {k.release}")


def scenario_job(parts, flavour, report, loud=False, boot=None, soak=False):
    r = scenarios.Run(parts, kernel.get(flavour), report, loud, name=boot,
                      soak=soak)

    def work():
        if loud:
            say(f"\n== {r.s.keys.get('title', r.name)} ({r.name})")
        good = r()
        for line in r.lines:
            say(line)
        return good
    # machines mostly wait, for each other or for a timer: two pairs fit
    return Job(r.name, CPUS if r.s.alone else 1, work, r.where,
               [f"build@{what}" for what in (*programs(r.parts), flavour)]
               + [previous.name(flavour)] * any(s.previous for s in r.parts))


# The unit tests, and the contract's over RDMA devices
UNITS = {"test": [("", "uml"), ("", "debug"), ("rxe", "uml"), ("siw", "uml"),
                  ("dma", "uml"), ("rdm", "uml"), ("rxm", "uml"),
                  ("dgram", "uml"), ("", "uml-smp"), ("rxe", "uml-smp"),
                  ("siw", "uml-smp"), ("rdm", "uml-smp"), ("rxm", "uml-smp")],
         "soak": [("all", "debug"), ("rxe", "debug"), ("siw", "debug"),
                  ("dma", "debug"), ("rxe-rxm", "uml"), ("siw-rxm", "uml"),
                  ("", "uml-smp"), ("rxe", "uml-smp"), ("siw", "uml-smp"),
                  ("rdm", "uml-smp"), ("rxm", "uml-smp")]}


def kunit_name(device, flavour):
    return f"kunit-{device}@{flavour}" if device else f"kunit@{flavour}"


def kunit_job(device, flavour, report, part):
    name = kunit_name(device, flavour)
    runs = []
    return Job(name, 1,
               lambda: kunit_.run(flavour, report, runs=runs, device=device,
                                  part=part),
               lambda: runs[0].where() if runs else name,
               [f"build@{flavour}"], guess=600)


def chosen(name, only):
    return any(fnmatch.fnmatch(n, glob) for glob in only.split()
               for n in (name, name.split("@")[0]))


# --- the targets -----------------------------------------------------------

def finish(jobs, report):
    """Run the jobs; where the time went, and the exit status."""
    say(f"{clock()} {len(jobs)} parts; consoles are saved below "
        f"{(REPORT / 'logs').relative_to(TOP)}")
    try:
        run_all(jobs, report)
    finally:
        lines = schedule.table(jobs)
        times = report.path.with_suffix(".times")
        times.write_text("\n".join(lines) + "\n")
        for line in lines:
            say(f"  {line}")
    say(f"{clock()} done; the report is {report.path.relative_to(TOP)}, "
        f"this table {times.relative_to(TOP)}")
    return report.finish()


def check(*_):
    with alone():
        return checked()


def checked():
    report = Report(REPORT / "check.tap")
    kernels(["stock", "debug"])
    return finish([build_job("stock", report), build_job("debug", report),
                   *checks.jobs(report)], report)


def docs(*_):
    bad = checks.pages()
    print("\n".join(bad or [f"  {BUILD / 'html/index.html'}"]))
    return bool(bad)


def kunit(suite="*"):
    flavour = os.environ.get("KERNEL") or "uml"
    report = Report(REPORT / f"kunit-{flavour}.tap")
    kernel.get(flavour)
    build(flavour)
    kunit_.run(flavour, report, suite or "*",
               device=os.environ.get("DEVICE", ""))
    return report.finish()


def test(only="*"):
    with alone():
        return everything("test", "tests.tap", only or "*")


def soak(only="*"):
    with alone():
        return everything("soak", "soak.tap", only or "*")


def everything(tag, name, only):
    report = Report(REPORT / name)
    wanted = [(s, k) for s, k in scenarios.find(tag)
              if chosen(f"{s.name}@{k}", only)]
    units = [(d, k) for d, k in UNITS[tag] if chosen(kunit_name(d, k), only)]
    if tag == "test":
        checking = [j for j in checks.jobs(report)
                    if chosen("check", only) or chosen(j.name, only)]
    else:
        checking = [j for j in [install.job(report), tree.job(report),
                                races.job(report), *debs.jobs(report)]
                    if chosen(j.name, only)]
    needed = {k for _, k in wanted} | {k for _, k in units} | {
        b.split("@")[1] for j in checking for b in j.after}
    if tag == "test" and chosen("check", only):
        needed |= {"stock", "debug"}
    if not needed and not checking:
        raise Fail(f"nothing is called '{only}'; there are "
                   + ("check, " if tag == "test" else
                      f"{install.JOB}, {tree.NAME}, {races.NAME}, "
                      + "".join(f"{debs.NAME}@{d}, " for d in debs.RELEASES))
                   + ", ".join(kunit_name(d, k) for d, k in UNITS[tag])
                   + " and the scenarios "
                   + ", ".join(f"{s.name}@{k}" for s, k in
                               scenarios.find(tag)), status=2)
    say(f"{clock()} kernels")
    order = [k for k in kernel.FLAVOURS if k in needed]
    kernels(order)
    others(s for s, _ in wanted)
    jobs = [build_job(f, report) for f in
            [*programs(s for s, _ in wanted), *order]]
    jobs += [previous.job(k) for k in order
             if any(s.previous and f == k for s, f in wanted)]
    jobs += checking
    jobs += [kunit_job(d, k, report, tag == "test") for d, k in units]
    jobs += [scenario_job(parts, k, report, boot=name, soak=tag == "soak")
             for name, parts, k in scenarios.boots(wanted)]
    return finish(jobs, report)


def demo(only="*"):
    report = Report(REPORT / "demo.tap")
    flavour = os.environ.get("KERNEL_RELEASE") or "stock"
    wanted = [s for s, k in scenarios.find("demo") if k == "stock"
              and chosen(f"{s.name}@{flavour}", only or "*")]
    if not wanted:
        raise Fail(f"no scenario with the tag demo is called '{only}'",
                   status=2)
    wanted.sort(key=lambda s: s.keys.get("last") == "yes")
    kernels([flavour])
    others(wanted)
    say(f"{clock()} building the modules and the kofi tool")
    for what in [*programs(wanted), flavour]:
        build(what)
    for s in wanted:
        run_all([scenario_job(s, flavour, report, loud=True)], report)
    say("")
    return report.finish()


def adhoc(flavour):
    """Ready kernel, built modules and tools for a machine by hand."""
    k = kernel.get(flavour)
    for what in (flavour, "tools"):
        build(what)
    programs = [p for p in (*DEFAULT_PROGRAMS, "rdma", "ss", "tc",
                            "strace") if shutil.which(p)]
    if packages.there(packages.STABLE):
        programs += [f"{p}@{packages.STABLE}" for p in DEFAULT_PROGRAMS]
    stock = "crc32_generic? rdma_rxe ib_uverbs rdma_ucm veth dummy sch_netem"
    return k, {"programs": " ".join(programs),
               "modules": stock if k.modules else ""}


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
    image.payload(vm, k, [s])
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
