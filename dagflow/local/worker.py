"""The loop of a worker process: one task after the other, until the launch closes the channel."""

from __future__ import annotations

import contextlib
import copy
import ctypes
import logging
import logging.handlers
import os
import queue
import signal
import sys
from collections.abc import Mapping

import attrs

from dagflow.local.channel import Channel, ChannelClosed
from dagflow.local.row_files import RowWriter, StoredRow, channels
from dagflow.logs import LogFields, set_levels, write_whole_lines
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.runtime.stage.failure import describe
from dagflow.runtime.stage.program import TaskSpec
from dagflow.runtime.task.execute import execute, outcome_bytes

_PR_SET_PDEATHSIG = 1  # of Linux's prctl


@attrs.frozen(kw_only=True)
class TaskRequest:
    """An attempt of a task, as the launch sends it to a worker process.

    Attributes:
        program: of the task's stage.
        attempt, again: as in `execute`.
        levels: by the tag of an exchange, the level that it leads to; empty: the job has no exchanges.
        rows: the rows that arrive over exchanges.
        rows_path: the file for those that it sends.
    """

    program: bytes
    spec: TaskSpec
    run_folder: str
    durable: bool
    attempt: str
    again: bool
    levels: Mapping[int, int] = attrs.field(factory=dict)
    rows: tuple[StoredRow, ...] = ()
    rows_path: str = ""


@attrs.frozen
class TaskAnswer:
    """The answer to a request: the pickled outcome and the rows sent, or why there is no outcome."""

    outcome: bytes = b""
    rows: tuple[StoredRow, ...] = ()
    failure: str = ""


def serve(channel: Channel, parent: int, levels: Mapping[str, int]) -> None:
    """Run tasks until the channel is closed. `levels`: of the launch's loggers, by name."""
    die_with(parent)
    write_whole_lines()
    send_log_records(channel, levels)
    if "numpy.random" in sys.modules:  # its state is that of all forks
        sys.modules["numpy.random"].seed()
    with contextlib.suppress(ChannelClosed):
        while True:
            channel.send(answered(channel.receive()))


def answered(request: TaskRequest) -> TaskAnswer:
    """Run a task. An exception that is not in the outcome is the failure of this attempt, as on Spark."""
    log = WindowLog.open(request.run_folder, request.durable)
    try:
        with RowWriter(request.rows_path, request.levels) as writer:
            own = channels(request.rows, writer) if request.levels else None
            outcome = execute(request.program, request.spec, log, request.attempt, request.again, own)
    except Exception as error:  # noqa: BLE001  # of the store, say: the launch decides
        return TaskAnswer(failure=describe(error))
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
    return TaskAnswer(outcome_bytes(outcome), tuple(writer.rows))


def die_with(parent: int) -> None:
    """Have the system kill this process when `parent` ends, where it can: on Linux."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def send_log_records(channel: Channel, levels: Mapping[str, int]) -> None:
    """Send the records of all loggers to the launch, whose handlers and filters get them."""
    set_levels(levels)
    logging.root.handlers[:] = [_Sending(channel)]


class _Sending(logging.handlers.QueueHandler):
    """Sends records."""

    def __init__(self, channel: Channel) -> None:
        super().__init__(queue.SimpleQueue())  # stays empty
        self._channel = channel
        self.addFilter(LogFields())  # only here is it known which operator runs

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        """Return a copy that pickles. The base class would put the exception into the message."""
        prepared = copy.copy(record)
        prepared.msg, prepared.args = record.getMessage(), None
        if record.exc_info:
            prepared.exc_text, prepared.exc_info = logging.Formatter().formatException(record.exc_info), None
        return prepared

    def enqueue(self, record: logging.LogRecord) -> None:
        self._channel.send(record)
