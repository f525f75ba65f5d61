"""Read a table by ranges of its keys: a source that is not a file, whose blocks are split while they are read."""

from __future__ import annotations

import json
import os
import sqlite3
from typing import Any

import attrs

from dagflow import DAG, InputOperator, OutputPort, ReaderRecord, State
from dagflow.ranges import ByteKey, ByteKeyRange
from operators import AbstractBlockReader, Entity, Map, ReaderContext, RecordWriter


def connect(database: str) -> sqlite3.Connection:
    """Open a database to read it, without creating it."""
    return sqlite3.connect(f"file:{os.path.abspath(database)}?mode=ro", uri=True)


@attrs.frozen
class KeyBlock:
    """The rows of a table whose keys lie in `[start, stop)`. `size`: about how many bytes they are."""

    block_id: int
    database: str
    table: str
    key: str
    start: bytes
    stop: bytes
    size: int


@attrs.define
class KeyRangeInput(InputOperator):
    """Plan the blocks of a table: ranges of keys, about equally wide.

    The bounds are the first and the last key of the table, so that fractions of a range correspond to rows.
    """

    database: str
    table: str
    key: str  # a column of text, which orders the rows
    blocks: int = 8

    output = OutputPort[KeyBlock]()

    is_planned = State(False)

    def emit_tuples(self) -> None:
        """Emit all blocks, once. The framework calls this until it emits nothing."""
        if self.is_planned:
            return
        self.is_planned = True
        connection = connect(self.database)
        bounds = f"MIN(CAST({self.key} AS BLOB)), MAX(CAST({self.key} AS BLOB))"
        other = f"SUM(TYPEOF({self.key}) <> 'text')"
        first, last, not_text = connection.execute(f"SELECT {bounds}, {other} FROM {self.table}").fetchone()
        connection.close()
        if not_text:
            raise ValueError(f"{not_text} rows of {self.table} have a {self.key} that is not text: no range of keys holds them")
        if first is None:
            return
        ranges = ByteKeyRange(first, ByteKey(last).next_key()).split(self.blocks)
        size = os.path.getsize(self.database) // len(ranges)
        for number, each in enumerate(ranges):
            self.output.emit(KeyBlock(number, self.database, self.table, self.key, each.start, each.stop, size))

    def is_exhausted(self) -> bool:
        """Return True if the blocks have been emitted."""
        return self.is_planned


def key_of(connection: sqlite3.Connection, block: KeyBlock, rowid: int) -> bytes:
    """Return the key of a row; empty if the row no longer exists."""
    row = connection.execute(f"SELECT CAST({block.key} AS BLOB) FROM {block.table} WHERE rowid = ?", [rowid]).fetchone()
    return b"" if row is None else row[0]


@attrs.define
class Rows(ReaderContext):
    """Find the rows of a block in the order of their keys. A row is its columns as JSON; its position is its rowid."""

    def initialize(self, stream: Any, block: KeyBlock, consecutive: bool) -> None:
        """Begin a block, or a part of one: the same block with another `start` or `stop`."""
        key = f"{block.key} COLLATE BINARY"  # the order of the bounds, whatever that of the column
        query = f"SELECT rowid, CAST({block.key} AS BLOB), * FROM {block.table} WHERE {key} >= CAST(? AS TEXT)"
        bounds = [block.start]
        if block.stop:
            query, bounds = f"{query} AND {key} < CAST(? AS TEXT)", [*bounds, block.stop]
        self._stream, self._block = stream, block
        self._rows = stream.execute(f"{query} ORDER BY {key}", bounds)
        self._names = [column[0] for column in self._rows.description[2:]]

    def next(self) -> Entity | None:
        """Return the next row."""
        row = next(self._rows, None)
        if row is None:
            return None
        rowid, key, *values = row
        self._last = rowid, key
        data = json.dumps(dict(zip(self._names, values, strict=True)), ensure_ascii=False).encode()
        return Entity(data, used_bytes=len(data), position=rowid)

    def claimed_at(self, position: int) -> bytes:
        """Return the key of a row, since blocks are ranges of keys. The key of the last row that `next` returned is at hand."""
        return self._last[1] if self._last[0] == position else key_of(self._stream, self._block, position)


@attrs.define
class KeyRangeReader(AbstractBlockReader[str, KeyBlock, sqlite3.Connection]):
    """Read the blocks of a table. A `ByteKeyRangeTracker` guards bounds that are bytes, without any code here."""

    reader_context: ReaderContext = attrs.field(factory=Rows, kw_only=True)

    def setup_stream(self, block: KeyBlock) -> sqlite3.Connection:
        """Open the database."""
        return connect(block.database)

    def convert_to_record(self, data: bytes) -> str:
        """Return a row as text."""
        return data.decode()

    def item_weight(self, item: KeyBlock) -> int:
        """Return the weight by which blocks are assigned and rebalanced: their bytes."""
        return max(1, item.size)

    def record_at(self, block: KeyBlock, position: int) -> bytes | None:
        """Read one row again, by its rowid, for `dagflow trace --exact`, without the rows before it."""
        connection = self.setup_stream(block)
        try:
            key, rows = key_of(connection, block, position), Rows()
            rows.initialize(connection, attrs.evolve(block, start=key, stop=ByteKey(key).next_key()), False)
            entity = rows.next()
            return None if entity is None else entity.record
        finally:
            connection.close()


def line(row: ReaderRecord[str]) -> str:
    """Return a row without its place."""
    return row.record


@attrs.define
class Settings:
    """Write the rows of a table of an SQLite database as JSON lines."""

    input: str  # a database; it must not change while it is read
    output: str
    table: str
    key: str  # the column of text that orders the rows
    blocks: int = 8


def populate_dag(dag: DAG, conf: Settings) -> None:
    """Connect ranges of keys → rows → lines."""
    ranges = dag.add_operator("ranges", KeyRangeInput(conf.input, conf.table, conf.key, conf.blocks))
    reader = dag.add_operator("reader", KeyRangeReader(min_readers=2))
    lines = dag.add_operator("lines", Map(line))
    writer = dag.add_operator("writer", RecordWriter(conf.output))
    dag.add_stream("blocks", ranges.output, reader.blocks_metadata_input)
    dag.add_stream("rows", reader.messages, lines.input)
    dag.add_stream("lines", lines.output, writer.input)
