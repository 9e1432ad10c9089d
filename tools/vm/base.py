# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What every part of the machine tools uses: where things are, how an error
reaches the user, how a command is run, and the cache's locks.

Nothing here knows about kernels or machines. An error a user can act on is
raised as Fail with one sentence; vm prints it and exits non-zero.
"""

import contextlib
import fcntl
import hashlib
import os
import pathlib
import re
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
HERE = TOP / "tools" / "vm"
BUILD = TOP / "build"
REPORT = BUILD / "report"
CACHE = pathlib.Path(
    os.environ.get("KOFI_CACHE")
    or pathlib.Path(os.environ.get("XDG_CACHE_HOME")
                    or pathlib.Path.home() / ".cache") / "kofi").absolute()

# Where Debian's ccache puts compilers of its own: kernels and modules are built
# through them if it is there, and objects kept for other checkouts, too.
CCACHE = pathlib.Path("/usr/lib/ccache")
if CCACHE.is_dir():
    os.environ.update(PATH=f"{CCACHE}:{os.environ['PATH']}",
                      CCACHE_DIR=str(CACHE / "ccache"),
                      CCACHE_BASEDIR=str(TOP), CCACHE_NOHASHDIR="1")

CPUS = len(os.sched_getaffinity(0))
USUAL = 0.007           # processor seconds of the loop in slow()
START = time.monotonic()
said = START            # when something was last shown
_say_lock = threading.Lock()


class Fail(Exception):
    """The sentence shown to the user; `log` names a file with more."""

    def __init__(self, text, log=None, status=1):
        super().__init__(text)
        self.log = log
        self.status = status


def say(text):
    """One progress line."""
    global said
    with _say_lock:
        said = time.monotonic()
        print(text, flush=True)


def clock():
    return f"[{time.monotonic() - START:4.0f} s]"


def tail(path, lines=25):
    with open(path, errors="replace") as f:
        return "".join(f.readlines()[-lines:])


def errors_in(path, lines=25):
    """The interesting lines of a build's log, or its end."""
    with open(path, errors="replace") as f:
        text = f.readlines()
    hits = [n for n, l in enumerate(text)
            if re.search(r"\berror\b|warning:|\*\*\*|undefined!", l, re.I)]
    if not hits:
        return "".join(text[-lines:])
    return "".join(text[hits[0]:hits[0] + lines])


class Meter:
    """What a part of the run has come to: processor seconds of its thread and of
    the programs which that thread has started, results, and what to say of
    its time: (what, seconds, results)."""

    _mine = threading.local()

    def __init__(self):
        self.cpu = 0.0
        self.results = 0
        self.notes = []
        self._lock = threading.Lock()

    @classmethod
    def current(cls):
        return getattr(cls._mine, "meter", None)

    def __enter__(self):
        self._mine.meter = self
        self._began = time.thread_time()
        return self

    def __exit__(self, *_):
        self._mine.meter = None
        self.add(time.thread_time() - self._began)

    def helps(self, work):
        """WORK as what another thread does for the same part."""
        def helper():
            self._mine.meter = self
            work()
        return helper

    def add(self, seconds=0, results=0):
        with self._lock:
            self.cpu += seconds
            self.results += results


