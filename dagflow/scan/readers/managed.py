"""The interface for authors of formats: a reader that opens, reads and closes, and agrees with the framework in `open`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import attrs

from dagflow.scan.bad_rows import SHOWN_CHARACTERS, BadRow

if TYPE_CHECKING:
    import pyarrow as pa

    from dagflow.model.operator.context import OperatorContext
    from dagflow.scan.readers.loader import BatchLimits, ResultSetLoader


@attrs.define(eq=False, kw_only=True)
class SchemaNegotiator:
    """The argument of a reader's `open`: it answers the reader's questions, and takes the columns that the reader has.

    A reader either says its columns before it reads (`set_table_schema`: "early schema"), or the loader learns them from what is
    loaded ("late schema"). Then it asks for its loader: `build()`, once.

    Attributes:
        context: the operator's context: `context.name`, `context.count(…)`.
        limits: of batches and rows.
        columns: the columns of the source that are wanted, in the order asked for; None: all. Others cost the framework nothing;
            a format that can leave them unread does (`is_projected`).
        provided_schema: the columns with their types as the user gave them or the run has agreed; None: the reader finds types.
            A reader may load any type that converts to these; one that loads these exactly spares the conversion.
        parsed: columns of whose text the user has said more than the type (Column: `format`, `blank`): formats that hold text
            load it as it stands.
    """

    context: OperatorContext
    limits: BatchLimits
    columns: tuple[str, ...] | None = None
    provided_schema: pa.Schema | None = None
    parsed: frozenset[str] = frozenset()
    _build: Callable[[SchemaNegotiator], ResultSetLoader] = attrs.field(alias="build")
    _report: Callable[[BadRow], None] = attrs.field(alias="report")
    table_schema: pa.Schema | None = attrs.field(init=False, default=None)
    is_schema_complete: bool = attrs.field(init=False, default=False)
    batch_size: int | None = attrs.field(init=False, default=None)
    _loader: ResultSetLoader | None = attrs.field(init=False, default=None)
    _wanted: frozenset[str] | None = attrs.field(init=False, default=None)

    @property
    def is_projection_empty(self) -> bool:
        """Return whether only the number of rows is wanted (`loader.skip_rows(n)`): no column of the source is."""
        return self.columns == ()

    def is_projected(self, name: str) -> bool:
        """Return whether a column of the source is wanted."""
        if self._wanted is None and self.columns is not None:
            self._wanted = frozenset(self.columns)
        return self._wanted is None or name in self._wanted

    def type_of(self, name: str) -> pa.DataType | None:
        """Return the type that a column will have; None: the one that the reader gives it."""
        schema = self.provided_schema
        at = schema.get_field_index(name) if schema is not None else -1
        return schema.field(at).type if schema is not None and at >= 0 else None

    def set_table_schema(self, schema: pa.Schema, *, complete: bool = True) -> None:
        """Say the columns of the source, as they will be loaded. `complete` False: more may turn up while it is read."""
        self.table_schema, self.is_schema_complete = schema, complete

    def set_batch_size(self, rows: int) -> None:
        """Wishes for batches of at most so many rows; never more than the scan's own limit."""
        self.batch_size = rows

    def build(self) -> ResultSetLoader:
        """Return the loader that the reader fills. Raises RuntimeError when called twice."""
        if self._loader is not None:
            raise RuntimeError("build() was called twice: keep the loader that it gave")
        self._loader = self._build(self)
        return self._loader

    @property
    def loader(self) -> ResultSetLoader | None:
        """The loader that `build` has returned; None before."""
        return self._loader

    def bad_row(
        self,
        reason: str,
        *,
        position: int | None = None,
        line: int | None = None,
        column: str | None = None,
        raw: str | bytes = "",
    ) -> None:
        """Reports a row that the reader leaves out: raises BadRowFound, counts it or routes it, as the user has said."""
        text = raw if isinstance(raw, str) else raw[: 4 * SHOWN_CHARACTERS].decode("utf-8", "backslashreplace")
        self._report(BadRow(self.source, position, line, column, reason, text[:SHOWN_CHARACTERS]))

    @property
    def source(self) -> str:
        """The name of the source in messages: a file's path."""
        return ""

    @property
    def extent(self) -> tuple[int, int]:
        """Which part of it, for messages."""
        return 0, 0


N = TypeVar("N", bound=SchemaNegotiator)


class ManagedReader(ABC, Generic[N]):
    """A reader of one format: three methods. One is made for each source, and used once.

    Rows go into the loader that `negotiator.build()` gives, all columns or those that are wanted; batches, projection, types,
    missing columns and bad values are the framework's.
    """

    @abstractmethod
    def open(self, negotiator: N) -> bool:
        """Make ready, says the schema if it knows it, and builds the loader. False: there is nothing to read, skip it.

        An exception fails the scan, which names reader, file and range.
        """

    @abstractmethod
    def next(self) -> bool:
        """Load some rows: until the loader is full, or a reasonable piece (1 MiB of text). False: there are no more.

        Rows that were loaded in the last call count. A call that returns True and has loaded nothing is simply called again.
        """

    def close(self) -> None:
        """Lets go of what it keeps; the stream is the framework's. Called exactly once, also when `open` raised."""


ReaderOf = ManagedReader[Any]
