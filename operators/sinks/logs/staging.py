"""Messages that tasks stage as files in the run folder, and notes of the windows that have begun to be published.

Both are named `WINDOW.SINK.…`, in a folder that the sinks of a run share.
"""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, cast
from urllib.parse import quote

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from dagflow import OperatorContext
from dagflow.errors import DagflowError
from dagflow.storage import (
    BinaryWriter,
    base_name,
    explained,
    file_system,
    join,
    open_store,
    remove_uploads,
    seal,
    unseal,
)
from operators.sinks.errors import ValueNotWritable
from operators.sinks.logs.client import LogTarget
from operators.sinks.logs.errors import StagedMessagesMissing
from operators.sinks.logs.messages import SCHEMA, MessageEncoder

_UNSEALED = b'{"identity"'
"""The beginning of the notes of earlier releases, which did not seal them."""
_BEGUN = "begun"
_ATTEMPT = re.compile("[0-9a-f]{32}")
_RECORDS = 1_024
_READ_BYTES = 1 << 20


@attrs.frozen(kw_only=True)
class StagedMessages:
    """A file of messages, as a task describes it to the driver. `partitions`: one more than the last partition that they name."""

    path: str
    messages: int
    size: int
    partitions: int = 0
    is_keyless: bool = False

    @property
    def folder(self) -> str:
        """The folder of staged files."""
        return self.path.rpartition("/")[0]

    def batches(self, sink: str, window: int) -> Iterator[pa.RecordBatch]:
        """Yield the messages, a batch at a time. Raises StagedMessagesMissing, StorageError."""
        system, lost = file_system(self.path), None
        with explained(self.path, "reading staged messages"):
            if not system.exists(self.path):
                lost = "it is not there"
            elif (size := system.status(self.path).length) != self.size:
                lost = f"it has {size:,} bytes, {self.size:,} were written"
        if lost is not None:
            raise StagedMessagesMissing(sink=sink, window=window, file=self.path, reason=lost)
        rows = 0
        with io.BufferedReader(cast("Any", system.open(self.path)), _READ_BYTES) as file:
            for batch in pa.ipc.open_stream(file):
                rows += batch.num_rows
                yield batch
        if rows != self.messages:
            reason = f"it has {rows:,} messages, {self.messages:,} were written"
            raise StagedMessagesMissing(sink=sink, window=window, file=self.path, reason=reason)


def staging_folder(folder: str) -> str:
    """Return the folder to stage in: that of a run or, for an operator on its own, one in the folder for temporary files."""
    return folder or join(tempfile.gettempdir(), f"dagflow-staged-{os.getpid()}")


def _prefix(window: int, sink: str) -> str:
    return f"{window:010d}.{quote(sink, safe='')}."


class MessageFile:
    """The file that one attempt of a task writes in a window. Messages wait in memory until there are `buffer_bytes`."""

    def __init__(self, folder: str, sink: str, window: int, buffer_bytes: int) -> None:
        self.path = join(folder, f"{_prefix(window, sink)}{uuid.uuid4().hex}")
        self._buffer_bytes = buffer_bytes
        self._waiting = io.BytesIO()
        self._stream: Any = None
        self._file: BinaryWriter | None = None
        self._messages = self._size = self._partitions = 0
        self._is_keyless = False

    def add(self, messages: pa.RecordBatch) -> None:
        """Append messages."""
        if self._stream is None:
            self._stream = pa.ipc.new_stream(self._waiting, SCHEMA)
        self._stream.write_batch(messages)
        named = pc.min(messages.column("route")).as_py()  # of an empty column, and of keys alone, it names none
        self._partitions = max(self._partitions, 0 if named is None else -named)
        self._is_keyless |= bool(messages.column("key").null_count)
        self._messages += messages.num_rows
        if self._waiting.tell() >= self._buffer_bytes:
            self._drain()

    def finish(self) -> dict[str, Any] | None:
        """Complete the file, which survives a power cut from now on, and describe it; None without messages."""
        if self._stream is None:
            return None
        self._stream.close()
        self._drain()
        system = file_system(self.path)
        assert self._file is not None
        with explained(self.path, "staging messages"):
            system.sync_file(self._file)
            self._file.close()
            system.sync_folder(self.path.rpartition("/")[0])
        figures = {"messages": self._messages, "size": self._size, "partitions": self._partitions}
        return attrs.asdict(StagedMessages(path=self.path, **figures, is_keyless=self._is_keyless))

    def _drain(self) -> None:
        with explained(self.path, "staging messages"):
            if self._file is None:
                self._file = file_system(self.path).create(self.path)
            view = memoryview(self._waiting.getvalue())
            self._size += len(view)
            while view:
                view = view[self._file.write(view) :]
        self._waiting.seek(0)
        self._waiting.truncate()


