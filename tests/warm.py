"""Fork servers of the local runner, made in a moment: each is a fork of one process that has imported everything already.

A fresh fork server takes a second of processor time for its imports, and each of its worker processes another one for those of a
test's module (pytest, Hypothesis, DuckDB). Most tests are about what workers do, not about how their server starts; tests/local
starts it as launches do, and so do all launches that are commands.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

import attrs

from dagflow.local import boot
from dagflow.local.channel import Channel, ChannelClosed

_BOOT = "import sys; sys.path[:] = sys.argv[2:]; from tests.warm import main; main(int(sys.argv[1]))"
_MODULES = (
    *("pytest", "hypothesis", "hypothesis.strategies", "duckdb", "pandas", "pyarrow.acero", "pyarrow.compute", "pyarrow.dataset"),
    *("pyarrow.parquet", "dagflow.local.fork_server", "dagflow.testing", "operators"),
)
"""The modules that workers need, or that modules of tests import."""
_STDERR = 2


@attrs.frozen
class _Request:
    """A server to be forked: the state that a fresh process would get from this one."""

    folder: str
    environment: Mapping[str, str]


class _Warm:
    """The process that servers are forks of, as the tests see it."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._lock = threading.Lock()
        ours, theirs = socket.socketpair()
        with theirs:
            self.popen = subprocess.Popen(
                [sys.executable, "-P", "-c", _BOOT, str(theirs.fileno()), *sys.path],
                stdin=subprocess.DEVNULL,
                env={**boot.SINGLE_THREADED, **os.environ},
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._control, self._channel = ours, Channel(ours)
        atexit.register(self.close)

    def boot(self) -> boot.ServerProcess:
        """Fork a server."""
        ours, theirs = socket.socketpair()
        with self._lock, theirs:
            self._channel.send(_Request(os.getcwd(), {**boot.SINGLE_THREADED, **os.environ}))
            socket.send_fds(self._control, [b"F"], [theirs.fileno(), _STDERR])
            return boot.ServerProcess(_ForkedElsewhere(self._channel.receive(), self), ours)

    def status_of(self, pid: int) -> int:
        """Return the status of a server that has ended."""
        with self._lock:
            self._channel.send(pid)
            status: int = self._channel.receive()
            return status

    def close(self) -> None:
        """End the process, unless this is a fork of its owner."""
        if self.owner == os.getpid():
            self._control.close()
            self.popen.wait()


class _ForkedElsewhere:
    """A child of the warm process, as `ChildProcess` of `dagflow.local.boot`."""

    def __init__(self, pid: int, warm: _Warm) -> None:
        self.pid, self._warm = pid, warm
        self.returncode: int | None = None
        self._descriptor = os.pidfd_open(pid)

    def poll(self) -> int | None:
        return self._ended_within(0)

    def wait(self, timeout: float | None = None) -> int:
        status = self._ended_within(None if timeout is None else timeout * 1_000)
        if status is None:
            raise subprocess.TimeoutExpired("the fork server", timeout or 0)
        return status

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def _ended_within(self, milliseconds: float | None) -> int | None:
        if self.returncode is None:
            poll = select.poll()
            poll.register(self._descriptor, select.POLLIN)
            if poll.poll(milliseconds):
                self.returncode = self._warm.status_of(self.pid)
                os.close(self._descriptor)
        return self.returncode


_warm: _Warm | None = None


def warm_server() -> boot.ServerProcess:
    """Return a fork server, in the place of `boot.boot`. A fork of the tests, which may be killed, gets a fresh one."""
    global _warm
    if not hasattr(os, "pidfd_open") or (_warm is not None and _warm.owner != os.getpid()):
        return boot.boot()
    if _warm is None:
        _warm = _Warm()
    return _warm.boot()


def main(descriptor: int) -> None:
    """Be the warm process: fork servers, and tell how they ended."""
    operators: Any = importlib.import_module("operators")
    for name in _MODULES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for name in operators.__all__:
        getattr(operators, name)
    threads = len(os.listdir("/proc/self/task"))
    assert threads == 1, f"{threads} threads: no process may fork"
    gc.collect()
    gc.freeze()
    control = socket.socket(fileno=descriptor)
    channel = Channel(control)
    with contextlib.suppress(ChannelClosed):
        while True:
            received: Any = channel.receive()
            if isinstance(received, int):
                channel.send(os.waitstatus_to_exitcode(os.waitpid(received, 0)[1]))
                continue
            _, (server, errors), _, _ = socket.recv_fds(control, 1, 2)
            pid = os.fork()
            if pid == 0:
                control.close()
                os.dup2(errors, _STDERR)
                os.close(errors)
                os.chdir(received.folder)
                os.environ.clear()
                os.environ.update(received.environment)
                boot._serve(socket.socket(fileno=server))
            os.close(server)
            os.close(errors)
            channel.send(pid)
