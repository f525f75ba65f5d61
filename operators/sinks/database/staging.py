"""A task's half of a database sink: its rows go to tables of its own."""

from __future__ import annotations

import contextlib
import hashlib
import re
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
)
from operators.sinks.database.errors import RowsRefused, TableRefused
from operators.sinks.errors import TypeNotWritable
from operators.sinks.table_writer import differences, plain
from operators.sinks.tables.acceptance import TableLimits, check_names
from operators.sinks.tables.errors import RuleBroken
from operators.sinks.tables.modes import Mode

ROW, SIGN = "_dagflow_row", "_dagflow_sign"
"""Columns of staged rows: their order, where it matters, and -1 for rows that are taken back."""


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


def shown(reason: str, table: str) -> str:
    """Return the message of a database with the name of the table in the place of that of its copy, which has other constraints.

    >>> shown('unique constraint "_dagflow_staged_1f_copy_n_key" (Key (n)=(1) already exists.)', "sales")
    'unique constraint (Key (n)=(1) already exists.)'
    """
    return re.sub(r' "_dagflow_staged_[^"]*"', "", re.sub(r'"_dagflow_staged_\w*_(rows|copy)"', f'"{table}"', reason))


@attrs.define
class _Part:
    """The rows of one schema, and the table that they are staged in."""

    table: str
    schema: pa.Schema
    types: dict[str, str]
    rows: int = 0
    loads: int = 0
    waiting: list[Chunk] = attrs.field(factory=list)


