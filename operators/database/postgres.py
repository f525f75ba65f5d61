"""Connections to PostgreSQL by psycopg, and the meaning of the errors of a server."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

import attrs

from dagflow.errors import PackageMissing
from operators.database.errors import DatabaseBusy, DatabaseRefused

NAME_BYTES = 63
"""The longest name of a table or column. PostgreSQL cuts longer ones, so that two may become one."""

CONNECT_TIMEOUT = 10

_TRANSIENT = re.compile("08|25P03|40|53300|55P03|57P0[1235]|57014")
"""Lost connections, serialization failures, deadlocks, too many connections, locks, servers that stop or start, timeouts."""
_NO_ACCESS = re.compile(r"authentication|pg_hba|no password|does not exist|not permitted to log in|permission|SSL|certificate")


@attrs.frozen
class PostgresServer:
    """A PostgreSQL server. `dsn`: URL or connection string of libpq, which completes it from the environment (`PGHOST`, …).

    `needs`: the permissions that the user needs, for messages.
    """

    dsn: str = attrs.field(repr=False)
    needs: str = ""

    @property
    def place(self) -> str:
        """Host, port and database."""
        import psycopg.conninfo
        import psycopg.pq

        defaults = {option.keyword.decode(): option.val for option in psycopg.pq.Conninfo.get_defaults()}  # PGHOST, …
        known = {name: value.decode() for name, value in defaults.items() if value is not None}
        known |= {name: str(value) for name, value in psycopg.conninfo.conninfo_to_dict(self.dsn).items()}
        database = known.get("dbname") or known.get("user", "")
        return f"{known.get('host') or known.get('hostaddr') or 'localhost'}:{known.get('port', '5432')}/{database}"

    @contextlib.contextmanager
    def connected(self, doing: str) -> Iterator[Any]:
        """Connect, and yield the connection, which is closed at the end.

        `doing`: its purpose, for messages. Raises DatabaseBusy for what is transient, and DatabaseRefused.
        """
        import psycopg
        import psycopg.conninfo

        try:
            given: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(self.dsn)
            given = {"connect_timeout": CONNECT_TIMEOUT, "application_name": "dagflow", **given, "client_encoding": "utf8"}
            connection = psycopg.connect("", prepare_threshold=None, **given)
        except psycopg.Error as error:
            if _NO_ACCESS.search(str(error)):
                raise DatabaseRefused(database=self.place, doing=doing, reason=text_of(error), needs=self.needs) from None
            raise DatabaseBusy(database=self.place, doing=doing, reason=text_of(error)) from None
        with contextlib.closing(connection):
            yield connection

    def error(self, error: Any, doing: str) -> DatabaseBusy | DatabaseRefused:
        """Return the error that stands for an exception of psycopg."""
        if error.sqlstate is None or _TRANSIENT.match(error.sqlstate):
            return DatabaseBusy(database=self.place, doing=doing, reason=text_of(error))
        return DatabaseRefused(database=self.place, doing=doing, reason=text_of(error), needs=self.needs)


def load_driver(operator: str) -> None:
    """Raise PackageMissing if psycopg is not installed."""
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise PackageMissing(needed_by=operator, package="psycopg", install="'dagflow[postgres]'") from error


def is_dsn(dsn: str) -> bool:
    """Return whether libpq understands a connection string."""
    import psycopg.conninfo

    try:
        psycopg.conninfo.conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:  # its message repeats parts of the text
        return False
    return True


def table_problem(table: str) -> str | None:
    """Return the problem with the name of a table, `name` or `schema.name`; None if there is none."""
    parts = table.split(".")
    if len(parts) > 2 or not all(parts):
        return f"table is {table!r}, and must be a name, or schema.name"
    return None


def quoted(name: str) -> str:
    """Return an identifier in quotes.

    >>> print(quoted('a"b'))
    "a""b"
    """
    return '"' + name.replace('"', '""') + '"'


def text_of(error: Any) -> str:
    """Return the message of a server, or the first line of that of libpq, which adds guesses."""
    detail = error.diag.message_detail
    lines = (error.diag.message_primary or str(error)).strip().splitlines() or [type(error).__name__]
    return lines[0].strip() + (f" ({detail})" if detail else "")
