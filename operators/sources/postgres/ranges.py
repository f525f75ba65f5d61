"""PostgresRanges: plans the ranges of keys of a table, window by window."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import attrs

from dagflow import OperatorContext, OutputPort, State
from dagflow.config import MiB, Seconds, Secret, not_negative, seconds_of
from dagflow.scaling import Backlog
from operators.database.errors import DatabaseBusy
from operators.database.postgres import is_dsn, load_driver, table_problem
from operators.polling import PollingInput
from operators.problems import all_problems, below_one
from operators.sources.errors import SourceTableReplaced
from operators.sources.postgres.blocks import KeyBlock
from operators.sources.postgres.source_table import SourceTable, TableName, reading, server_of

BLOCK_BYTES = 8 * MiB
LEAST_ROWS, MOST_ROWS = 1_000, 100_000
BLOCKS_PER_SLOT = 16
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 1.0
_CACHED = """
    SELECT seqcache FROM pg_sequence
    WHERE seqrelid = pg_get_serial_sequence(%s, %s)::regclass AND seqcache > 1
"""


@attrs.define
class Unsettled:
    """A look at a table while transactions were writing to it: rows before `until` are read once all `writers` have ended.

    `since`, `due`: times of the look and of the next question, by the monotonic clock. `pause`: the time between questions.
    """

    until: int
    writers: frozenset[str]
    since: float
    due: float
    pause: float = _FIRST_PAUSE
    is_told: bool = False


class NewRows:
    """The rows that a launch has found and not planned yet.

    Attributes:
        until: the position behind those that are safe to plan; None: there are none now.
        unsettled: a look that waits for transactions.
        looked: the time of the last look, by the monotonic clock; None before the first one.
        rate: blocks and bytes for a position, by the last window.
    """

    def __init__(self) -> None:
        self.until: int | None = None
        self.unsettled: Unsettled | None = None
        self.looked: float | None = None
        self.rate: tuple[float, float] = (0.0, 0.0)


@attrs.define(slots=False)
class PostgresRanges(PollingInput):
    """Plans the rows of a table that are new, as ranges of keys with about equal numbers of rows.

    A run with `--once` reads what is committed when it first looks; a continuous one looks again after each interval. The
    position is remembered over windows and launches.

    Args:
        dsn: the server, as `PostgresWriter` has it. It is shown nowhere.
        table: a table or view, `sales` or `schema.sales`.
        key: an integer column that grows, or the time of the last change of a row.
        lag: needed for a key that is a time, with a zone: rows younger than that are left for later.
        block_rows: rows in a block, but for rows with equal keys; None: about 8 MiB of rows, 1,000 to 100,000.
        window_blocks: blocks in a window; None: 16 for each slot.
        writers_timeout: the time that transactions are waited for which are writing when the table is looked at.
    """

    dsn: Secret = attrs.field(repr=False, validator=attrs.validators.instance_of(str))
    table: str = attrs.field(validator=attrs.validators.instance_of(str))
    key: str = attrs.field(kw_only=True, validator=attrs.validators.instance_of(str))
    lag: Seconds | None = attrs.field(default=None, kw_only=True, converter=seconds_of)
    block_rows: int | None = attrs.field(default=None, kw_only=True)
    window_blocks: int | None = attrs.field(default=None, kw_only=True)
    writers_timeout: Seconds = attrs.field(default=60.0, kw_only=True, converter=seconds_of, validator=not_negative)

    blocks_metadata_output = OutputPort[KeyBlock]()

    position = State[int | None](None)  # of the first key that is not planned yet
    table_oid = State[int | None](None)
    next_block_id = State(0)
    planned = State("")  # the position in words

    def check(self) -> None:
        """Raise ValueError for properties that no table can have, and PackageMissing."""
        load_driver(type(self).__name__)
        with all_problems(super().check) as problems:
            problems.extend(dsn_and_table_problems(self.dsn, self.table, self.key))
            if self.lag is not None and self.lag <= 0:
                problems.append(f"lag is {self.lag}, and must be a duration, such as 5min")
            problems.extend(below_one(self, "block_rows", "window_blocks"))

    def state_properties(self) -> tuple[str, ...]:
        """Return the properties that give positions their meaning."""
        return ("table", "key")

    def check_inputs(self, context: OperatorContext) -> None:
        """Raise SourceTableRefused, KeyNull, DatabaseBusy, DatabaseRefused."""
        try:
            with reading(server_of(self.dsn), f"looking at table {self.table!r}") as cursor:
                self._named(context).found(cursor).refuse_nulls(cursor)
        except DatabaseBusy as busy:
            busy.add_note("  help: start the database, or correct its address; then launch again: the run resumes")
            raise

    def position_text(self, states: Mapping[str, Any]) -> str:
        """Return the range of keys that is read after a window, for the ledgers of the outputs."""
        return str(states.get("planned", ""))

    def setup(self, context: OperatorContext) -> None:
        """Begin with nothing found."""
        super().setup(context)
        self._new = NewRows()

    def emit_tuples(self) -> None:
        """Emit the blocks of a window, if there are new rows that no transaction can add to."""
        new = self._new
        if new.until is None and not self._is_time():
            return
        with reading(server_of(self.dsn), f"looking for new rows of table {self.table!r}") as cursor:
            table = self._named(self._context).found(cursor)
            if new.until is None:
                new.until = self._settled(cursor, table) if new.unsettled is not None else self._look(cursor, table)
            if new.until is not None:
                self._plan(cursor, table, new.until)

    def is_exhausted(self) -> bool:
        """Return True if all has been planned that was there at the first look. Never in a continuous run."""
        new = self._new
        return not self._context.continuous and new.looked is not None and new.until is None and new.unsettled is None

    def backlog(self) -> Backlog:
        """Return the blocks of rows that were found and are not planned, if keys to come are as dense as those before."""
        until, position = self._new.until, self.position
        if until is None or position is None:
            return Backlog()
        items, size = self._new.rate
        return Backlog(math.ceil((until - position) * items), math.ceil((until - position) * size))

    def _named(self, context: OperatorContext) -> TableName:
        return TableName(context.name, server_of(self.dsn).place, self.table, self.key, has_lag=self.lag is not None)

    def _is_time(self) -> bool:
        waits = self._new.unsettled
        return self.is_time(self._new.looked) if waits is None else self._context.clock.monotonic() >= waits.due

    def _look(self, cursor: Any, table: SourceTable) -> int | None:
        """Look for new rows. Return the position behind them if no transaction is writing that may add to them."""
        now = self._new.looked = self._context.clock.monotonic()
        table.refuse_nulls(cursor)
        self._check_same(cursor, table)
        until = table.newest_bound(cursor, self.position, self.lag)
        if until is None:
            return None
        writers = table.writers(cursor)
        if not writers:
            return until
        self._new.unsettled = Unsettled(until, writers, since=now, due=now + _FIRST_PAUSE)
        return None

    def _settled(self, cursor: Any, table: SourceTable) -> int | None:
        """Return the position behind the rows of the last look if all transactions have ended that were writing then."""
        new, now = self._new, self._context.clock.monotonic()
        waits = new.unsettled
        assert waits is not None
        waits.writers &= table.writers(cursor)
        if not waits.writers:
            new.unsettled = None
            return waits.until
        waits.pause = min(2 * waits.pause, _LONGEST_PAUSE)
        waits.due = now + waits.pause
        if now - waits.since >= self.writers_timeout and not waits.is_told:
            waits.is_told = True
            before = table.key_type.shown(waits.until)
            then = "reading waits for them" if self._context.continuous else "they are left for the next launch"
            self._context.warn(
                f"table {table.path!r}: {len(waits.writers)} transactions have been writing for {now - waits.since:.0f} s, so "
                f"rows with {self.key} before {before} may be missing yet: {then} (pg_locks names the transactions)"
            )
            if not self._context.continuous:
                new.unsettled = None
        return None

    def _plan(self, cursor: Any, table: SourceTable, until: int) -> None:
        """Emit the blocks of the next window."""
        new = self._new
        start = table.oldest(cursor, stop=until) if self.position is None else self.position
        blocks = self.window_blocks or BLOCKS_PER_SLOT * self._context.slots
        rows = min(MOST_ROWS, BLOCK_BYTES // table.row_bytes)
        if start is not None and not table.key_type.is_time:
            rows = min(rows, (until - start) // blocks)  # so that there is work for all readers
        rows = self.block_rows or max(LEAST_ROWS, rows)
        cut = None if start is None else table.cut(cursor, start, until, block_rows=rows, blocks=blocks)
        if cut is None or start is None:  # the rows are gone again
            new.until = None
            return
        count = size = 0
        for first, stop, planned in cut.ranges(start):
            block = KeyBlock(
                block_id=self.next_block_id,
                table=table.path,
                key=self.key,
                key_type=table.key_type.name,
                start=first,
                stop=stop,
                rows=planned,
                size=planned * table.row_bytes,
            )
            self.blocks_metadata_output.emit(block)
            self.next_block_id += 1
            count, size = count + 1, size + block.size
        self._context.count("blocks_planned", count)
        self._context.count("rows_planned", cut.rows)
        span = max(1, cut.stop - start)
        new.rate = (count / span, size / span)
        self.position, self.table_oid = cut.stop, table.oid
        self.planned = f"{table.path}: {self.key} < {table.key_type.shown(cut.stop)}"
        if cut.stop >= until:
            new.until = None
        self._context.close_window()

    def _check_same(self, cursor: Any, table: SourceTable) -> None:
        """Raise SourceTableReplaced, and warn of what may cost rows or time."""
        if table.is_slow:
            self.warn_once("index", f"table {table.path!r} has no index on {self.key!r}: each block takes a scan of all rows")
        if table.kind in ("r", "p") and not table.key_type.is_time:
            for (cached,) in cursor.execute(_CACHED, [table.qualified, self.key]).fetchall():
                self.warn_once(
                    "cache",
                    f"the sequence of {self.key!r} in table {table.path!r} gives each session {cached} keys at once "
                    f"(CACHE {cached}): rows with keys below those that were read are never read",
                )
        if self.position is None:
            return
        is_other = self.table_oid not in (None, table.oid)
        newest = table.newest(cursor)
        if newest is not None and newest < self.position - 1 and not table.key_type.is_time:
            last, now = table.key_type.shown(self.position - 1), table.key_type.shown(newest)
            if is_other:
                raise SourceTableReplaced(operator=self._context.name, table=table.path, last=last, newest=now)
            self.warn_once(
                "emptied",
                f"table {table.path!r}: the newest {self.key} is {now}, and keys up to {last} were read: if keys begin anew, "
                "these rows are not read",
            )
        elif is_other:
            self.warn_once(
                "replaced", f"table {table.path!r} was created again since the last window; reading continues behind its keys"
            )


def dsn_and_table_problems(dsn: str, table: str, key: str) -> list[str]:
    """Return the problems with the properties that operators of a table share."""
    problems = []
    if not is_dsn(dsn):
        problems.append("dsn is not a connection string: write postgresql://user:password@host/database")
    if problem := table_problem(table):
        problems.append(problem)
    if not key or "\0" in key + table:
        problems.append("table and key need names, without zero bytes")
    return problems
