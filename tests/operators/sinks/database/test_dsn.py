"""Connection strings of PostgreSQL, without a server."""

from __future__ import annotations

import sys

import pytest

from dagflow.errors import PackageMissing
from operators import PostgresWriter

pytest.importorskip("psycopg")


def test_a_connection_string_that_cannot_be_parsed_is_not_repeated() -> None:
    with pytest.raises(ValueError, match="dsn is not a connection string: write postgresql://user") as wrong:
        PostgresWriter("postgresql://ada:hunter2%zz@host/db", "sales").check()
    assert "hunter2" not in str(wrong.value)


def test_without_psycopg_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(PackageMissing, match=r"pip install 'dagflow\[postgres\]'") as missing:
        PostgresWriter("postgresql://host/db", "sales").check()
    assert missing.value.exit_code == 3
