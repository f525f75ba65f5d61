"""The framework of scans: makes a reader for each block, and converts the batches that it loads. It knows no files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import pyarrow as pa

from dagflow.model.operator.context import RecordOrigin
from dagflow.scan.bad_rows import BadRow, RowOrigin
from dagflow.scan.errors import BadRowFound, ColumnExtra, ColumnMissing, MissingUntold, ReaderMisbehaves
from dagflow.scan.output import Output
from dagflow.scan.readers.lifecycle import ManagedBatchReader
from dagflow.scan.readers.loader import BatchLimits, Harvest, ResultSetLoader
from dagflow.scan.readers.machine import Scan
from dagflow.scan.readers.managed import SchemaNegotiator
from dagflow.scan.schema.implicit import FileFacts
from dagflow.scan.schema.shape import AgreedSchema, Shape

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dagflow.model.operator.context import OperatorContext
    from dagflow.ranges import RangeTracker
    from dagflow.scan.settings import ScanSettings


@attrs.define(eq=False, kw_only=True)
class BlockSchemaNegotiator(SchemaNegotiator):
    """The negotiator of a reader of a block, which claims what it loads.

    Attributes:
        tracker: the range tracker of the block. Readers claim through `claim`.
        is_splittable: whether the end of the block may be given to another reader while it is read.
    """

    tracker: RangeTracker[Any]
    is_splittable: bool = False
    _is_whole: bool = attrs.field(init=False, default=False)
    _is_tracked: bool = attrs.field(init=False, default=False)

    @property
    def extent(self) -> tuple[Any, Any]:
        """The range, for messages."""
        return self.tracker.start_position, self.tracker.stop_position

    def claim(self, positions: Sequence[Any] | NDArray[np.int64]) -> int:
        """Claim rows that come next, by the positions at which they start (sorted; only the first and last are looked at).

        Returns how many of them belong to this reader: all, or fewer at the end of its range; then only so many may be loaded,
        and `next` returns False. Call it before rows are loaded, once for each piece: rows that are not claimed may be stolen.
        """
        if not len(positions):
            return 0
        context = self.context
        if context.is_rebalanced and not self._is_tracked and not self._is_whole and self.is_splittable:
            self._is_tracked = True
            context.track(self.tracker)
        context.flush()
        return self.tracker.try_return_batch_at(positions)  # type: ignore[arg-type]  # it looks at the first and the last

    def keep_whole(self) -> None:
        """Declare, before anything is claimed, that this block cannot be split, because of its content."""
        self._is_whole = True


@attrs.define(eq=False, kw_only=True)
class BlockScan(ABC):
    """The framework for blocks of any source. A subclass makes the shape of the scan, and a reader for each block.

    Args:
        settings: from the user.
        agreed: the schema that all readers agree on.
        context: the context of the operator.
        route: takes bad rows, if `on_bad_row` is "route".

    Making one raises ColumnUnknown, ColumnNoSuchPart, ProjectionError.
    """

    settings: ScanSettings
    agreed: AgreedSchema
    context: OperatorContext
    route: Callable[[BadRow], None] = attrs.field(default=lambda row: None)
    _limits: BatchLimits = attrs.field(init=False)
    _output: Output = attrs.field(init=False)
    _scan: Scan[pa.RecordBatch] = attrs.field(init=False)
    _block: Any = attrs.field(init=False, default=None)
    _facts: FileFacts | None = attrs.field(init=False, default=None)
    _tracker: RangeTracker[Any] | None = attrs.field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        self._limits = self.settings.limits or BatchLimits()
        shape = self._make_shape()
        settings = self.settings
        self._output = Output(
            shape=shape, drift=settings.drift, report=self._report, count=self.context.count, only=settings.only
        )
        self._scan = Scan(self._next_reader)

    # A framework overrides these

    @abstractmethod
    def _make_shape(self) -> Shape:
        """Return the columns of the scan."""

    @abstractmethod
    def _reader_of(self, block: Any) -> ManagedBatchReader | None:
        """Return the reader of a block, by `_managed`; None if it has nothing to read. Sets `_facts` and `_tracker`."""

    @property
    @abstractmethod
    def _source_kind(self) -> str:
        """The name of the format, for messages."""

    @property
    @abstractmethod
    def _is_cut(self) -> bool:
        """True if several readers may share the rows of a source."""

    _has_encoding = False
    """True if messages about bytes that are not text may name the option `encoding`."""

    def _refused(self) -> tuple[str, ReaderMisbehaves] | None:
        """Return a column that readers must not load, and the error to raise."""
        return None

    def _compares(self, schema: pa.Schema) -> bool:
        """Return whether the columns that a reader declares are those of the shape, by name."""
        return True

    # For operators

    def read(self, block: Any) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a block."""
        if self._scan.state == "failed":  # the block before failed, and was skipped
            self._scan = Scan(self._next_reader)
        self._block, self._tracker = block, None
        for batch in self._scan.batches():
            yield batch
            self._output.release()

    def origin(self, row: int) -> RowOrigin:
        """Return the origin of a row of the last batch of `read`. Empty if the format does not know it."""
        return self._output.origin(row)

    @property
    def schema(self) -> pa.Schema:
        """The schema of the batches, as far as it is known."""
        return self._output.schema

    def finish(self) -> pa.Schema | None:
        """End the scan, and return the schema of its batches, also if there were none; None if it is not known ("fast NONE")."""
        if not self._scan.delivered and not len(self._output.schema):
            empty = next(self._scan.finish(), None)
            return None if empty is None else empty.schema
        return self._output.schema

    def close(self) -> None:
        """Close the current reader, if there is one."""
        self._scan.close()

    def _next_reader(self) -> ManagedBatchReader | None:
        block, self._block = self._block, None
        return None if block is None else self._reader_of(block)

    def _asking(self) -> dict[str, Any]:
        """Return what all negotiators of the scan have."""
        shape = self._output.shape
        return {
            "context": self.context,
            "limits": self._limits,
            "columns": shape.columns_to_read(self.settings.drift),
            "provided_schema": shape.source_schema,
            "parsed": shape.spelled.union(() if self.settings.schema is None else self.settings.schema.parsed),
            "inferred": shape.inferred,
            "build": self._build,
            "report": self._report,
        }

    def _managed(self, reader: Any, negotiator: SchemaNegotiator, done: Callable[[], None]) -> ManagedBatchReader:
        """Return a managed reader as the scan operator takes it. `done` is called when it is closed."""
        return ManagedBatchReader(
            reader=reader,
            negotiator=negotiator,
            output=self._output_of,
            empty_of=self._empty,
            at_end=lambda: self._at_end(negotiator),
            done=done,
        )

    def _build(self, negotiator: SchemaNegotiator) -> ResultSetLoader:
        table_schema = negotiator.table_schema
        is_late = not negotiator.is_schema_complete and self._is_cut  # several readers share its rows
        if self.settings.drift.missing == "error" and is_late and self._output.shape.roots:
            raise MissingUntold(path=negotiator.source, format=self._source_kind)
        if table_schema is not None and self._compares(table_schema):
            self._compare(table_schema, negotiator.is_schema_complete, negotiator.source)
        negotiator.left_out = self._output.leave_out(table_schema)
        self._output.file_columns = (
            None if table_schema is None or not negotiator.is_schema_complete else frozenset(table_schema.names)
        )
        limits = self._limits
        if negotiator.batch_size is not None:
            limits = attrs.evolve(limits, rows=max(1, min(negotiator.batch_size, limits.rows)))
        types = {f.name: f.type for f in (*(negotiator.provided_schema or ()), *(table_schema or ()))}
        columns = negotiator.columns
        return ResultSetLoader(
            columns=None if columns is None else frozenset(columns),
            limits=limits,
            types=types,
            path=negotiator.source,
            refused=self._refused(),
        )

    def _compare(self, schema: pa.Schema, is_complete: bool, path: str) -> None:
        """Compare the columns of a file with the known ones. Raises ColumnMissing, ColumnExtra."""
        drift, shape = self.settings.drift, self._output.shape
        names = schema.names  # made anew each time it is asked for
        lacking = set(shape.roots).difference(names)
        folded = {name.casefold(): name for name in names} if lacking else {}
        spelled = {root: folded[root.casefold()] for root in lacking if root.casefold() in folded}
        self._output.spelled = spelled
        if not shape.roots.keys() >= set(spelled.values()):
            self.context.count("columns_in_another_case")
        if is_complete and drift.missing == "error":
            self._refuse_missing(names, path)
        if shape.is_open and drift.extra == "error":
            extra = tuple(name for name in names if name not in shape.known)
            if extra:
                raise ColumnExtra(path=path, extra=extra, known=tuple(shape.known))

    def _refuse_missing(self, names: Sequence[str], path: str) -> None:
        """Raise ColumnMissing if neither the columns of a file nor its folders have a column that is needed."""
        assert self._facts is not None
        present = {*names, *self._facts.keys}
        lacking = tuple(root for root in self._output.shape.roots if root not in present)
        if lacking:
            raise ColumnMissing(path=path, missing=lacking, found=tuple(names))

    def _at_end(self, negotiator: SchemaNegotiator) -> None:
        """Check for missing columns at the end of a file that declares them only by its rows, if it has any."""
        loaded = None if negotiator.loader is None else negotiator.loader.schema
        if self.settings.drift.missing == "error" and loaded is not None and not negotiator.is_schema_complete:
            table_schema = negotiator.table_schema
            self._refuse_missing([*(table_schema.names if table_schema is not None else ()), *loaded.names], negotiator.source)

    def _report(self, row: BadRow) -> None:
        if self.settings.on_bad_row == "fail":
            raise BadRowFound(
                path=row.file_path,
                position=row.position,
                line=row.line,
                column=row.column,
                reason=row.reason,
                raw=row.raw,
                reader=self.context.name,
                record_class="" if self.settings.schema is None else self.settings.schema.record_class,
                has_encoding=self._has_encoding,
            )
        self.context.count("bad_rows")
        place = RecordOrigin(row.file_path, row.position, line=row.line, is_exact=row.position is not None)
        self.context.reject(row.problem, [row.raw], at=[place])
        if self.settings.on_bad_row == "route":
            self.route(row)

    def _output_of(self, harvest: Harvest) -> pa.RecordBatch:
        assert self._facts is not None
        if self.settings.schema is not None and self._has_no_values(harvest.batch, self._facts):
            self.context.count("rows_without_values", harvest.batch.num_rows)
        return self._output.make(harvest, self._facts)

    def _has_no_values(self, batch: pa.RecordBatch, facts: FileFacts) -> bool:
        """Return whether a batch has no value in any selected column: the schema may be that of other files."""
        roots, names = self._output.shape.roots, batch.schema.names
        has_values = (r in facts.keys or (r in names and batch.column(r).null_count < batch.num_rows) for r in roots)
        return bool(roots) and not any(has_values)

    def _empty(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist([], schema=self._output.schema)
