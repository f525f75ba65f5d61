"""PostgreSQL, by psycopg: rows are loaded by COPY."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from operators.database.postgres import NAME_BYTES, PostgresServer, text_of
from operators.database.postgres_types import is_array, is_binary, postgres_type
from operators.sinks.database.dialect import PARAMETER, Chunk, Rehearsal, Session, SqlDialect, StatementRefused
from operators.sinks.encoding.json_rows import JsonEncoder, joined_lists, unsupported_part
from operators.sinks.encoding.plain_text import as_text, bytes_of
from operators.sinks.errors import ValueNotWritable

CHUNK_ROWS = 1 << 16

_INTEGERS, _REALS = ("smallint", "integer", "bigint"), ("real", "double precision")
_UNITS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "microseconds"}
_OF_ROWS, _OF_TABLE = ("22", "23", "21"), ("42", "0A")
_NEEDS = "CONNECT on the database, and USAGE and CREATE on the schema of the table"
_SPECIAL = (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))


@attrs.frozen
class Postgres(SqlDialect):
    """A PostgreSQL server. `dsn`: URL or connection string of libpq, which completes it from the environment (`PGHOST`, …).

    `schema`: of all tables; None for the first one of the search path.
    """

    dsn: str = attrs.field(repr=False)
    schema: str | None = None
    lock_timeout: float = 60.0
    nul_replacement: str | None = None

    name = "PostgreSQL"

    @property
    def server(self) -> PostgresServer:
        """The server by itself."""
        return PostgresServer(self.dsn, _NEEDS)

    @property
    def place(self) -> str:  # type: ignore[override]
        """Host, port and database."""
        return self.server.place

    @contextlib.contextmanager
    def session(self, doing: str) -> Iterator[Session]:
        """See `SqlDialect.session`."""
        import psycopg

        try:
            with self.server.connected(doing) as connection:
                with connection.cursor() as cursor:  # of this transaction: a pool may give the next one to another server process
                    milliseconds = max(2, int(self.lock_timeout * 1000))
                    cursor.execute(b"SET LOCAL lock_timeout = %d" % milliseconds)
                    # a session whose client is gone without a word lets go of its locks while the next one waits for them
                    cursor.execute(b"SET LOCAL idle_in_transaction_session_timeout = %d" % (milliseconds // 2))
                    cursor.execute("SET LOCAL synchronous_commit = on")
                    cursor.execute("SET LOCAL TimeZone = 'UTC'")  # times with and without a zone are converted by it
                    schema = self.schema
                    if schema is None:
                        schema = _first(cursor.execute("SELECT current_schema()").fetchall())
                    yield PostgresSession(self, cursor, "public" if schema is None else schema)
                connection.commit()
        except psycopg.Error as error:
            raise self._error(error, doing) from None

    def column_type(self, kind: Any) -> str | None:
        """Return the type of a column. Nested values other than lists of plain ones are `jsonb`."""
        return postgres_type(kind) or ("jsonb" if unsupported_part(kind) is None else None)

    def chunk(self, batch: pa.RecordBatch, operator: str) -> Chunk:
        """Return rows in the text form of COPY. Raises ValueNotWritable."""
        data = [self._lines(batch.slice(start, CHUNK_ROWS), operator) for start in range(0, batch.num_rows, CHUNK_ROWS)]
        return Chunk(batch.num_rows, sum(map(len, data)), data)

    def name_problem(self, name: str) -> str | None:
        """Return what is wrong with the name of a table or column, None if nothing is."""
        if len(name.encode()) > NAME_BYTES:
            return f"it is longer than {NAME_BYTES} bytes"
        return super().name_problem(name)

    def wider(self, then: str, now: str) -> str | None:
        """Return the type of numbers that holds both without loss. Between other types, the server converts."""
        was, is_ = (kind.partition("(")[0] for kind in (then, now))
        if was == is_:
            return then if then in (was, now) or _holds(then, now) else was  # numeric(5,2) would round numeric(9,4)
        for family in (_INTEGERS, _REALS):
            if was in family and is_ in family:
                return max(then, now, key=family.index)
        if "numeric" in (was, is_) and {was, is_} <= {"numeric", *_INTEGERS}:
            return then if was == "numeric" else now
        if {was, is_} <= {"numeric", *_INTEGERS, *_REALS}:
            return "double precision" if {was, is_} <= {"smallint", "integer", *_REALS} else "numeric"
        return None

    def refuses_overflow(self, target: str, staged: str) -> bool:
        """Return True for integers, and for numbers with no more digits behind the point than the target has."""
        digits = _digits(target), _digits(staged)
        is_exact = digits[0] is not None and digits[1] is not None and digits[0][1] >= digits[1][1]
        return is_exact or (target in _INTEGERS and staged in _INTEGERS)

    def most_characters(self, kind: str) -> int | None:
        """Return the length of `varchar(n)` and `char(n)`."""
        limit = re.fullmatch(r"character(?: varying)?\((\d+)\)", kind)
        return None if limit is None else int(limit[1])

    def integers(self, kind: str) -> tuple[int, int] | None:
        """Return the bounds of integers of 16, 32 and 64 bits."""
        bits = {"smallint": 15, "integer": 31, "bigint": 63}.get(kind)
        return None if bits is None else (-(1 << bits), (1 << bits) - 1)

    def converted(self, column: str, staged: str, target: str) -> str:
        """Return the expression that casts text to another type, as in a literal; the server converts between other types."""
        if staged == "text" and not target.startswith(("text", "character", "name", '"char"')):
            return f"CAST({column} AS {target})"
        return f"CAST({column} AS json)" if (staged, target) == ("jsonb", "json") else column

    def _lines(self, batch: pa.RecordBatch, operator: str) -> bytes:
        columns = []
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            texts = self._texts(name, column, operator)
            if t.is_string(texts.type):
                data = bytes(bytes_of(texts))
                for mark, escape in _SPECIAL:
                    if mark.encode() in data:
                        texts = pc.replace_substring(texts, mark, escape)
            columns.append(texts.fill_null("\\N"))
        rows = pc.binary_join_element_wise(*columns, "\t")
        return bytes(bytes_of(pc.binary_join_element_wise(rows, "\n", "")))

    def _texts(self, name: str, column: Any, operator: str) -> Any:
        """Return the values of a column as the server reads them."""
        kind: Any = column.type
        if t.is_dictionary(kind):
            column, kind = column.cast(kind.value_type), kind.value_type
        if isinstance(kind, pa.BaseExtensionType):
            column, extension, kind = column.storage, kind.extension_name, kind.storage_type
            if extension == "arrow.uuid":
                return pa.array([None if value is None else value.hex() for value in column.to_pylist()], pa.string())
        if is_binary(kind):
            return pa.array([None if value is None else f"\\x{value.hex()}" for value in column.to_pylist()], pa.string())
        if t.is_duration(kind):
            numbers = self._microseconds(name, column, pa.duration("us"), operator).cast(pa.int64()).cast(pa.string())
            return pc.binary_join_element_wise(numbers, _UNITS[kind.unit], " ")
        if t.is_timestamp(kind) or t.is_time(kind):
            fits = pa.time64("us") if t.is_time(kind) else pa.timestamp("us", kind.tz)
            return as_text(self._microseconds(name, column, fits, operator), name, operator, self.name)
        if is_array(kind):
            values = self._texts(f"{name}[]", column.flatten(), operator)
            if not (t.is_integer(kind.value_type) or t.is_floating(kind.value_type) or t.is_decimal(kind.value_type)):
                values = pc.replace_substring(pc.replace_substring(values, "\\", "\\\\"), '"', '\\"')
                values = pc.binary_join_element_wise('"', values, '"', "")
            return joined_lists(column, values.fill_null("NULL"), "{", "}")
        if t.is_nested(kind):
            texts = pc.if_else(column.is_valid(), JsonEncoder(operator).values(name, column), None)
            if pc.any(pc.match_substring_regex(texts, r"(^|[^\\])(\\\\)*\\u0000"), min_count=0).as_py():
                raise _not_writable(operator, name, "the character NUL", "remove it before it comes here, or on_error='skip'")
            return texts
        texts = as_text(column, name, operator, self.name)
        return self._without_nul(name, texts, operator) if b"\0" in bytes(bytes_of(texts)) else texts

    def _microseconds(self, name: str, column: Any, kind: pa.DataType, operator: str) -> Any:
        try:
            finer = column.cast(kind) if column.type.unit == "ns" or t.is_duration(kind) else column
            return finer if column.type.unit == "ns" else column
        except pa.ArrowInvalid as error:
            help_ = "PostgreSQL has 64 bits of microseconds: round or correct the column before it comes here"
            value = "nanoseconds" if column.type.unit == "ns" else "a duration that is out of range"
            raise _not_writable(operator, name, value, help_) from error

    def _without_nul(self, name: str, texts: Any, operator: str) -> Any:
        if self.nul_replacement is None:
            raise _not_writable(
                operator, name, "the character NUL", "set nul_replacement, or leave such rows out: on_error='skip'"
            )
        return pc.replace_substring(texts, "\0", self.nul_replacement)

    def _error(self, error: Any, doing: str) -> Exception:
        known, code = self.server.error(error, doing), error.sqlstate or ""
        if not known.is_transient and code[:2] in _OF_ROWS:
            return StatementRefused("rows", text_of(error))
        if not known.is_transient and code[:2] in _OF_TABLE and code != "42501":
            return StatementRefused("table", text_of(error))
        return known


class PostgresSession(Session):
    """A transaction."""

    def __init__(self, dialect: Postgres, cursor: Any, schema: str) -> None:
        self._quoted = dialect.quoted
        self._cursor = cursor
        self._schema = schema

    def qualified(self, table: str) -> str:
        """Return schema and name in quotes."""
        return f"{self._quoted(self._schema)}.{self._quoted(table)}"

    def select(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """See `Session.select`."""
        return list(self._execute(statement, parameters).fetchall())

    def run(self, statement: str, *parameters: Any) -> int:
        """See `Session.run`."""
        return int(self._execute(statement, parameters).rowcount)

    def _execute(self, statement: str, parameters: Sequence[Any]) -> Any:
        if not parameters:
            return self._cursor.execute(statement)
        return self._cursor.execute(statement.replace("%", "%%").replace(PARAMETER, "%s"), parameters)

    def load(self, table: str, columns: Sequence[str], chunks: Sequence[Chunk]) -> None:
        """Copy rows to a table."""
        names = ", ".join(map(self._quoted, columns))
        with self._cursor.copy(f"COPY {self.qualified(table)} ({names}) FROM STDIN") as copy:
            for chunk in chunks:
                for data in chunk.data:
                    copy.write(data)

    def columns(self, table: str) -> dict[str, str]:
        """See `Session.columns`."""
        statement = (
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
            f" WHERE attrelid = to_regclass({PARAMETER}) AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
        )
        return {str(name): str(kind) for name, kind in self.select(statement, self.qualified(table))}

    def tables(self, prefix: str) -> list[str]:
        """See `Session.tables`."""
        statement = f"SELECT tablename FROM pg_tables WHERE schemaname = {PARAMETER} AND starts_with(tablename, {PARAMETER})"
        return [str(name) for (name,) in self.select(statement, self._schema, prefix)]

    def identity(self, table: str, create: bool = False) -> str | None:
        """Return the object identifier of a table."""
        found: int | None = _first(self.select(f"SELECT to_regclass({PARAMETER})::oid::bigint", self.qualified(table)))
        return None if found is None else str(found)

    def required(self, table: str) -> list[str]:
        """See `Session.required`."""
        statement = (
            "SELECT attname FROM pg_attribute"
            f" WHERE attrelid = to_regclass({PARAMETER}) AND attnum > 0 AND NOT attisdropped AND attnotnull"
            " AND NOT atthasdef AND attidentity = '' ORDER BY attnum"
        )
        return [str(name) for (name,) in self.select(statement, self.qualified(table))]

    def unforeseen(self, table: str) -> list[str]:
        """See `Session.unforeseen`."""
        place = self.qualified(table)
        statement = (
            f"SELECT 'the foreign key ' || conname FROM pg_constraint WHERE conrelid = to_regclass({PARAMETER}) AND contype = 'f'"
            f" UNION ALL SELECT 'the trigger ' || tgname FROM pg_trigger WHERE tgrelid = to_regclass({PARAMETER})"
            " AND NOT tgisinternal AND tgenabled <> 'D'"
            f" UNION ALL SELECT 'row security' FROM pg_class WHERE oid = to_regclass({PARAMETER}) AND relrowsecurity"
            f" UNION ALL SELECT 'partitions' FROM pg_class WHERE oid = to_regclass({PARAMETER}) AND relkind = 'p'"
        )
        return [str(each) for (each,) in self.select(statement, place, place, place, place)]

    def end_of(self, table: str) -> int:
        """Return the number of pages."""
        statement = f"SELECT pg_relation_size(to_regclass({PARAMETER})) / current_setting('block_size')::int"
        return int(_first(self.select(statement, self.qualified(table))) or 0)

    def rehearse(self, rehearsal: Rehearsal) -> None:
        """Insert the rows into a copy of the table, which has its types and constraints, and is never committed.

        `replace` and `append` rows may not have equal values of a unique index; those of `append` also not those of the table.
        """
        each, quoted = rehearsal, self._quoted
        copy = f"{each.staged}_r"
        absent = [name for name in self._with_defaults(each.table) if name not in each.names]
        indexes = "" if each.mode == "upsert" or absent else " INCLUDING INDEXES"  # a primary key takes no nulls
        names = ", ".join(map(quoted, each.names))
        self.run("SAVEPOINT dagflow_rehearsal")
        self.run(
            f"CREATE UNLOGGED TABLE {self.qualified(copy)} (LIKE {self.qualified(each.table)}"
            f" INCLUDING CONSTRAINTS INCLUDING GENERATED INCLUDING IDENTITY{indexes})"
        )
        for name in absent:
            self.run(f"ALTER TABLE {self.qualified(copy)} ALTER COLUMN {quoted(name)} DROP NOT NULL")
        self.run(
            f"INSERT INTO {self.qualified(copy)} ({names}) SELECT {', '.join(each.values)} FROM {self.qualified(each.staged)}"
            f" WHERE ctid >= '({max(0, each.after - 1)},0)'::tid"
        )
        for index, columns in self._unique(each.table) if each.mode == "append" else ():
            if set(columns) <= set(each.names):
                self._refuse_known(each.table, copy, index, columns)
        self.run("ROLLBACK TO SAVEPOINT dagflow_rehearsal")
        self.run("RELEASE SAVEPOINT dagflow_rehearsal")

    def _with_defaults(self, table: str) -> list[str]:
        """Return the columns with a default that may not be null. The copy has none: it would use up numbers of sequences."""
        statement = (
            f"SELECT attname FROM pg_attribute WHERE attrelid = to_regclass({PARAMETER}) AND attnum > 0 AND NOT attisdropped"
            " AND atthasdef AND attgenerated = '' AND attnotnull"
        )
        return [str(name) for (name,) in self.select(statement, self.qualified(table))]

    def _unique(self, table: str) -> list[tuple[str, list[str]]]:
        """Return the unique indexes of a table that are on all of its rows, and on columns alone."""
        statement = (
            "SELECT indexrelid::regclass::text, ARRAY(SELECT attname::text FROM pg_attribute WHERE attrelid = indrelid"
            " AND attnum = ANY (indkey[0:indnkeyatts - 1])) FROM pg_index"
            f" WHERE indrelid = to_regclass({PARAMETER}) AND indisunique AND indpred IS NULL AND indexprs IS NULL"
        )
        return [(str(name), list(columns)) for name, columns in self.select(statement, self.qualified(table))]

    def _refuse_known(self, table: str, copy: str, index: str, columns: Sequence[str]) -> None:
        """Raise StatementRefused if the table has a row of the copy already, by a unique index."""
        equal = " AND ".join(f"a.{self._quoted(name)} = b.{self._quoted(name)}" for name in columns)
        shown = ", ".join(f"b.{self._quoted(name)}::text" for name in columns)
        rows = self.select(f"SELECT {shown} FROM {self.qualified(copy)} b JOIN {self.qualified(table)} a ON {equal} LIMIT 1")
        if rows:
            row = ", ".join(f"{name} = {value}" for name, value in zip(columns, rows[0], strict=True))
            raise StatementRefused("rows", f"the table has {row} already, and {index} is unique")

    def as_key(self, table: str, column: str, expression: str, kind: str) -> str:
        """Cast to the type of the column, and compare by its collation."""
        statement = (
            "SELECT n.nspname, c.collname FROM pg_attribute a JOIN pg_collation c ON c.oid = a.attcollation"
            " JOIN pg_namespace n ON n.oid = c.collnamespace"
            f" WHERE a.attrelid = to_regclass({PARAMETER}) AND a.attname = {PARAMETER} AND c.collname <> 'default'"
        )
        rows = self.select(statement, self.qualified(table), column)
        collation = "".join(f" COLLATE {self._quoted(schema)}.{self._quoted(name)}" for schema, name in rows)
        return f"CAST({expression} AS {kind}){collation}"

    def lock_row(self, statement: str) -> str:
        """See `Session.lock_row`."""
        return f"{statement} FOR UPDATE"


def _digits(kind: str) -> tuple[int, int] | None:
    """Return the digits before and behind the point of `numeric(p,s)`."""
    numbers = re.fullmatch(r"numeric\((\d+),(\d+)\)", kind)
    return None if numbers is None else (int(numbers[1]) - int(numbers[2]), int(numbers[2]))


def _holds(target: str, staged: str) -> bool:
    """Return whether a type of numbers holds all values of another one.

    >>> _holds("numeric(9,2)", "numeric(5,1)"), _holds("numeric(5,2)", "numeric(5,1)")
    (True, False)
    """
    there, here = _digits(target), _digits(staged)
    return there is not None and here is not None and there[0] >= here[0] and there[1] >= here[1]


def _first(rows: Sequence[tuple[Any, ...]]) -> Any:
    return rows[0][0] if rows else None


def _not_writable(operator: str, column: str, value: str, help_: str) -> ValueNotWritable:
    return ValueNotWritable(operator=operator, column=column, value=value, format="PostgreSQL", help=help_)
