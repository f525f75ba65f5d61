"""Tumbling: aggregates of records by key and window of event time."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Iterable, Iterator
from operator import itemgetter
from typing import Any, ClassVar, Generic, Literal, get_args

import attrs
import pyarrow as pa
from typing_extensions import TypeVar

from dagflow import InputPort, Operator, OperatorContext, OutputPort, State, StateSize, StreamColumns, TableState, WindowState
from dagflow.config import Seconds, one_of
from operators.aggregate.accumulators import Accumulator
from operators.aggregate.agg import Aggregation
from operators.aggregate.errors import WindowsReopened
from operators.aggregate.event_time.open_windows import ITSELF, START, Firing, Keys, OpenWindows, key_of_window, plain_key
from operators.aggregate.event_time.spans import Spans
from operators.aggregate.event_time.times import a_bound, a_size, microseconds, moment, times_of, to_seconds
from operators.aggregate.event_time.wait import Wait, first
from operators.aggregate.fields import (
    ResultScope,
    a_field,
    a_key,
    alone,
    check_columns,
    check_keys,
    check_objects,
    getter,
    key_of_groups,
    key_type_problems,
    names_of,
    needed_of,
    one_nan,
)
from operators.aggregate.kept_groups import Change, add_groups, as_groups, equal_rows
from operators.aggregate.kept_keys import as_kept
from operators.aggregate.record_groups import CODE, VALUE, RecordGrouping, RecordGroups
from operators.aggregate.window_groups import Grouping, Groups
from operators.problems import all_problems

T = TypeVar("T", default=Any)
K = TypeVar("K", default=Any)
V = TypeVar("V", default=Any)

Aggregated = Literal["count", "sum", "min", "max"]
Emit = Literal["update", "final"]
_COUNT = "count"
WIDE = pa.decimal256(76, 0)
"""The type that holds all sums of integers."""


def a_record(_: Any) -> int:
    """Stand for the value where records are counted."""
    return 1


def to_value(value: Any) -> Any:
    """Return the function of the values; `a_record` for none, which makes the type of the result known."""
    return a_record if value is None else value


@attrs.frozen
class WindowValue(Generic[K, V]):
    """The result of `Tumbling` for a key and a window of event time, `[start, stop)` in UTC.

    Attributes:
        value: of `count` records or values.
        firing: how often the key and window have fired before, by a watermark; 0 where no record is late.
    """

    key: K
    start: datetime.datetime
    stop: datetime.datetime
    value: V | None
    count: int
    firing: int


@attrs.define
class Tumbling(Operator, Generic[T, K, V]):
    """Aggregate records by key and by time windows of one size, side by side. For rows with columns, `GroupBy` does more.

    **No record is late** unless you say so. A window of the run that changes a result takes it back, and emits the new one. So
    results cover all records, whenever they come, and records may be taken back.

    **With a lateness**, `allowed_lateness=0` or more, or `emit="final"`, or `scope="window"`, windows fire by a watermark. A time
    window fires once the watermark has reached its end: each of its keys is emitted. For `allowed_lateness` after that it still
    takes records. Each window of the run that changes it takes the result back and emits the new one. Later records go to the
    port `late`, and nowhere else. The counter `late` of the report has their number. With `emit="final"`, a window fires once,
    when it takes no records any more: nothing is taken back. What is over is no longer kept. These take no changes.

    **The watermark** is the latest event time of all records in earlier windows of the run, less `out_of_orderness`. It is the
    same in all tasks. So records of a window of the run are late only by records before it, and fire in the next one. The end of
    a bounded run emits everything that has not been emitted yet (`fire_at_end`), in a window of its own. That does not move the
    watermark: a later launch continues, and takes back what it changes.

    **Resuming.** A later launch continues with the windows that are kept. A launch with another `size`, `time`, `by`, `aggregate`
    or `of` is refused (functions cannot be compared, and are not checked). So is one that keeps windows longer, by
    `allowed_lateness` and `out_of_orderness` together, since windows that are over would begin again (WindowsReopened).

    A record without an event time, or outside the years 1 to 9999, is a bad record: see `on_error`.

    Args:
        size: of a window, in seconds, or a timedelta. Windows begin at multiples of it since the epoch.
        time: the event time of a record: a function of the record or the name of a column; a datetime (UTC without a zone), a
            date, or microseconds since the epoch.
        by: the key of a record, as for `Aggregate`; None: all records are one group. Keys are kept over windows: plain data,
            decimals, dates and times, UUIDs, or tuples of these; others are refused (ValueNotKept).
        aggregate: `count` of the records, or `sum`, `min`, `max` of values.
        of: the values: a function of the record or the name of a column. None is skipped. Not for `count`.
        allowed_lateness: how long a window takes records after its end, in seconds, or a timedelta. None: for ever, so that no
            record is late; with `emit="final"` or `scope="window"`, as 0.
        out_of_orderness: how much later than others a record may come, in seconds, or a timedelta. None: the watermark is that
            of the sources (`FileSplitterInput(event_time="modified")`, say), the smallest of all.
        scope: `all`: a bounded launch takes its input as one window, so that the records which are late do not depend on how it
            is cut. `window`: its windows are cut by size, and records are late by the windows before theirs. The output is then
            a log of all firings: none is taken back.
        fire_at_end: whether the end of a bounded run emits what has not been emitted yet. Not with `emit="final"`.
        emit: `update`: what changes is emitted; with a lateness, once it is complete by the watermark. `final`: once,
            `allowed_lateness` after that.

    >>> from dagflow.testing import Window, run_operator
    >>> windows = [Window([(5, "a"), (61, "a"), (9, "a")]), Window([(10, "a"), (200, "b")]), Window([(11, "a")])]
    >>> hits = Tumbling(60, time=lambda hit: hit[0] * 1_000_000, by=lambda hit: hit[1])
    >>> [(r.key, r.start.minute, r.value) for r in run_operator(hits, {"input": windows})["output"]]
    [('a', 0, 2), ('a', 1, 1), ('a', 0, 3), ('b', 3, 1), ('a', 0, 4)]
    >>> hits = Tumbling(60, time=lambda hit: hit[0] * 1_000_000, by=lambda hit: hit[1], allowed_lateness=60)
    >>> emitted = run_operator(hits, {"input": windows})
    >>> [(r.key, r.start.minute, r.value) for r in emitted["output"]], emitted["late"]
    ([('a', 0, 3), ('a', 1, 1), ('b', 3, 1)], [(11, 'a')])
    """

    partition_key_fixed: ClassVar[bool] = True
    groups_by_time: ClassVar[bool] = True

    size: Seconds = attrs.field(converter=to_seconds, validator=a_size)
    time: Callable[[T], Any] | str = attrs.field(kw_only=True, validator=a_field)
    by: Callable[[T], K] | str | tuple[str, ...] | None = attrs.field(default=None, kw_only=True, validator=a_key)
    aggregate: Aggregated = attrs.field(default="count", kw_only=True, validator=one_of(get_args(Aggregated)))
    of: Callable[[T], V] | str | None = attrs.field(default=None, kw_only=True, converter=to_value, validator=a_field)
    allowed_lateness: Seconds | None = attrs.field(default=None, kw_only=True, converter=to_seconds, validator=a_bound)
    out_of_orderness: Seconds | None = attrs.field(default=0, kw_only=True, converter=to_seconds, validator=a_bound)
    scope: ResultScope = attrs.field(default="all", kw_only=True, validator=one_of(get_args(ResultScope)))  # type: ignore[misc]
    fire_at_end: bool = attrs.field(default=True, kw_only=True, validator=attrs.validators.instance_of(bool))
    emit: Emit = attrs.field(default="update", kw_only=True, validator=one_of(get_args(Emit)))

    input = InputPort[T]()
    output = OutputPort[WindowValue[K, V]]()
    late = OutputPort[T](only_adds=True)
    groups = WindowState[Groups](factory=Groups)
    records = WindowState[RecordGroups](factory=RecordGroups)
    waited = State[Wait | None](None, merge=first)
    totals = TableState(record_key=key_of_window)
    windows = TableState(record_key=key_of_window)

    @property
    def never_late(self) -> bool:
        """True if all records count, whenever they come, and results follow them."""
        return self.allowed_lateness is None and self.scope == "all" and self.emit == "update"

    @property
    def follows_event_time(self) -> bool:  # type: ignore[override]
        """True where windows fire by a watermark."""
        return not self.never_late

    @property
    def takes_changes(self) -> bool:  # type: ignore[override]
        """True where no record is late: what is taken back could be, though it was not."""
        return self.never_late

    @property
    def emits_changes(self) -> bool | None:  # type: ignore[override]
        """True where a window that is emitted again takes back what was emitted of it."""
        fires_again = bool(self.never_late or self.allowed_lateness or self.fire_at_end)
        return self.scope == "all" and self.emit == "update" and fires_again

    def keeps_state(self, name: str) -> bool:
        """Return whether a state is needed: without a watermark, the groups alone."""
        return name == "totals" or not self.never_late

    def check(self) -> None:
        """Raise ValueError where `of` does not fit, or `by` makes other keys than are declared."""
        with all_problems(super().check) as problems:
            problems.extend(key_type_problems(self, self.by))
            if self.aggregate == "count" and self.of is not a_record:
                problems.append("aggregate='count' has no values: leave `of` out")
            if self.aggregate != "count" and self.of is a_record:
                problems.append(f"{self.aggregate} needs `of`: a function of the record or the name of a column")
            if self.never_late and (self.out_of_orderness != 0 or not self.fire_at_end):
                problems.append("out_of_orderness and fire_at_end are for records that may be late: give allowed_lateness, too")

    def partition_key(self, port: str) -> Any:
        """Return the key: all records of a group come to one partition."""
        return key_of_groups(self.by)

    def result_columns(self, port: str, arriving: Callable[[str], StreamColumns]) -> StreamColumns | None:
        """Return that a key and a time window have one result. Their columns are those of the port's type."""
        return StreamColumns(unique=[("key", "start")]) if port == "output" and self.scope == "all" else None

    def needed_columns(self, port: str) -> dict[str, tuple[str, ...]]:
        """Return the columns of the times and the values."""
        return needed_of(port, time=self.time, of=self.of)

    def state_properties(self) -> tuple[str, ...]:
        """Return what gives the windows that are kept their meaning."""
        return ("size", "time", "by", "aggregate", "of", "emit", "never_late")

    def state_size(self, changing: Collection[str]) -> StateSize:
        """Return that there is a row for each time window that is not over: without a watermark, none ever is."""
        bound = None if self.never_late else "the windows that are not over by the watermark"
        return StateSize("a row for each key and time window", bound)

    def waits_for_sources(self) -> str | None:
        """Return the properties under which only watermarks of sources fire windows."""
        if self.never_late or self.out_of_orderness is not None or (self.fire_at_end and self.emit == "update"):
            return None
        return f"out_of_orderness=None and {'emit=final' if self.emit == 'final' else 'fire_at_end=False'}"

    def emitted_forms(self, port: str, handled: str) -> frozenset[str]:
        """Return records for windows; late records keep their form."""
        return frozenset({"record"}) if port == "output" else super().emitted_forms(port, handled)

    def has_functions(self) -> bool:
        """Return True if a property is a function of the record, which a batch handler cannot call."""
        return any(callable(each) and each is not a_record for each in (self.time, self.by, self.of))

    def setup(self, context: OperatorContext) -> None:
        """Work out which windows are late, and which are due."""
        self._context = context
        self._wait = Wait(self.allowed_lateness or 0, self.out_of_orderness)
        self._spans = Spans.of(self.size, self._wait, context)
        self._names = tuple(dict.fromkeys(names_of(self.by)))
        of = None if self.of is a_record else self.of
        self._by_columns = self._grouping((START, *self._names), of if isinstance(of, str) else None)
        self._of_records = RecordGrouping(
            itemgetter(0), None if of is None else itemgetter(1), self._grouping((CODE,), None if of is None else VALUE)
        )

    def _grouping(self, keys: tuple[str, ...], column: str | None) -> Grouping:
        aggregates = {VALUE: Aggregation(self.aggregate, column), _COUNT: Aggregation("count", column)}
        return Grouping(type(self).__name__, keys, aggregates)

    def begin_window(self, window: int) -> None:
        """Raise WindowsReopened where windows that are over would not be."""
        if self.waited is not None and self._wait.reopens(self.waited):
            raise WindowsReopened(operator=self._context.name, wait=str(self._wait), kept=str(self.waited))

    @input.stream
    def add_all(self, records: Iterator[T]) -> None:
        """Take records in. Raises TypeError, ValueError for a record without an event time in a window."""
        self._of_records.add(self.records, self._on_time(records), self._context.sign, keeps_all=self.input.is_changing)

    def _on_time(self, records: Iterator[T]) -> Iterator[tuple[tuple[int, Any], Any]]:
        """Yield start and key, and the value, of records that are not late. Late ones are counted and emitted."""
        time_of, key_of, value_of = getter(self.time), getter(alone(self.by)), getter(self.of)
        start_of, is_late = self._spans.start_of, self._spans.is_late
        saw = (lambda _: None) if self.never_late else self._context.saw
        for record in records:
            at = microseconds(time_of(record))
            start = start_of(at)
            if is_late(start):
                self._context.count("late")
                self.late.emit(record)
                continue
            yield (start, one_nan(key_of(record))), value_of(record)
            saw(at)

    @input.batch(when=lambda operator: not operator.has_functions())
    def add_batch(self, batch: pa.RecordBatch) -> None:
        """Take a batch in. Raises as for records, and ColumnNotThere, KeyColumnRefused, ValueColumnRefused."""
        if not batch.num_rows:
            return
        of = None if self.of is a_record else self.of
        check_keys(batch, self.by)
        for name, what in (("time", self.time), ("of", of)):
            check_columns(batch.schema, name, what)
        check_objects(batch, self.by, of)
        times = times_of(batch.column(names_of(self.time)[0]))
        latest = int(times.max())
        for extreme in (int(times.min()), latest):
            self._spans.start_of(extreme)
        starts = times - times % self._spans.size
        is_late = self._spans.is_late(starts)
        if is_late is not False and (late := int(is_late.sum())):
            self.late.emit_batch(batch.filter(pa.array(is_late)))
            self._context.count("late", late)
            batch, starts = batch.filter(pa.array(~is_late)), starts[~is_late]
        rows = batch.select(dict.fromkeys([*self._names, *names_of(of)])).append_column(START, pa.array(starts.copy()))
        self._by_columns.add(self.groups, rows, self._context.sign, keeps_all=self.input.is_changing)
        if not self.never_late:
            self._context.saw(latest)

    def end_window(self) -> None:
        """Add the window's groups to the windows that are open, and emit those that are due."""
        for table, accumulators, names in self._tables():
            windows = self._open(names)
            keys = windows.keys(table)
            aggregates, key_columns = self._by_columns.aggregates, () if names is None else names
            change = add_groups(self.totals, table, keys, aggregates, accumulators, key_columns, context=self._context)
            if self.never_late:
                self._emit_changes(change, self._open(names))
            else:
                self.waited = self._wait
                windows.change(table, keys)
        if self.never_late or (kept := self.windows.columns) is None:
            return
        windows = self._open(None if f"={ITSELF}" in kept.names else self._names)
        self._emit(self._firings(windows), windows)
        if (over := windows.over()) is not None:
            self.totals.remove(over)

    def _emit_changes(self, change: Change, windows: OpenWindows) -> None:
        """Take results back that no longer hold, and emit those that are new."""
        old, new = (self._results_of(each, change.accumulators) for each in (change.before, change.after))
        if old[0].type != new[0].type:  # sums of integers, in the type that holds all
            old, new = ((value.cast(WIDE), count) for value, count in (old, new))
        again = [column.take(pa.array(change.places)) for column in new]
        no_longer, anew = change.masks(equal_rows(old, again, change.before.num_rows))
        for table, results, holds, retracts in ((change.before, old, no_longer, True), (change.after, new, anew, False)):
            value, count = (column.filter(holds) for column in results)
            self._emit(windows.results(table.filter(holds), value, count, retracts=retracts), windows)

    def _emit(self, firings: Iterable[Firing], windows: OpenWindows) -> None:
        for firing in firings:
            key: Any = firing.key
            if windows.names is None and alone(self.by) is not self.by:
                key = (key,)
            elif windows.names is not None and not isinstance(self.by, tuple):
                key = key[0]
            start, stop = moment(firing.start), moment(firing.start + self._spans.size)
            if firing.retracts and not self.emits_changes:
                continue
            emit = self.output.retract if firing.retracts else self.output.emit
            emit(WindowValue(key, start, stop, firing.value, firing.count, firing.number))

    def _firings(self, windows: OpenWindows) -> Iterator[Firing]:
        if self._context.event_time.is_end and self.fire_at_end and self.emit == "update":
            yield from windows.fire(None, self._results)
        elif (before := self._spans.over_before if self.emit == "final" else self._spans.due_before) is not None:
            yield from windows.fire(before, self._results)

    def _tables(self) -> Iterator[tuple[pa.Table, tuple[Accumulator, ...], tuple[str, ...] | None]]:
        """Yield the groups of the window as tables with start and key: by columns, and of records."""
        self._by_columns.gather(self.groups)
        if (table := self._by_columns.merge(self.groups)) is not None:
            if self.by is None:
                table = table.append_column(ITSELF, pa.array([plain_key(None)] * table.num_rows))
            yield table, self.groups.accumulators, None if self.by is None else self._names
        groups, rows = self._of_records.drained(self.records, one=lambda group: (group[0], as_kept(group[1])))
        if rows is not None:
            starts, keys = pa.array([start for start, _ in groups], pa.int64()), [plain_key(key) for _, key in groups]
            rows = rows.drop_columns([CODE]).append_column(START, starts).append_column(ITSELF, pa.array(keys, pa.binary()))
            yield rows, self.records.groups.accumulators, None
        self.groups, self.records = Groups(), RecordGroups()

    def _open(self, names: tuple[str, ...] | None) -> OpenWindows:
        kept = [] if self.totals.columns is None else self.totals.columns.names
        parts = {name.partition(":")[2] for name in kept if name.startswith(f"{VALUE}#") and ":" in name}
        has_integers = self.aggregate == "sum" and parts == {"int64"}
        return OpenWindows(self.windows, names, self.input.keys_of, self._spans, has_integers)

    def _results(self, keys: Keys) -> tuple[pa.Array, pa.Array]:
        """Return the values and counts of windows by their keys."""
        table, accumulators = as_groups(pa.Table.from_batches([self.totals.lookup(keys)]), self._by_columns.aggregates)
        return self._results_of(table, accumulators)

    def _results_of(self, table: pa.Table, accumulators: Iterable[Accumulator]) -> tuple[pa.Array, pa.Array]:
        """Return the values and counts of groups."""
        value, count = (each.results(table, wide=self.aggregate == "sum") for each in accumulators)
        return (count if self.aggregate == "count" else value), count
