"""A whole application in a test, and a sink that keeps what reaches it."""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from typing import Any, ClassVar, Generic

import attrs
from typing_extensions import TypeVar

from dagflow.launching.launch import launch
from dagflow.model.operator.base import Operator
from dagflow.model.operator.context import OperatorContext
from dagflow.model.operator.ports import InputPort
from dagflow.model.operator.state import WindowState
from dagflow.runtime.run_report import RunReport
from dagflow.runtime.stage.by_value import dumps
from dagflow.testing.splittable import equal


def run_dag(populate_dag: Any, settings: object = None, runner: str = "local", **options: Any) -> RunReport:
    r"""Run an application until all its input is read, and return the report. Takes what `launch` takes.

    Args:
        populate_dag: the function that fills the DAG, or what the command line would name.
        settings: an object of its Settings class, or a mapping of keys as for `-D`.
        runner: `local` (in this process, without a JVM) or `spark`.
        options: settings of the run: `max_windows`, `fresh`, `durability`…

    Raises what ends the run. By default nothing is synced to disk: tests do not have to survive power cuts.

    >>> import pathlib, tempfile
    >>> from dagflow.testing import Collector
    >>> from operators import BlockReader, FileSplitterInput
    >>> lines = Collector()
    >>> def populate_dag(dag, conf):
    ...     files = dag.add_operator("files", FileSplitterInput(files=conf["input"]))
    ...     reader = dag.add_operator("reader", BlockReader())
    ...     dag.add_operator("lines", lines)
    ...     dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
    ...     dag.add_stream("text", reader.messages, lines.input)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "a.txt").write_text("one\ntwo\n")
    ...     run_dag(populate_dag, {"input": folder}).status
    'done'
    >>> [line.record for line in lines.records]
    ['one', 'two']
    """
    return launch(populate_dag, settings, runner=runner, **{"durability": "process", **options}).report


T = TypeVar("T", default=Any)

_CHUNK = 1_000


@attrs.define
class Collector(Operator, Generic[T]):
    """A sink that keeps its records; `records` has them once their windows are decided. For tests, on both runners.

    Records of tasks lie in a folder of their own as long as the collector lives, and become visible with the window's decision:
    a record of a failed or repeated task is never seen. It writes to a local folder, so it works on one machine only. Of a stream
    whose rows may be taken back, it has those that stand.

    >>> from dagflow.testing import Collector, run_operator
    >>> seen = Collector[str]()
    >>> run_operator(seen, {"input": ["a", "b"]})
    {}
    >>> seen.records
    ['a', 'b']
    """

    takes_changes: ClassVar[bool] = True

    folder: str = attrs.field(default="", kw_only=True)

    input = InputPort[T]()

    waiting = WindowState[list[Any]](factory=list)
    taken_back = WindowState[list[Any]](factory=list)

    def __attrs_post_init__(self) -> None:
        if not self.folder:
            self.folder = tempfile.mkdtemp(prefix="dagflow-collector-")
            weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)

    def private_folders(self) -> list[str]:
        """Return the folder that keeps the records."""
        return [self.folder]

    @property
    def records(self) -> list[T]:
        """All records so far: by window, within it by partition, within that as they came.

        Raises ValueError if a record was taken back that was not there.
        """
        standing: list[T] = []
        taken_back: list[T] = []
        for name in sorted(n for n in os.listdir(self.folder) if n[0] not in "._"):
            with open(os.path.join(self.folder, name), "rb") as file:
                while file.peek(1):
                    inserted, retracted = pickle.load(file)  # written by our own tasks, in a folder of our own
                    standing += inserted
                    taken_back += retracted
        for record in taken_back:
            place = next((number for number, each in enumerate(standing) if equal(each, record)), None)
            if place is None:
                raise ValueError(f"a record is taken back that is not there: {record!r}")
            del standing[place]
        return standing

    def clear(self) -> None:
        """Forget the records so far."""
        for name in os.listdir(self.folder):
            if name[0] not in "._":
                os.remove(os.path.join(self.folder, name))

    def setup(self, context: OperatorContext) -> None:
        """Keep the context, which makes files."""
        self._context = context

    @input.stream
    def keep(self, records: Iterator[T]) -> None:
        """Keep many records."""
        (self.taken_back if self._context.retracts else self.waiting).extend(records)
        if len(self.waiting) + len(self.taken_back) >= _CHUNK:
            self._write()

    def end_window(self) -> None:
        """Write the records that are left."""
        self._write()

    def _write(self) -> None:
        if self.waiting or self.taken_back:
            context = self._context
            file = context.create_file(self.folder, f"{context.window:010d}-{context.name}-{context.partition:06d}")
            # Not as plain data: tests compare records of any type, and want tuples back as tuples. cloudpickle gives a class
            # that travelled by value back as the class that it was.
            file.write(dumps((self.waiting, self.taken_back)))
            file.records(len(self.waiting))
            self.waiting, self.taken_back = [], []