class Staging:
    """Stages the rows of a task: they wait in memory until there are `buffer_bytes`, and are loaded then.

    Args:
        table: the table that the rows are for.
        mode: what the window does to the rows of the table.
        keys: the columns that must not be null. With any, staged rows are numbered.
        evolves: batches of a window may have different columns.
        is_signed: rows may be taken back.
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
        is_signed: bool = False,
    ) -> None:
        self._dialect = dialect
        self._is_signed = is_signed
        self._context = context
        self._table = table
        self._keys = keys
        self._mode: Mode = mode
        self._limits: TableLimits | None = None
        self._is_tried = False
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

    def add(self, batch: pa.RecordBatch, *, retracts: bool = False) -> None:
        """Add a batch: all of it or, when it raises, nothing. Raises RuleBroken if a rule of the table refuses rows.

        `retracts`: the rows are taken back.
        """
        check_names(batch.schema.names, self._operator, self._dialect.name, self._dialect.folded)
        part, is_new = self._part(plain(batch.schema))
        self._check_keys(batch)
        self._look(part).check(batch)
        ordered = batch.select(part.schema.names)
        if self._keys:
            first = sum(each.rows + sum(chunk.rows for chunk in each.waiting) for each in self._parts)
            ordered = ordered.append_column(ROW, pa.array(range(first, first + batch.num_rows), pa.int64()))
        if self._is_signed:
            ordered = ordered.append_column(SIGN, pa.array([-1 if retracts else 1] * batch.num_rows, pa.int64()))
        chunk = self._dialect.chunk(ordered, self._operator)
        if is_new:
            self._parts.append(part)
        part.waiting.append(chunk)
        self._size += chunk.size
        if not self._is_tried:
            if self._size >= self._buffer_bytes:
                self._load()
            return
        try:  # at once: the rows are still at hand, and can be skipped
            self._load()
        except RowsRefused as refused:
            part.waiting.clear()
            if is_new:
                self._parts.remove(part)
            raise RuleBroken(operator=self._operator, table=self._table, reason=refused.reason) from refused

    def finish(self) -> list[dict[str, Any]] | None:
        """Load what waits, and return what is staged; None for nothing."""
        self._load()
        return [
            {
                "table": p.table,
                "columns": list(map(list, p.types.items())),
                "rows": p.rows,
                "loads": p.loads,
                "is_signed": self._is_signed,
            }
            for p in self._parts
        ] or None

    def _load(self) -> None:
        parts = [part for part in self._parts if part.waiting]
        if not parts:
            return
        with self._session() as session:
            for part in parts:
                columns = {
                    **part.types,
                    **({ROW: "BIGINT"} if self._keys else {}),
                    **({SIGN: "BIGINT"} if self._is_signed else {}),
                }
                if not part.loads:
                    create_table(session, self._dialect, part.table, columns)
                later = session.later_rows(part.table)
                session.load(part.table, list(columns), part.waiting)
                if self._is_tried:
                    self._rehearse(session, part, later)
        for part in parts:
            part.rows += sum(chunk.rows for chunk in part.waiting)
            part.loads += 1
            part.waiting.clear()
        self._size = 0

    @contextlib.contextmanager
    def _session(self) -> Iterator[Session]:
        """Begin a transaction. Raises TableRefused and RowsRefused for statements that the database refuses."""
        try:
            with self._dialect.session(f"staging rows for {self._table!r}") as session:
                yield session
        except StatementRefused as refused:
            reason = shown(refused.reason, self._table)
            help_ = "cast the column, or leave such rows out, before they come here; then launch again"
            if refused.because_of == "table":
                raise self._refused((reason,), help_) from refused
            raise RowsRefused(
                table=self._table,
                database=self._dialect.place,
                window=self._context.window,
                reason=reason,
                help=help_,
            ) from refused

    def _rehearse(self, session: Session, part: _Part, rows: str) -> None:
        """Let the database look at rows of a part as it will when they are published. Raises StatementRefused."""
        order = [ROW] if self._keys else []
        names = ", ".join(map(self._dialect.quoted, [*part.types, *order]))
        rehearsal = Rehearsal.of(
            session,
            self._dialect,
            part.types,
            evolves=self._evolves,
            table=self._table,
            scratch=part.table,
            staged=f"SELECT {names} FROM {session.qualified(part.table)} WHERE {rows}",
            mode=self._mode,
            keys=self._keys,
            order=order,
        )
        if rehearsal is not None:
            session.rehearse(rehearsal)

    def _changes(self, part: _Part, target: Mapping[str, str]) -> Iterator[str]:
        """Yield the reason for each change that the table needs for the rows of a part, "" for one that it may do without."""
        wanted = {self._dialect.folded(name): kind for name, kind in part.types.items()}
        yield from (reason for _, reason in changes(self._dialect, wanted, part.types, target))

    def _look(self, part: _Part) -> TableLimits:
        """Return the limits of the table, which is looked up for the first rows of a window. Raises TableRefused."""
        if self._limits is None:
            with self._session() as session:
                types, required = session.columns(self._table), session.required(self._table)
                has_rules = bool(types) and session.has_rules(self._table, self._keys)
            target = fold(self._dialect, types)
            is_converted = any(target.get(self._dialect.folded(name), kind) != kind for name, kind in part.types.items())
            # where rows may be taken back, they make room for others: the window is tried as a whole
            self._is_tried = not self._is_signed and (has_rules or is_converted)
            reasons = tuple(filter(None, self._changes(part, target)))
            if target and reasons and not self._evolves:
                raise self._refused(reasons, "alter the table, or set on_schema_change='evolve'; then launch again")
            spelled = {self._dialect.folded(name): name for name in part.types}
            own = {spelled[folded]: kind for name, kind in types.items() if (folded := self._dialect.folded(name)) in spelled}
            lengths = {name: self._dialect.max_characters(kind) for name, kind in own.items()}
            ranges = {name: self._dialect.integers(kind) for name, kind in own.items()}
            self._limits = TableLimits(
                operator=self._operator,
                target=f"table {self._table!r}",
                required=[spelled.get(self._dialect.folded(name), name) for name in required],
                keys=self._keys,
                max_lengths={name: limit for name, limit in lengths.items() if limit is not None},
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
            if field.name in (ROW, SIGN):
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
