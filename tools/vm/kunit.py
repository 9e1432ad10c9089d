# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Unit tests: all modules of tests/kunit in one machine, their KTAP read from
its console by the kernel's own parser, one result per case."""

import io
import re
import sys

import kernel
from base import BUILD, HERE, Fail, Meter, say
from image import our_modules
from report import STAMP
from scenario import Run, Scenario


# What runs where there is an RDMA device, in this order, as the contract's last
# suite takes it away; what verbs has of its own runs nowhere else.
ON_DEVICE = ["kofi_verbs_own_kunit", "kofi_rdm_kunit", "kofi_contract_kunit"]
# Where threads, softirqs and timers of two CPUs meet: queues, sockets, the contract,
# and many peers. make test has them on uml-smp, and the rest on one CPU of User-mode
# Linux, under the same checkers; cases with the attribute slow, too.
TWO_CPUS = ["kofi_queues_kunit", "kofi_sock_kunit", "kofi_rxm_kunit", "kofi_rdm_kunit",
            "kofi_contract_kunit"]
# What the debug kernel has beyond that is preemption, and references that it tracks:
# the contract meets both. all@debug is soak's.
PREEMPTED = ["kofi_contract_kunit"]
# Over devices, and over endpoints that do not connect, make test has on uml-smp the
# suites of posts, regions and shared receives, those under stress, and verbs' own
# verbs_spread; soak has all.
PART = "[cv]*[ts]_[mps][!e]*"
# A grace period takes three ticks where there are two CPUs, and the suites wait
# for thousands; the scenarios of uml-smp have them as users have.
EXPEDITED = " rcupdate.rcu_expedited=1"


def parser():
    """kunit.py's parser, silenced."""
    src, _ = kernel.source()
    sys.path.insert(0, str(src / "tools/testing/kunit"))
    import kunit_parser
    import kunit_printer
    kunit_parser.stdout = kunit_printer.Printer(io.StringIO())
    return kunit_parser


def modules(flavour):
    return [p for p in our_modules(flavour) if "tests/kunit" in str(p)]


def sections(lines):
    """(module, its console lines) between kunit.sh's marks."""
    name, got = None, []
    for line in lines:
        mark = re.search(r"vm-kunit: (begin|end) (\S+)", line)
        if mark and mark[1] == "begin":
            name, got = mark[2], []
        elif mark and name:
            yield name, got
            name = None
        elif name and STAMP.match(line):
            got.append(line)
    if name:
        yield name, got


def leaves(test, path=()):
    """(full name, test, messages) of each case or parameter below TEST; those of a
    case's first parameter stand behind the case's header, and count as the case's."""
    for sub in test.subtests:
        if sub.subtests:
            yield from leaves(sub, (*path, sub.name))
        else:
            yield (*path, sub.name), sub, sub.log or test.log


def suite_times(lines):
    """The longest suites, by the machine's clock: [(seconds, suite, cases)]."""
    found, began, cases = [], None, 0
    for line in lines:
        at = re.match(r"\[ *(\d+\.\d+)\]", line)
        text = STAMP.sub("", line)
        if not at:
            continue
        if text.startswith("vm-kunit: begin"):
            began = float(at[1])
        elif re.match(r" {4}(not )?ok \d+ ", text):
            cases += 1
        done = re.match(r"(?:not )?ok \d+ (\w+)", text)
        if done and began:
            found.append((float(at[1]) - began, done[1], cases))
            began, cases = float(at[1]), 0
    return sorted(found, reverse=True)


def full_name(path, flavour):
    """suite.case@kernel, or suite.case/parameter@kernel; the kernel's name has
    the device in front, rxe:uml, where one is tested."""
    return path[0] + "".join((".", "/", "/", "/")[min(n, 3)] + p for n, p
                             in enumerate(path[1:])) + f"@{flavour}"


