"""SqlWriter: writes to a table of a database in a file."""

from __future__ import annotations

import os
from typing import Any, Generic

import attrs
from typing_extensions import TypeVar

from operators.problems import all_problems
from operators.sinks.database.dialect import SqlDialect
from operators.sinks.database.sqlite import Sqlite
from operators.sinks.database.writer import DatabaseWriter

T = TypeVar("T", default=Any)

_SQLITE = "sqlite:///"


def _absolute(url: str) -> str:
    """Return the URL with an absolute path, which all processes find."""
    path = url.removeprefix(_SQLITE)
    return _SQLITE + os.path.abspath(path) if url.startswith(_SQLITE) and path and path != ":memory:" else url


@attrs.define
class SqlWriter(DatabaseWriter[T], Generic[T]):
    """Write to a table of an SQLite database. `DatabaseWriter` explains modes, keys and staging.

    Each window is in the database at once or not at all, also after a crash, and exactly once. For PostgreSQL there is
    `PostgresWriter`; for another database override `dialect()`.

    Args:
        url: `sqlite:///sales.db`, or `sqlite:////srv/sales.db` for an absolute path.
        table: the name of the table.

    Raises TypeNotWritable for types that SQLite has no form for, ValueNotWritable for NaN and null keys, and what
    `DatabaseWriter.publish` raises.

    >>> import contextlib, sqlite3, tempfile
    >>> from dagflow.testing import Window, run_operator
    >>> @attrs.frozen
    ... class Stock:
    ...     item: str
    ...     units: int
    >>> path = tempfile.mkdtemp() + "/shop.db"
    >>> writer = SqlWriter[Stock](f"sqlite:///{path}", "stock", mode="upsert", keys=["item"])
    >>> run_operator(writer, {"input": [Window([Stock("pen", 3), Stock("ink", 1)]), Window([Stock("pen", 2)])]})
    {}
    >>> with contextlib.closing(sqlite3.connect(path)) as database:
    ...     database.execute("SELECT * FROM stock ORDER BY item").fetchall()
    [('ink', 1), ('pen', 2)]
    """

    url: str = attrs.field(converter=_absolute)
    table: str = attrs.field(validator=attrs.validators.instance_of(str))

    def task_folders(self) -> list[str]:
        """Return the folder of the database file."""
        return [os.path.dirname(self.url.removeprefix(_SQLITE))]

    def dialect(self) -> SqlDialect:
        """Return the database that the URL names."""
        return Sqlite(self.url.removeprefix(_SQLITE), self.lock_timeout)

    def check(self) -> None:
        """Raise ValueError where properties contradict each other."""
        with all_problems(super().check) as problems:
            if self.url.startswith(("postgres:", "postgresql:")):
                problems.append("url is that of a PostgreSQL server: use PostgresWriter, which keeps its password secret")
            elif not self.url.startswith(_SQLITE) or self.url in (_SQLITE, f"{_SQLITE}:memory:") or "?" in self.url:
                problems.append(f"url is {self.url!r}, and must be that of a file: sqlite:///sales.db")
            if self.table.lower().startswith(("sqlite_", "_dagflow_")):
                problems.append(f"table is {self.table!r}: such names are reserved")
