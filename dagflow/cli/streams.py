"""The standard streams of the process, so that a command ends well when one is closed, full, or a pipe that ends early."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable
from typing import Any, TextIO

from dagflow.cli.errors import OutputLost
from dagflow.errors import DagflowError
from dagflow.errors.base import error

OUT, ERR = 1, 2


@error
class OutputClosed(DagflowError, BrokenPipeError):
    """The reader of standard output is gone. Nothing is retried, and nothing is printed."""


def open_streams() -> None:
    """Replace `sys.stdout` and `sys.stderr`. Closed descriptors are opened, so that no file of a run gets their numbers.

    Standard output raises OutputClosed and OutputLost. What standard error cannot show is lost: it does not change how a
    command ends.
    """
    for number, mode in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):  # so using a closed stdin or stdout still fails
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # gets the lowest number, which is this one
    sys.stdout = _stream(sys.stdout, OUT, _refuse)
    sys.stderr = _stream(sys.stderr, ERR, _forget)


def discard_output() -> None:
    """Write nothing more to standard output, also when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), OUT)


def _refuse(problem: OSError, size: int) -> int:
    if isinstance(problem, BrokenPipeError):
        raise OutputClosed from problem
    raise OutputLost("it is closed" if problem.errno == errno.EBADF else problem.strerror or str(problem)) from problem


def _forget(problem: OSError, size: int) -> int:
    return size


def _stream(before: TextIO | None, number: int, on_error: Callable[[OSError, int], int]) -> TextIO:
    raw = _Descriptor(number, on_error)
    is_unbuffered = isinstance(before, io.TextIOWrapper) and before.write_through
    return io.TextIOWrapper(
        raw if is_unbuffered else io.BufferedWriter(raw),  # as Python itself does
        encoding="utf-8" if before is None else before.encoding,
        errors="backslashreplace",  # a terminal that cannot show → must not fail
        line_buffering=number == ERR or raw.isatty(),
        write_through=is_unbuffered,
    )


class _Descriptor(io.FileIO):
    """A file descriptor whose errors are handled by `on_error`, which gets the error and the number of bytes."""

    def __init__(self, number: int, on_error: Callable[[OSError, int], int]) -> None:
        super().__init__(number, "w", closefd=False)
        self._on_error = on_error

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as problem:
            return self._on_error(problem, memoryview(data).nbytes)