class MessageStaging:
    """Stages the messages of a task."""

    def __init__(self, context: OperatorContext, encoder: MessageEncoder, log: LogTarget, buffer_bytes: int) -> None:
        self._context = context
        self._log = log
        self._encoder = encoder
        self._buffer_bytes = buffer_bytes
        self._waiting: list[Any] = []
        self._file: MessageFile | None = None

    def begin(self) -> None:
        """Begin a window."""
        self._waiting.clear()
        self._file = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Add the rows of a batch: all or, when it raises, none."""
        if batch.num_rows:
            messages = self._encoder.messages(batch)
            if self._encoder.partition is not None:  # numbers below zero: see `hashing.partition_of`
                self._check_place(-1 - pc.min(messages.column("route")).as_py(), None)
            if self._encoder.subject is not None:
                for subject in pc.unique(messages.column("subject")).to_pylist():
                    self._check_place(None, subject)
            self._add(messages)

    def add_record(self, record: Any) -> None:
        """Add a record."""
        message = self._encoder.message(record)
        if message[0] is not None:
            self._check_place(-1 - message[0], None)
        if message[1] is not None:
            self._check_place(None, message[1])
        self._waiting.append(message)
        if len(self._waiting) >= _RECORDS:
            self._add_waiting()

    def finish(self) -> dict[str, Any] | None:
        """Complete the file of the window, and describe it; None without messages."""
        self._add_waiting()
        return None if self._file is None else self._file.finish()

    def _check_place(self, partition: int | None, subject: str | None) -> None:
        """Raise ValueNotWritable for a place that the log does not have."""
        if (problem := self._log.place_problem(partition, subject)) is None:
            return
        name, value = ("subject", repr(subject)) if partition is None else ("partition", str(partition))
        help_ = f"{problem}: change it, or leave such rows out: on_error='skip'"
        raise ValueNotWritable(operator=self._encoder.operator, column=name, value=value, format=self._log.place, help=help_)

    def _add_waiting(self) -> None:
        if self._waiting:
            self._add(self._encoder.batch_of(self._waiting))
            self._waiting.clear()

    def _add(self, messages: pa.RecordBatch) -> None:
        if self._file is None:
            folder = staging_folder(self._context.staging_folder)
            self._file = MessageFile(folder, self._context.name, self._context.window, self._buffer_bytes)
        self._file.add(messages)


@attrs.frozen(kw_only=True)
class Begun:
    """The note that a window has begun to be published: no message of it was sent before the note was on disk.

    Attributes:
        identity: of the topic or stream; None where the servers do not tell it.
        starts: by partition, the offset behind the last message there was. Its length is the number of partitions, by which keys
            are assigned to partitions for all of the window.
    """

    identity: str | None
    starts: tuple[int, ...]


@attrs.frozen
class BegunNotes:
    """The notes of a sink."""

    folder: str
    sink: str

    def read(self, window: int) -> Begun | None:
        """Return the note of a window; None if it has not begun. Raises RecordDamaged, RecordMisplaced."""
        data = open_store(self.folder).read(self._name(window))
        if data is None:
            return None
        is_sealed = not data.startswith(_UNSEALED)
        place = self.folder.rpartition("/")[0]
        fields: Mapping[str, Any] = json.loads(unseal(data, self._record(window), place).body if is_sealed else data)
        return Begun(identity=fields["identity"], starts=tuple(fields["starts"]))

    def newest(self, before: int) -> tuple[int, Begun] | None:
        """Return the newest note of the windows before one, with its window."""
        newest = max((window for window in self._windows() if window < before), default=None)
        note = None if newest is None else self.read(newest)
        return None if newest is None or note is None else (newest, note)

    def is_behind(self, window: int) -> bool:
        """Return whether a later window has begun: then all messages of this one are in, since windows are published in order."""
        return any(each > window for each in self._windows())

    def _windows(self) -> list[int]:
        """Return the windows that have a note. A sink `shop.out` is not the sink `out`, though its names end like those."""
        numbers = [(name, name.partition(".")[0]) for name in open_store(self.folder).names()]
        return [int(number) for name, number in numbers if number.isdigit() and name == self._name(int(number))]

    def write(self, window: int, note: Begun) -> Begun:
        """Write the note of a window, and return the one that counts: an earlier attempt may have written it."""
        data = seal(self._record(window), json.dumps(attrs.asdict(note)).encode())
        if open_store(self.folder, durable=True).create(self._name(window), data):
            return note
        return self.read(window) or note

    def place(self, window: int) -> str:
        """Return the path of a note."""
        return join(self.folder, self._name(window))

    def sweep(self, window: int) -> None:
        """Remove what has been staged for a window and those before, and their notes; that of the newest stays."""
        kept = self.newest(window + 1)

        def is_stale(name: str) -> bool:
            number = name.partition(".")[0]
            if not number.isdigit() or int(number) > window or not name.startswith(_prefix(int(number), self.sink)):
                return False
            kind = name.removeprefix(_prefix(int(number), self.sink)).partition(".")[0]
            if kind != _BEGUN:
                return _ATTEMPT.fullmatch(kind) is not None  # else of a sink whose name begins like this one's: `shop.out`
            return kept is None or int(number) != kept[0]

        system = file_system(self.folder)
        remove_uploads(self.folder, is_stale)
        if not system.exists(self.folder):
            return
        for file in list(system.scan(self.folder)):
            if is_stale(base_name(file.path)):
                with contextlib.suppress(FileNotFoundError, DagflowError):
                    system.remove(file.path)

    def _name(self, window: int) -> str:
        return f"{_prefix(window, self.sink)}{_BEGUN}"

    def _record(self, window: int) -> str:
        """Return the name that a note is sealed with: that in the run folder, where `dagflow verify` reads it."""
        return f"staged/{self._name(window)}"
