"""A task for one operator: what it emits is collected, the files that it writes are kept in memory."""

from __future__ import annotations

from typing import Any

import attrs
import pyarrow as pa

from dagflow import ErrorRecord, Operator, OperatorContext
from dagflow.model.operator.ports import handlers_of, output_ports
from dagflow.model.operator.state import freeze, renew, thaw
from dagflow.model.types.forms import to_records


class FakeFile:
    def __init__(self) -> None:
        self.data = bytearray()
        self.count = 0
        self.writes: list[int] = []
        self.times_opened = 0
        self.is_open = False

    def write(self, data: Any, /) -> int:
        assert self.is_open
        self.writes.append(memoryview(data).nbytes)
        self.data += data
        return self.writes[-1]

    def records(self, count: int) -> None:
        self.count += count

    def close(self) -> None:
        self.is_open = False


class FakeFiles:
    """Files by name; the folder is the same for all."""

    def __init__(self) -> None:
        self.files: dict[str, FakeFile] = {}
        self.most_open = 0

    def create(self, operator: str, folder: str, name: str) -> FakeFile:
        file = self.files.setdefault(name, FakeFile())
        file.is_open = True
        file.times_opened += 1
        self.most_open = max(self.most_open, sum(f.is_open for f in self.files.values()))
        return file

    @property
    def contents(self) -> dict[str, bytes]:
        return {name: bytes(file.data) for name, file in self.files.items()}


@attrs.define
class FakeClock:
    time: float = 0.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds


class FakeTask:
    """`with FakeTask(operator) as task: task.give(...)`; then `task.emitted[port]`, `task.files.contents`, `task.counters`."""

    def __init__(self, operator: Operator, *, batches: bool = False, window: int = 0, partition: int = 0, slots: int = 2) -> None:
        operator.check()
        self.operator = operator
        self.files = FakeFiles()
        self.clock = FakeClock()
        self.context = OperatorContext(window=window, partition=partition, slots=slots, files=self.files, clock=self.clock)
        self.context.on_bad_record = self._bad_record
        self.emitted: dict[str, list[Any]] = {}
        self.chunks: list[tuple[str, int]] = []
        for name in output_ports(type(operator)):
            self._connect(name, batches)

    @property
    def counters(self) -> dict[str, int]:
        return self.context.counters

    def _bad_record(self, error: Exception, record: Any) -> None:
        if self.operator.on_error == "fail":
            raise error
        self.context.count("skipped")
        if self.operator.on_error == "route":
            cursor = self.context.cursor
            text = f"{type(error).__name__}: {error}"
            self.operator.errors.emit(
                ErrorRecord(self.context.name, self.context.window, cursor.path, cursor.position, text, record)
            )

    def _connect(self, name: str, batches: bool) -> None:
        port = getattr(self.operator, name)
        collected = self.emitted[name] = []
        port.is_connected = True
        port.wants_batches = batches
        port.emit = collected.append

        def emit_all(records: Any) -> None:
            before = len(collected)
            collected.extend(records)
            self.chunks.append(("records", len(collected) - before))

        def emit_batch(batch: pa.RecordBatch) -> None:
            collected.extend(to_records(batch, Any))
            self.chunks.append(("batch", batch.num_rows))

        port.emit_all, port.emit_batch = emit_all, emit_batch

    def __enter__(self) -> FakeTask:
        self.operator.setup(self.context)
        freeze(self.operator)
        renew(self.operator)
        self.operator.begin_window(self.context.window)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if error is None:
            self.operator.end_window()
        thaw(self.operator)
        self.operator.teardown()

    def give(self, port: str, data: Any, form: str = "record") -> None:
        """A list of records in form `record` or `stream`, or a record batch in form `batch`."""
        assert form in self.operator.offered_forms(port)
        handler = getattr(self.operator, handlers_of(type(self.operator))[port][form])
        if form == "record":
            for record in data:
                handler(record)
        elif form == "stream":
            records = iter(data)
            handler(records)
            assert next(records, None) is None, "the handler left records unread"
        else:
            handler(data)
