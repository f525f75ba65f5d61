"""Questions to a server about a table: its place, its key, its newest rows, the transactions that write to it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import attrs

from operators.database.postgres import PostgresServer, quoted
from operators.sources.errors import KeyNull, SourceTableRefused
from operators.sources.postgres.blocks import MarkedRow, WindowCut, window_cut
from operators.sources.postgres.keys import INTEGERS, TIME, KeyType

_NEEDS = "CONNECT on the database, USAGE on the schema, and SELECT on the table"
SESSION = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY; " + "; ".join(
    f"SET LOCAL {name} = {value}"
    for name, value in {
        "TimeZone": "'UTC'",
        "DateStyle": "'ISO'",
        "bytea_output": "'hex'",
        "extra_float_digits": "3",
    }.items()
)
"""Values as text that is read back exactly, however the server is set up. Each statement sees all that is committed by then."""

_TABLE = """
    WITH RECURSIVE parts(oid) AS (
        SELECT to_regclass(%s)::oid UNION ALL SELECT inhrelid FROM pg_inherits JOIN parts ON inhparent = parts.oid
    )
    SELECT c.oid::bigint, nspname, relname, relkind::text, pg_is_in_recovery(),
        (SELECT array_agg(parts.oid::bigint) FROM parts),
        (SELECT array_agg(p.relkind::text) FROM pg_class p JOIN parts USING (oid)),
        (SELECT sum(pg_table_size(p.oid)) / nullif(sum(greatest(p.reltuples, 0)), 0) FROM pg_class p JOIN parts USING (oid))
    FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE c.oid = to_regclass(%s)
"""
_KEY = """
    SELECT format_type(atttypid, NULL), attnotnull,
        EXISTS (SELECT FROM pg_index WHERE indrelid = attrelid AND indkey[0] = attnum AND indpred IS NULL AND indisvalid),
        EXISTS (SELECT FROM pg_index WHERE indrelid = attrelid AND indkey[0] = attnum AND indpred IS NULL AND indisvalid
            AND indisunique AND indnkeyatts = 1)
    FROM pg_attribute WHERE attrelid = %s AND attname = %s AND attnum > 0 AND NOT attisdropped
