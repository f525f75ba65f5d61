"""The driver's half of a database sink: one transaction brings a window's rows into the table, with a record of the window.

The record is a row of `_dagflow_windows` for each application and sink, with the newest window that is in and the identity of its
decision: a single read says whether a window is. It is locked first, so a launch that is still at work, or a COMMIT whose answer
was lost, is waited for.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

import attrs

from dagflow import SinkLaunch, StagedWindow, WindowMark
from dagflow.errors import HistoriesDiffer
from operators.database.errors import DatabaseBusy
from operators.sinks.database.dialect import (
    PARAMETER,
    Rehearsal,
    Session,
    SqlDialect,
    StatementRefused,
    changes,
    fold,
    on_conflict,
)
from operators.sinks.database.errors import RowsRefused, StagedRowsMissing, TableRefused, TableReplaced
from operators.sinks.database.row_changes import RowChanges
from operators.sinks.database.staging import ROW, SIGN, create_table, shown, staged_prefix, window_of
from operators.sinks.tables.earlier import earlier_rows
from operators.sinks.tables.errors import ForeignChange, KeysNotUnique, RowsMissing
from operators.sinks.tables.modes import Mode, mode_of_rows

WINDOWS = "_dagflow_windows"
_FIT = (
    "alter the table: it needs these columns, or on_schema_change='evolve'; for upserts, also a unique index on the keys.\n"
    "        Then launch again"
)
_UNDECIDED = (
    "the window is not decided. Leave such rows out before they come here (Deduplicate(…) keeps one of those with equal keys),\n"
    "        or change the table; then launch again"
)

_COLUMNS = {
    "application": "VARCHAR(300) NOT NULL",
    "sink": "VARCHAR(300) NOT NULL",
    "window_number": "BIGINT NOT NULL",
    "table_name": "VARCHAR(300) NOT NULL",
    "table_id": "VARCHAR(100)",
    "row_count": "BIGINT",  # of the table, as a window of `replace` left it
    "decision": "VARCHAR(100)",  # the identity of that of the window
}
_ADDED = ("row_count", "decision")
"""Columns that the records of earlier releases do not have."""


@attrs.frozen
class _Staged:
    """A staged table, as `Staging.finish` describes it."""

    table: str
    columns: dict[str, str]
    rows: int
    loads: int = 1
    is_signed: bool = False


@attrs.frozen
class _Record:
    """The record of a sink: its newest window, and the mark of the table that this went to; None if it is not known."""

    newest: WindowMark = attrs.field(factory=WindowMark)
    identity: str | None = None


@attrs.frozen
class Publisher:
    """Publishes windows to a table."""

    dialect: SqlDialect
    table: str
    mode: Mode
    keys: Sequence[str]
    evolves: bool

    def is_published(self, window: StagedWindow) -> bool:
        """Return whether the record of windows has a window."""
        with self._session(window, "reading which windows are in") as session:
            is_in = self._record(session, window, session.columns(WINDOWS)).newest.number >= window.number
        if is_in:
            self.dialect.secure()
        return is_in

    def newest_mark(self, last: StagedWindow) -> WindowMark:
        """Return the newest window that is in. Raises TableReplaced if `last` is not, or the table is another one."""
        with self._session(last, "reading which windows are in") as session:
            record = self._record(session, last, session.columns(WINDOWS))
            if record.newest.number < last.number:
                raise self._lacking(session, last, record.newest.number, last.number, None)
            self._check_identity(session, last, record, None)
            return record.newest

    def check(self, launch: SinkLaunch, columns: Mapping[str, str] | None) -> list[str]:
        """Try all that a window takes, and take it back; return warnings.

        `columns`: those of the rows that will come, with their types, as far as they are known.
        Raises TableRefused, TableHasRows, DatabaseRefused, DatabaseBusy.
        """
        if self.mode == "upsert" and not self.keys:
            self._check_place()
        with self._session(None, f"looking at table {self.table!r}") as session:
            probe = f"{staged_prefix(launch.application, launch.sink)}{0:010d}_{uuid.uuid4().hex[:16]}"
            create_table(session, self.dialect, probe, {"probe": "BIGINT"})
            session.run(f"DROP TABLE {session.qualified(probe)}")
            target = fold(self.dialect, session.columns(self.table))
            if not target:
                return []
            if columns is not None:
                known = {self.dialect.folded(name): (name, kind) for name, kind in columns.items()}
                wanted = {folded: kind for folded, (_, kind) in known.items()}
                spelled = [name for name, _ in known.values()]
                reasons = [reason for _, reason in changes(self.dialect, wanted, spelled, target) if reason]
                reasons += self._missing(session, columns)
                if not self.evolves and reasons:
                    raise self._refused(None, reasons, _FIT)
            self._try(session, [] if columns is None else [name for name in columns if self.dialect.folded(name) in target])
            warnings = [
                f"the table has {each}: rows that it refuses are noticed only when their window is decided; "
                "dagflow launch --reject-window then leaves such a window out"
                for each in session.unforeseen(self.table)
            ]
            if launch.application:
                return warnings
            place = f"{self.table!r} in {self.dialect.place}"
            published = self._published(session, launch.sink)
            return warnings + earlier_rows(
                launch, mode_of_rows(self.mode, self.keys), place, published, partial(self._has_rows, session)
            )

    def _missing(self, session: Session, columns: Mapping[str, str]) -> list[str]:
        """Return a phrase for each column that the rows lack, and that takes no nulls."""
        known = {self.dialect.folded(name) for name in columns}
        missing = [name for name in session.required(self.table) if self.dialect.folded(name) not in known]
        return [f"column {name!r} is missing, and the table takes no nulls there" for name in missing]

    def _try(self, session: Session, columns: Sequence[str]) -> None:
        """Let the database plan the statements of a window: it names what is not permitted, and keys without an index."""
        table, quoted = session.qualified(self.table), self.dialect.quoted
        names = list(dict.fromkeys([*self.keys, *columns]))
        values = f"({', '.join(map(quoted, names))}) VALUES ({', '.join('NULL' for _ in names)})" if names else "DEFAULT VALUES"
        if self.mode == "replace":
            session.select(f"EXPLAIN DELETE FROM {table}")
        session.select(f"EXPLAIN INSERT INTO {table} {values}{on_conflict(self.dialect, self.mode, self.keys, names)}")

    def _check_place(self) -> None:
        """Raise TableRefused where the database cannot tell equal rows of the table apart."""
        try:
            with self.dialect.session(f"looking for the places of rows in {self.table!r}") as session:
                columns = session.columns(self.table)
                place = self.dialect.row_place(list(columns))
                if columns and place:
                    session.select(f"EXPLAIN SELECT {', '.join(place)} FROM {session.qualified(self.table)}")
            if place:
                return
        except StatementRefused:
            pass
        reason = "rows have no place of their own, by which keys='*' tells equal ones apart: a view, or a table WITHOUT ROWID"
        raise self._refused(None, [reason], "name the columns that identify a row in keys, or write to another table")

    def _published(self, session: Session, sink: str) -> dict[str, int]:
        """Return the newest windows that are in the table, by application, of sinks of this name."""
        if not session.columns(WINDOWS):
            return {}
        statement = (
            f"SELECT application, window_number FROM {session.qualified(WINDOWS)}"
            f" WHERE sink = {PARAMETER} AND table_name = {PARAMETER} AND window_number >= 0"
        )
        return {str(application): int(newest) for application, newest in session.select(statement, sink, self.table)}

    def _has_rows(self, session: Session) -> bool:
        return bool(session.select(f"SELECT 1 FROM {session.qualified(self.table)} LIMIT 1"))

    def check_window(self, window: StagedWindow) -> None:
        """Raise what `publish` would raise for rows that do not go together: of several tasks, or of several batches.

        Rows of one batch were tried by their task.
        """
        staged = _staged(window)
        if sum(each.loads for each in staged) < 2 and not any(each.is_signed for each in staged):
            return
        with self._session(window, f"looking at window {window.number} for {self.table!r}", _UNDECIDED) as session:
            self._wanted(window, staged)
            if any(each.is_signed for each in staged):
                with session.undone():
                    target = self._fitted(session, window, staged)
                    self._insert(session, window, staged, target)
                    if self.keys:
                        self._check_unique(session, window, staged, target)
                    session.check_deferred()
                return
            if not session.columns(self.table) or not session.has_rules(self.table, self.keys):
                return
            for names, group in _by_columns(staged):
                rehearsal = Rehearsal.of(
                    session,
                    self.dialect,
                    _columns(group),
                    evolves=self.evolves,
                    table=self.table,
                    scratch=group[0].table,
                    staged=self._rows(session, names, group),
                    mode=self.mode,
                    keys=self.keys,
                    order=[ROW + "s", ROW] if self.keys else [],
                )
                if rehearsal is not None:
                    session.rehearse(rehearsal)

    def _check_unique(self, session: Session, window: StagedWindow, staged: Sequence[_Staged], target: Mapping[str, str]) -> None:
        """Raise KeysNotUnique where several rows that stand have one key, as the table compares it: which could go later?

        The rows are in the table.
        """
        for names, group in _by_columns(staged):
            standing = self._rows(session, names, group)
            [[rows]] = session.select(f"SELECT coalesce(sum({self.dialect.quoted(SIGN)}), 0) FROM ({standing}) AS standing")
            same = self._same_keys(standing, group, target)
            [[there]] = session.select(f"SELECT count(*) FROM {session.qualified(self.table)} AS kept WHERE {same}")
            if there < rows:
                table = f"table {self.table!r} in {self.dialect.place}"
                raise KeysNotUnique(sink=window.sink, table=table, window=window.number, keys=tuple(self.keys))

    def _same_keys(self, rows: str, group: Sequence[_Staged], target: Mapping[str, str]) -> str:
        """Return the condition that one of some staged rows has the keys of a row `kept` of the table, as the table compares."""
        quoted, columns = self.dialect.quoted, _columns(group)
        keys = {key: self.dialect.converted(quoted(key), columns[key], target[self.dialect.folded(key)]) for key in self.keys}
        selected = ", ".join(f"{each} AS {quoted(key)}" for key, each in keys.items())
        same = " AND ".join(f"kept.{quoted(key)} = other.{quoted(key)}" for key in self.keys)
        return f"EXISTS (SELECT 1 FROM (SELECT {selected} FROM ({rows}) AS staged) AS other WHERE {same})"

    def publish(self, window: StagedWindow) -> None:
        """Bring the rows of a window into the table. A window that is in already is left alone."""
        staged = _staged(window)
        doing = f"publishing window {window.number} to {self.table!r}"
        with self._session(window, doing) as session:
            known = session.columns(WINDOWS)
            if all(name in known for name in _ADDED):
                self._publish(session, window, staged)
                return
        with self._session(window, f"making {WINDOWS}") as session:  # by itself: an error of the window leaves it there
            if not known:
                create_table(session, self.dialect, WINDOWS, _COLUMNS, ("application", "sink"))
            for name in _ADDED if known else ():
                if name not in known:
                    session.run(f"ALTER TABLE {session.qualified(WINDOWS)} ADD COLUMN {name} {_COLUMNS[name]}")
        with self._session(window, doing) as session:
            self._publish(session, window, staged)

    def _publish(self, session: Session, window: StagedWindow, staged: Sequence[_Staged]) -> None:
        record = self._claim(session, window)
        if window.application:  # tests of operators have none, and each begins with window 0
            if record.newest.differs(window.mark):
                store = f"the table {self.table!r} of {self.dialect.place}"
                raise HistoriesDiffer(sink=window.sink, store=store, window=window.number)
            if record.newest.number >= window.number:
                return
            if record.newest.number != window.number - 1:
                raise self._lacking(session, window, record.newest.number, window.number - 1, window.number)
            self._check_identity(session, window, record, window.number)
        if staged:
            self._check_staged(session, window, staged)
            target = self._fitted(session, window, staged)
            if self.mode == "replace":
                self._remove_rows(session, window, record.identity)
            self._insert(session, window, staged, target)
            for each in staged:
                session.run(f"DROP TABLE {session.qualified(each.table)}")
        self._note(session, window, session.identity(self.table, create=bool(staged)))
        if self.mode == "replace" and staged:
            self._note_rows(session, window, sum(each.rows for each in staged))

    def sweep(self, window: StagedWindow) -> None:
        """Remove what attempts that do not count have staged. What others still use is left for the next time."""
        prefix = staged_prefix(window.application, window.sink)
        with self._session(window, "looking for what has been staged before") as session:
            left = [table for table in session.tables(prefix) if window_of(table) <= window.number]
        for table in left:
            with contextlib.suppress(DatabaseBusy), self._session(window, "removing what has been staged before") as session:
                if session.columns(table):
                    session.run(f"DROP TABLE {session.qualified(table)}")

    # ---------------------------------------------------------------------------------------------- the record of windows

    def _record(self, session: Session, window: StagedWindow, columns: Collection[str], lock: bool = False) -> _Record:
        """Return the record of a sink. `columns`: of the table of records, none without one."""
        if not columns:
            return _Record()
        decision = "decision" if "decision" in columns else "NULL"
        statement = (
            f"SELECT window_number, table_name, table_id, {decision} FROM {session.qualified(WINDOWS)}"
            f" WHERE application = {PARAMETER} AND sink = {PARAMETER}"
        )
        rows = session.select(session.lock_row(statement) if lock else statement, window.application, window.sink)
        if not rows:
            return _Record()
        newest, table, identity, decided = rows[0]
        return _Record(WindowMark(int(newest), decided or ""), identity if table == self.table else None)

    def _claim(self, session: Session, window: StagedWindow) -> _Record:
        """Lock the record, and return it."""
        session.run(
            f"INSERT INTO {session.qualified(WINDOWS)} (application, sink, window_number, table_name)"
            f" VALUES ({PARAMETER}, {PARAMETER}, -1, {PARAMETER}) ON CONFLICT (application, sink) DO NOTHING",
            window.application,
            window.sink,
            self.table,
        )
        return self._record(session, window, _COLUMNS, lock=True)

    def _note(self, session: Session, window: StagedWindow, identity: str | None) -> None:
        session.run(
            f"UPDATE {session.qualified(WINDOWS)} SET window_number = {PARAMETER}, table_name = {PARAMETER},"
            f" table_id = {PARAMETER}, decision = {PARAMETER} WHERE application = {PARAMETER} AND sink = {PARAMETER}",
            window.number,
            self.table,
            identity,
            window.decision or None,
            window.application,
            window.sink,
        )

    def _rows_left(self, session: Session, window: StagedWindow) -> int | None:
        """Return how many rows the last window of `replace` has left; None if the record does not say it."""
        rows = session.select(f"SELECT row_count FROM {session.qualified(WINDOWS)} WHERE {_owner(window)}")
        return None if not rows or rows[0][0] is None else int(rows[0][0])

    def _note_rows(self, session: Session, window: StagedWindow, rows: int) -> None:
        session.run(f"UPDATE {session.qualified(WINDOWS)} SET row_count = {rows} WHERE {_owner(window)}")

    def _lacking(self, session: Session, window: StagedWindow, newest: int, published: int, waits: int | None) -> TableReplaced:
        """Return the error for a record that ends before a window that was published. `waits`: the window that is to be next."""
        if newest < 0:
            reason = f"the database has no record of windows 0 to {published}, which were published"
        else:
            reason = f"the record of its windows ends with window {newest}, and window {published} was published"
        accept = (
            f"INSERT INTO {session.qualified(WINDOWS)} (application, sink, window_number, table_name) VALUES"
            f" ({_text(window.application)}, {_text(window.sink)}, {published}, {_text(self.table)})"
            f" ON CONFLICT (application, sink) DO UPDATE SET window_number = {published}, table_id = NULL, decision = NULL;"
        )
        return self._replaced(reason, accept, waits)

    def _check_identity(self, session: Session, window: StagedWindow, record: _Record, waits: int | None) -> None:
        """Raise TableReplaced if the table is not that of the window before. What is replaced need not be the same."""
        known = record.identity
        if known is None or self.mode == "replace" or session.identity(self.table) == known:
            return
        what, accept = "not there any more", ""
        if session.columns(self.table):
            what, accept = "created again", f"UPDATE {session.qualified(WINDOWS)} SET table_id = NULL WHERE {_owner(window)};"
        raise self._replaced(f"it was dropped, and is {what}, since window {record.newest.number}", accept, waits)

    def _replaced(self, reason: str, accept: str, waits: int | None) -> TableReplaced:
        return TableReplaced(table=self.table, database=self.dialect.place, window=waits, reason=reason, accept=accept)

    # ----------------------------------------------------------------------------------------------------------- the rows

    def _check_staged(self, session: Session, window: StagedWindow, staged: Sequence[_Staged]) -> None:
        """Raise StagedRowsMissing unless the staged tables hold what the tasks have put there."""
        for each in staged:
            is_there = bool(session.columns(each.table))
            if not is_there or session.select(f"SELECT count(*) FROM {session.qualified(each.table)}")[0][0] != each.rows:
                raise StagedRowsMissing(
                    table=self.table, database=self.dialect.place, window=window.number, staged=tuple(s.table for s in staged)
                )

    def _fitted(self, session: Session, window: StagedWindow, staged: Sequence[_Staged]) -> dict[str, str]:
        """Return the columns of the table, which is created or changed if need be. Raises TableRefused."""
        columns = self._wanted(window, staged)
        target = fold(self.dialect, session.columns(self.table))
        if not target:
            create_table(session, self.dialect, self.table, columns, self.keys)
            return fold(self.dialect, session.columns(self.table))
        different = list(changes(self.dialect, fold(self.dialect, columns), columns, target))
        if not self.evolves:
            if reasons := [reason for _, reason in different if reason]:
                raise self._refused(window, reasons)
            return target
        for change, _ in different:
            session.run(f"ALTER TABLE {session.qualified(self.table)} {change}")
        return fold(self.dialect, session.columns(self.table))

    def _wanted(self, window: StagedWindow, staged: Sequence[_Staged]) -> dict[str, str]:
        """Return the columns of all rows, each with a type that holds all of its values. Raises TableRefused."""
        wanted: dict[str, str] = {}
        spelled: dict[str, str] = {}
        reasons: list[str] = []
        for name, kind in (item for each in staged for item in each.columns.items()):
            folded = self.dialect.folded(name)
            spelled.setdefault(folded, name)
            both = self.dialect.wider(wanted.setdefault(folded, kind), kind)
            if both is None:
                reasons.append(f"column {name!r} is {wanted[folded]} in some rows, and {kind} in others")
            else:
                wanted[folded] = both
        if reasons:
            help_ = "give the reader a schema, so that all batches have the same columns"
            raise self._refused(window, dict.fromkeys(reasons), help_)
        return {spelled[folded]: kind for folded, kind in wanted.items()}

    def _insert(self, session: Session, window: StagedWindow, staged: Sequence[_Staged], target: Mapping[str, str]) -> None:
        if self.mode == "upsert" and (self.keys or any(each.is_signed for each in staged)):
            if self.keys:
                self._upsert(session, staged, target)
            else:
                self._change_rows(session, window, staged, target)
            return
        for each in staged:
            names = ", ".join(map(self.dialect.quoted, each.columns))
            values = ", ".join(self._values(each.columns, target))
            source = session.qualified(each.table)
            rows = session.run(f"INSERT INTO {session.qualified(self.table)} ({names}) SELECT {values} FROM {source}")
            if rows != each.rows:
                self._lost(window, each.rows, rows)

    def _remove_rows(self, session: Session, window: StagedWindow, known: str | None) -> None:
        """Remove all rows. Raises ForeignChange if there are more than the window before has left."""
        is_same = session.identity(self.table) == known
        left = self._rows_left(session, window) if known is not None and window.application else None
        removed = session.run(f"DELETE FROM {session.qualified(self.table)}")
        if left is None or removed <= (left if is_same else 0):
            return
        grown = f"it has {removed:,} rows, and had {left:,} after the last window"
        forget = f"UPDATE {session.qualified(WINDOWS)} SET row_count = NULL WHERE {_owner(window)};"
        raise ForeignChange(
            sink=window.sink,
            table=f"table {self.table!r} in {self.dialect.place}",
            window=window.number,
            changes=(grown if is_same else "it was created again, with rows",),
            help="move these rows to a table of their own, and launch again: the run resumes. To let them go, run this in the\n"
            f"        database, and launch again: {forget}",
        )

    def _upsert(self, session: Session, staged: Sequence[_Staged], target: Mapping[str, str]) -> None:
        """Put rows in the place of those with the same keys. Of several staged ones, the last counts.

        Rows that are taken back more often than they came in the window are deleted, before any row is put anywhere: it does not
        matter in which order a row is taken back and another one with its key comes.
        """
        quoted = self.dialect.quoted
        for names, group in _by_columns(staged):
            if group[0].is_signed:
                gone = self._rows(session, names, group, stands=False)
                same = self._same_keys(gone, group, target)
                session.run(f"DELETE FROM {session.qualified(self.table)} AS kept WHERE {same}")
        for names, group in _by_columns(staged):  # parts that lack a column leave it as it is
            columns = _columns(group)
            parts = self._rows(session, names, group)
            keys = ", ".join(self._key(session, key, columns[key], target) for key in self.keys)
            order = quoted(ROW + "s"), quoted(ROW)
            newest = ", ".join(f"{each} DESC" for each in order)
            values = ", ".join(self._values({name: columns[name] for name in names}, target))
            session.run(
                f"INSERT INTO {session.qualified(self.table)} ({', '.join(map(quoted, names))}) SELECT {values} FROM"
                f" (SELECT *, row_number() OVER (PARTITION BY {keys} ORDER BY {newest}) AS {quoted(ROW + '_rank')}"
                f" FROM ({parts}) AS staged) AS ranked WHERE {quoted(ROW + '_rank')} = 1 ORDER BY {', '.join(order)}"
                f"{on_conflict(self.dialect, self.mode, self.keys, names)}"
            )

    def _change_rows(self, session: Session, window: StagedWindow, staged: Sequence[_Staged], target: Mapping[str, str]) -> None:
        """Add the rows that come, and remove one for each that is taken back. Raises RowsMissing where there is none."""
        spelled = {self.dialect.folded(name) for each in staged for name in each.columns}
        kinds, net = session.columns(self.table), f"{staged[0].table}_net"
        columns = {name: kind for name, kind in kinds.items() if self.dialect.folded(name) in spelled}
        rows = RowChanges(session, self.dialect, self.table, net, columns, [name for name in kinds if name not in columns])
        rows.create()
        for each in staged:
            names = ", ".join(map(self.dialect.quoted, [*each.columns, SIGN]))
            values = ", ".join([*self._values(each.columns, target), self.dialect.quoted(SIGN)])
            session.run(f"INSERT INTO {session.qualified(net)} ({names}) SELECT {values} FROM {session.qualified(each.table)}")
        coming, going = rows.sums()
        if going:
            session.lock_table(self.table)
            session.run("SAVEPOINT dagflow_rows")
            if missing := going - rows.remove():
                session.run("ROLLBACK TO SAVEPOINT dagflow_rows")
                place = f"table {self.table!r} in {self.dialect.place}"
                raise RowsMissing(sink=window.sink, table=place, window=window.number, rows=missing, row=rows.missing())
        if (taken := rows.add()) != coming:
            self._lost(window, coming, taken)
        session.run(f"DROP TABLE {session.qualified(net)}")

    def _lost(self, window: StagedWindow, written: int, taken: int) -> NoReturn:
        reason = f"{written:,} rows were written, and the table took {taken:,}"
        raise RowsRefused(table=self.table, database=self.dialect.place, window=window.number, reason=reason)

    def _rows(self, session: Session, names: Sequence[str], group: Sequence[_Staged], *, stands: bool = True) -> str:
        """Return the statement that selects the rows of staged tables; those of an upsert with the columns of their order.

        `stands`: where rows may be taken back, those that are not; or those that are.
        """
        quoted = self.dialect.quoted
        selected = ", ".join(map(quoted, [*names, *([ROW] if self.keys else []), *([SIGN] if group[0].is_signed else [])]))
        number = f", {{}} AS {quoted(ROW + 's')}" if self.keys else ""
        tables = [session.qualified(each.table) for each in group]
        rows = " UNION ALL ".join(f"SELECT {selected}{number.format(n)} FROM {table}" for n, table in enumerate(tables))
        if not group[0].is_signed:
            return rows
        own = ", ".join(map(quoted, names))
        order = ", ".join(f"max({quoted(each)}) AS {quoted(each)}" for each in (ROW, ROW + "s"))
        having = f"sum({quoted(SIGN)}) {'>' if stands else '<'} 0"
        net = f"sum({quoted(SIGN)}) AS {quoted(SIGN)}"
        return f"SELECT {own}, {order}, {net} FROM ({rows}) AS signed GROUP BY {own} HAVING {having}"

    def _key(self, session: Session, name: str, kind: str, target: Mapping[str, str]) -> str:
        """Return the expression by which rows with equal keys are found: equal in the table, where `a` and `a ` may be."""
        column = target[self.dialect.folded(name)]
        return session.as_key(self.table, name, self.dialect.converted(self.dialect.quoted(name), kind, column), column)

    def _values(self, columns: Mapping[str, str], target: Mapping[str, str]) -> Iterator[str]:
        for name, kind in columns.items():
            yield self.dialect.converted(self.dialect.quoted(name), kind, target[self.dialect.folded(name)])

    # ------------------------------------------------------------------------------------------------------------- errors

    @contextlib.contextmanager
    def _session(self, window: StagedWindow | None, doing: str, help_: str = "") -> Iterator[Session]:
        """Begin a transaction. Raises TableRefused and RowsRefused for statements that the database refuses.

        `help_`: that of RowsRefused, for a window that is not decided.
        """
        try:
            with self.dialect.session(doing) as session:
                yield session
        except StatementRefused as refused:
            if window is None:
                raise self._refused(None, [refused.reason], _FIT) from refused
            reason = shown(refused.reason, self.table)
            if refused.because_of == "table":
                raise self._refused(window, [reason]) from refused
            more = {"help": help_} if help_ else {}
            raise RowsRefused(
                table=self.table, database=self.dialect.place, window=window.number, reason=reason, **more
            ) from refused

    def _refused(self, window: StagedWindow | None, reasons: Iterable[str], help_: str | None = None) -> TableRefused:
        more: dict[str, Any] = {} if help_ is None else {"help": help_}
        number = None if window is None else window.number
        return TableRefused(table=self.table, database=self.dialect.place, window=number, differences=tuple(reasons), **more)


def _staged(window: StagedWindow) -> list[_Staged]:
    """Return the staged tables of a window, in the order of their tasks."""
    return [_Staged(**{**each, "columns": dict(each["columns"])}) for task in window.staged for each in task]


def _columns(group: Sequence[_Staged]) -> dict[str, str]:
    """Return the columns of staged tables, with types."""
    return dict(item for each in group for item in each.columns.items())


def _by_columns(staged: Sequence[_Staged]) -> Iterator[tuple[tuple[str, ...], list[_Staged]]]:
    """Yield runs of staged tables that have the same columns, in their order."""
    run: list[_Staged] = []
    for each in staged:
        if run and sorted(run[0].columns) != sorted(each.columns):
            yield tuple(run[0].columns), run
            run = []
        run.append(each)
    if run:
        yield tuple(run[0].columns), run


def _owner(window: StagedWindow) -> str:
    """Return the condition that is true for the record of a sink."""
    return f"application = {_text(window.application)} AND sink = {_text(window.sink)}"


def _text(value: str) -> str:
    """Return a text as SQL."""
    return "'" + value.replace("'", "''") + "'"
