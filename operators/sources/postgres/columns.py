"""The columns that all tasks of a window agree on, with the types that the server declares."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa

from dagflow.errors import suggest
from dagflow.scan import Drift, to_type, type_text, wider
from operators.database.postgres import quoted
from operators.database.postgres_types import arrow_type, is_array, postgres_type
from operators.sources.errors import ColumnsNotReadable, SourceColumnsChanged

_CAST = re.compile(r"""[a-z_]["\w. ]*(\(\s*\d+\s*(,\s*\d+\s*)?\))?( with(out)? time zone)?(\[\])?""", re.IGNORECASE)
_CASTS = {"numeric": "numeric(38,10)"}
_TYPES = """
    SELECT format_type(t.oid, nullif(t.mod, -1)), typcategory::text
    FROM unnest(%s::bigint[], %s::int[]) WITH ORDINALITY AS t(oid, mod, n) JOIN pg_type ON pg_type.oid = t.oid::oid ORDER BY n
"""


def column_problem(spec: str) -> str | None:
    """Return the problem with a column as the property `columns` names it: `name` or `name::type`; None if there is none."""
    name, cast, kind = spec.partition("::")
    if not name or (cast and not _CAST.fullmatch(kind)):
        return f"columns has {spec!r}: write the name of a column, or NAME::TYPE with a type of PostgreSQL"
    return None


@attrs.frozen
class ReadColumn:
    """A column as a task reads it.

    Attributes:
        name: of the column.
        sql: the expression for its values.
        declared: its type on the server.
        type: its Arrow type.
        mark: identifier and modifier of the declared type, by which a change is noticed; None for a column that is not there.
    """

    name: str
    sql: str
    declared: str
    type: Any
    mark: tuple[int, int] | None

    @property
    def text(self) -> str:
        """The expression for its values as COPY writes them."""
        return f"to_json({self.sql})::text" if is_array(self.type) else self.sql

    def to_plain(self) -> list[Any]:
        """Return plain data that `of` reads."""
        return [self.name, self.sql, self.declared, type_text(self.type), None if self.mark is None else list(self.mark)]

    @classmethod
    def of(cls, plain: Sequence[Any]) -> ReadColumn:
        """Return the column of plain data."""
        name, sql, declared, kind, mark = plain
        return cls(name, sql, declared, to_type(kind), None if mark is None else (mark[0], mark[1]))

    def as_type(self, kind: Any) -> ReadColumn:
        """Return the column with its values as those of another type."""
        declared = postgres_type(kind) or "text"
        return attrs.evolve(self, sql=f"{self.sql}::{declared}", type=kind)


@attrs.frozen
class AgreedTable:
    """The table that all tasks of a window read.

    Attributes:
        qualified: its name in a statement.
        order: the rest of ORDER BY, behind the key, by which rows of equal keys come in the same order each time.
    """

    columns: tuple[ReadColumn, ...] = ()
    qualified: str = ""
    order: str = ""

    def to_plain(self) -> dict[str, Any]:
        """Return plain data that `of` reads."""
        return {"columns": [each.to_plain() for each in self.columns], "table": self.qualified, "order": self.order}

    @classmethod
    def of(cls, plain: Mapping[str, Any] | None) -> AgreedTable:
        """Return the table of plain data; one without columns for None."""
        if plain is None:
            return cls()
        return cls(tuple(map(ReadColumn.of, plain["columns"])), plain["table"], plain["order"])


def marks(cursor: Any) -> list[tuple[int, int]]:
    """Return identifiers and modifiers of the types of the columns of a result."""
    result = cursor.pgresult
    return [(result.ftype(n), result.fmod(n)) for n in range(result.nfields)]


