"""ParquetWriter: writes tables to Parquet files."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Generic

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
from typing_extensions import TypeVar

from dagflow import OperatorContext
from dagflow.config import Bytes, MiB, size_of
from operators.problems import all_problems
from operators.sinks.errors import TypeNotWritable, ValueNotWritable
from operators.sinks.file_sink import DIGITS, numbered
from operators.sinks.parquet.encodings import encodings_of
from operators.sinks.parquet.files import CountingFile, ParquetFiles
from operators.sinks.table_writer import TableWriter

T = TypeVar("T", default=Any)


@attrs.define
class ParquetWriter(TableWriter[T], Generic[T]):
    """Write tables to Parquet files in the folder `path`. `TableWriter` explains folders by value, `FileSink` full files.

    Rows wait in memory until they fill a row group. With many folders, they may reach `buffer_bytes` before any row group is
    full; then the largest one is written as it is. A file is opened when its first row group is written. When more than
    `max_open_files` would be open, the least recently used is finished, and later rows of its folder begin another file (counted
    as `files_closed_early`).

    A column gets a dictionary if its values repeat in a sample of the file's first row group. Of other columns, integers, dates
    and times are packed by differences. To save memory, columns with values of more than 1 MiB get no statistics; a file that was
    begun with statistics is finished before the first such value.

    Args:
        compression: of the pages: `none`, `snappy`, `gzip`, `brotli`, `lz4`, `zstd`.
        row_group_rows: rows in a row group, at most.
        row_group_bytes: a row group is written when its rows take so many bytes in memory, before they are encoded.
        buffer_bytes: the most bytes of rows that wait, in all files together. Open files take at most as many again.
        max_file_bytes: of the file; compared after each row group.

    Raises TypeNotWritable for types that Parquet does not know, ColumnsChanged, PartitionColumnRefused.

    >>> import pyarrow.parquet, tempfile
    >>> from dagflow.testing import run_operator
    >>> @attrs.frozen
    ... class Sale:
    ...     country: str
    ...     amount: float
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     writer = ParquetWriter[Sale](folder, partition_columns=["country"])
    ...     run_operator(writer, {"input": [Sale("se", 1.5), Sale("no", 2.0), Sale("se", 0.5)]})
    ...     print(pyarrow.parquet.read_table(folder + "/country=se").column("amount").to_pylist())
    {}
    [1.5, 0.5]
    """

    compressions: ClassVar[Mapping[str, range]] = {
        "none": range(0),
        "snappy": range(0),
        "gzip": range(1, 10),
        "brotli": range(12),
        "lz4": range(1, 13),
        "zstd": range(1, 23),
    }

    suffix: str = attrs.field(default=".parquet", kw_only=True, validator=attrs.validators.instance_of(str))
    compression: str = attrs.field(default="zstd", kw_only=True)
    row_group_rows: int = attrs.field(default=1 << 20, kw_only=True, validator=attrs.validators.ge(1))
    row_group_bytes: Bytes = attrs.field(default=32 * MiB, kw_only=True, converter=size_of, validator=attrs.validators.ge(1))
    buffer_bytes: Bytes = attrs.field(default=64 * MiB, kw_only=True, converter=size_of, validator=attrs.validators.ge(1))

    def check(self) -> None:
        """Raise ValueError where properties contradict each other."""
        with all_problems(super().check) as problems:
            if self.row_group_bytes > self.buffer_bytes:
                problems.append(
                    f"row_group_bytes is {self.row_group_bytes}, more than buffer_bytes ({self.buffer_bytes}) lets wait"
                )

    def written_format(self) -> dict[str, Any]:
        """Return Parquet, whatever the suffix is."""
        return {"kind": "parquet"}

    def setup(self, context: OperatorContext) -> None:
        """Make the set of open files."""
        super().setup(context)
        self._begun: dict[str, int] = {}
        self._files = ParquetFiles(
            operator=type(self).__name__,
            create=self._create,
            make=self._writer,
            row_group_rows=self.row_group_rows,
            row_group_bytes=self.row_group_bytes,
            buffer_bytes=self.buffer_bytes,
            max_open=self.max_open_files,
            max_rows=self.max_file_rows,
            max_bytes=self.max_file_bytes,
        )

    def begin_window(self, window: int) -> None:
        """Name the window's file."""
        super().begin_window(window)
        self._begun.clear()

    def check_schema(self, schema: pa.Schema) -> None:
        """Raise TypeNotWritable."""
        for field in schema:
            try:
                self._writer(pa.BufferOutputStream(), _without_rows(field)).close()
            except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
                raise TypeNotWritable(
                    operator=type(self).__name__,
                    column=field.name,
                    type=str(field.type),
                    format="Parquet",
                    help="cast it, or leave it out, before it comes here",
                ) from error

    def prepared(self, batch: pa.RecordBatch) -> Any:
        """Return the batch. Raises ValueNotWritable for times that Parquet does not hold: it has no seconds."""
        for field, column in zip(batch.schema, batch.columns, strict=True):
            if pa.types.is_timestamp(field.type) and field.type.unit == "s":
                try:
                    column.cast(pa.timestamp("ms", field.type.tz))
                except pa.ArrowInvalid as error:
                    help_ = "correct the column, or leave such rows out: on_error='skip'"
                    raise ValueNotWritable(
                        operator=type(self).__name__, column=field.name, value=str(error), format="Parquet", help=help_
                    ) from error
        return batch

    def write_part(self, key: tuple[str, int], part: Any) -> None:
        """Append a batch to the file of its folder and schema."""
        self._files.append(key, part)

    def end_window(self) -> None:
        """Write what waits and finish the files."""
        self._files.close()
        if self._files.closed_early:
            self._context.count("files_closed_early", self._files.closed_early)
            self._files.closed_early = 0

    def _create(self, key: tuple[str, int]) -> tuple[str, Any]:
        folder, _ = key
        number = self._begun.get(folder, 0)
        self._begun[folder] = number + 1
        name = numbered(f"{folder}/{self.part_name}" if folder else self.part_name, number, self.suffix, DIGITS)
        return name, self._context.create_file(self.path, name)

    def _writer(self, sink: CountingFile | pa.NativeFile, first: pa.Table, large: Collection[str] = ()) -> Any:
        how = {"compression": self.compression, "compression_level": self.compression_level, **encodings_of(first, large)}
        return pq.ParquetWriter(sink, first.schema, **how)


def _without_rows(field: pa.Field) -> pa.Table:
    """Return an empty table of one column. `Schema.empty_table()` would load pandas: half a second in each worker."""
    return pa.table([pa.nulls(0, field.type)], schema=pa.schema([field]))