def wait(proc, timeout=None, meter=None):
    """As PROC's wait(); what it and its own children took goes to METER, or to
    the thread's."""
    meter = meter or Meter.current()
    if proc.returncode is None:
        try:
            fd = os.pidfd_open(proc.pid)
        except ProcessLookupError:      # another thread has waited
            return proc.wait()
        try:
            if not select.select([fd], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(proc.args, timeout)
        finally:
            os.close(fd)
        try:
            stat = pathlib.Path(f"/proc/{proc.pid}/stat").read_text()
            if meter:
                meter.add(sum(map(int, stat.rsplit(")", 1)[1].split()[11:15]))
                          / os.sysconf("SC_CLK_TCK"))
        except OSError:
            pass
    return proc.wait()


def call(cmd, timeout=None, quiet=False, **kw):
    """(exit status, what CMD prints, errors too unless QUIET); None is the
    status of what was ended for its time."""
    with tempfile.TemporaryFile() as out, subprocess.Popen(
            [str(c) for c in cmd], stdout=out, stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL if quiet else subprocess.STDOUT,
            **kw) as proc:
        try:
            status = wait(proc, timeout)
        except BaseException as e:
            proc.kill()
            wait(proc)
            if not isinstance(e, subprocess.TimeoutExpired):
                raise
            status = None
        out.seek(0)
        return status, out.read().decode(errors="replace")


def run(cmd, log=None, what=None, env=None, cwd=None, beat=15):
    """Run CMD with its output in the file LOG; a line every BEAT seconds."""
    what = what or cmd[0]
    log = pathlib.Path(log) if log else None
    if log:
        log.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with open(log or os.devnull, "w") as out:
        proc = subprocess.Popen([str(c) for c in cmd], stdout=out,
                                stderr=subprocess.STDOUT, cwd=cwd,
                                stdin=subprocess.DEVNULL,
                                env={**os.environ, **(env or {})})
        try:
            while True:
                try:
                    status = wait(proc, beat)
                    break
                except subprocess.TimeoutExpired:
                    say(f"    ... {what}: "
                        f"{time.monotonic() - began:.0f} s")
        except BaseException:
            proc.terminate()
            wait(proc)
            raise
    if status:
        raise Fail(f"{what} failed", log)


def output(cmd, **kw):
    """What CMD prints; Fail if it fails."""
    try:
        return subprocess.run([str(c) for c in cmd], check=True, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              stdin=subprocess.DEVNULL, **kw).stdout
    except FileNotFoundError:
        raise Fail(f"the program {cmd[0]} is missing") from None
    except subprocess.CalledProcessError as e:
        last = (e.stderr.strip().splitlines() or ["no message"])[-1]
        raise Fail(f"{cmd[0]} failed: {last}") from None


def digest(*parts):
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


LOOK = 60               # seconds for which a processor is believed to be as fast
_processor = _looked = 0.0


def slow():
    """How many times as long things take here now as they do where nothing else
    runs on a usual processor; at least 1. All time limits are multiplied by it:
    those of machines in scenario.py, and through the kernel parameter vm.slow
    those within."""
    global _processor, _looked
    if not _processor or time.monotonic() > _looked + LOOK:
        took = []
        for _ in range(5):
            began = time.thread_time()
            sum(n * n for n in range(200000))
            took.append(time.thread_time() - began)
        _processor = max(min(took) / USUAL, 1)
        _looked = time.monotonic()
    return _processor * max(os.getloadavg()[0] / CPUS, 1)


@contextlib.contextmanager
def lock(name, where=CACHE):
    """Held by one process at a time; the kernel frees it if we die."""
    try:
        where.mkdir(parents=True, exist_ok=True)
        handle = open(where / f".lock-{name}", "w")
    except OSError as e:
        raise Fail(f"the folder {where} cannot be written ({e.strerror})"
                   + ("; set KOFI_CACHE to another" if where == CACHE else "")
                   ) from None
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"    waiting for another run that is at {name} in {where}")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def alone():
    """No other test or check runs in this checkout meanwhile: each builds what
    the other would boot."""
    BUILD.mkdir(exist_ok=True)
    with open(BUILD / ".lock-run", "w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Fail(f"a test or check runs in {TOP} already; wait for it, "
                       "or use another checkout", status=2) from None
        yield


@contextlib.contextmanager
def fresh_dir(final):
    """A temporary folder that becomes FINAL if the block succeeds.

    Call with the lock of FINAL's kind held: what an interrupted run left
    beside it is removed.
    """
    final.parent.mkdir(parents=True, exist_ok=True)
    for stale in final.parent.glob(final.name + ".tmp*"):
        shutil.rmtree(stale, ignore_errors=True)
    temp = final.with_name(final.name + ".tmp")
    temp.mkdir()
    try:
        yield temp
        temp.rename(final)
    except BaseException:
        shutil.rmtree(temp, ignore_errors=True)
        raise