def declared_columns(cursor: Any, table: str, specs: Sequence[str] | None, operator: str) -> dict[str, ReadColumn]:
    """Return the columns of a table by name, those that are asked for, without those that are not there.

    `table`: qualified. Raises ColumnsNotReadable.
    """
    cursor.execute(f"SELECT * FROM {table} WHERE false")
    names = [each.name for each in cursor.description or ()]
    asked = [(name, quoted(name)) for name in names]
    if specs is not None:
        pairs = [spec.partition("::") for spec in specs]
        asked = [(name, f"{quoted(name)}{cast}{kind}") for name, cast, kind in pairs if name in names]
    if not asked:
        return {}
    cursor.execute(f"SELECT {', '.join(sql for _, sql in asked)} FROM {table} WHERE false")
    types = marks(cursor)
    rows = cursor.execute(_TYPES, [[oid for oid, _ in types], [mod for _, mod in types]]).fetchall()
    columns = {
        name: ReadColumn(name, sql, declared, arrow_type(declared, category), mark)
        for (name, sql), (declared, category), mark in zip(asked, rows, types, strict=True)
    }
    unknown = [each for each in columns.values() if each.type is None]
    if unknown:
        first = unknown[0]
        raise ColumnsNotReadable(
            operator=operator,
            table=table,
            columns=tuple(f"column {each.name!r} is {each.declared}" for each in unknown),
            cast=f"{first.name}::{_CASTS.get(first.declared, 'text')}",
        )
    return columns


def agreed_columns(
    now: Mapping[str, ReadColumn],
    before: Sequence[ReadColumn] | None,
    specs: Sequence[str] | None,
    drift: Drift,
    *,
    operator: str,
    table: str,
) -> tuple[ReadColumn, ...]:
    """Return the columns of a window, by those of the table now, those of the window before (None: the first), and the policy.

    Raises SourceColumnsChanged.
    """
    known = {each.name: each for each in before or ()}
    asked = [*known, *(name for name in now if name not in known)]
    if specs is not None:
        asked = [spec.partition("::")[0] for spec in specs]
    absent = [name for name in asked if name not in now and name not in known]
    if absent:
        near = suggest(absent[0], now)
        raise SourceColumnsChanged(
            operator=operator,
            table=table,
            differences=tuple(f"column {name!r} is not there" for name in absent),
            help=f"did you mean {near!r}?" if near else "name columns that the table has",
        )
    columns: list[ReadColumn] = []
    problems: list[tuple[str, str]] = []
    for name in asked:
        if name in known:
            columns.append(_known(known[name], now.get(name), drift, problems))
        elif before is None or specs is not None or drift.extra == "widen":
            columns.append(now[name])
        elif drift.extra == "error":
            remedy = "drift.extra = ignore leaves new columns out, widen adds them"
            problems.append((f"column {name!r} ({now[name].declared}) is new", remedy))
    if problems:
        differences = tuple(text for text, _ in problems)
        helps = "; ".join(dict.fromkeys(help_ for _, help_ in problems))
        raise SourceColumnsChanged(operator=operator, table=table, differences=differences, help=helps)
    return tuple(columns)


def _known(then: ReadColumn, found: ReadColumn | None, drift: Drift, problems: list[tuple[str, str]]) -> ReadColumn:
    """Return a column that the window before had as this window has it; note a problem if the policy forbids that."""
    if found is None:
        if drift.missing == "error":
            problems.append((f"column {then.name!r} is not there any more", "drift.missing = null reads nulls in its place"))
        return attrs.evolve(then, sql=f"NULL::{postgres_type(then.type) or 'text'}", mark=None)
    if found.type == then.type:
        return found
    if drift.changed == "error":
        remedy = f'drift.changed = widen reads a wider type; or cast it: columns = ["{then.name}::{then.declared}", …]'
        problems.append((f"column {then.name!r} was {then.declared} and is {found.declared}", remedy))
        return found
    wide = wider(then.type, found.type)
    return found if wide == found.type else found.as_type(wide)


def schema_of_columns(columns: Sequence[ReadColumn]) -> pa.Schema:
    """Return the schema of batches of these columns."""
    return pa.schema([pa.field(each.name, each.type) for each in columns])
