"""PostgreSQL, by psycopg: rows are loaded by COPY."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
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
_OF_ROWS, _OF_TABLE = ("22", "23", "21", "44", "P0", "54000"), ("42", "0A")
"""The beginnings of the states of errors that rows cause, and of those that the table does. 54000: too long for an index."""
_NEEDS = "CONNECT on the database, and USAGE and CREATE on the schema of the table"
_SPECIAL = (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))


_INDEXES = f"""
SELECT i.indexrelid::regclass::text, c.conname::text, i.indisunique AND i.indpred IS NULL AND i.indexprs IS NULL,
  ARRAY(SELECT attname::text FROM pg_attribute WHERE attrelid = i.indrelid AND attnum = ANY (i.indkey[0:i.indnkeyatts - 1])),
  ARRAY(SELECT pg_get_indexdef(i.indexrelid, n, true) FROM generate_series(1, i.indnkeyatts) n),
  CASE WHEN c.contype = 'x' THEN ARRAY(
      SELECT format('OPERATOR(%I.%s)', n.nspname, o.oprname) FROM unnest(c.conexclop) WITH ORDINALITY AS e(id, place)
      JOIN pg_operator o ON o.oid = e.id JOIN pg_namespace n ON n.oid = o.oprnamespace ORDER BY e.place)
    WHEN i.indisunique THEN array_fill('='::text, ARRAY[i.indnkeyatts]) ELSE ARRAY[]::text[] END,
  coalesce(pg_get_expr(i.indpred, i.indrelid), 'true'), coalesce((to_jsonb(i) ->> 'indnullsnotdistinct')::boolean, false)
