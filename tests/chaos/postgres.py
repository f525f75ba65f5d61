"""`apps/orders` with a PostgreSQL server that fails as servers do, behind a proxy that loses connections."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import attrs

from tests.chaos import cases, tables
from tests.chaos.cases import OUTPUT, Application
from tests.local.processes import lives
from tests.operators.databases import Database
from tests.operators.sinks.database.proxy import Proxy, proxy

PATIENCE = 3.0
"""Seconds in which a failure must hit something; else the launch has not come so far, and it is tried again later."""

HOOK = """
CREATE TABLE IF NOT EXISTS chaos (code text);
CREATE SEQUENCE IF NOT EXISTS chaos_hits;
CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE fault text := (SELECT max(code) FROM chaos);
BEGIN
    IF fault IS NOT NULL THEN
        PERFORM nextval('chaos_hits');  -- which a rollback leaves as it is
        RAISE EXCEPTION 'a fault of the tests' USING ERRCODE = fault;
    END IF;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER fail BEFORE INSERT ON orders FOR EACH STATEMENT EXECUTE FUNCTION fail();
"""

Runs = Callable[[], bool]


@attrs.frozen
class FailingServer:
    """A server and the proxy before it. Each failure waits until it has hit the launch, or gives up. True: it has hit."""

    server: Any
    proxy: Proxy

    @property
    def faults(self) -> dict[str, Callable[[str, Runs, random.Random], bool]]:
        """The failures by kind. They take the name of the database, whether the launch still runs, and a source of chance."""
        return {
            "down": self._down,
            "lost_commit": self._lost_commit,
            "cut": self._cut,
            "disk_full": lambda *where: self._refused("53100", *where),
            "serialization": lambda *where: self._refused("40001", *where),
            "locked": self._locked,
        }

    def connect(self, name: str) -> Any:
        """Connect without the proxy."""
        import psycopg

        return psycopg.connect(self.server.get_uri(name), autocommit=True)

    def create(self, name: str) -> None:
        """Create a database, if there is none."""
        with self.connect("postgres") as connection:
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchall():
                connection.execute(f'CREATE DATABASE "{name}"'.encode())

    def current(self, name: str) -> tables.Current:
        """Read the database; empty if the table is not there yet."""
        from psycopg.rows import dict_row

        with self.connect(name) as connection:
            names = {row[0] for row in connection.execute("SELECT tablename FROM pg_tables").fetchall()}
            staged = sorted(each for each in names if each.startswith("_dagflow_staged_"))
            if "orders" not in names:
                return tables.Current(tables.orders_of(()), -1, staged)
            rows = connection.cursor(row_factory=dict_row).execute("SELECT * FROM orders").fetchall()
            ((window,),) = connection.execute("SELECT window_number FROM _dagflow_windows").fetchall()
        return tables.Current(tables.orders_of(rows), window, staged)

    # --------------------------------------------------------------------------------------------------------- failures

    def _down(self, name: str, runs: Runs, rng: random.Random) -> bool:
        """The server is killed, and up again after a while."""
        number = self.server.get_pid()
        os.kill(number, signal.SIGQUIT)  # it does not wait for anything
        while lives(number):  # it stays as a zombie where its parent never asks for its status
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 2))
        self.server.ensure_postgres_running()
        return True

    def _lost_commit(self, name: str, runs: Runs, rng: random.Random) -> bool:
        """A COMMIT reaches the server, and its answer is lost."""
        before = self.proxy.lost
        self.proxy.numbers = frozenset({self.proxy.seen + rng.randrange(3)})
        _until(lambda: self.proxy.lost > before, runs)
        self.proxy.numbers = frozenset()
        return self.proxy.lost > before

    def _cut(self, name: str, runs: Runs, rng: random.Random) -> bool:
        """All connections are lost."""
        return _until(lambda: self.proxy.cut() > 0, runs)

    def _refused(self, code: str, name: str, runs: Runs, rng: random.Random) -> bool:
        """All that is inserted into the table is refused with a code, for a while."""
        import psycopg

        with self.connect(name) as connection:
            try:
                connection.execute("SET lock_timeout = '1s'")
                connection.execute(HOOK.encode())
            except psycopg.Error:  # there is no table yet, or a launch is at work on it
                return False
            before = _hits(connection)
            connection.execute("INSERT INTO chaos VALUES (%s)", [code])
            if _until(lambda: _hits(connection) > before, runs):
                time.sleep(rng.uniform(0, 0.5))
            connection.execute("SET lock_timeout = 0")
            connection.execute("TRUNCATE chaos")  # when all that have read the code have ended: then the hits are complete
            return _hits(connection) > before

    def _locked(self, name: str, runs: Runs, rng: random.Random) -> bool:
        """Another session has locked the table."""
        import psycopg

        with self.connect(name) as connection, self.connect(name) as beside:
            try:
                with connection.transaction():
                    connection.execute("SET LOCAL lock_timeout = '1s'")
                    connection.execute("LOCK TABLE orders IN ACCESS EXCLUSIVE MODE")
                    waiting = b"SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'orders'::regclass"
                    has_hit = _until(lambda: bool(beside.execute(waiting).fetchall()), runs)
                    if has_hit:
                        time.sleep(rng.uniform(0, 1.5))  # lock_timeout of the launch is shorter
            except psycopg.Error:  # there is no table yet
                return False
        return has_hit


def _until(has_hit: Callable[[], bool], runs: Runs) -> bool:
    """Wait until a failure has hit, for as long as the launch runs. Return whether it has."""
    end = time.monotonic() + PATIENCE
    while not (hit := has_hit()) and runs() and time.monotonic() < end:
        time.sleep(0.002)
    return hit or has_hit()


def _hits(connection: Any) -> int:
    ((value, is_called),) = connection.execute("SELECT last_value, is_called FROM chaos_hits").fetchall()
    return int(value) if is_called else 0


@contextlib.contextmanager
def failing(server: Any) -> Iterator[FailingServer]:
    """Put a proxy before a server."""
    with proxy(Database("postgres", server.get_uri()), "answer") as (made, _):
        yield FailingServer(server, made)


def orders(server: FailingServer, folder: Path, files: int = 12) -> Application:
    """The orders, with the newest row of each in a table of the server."""
    made = cases.orders(folder, files)
    rows = tables.expected(sorted((folder / "files").iterdir()))

    def deliver(output: str, number: int) -> bool:
        server.create(output)
        return made.deliver(output, number)

    def wrong(output: Path, is_last: bool) -> Iterable[str]:
        return (tables.wrong if is_last else tables.wrong_meanwhile)(output, rows, lambda output: server.current(output.name))

    address = f"postgresql://postgres@127.0.0.1:{server.proxy.port}/{OUTPUT}"
    settings = {**made.settings, "database": address, "operator.database.lock_timeout": "1"}
    return attrs.evolve(made, settings=settings, deliver=deliver, wrong=wrong, faults=server.faults)
