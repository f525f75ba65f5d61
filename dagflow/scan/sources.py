"""Scans of any source: blocks with columns, whatever they are ranges of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

import attrs

from dagflow.model.operator.context import OperatorContext
from dagflow.ranges import RangeTracker
from dagflow.scan.agreement import MergedColumns, has_all_columns, loaded_schema, needs_columns, spread
from dagflow.scan.framework import BlockScan, BlockSchemaNegotiator
from dagflow.scan.readers.lifecycle import ManagedBatchReader
from dagflow.scan.readers.loader import BatchLimits, ResultSetLoader
from dagflow.scan.readers.machine import close_after
from dagflow.scan.readers.managed import ManagedReader
from dagflow.scan.schema.implicit import FileFacts
from dagflow.scan.schema.shape import AgreedSchema, Shape, make_shape
from dagflow.scan.settings import ScanSettings

B = TypeVar("B")
S = TypeVar("S")
B_contra = TypeVar("B_contra", contravariant=True)


@attrs.define(eq=False, kw_only=True)
class SourceSchemaNegotiator(BlockSchemaNegotiator, Generic[B, S]):
    """The negotiator of a reader of any block: it also has the block, and the stream that was opened for it.

    `block` is as it was planned; the range to read is that of the block. `place`: its name in messages.
    """

    block: B
    stream: S
    place: str

    @property
    def source(self) -> str:
        """The name of the source, for messages."""
        return self.place


class ColumnSource(Protocol[B_contra]):
    """A source of blocks with columns, as an operator describes it: see AbstractScanReader."""

    def setup_stream(self, block: B_contra) -> Any:
        """Open the stream of a block."""
        ...

    def close_stream(self, stream: Any) -> None:
        """Close a stream."""
        ...

    def make_reader(self) -> ManagedReader[SourceSchemaNegotiator[Any, Any]]:
        """Return a fresh reader for one block."""
        ...

    def tracker_of(self, item: B_contra) -> RangeTracker[Any]:
        """Return a new tracker of the range of a block."""
        ...

    def can_split(self, item: B_contra) -> bool:
        """Return True if parts of a block may be read by different readers."""
        ...

    def place_of(self, block: B_contra) -> str:
        """Return the name of the source of a block, for messages."""
        ...


@attrs.define(eq=False, kw_only=True)
class SourceScan(BlockScan):
    """The framework for blocks of any source. `source`: the operator, which opens them and makes readers."""

    source: ColumnSource[Any]

    def _make_shape(self) -> Shape:
        settings = self.settings
        return make_shape(
            settings.projection,
            self.agreed,
            settings.schema,
            settings.drift,
            null_type=settings.null_arrow_type,
            has_files=False,
        )

    @property
    def _source_kind(self) -> str:
        return type(self.source).__name__

    @property
    def _is_cut(self) -> bool:
        return True

    def _reader_of(self, block: Any) -> ManagedBatchReader | None:
        source = self.source
        place = source.place_of(block)
        self._facts = FileFacts(place, (), {})
        tracker = self._tracker = source.tracker_of(block)
        stream = source.setup_stream(block)
        try:
            negotiator: Any = SourceSchemaNegotiator(
                **self._asking(),
                tracker=tracker,
                is_splittable=source.can_split(block),
                block=block,
                stream=stream,
                place=place,
            )
            reader = source.make_reader()
        except BaseException as error:
            close_after(error, lambda: source.close_stream(stream))
            raise
        return self._managed(reader, negotiator, lambda: source.close_stream(stream))


def agree_on_blocks(
    source: ColumnSource[B],
    settings: ScanSettings,
    blocks: Sequence[B],
    samples: int,
    *,
    warn: Callable[[str], None] = lambda text: None,
    before: AgreedSchema | None = None,
) -> AgreedSchema:
    """Return the schema of blocks, from the first rows of at most `samples` of them, spread evenly.

    A column gets the type that is wide enough for all. No block is opened if the settings say all columns. `warn` as in `agree`.
    """
    merged = MergedColumns.beside(settings, before, warn)
    with_columns = 0
    for block in spread(blocks, samples) if needs_columns(settings) else ():
        schema = _first_columns(source, block)
        with_columns += bool(schema)
        if schema is not None:
            merged.add(schema, source.place_of(block))
    return AgreedSchema(columns=merged.columns, files=with_columns)


def is_agreed(settings: ScanSettings, agreed: AgreedSchema) -> bool:
    """Return whether the schema of earlier windows is enough for further blocks, without a sample of them."""
    return not needs_columns(settings) or has_all_columns(settings, agreed, has_files=False)


def _first_columns(source: ColumnSource[B], block: B) -> Any:
    """Return the columns that a reader declares or loads first. Rows that it cannot read are ignored."""
    limits, place, stream = BatchLimits(), source.place_of(block), source.setup_stream(block)
    try:
        negotiator: Any = SourceSchemaNegotiator(
            context=OperatorContext(),
            limits=limits,
            build=lambda asking: ResultSetLoader(limits=limits, path=place),
            report=lambda row: None,
            tracker=source.tracker_of(block),
            block=block,
            stream=stream,
            place=place,
        )
        return loaded_schema(source.make_reader(), negotiator)
    finally:
        source.close_stream(stream)
