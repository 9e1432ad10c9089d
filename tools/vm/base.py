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
import shutil
import subprocess
import sys
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

CPUS = len(os.sched_getaffinity(0))
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
                    status = proc.wait(beat)
                    break
                except subprocess.TimeoutExpired:
                    say(f"    ... {what}: "
                        f"{time.monotonic() - began:.0f} s")
        except BaseException:
            proc.terminate()
            proc.wait()
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
