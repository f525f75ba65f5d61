"""The parts in which databases differ: types, bulk loading, and how to look at the tables that there are.

A `SqlDialect` describes a database, and makes `Session`s: transactions in it. Statements beyond those of a session are standard
SQL (`publishing`): `INSERT … SELECT`, `ON CONFLICT`, window functions, `ALTER TABLE … ADD COLUMN`. A parameter in a statement is
`PARAMETER`.
"""

from __future__ import annotations

import abc
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Literal

import attrs
import pyarrow as pa

from operators.sinks.tables.modes import Mode

PARAMETER = "\0"
"""The place of a parameter in a statement. No identifier holds it."""


class StatementRefused(Exception):
    """A database refuses a statement because of the `rows`, or of the `table`."""

    def __init__(self, because_of: Literal["rows", "table"], reason: str) -> None:
        super().__init__(reason)
        self.because_of = because_of
        self.reason = reason


@attrs.frozen
class Chunk:
    """Rows in the form in which a dialect loads them. `size`: in bytes, about."""

    rows: int
    size: int
    data: Any


@attrs.frozen(kw_only=True)
class Rehearsal:
    """Staged rows that are to be inserted into a table.

    Attributes:
        table: the table. `scratch`: the beginning of the names of tables for this purpose.
        staged: the SELECT statement of the staged rows.
        names: the columns. `values`: an expression over the staged rows for each.
        changes: of the table, which come before the rows: `ADD COLUMN …`.
        mode: of the sink. `keys`: of an upsert. `order`: the columns of the staged rows that say which is the last one.
        on_conflict: the end of its INSERT statement.
    """

    table: str
    scratch: str
    staged: str
    names: Sequence[str]
    values: Sequence[str]
    changes: Sequence[str]
    mode: Mode
    keys: Sequence[str]
    order: Sequence[str]
    on_conflict: str

    @classmethod
    def of(
        cls, session: Session, dialect: SqlDialect, columns: Mapping[str, str], *, evolves: bool, **others: Any
    ) -> Rehearsal | None:
        """Return that of rows with these columns, as types by name; None without a table: it is created with the window.

        `evolves`: the table is changed where it does not fit the rows.
        """
        target = fold(dialect, session.columns(others["table"]))
        if not target:
            return None
        there = {name: target.get(dialect.folded(name), kind) for name, kind in columns.items()}
        altered: list[str] = []
        if evolves:
            wanted = {dialect.folded(name): kind for name, kind in columns.items()}
            altered = [change for change, _ in changes(dialect, wanted, columns, target)]
            there = {name: dialect.wider(kind, columns[name]) or kind for name, kind in there.items()}
        return cls(
            names=list(columns),
            values=[dialect.converted(dialect.quoted(name), kind, there[name]) for name, kind in columns.items()],
            changes=altered,
            on_conflict=on_conflict(dialect, others["mode"], others["keys"], list(columns)),
            **others,
        )


