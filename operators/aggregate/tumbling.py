"""Tumbling: aggregates of records by key and window of event time."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Generic, Literal, get_args

import attrs
import pyarrow as pa
from typing_extensions import TypeVar

from dagflow import InputPort, MapState, Operator, OperatorContext, OutputPort, State, WindowState
from dagflow.config import Seconds, one_of
from operators.aggregate.errors import WindowsReopened
from operators.aggregate.event_time.intake import Intake
from operators.aggregate.event_time.open_windows import OpenWindows, key_of_window
from operators.aggregate.event_time.spans import Spans
from operators.aggregate.event_time.times import a_bound, a_duration, a_size, moment, to_seconds
from operators.aggregate.event_time.wait import Wait, first
from operators.aggregate.fields import ResultScope, a_field, a_key, key_of_groups, key_type_problems, needed_of
from operators.aggregate.groups.grouping import SUM, Grouping, Groups, Merge, greatest, least
from operators.problems import all_problems

T = TypeVar("T", default=Any)
K = TypeVar("K", default=Any)
V = TypeVar("V", default=Any)

Aggregated = Literal["count", "sum", "min", "max"]
_MERGES = {"count": None, "sum": SUM, "min": Merge(least, "min"), "max": Merge(greatest, "max")}


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
        firing: how often the key and window were emitted before: 0 the first time. Each emission replaces the earlier ones.
    """

    key: K
    start: datetime.datetime
    stop: datetime.datetime
    value: V | None
    count: int
    firing: int


