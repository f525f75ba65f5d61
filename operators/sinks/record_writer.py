"""RecordWriter: writes records to files of text."""

from __future__ import annotations

import codecs
import copy
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import accumulate, groupby, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Generic

import attrs
from typing_extensions import TypeVar

from dagflow import InputPort, OperatorContext, ReaderRecord
from operators.problems import all_problems, told_in
from operators.sinks.encoding.text import JOINABLE, READER_COLUMNS, as_bytes, joined, text_column
from operators.sinks.errors import NotText
from operators.sinks.file_sink import FileSink
from operators.sinks.files.open_files import check_name
from operators.sinks.files.packed_files import PACKED, packed_files

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T", default=Any)

_LIST_ITERATOR: type = type(iter([]))


@attrs.define
class RecordWriter(FileSink, Generic[T]):
    r"""Writes records to files in the folder `path` (a path or URL), `terminator` after each.

    Text is encoded, bytes are written as they are, of a ReaderRecord its record; for anything else override
    `get_bytes_for_tuple`. A file appears whole, when its window is decided.
    Each partition writes one file a window, `part-WINDOW-PARTITION` and `suffix`, if it has records. `per_block` makes it one
    file a block, named by the block's id in hexadecimal (as in Malhar), or `ID-START` for what another reader has taken
    over of it, from that position on; for other files override `get_file_name`, which may name sub-folders. Records without a
    file name are dropped, and counted as `dropped`. A file that is full is followed by `NAME_1`; see FileSink.

    Args:
        terminator: text that ends every record; "" for none.
        encoding: of text. Encodings that begin with a byte-order mark are refused.
        max_open_files: how many files a task keeps open; the least recently used is closed and later appended to. Fewer where
            compressors would take more than 64 MiB.
        max_file_bytes: before they are packed; the record that reaches it is the file's last.
        compression: `none`, `gzip`, `bgzf` (gzip to others, and read by many readers here), `bz2`, `xz` or `zstd`; its suffix is
            put behind all names.

    Raises NotText for records that are not text, FileNameRefused for names outside the folder or beginning with `_` or `.`.

    >>> from dagflow.testing import run_operator
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run_operator(RecordWriter(folder), {"input": ["first", "second"]})
    ...     print(*(file.read_bytes() for file in pathlib.Path(folder).glob("part-*")))
    {}
    b'first\nsecond\n'
    """

    compressions: ClassVar[Mapping[str, range]] = PACKED

    per_block: bool = attrs.field(default=False, kw_only=True, validator=attrs.validators.instance_of(bool))
    terminator: str = attrs.field(default="\n", kw_only=True, validator=attrs.validators.instance_of(str))
    encoding: str = attrs.field(default="utf-8", kw_only=True)

    input = InputPort[T]()

    def check(self) -> None:
        """Raise ValueError where properties contradict each other."""
        with all_problems() as problems:
            with told_in(problems):
                super().check()
            with told_in(problems):
                self._check_encoding()

    def _check_encoding(self) -> None:
        try:
            mark = "".encode(self.encoding)
        except LookupError:
            raise ValueError(
                f"encoding {self.encoding!r} is no text encoding that Python knows (utf-8, latin-1, cp1252, …)"
            ) from None
        if mark:
            raise ValueError(f"encoding {self.encoding!r} puts a byte-order mark before every record: name one without, as utf-8")
        try:
            self.terminator.encode(self.encoding)
        except UnicodeError:
            raise ValueError(f"terminator {self.terminator!r} cannot be written in {self.encoding}") from None

    def writes_columns(self) -> bool:
        """Return True if a batch's text goes into files as it is: no method is overridden, and the encoding is UTF-8."""
        return not self._is_custom("get_file_name", "get_bytes_for_tuple") and self._codec() == "utf-8"

    def written_schema(self) -> list[tuple[str, str]]:
        """Lines of text in a column `value`; bytes where nothing ends a record."""
        return [("value", "string" if self.terminator else "binary")]

    def get_file_name(self, record: T) -> str | None:
        """The name of the file that a record belongs to, relative to `path`; None or "" drops the record."""
        if self.per_block:
            if not isinstance(record, ReaderRecord):
                raise NotText(
                    operator="RecordWriter(per_block=True)",
                    got=f"{record!r:.60} ({type(record).__name__}), which comes from no block",
                    method="get_file_name",
                )
            return self._block_name(record.block_id)
        return self.part_name

    def _block_name(self, block_id: int) -> str:
        """The file of a block; of a part of one that another task has begun, with the part's start: the two go side by side."""
        part = self._context.part if hasattr(self, "_context") else None
        start = "" if part is None or part.start is None else f"-{part.start}"
        return f"{block_id:x}{start}{self.suffix}"

    def get_bytes_for_tuple(self, record: T) -> bytes:
        """The bytes of a record, without its terminator."""
        return as_bytes(record, self.encoding, type(self).__name__)

    def setup(self, context: OperatorContext) -> None:
        """Makes the set of open files."""
        super().setup(context)
        self._files = packed_files(self, context)
        self._end = self.terminator.encode(self.encoding)
        self._is_joinable = not self._is_custom("get_file_name", "get_bytes_for_tuple") and self._codec() in JOINABLE

    @input.process
    def write(self, record: T) -> None:
        """Writes one record."""
        name = self.get_file_name(record)
        if not name:
            self._context.count("dropped")
            return
        self._files.append(name, self._checked(self.get_bytes_for_tuple(record)) + self._end, 1)

    @input.stream
    def write_all(self, records: Iterator[T]) -> None:
        """Writes many records."""
        if self._is_joinable and type(records) is _LIST_ITERATOR:
            # Looks ahead on a copy: if all is well, writes it at once; if not, the iterator still stands before the bad record.
            parts = self._joined(copy.copy(records))
            if parts is not None and not self._files.is_limited:
                for name, data, count in parts:
                    self._files.append(name, data, count)
                    deque(islice(records, count), maxlen=0)  # only now they are behind us
                return
        self._one_by_one(records)

    @input.batch(when=lambda operator: operator.writes_columns())
    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Writes a batch with the column `value` (bare text or bytes), or `block_id`, `position` and `record`."""
        column = text_column(batch, type(self).__name__)
        for name, start, stop in self._runs(batch):
            self._files.append_column(name, column.slice(start, stop - start), self._end)

    def end_window(self) -> None:
        """Writes what is pending and closes the files."""
        self._files.close()

    def _checked(self, data: object) -> bytes:
        if isinstance(data, bytes):
            return data
        got = f"{data!r:.60} ({type(data).__name__}), returned by get_bytes_for_tuple()"
        raise NotText(operator=type(self).__name__, got=got)

    def _one_by_one(self, records: Iterator[T]) -> None:
        """Asks for every record's name and bytes; writes runs of the same name at once, also those before an error."""
        name: str | None = None
        run: list[bytes] = []
        dropped = 0
        name_of, bytes_of, own_name = self.get_file_name, self.get_bytes_for_tuple, self.part_name
        is_named = self.per_block or self._is_custom("get_file_name")
        try:
            for record in records:
                wanted = name_of(record) if is_named else own_name
                if wanted != name:
                    self._write_run(name, run)
                    name, run = None, []
                    if wanted:
                        check_name(wanted, type(self).__name__)  # here, so that a name that is refused is this record's fault
                    name = wanted
                if wanted:
                    data: object = bytes_of(record)
                    run.append(data if type(data) is bytes else self._checked(data))
                else:
                    dropped += 1
        finally:
            self._write_run(name, run)
            if dropped:
                self._context.count("dropped", dropped)

    def _write_run(self, name: str | None, run: list[bytes]) -> None:
        while name and run:
            count = len(run)
            if self._files.is_limited:
                ends = list(accumulate(len(data) + len(self._end) for data in run))
                count = self._files.fitting(name, ends)
            # the last record gets its end too
            self._files.append(name, self._end.join([*run[:count], b""]), count)
            run = run[count:]

    def _joined(self, records: Iterator[Any]) -> list[tuple[str, bytes, int]] | None:
        """File name, bytes and count of runs of records; None where they must be written one by one."""
        if not self.per_block:
            whole = joined(records, self._end, self.encoding)
            return None if whole is None else [(self.part_name, *whole)] if whole[1] else []
        parts = []
        try:
            for block_id, run in groupby(records, attrgetter("block_id")):
                part = joined(run, self._end, self.encoding)
                if part is None:
                    return None
                parts.append((self._block_name(block_id), *part))
        except AttributeError:
            return None
        return parts

    def _runs(self, batch: pa.RecordBatch) -> Iterator[tuple[str, int, int]]:
        """File name and rows of the runs of a batch that go to the same file."""
        if not batch.num_rows:
            return
        if not self.per_block:
            yield self.part_name, 0, batch.num_rows
            return
        if batch.schema.names != READER_COLUMNS:
            got = f"batches of {', '.join(batch.schema.names)}, which come from no block"
            raise NotText(operator="RecordWriter(per_block=True)", got=got, method="get_file_name")
        import pyarrow.compute as pc

        runs = pc.run_end_encode(batch.column(0))  # pyright: ignore[reportAttributeAccessIssue]  # made at run time
        start = 0
        for block_id, stop in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            yield self._block_name(block_id), start, stop
            start = stop

    def _is_custom(self, *methods: str) -> bool:
        return any(getattr(type(self), method) is not getattr(RecordWriter, method) for method in methods)

    def _codec(self) -> str:
        try:
            return codecs.lookup(self.encoding).name
        except LookupError:
            return ""  # check() says so
