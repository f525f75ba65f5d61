"""The start of the fork server: a fresh Python, or a fork of a command that has not run user code yet."""

from __future__ import annotations

import contextlib
import errno
import gc
import importlib
import os
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from typing import Protocol

import attrs

_BOOT = "import sys; sys.path[:] = sys.argv[2:]; from dagflow.local.fork_server import main; main(int(sys.argv[1]))"
_STDERR = 2
SINGLE_THREADED = {
    # Of numpy's and Arrow's pools: with one thread, none is started. And a process for each core is enough to use them all.
    "OMP_NUM_THREADS": "1",
    # Arrow's jemalloc returns memory in the background, even where Arrow uses another allocator.
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
"""The variables that keep libraries from starting threads when they are imported. What the user has set comes first."""


_COMMON = ("pyarrow.compute", "operators.readers.block_reader", "dagflow.local.fork_server")
"""The modules that a launch and its tasks need in any case."""


class ChildProcess(Protocol):
    """The methods of `subprocess.Popen` that the owner of the server calls."""

    @property
    def pid(self) -> int:
        """Its id."""
        ...

    def poll(self) -> int | None:
        """Return its status once it has ended, None before."""
        ...

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended. Raises TimeoutExpired."""
        ...

    def kill(self) -> None:
        """Kill it."""
        ...


@attrs.define(eq=False)
class ForkedProcess:
    """A fork of this process. `returncode`: its status once it has ended, as of `subprocess.Popen`."""

    pid: int
    returncode: int | None = None

    def poll(self) -> int | None:
        """See `ChildProcess.poll`."""
        return self._reap(os.WNOHANG)

    def wait(self, timeout: float | None = None) -> int:
        """See `ChildProcess.wait`."""
        if timeout is None:
            status = self._reap(0)
            assert status is not None
            return status
        end = time.monotonic() + timeout
        while (status := self.poll()) is None:
            if time.monotonic() >= end:
                raise subprocess.TimeoutExpired("the fork server", timeout)
            time.sleep(0.001)
        return status

    def kill(self) -> None:
        """See `ChildProcess.kill`."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def _reap(self, options: int) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, options)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode


@attrs.define(eq=False)
class ServerProcess:
    """The process of the fork server, and this end of its control socket: the server ends when it is closed.

    `is_prepared`: it may have forked.
    """

    popen: ChildProcess
    control: socket.socket
    is_prepared: bool = False

    def close(self) -> None:
        """End the server. It kills all worker processes first."""
        self.control.close()
        if not self.is_prepared:
            self.popen.kill()  # it is still importing: a mistake in the application is shown at once
        try:
            self.popen.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.popen.kill()  # on Linux, its worker processes end with it
            self.popen.wait()


def boot() -> ServerProcess:
    """Start the server, and do not wait: it imports what tasks need while the launch plans its first window."""
    ours, theirs = socket.socketpair()
    with theirs:
        popen = subprocess.Popen(
            # -P: what lies in the current folder must not take the place of modules
            [sys.executable, "-P", "-c", _BOOT, str(theirs.fileno()), *sys.path],
            stdin=subprocess.DEVNULL,
            stdout=_STDERR,  # standard output is the report's
            env={**SINGLE_THREADED, **os.environ},
            pass_fds=[theirs.fileno()],
            start_new_session=True,  # Ctrl-C is for the launch
        )
    return ServerProcess(popen, ours)


def boot_as_fork() -> ServerProcess:
    """Start the server as a fork of this process, which saves it all imports. For a command, before it runs user code.

    Only where this process has one thread, as the server must have; else, and where that cannot be told, it is a fresh Python.
    """
    with single_threaded():
        for name in _COMMON:
            importlib.import_module(name)
    if not _has_one_thread():
        return boot()
    ours, theirs = socket.socketpair()
    with theirs:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(AttributeError, OSError, ValueError):  # closed
                stream.flush()  # else both would write it
        gc.freeze()  # for the pages that both share
        pid = os.fork()
        if pid == 0:
            ours.close()
            _serve(theirs)
    gc.unfreeze()
    return ServerProcess(ForkedProcess(pid), ours)


@contextlib.contextmanager
def single_threaded() -> Iterator[None]:
    """Keep libraries that are imported meanwhile from starting threads."""
    added = SINGLE_THREADED.keys() - os.environ.keys()
    os.environ.update({name: SINGLE_THREADED[name] for name in added})
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


def _has_one_thread() -> bool:
    """Return whether this process has one thread, Python's or not; False where the system does not say."""
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False


def _serve(control: socket.socket) -> None:
    """Be the server, in the fork."""
    try:
        os.setsid()  # Ctrl-C is for the launch
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(_STDERR, 1)  # standard output is the report's
        for name, value in SINGLE_THREADED.items():
            os.environ.setdefault(name, value)  # for what tasks start
        importlib.import_module("dagflow.local.fork_server").main(control.detach())
    except BaseException:  # noqa: BLE001  # the process ends here
        traceback.print_exc()
    os._exit(errno.EIO)
