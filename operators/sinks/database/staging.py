"""A task's half of a database sink: its rows go to tables of its own."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa

from dagflow import OperatorContext
from operators.sinks.database.dialect import (
    Chunk,
    Rehearsal,
    Session,
    SqlDialect,
    StatementRefused,
    changes,
    fold,
    on_conflict,
)
from operators.sinks.database.errors import RowsRefused, TableRefused
from operators.sinks.errors import TypeNotWritable, ValueNotWritable
from operators.sinks.table_writer import differences, plain
from operators.sinks.tables.acceptance import TableLimits, check_names
from operators.sinks.tables.modes import Mode

ROW = "_dagflow_row"
"""The column with the number of a staged row, where the order of rows matters."""


def staged_prefix(application: str, sink: str) -> str:
    """Return the beginning of the names of all that a sink stages. Databases cut names of more than 63 bytes."""
    owner = hashlib.sha256(f"{application}\0{sink}".encode()).hexdigest()[:12]
    return f"_dagflow_staged_{owner}_"


def window_of(table: str) -> int:
    """Return the window that a staged table belongs to.

    >>> window_of(staged_prefix("application", "sink") + "0000000012_1f")
    12
    """
    return int(table.split("_")[4])


@attrs.define
class _Part:
    """The rows of one schema, and the table that they are staged in."""

    table: str
    schema: pa.Schema
    types: dict[str, str]
    rows: int = 0
    is_created: bool = False
    waiting: list[Chunk] = attrs.field(factory=list)


class Staging:
    """Stages the rows of a task: they wait in memory until there are `buffer_bytes`, and are loaded then.

    Args:
        table: the table that the rows are for.
        mode: what the window does to the rows of the table.
        keys: the columns that must not be null. With any, staged rows are numbered.
        evolves: batches of a window may have different columns.
    """

    def __init__(
        self,
        dialect: SqlDialect,
        context: OperatorContext,
        table: str,
        keys: Sequence[str],
        mode: Mode,
        evolves: bool,
        buffer_bytes: int,
        operator: str,
    ) -> None:
        self._dialect = dialect
        self._context = context
        self._table = table
        self._keys = keys
        self._mode: Mode = mode
        self._limits: TableLimits | None = None
        self._evolves = evolves
        self._buffer_bytes = buffer_bytes
        self._operator = operator
        self._parts: list[_Part] = []
        self._size = 0

    def begin(self) -> None:
        """Begin a window."""
        self._parts.clear()
        self._size = 0
        self._limits = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Add a batch: all of it or, when it raises, nothing."""
        check_names(batch.schema.names, self._operator, self._dialect.name, self._dialect.folded)
        part, is_new = self._part(plain(batch.schema))
        self._check_keys(batch)
        self._look(part).check(batch)
        ordered = batch.select(part.schema.names)
        if self._keys:
            first = sum(each.rows for each in self._parts)
            ordered = ordered.append_column(ROW, pa.array(range(first, first + batch.num_rows), pa.int64()))
        chunk = self._dialect.chunk(ordered, self._operator)
        if is_new:
            self._parts.append(part)
        part.waiting.append(chunk)
        part.rows += chunk.rows
        self._size += chunk.size
        if self._size >= self._buffer_bytes:
            self._load()

    def finish(self) -> list[dict[str, Any]] | None:
        """Load what waits, and return what is staged; None for nothing."""
        self._load()
        return [{"table": p.table, "columns": list(map(list, p.types.items())), "rows": p.rows} for p in self._parts] or None

    def _load(self) -> None:
        parts = [part for part in self._parts if part.waiting]
        if not parts:
            return
        try:
            with self._dialect.session(f"staging rows for {self._table!r}") as session:
                for part in parts:
                    columns = {**part.types, **({ROW: "BIGINT"} if self._keys else {})}
                    if not part.is_created:
                        create_table(session, self._dialect, part.table, columns)
                    after = session.end_of(part.table)
                    session.load(part.table, list(columns), part.waiting)
                    self._rehearse(session, part, after)
        except StatementRefused as refused:
            help_ = "cast the column, or leave such rows out, before they come here; then launch again"
            if refused.because_of == "table":
                raise self._refused((refused.reason,), help_) from refused
            raise RowsRefused(
                table=self._table,
                database=self._dialect.place,
                window=self._context.window,
                reason=refused.reason,
                help=help_,
            ) from refused
        for part in parts:
            part.is_created = True
            part.waiting.clear()
        self._size = 0

    def _rehearse(self, session: Session, part: _Part, after: int) -> None:
        """Let the database look at rows as it will when they are published. Raises StatementRefused."""
        target = fold(self._dialect, session.columns(self._table))
        if not target or (self._evolves and any(self._changes(part, target))):
            return  # the table is created or altered with the window
        pairs = [(name, kind, target[self._dialect.folded(name)]) for name, kind in part.types.items()]
        session.rehearse(
            Rehearsal(
                table=self._table,
                staged=part.table,
                names=list(part.types),
                values=[self._dialect.converted(self._dialect.quoted(name), kind, there) for name, kind, there in pairs],
                after=after,
                mode=self._mode,
                on_conflict=on_conflict(self._dialect, self._mode, self._keys, list(part.types)),
            )
        )

    def _changes(self, part: _Part, target: Mapping[str, str]) -> Iterator[str]:
        """Yield the reason for each change that the table needs for the rows of a part, "" for one that it may do without."""
        wanted = {self._dialect.folded(name): kind for name, kind in part.types.items()}
        yield from (reason for _, reason in changes(self._dialect, wanted, part.types, target))

    def _look(self, part: _Part) -> TableLimits:
        """Return the limits of the table, which is looked up for the first rows of a window. Raises TableRefused."""
        if self._limits is None:
            with self._dialect.session(f"staging rows for {self._table!r}") as session:
                types, required = session.columns(self._table), session.required(self._table)
            target = fold(self._dialect, types)
            if target and not self._evolves and (reasons := tuple(filter(None, self._changes(part, target)))):
                raise self._refused(reasons, "alter the table, or set on_schema_change='evolve'; then launch again")
            spelled = {self._dialect.folded(name): name for name in part.types}
            own = {spelled[folded]: kind for name, kind in types.items() if (folded := self._dialect.folded(name)) in spelled}
            lengths = {name: self._dialect.most_characters(kind) for name, kind in own.items()}
            ranges = {name: self._dialect.integers(kind) for name, kind in own.items()}
            self._limits = TableLimits(
                operator=self._operator,
                target=f"table {self._table!r}",
                required=[spelled.get(self._dialect.folded(name), name) for name in required],
                lengths={name: most for name, most in lengths.items() if most is not None},
                ranges={name: bounds for name, bounds in ranges.items() if bounds is not None and not self._evolves},
            )
        return self._limits

    def _part(self, schema: pa.Schema) -> tuple[_Part, bool]:
        """Return the part that rows of a schema belong to, and whether it is a new one. Raises TableRefused, TypeNotWritable."""
        wanted = {field.name: field.type for field in schema}
        for part in self._parts:
            if {field.name: field.type for field in part.schema} == wanted:
                return part, False
        if self._parts and not self._evolves:
            raise self._refused(
                differences(self._parts[0].schema, schema),
                "give the reader a schema, so that all batches have the same columns; or set on_schema_change='evolve'",
            )
        name = staged_prefix(self._context.application, self._context.name)
        name += f"{self._context.window:010d}_{uuid.uuid4().hex[:16]}"
        return _Part(name, schema, self._types(schema)), True

    def _types(self, schema: pa.Schema) -> dict[str, str]:
        types: dict[str, str] = {}
        for field in schema:
            problem = self._dialect.name_problem(field.name)
            if field.name == ROW:
                problem = "it is dagflow's own"
            if problem is not None:
                raise self._refused((f"column {field.name!r} cannot be written: {problem}",), "rename it before it comes here")
            types[field.name] = column_type(self._dialect, field, self._operator)
        return types

    def _check_keys(self, batch: pa.RecordBatch) -> None:
        for key in self._keys:
            if key not in batch.schema.names:
                known = ", ".join(batch.schema.names)
                raise self._refused((f"there is no column {key!r} among {known}",), "name other columns in keys")
            if batch.column(key).null_count:
                help_ = "a null identifies no row: leave such rows out before they come here, or on_error='skip'"
                raise ValueNotWritable(operator=self._operator, column=key, value="null", format="a key", help=help_)

    def _refused(self, reasons: tuple[str, ...], help_: str) -> TableRefused:
        window = self._context.window
        return TableRefused(table=self._table, database=self._dialect.place, window=window, differences=reasons, help=help_)


def column_type(dialect: SqlDialect, field: pa.Field[Any], operator: str) -> str:
    """Return the type of a column in a database. Raises TypeNotWritable."""
    kind = dialect.column_type(field.type)
    if kind is None:
        raise TypeNotWritable(
            operator=operator,
            column=field.name,
            type=str(field.type),
            format=dialect.name,
            help="cast it, or leave it out, before it comes here",
        )
    return kind


def create_table(session: Session, dialect: SqlDialect, table: str, columns: dict[str, str], keys: Sequence[str] = ()) -> None:
    """Create a table. `keys`: its primary key."""
    parts = [f"{dialect.quoted(name)} {kind}" for name, kind in columns.items()]
    if keys:
        parts.append(f"PRIMARY KEY ({', '.join(map(dialect.quoted, keys))})")
    session.run(f"CREATE TABLE {session.qualified(table)} ({', '.join(parts)})")
