"""Databases for the tests of their sinks: SQLite in the folder of a test, and PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.operators.databases import Database


@pytest.fixture
def sqlite(tmp_path: Path) -> Database:
    """A database in a file."""
    return Database("sqlite", f"sqlite:///{tmp_path}/shop.db")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.full)])
def database(request: pytest.FixtureRequest) -> Database:
    """Each database that there is a sink for."""
    found: Database = request.getfixturevalue(request.param)
    return found
