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
    """The argument of a reader's `open`: it has the requested columns, and accepts those of the reader.

    A reader either declares its columns before it reads (`set_table_schema`: "early schema"), or the loader infers them from the
    rows ("late schema"). Then the reader gets its loader: `build()`, once.

    Attributes:
        context: the operator's context: `context.name`, `context.count(…)`.
        limits: the limits of batches and rows.
        columns: the selected columns of the source, in order; None: all. The framework drops others; a format that can skip them
            does so (`is_projected`).
        provided_schema: the columns and types that the user has provided or the run has agreed on; None: the reader decides. A
            reader may load any type that converts to these; loading exactly these saves the conversion.
        parsed: columns whose text is parsed by settings of the user (Column: `format`, `blank`, `decimal`, `thousands`). Formats
            of text load it as it is.
        inferred: columns whose types come from a sample, so that `007` is not a number (see NumberText). A format of text loads
            the text that is not, and the framework decides.
        left_out: columns that need not be loaded, of those that the reader has declared.
    """

    context: OperatorContext
    limits: BatchLimits
    columns: tuple[str, ...] | None = None
    provided_schema: pa.Schema | None = None
    parsed: frozenset[str] = frozenset()
    inferred: frozenset[str] = frozenset()
    _build: Callable[[SchemaNegotiator], ResultSetLoader] = attrs.field(alias="build")
    _report: Callable[[BadRow], None] = attrs.field(alias="report")
    table_schema: pa.Schema | None = attrs.field(init=False, default=None)
    is_schema_complete: bool = attrs.field(init=False, default=False)
    batch_size: int | None = attrs.field(init=False, default=None)
    left_out: frozenset[str] = attrs.field(init=False, default=frozenset())
    _loader: ResultSetLoader | None = attrs.field(init=False, default=None)
    _wanted: frozenset[str] | None = attrs.field(init=False, default=None)

    @property
    def is_projection_empty(self) -> bool:
        """Return whether no column of the source is selected, so only the number of rows matters (`loader.skip_rows(n)`)."""
        return self.columns == ()

    def is_projected(self, name: str) -> bool:
        """Return whether a column of the source is selected, and is to be loaded."""
        if self._wanted is None and self.columns is not None:
            self._wanted = frozenset(self.columns)
        return (self._wanted is None or name in self._wanted) and name not in self.left_out

    def type_of(self, name: str) -> pa.DataType | None:
        """Return the type that a column will have; None if the reader decides."""
        schema = self.provided_schema
        at = schema.get_field_index(name) if schema is not None else -1
        return schema.field(at).type if schema is not None and at >= 0 else None

    def set_table_schema(self, schema: pa.Schema, *, complete: bool = True) -> None:
        """Declare the columns of the source, as they will be loaded. `complete` False: more may appear in its rows."""
        self.table_schema, self.is_schema_complete = schema, complete

    def set_batch_size(self, rows: int) -> None:
        """Limit batches to a number of rows, if that is less than the limit of the scan."""
        self.batch_size = rows

    def build(self) -> ResultSetLoader:
        """Return the loader that the reader fills. Raises RuntimeError if called twice."""
        if self._loader is not None:
            raise RuntimeError("build() was called twice: keep the loader that it returned")
        self._loader = self._build(self)
        return self._loader

    @property
    def loader(self) -> ResultSetLoader | None:
        """The loader that `build` has returned; None before that."""
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
        """Report a row that the reader leaves out: raise BadRowFound, count it or route it, depending on `on_bad_row`."""
        text = raw if isinstance(raw, str) else raw[: 4 * SHOWN_CHARACTERS].decode("utf-8", "backslashreplace")
        self._report(BadRow(self.source, position, line, column, reason, text[:SHOWN_CHARACTERS]))

    @property
    def source(self) -> str:
        """The name of the source in messages: a file's path."""
        return ""

    @property
    def extent(self) -> tuple[int, int]:
        """The part of the source, for messages."""
        return 0, 0


N = TypeVar("N", bound=SchemaNegotiator)


class ManagedReader(ABC, Generic[N]):
    """A reader of one format: three methods. One is made for each source, and used once.

    Rows go into the loader that `negotiator.build()` returns, with all columns or only the selected ones. The framework takes
    care of batches, projection, types, missing columns and bad values.
    """

    @abstractmethod
    def open(self, negotiator: N) -> bool:
        """Prepare to read, declare the schema if it is known, and build the loader. Return False if there is nothing to read.

        An exception fails the scan, which names reader, file and range.
        """

    @abstractmethod
    def next(self) -> bool:
        """Load some rows: until the loader is full, or a reasonable piece (1 MiB of text). Return False if there are no more.

        Rows that the last call loads count. If a call returns True without loading rows, it is repeated.
        """

    def close(self) -> None:
        """Release resources, except the stream, which the framework closes. Called exactly once, also if `open` raised."""


ReaderOf = ManagedReader[Any]
