"""What Spark calls in its Python workers: looks its task up by partition id, and executes it."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator

import attrs
import pyarrow as pa

from dagflow.runtime.execute import execute, keep_memory
from dagflow.runtime.program import TaskSpec
from dagflow.runtime.window_log import WindowLog
from dagflow.storage import open_store

SCHEMA = "task string, outcome binary"
_ARROW = pa.schema([("task", pa.string()), ("outcome", pa.binary())])


@attrs.frozen
class SparkTasks:
    """The tasks of one window, as the function of one `mapInArrow`.

    `specs[i]` is the pickled TaskSpec of partition i; `programs` the programs by stage.
    """

    specs: tuple[bytes, ...]
    programs: dict[str, bytes]
    run_folder: str
    durable: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One control row a task: its name and its pickled outcome."""
        from pyspark import TaskContext

        keep_memory()

        context = TaskContext.get()
        attempt = str(context.taskAttemptId()) if context is not None else "0"
        log = WindowLog.open(self.run_folder, self.durable)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                spec: TaskSpec = pickle.loads(self.specs[number])  # came with this function, from the driver
                outcome = execute(self.programs[spec.stage], spec, log, attempt)
                yield pa.RecordBatch.from_arrays(
                    [pa.array([spec.name]), pa.array([pickle.dumps(outcome)], pa.binary())], schema=_ARROW
                )


@attrs.frozen
class Probe:
    """Looks from a task whether the run folder is the driver's."""

    run_folder: str
    name: str
    content: bytes

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row: what the task read."""
        for _ in batches:
            found = open_store(self.run_folder).read(self.name)
            answer = "same" if found == self.content else "missing" if found is None else "other"
            yield pa.RecordBatch.from_arrays([pa.array([answer]), pa.array([b""], pa.binary())], schema=_ARROW)
