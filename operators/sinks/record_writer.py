"""RecordWriter: writes records to files of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Generic

import attrs
import pyarrow as pa
from typing_extensions import TypeVar

from dagflow import AcceptedType, InputPort, OperatorContext, ReaderRecord
from operators.problems import all_problems
from operators.sinks.encoding.text import as_bytes, codec_of, encoding_problems
from operators.sinks.file_sink import FileSink
from operators.sinks.files.packed_files import PACKED, packed_files
from operators.sinks.files.record_files import RecordFiles, block_of

T = TypeVar("T", default=Any)
TEXT = str | bytes | bytearray | memoryview


@attrs.define
class RecordWriter(FileSink, Generic[T]):
    r"""Write records to files in the folder `path` (a path or URL), `terminator` after each.

    Strings are encoded, bytes are written as they are; of a `ReaderRecord`, the record is written. For other records override
    `get_bytes_for_tuple`. To choose the file of a record, override `get_file_name`, which may name sub-folders; records without a
    file name are dropped, and counted as `dropped`. `FileSink` explains file names and the limits of files.

    Args:
        per_block: whether each block gets a file, named by its id in hexadecimal (as in Malhar), or `ID-START` for a part that
            another reader stole.
        terminator: the text that ends every record; "" for none.
        encoding: of strings. Encodings that begin with a byte-order mark are refused.
        max_open_files: the most files that a task keeps open. The least recently used is closed, and appended to later. There are
            fewer where compressors would take more than 64 MiB.
        max_file_bytes: before compression. The record that reaches it is the file's last.
        compression: `none`, `gzip`, `bgzf` (gzip that several readers can share), `bz2`, `xz` or `zstd`. Its suffix is added to
            all names.

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
        with all_problems(super().check) as problems:
            problems.extend(encoding_problems(self.encoding, self.terminator))

    def get_file_name(self, record: T) -> str | None:
        """Return the name of the file that a record belongs to, relative to `path`; None or "" drops the record."""
        return self.block_name(block_of(record)) if self.per_block else self.part_name

    def block_name(self, block_id: int) -> str:
        """Return the file of a block; of a part that another task began, with the start of the part: both files are kept."""
        context: OperatorContext | None = self.__dict__.get("_context")  # also asked of operators that were not set up
        part = None if context is None else context.part
        start = "" if part is None or part.start is None else f"-{part.start}"
        return f"{block_id:x}{start}{self.suffix}"

    def get_bytes_for_tuple(self, record: T) -> bytes:
        """Return the bytes of a record, without its terminator."""
        return as_bytes(record, self.encoding, type(self).__name__)

    def setup(self, context: OperatorContext) -> None:
        """Make the set of open files. Raises PackageMissing."""
        super().setup(context)
        self._files = RecordFiles(self, packed_files(self, context), context, self.terminator.encode(self.encoding))

    @input.process
    def write(self, record: T) -> None:
        """Write one record."""
        self._files.write(record)

    @input.stream
    def write_all(self, records: Iterator[T]) -> None:
        """Write many records."""
        self._files.write_all(records)

    @input.batch(when=lambda operator: operator.writes_columns())
    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Write a batch with the column `value` (bare text or bytes), or `block_id`, `position` and `record`."""
        self._files.write_batch(batch)

    def end_window(self) -> None:
        """Write what is pending and close the files."""
        self._files.close()

    def writes_columns(self) -> bool:
        """Return True if a batch's text goes into files as it is: no method is overridden, and the encoding is UTF-8."""
        return codec_of(self.encoding) == "utf-8" and not self.uses_own("get_file_name", "get_bytes_for_tuple")

    def uses_own(self, *methods: str) -> bool:
        """Return True if a subclass overrides one of these methods, so that it must be called for each record."""
        return any(getattr(type(self), method) is not getattr(RecordWriter, method) for method in methods)

    def accepted_type(self, port: str) -> AcceptedType | None:
        """Return the types of text; None for a subclass that makes bytes of other records, or handles them itself."""
        if self.uses_own("get_bytes_for_tuple", "write", "write_all"):
            return None
        remedy = "put Map(…) before it to turn each record into a string, or override get_bytes_for_tuple(record)"
        return AcceptedType(TEXT | ReaderRecord[TEXT], "str, bytes, or a ReaderRecord of these", remedy)

    def written_schema(self) -> list[tuple[str, str]]:
        """Return a column `value` of strings; of bytes where nothing ends a record."""
        return [("value", "string" if self.terminator else "binary")]
