"""PostgresWriter: writes to a table of a PostgreSQL database."""

from __future__ import annotations

from typing import Any, Generic

import attrs
from typing_extensions import TypeVar

from dagflow.config import Secret
from operators.database.postgres import NAME_BYTES, is_dsn, load_driver, table_problem
from operators.problems import all_problems
from operators.sinks.database.dialect import SqlDialect
from operators.sinks.database.postgres import Postgres
from operators.sinks.database.writer import DatabaseWriter

T = TypeVar("T", default=Any)


@attrs.define
class PostgresWriter(DatabaseWriter[T], Generic[T]):
    """Write to a table of a PostgreSQL database (`pip install 'dagflow[postgres]'`). `DatabaseWriter` explains modes and staging.

    Each window is in the database at once or not at all, also after a crash, and exactly once. docs/how-to/postgres.md has the
    guarantees, and the types of columns.

    Args:
        dsn: `postgresql://user:password@host/database`, or a connection string of libpq, which completes it from its environment
            (`PGHOST`, `PGPASSWORD`, `PGSERVICE`, …). It is shown nowhere.
        table: the name of the table, `sales` or `schema.sales`.
        nul_replacement: the text that takes the place of the character NUL, which PostgreSQL does not store. None: rows with it
            are refused.

    Raises TypeNotWritable for types that PostgreSQL has no form for, ValueNotWritable for the character NUL, nanoseconds and null
    keys, PackageMissing without psycopg, and what `DatabaseWriter.publish` raises.

    >>> PostgresWriter("postgresql://ada:secret@db/shop", "stock", mode="upsert", keys=["item"]).bare_table()
    'stock'
    """

    dsn: Secret = attrs.field(repr=False, validator=attrs.validators.instance_of(str))
    table: str = attrs.field(validator=attrs.validators.instance_of(str))
    nul_replacement: str | None = attrs.field(default=None, kw_only=True)

    def dialect(self) -> SqlDialect:
        """Return the server that the connection string names."""
        load_driver(type(self).__name__)
        schema, dot, _ = self.table.rpartition(".")
        return Postgres(self.dsn, schema if dot else None, self.lock_timeout, self.nul_replacement)

    def bare_table(self) -> str:
        """Return the name of the table without its schema."""
        return self.table.rpartition(".")[2]

    def check(self) -> None:
        """Raise ValueError where properties contradict each other, and PackageMissing."""
        load_driver(type(self).__name__)
        with all_problems(super().check) as problems:
            if not is_dsn(self.dsn):
                problems.append("dsn is not a connection string: write postgresql://user:password@host/database")
            if problem := table_problem(self.table):
                problems.append(problem)
            parts = self.table.split(".")
            if any(len(name.encode()) > NAME_BYTES for name in (*parts, *self.keys)):
                problems.append(f"table and keys need names of at most {NAME_BYTES} bytes")
            if parts[-1].startswith("_dagflow_"):
                problems.append(f"table is {self.table!r}: such names are reserved")
            if self.nul_replacement is not None and "\0" in self.nul_replacement:
                problems.append("nul_replacement has the character NUL in it")
