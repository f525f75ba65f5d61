"""The process that worker processes are forks of. It imports what tasks need, once, and never runs user code.

It has one thread, which is what makes forking it safe: no other thread can hold a lock at that moment. It does not import the
launch's main module, so that scripts need no main guard, and notebooks work. `boot` starts it.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import importlib
import os
import shutil
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Mapping, Sequence

import attrs

from dagflow.local.channel import Channel, ChannelClosed
from dagflow.local.worker import serve
from dagflow.runtime.task.execute import keep_memory

COMMAND = struct.Struct("=cq")
REPLY = struct.Struct("=q")
FORK, KILL, REAP = b"F", b"K", b"R"


@attrs.frozen
class Preparation:
    """The state of the launch that the server takes over before its first fork.

    Attributes:
        path: of Python.
        modules: to be imported.
        levels: of the launch's loggers.
        folder: is removed when the launch has ended.
        arguments: of the launch's command line, for user code that looks.
    """

    path: tuple[str, ...]
    modules: tuple[str, ...]
    levels: Mapping[str, int]
    folder: str
    arguments: tuple[str, ...]


def main(descriptor: int) -> None:
    """Fork, kill and reap worker processes on command, until the launch has ended."""
    control = socket.socket(fileno=descriptor)
    try:
        prepared: Preparation = Channel(control).receive()
    except ChannelClosed:
        return
    sys.path[:], sys.argv[:] = prepared.path, prepared.arguments
    for name in prepared.modules:
        with contextlib.suppress(Exception):  # then the task that needs it says why
            importlib.import_module(name)
    keep_memory()
    gc.collect()
    gc.freeze()  # no collection writes to pages that forks share
    workers: set[int] = set()
    try:
        while command := _next(control):
            kind, number, descriptors = command
            if kind == FORK:
                pid = _fork(control, descriptors, prepared.levels)
                workers |= {pid} if pid > 0 else set()
                control.sendall(REPLY.pack(pid))
            elif kind == KILL and number in workers:
                kill_group(number)
            elif kind == REAP and number in workers:
                workers.remove(number)
                kill_group(number)  # those that it has started; a process that is ending keeps its own status
                control.sendall(REPLY.pack(os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])))
    except OSError:  # the launch has ended
        pass
    finally:
        for pid in workers:
            kill_group(pid)
        for pid in workers:
            os.waitpid(pid, 0)
        shutil.rmtree(prepared.folder, ignore_errors=True)
    sys.stderr.flush()
    os._exit(0)  # the launch waits, and nothing is left to do


def _next(control: socket.socket) -> tuple[bytes, int, Sequence[int]] | None:
    data, descriptors, _, _ = socket.recv_fds(control, COMMAND.size, 1, socket.MSG_WAITALL)
    return (*COMMAND.unpack(data), descriptors) if len(data) == COMMAND.size else None


def _fork(control: socket.socket, descriptors: Sequence[int], levels: Mapping[str, int]) -> int:
    """Fork a worker process that talks over a socket. Return its id, or the error's number, negative."""
    parent = os.getpid()
    try:
        pid = os.fork()
    except OSError as error:
        pid = -(error.errno or errno.EAGAIN)
    if pid == 0:
        status = 1
        try:
            os.setpgid(0, 0)  # what user code starts can be killed with it
            control.close()
            serve(Channel(socket.socket(fileno=descriptors[0])), parent, levels)
            status = 0
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
        except BaseException:  # noqa: BLE001  # the process ends here
            traceback.print_exc()
        finally:
            with contextlib.suppress(Exception):
                sys.stderr.flush()
            os._exit(status)
    with contextlib.suppress(OSError):  # whichever of both comes first
        os.setpgid(pid, pid)
    for descriptor in descriptors:
        os.close(descriptor)
    return pid


def kill_group(pid: int) -> None:
    """Kill a worker process that has not been reaped yet, and the processes that it has started."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(OSError):
            kill(pid, signal.SIGKILL)
