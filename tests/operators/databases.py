"""Databases as tests look at them."""

from __future__ import annotations

import contextlib
import sqlite3
from typing import Any

import attrs

from operators import PostgresWriter, SqlWriter


@attrs.frozen
class Database:
    """A database, its writers, and a way to look at it that does not lead through them."""

    kind: str
    address: str

    def writer(self, table: str = "sales", **properties: Any) -> Any:
        """A sink that writes to a table."""
        return (SqlWriter if self.kind == "sqlite" else PostgresWriter)(self.address, table, **properties)

    def run(self, statement: str) -> list[Any]:
        """Run a statement, and return its rows."""
        if self.kind == "sqlite":
            with contextlib.closing(sqlite3.connect(self.address.removeprefix("sqlite:///"), isolation_level=None)) as connection:
                return connection.execute(statement).fetchall()
        import psycopg

        with psycopg.connect(self.address, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description is not None else []

    def rows(self, table: str = "sales") -> list[Any]:
        """All rows of a table, sorted."""
        return sorted(self.run(f'SELECT * FROM "{table}"'), key=str)

    def staged(self) -> list[str]:
        """The tables that hold what has been staged."""
        tables = "sqlite_master WHERE type = 'table' AND name" if self.kind == "sqlite" else "pg_tables WHERE tablename"
        name = "name" if self.kind == "sqlite" else "tablename"
        return [row[0] for row in self.run(f"SELECT {name} FROM {tables} LIKE '_dagflow_staged_%'")]
