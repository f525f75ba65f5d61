"""SQLite: a database in a file."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

import contextlib
import re
import sqlite3
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from operators.database.errors import DatabaseBusy, DatabaseRefused
from operators.sinks.database.dialect import PARAMETER, Chunk, Rehearsal, Session, SqlDialect, StatementRefused
from operators.sinks.encoding.json_rows import JsonEncoder, unsupported_part
from operators.sinks.encoding.plain_text import as_text
from operators.sinks.errors import ValueNotWritable
from operators.sinks.table_formats.staged_files import sync_local

_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
_FILE = frozenset(
    {
        sqlite3.SQLITE_AUTH,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_READONLY,
    }
)
_MARK = "_dagflow_mark_"
_RULE = re.compile(r"(?i)\b(check|strict|as)\b")
"""A word in the definition of a table that may have rules: constraints, types that are checked, generated columns."""
_LARGEST = 2**63 - 1


@attrs.frozen
class Sqlite(SqlDialect):
    """A database in the file `path`. A session waits `lock_timeout` seconds for others that write."""

    path: str
    lock_timeout: float = 60.0

    name = "SQLite"

    @property
    def place(self) -> str:  # type: ignore[override]
        """The file."""
        return self.path

    @contextlib.contextmanager
    def session(self, doing: str) -> Iterator[Session]:
        """See `SqlDialect.session`."""
        try:
            with contextlib.closing(sqlite3.connect(self.path, timeout=self.lock_timeout, isolation_level=None)) as database:
                # else a power cut may undo a COMMIT of a database with a rollback journal: the folder of that is not synced
                database.execute("PRAGMA synchronous = EXTRA")
                database.execute("BEGIN IMMEDIATE")
                try:
                    yield _SqliteSession(database)
                    database.execute("COMMIT")
                except BaseException:
                    if database.in_transaction:
                        database.execute("ROLLBACK")
                    raise
        except sqlite3.Error as error:
            raise self._error(error, doing) from error

    def secure(self) -> None:
        """See `SqlDialect.secure`. A COMMIT can be seen before the folder of its journal is synced, or its log is."""
        sync_local([self.path, f"{self.path}-wal"])

    def column_type(self, kind: Any) -> str | None:
        """Return the type of a column: INTEGER, REAL, BLOB, and TEXT for all that has no form of its own."""
        kind = kind.value_type if t.is_dictionary(kind) else kind
        if t.is_integer(kind) or t.is_boolean(kind) or t.is_duration(kind):
            return "INTEGER"
        if t.is_floating(kind):
            return "REAL"
        if _is_binary(kind):
            return "BLOB"
        return "TEXT" if unsupported_part(kind) is None else None

    def chunk(self, batch: pa.RecordBatch, operator: str) -> Chunk:
        """Return rows as tuples. Raises ValueNotWritable for NaN, and for integers of more than 64 bits with sign."""
        columns = [_values(name, column, operator) for name, column in zip(batch.schema.names, batch.columns, strict=True)]
        return Chunk(batch.num_rows, batch.nbytes, list(zip(*columns, strict=True)))

    def row_place(self, columns: Collection[str]) -> tuple[str, ...]:
        """Return the name of the row's number that is not that of a column."""
        names = {self.folded(name) for name in columns}
        return tuple(name for name in ("rowid", "oid", "_rowid_") if name not in names)[:1]

    def content(self, columns: Mapping[str, str]) -> str:
        """See `SqlDialect.content`. A zero has no sign in a file, and `quote` ends at the character NUL."""
        names = map(self.quoted, columns)
        return " || ',' || ".join(
            f"CASE typeof({name}) WHEN 'text' THEN 't' || hex({name}) ELSE quote({name}) END" for name in names
        )

    def folded(self, name: str) -> str:
        """Return a name in lower case: SQLite does not tell `A` from `a`."""
        return name.translate(_LOWER)

    def wider(self, then: str, now: str) -> str:
        """Return the type that the column has: it takes values of all types."""
        return then

    def _error(self, error: sqlite3.Error, doing: str) -> Exception:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in _BUSY:
            return DatabaseBusy(database=self.path, doing=doing, reason=str(error))
        if code in _FILE:
            return DatabaseRefused(database=self.path, doing=doing, reason=str(error))
        is_rows = isinstance(error, sqlite3.IntegrityError | sqlite3.DataError)
        return StatementRefused("rows" if is_rows else "table", str(error))


_LOWER = str.maketrans({chr(n): chr(n + 32) for n in range(ord("A"), ord("Z") + 1)})


