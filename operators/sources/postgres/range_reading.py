"""The connection of a task, and the ranges that it reads over it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import attrs
import pyarrow as pa

from dagflow.scan import RowOrigin
from operators.database.postgres import PostgresServer, quoted
from operators.database.postgres_types import arrow_type
from operators.sources.errors import SourceColumnsChanged, ValueNotReadable
from operators.sources.postgres.blocks import KeyBlock
from operators.sources.postgres.columns import AgreedTable, ReadColumn, marks, schema_of_columns
from operators.sources.postgres.keys import KeyType
from operators.sources.postgres.rows import batch_of, key_position, portions, row_as_json
from operators.sources.postgres.source_table import SESSION

_KEY = "_dagflow_key"


@attrs.frozen
class EmittedRows:
    """A batch as it was read: the columns asked for (`names`), and the key, in the column `key` of it."""

    batch: pa.RecordBatch
    key: int
    names: list[str]

    def origin_of(self, row: int, key_name: str) -> RowOrigin:
        """Return the key of a row, and the row as JSON."""
        batch, names = self.batch, self.names
        if batch.schema.names[-1] == _KEY:
            batch = batch.rename_columns([*batch.schema.names[:-1], key_name])
            names = [key_name, *(name for name in names if name != key_name)]
        return RowOrigin(position=key_position(batch, self.key, row), data=memoryview(row_as_json(batch, row, names)))


class RangeReading:
    """Reads ranges of a table over one connection, which the first range opens.

    Args:
        operator: for messages.
        expected: the schema that batches are cast to; None: that of the columns.

    Attributes:
        last: the batch that was read last.
        bytes: the number of bytes that were read.
    """

    def __init__(
        self, server: PostgresServer, agreed: AgreedTable, operator: str, batch_bytes: int, expected: pa.Schema | None
    ) -> None:
        self._server = server
        self._agreed = agreed
        self._operator = operator
        self._batch_bytes = batch_bytes
        self._expected = expected
        self._open = contextlib.ExitStack()
        self._connection: Any = None
        self.last: EmittedRows | None = None
        self.bytes = 0

    def close(self) -> None:
        """Close the connection."""
        self._connection = None
        self._open.close()

    def batches(self, block: KeyBlock) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a range, in one transaction.

        Raises DatabaseBusy, DatabaseRefused, SourceColumnsChanged, ValueNotReadable.
        """
        import psycopg

        doing = f"reading {block.words} of table {block.table!r}"
        try:
            if self._connection is None:
                self._connection = self._open.enter_context(self._server.connected(doing))
            with self._connection.cursor() as cursor:
                cursor.execute(SESSION)
                self._check_types(cursor)
                yield from self._rows(cursor, block)
            self._connection.rollback()
        except psycopg.Error as error:
            raise self._server.error(error, doing) from None

    def _rows(self, cursor: Any, block: KeyBlock) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a block. All of them are of one snapshot, and in an order that each attempt repeats."""
        kind, key, columns = KeyType(block.key_type), quoted(block.key), list(self._agreed.columns)
        names = [each.name for each in columns]
        place = next((n for n, each in enumerate(columns) if each.sql == key), len(columns))
        if place == len(columns):
            columns.append(ReadColumn(_KEY, key, kind.name, arrow_type(kind.name), None))
        schema = schema_of_columns(columns)
        texts = ", ".join(each.text for each in columns)
        where = f"t.{key} >= {kind.literal(block.start)} AND t.{key} < {kind.literal(block.stop)}"
        query = f"SELECT {texts} FROM {self._agreed.qualified} AS t WHERE {where} ORDER BY t.{key}{self._agreed.order}"
        with cursor.copy(f"COPY ({query}) TO STDOUT (FORMAT csv)") as copy:
            for data in portions(copy, self._batch_bytes):
                self.bytes += len(data)
                try:
                    batch = batch_of(data, schema)
                    self.last = EmittedRows(batch, place, names)
                    asked = batch.select(names) if self._expected is None else batch.select(self._expected.names)
                    emitted = asked if self._expected is None else asked.cast(self._expected)
                except ValueError as error:
                    raise ValueNotReadable(
                        operator=self._operator, table=block.table, rows=block.words, reason=str(error)
                    ) from None
                yield emitted

    def _check_types(self, cursor: Any) -> None:
        """Raise SourceColumnsChanged if the types are not those that were agreed on when the window was planned."""
        there = [each for each in self._agreed.columns if each.mark is not None]
        if not there:
            return
        cursor.execute(f"SELECT {', '.join(each.sql for each in there)} FROM {self._agreed.qualified} WHERE false")
        differences = [each.name for each, mark in zip(there, marks(cursor), strict=True) if each.mark != mark]
        if differences:
            raise SourceColumnsChanged(
                operator=self._operator,
                table=self._agreed.qualified,
                differences=tuple(f"column {name!r} has another type than when the window was planned" for name in differences),
                help="give the column its former type until the window is read; windows after it follow drift.changed",
            )