def report_ktap(text, where, report, filtered=False):
    """Add every case among the lines TEXT to the report: how many there were,
    how many have failed, and the names of their suites."""
    kp = parser()
    ok = {kp.TestStatus.SUCCESS: "ok", kp.TestStatus.SKIPPED: "skip"}
    cases = failed = 0
    suites = set()
    reasons = dict(m.groups() for l in text for m in
                   [re.search(r"ok \d+ (.*) # SKIP ?(.*)$", l)] if m)
    for path, test, log in leaves(kp.parse_run_tests(text)):
        if len(path) == 1 and filtered and \
                test.status == kp.TestStatus.NO_TESTS:
            continue
        status = ok.get(test.status, "not")
        why = [STAMP.sub("", l) for l in log][-40:]
        if status == "skip":
            why = [reasons.get(test.name, "")]
        elif status == "not" and not why:
            why = [f"{test.status.name.lower()}; see the console"]
        report.add(full_name(path, where), status, why)
        cases += 1
        failed += status == "not"
        suites.add(path[0])
    return cases, failed, suites


def report_cases(lines, flavour, report, filtered):
    """Add every case on the console to the report; how many there were."""
    cases = failed = 0
    for module, text in sections(lines):
        there, bad, _ = report_ktap(text, flavour, report, filtered)
        if not there and not filtered:
            report.add(f"{module}@{flavour}", "not",
                       "no test case was seen on the console")
            bad += 1
        cases += there
        failed += bad
    return cases, failed


def run(flavour, report, suite="*", cmdline="", runs=None, device="", part=False):
    """The unit tests on one kernel whose modules are built; the Run goes into
    the list RUNS, for who wants to know how far it is. With DEVICE, rxe, siw or
    dma, the contract over a device of that kind; and over one of the kernel's
    what is verbs' own, which looks at the other end of the wire. With loop, the
    contract over the sample provider; with rdm or rxm, over endpoints of kofi_sock,
    or of kofi_rxm over it, that do not connect; with rxe-rxm or siw-rxm, of kofi_rxm
    over these devices; with dgram over datagrams of kofi_sock. The debug kernel has
    the contract, and with "all" all there is. With PART, uml-smp has what make test
    has there."""
    there = [p.stem for p in modules(flavour)]
    names = [n for n in there if n != ON_DEVICE[0]]
    if device in ("rxe", "siw"):
        names = [n for n in ON_DEVICE if n in there]
    elif device in ("dma", "loop", "rdm", "rxm", "rxe-rxm", "siw-rxm", "dgram"):
        names = ON_DEVICE[-1:]
    elif flavour == "debug" and not device:
        names = [n for n in names if n in PREEMPTED]
    elif part and flavour == "uml-smp":
        names = [n for n in names if n in TWO_CPUS]
    filtered = suite not in ("", "*")
    if flavour == "uml-smp":
        cmdline += EXPEDITED
    if part and flavour == "uml-smp" and device:
        names = [n for n in names if n != "kofi_rdm_kunit"]
        suite, filtered = PART, True
    if flavour in ("debug", "uml-smp") and not device and not filtered:
        cmdline += " kunit.filter=speed>slow"
    if not names:
        raise Fail(f"no unit test was built for {flavour}; tests/kunit and "
                   "its Kbuild should name some")
    name = f"kunit-{device}" if device else "kunit"
    device = "" if device == "all" else device
    listing = BUILD / "vm" / f"{name}.{flavour}" / "kunit.list"
    listing.parent.mkdir(parents=True, exist_ok=True)
    listing.write_text("\n".join(names) + "\n")
    scenario = Scenario(name, {"a": "run.sh"}, [listing], kernels=flavour,
                        timeout="900", smp="2", mem="1024", modules="",
                        programs="rdma" if device else "",
                        cmdline=f"kunit.filter_glob={suite} {cmdline}"
                        if filtered else cmdline)
    script = listing.parent / "run.sh"
    script.write_text((HERE / "kunit.sh").read_text())
    scenario.files.append(script)
    if device:
        (listing.parent / "device").write_text(device + "\n")
        scenario.files.append(listing.parent / "device")
    one = Run(scenario, kernel.get(flavour), report)
    if runs is not None:
        runs.append(one)
    one()
    lines = (one.logs / "a.log").read_text(errors="replace").splitlines()
    where = f"{device}:{flavour}" if device else flavour
    cases, failed = report_cases(lines, where, report, filtered)
    if Meter.current():
        Meter.current().notes += [(s, t, n) for t, s, n in suite_times(lines)
                                  if t >= 5]
    if filtered and not cases:
        raise Fail(f"no suite or case is called {suite}")
    say(f"  {'PASS' if not failed and not one.failures else 'FAIL'}  "
        f"{name}@{flavour}: {cases} cases, {failed} failed"
        f" ({one.logs}/a.log)")
    return not failed and not one.failures