@attrs.define
class Tumbling(Operator, Generic[T, K, V]):
    """Aggregate records by key and by windows of event time of one size, side by side.

    **Firing.** A window of event time fires once the watermark has reached its end: each of its keys is emitted. For
    `allowed_lateness` after that it still takes records, and each window of the run that changes it emits it once more. So a key
    and window may be emitted several times; the last one holds all. Later records go to the port `late`, and nowhere else. The
    counter `late` of the report has their number.

    **The watermark** is the latest event time of all records in earlier windows of the run, less `out_of_orderness`. It is the
    same in all tasks. So records of a window of the run are late only by records before it, and fire in the next one. The end of
    a bounded run emits everything that has not been emitted yet (`fire_at_end`), in a window of its own. That does not move the
    watermark, so a later launch continues.

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
        allowed_lateness: how long a window takes records after its end, in seconds, or a timedelta.
        out_of_orderness: how much later than others a record may come, in seconds, or a timedelta. None: the watermark is that
            of the sources (`FileSplitterInput(event_time="modified")`, say), the smallest of all.
        scope: `all`: a bounded launch takes its input as one window, so that the records which are late do not depend on how it
            is cut. `window`: its windows are cut by size, and records are late by the windows before theirs.
        fire_at_end: whether the end of a bounded run emits what has not been emitted yet.

    >>> from dagflow.testing import Window, run_operator
    >>> hits = Tumbling(60, time=lambda hit: hit[0] * 1_000_000, by=lambda hit: hit[1], allowed_lateness=60)
    >>> windows = [Window([(5, "a"), (61, "a"), (9, "a")]), Window([(10, "a"), (200, "b")]), Window([(11, "a")])]
    >>> emitted = run_operator(hits, {"input": windows})
    >>> [(r.key, r.start.minute, r.value, r.firing) for r in emitted["output"]], emitted["late"]
    ([('a', 0, 3, 0), ('a', 1, 1, 0), ('b', 3, 1, 0)], [(11, 'a')])
    """

    partition_key_fixed: ClassVar[bool] = True
    follows_event_time: ClassVar[bool] = True

    size: Seconds = attrs.field(converter=to_seconds, validator=a_size)
    time: Callable[[T], Any] | str = attrs.field(kw_only=True, validator=a_field)
    by: Callable[[T], K] | str | tuple[str, ...] | None = attrs.field(default=None, kw_only=True, validator=a_key)
    aggregate: Aggregated = attrs.field(default="count", kw_only=True, validator=one_of(get_args(Aggregated)))
    of: Callable[[T], V] | str | None = attrs.field(default=None, kw_only=True, converter=to_value, validator=a_field)
    allowed_lateness: Seconds = attrs.field(default=0, kw_only=True, converter=to_seconds, validator=a_duration)
    out_of_orderness: Seconds | None = attrs.field(default=0, kw_only=True, converter=to_seconds, validator=a_bound)
    scope: ResultScope = attrs.field(default="all", kw_only=True, validator=one_of(get_args(ResultScope)))  # type: ignore[misc]
    fire_at_end: bool = attrs.field(default=True, kw_only=True, validator=attrs.validators.instance_of(bool))

    input = InputPort[T]()
    output = OutputPort[WindowValue[K, V]]()
    late = OutputPort[T]()
    groups = WindowState[Groups](factory=dict)
    waited = State[Wait | None](None, merge=first)
    windows = MapState[str, list[Any]](partition_by=key_of_window)

    def check(self) -> None:
        """Raise ValueError where `of` does not fit, or `by` makes other keys than are declared."""
        with all_problems(super().check) as problems:
            problems.extend(key_type_problems(self, self.by))
            if self.aggregate == "count" and self.of is not a_record:
                problems.append("aggregate='count' has no values: leave `of` out")
            if self.aggregate != "count" and self.of is a_record:
                problems.append(f"{self.aggregate} needs `of`: a function of the record or the name of a column")

    def partition_key(self, port: str) -> Any:
        """Return the key: all records of a group come to one partition."""
        return key_of_groups(self.by)

    def needed_columns(self, port: str) -> dict[str, tuple[str, ...]]:
        """Return the columns of the times and the values."""
        return needed_of(port, time=self.time, of=self.of)

    def state_properties(self) -> tuple[str, ...]:
        """Return what gives the windows that are kept their meaning."""
        return ("size", "time", "by", "aggregate", "of")

    def waits_for_sources(self) -> str | None:
        """Return the properties under which only watermarks of sources fire windows."""
        waits = self.out_of_orderness is None and not self.fire_at_end
        return "out_of_orderness=None and fire_at_end=False" if waits else None

    def emitted_forms(self, port: str, handled: str) -> frozenset[str]:
        """Return records for windows; late records keep their form."""
        return frozenset({"record"}) if port == "output" else super().emitted_forms(port, handled)

    def has_functions(self) -> bool:
        """Return True if a property is a function of the record, which a batch handler cannot call."""
        return any(callable(each) and each is not a_record for each in (self.time, self.by, self.of))

    def setup(self, context: OperatorContext) -> None:
        """Work out which windows are late, and which are due."""
        self._context = context
        self._wait = Wait(self.allowed_lateness, self.out_of_orderness)
        self._spans = Spans.of(self.size, self._wait, context)
        self._grouping = Grouping(None, None if self.aggregate == "count" else self.of, _MERGES[self.aggregate])
        self._intake = Intake(self.time, self.by, self._grouping, self._spans, context)

    def begin_window(self, window: int) -> None:
        """Raise WindowsReopened where windows that are over would not be."""
        if self.waited is not None and self._wait.reopens(self.waited):
            raise WindowsReopened(operator=self._context.name, wait=str(self._wait), kept=str(self.waited))

    @input.stream
    def add_all(self, records: Iterator[T]) -> None:
        """Take records in."""
        self._intake.add_records(self.groups, records, self.late.emit)

    @input.batch(when=lambda operator: not operator.has_functions())
    def add_batch(self, batch: pa.RecordBatch) -> None:
        """Take a batch in."""
        self._intake.add_batch(self.groups, batch, self.late.emit_batch)

    def end_window(self) -> None:
        """Add the window's groups to the windows that are open, and emit those that are due."""
        if self.groups or self.waited is not None:
            self.waited = self._wait
        windows = OpenWindows(self.windows, self._grouping, self._spans)
        windows.add(self.groups)
        for firing in windows.fire(is_end=self._context.event_time.is_end and self.fire_at_end):
            value: Any = firing.count if self.aggregate == "count" else firing.value
            start, stop = moment(firing.start), moment(firing.start + self._spans.size)
            self.output.emit(WindowValue(firing.key, start, stop, value, firing.count, firing.number))