"""
_LOCKING = """
    SELECT concat(virtualtransaction, ' ', pid) FROM pg_locks
    WHERE locktype = 'relation' AND relation = ANY(%s) AND granted AND pid IS DISTINCT FROM pg_backend_pid()
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
"""
_RUNNING = "SELECT txid_snapshot_xip(txid_current_snapshot())::text"
_ROW_BYTES = 100  # of tables that have never been analyzed


@contextlib.contextmanager
def reading(server: PostgresServer, doing: str) -> Iterator[Any]:
    """Connect, and yield the cursor of a transaction that only reads. Raises DatabaseBusy, DatabaseRefused."""
    import psycopg

    try:
        with server.connected(doing) as connection, connection.cursor() as cursor:
            cursor.execute(SESSION)
            yield cursor
    except psycopg.Error as error:
        raise server.error(error, doing) from None


def server_of(dsn: str) -> PostgresServer:
    """Return the server that a connection string names."""
    return PostgresServer(dsn, _NEEDS)


@attrs.frozen
class TableName:
    """A table as the properties of an operator name it. `operator`, `database`: for messages. `has_lag`: the key is a time."""

    operator: str
    database: str
    table: str
    key: str
    has_lag: bool = False

    def refused(self, reason: str, help_: str) -> SourceTableRefused:
        """Return the error for a table that cannot be read."""
        return SourceTableRefused(operator=self.operator, table=self.table, database=self.database, reason=reason, help=help_)

    def found(self, cursor: Any) -> SourceTable:
        """Return the table as the server knows it. Raises SourceTableRefused."""
        name = ".".join(map(quoted, self.table.split(".")))
        rows = cursor.execute(_TABLE, [name, name]).fetchall()
        if not rows:
            raise self.refused("there is no such table, or its schema is not in the search path", "name it as schema.table")
        oid, schema, bare, kind, is_standby, parts, kinds, row_bytes = rows[0]
        if "m" in kinds:
            raise self.refused(
                "it is a materialized view: rows that were not committed at its last REFRESH come later, with smaller keys",
                "read its tables, or a view of them",
            )
        if "f" in kinds:
            what = "it is a foreign table" if kind == "f" else "it has a partition or a child that is a foreign table"
            raise self.refused(f"{what}: this server does not know which transactions write to it", "read it on its own server")
        keys = cursor.execute(_KEY, [oid, self.key]).fetchall()
        if not keys:
            names = cursor.execute(f"SELECT * FROM {name} WHERE false").description
            raise self.refused(f"it has no column {self.key!r}", f"the columns are {', '.join(each.name for each in names)}")
        key_type, is_filled, is_indexed, is_unique = keys[0]
        if key_type == "timestamp without time zone":
            raise self.refused(
                f"the key {self.key!r} is a {key_type}, which sessions write in zones of their own, so it does not say when",
                "name the zone that it was written in: "
                f"ALTER TABLE {name} ALTER {quoted(self.key)} TYPE timestamptz USING {quoted(self.key)} AT TIME ZONE 'UTC'; "
                "or read a view that has this expression as its key",
            )
        if key_type not in (*INTEGERS, TIME):
            raise self.refused(
                f"the key {self.key!r} is {key_type}, and must be an integer or a timestamp with time zone",
                "name a column of a sequence, or the time of the last change, as key",
            )
        if key_type == TIME and not self.has_lag:
            raise self.refused(
                f"the key {self.key!r} is a {key_type}, which needs a lag",
                "lag = 5min leaves rows of the last 5 minutes for later; it must be longer than any transaction that writes",
            )
        if key_type in INTEGERS and self.has_lag:
            raise self.refused(f"the key {self.key!r} is {key_type}: a lag is for timestamps", "leave lag out")
        return SourceTable(
            name=self,
            oid=oid,
            schema=schema,
            bare=bare,
            kind=kind,
            key_type=KeyType(key_type),
            is_standby=is_standby,
            is_filled=is_filled,
            is_indexed=is_indexed,
            is_unique=is_unique,
            parts=tuple(parts),
            row_bytes=max(1, round(row_bytes or _ROW_BYTES)),
        )


@attrs.frozen(kw_only=True)
class SourceTable:
    """A table as the server knows it.

    Attributes:
        oid: its object identifier, which another table of the same name does not have.
        kind: as in `pg_class.relkind`.
        is_filled, is_indexed, is_unique: the key is NOT NULL; the first column of an index; unique by itself.
        parts: the object identifiers of the table and its partitions.
        row_bytes: of an average row.
    """

    name: TableName
    oid: int
    schema: str
    bare: str
    kind: str
    key_type: KeyType
    is_standby: bool
    is_filled: bool
    is_indexed: bool
    is_unique: bool
    parts: tuple[int, ...]
    row_bytes: int

    @property
    def path(self) -> str:
        """Schema and name."""
        return f"{self.schema}.{self.bare}"

    @property
    def qualified(self) -> str:
        """Schema and name in quotes."""
        return f"{quoted(self.schema)}.{quoted(self.bare)}"

    @property
    def has_rows_of_its_own(self) -> bool:
        """True for tables, partitioned ones too."""
        return self.kind in ("r", "p")

    @property
    def order_of_ties(self) -> str:
        """The rest of ORDER BY, behind the key, by which rows of equal keys come in the same order each time."""
        if self.is_unique:
            return ""
        return ", t.tableoid, t.ctid" if self.has_rows_of_its_own else ', t::text COLLATE "C"'

    @property
    def is_slow(self) -> bool:
        """True for a table where each range of keys takes a scan of all rows."""
        return self.has_rows_of_its_own and not self.is_indexed

    def refuse_nulls(self, cursor: Any) -> None:
        """Raise KeyNull if a row has no key."""
        where = f"FROM {self.qualified} WHERE {quoted(self.name.key)} IS NULL"
        if not self.is_filled and cursor.execute(f"SELECT 1 {where} LIMIT 1").fetchall():
            [(rows,)] = cursor.execute(f"SELECT count(*) {where}").fetchall()
            raise KeyNull(operator=self.name.operator, table=self.path, key=self.name.key, rows=rows)

    def newest(self, cursor: Any, before: int | None = None) -> int | None:
        """Return the position of the newest key, of those before a position; None if there is none."""
        return self._position(cursor, "max", stop=before)

    def oldest(self, cursor: Any, start: int | None = None, stop: int | None = None) -> int | None:
        """Return the position of the first key of a range; None if there is none."""
        return self._position(cursor, "min", start, stop)

    def newest_bound(self, cursor: Any, position: int | None, lag: float | None) -> int | None:
        """Return the position behind the rows from `position` on that are old enough; None if there are none."""
        until = None
        if lag is not None:
            [(now, replayed)] = cursor.execute("SELECT now(), pg_last_xact_replay_timestamp()").fetchall()
            if self.is_standby:
                if replayed is None:  # no transaction since the standby started: nothing says how far it is behind
                    return None
                now = min(now, replayed)
            until = self.key_type.position(now) - round(lag * 1_000_000)
        newest = self.newest(cursor, until)
        if newest is None or (position is not None and newest < position):
            return None
        return newest + 1  # never ahead of what was seen: a table may show its rows later than they are committed

    def count(self, cursor: Any, start: int, stop: int) -> int:
        """Return the number of rows of a range."""
        [(rows,)] = cursor.execute(f"SELECT count(*) FROM {self.qualified} WHERE {self.where(start, stop)}").fetchall()
        return int(rows)

    def writers(self, cursor: Any) -> frozenset[str]:
        """Return names of the transactions that may have rows which are not committed yet.

        These hold a lock for writing on the table or a partition of it, and get it before they get a key. A standby does not show
        locks, and a view does not name its tables; there, all transactions count that have written anything.
        """
        if self.kind in ("r", "p") and not self.is_standby:
            rows = cursor.execute(_LOCKING, [list(self.parts)]).fetchall()
        else:
            rows = cursor.execute(_RUNNING).fetchall()
        return frozenset(str(name) for (name,) in rows)

    def cut(self, cursor: Any, start: int, until: int, *, block_rows: int, blocks: int) -> WindowCut | None:
        """Return the cut of the window that begins at `start`; None if no row is there.

        The server walks along the index of the key once, so that blocks have equal numbers of rows, whatever the gaps.
        """
        key, most = quoted(self.name.key), block_rows * blocks
        rows = cursor.execute(
            f"SELECT k, r - 1, n FROM (SELECT {key} AS k, rank() OVER w AS r, row_number() OVER w AS n,"
            f" lead(1) OVER w IS NULL AS is_last FROM {self.qualified} WHERE {self.where(start, until)}"
            f" WINDOW w AS (ORDER BY {key}) ORDER BY {key} LIMIT {most + 1}) AS marked"
            f" WHERE (n - 1) % {block_rows} = 0 OR is_last ORDER BY n"
        ).fetchall()
        if not rows:
            return None
        marked = [MarkedRow(self.key_type.position(k), before, number) for k, before, number in rows]
        place = window_cut(marked, until, block_rows=block_rows, blocks=blocks)
        if place is not None:
            return place
        stop = self.oldest(cursor, marked[0].position + 1, until)
        stop = until if stop is None else stop
        return WindowCut(stop, self.count(cursor, start, stop))

    def where(self, start: int | None, stop: int | None) -> str:
        """Return the condition for rows of a range of positions."""
        key, kind = quoted(self.name.key), self.key_type
        least = [each for each in (start, kind.least) if each is not None]
        low = [f"{key} >= {kind.literal(max(least))}"] if least else []
        return " AND ".join([*low, *([f"{key} < {kind.literal(stop)}"] if stop is not None else [])]) or "true"

    def _position(self, cursor: Any, function: str, start: int | None = None, stop: int | None = None) -> int | None:
        if self.key_type.is_time and stop is None:
            bounded = f"{self.where(start, stop)} AND isfinite({quoted(self.name.key)})"
        else:
            bounded = self.where(start, stop)
        statement = f"SELECT {function}({quoted(self.name.key)}) FROM {self.qualified} WHERE {bounded}"
        [(value,)] = cursor.execute(statement).fetchall()
        return None if value is None else self.key_type.position(value)
