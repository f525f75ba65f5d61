"""Windows with exchanges on Spark: one linear chain of levels, whose tasks send each other rows of Arrow batches."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import attrs
import pyarrow as pa

from dagflow.runtime.exchange.channels import TaskChannels, checked, in_level
from dagflow.runtime.exchange.errors import ExchangeBroken
from dagflow.runtime.exchange.pump import Pump
from dagflow.runtime.exchange.rows import OUTCOME, Row
from dagflow.runtime.run_folder.layout import TASK_OUTCOME
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.runtime.stage.outcome import TaskOutcome
from dagflow.runtime.stage.program import Job, TaskSpec
from dagflow.runtime.task.execute import execute, keep_memory, outcome_bytes
from dagflow.spark.dataframes.transforms import through
from dagflow.spark.executors.check import Guard
from dagflow.spark.task import settle, tidy_output
from dagflow.storage import at_once, read_sealed, seal

SCHEMA = "dst int, tag int, src int, seq bigint, blob binary"
_ARROW = pa.schema([("dst", pa.int32()), ("tag", pa.int32()), ("src", pa.int32()), ("seq", pa.int64()), ("blob", pa.binary())])
_TOGETHER = 1 << 20
"""Rows are handed to Spark in batches of about so many bytes."""
PINNED = {
    # a level that is computed again must make the same rows; without its checksum Spark would lose some and double others
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "true",
    # rows come to Python in batches of so many bytes: blobs may have some MiB each
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),
    # a level without rows does not make those behind it superfluous: their tasks have states, and reports to leave
    "spark.sql.adaptive.optimizer.excludedRules": "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation",
}
"""The settings that windows with exchanges need, in any session; see docs/explanation/exchanges.md."""
ADDED_TO = frozenset({"spark.sql.adaptive.optimizer.excludedRules"})
"""Settings that are lists: what a session has there stays."""
PINNED_FOR_TRANSFORMS = {
    # a transform and all that passes it by read one exchange, and so do the sides of its joins with itself:
    # else what is before it would run twice
    "spark.sql.exchange.reuse": "true",
}
"""The same for windows with DataFrame transforms."""
CHOSEN_FOR_TRANSFORMS = {"spark.sql.adaptive.enabled": "true"}
"""In a session of ours: plans of joins and aggregations, and the number of partitions, follow from what there is."""


@attrs.frozen
class LevelTasks:
    """The tasks of one level of a window, as the function of one `mapInArrow`.

    `specs[i]`: the pickled TaskSpec of partition i; `programs`: by stage; `levels`: where exchanges lead to, by tag. `is_first`:
    no level is before it in this window.
    """

    specs: tuple[bytes, ...]
    programs: dict[str, bytes]
    run_folder: str
    durable: bool
    levels: dict[int, int]
    is_first: bool
    guard: Guard | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield what the task of this partition sends. In the last level, that is one row: its pickled outcome."""
        from pyspark import TaskContext

        keep_memory()
        tidy_output()
        if self.guard is not None:
            self.guard.check()
        context = TaskContext.get()
        assert context is not None
        spec: TaskSpec = pickle.loads(self.specs[context.partitionId()])  # came with this function, from the driver
        log = WindowLog.open(self.run_folder, self.durable)
        attempt, again = str(context.taskAttemptId()), context.attemptNumber() > 0
        arriving = iter(()) if self.is_first else _received(batches, spec)

        def body(send: Callable[[Row], None]) -> TaskOutcome | None:
            channels = TaskChannels(checked(arriving, spec, self.levels, send), send)
            program = self.programs[spec.stage]
            with spec.options.logs.in_worker():
                return in_level(spec, channels, lambda own: execute(program, spec, log, attempt, again, own))

        if self.is_first:
            for _ in batches:  # one row: the partition's number
                pass
        if spec.layout.next_tasks:
            yield from together(Pump(lambda send: self._noted(log, spec, body(send))))
        else:
            outcome = body(_nowhere)
            if outcome is not None:
                yield from together([Row(0, OUTCOME, spec.layout.number, 0, outcome_bytes(outcome))])
        settle()

    def _noted(self, log: WindowLog, spec: TaskSpec, outcome: TaskOutcome | None) -> None:
        """Leaves an outcome in the run folder: it differs from attempt to attempt, and rows that cross must not."""
        if outcome is not None:
            log.unsynced.create(outcome_name(spec), seal(outcome_name(spec), outcome_bytes(outcome)))