class Session(abc.ABC):
    """A transaction in a database. Names of tables are bare: the session knows the schema."""

    @abc.abstractmethod
    def qualified(self, table: str) -> str:
        """Return the name of a table as it stands in a statement."""

    @abc.abstractmethod
    def select(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Run a statement, and return its rows."""

    @abc.abstractmethod
    def run(self, statement: str, *parameters: Any) -> int:
        """Run a statement, and return the number of rows that it changed."""

    @abc.abstractmethod
    def load(self, table: str, columns: Sequence[str], chunks: Sequence[Chunk]) -> None:
        """Add rows to a table."""

    @abc.abstractmethod
    def columns(self, table: str) -> dict[str, str]:
        """Return the columns of a table with their types; none if there is no such table."""

    @abc.abstractmethod
    def tables(self, prefix: str) -> list[str]:
        """Return the tables whose names begin with a prefix."""

    @abc.abstractmethod
    def identity(self, table: str, create: bool = False) -> str | None:
        """Return a mark of a table that another table of the same name does not have; None without a mark.

        `create`: give the table a mark, if it has none by nature.
        """

    def required(self, table: str) -> list[str]:
        """Return the columns of a table that take no nulls, and have no value of their own in rows that lack them."""
        return []

    def has_rules(self, table: str, keys: Sequence[str]) -> bool:
        """Return False if `rehearse` would take any rows, beside their types and nulls: the table has no constraints or triggers.

        `keys`: of an upsert, whose unique index refuses nothing.
        """
        return True

    def unforeseen(self, table: str) -> list[str]:
        """Return what may refuse rows of a table only when they are published: foreign keys, for example."""
        return []

    def later_rows(self, table: str) -> str:
        """Return a condition that is true for the rows that a staged table will get, for `rehearse`."""
        return "1 = 1"

    @contextmanager
    def undone(self) -> Iterator[None]:
        """Undo what a block does, which may be nothing but a trial."""
        self.run("SAVEPOINT dagflow_trial")
        yield
        self.run("ROLLBACK TO SAVEPOINT dagflow_trial")
        self.run("RELEASE SAVEPOINT dagflow_trial")

    def lock_table(self, table: str) -> None:  # noqa: B027  # a session of others may lock the whole database
        """Keep others from changing rows of a table until the transaction ends."""

    def check_deferred(self) -> None:  # noqa: B027  # sessions of others need not have it
        """Check the rules that would be checked at the end of the transaction."""

    def rehearse(self, rehearsal: Rehearsal) -> None:  # noqa: B027  # sessions of others need not have it
        """Let the database look at staged rows as it will when they are published, and leave no trace of it.

        Raises the error of the database for rows that the table refuses.
        """

    def as_key(self, table: str, column: str, expression: str, kind: str) -> str:
        """Return an expression that is equal for staged values that are equal in a column of a table. `kind`: its type."""
        return expression

    def lock_row(self, statement: str) -> str:
        """Return a SELECT of one row that keeps others from changing it until the transaction ends."""
        return statement


class SqlDialect(abc.ABC):
    """A database, and what is special about it.

    Attributes:
        name: of the system, for messages.
        place: where the database is, for messages. Never a secret.
    """

    name: str
    place: str

    @abc.abstractmethod
    def session(self, doing: str) -> AbstractContextManager[Session]:
        """Connect and begin a transaction, which is committed at the end, or rolled back after an exception.

        `doing`: its purpose, for messages. Raises DatabaseBusy for what is transient, DatabaseRefused, StatementRefused.
        """

    @abc.abstractmethod
    def column_type(self, kind: pa.DataType) -> str | None:
        """Return the type of a column; None for an Arrow type that the database has no type for."""

    @abc.abstractmethod
    def chunk(self, batch: pa.RecordBatch, operator: str) -> Chunk:
        """Return rows in the form that `Session.load` takes. Raises ValueNotWritable, which names the `operator`."""

    def row_place(self, columns: Collection[str]) -> tuple[str, ...]:
        """Return the names by which the database tells equal rows apart, none where it does not. `columns`: of the table."""
        return ()

    def content(self, columns: Mapping[str, str]) -> str:
        """Return an expression that is equal for equal rows, also for zeros of both signs. `columns`: of a table, with types."""
        raise NotImplementedError(f"{type(self).__name__} has no content(), which keys='*' needs")

    def secure(self) -> None:  # noqa: B027  # servers do so by themselves
        """Wait until what others have committed survives a power cut: they may have died before it did."""

    def quoted(self, name: str) -> str:
        """Return an identifier in quotes."""
        return '"' + name.replace('"', '""') + '"'

    def name_problem(self, name: str) -> str | None:
        """Return what is wrong with the name of a table or column, None if nothing is."""
        if not name:
            return "it is empty"
        return "it has a zero byte in it" if "\0" in name else None

    def folded(self, name: str) -> str:
        """Return the form of a name that is equal for names of the same column."""
        return name

    def wider(self, then: str, now: str) -> str | None:
        """Return the type that holds the values of both types, None if there is none."""
        return then if then == now else None

    def refuses_overflow(self, target: str, staged: str) -> bool:
        """Return whether values of a wider type are stored whole in a column of the target's type, or refused; never rounded."""
        return False

    def max_characters(self, kind: str) -> int | None:
        """Return how many characters a column of a type takes; None where there is no limit."""
        return None

    def integers(self, kind: str) -> tuple[int, int] | None:
        """Return the smallest and the largest integer of a type; None where there is no limit."""
        return None

    def converted(self, column: str, staged: str, target: str) -> str:
        """Return the expression that turns a staged column (quoted) into the type of the target."""
        return column


def changes(
    dialect: SqlDialect, wanted: Mapping[str, str], spelled: Iterable[str], target: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield how a table has to change for columns, and the reason to refuse them where it may not; "" for none.

    `wanted` and `target`: types by folded name; `spelled`: the columns as the rows spell them, in the same order.
    """
    for name, (folded, kind) in zip(spelled, wanted.items(), strict=True):
        if folded not in target:
            yield f"ADD COLUMN {dialect.quoted(name)} {kind}", f"column {name!r} ({kind}) is not in the table"
        elif (wider := dialect.wider(target[folded], kind)) not in (None, target[folded]):
            reason = f"column {name!r} is {target[folded]} in the table, and {kind} in the rows"
            is_safe = dialect.refuses_overflow(target[folded], kind)
            yield f"ALTER COLUMN {dialect.quoted(name)} TYPE {wider}", "" if is_safe else reason


def on_conflict(dialect: SqlDialect, mode: Mode, keys: Sequence[str], names: Sequence[str]) -> str:
    """Return the end of the INSERT statement of a mode, for rows with these columns."""
    if mode != "upsert" or not keys:
        return ""
    others = [dialect.quoted(name) for name in names if name not in keys]
    update = f"DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in others)}" if others else "DO NOTHING"
    return f" ON CONFLICT ({', '.join(map(dialect.quoted, keys))}) {update}"


def fold(dialect: SqlDialect, columns: Mapping[str, str]) -> dict[str, str]:
    """Return the types of columns by folded name."""
    return {dialect.folded(name): kind for name, kind in columns.items()}