class _SqliteSession(Session):
    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def qualified(self, table: str) -> str:
        return '"' + table.replace('"', '""') + '"'

    def select(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        return self._database.execute(statement.replace(PARAMETER, "?"), parameters).fetchall()

    def run(self, statement: str, *parameters: Any) -> int:
        return self._database.execute(statement.replace(PARAMETER, "?"), parameters).rowcount

    def load(self, table: str, columns: Sequence[str], chunks: Sequence[Chunk]) -> None:
        names = ", ".join(self.qualified(name) for name in columns)
        marks = ", ".join("?" for _ in columns)
        insert = f"INSERT INTO {self.qualified(table)} ({names}) VALUES ({marks})"
        for chunk in chunks:
            self._database.executemany(insert, chunk.data)

    def columns(self, table: str) -> dict[str, str]:
        rows = self.select(f"SELECT name, type FROM pragma_table_info({PARAMETER})", table)
        return {str(name): str(kind) for name, kind in rows}

    def tables(self, prefix: str) -> list[str]:
        statement = f"SELECT name FROM sqlite_master WHERE type = 'table' AND substr(name, 1, {PARAMETER}) = {PARAMETER}"
        return [str(name) for (name,) in self.select(statement, len(prefix), prefix)]

    def required(self, table: str) -> list[str]:
        statement = f'SELECT name FROM pragma_table_info({PARAMETER}) WHERE "notnull" AND dflt_value IS NULL AND NOT pk'
        return [str(name) for (name,) in self.select(statement, table)]

    def has_rules(self, table: str, keys: Sequence[str]) -> bool:
        statement = f"SELECT type, sql FROM sqlite_master WHERE lower(tbl_name) = lower({PARAMETER}) AND type <> 'index'"
        indexes = f"SELECT name FROM pragma_index_list({PARAMETER}) WHERE substr(name, 1, {len(_MARK)}) <> '{_MARK}'"
        unique = [
            self._names(f"SELECT name FROM pragma_index_info({PARAMETER})", name) for (name,) in self.select(indexes, table)
        ]
        primary = self._names(f"SELECT name FROM pragma_table_info({PARAMETER}) WHERE pk > 0", table)
        return any(kind != "table" or _RULE.search(sql) for kind, sql in self.select(statement, table)) or any(
            names and names != {name.translate(_LOWER) for name in keys} for names in (*unique, primary)
        )

    def _names(self, statement: str, of: str) -> set[str]:
        """Return the folded names of columns; the expression of an index is an empty one."""
        return {(name or "").translate(_LOWER) for (name,) in self.select(statement, of)}

    def later_rows(self, table: str) -> str:
        ((last,),) = self.select(f"SELECT coalesce(max(rowid), 0) FROM {self.qualified(table)}")
        return f"rowid > {last}"

    def rehearse(self, rehearsal: Rehearsal) -> None:
        """Insert the rows into the table itself, and take that back: no other connection reads or writes meanwhile."""
        each, table = rehearsal, self.qualified(rehearsal.table)
        names = ", ".join(map(self.qualified, each.names))
        with self.undone():
            for change in each.changes:
                self.run(f"ALTER TABLE {table} {change}")
            if each.mode == "replace":
                self.run(f"DELETE FROM {table}")
            source = f"FROM ({each.staged}) WHERE true"  # without WHERE, ON CONFLICT would belong to a join
            taken = self.run(f"INSERT INTO {table} ({names}) SELECT {', '.join(each.values)} {source}{each.on_conflict}")
            ((rows,),) = self.select(f"SELECT count(*) {source}")
            if not each.on_conflict and taken != rows:  # a trigger with RAISE(IGNORE)
                raise StatementRefused("rows", f"of {rows:,} rows, the table took {taken:,}")

    def identity(self, table: str, create: bool = False) -> str | None:
        """Return the name of an empty index on the table, which goes with it when it is dropped."""
        statement = (
            f"SELECT name FROM sqlite_master WHERE type = 'index' AND lower(tbl_name) = lower({PARAMETER})"
            f" AND substr(name, 1, {PARAMETER}) = {PARAMETER}"
        )
        names = [str(name) for (name,) in self.select(statement, table, len(_MARK), _MARK)]
        if not names and create:
            names = [f"{_MARK}{uuid.uuid4().hex}"]
            column = self.qualified(next(iter(self.columns(table))))
            self.run(f"CREATE INDEX {self.qualified(names[0])} ON {self.qualified(table)} ({column}) WHERE 0")
        return min(names, default=None)


def _is_binary(kind: Any) -> bool:
    return bool(t.is_binary(kind) or t.is_large_binary(kind) or t.is_fixed_size_binary(kind) or t.is_binary_view(kind))


def _values(name: str, column: Any, operator: str) -> list[Any]:
    kind: Any = column.type
    if t.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if t.is_duration(kind):
        return list(column.cast(pa.int64()).to_pylist())
    if t.is_floating(kind) and pc.any(pc.is_nan(column), min_count=0).as_py():
        raise _not_writable(operator, name, "nan", "SQLite would store NULL: write null in its place before it comes here")
    if t.is_uint64(kind) and (pc.max(column).as_py() or 0) > _LARGEST:
        raise _not_writable(operator, name, str(pc.max(column)), "turn the column into text or a decimal before it comes here")
    if t.is_nested(kind):
        texts = JsonEncoder(operator).values(name, column)
        return list(pc.if_else(column.is_valid(), texts, None).to_pylist())
    is_text = t.is_decimal(kind) or t.is_temporal(kind)
    return list((as_text(column, name, operator, "SQLite") if is_text else column).to_pylist())


def _not_writable(operator: str, column: str, value: str, help_: str) -> ValueNotWritable:
    return ValueNotWritable(operator=operator, column=column, value=value, format="SQLite", help=help_)
