"""ScanReader: files of rows and columns, as batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, get_args

import attrs

from dagflow import FileBlockMetadata, InputPort, OperatorContext, OutputPort
from dagflow.scan import BadRow, Format, OnBadRow
from dagflow.storage import explained
from operators.contexts.errors import ReadError
from operators.readers.file_blocks import FileBlocks
from operators.readers.reading import Reading

if TYPE_CHECKING:
    import pyarrow as pa


def to_columns(value: Sequence[str] | None) -> tuple[str, ...] | None:
    """The columns that were asked for, as a tuple; None: all."""
    if isinstance(value, str):
        raise TypeError(f"columns is the text {value!r}, but must be a list of names: [{value!r}]")
    return None if value is None else tuple(value)


def a_format(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """Validates a property that holds a format."""
    if not isinstance(value, Format):
        raise TypeError(f"{attribute.name} is {value!r}, but must be a format: CsvFormat(…), JsonLinesFormat(…), …")


@attrs.define
class ScanReader(FileBlocks):
    """Reads blocks of files of a format (CSV, JSON lines, Parquet…) and emits batches of their columns.

    Args:
        format: the format, with its options: `CsvFormat(delimiter=";")`.
        columns: which columns, in this order; None: all that the files have; []: none, only the number of rows matters.
        schema: the columns with their types; None: what the format finds in the files.
        on_bad_row: "fail" ends the run at a row that cannot be read; "drop" leaves it out (counter `bad_rows`), "route" also
            emits it on the port `errors`, as a BadRow.
        min_readers, max_readers, collect_stats, interval_millis, policy, sequential, allow_growth: see ScaledReader, FileBlocks.

    Counters: `blocks`, `rows`, `batches`, `bytes` (of blocks), `bad_rows`, `streams_opened`, `time_ms`.
    """

    format: Format = attrs.field(validator=a_format)
    columns: tuple[str, ...] | None = attrs.field(default=None, kw_only=True, converter=to_columns)
    schema: Any = attrs.field(default=None, kw_only=True)
    on_bad_row: OnBadRow = attrs.field(default="fail", kw_only=True, validator=attrs.validators.in_(get_args(OnBadRow)))

    blocks_metadata_input = InputPort[FileBlockMetadata]()
    batches = OutputPort[Any]()
    errors = OutputPort[BadRow]()  # type: ignore[assignment]  # rows that cannot be read, with more than other operators know

    @property
    def splittable(self) -> bool:
        """Whether a block may be cut anywhere, also while it is being read."""
        return self.format.cuts == "any"

    def can_split(self, item: FileBlockMetadata) -> bool:
        """Whether a block may be split into parts that are read by different readers."""
        return self.splittable and item.as_planned

    def emitted_forms(self, port: str, handled: str) -> frozenset[str]:
        """Batches, whoever takes them."""
        return frozenset({"batch"}) if port == "batches" else super().emitted_forms(port, handled)

    def setup(self, context: OperatorContext) -> None:
        """Makes ready to read."""
        from dagflow.scan import FileScan

        self._task = Reading(context)
        self._scan = FileScan(
            format=self.format,
            context=context,
            open_stream=self._open,
            columns=self.columns,
            schema=self.schema,
            on_bad_row=self.on_bad_row,
            route=self._route,
        )

    @blocks_metadata_input.process
    def read_block(self, block: FileBlockMetadata) -> None:
        """Reads one block."""
        task, context = self._task, self._task.context
        context.at(block.file_path, block.start)
        task.begin()
        try:
            with explained(block.file_path, "reading"):
                self._read(block)
        except ReadError as error:
            error.of(context.name)
            raise
        part = context.part
        context.count("blocks", int(part is None or part.start is None))
        context.count("bytes", block.stop - block.start)
        task.end()

    def _read(self, block: FileBlockMetadata) -> None:
        for batch in self._scan.read(block):
            self._emit(batch)

    def _emit(self, batch: pa.RecordBatch) -> None:
        task = self._task
        task.context.count("rows", batch.num_rows)
        task.context.count("batches")
        with task.away:
            self.batches.emit_batch(batch)

    def _open(self, block: FileBlockMetadata) -> Any:
        self._task.context.count("streams_opened")
        return self.setup_stream(block)

    def _route(self, row: BadRow) -> None:
        self.errors.emit(row)

    @property
    def known_schema(self) -> pa.Schema | None:
        """In a task: the schema of the batches, where it is known; None where it is not."""
        return self._scan.known_schema

    def teardown(self) -> None:
        """Closes what is open."""
        if hasattr(self, "_scan"):
            self._scan.close()