def outcome_name(spec: TaskSpec) -> str:
    """Return the name of the outcome of a task below the last level. It stands beside the task's report, and is swept with it."""
    return TASK_OUTCOME.name(window=spec.window, epoch=spec.epoch, stage=spec.stage, partition=spec.partition)


def chained(spark: Any, job: Job, guard: Guard | None) -> Any:
    """The DataFrame of a window: its levels one after the other."""
    levels = job.by_level()
    frame = None
    for tasks in levels:
        specs = tuple(pickle.dumps(spec) for spec in tasks)
        programs = {stage: job.programs[stage] for stage in {spec.stage for spec in tasks}}
        function = LevelTasks(specs, programs, job.run_folder, job.durable, job.levels, frame is None, guard).__call__
        count = len(tasks)
        if frame is None:
            rows = spark.range(0, count, 1, count)
        else:
            transforms = [each for each in job.transforms.values() if each.level == tasks[0].layout.level]
            if transforms:
                frame = through(frame, transforms, count, SCHEMA)
            rows = frame.repartitionById(count, frame["dst"]).sortWithinPartitions("src", "seq")
        frame = rows.mapInArrow(function, SCHEMA)
    return frame


def outcomes(job: Job, rows: Sequence[Any]) -> list[TaskOutcome]:
    """Return the outcomes of the tasks of a window, those of lower levels first."""
    log = WindowLog.open(job.run_folder, job.durable)
    names = [outcome_name(spec) for spec in job.tasks if spec.layout.next_tasks]
    sealed = at_once(functools.partial(read_sealed, log.unsynced), names, job.run_folder)
    noted = (each.body for each in sealed if each is not None)
    last = (bytes(row["blob"]) for row in rows if row["tag"] == OUTCOME)
    # made by our own tasks, handed over in the run folder and by Spark
    return [pickle.loads(data) for data in chain(noted, last)]


def together(rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    """Rows as batches of about a MiB."""
    waiting: list[Row] = []
    size = 0
    for row in rows:
        waiting.append(row.encoded())
        size += memoryview(waiting[-1].blob).nbytes
        if size >= _TOGETHER:
            yield _batch(waiting)
            waiting, size = [], 0
    if waiting:
        yield _batch(waiting)


def _batch(rows: Sequence[Row]) -> pa.RecordBatch:
    import numpy as np

    def column(name: str, kind: Any) -> pa.Array:
        values = np.fromiter((getattr(row, name) for row in rows), dtype=kind, count=len(rows))
        return pa.Array.from_buffers(_ARROW.field(name).type, len(rows), [None, pa.py_buffer(values)])

    sizes = [memoryview(row.blob).nbytes for row in rows]
    offsets = np.zeros(len(rows) + 1, dtype=np.int32)
    np.cumsum(sizes, out=offsets[1:])
    data = rows[0].blob if len(rows) == 1 else b"".join(row.blob for row in rows)
    blobs = pa.BinaryArray.from_buffers(pa.binary(), len(rows), [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    columns = [column("dst", np.int32), column("tag", np.int32), column("src", np.int32), column("seq", np.int64), blobs]
    return pa.RecordBatch.from_arrays(columns, schema=_ARROW)


def _received(batches: Iterable[pa.RecordBatch], spec: TaskSpec) -> Iterator[Row]:
    """The rows of a partition. Raises ExchangeBroken for rows without a destination, which Spark gives to the first task."""
    for batch in batches:
        if any(column.null_count for column in batch.columns):
            raise ExchangeBroken(spec.name, "a row has no destination")
        dst, tag, src, seq = (column.to_pylist() for column in batch.columns[:4])
        blobs = batch.column(4)
        for number in range(batch.num_rows):
            yield Row(dst[number], tag[number], src[number], seq[number], blobs[number].as_buffer())


def _nowhere(row: Row) -> None:
    """The last level sends nothing."""
    raise ExchangeBroken("of the last level", f"a row of exchange {row.exchange} leads beyond it")