FROM pg_index i LEFT JOIN pg_constraint c ON c.conindid = i.indexrelid AND c.contype IN ('p', 'u', 'x')
WHERE i.indrelid = to_regclass({PARAMETER})"""


@attrs.frozen
class _Index:
    """An index of a table.

    Attributes:
        name: as it stands in a statement. `constraint`: the one that it belongs to.
        is_plain: it is unique, on columns alone, and on all rows.
        columns: without those in expressions. `expressions`: of all of its columns.
        operators: by which two rows clash; none if they may not.
        predicate: true for the rows that are in it. `nulls_clash`: two nulls do.
    """

    name: str
    constraint: str | None
    is_plain: bool
    columns: list[str]
    expressions: list[str]
    operators: list[str]
    predicate: str
    nulls_clash: bool

    def values(self) -> str:
        """Return its columns as those of a SELECT: `k0`, `k1` and so on."""
        return ", ".join(f"{each} AS k{n}" for n, each in enumerate(self.expressions))

    def equal(self) -> str:
        """Return the condition for which rows of `a` and `b` clash."""
        pairs = ((f"a.k{n}", f"b.k{n}", operator) for n, operator in enumerate(self.operators))
        nulls = " OR ({0} IS NULL AND {1} IS NULL)" if self.nulls_clash else ""
        return " AND ".join(f"({a} {operator} {b}{nulls.format(a, b)})" for a, b, operator in pairs)


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
                    cursor.execute("SET LOCAL extra_float_digits = 1")  # floats as text are exact
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

    def row_place(self, columns: Collection[str]) -> tuple[str, ...]:
        """Return the table, which may be a partition, and the place of the row in it."""
        return ("tableoid", "ctid")

    def content(self, columns: Mapping[str, str]) -> str:
        """See `SqlDialect.content`. Also of types without an equality, as `json`."""
        forms = {"real": "{} + 0", "double precision": "{} + 0", "numeric": "trim_scale({})"}
        return f"ROW({', '.join(forms.get(kind, '{}').format(self.quoted(name)) for name, kind in columns.items())})::text"

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

    def max_characters(self, kind: str) -> int | None:
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
        if not known.is_transient and code.startswith(_OF_ROWS):
            return StatementRefused("rows", text_of(error))
        if not known.is_transient and code.startswith(_OF_TABLE) and code != "42501":
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
        oid: int | None = _first(self.select(f"SELECT to_regclass({PARAMETER})::oid::bigint", self.qualified(table)))
        return None if oid is None else str(oid)

    def required(self, table: str) -> list[str]:
        """See `Session.required`."""
        statement = (
            "SELECT attname FROM pg_attribute"
            f" WHERE attrelid = to_regclass({PARAMETER}) AND attnum > 0 AND NOT attisdropped AND attnotnull"
            " AND NOT atthasdef AND attidentity = '' ORDER BY attnum"
        )
        return [] if self._has_own_values(table) else [str(name) for (name,) in self.select(statement, self.qualified(table))]

    def _has_own_values(self, table: str) -> bool:
        """Return whether triggers may give rows other values before the table looks at them: no copy can stand for it."""
        statement = (
            f"SELECT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = to_regclass({PARAMETER}) AND NOT tgisinternal"
            " AND tgenabled <> 'D' AND tgtype & 7 = 7)"  # BEFORE INSERT FOR EACH ROW
        )
        return bool(_first(self.select(statement, self.qualified(table))))

    def has_rules(self, table: str, keys: Sequence[str]) -> bool:
        """See `Session.has_rules`."""
        statement = (
            "SELECT relkind <> 'r' OR relispartition"
            " OR EXISTS (SELECT FROM pg_constraint WHERE conrelid = c.oid AND contype = 'c')"
            " OR EXISTS (SELECT FROM pg_attribute WHERE attrelid = c.oid AND attgenerated <> '')"
            f" FROM pg_class c WHERE oid = to_regclass({PARAMETER})"
        )
        return bool(_first(self.select(statement, self.qualified(table))) or self._indexes(table, keys))

    def unforeseen(self, table: str) -> list[str]:
        """See `Session.unforeseen`."""
        place = self.qualified(table)
        statement = (
            f"SELECT 'the foreign key ' || conname FROM pg_constraint WHERE conrelid = to_regclass({PARAMETER}) AND contype = 'f'"
            f" UNION ALL SELECT 'the trigger ' || tgname FROM pg_trigger WHERE tgrelid = to_regclass({PARAMETER})"
            " AND NOT tgisinternal AND tgenabled <> 'D'"
            f" UNION ALL SELECT 'row security' FROM pg_class WHERE oid = to_regclass({PARAMETER}) AND relrowsecurity"
            f" UNION ALL SELECT 'partitions' FROM pg_class WHERE oid = to_regclass({PARAMETER}) AND relkind = 'p'"
            f" UNION ALL SELECT 'the rules of a view' FROM pg_class WHERE oid = to_regclass({PARAMETER}) AND relkind = 'v'"
        )
        return [str(each) for (each,) in self.select(statement, place, place, place, place, place)]

    def later_rows(self, table: str) -> str:
        """Return the condition that a row is in the last page, or behind it."""
        statement = f"SELECT pg_relation_size(to_regclass({PARAMETER})) / current_setting('block_size')::int"
        pages = int(_first(self.select(statement, self.qualified(table))) or 0)
        return f"ctid >= '({max(0, pages - 1)},0)'::tid"

    def lock_table(self, table: str) -> None:
        """See `Session.lock_table`."""
        self.run(f"LOCK TABLE {self.qualified(table)} IN SHARE ROW EXCLUSIVE MODE")

    def check_deferred(self) -> None:
        """See `Session.check_deferred`."""
        self.run("SET CONSTRAINTS ALL IMMEDIATE")

    def rehearse(self, rehearsal: Rehearsal) -> None:
        """Insert the rows into copies of the table, which no other session sees, and which are never committed.

        The first copy has its constraints and defaults. The second one also has its indexes, and the rows of the table that those
        staged may clash with, or update: there the rows go in as they will when they are published.
        """
        each, table = rehearsal, self.qualified(rehearsal.table)
        if self._has_own_values(each.table):
            return
        rows, copy = (self.qualified(f"{each.scratch}_{part}") for part in ("rows", "copy"))
        names = ", ".join(map(self._quoted, each.names))
        with self.undone():
            made = self._copy(each, rows)
            (within,) = self.select(f"SELECT pg_get_partition_constraintdef(to_regclass({PARAMETER}))", table)
            if within[0]:
                self.run(f"ALTER TABLE {rows} ADD CHECK ({within[0]})")
            order = list(map(self._quoted, each.order))
            for column in order:
                self.run(f"ALTER TABLE {rows} ADD COLUMN {column} bigint")
            self.run(
                f"INSERT INTO {rows} ({', '.join([names, *order])}) SELECT {', '.join([*each.values, *order])}"
                f" FROM ({each.staged}) AS staged"
            )
            indexes = self._indexes(each.table, each.keys)
            if indexes or set(self.columns(each.table)) - set(each.names):  # an upsert leaves columns that are absent as they are
                self._copy(each, copy, " INCLUDING INDEXES")
                for (name,) in self.select(
                    f"SELECT conname FROM pg_constraint WHERE conrelid = to_regclass({PARAMETER})"
                    " AND contype = 'c' AND NOT convalidated",
                    table,
                ):
                    self.run(f"ALTER TABLE {copy} DROP CONSTRAINT {self._quoted(name)}")  # rows that are there may break it
                if each.mode != "replace":
                    self._fill(
                        table, rows, copy, [index for index in self._indexes(each.table, ()) if not made & set(index.columns)]
                    )
                newest = rows
                if each.keys:
                    keys, newest_first = ", ".join(map(self._quoted, each.keys)), ", ".join(f"{name} DESC" for name in order)
                    newest = f"(SELECT DISTINCT ON ({keys}) * FROM {rows} ORDER BY {keys}, {newest_first}) AS newest"
                ordered = f" ORDER BY {', '.join(order)}" if order else ""
                self.run(f"INSERT INTO {copy} ({names}) SELECT {names} FROM {newest}{ordered}{each.on_conflict}")
                self.check_deferred()

    def _copy(self, rehearsal: Rehearsal, copy: str, including: str = "") -> set[str]:
        """Create a copy of a table without rows. Return the columns whose values the server counts, which are null there.

        Sequences would otherwise use up numbers.
        """
        place = self.qualified(rehearsal.table)
        parts = "INCLUDING CONSTRAINTS INCLUDING DEFAULTS INCLUDING GENERATED INCLUDING IDENTITY"
        self.run(f"CREATE UNLOGGED TABLE {copy} (LIKE {place} {parts}{including})")
        for change in rehearsal.changes:
            self.run(f"ALTER TABLE {copy} {change}")
        counted = self.select(
            "SELECT attname FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum WHERE attrelid ="
            f" to_regclass({PARAMETER}) AND (attidentity <> '' OR strpos(pg_get_expr(adbin, adrelid), 'nextval(') > 0)",
            place,
        )
        made = {str(name) for (name,) in counted if name not in rehearsal.names}
        for index in self._indexes(rehearsal.table, (), of=copy):
            if made & set(index.columns):
                how = (
                    f"ALTER TABLE {copy} DROP CONSTRAINT {self._quoted(index.constraint)}"
                    if index.constraint
                    else f"DROP INDEX {index.name}"
                )
                self.run(how)
        for name in map(self._quoted, made):
            self.run(
                f"ALTER TABLE {copy} ALTER {name} DROP IDENTITY IF EXISTS, ALTER {name} DROP DEFAULT, ALTER {name} DROP NOT NULL"
            )
        return made

    def _indexes(self, table: str, keys: Sequence[str], of: str = "") -> list[_Index]:
        """Return the indexes of a table, but for the unique one on `keys`. `of`: its copy, where those of the copy are meant."""
        rows = self.select(_INDEXES, of or self.qualified(table))
        indexes = [_Index(*row) for row in rows]
        return [index for index in indexes if not (index.is_plain and set(index.columns) == set(keys))]

    def _fill(self, table: str, rows: str, copy: str, indexes: Sequence[_Index]) -> None:
        """Put the rows of a table into its copy that have the same values of a unique index as some others."""
        if not (unique := [index for index in indexes if index.operators]):
            return
        self.run(f"ANALYZE {rows}")
        there = " UNION ".join(
            f"SELECT a.place FROM (SELECT ctid AS place, {index.values()} FROM {table} WHERE {index.predicate}) a"
            f" JOIN (SELECT {index.values()} FROM {rows} WHERE {index.predicate}) b ON {index.equal()}"
            for index in unique
        )
        stored = self.select(
            f"SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = to_regclass({PARAMETER}) AND attnum > 0"
            " AND NOT attisdropped AND attgenerated = ''",
            table,
        )
        columns = ", ".join(name for (name,) in stored)
        self.run(
            f"INSERT INTO {copy} ({columns}) OVERRIDING SYSTEM VALUE SELECT {columns} FROM {table}"
            f" WHERE ctid = ANY (ARRAY({there}))"
        )

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
