"""Tumbling: aggregates of records by windows of event time."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from operator import add
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, get_args

import attrs
from typing_extensions import TypeVar

from dagflow import InputPort, MapState, Operator, OperatorContext, OutputPort, State, WindowState
from dagflow.config import Seconds, one_of
from operators.aggregate.errors import WindowsReopened
from operators.aggregate.event_time.wait import Wait, first
from operators.aggregate.fields import (
    a_field,
    a_key,
    check_columns,
    check_key_type,
    check_keys,
    getter,
    key_of_groups,
    names_of,
    needed_of,
    one_nan,
)
from operators.aggregate.groups.columns import ColumnGroups
from operators.aggregate.groups.grouping import Grouping, Groups, Merge, greatest, least
from operators.aggregate.groups.totals import as_plain, entry_of, from_plain, key_of

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T", default=Any)
K = TypeVar("K", default=Any)
V = TypeVar("V", default=Any)

Aggregated = Literal["count", "sum", "min", "max"]
_MERGES = {"count": None, "sum": Merge(add, "sum"), "min": Merge(least, "min"), "max": Merge(greatest, "max")}
_SECOND = 1_000_000
_EPOCH = datetime.datetime(1970, 1, 1)  # noqa: DTZ001  # columns of times without a zone are UTC here
_START = "__start__"
_MICROSECOND = datetime.timedelta(microseconds=1)
FIRST = (datetime.date.min - _EPOCH.date()).days * 86_400 * _SECOND
LAST = ((datetime.date.max - _EPOCH.date()).days + 1) * 86_400 * _SECOND - 1
"""The first and the last time that a datetime can be, in microseconds since the epoch: windows begin and stop between them."""


def a_record(_: Any) -> int:
    """Stand for the value where records are counted."""
    return 1


def to_seconds(value: Any) -> Any:
    """A duration as seconds: a float, whichever way it was given."""
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    return float(value) if type(value) is int else value


def a_duration(_: object, attribute: attrs.Attribute[Any], value: Any) -> None:
    """Validates seconds that may be 0."""
    if not isinstance(value, float):
        raise TypeError(f"{attribute.name} must be a number of seconds or a datetime.timedelta; got {value!r}")
    if not 0 <= value < float("inf"):
        raise ValueError(f"{attribute.name} must be finite and not negative; got {value!r} s")


def a_bound(instance: object, attribute: attrs.Attribute[Any], value: Any) -> None:
    """Validates seconds, or None."""
    if value is not None:
        a_duration(instance, attribute, value)


def a_size(instance: object, attribute: attrs.Attribute[Any], value: Any) -> None:
    """Validates the size of windows: of which there is one between the first time and the last."""
    a_duration(instance, attribute, value)
    if round(value * _SECOND) < 1:
        raise ValueError(f"{attribute.name} must be a microsecond or more; got {value!r} s")
    if round(value * _SECOND) > LAST:
        raise ValueError(f"{attribute.name} is {value!r} s, but no window of that size lies within the years 1 to 9999")


def to_value(value: Any) -> Any:
    """The function of the values; of none, what makes the type of the result known."""
    return a_record if value is None else value


def microseconds(time: Any) -> int:
    """A time as microseconds since the epoch: integers are that, times without a zone are UTC. Raises TypeError, ValueError.

    >>> microseconds(datetime.datetime(1970, 1, 1, 0, 0, 1)), microseconds(datetime.date(1970, 1, 2)), microseconds(5)
    (1000000, 86400000000, 5)
    """
    if type(time) is int:
        return time
    if isinstance(time, datetime.datetime):
        return (time.replace(tzinfo=None) - _EPOCH - (time.utcoffset() or datetime.timedelta())) // _MICROSECOND
    if isinstance(time, datetime.date):
        return (time - _EPOCH.date()).days * 86_400 * _SECOND
    if time is None:
        raise ValueError("the record has no event time")
    raise TypeError(f"an event time is a datetime, a date or a whole number of microseconds, not {type(time).__name__}")


@attrs.frozen
class WindowValue(Generic[K, V]):
    """The result of `Tumbling` for a key and a window of event time, `[start, stop)` in UTC.

    Attributes:
        value: of `count` records or values.
        firing: how often the key and window have been emitted before: 0 the first time. What has a later one holds all that those
            before it hold, and takes their place.
    """

    key: K
    start: datetime.datetime
    stop: datetime.datetime
    value: V | None
    count: int
    firing: int


@attrs.define
class Tumbling(Operator, Generic[T, K, V]):
    """Aggregates records by key and by windows of event time of one size, side by side.

    A window fires once the watermark has reached its end: each of its keys is emitted. Records that come after that are taken in
    for another `allowed_lateness`, and what they change is emitted once more, when the run's own window ends; so a key and window
    may be emitted several times, of which the last holds all. What comes even later goes to the port `late`, and nowhere else.

    The watermark is known to all tasks, and is the same however many there are: it is the latest event time of all records that
    have come in earlier windows of the run, less `out_of_orderness`. So what a window of the run brings is late only by what was
    there before it, and fires in the next one. At the end of a bounded run all that has not been emitted yet is (`fire_at_end`),
    in a window of its own; the watermark does not move by that, so a later launch continues.

    A later launch continues with the windows that are kept. One with another `size`, `time`, `by`, `aggregate` or `of` is refused
    (functions cannot be compared, and are not checked). So is a longer time until windows are over, `allowed_lateness` and
    `out_of_orderness` together (WindowsReopened): those that were would begin anew. It may become shorter.

    A record without an event time, or in a window that does not lie within the years 1 to 9999, is a bad one: see `on_error`. The
    report's counter `late` has how many records were late, wherever they went.

    Args:
        size: of a window, in seconds, or a timedelta. Windows begin at multiples of it since the epoch.
        time: the event time of a record: a function of the record or the name of a column; a datetime (UTC where it has no zone),
            a date, or microseconds since the epoch.
        by: what makes records of a window a group; None: all are. See `Aggregate`. Keys are kept over windows: plain data,
            decimals, dates and times, UUIDs, or tuples of these; others are refused (ValueNotKept).
        aggregate: `count` of the records, or `sum`, `min`, `max` of values.
        of: the values: a function of the record or the name of a column; None is not a value. Not for `count`.
        allowed_lateness: in seconds, or a timedelta: for so long behind its end a window takes records in.
        out_of_orderness: in seconds, or a timedelta: so much later than others a record may come. None: the watermark is that of
            the sources instead (`FileSplitterInput(event_time="modified")`, say), the smallest of all.
        fire_at_end: whether the end of a bounded run emits what has not been emitted yet.

    >>> from dagflow.testing import Window, run_operator
    >>> hits = Tumbling(60, time=lambda hit: hit[0] * 1_000_000, by=lambda hit: hit[1], allowed_lateness=60)
    >>> windows = [Window([(5, "a"), (61, "a"), (9, "a")]), Window([(10, "a"), (200, "b")]), Window([(11, "a")])]
    >>> found = run_operator(hits, {"input": windows})
    >>> [(r.key, r.start.minute, r.value, r.firing) for r in found["output"]], found["late"]
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
    fire_at_end: bool = attrs.field(default=True, kw_only=True, validator=attrs.validators.instance_of(bool))

    input = InputPort[T]()
    output = OutputPort[WindowValue[K, V]]()
    late = OutputPort[T]()
    groups = WindowState[Groups](factory=dict)
    waited = State[Wait | None](None, merge=first)
    windows = MapState[str, list[Any]](partition_by=lambda entry: key_of(_split(entry)[1]))

    def check(self) -> None:
        """Raises ValueError where `of` does not fit, or `by` makes other keys than are declared."""
        check_key_type(self, self.by)
        if self.aggregate == "count" and self.of is not a_record:
            raise ValueError("aggregate='count' has no values: leave `of` out")
        if self.aggregate != "count" and self.of is a_record:
            raise ValueError(f"{self.aggregate} needs `of`: a function of the record or the name of a column")

    def partition_key(self, port: str) -> Any:
        """All of a group come to one partition."""
        return key_of_groups(self.by)

    def needed_columns(self, port: str) -> dict[str, tuple[str, ...]]:
        """The columns of the times and the values."""
        return needed_of(port, time=self.time, of=self.of)

    def state_properties(self) -> tuple[str, ...]:
        """Windows are kept and emitted of one size, by one key, of one value."""
        return ("size", "time", "by", "aggregate", "of")

    def waits_for_sources(self) -> str | None:
        """Only watermarks of sources fire windows, where neither records nor the end of the run do."""
        waits = self.out_of_orderness is None and not self.fire_at_end
        return "out_of_orderness=None and fire_at_end=False" if waits else None

    def setup(self, context: OperatorContext) -> None:
        """Read the event time of the window, and work out which windows are late."""
        self._context = context
        self._size = round(self.size * _SECOND)
        self._begin, self._end = -(-FIRST // self._size) * self._size, LAST // self._size * self._size
        self._lateness = round(self.allowed_lateness * _SECOND)
        self._grouping = Grouping(None, None if self.aggregate == "count" else self.of, _MERGES[self.aggregate])
        self._wait = Wait(self.allowed_lateness, self.out_of_orderness)
        told = context.event_time
        if self.out_of_orderness is None:
            self._late_from, self._watermark = told.sources_before, told.sources
        else:
            self._watermark = None if told.seen is None else told.seen - round(self.out_of_orderness * _SECOND)
            self._late_from = self._watermark

    def begin_window(self, window: int) -> None:
        """Raises WindowsReopened where windows that are over would not be."""
        if self.waited is not None and self._wait.reopens(self.waited):
            raise WindowsReopened(operator=self._context.name, wait=str(self._wait), kept=str(self.waited))

    def emitted_forms(self, port: str, handled: str) -> frozenset[str]:
        """Late records leave in the form in which they came, windows one by one."""
        return frozenset({"record"}) if port == "output" else super().emitted_forms(port, handled)

    def has_functions(self) -> bool:
        """Return True if a property is a function of the record, which a batch handler cannot call."""
        return any(callable(each) and each is not a_record for each in (self.time, self.by, self.of))

    @input.stream
    def add_all(self, records: Iterator[T]) -> None:
        """Take records in."""
        time_of, key_by, value_of = getter(self.time), getter(self.by), getter(self._grouping.of)
        groups, take, saw, size = self.groups, self._grouping.add, self._context.saw, self._size
        begin, end = self._begin, self._end
        counts = self.aggregate == "count"
        for record in records:
            at = microseconds(time_of(record))
            start = at - at % size
            if not begin <= at < end:
                raise self._beyond(at)
            if self._is_late(start):
                self._context.count("late")
                self.late.emit(record)
                continue
            value = None if counts else value_of(record)
            take(groups, (start, one_nan(key_by(record))), value, 1 if counts else int(value is not None))
            saw(at)

    @input.batch(when=lambda operator: not operator.has_functions())
    def add_batch(self, batch: pa.RecordBatch) -> None:
        """Take a batch in."""
        import numpy as np
        import pyarrow as pa

        if not batch.num_rows:
            return
        check_keys(batch, self.by)
        for name, what in (("time", self.time), ("of", self.of)):
            check_columns(batch.schema, name, what)
        times = times_of(batch.column(names_of(self.time)[0]))
        earliest, latest = int(times.min()), int(times.max())
        if earliest < self._begin or latest >= self._end:
            raise self._beyond(earliest if earliest < self._begin else latest)
        starts = times - times % self._size
        late = 0
        if self._late_from is not None:
            is_late = starts + self._size + self._lateness <= self._late_from
            if late := int(is_late.sum()):
                self.late.emit_batch(batch.filter(pa.array(is_late)))
                batch, starts = batch.filter(pa.array(~is_late)), starts[~is_late]
        names = names_of(self.by)
        columns = [pa.array(np.ascontiguousarray(starts)), *(batch.column(name) for name in names)]
        keys = [_START, *(f"__key{number}__" for number in range(len(names)))]
        values = () if self.aggregate == "count" else names_of(self.of)
        whole = pa.RecordBatch.from_arrays([*columns, *(batch.column(name) for name in values)], names=[*keys, *values])
        found: Groups = {}
        grouping, folded = attrs.evolve(self._grouping, by=tuple(keys)), ColumnGroups()
        grouping.add_batch(found, folded, whole)
        grouping.fold(found, folded)
        for (start, *rest), (value, count) in found.items():
            key = None if self.by is None else rest[0] if isinstance(self.by, str) else tuple(rest)
            self._grouping.add(self.groups, (start, one_nan(key)), value, count)
        self._context.saw(latest)
        if late:
            self._context.count("late", late)

    def _beyond(self, time: int) -> ValueError:
        return ValueError(
            f"the event time {time} is in no window of {self.size:g} s within the years 1 to 9999: "
            "whole numbers are microseconds since the epoch"
        )

    def _is_late(self, start: int) -> bool:
        return self._late_from is not None and start + self._size + self._lateness <= self._late_from

    def end_window(self) -> None:
        """Takes what has come into the windows that are open, emits those that are due, and lets go of those that are over."""
        if self.groups or self.waited is not None:
            self.waited = self._wait
        for (start, key), group in self.groups.items():
            entry = _entry(start, key)
            _, before, total, firing, _ = self.windows.get(entry, [None, None, 0, 0, True])
            known: Groups = {key: [from_plain(before), total]}
            self._grouping.add(known, key, *group)
            value, count = known[key]
            self.windows[entry] = [as_plain(key), as_plain(value), count, firing, True]
        watermark, is_end = self._watermark, self._context.event_time.is_end and self.fire_at_end
        if watermark is None and not is_end:
            return
        for entry in list(self.windows):
            start, _ = _split(entry)
            plain, value, count, firing, has_changed = self.windows[entry]
            stop = start + self._size
            if has_changed and (is_end or (watermark is not None and stop <= watermark)):
                total = count if self.aggregate == "count" else from_plain(value)
                self.output.emit(WindowValue(from_plain(plain), moment(start), moment(stop), total, count, firing))
                self.windows[entry] = [plain, value, count, firing + 1, False]
            if watermark is not None and stop + self._lateness <= watermark:
                del self.windows[entry]


def moment(time: int) -> datetime.datetime:
    """Microseconds since the epoch as a time of UTC without a zone, as columns have it."""
    return _EPOCH + datetime.timedelta(microseconds=time)


def _entry(start: int, key: Any) -> str:
    """Under what a window of a key is kept: which of text and integers the key is cannot be lost."""
    entry = entry_of(key)
    return f"{start} #{entry}" if isinstance(entry, int) else f"{start} '{entry}"


def _split(entry: str) -> tuple[int, str | int]:
    """The start of a window, and under what its key is kept."""
    start, _, key = entry.partition(" ")
    return int(start), int(key[1:]) if key[0] == "#" else key[1:]


def times_of(column: pa.Array) -> Any:
    """A column of times as microseconds since the epoch. Raises TypeError, ValueError."""
    import pyarrow as pa
    import pyarrow.compute

    kinds: Any = pa.types
    kind = column.type
    if column.null_count:
        raise ValueError("a record has no event time")
    if kinds.is_integer(kind):
        return column.cast(pa.int64()).to_numpy()
    if not kinds.is_timestamp(kind) and not kinds.is_date(kind):
        raise TypeError(f"an event time is a timestamp, a date or a whole number of microseconds, not {kind}")
    zone = getattr(kind, "tz", None)
    compute: Any = pyarrow.compute
    checked = compute.CastOptions(pa.timestamp("us", zone), allow_time_truncate=True)  # but no overflow
    return column.cast(options=checked).cast(pa.int64()).to_numpy()
