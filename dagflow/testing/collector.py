"""A sink that keeps what it gets, wherever its tasks run on this machine."""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from typing import Any, Generic

import attrs
from typing_extensions import TypeVar

from dagflow.model.operator.base import Operator
from dagflow.model.operator.context import OperatorContext
from dagflow.model.operator.ports import InputPort
from dagflow.model.operator.state import WindowState
from dagflow.runtime.stage.by_value import dumps

T = TypeVar("T", default=Any)

_CHUNK = 1_000


@attrs.define
class Collector(Operator, Generic[T]):
    """Keeps the records that it gets; `records` has them once their windows are decided. For tests, on both runners.

    What tasks keep lies in a folder of its own until the collector is forgotten, and becomes visible with the window's decision:
    a record of a failed or repeated task is never seen. It is a sink as any other, so it lives on this machine.

    >>> from dagflow.testing import Collector, run_operator
    >>> seen = Collector[str]()
    >>> run_operator(seen, {"input": ["a", "b"]})
    {}
    >>> seen.records
    ['a', 'b']
    """

    folder: str = attrs.field(default="", kw_only=True)

    input = InputPort[T]()

    waiting = WindowState[list[Any]](factory=list)

    def __attrs_post_init__(self) -> None:
        if not self.folder:
            self.folder = tempfile.mkdtemp(prefix="dagflow-collector-")
            weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)

    def private_folders(self) -> list[str]:
        """The folder that keeps the records."""
        return [self.folder]

    @property
    def records(self) -> list[T]:
        """All records so far: by window, within it by partition, within that as they came."""
        found: list[T] = []
        for name in sorted(n for n in os.listdir(self.folder) if n[0] not in "._"):
            with open(os.path.join(self.folder, name), "rb") as file:
                while file.peek(1):
                    found += pickle.load(file)  # written by our own tasks, in a folder of our own
        return found

    def clear(self) -> None:
        """Forgets what was collected so far."""
        for name in os.listdir(self.folder):
            if name[0] not in "._":
                os.remove(os.path.join(self.folder, name))

    def setup(self, context: OperatorContext) -> None:
        """Keeps the context, which makes files."""
        self._context = context

    @input.stream
    def keep(self, records: Iterator[T]) -> None:
        """Keeps many records."""
        self.waiting.extend(records)
        if len(self.waiting) >= _CHUNK:
            self._write()

    def end_window(self) -> None:
        """Writes what is left."""
        self._write()

    def _write(self) -> None:
        if self.waiting:
            context = self._context
            file = context.create_file(self.folder, f"{context.window:010d}-{context.name}-{context.partition:06d}")
            # Not as plain data: tests compare records of any type, and want tuples back as tuples. cloudpickle gives a class
            # that travelled by value back as the class that it was.
            file.write(dumps(self.waiting))
            file.records(len(self.waiting))
            self.waiting = []
