"""The files of a sink of records: batches as they lie in memory, records many at once, or one by one."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterator
from itertools import accumulate, groupby, islice
from operator import attrgetter
from typing import Any, Protocol

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from dagflow import OperatorContext, ReaderRecord
from operators.sinks.encoding.text import JOINABLE, READER_COLUMNS, codec_of, joined, text_column
from operators.sinks.errors import NotText
from operators.sinks.files.open_files import OpenFiles, check_name

_LIST_ITERATOR: type = type(iter([]))


class NamesRecords(Protocol):
    """A sink that knows the file and the bytes of a record."""

    part_name: Any  # a string; type checkers disagree on what a WindowState is to a protocol
    encoding: str
    per_block: bool
    mode: Any

    def get_file_name(self, record: Any) -> str | None:
        """Return the name of the file that a record belongs to; None or "" drops the record."""
        ...

    def get_bytes_for_tuple(self, record: Any) -> bytes:
        """Return the bytes of a record, without its terminator."""
        ...

    def block_name(self, block_id: int) -> str:
        """Return the name of the file of a block."""
        ...

    def uses_own(self, *methods: str) -> bool:
        """Return True if a subclass overrides one of these methods, so that it must be called for each record."""
        ...


@attrs.frozen
class RecordFiles:
    """Write the records of a sink to the files that it names, `end` after each."""

    sink: NamesRecords
    files: OpenFiles
    context: OperatorContext
    end: bytes

    def write(self, record: Any) -> None:
        """Write one record."""
        name = self.sink.get_file_name(record)
        if not name:
            self.context.count("dropped")
            return
        self.files.append(name, self._checked(self.sink.get_bytes_for_tuple(record)) + self.end, 1)

    def write_all(self, records: Iterator[Any]) -> None:
        """Write many records: those before one that is refused are written when it raises."""
        if type(records) is _LIST_ITERATOR and self._may_join():
            # Looks ahead on a copy: if all is well, writes it at once; if not, the iterator still stands before the bad record.
            runs = self._joined(copy.copy(records))
            if runs is not None:
                for name, data, count in runs:
                    self.files.append(name, data, count)
                    deque(islice(records, count), maxlen=0)  # only now they are behind us
                return
        self._one_by_one(records)

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Write a batch with the column `value` (bare text or bytes), or `block_id`, `position` and `record`."""
        column = text_column(batch, type(self.sink).__name__)
        for name, start, stop in self._runs(batch):
            self.files.append_column(name, column.slice(start, stop - start), self.end)

    def close(self) -> None:
        """Write what is pending and close the files."""
        self.files.close()

    def _may_join(self) -> bool:
        is_plain = codec_of(self.sink.encoding) in JOINABLE and not self.files.is_limited
        return is_plain and not self.sink.uses_own("get_file_name", "get_bytes_for_tuple")

    def _one_by_one(self, records: Iterator[Any]) -> None:
        """Ask for every record's name and bytes; write runs of the same name at once, also those before an error."""
        sink, name, dropped = self.sink, None, 0
        run: list[bytes] = []
        name_of, bytes_of, part_name = sink.get_file_name, sink.get_bytes_for_tuple, sink.part_name
        is_named = sink.per_block or sink.uses_own("get_file_name")
        try:
            for record in records:
                wanted = name_of(record) if is_named else part_name
                if wanted != name:
                    self._write_run(name, run)
                    name, run = None, []
                    if wanted:
                        check_name(wanted, type(sink).__name__)  # here, so that a name that is refused is this record's fault
                    name = wanted
                if wanted:
                    data: object = bytes_of(record)
                    run.append(data if type(data) is bytes else self._checked(data))
                else:
                    dropped += 1
        finally:
            self._write_run(name, run)
            if dropped:
                self.context.count("dropped", dropped)

    def _checked(self, data: object) -> bytes:
        if isinstance(data, bytes):
            return data
        got = f"{data!r:.60} ({type(data).__name__}), returned by get_bytes_for_tuple()"
        raise NotText(operator=type(self.sink).__name__, got=got)

    def _write_run(self, name: str | None, run: list[bytes]) -> None:
        while name and run:
            count = len(run)
            if self.files.is_limited:
                ends = list(accumulate(len(data) + len(self.end) for data in run))
                count = self.files.fitting(name, ends)
            # the last record gets its end too
            self.files.append(name, self.end.join([*run[:count], b""]), count)
            run = run[count:]

    def _joined(self, records: Iterator[Any]) -> list[tuple[str, bytes, int]] | None:
        """Return file name, bytes and count of runs of records; None where they must be written one by one."""
        if not self.sink.per_block:
            whole = joined(records, self.end, self.sink.encoding)
            return None if whole is None else [(self.sink.part_name, *whole)] if whole[1] else []
        runs = []
        try:
            for block_id, records_of_block in groupby(records, attrgetter("block_id")):
                run = joined(records_of_block, self.end, self.sink.encoding)
                if run is None:
                    return None
                runs.append((self.sink.block_name(block_id), *run))
        except AttributeError:
            return None
        return runs

    def _runs(self, batch: pa.RecordBatch) -> Iterator[tuple[str, int, int]]:
        """Yield file name and rows of the runs of a batch that go to the same file."""
        if not batch.num_rows and (self.sink.per_block or self.sink.mode != "replace"):
            return
        if not self.sink.per_block:
            yield self.sink.part_name, 0, batch.num_rows
            return
        if batch.schema.names != READER_COLUMNS:
            raise _no_block(f"batches of {', '.join(batch.schema.names)}, which come")
        runs = pc.run_end_encode(batch.column(0))
        start = 0
        for block_id, stop in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            yield self.sink.block_name(block_id), start, stop
            start = stop


def block_of(record: object) -> int:
    """Return the block that a record was read from. Raises NotText for a record that is not a `ReaderRecord`."""
    if not isinstance(record, ReaderRecord):
        raise _no_block(f"{record!r:.60} ({type(record).__name__}), which comes")
    return record.block_id


def _no_block(records: str) -> NotText:
    return NotText(operator="RecordWriter(per_block=True)", got=f"{records} from no block", method="get_file_name")
