"""The worker processes of a launch: started when they are needed, used again, replaced when they die."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
from logging import LogRecord, getLogger

from dagflow.local.boot import ServerProcess, boot
from dagflow.local.channel import Channel, ChannelClosed
from dagflow.local.fork_server import COMMAND, FORK, KILL, REAP, REPLY, Preparation
from dagflow.local.worker import TaskAnswer, TaskRequest
from dagflow.logs import levels_set

_FORKED = ("operators", "pyarrow")
"""The packages whose modules are imported before processes fork. Others might start threads when they are imported."""


class WorkerDied(Exception):
    """A worker process has ended before its task."""


class Worker:
    """A worker process, idle or at one task. `server`: the process that it is a fork of."""

    def __init__(self, pid: int, channel: Channel, server: ServerProcess) -> None:
        self.pid = pid
        self.server = server
        self.is_killed = False
        self._channel = channel

    @property
    def is_idle(self) -> bool:
        """Return whether it waits for a task: it has not ended."""
        return not self.is_killed and self._channel.is_silent

    def run(self, request: TaskRequest) -> TaskAnswer:
        """Run a task, and handle the log records that it sends meanwhile. Raises ChannelClosed when the process ends."""
        self._channel.send(request)
        while isinstance(received := self._channel.receive(), LogRecord):
            getLogger(received.name).handle(received)
        answer: TaskAnswer = received
        return answer

    def close(self) -> None:
        """Close the channel, which ends the process unless it is at a task."""
        self._channel.close()


class WorkerPool:
    """Worker processes, and the server that forks them.

    `folder` is for files between processes: only this user can enter it, and it is removed at the end.
    """

    def __init__(self, server: ServerProcess | None = None) -> None:
        self.folder = tempfile.mkdtemp(prefix="dagflow-local-")
        self._lock = threading.Lock()
        self._idle: list[Worker] = []
        self._server = self._prepared(server or boot())

    def _prepared(self, server: ServerProcess) -> ServerProcess:
        modules = tuple(sorted(name for name in sys.modules if name.partition(".")[0] in _FORKED))
        preparation = Preparation(tuple(sys.path), modules, levels_set(), self.folder, tuple(sys.argv))
        with contextlib.suppress(ChannelClosed):  # it has ended already: the first fork says so
            Channel(server.control).send(preparation)
        server.is_prepared = True
        return server

    def take(self) -> Worker:
        """Return an idle worker process, or a new one. Raises WorkerDied."""
        with self._lock:
            while self._idle:
                worker = self._idle.pop()
                if worker.is_idle:
                    return worker
                self._reap(worker)
            if self._server.popen.poll() is not None:
                self._server.close()
                self._server = self._prepared(boot())
            ours, theirs = socket.socketpair()
            try:
                with theirs:
                    socket.send_fds(self._server.control, [COMMAND.pack(FORK, 0)], [theirs.fileno()])
                pid = _reply(self._server)
                if pid < 0:
                    raise OSError(-pid, os.strerror(-pid))
            except OSError as error:
                ours.close()
                raise WorkerDied(f"no process could be started: {error}") from error
            return Worker(pid, Channel(ours), self._server)

    def give_back(self, worker: Worker) -> None:
        """Keep a worker process for the next task."""
        with self._lock:
            self._idle.append(worker)

    def kill(self, worker: Worker) -> None:
        """Kill a worker process, whatever it does."""
        with self._lock:
            worker.is_killed = True
            with contextlib.suppress(OSError):
                worker.server.control.sendall(COMMAND.pack(KILL, worker.pid))

    def bury(self, worker: Worker) -> str:
        """Let go of a worker process that has ended, and return the reason."""
        with self._lock:
            return self._reap(worker)

    def _reap(self, worker: Worker) -> str:
        worker.close()
        try:
            worker.server.control.sendall(COMMAND.pack(REAP, worker.pid))
            return ended_with(_reply(worker.server))
        except OSError:
            return "the process that starts the worker processes has ended"

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            for worker in self._idle:
                worker.close()
            self._server.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def _reply(server: ServerProcess) -> int:
    """Wait for the reply to a command. Raises OSError."""
    data = b""
    with contextlib.suppress(OSError):
        data = server.control.recv(REPLY.size, socket.MSG_WAITALL)
    if len(data) < REPLY.size:
        raise OSError(f"the process that starts them has ended with status {server.popen.wait()}")
    number: int = REPLY.unpack(data)[0]
    return number


def ended_with(status: int) -> str:
    """Return the sentence for a process's exit status.

    >>> ended_with(3)
    'its process ended with exit status 3'
    >>> ended_with(-9)
    'its process was killed by SIGKILL, as the system does when memory runs out'
    """
    if status >= 0:
        return f"its process ended with exit status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    return f"its process was killed by {name}" + (", as the system does when memory runs out" if name == "SIGKILL" else "")
