"""The context that an operator gets in `setup`: its place in the run, and services of the framework."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from dagflow.model.errors.running import NeverInserted
from dagflow.model.types.records import ReaderRecord

if TYPE_CHECKING:
    import numpy as np


class Clock(Protocol):
    """A source of time; tests inject their own."""

    def now(self) -> float:
        """Return the seconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Return the seconds since some moment. It never goes back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        """Return the seconds since the epoch."""
        return time.time()

    def monotonic(self) -> float:
        """Return the seconds since some moment. It never goes back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


class AttemptFile(Protocol):
    """A file that a sink writes. It appears under its name when the window is decided."""

    def write(self, data: Any, /) -> int:
        """Append bytes (anything with the buffer protocol), and return their number."""
        ...

    def records(self, count: int) -> None:
        """Report the number of records written since the last call, for the report and the ledger.

        A sink that calls it for each record, while it handles that record, can have its rows traced one by one.
        """

    def close(self) -> None:
        """Close the file. A later write opens it again, and appends."""


class FileMaker(Protocol):
    """A maker of attempt files for a task."""

    def create(self, operator: str, folder: str, name: str) -> AttemptFile:
        """Open an attempt file that becomes `folder/name`."""
        ...


class Notes(Protocol):
    """A log of the position of a task that is retried."""

    def note(self, path: str | None, position: int | None) -> None:
        """Log which bytes come next."""

    def portions(self, path: str | None, records: Any) -> Iterator[Any]:
        """Yield the records of a reader in the portions in which to hand them on."""
        ...

    def each(self, path: str | None, positions: Sequence[int], records: Iterable[Any]) -> Iterator[Any]:
        """Yield records one by one."""
        ...


INSERTED, RETRACTED = "rows_inserted", "rows_retracted"
"""The counters of `count_result`."""


@attrs.frozen
class ItemPart:
    """A part of a work item of which other tasks have the rest.

    Attributes:
        whole: the item.
        start, stop: the range of the part; None for the bound of the item.
        completes: True if the item counts as read once this part is read again.
    """

    whole: Any
    start: int | None = None
    stop: int | None = None
    completes: bool = False


class StealableWork(Protocol):
    """The work items of a task, parts of which other tasks may steal."""

    def track(self, tracker: Any) -> None:
        """Use a tracker for the current item from now on."""

    def check(self) -> None:
        """Raise when the task must stop."""

    def completes(self, operator: str) -> bool:
        """Fix the current part, which an operator has read, and return whether all of the item has been read."""
        ...


@attrs.frozen
class RecordOrigin:
    """The origin of records: a file and a position in it or, over an exchange, the task that sent them.

    Attributes:
        path, position: the file, and the position of the record in it; where it is not exact, the record begins there or later.
        sender: the origin of records that come over an exchange.
        line: the number of the line at which the record begins, from 1; None where it is not known.
        is_exact: True if the position is that of the record.
        others: the number of further files, one of which may be the record's instead.
    """

    path: str | None = None
    position: Any = None
    sender: str | None = None
    line: int | None = None
    is_exact: bool = False
    others: int = 0

    def __str__(self) -> str:
        """Return the place in one line: `PATH:LINE, position N`, as far as it is known.

        >>> print(RecordOrigin("a.csv", 120, line=7, is_exact=True), "|", RecordOrigin("a.csv", 0))
        a.csv:7, position 120 | a.csv, at or after position 0
        """
        if self.path is None:
            return self.sender or ""
        if self.others:
            return f"{self.path} or one of {self.others:,} file{'s' if self.others > 1 else ''} read with it"
        path = self.path if self.line is None else f"{self.path}:{self.line}"
        if self.position is None:
            return path
        return f"{path}, {'' if self.is_exact else 'at or after '}position {self.position}"


@attrs.frozen
class BlamedRecord:
    """The record that an exception is about, and its origin."""

    error: BaseException
    record: Any
    place: RecordOrigin


@attrs.define
class Cursor:
    """The position of a task in its input. The operators of a task share it.

    Attributes:
        path, position: the file, and the bytes from its start.
        crash_marker: in tasks that are retried, the log of their position.
        part: the part of the current work item; None for all of it.
        sender: the origin of records that come over an exchange, such as `task s0-0001`.
        blame: the record that failed when an operator handled it later than it came.
        paths: while records of several files are handed on together, the file of each block.
        others: the number of those files, less one.
    """

    path: str | None = None
    position: int | None = None
    crash_marker: Notes | None = None
    part: ItemPart | None = None
    sender: str | None = None
    blame: BlamedRecord | None = None
    paths: Mapping[int, str] = attrs.field(factory=dict)
    others: int = 0

    def origin_of(self, record: Any) -> RecordOrigin:
        """Return the origin of a record: an exact one of a `ReaderRecord`, else that of the records that are handled together."""
        if isinstance(record, ReaderRecord):
            path = self.paths.get(record.block_id, self.path)
            return RecordOrigin(path, record.position, self.sender, is_exact=True)
        return RecordOrigin(self.path, self.position, self.sender, others=self.others)

    def move(self, path: str | None, position: int | None) -> None:
        """Move to other bytes."""
        self.path, self.position = path, position
        if self.paths:
            self.paths, self.others = {}, 0
        if self.crash_marker is not None:
            self.crash_marker.note(path, position)


@attrs.frozen(kw_only=True)
class EventTime:
    """The progress of event time, in microseconds since the epoch; None while unknown. For operators that follow event time.

    It is the same for all tasks of a window, however often it runs, and does not depend on the number of tasks.

    Attributes:
        seen: the latest time of a record that came to the operator in the windows before.
        sources_before: the smallest of the watermarks of its sources (`InputOperator.watermark`) after the window before.
        sources: the same after this window.
        is_end: True in the window behind the last one of a bounded run, which has no records.
    """

    seen: int | None = None
    sources_before: int | None = None
    sources: int | None = None
    is_end: bool = False


@attrs.define(kw_only=True)
class OperatorServices:
    """The services of the framework behind the methods of a context. The framework sets them; operators call the methods.

    Attributes:
        files: the maker of attempt files; None where an operator cannot write files.
        stealable: the work of the task that other tasks may steal; None if they may not.
        cursor: the position of the task in its input.
        on_bad_record: handles a record that an operator could not make, by its `on_error`; None raises the error.
        on_reject: counts rejected records, and keeps samples of them.
        on_never_inserted: counts rows that are taken back and have never come, or raises, by its `on_error`; None raises.
        on_flush: hands on the records that the operator has emitted.
        on_warn: shows a warning to the user.
    """

    files: FileMaker | None = None
    stealable: StealableWork | None = None
    cursor: Cursor = attrs.field(factory=Cursor)
    on_bad_record: Callable[[Exception, Any, RecordOrigin | None], None] | None = None
    on_reject: Callable[[str, Sequence[Any], int, Sequence[RecordOrigin | int]], None] | None = None
    on_never_inserted: Callable[[str, int], None] | None = None
    on_flush: Callable[[], None] | None = None
    on_warn: Callable[[str], None] | None = None


@attrs.define(kw_only=True)
class OperatorSignals:
    """The messages of an operator to the framework, as the methods of its context collect them.

    Attributes:
        counters: the sums of `count`, by name.
        notes: the lines of `note`.
        window_closed: True after `close_window`.
        latest_event_time: the latest time of `saw`.
        held: the sum of `hold`.
    """

    counters: dict[str, int] = attrs.field(factory=dict)
    notes: list[str] = attrs.field(factory=list)
    window_closed: bool = False
    latest_event_time: int | None = None
    held: int = 0


@attrs.define(kw_only=True)
class OperatorContext:
    """The place of an operator in the run, and the services of the framework.

    Attributes:
        name: the operator's name in the DAG.
        partition, partitions: the number of this copy of the operator, and how many copies there are; 0 of 1 on the driver.
        window: the number of the current window.
        slots: the number of tasks that the run can work on at once.
        continuous: True if the run continues when the input is exhausted.
        application: the identity of the application on its run folder, as `StagedWindow` has it; empty without a run. A sink
            marks with it what it stages, so that it never sweeps what another application has staged.
        staging_folder: in tasks, a folder in the run folder, where a `Sink` may stage files; their names begin with
            `{window:010d}.`, and `sweep` removes them. Empty without a run.
        clock: the source of time.
        agreed: in tasks, the result of `Operator.agree` for this window.
        event_time: the event time of this window, for operators that follow event time.
        emits: whether this window is an emission point at which the operator has something to emit, for operators that wait for
            emission points.
        retracts: in handlers, whether the rows at hand are taken back. Only operators with `takes_changes` get such rows and see
            it; functions of single rows need not.
        services, signals: of the framework. Operators use the methods of the context.
    """

    name: str = "operator"
    partition: int = 0
    partitions: int = 1
    window: int = 0
    slots: int = 1
    continuous: bool = False
    application: str = ""
    staging_folder: str = ""
    clock: Clock = attrs.field(factory=SystemClock)
    agreed: Any = None
    event_time: EventTime = attrs.field(factory=EventTime)
    emits: bool = True
    retracts: bool = False
    services: OperatorServices = attrs.field(factory=OperatorServices)
    signals: OperatorSignals = attrs.field(factory=OperatorSignals)

    @property
    def part(self) -> ItemPart | None:
        """The part of the current work item, where other tasks have the rest; None for all of the item, or for several items."""
        cursor = self.services.cursor
        return None if cursor.paths else cursor.part

    @property
    def sign(self) -> int:
        """In handlers: 1, or -1 where the rows at hand are taken back."""
        return -1 if self.retracts else 1

    @property
    def is_rebalanced(self) -> bool:
        """True if other tasks may steal parts of the work items while they are read."""
        return self.services.stealable is not None

    def track(self, tracker: Any) -> None:
        """Use a tracker (`dagflow.ranges`) for the current work item. For readers.

        Its range is that of the item, `start` to `stop`. What the reader has not claimed may be split off at any time: another
        task then has an item with another `start`. Call this once for each item, before the first claim.
        """
        if self.services.stealable is not None:
            self.services.stealable.track(tracker)

    def completes_item(self) -> bool:
        """Return whether all of a work item has been read. For readers, at the end of an item or of a part of one.

        Of the tasks that read parts of an item, exactly one gets True.
        """
        if self.services.stealable is not None:
            return self.services.stealable.completes(self.name)
        return self.part is None or self.part.completes

    def flush(self) -> None:
        """Pass on the records that this operator has emitted. Readers that track an item call it before they claim more."""
        if self.services.stealable is not None:
            self.services.stealable.check()
        if self.services.on_flush is not None:
            self.services.on_flush()

    def count(self, name: str, n: int = 1) -> None:
        """Add `n` to a named counter of this operator. The report sums it over tasks and windows."""
        self.signals.counters[name] = self.signals.counters.get(name, 0) + n

    def count_result(self, inserted: int, retracted: int) -> None:
        """Count the rows that came into the result of the sink behind this operator, and those that left it.

        The sink's ledger has the counts, and `dagflow log` shows them.
        """
        for name, rows in ((INSERTED, inserted), (RETRACTED, retracted)):
            if rows:
                self.count(name, rows)

    def at(self, path: str | None, position: int | None = None) -> None:
        """Set the position in the input, which error messages name."""
        self.services.cursor.move(path, position)

    def at_blocks(self, paths: Mapping[int, str], position: int) -> None:
        """Set the position to the first of several blocks that are handed on together. `paths`: the file of each, by its id."""
        cursor = self.services.cursor
        cursor.move(next(iter(paths.values())), position)
        cursor.paths, cursor.others = paths, len(set(paths.values())) - 1

    @property
    def seeks_crash(self) -> bool:
        """True while the framework looks for a record that kills its process: readers then emit records as they come."""
        return self.services.cursor.crash_marker is not None

    @property
    def place(self) -> RecordOrigin:
        """The origin of the current records. An operator that handles records later keeps it with them, for `blame`."""
        return self.services.cursor.origin_of(None)

    def blame(self, error: BaseException, record: Any, place: RecordOrigin) -> None:
        """Name the record that caused the next exception. For operators that process records later than they arrive.

        Error messages name the record and its origin, its `place` on arrival. Handlers need not call this: the framework knows
        their record.
        """
        self.services.cursor.blame = BlamedRecord(error, record, place)

    def noted(self, positions: Sequence[int], records: Iterable[Any]) -> Iterator[Any]:
        """Iterate over the raw records of an operator that makes its records one by one.

        While the framework looks for a record that kills its process, it logs each position first.
        """
        crash_marker = self.services.cursor.crash_marker
        return iter(records) if crash_marker is None else crash_marker.each(self.services.cursor.path, positions, records)

    def note(self, text: str) -> None:
        """Send a line to the driver. `show(lines, window)` of the operator gets it once the window is decided."""
        self.signals.notes.append(text)

    def warn(self, text: str) -> None:
        """Warn the user, in the progress, the report and the events of the run. For operators on the driver."""
        if self.services.on_warn is not None:
            self.services.on_warn(text)

    def bad_record(self, error: Exception, record: Any, position: int | None = None) -> None:
        """Handle a record that could not be made, by the operator's `on_error`. For readers, which make their records.

        Raises `error` when that is `fail`. `record` is the raw record, `position` its start in the current file.
        """
        if self.services.on_bad_record is None:
            raise error
        cursor = self.services.cursor
        if position is None:
            self.services.on_bad_record(error, record, None)
            return
        before, cursor.position = cursor.position, position
        self.services.on_bad_record(error, record, RecordOrigin(cursor.path, position, cursor.sender, is_exact=True))
        cursor.position = before  # the records around a skipped one begin before it, too

    def reject(
        self, reason: str, records: Sequence[Any] = (), count: int | None = None, at: Sequence[RecordOrigin | int] = ()
    ) -> None:
        """Count records as rejected, whatever becomes of them. The report shows the first few of `records` with the reason.

        `count`: their number, where `records` are only some of them. `at`: their places; for records of a batch, the numbers of
        their rows. For operators that expect something of their records (`LimitsRejects`).
        """
        if self.services.on_reject is not None:
            self.services.on_reject(reason, records, len(records) if count is None else count, at)

    def never_inserted(self, values: Mapping[str, object], rows: int) -> None:
        """Report rows that are taken back and have never come: `rows` of them, with these values. They change nothing.

        Raises NeverInserted, which names the ports that they may have come from. With another `on_error` than `fail`, they are
        only counted, as `never_inserted`.
        """
        group = ", ".join(f"{name}={value!r}" for name, value in values.items()) or "all rows"
        if self.services.on_never_inserted is None:
            raise NeverInserted(group=group, rows=int(rows))
        self.services.on_never_inserted(group, int(rows))

    def standing(self, counts: np.ndarray[Any, Any], values_of: Callable[[int], Mapping[str, object]]) -> np.ndarray[Any, Any]:
        """Return how often rows stand: 0 where more are taken back than have come, which is reported (`never_inserted`).

        Args:
            counts: how often each row has come, less how often it was taken back.
            values_of: returns the values of a row by its number.
        """
        if not len(counts) or counts.min() >= 0:
            return counts
        self.never_inserted(values_of(int(counts.argmin())), -counts.clip(max=0).sum())
        return counts.clip(min=0)

    def saw(self, event_time: int) -> None:
        """Report the latest time of some records. Later windows have it as `event_time.seen`."""
        latest = self.signals.latest_event_time
        self.signals.latest_event_time = event_time if latest is None else max(latest, event_time)

    def hold(self, changes: int) -> None:
        """Tell how many changes more, or fewer, are kept back for the next emission point. What waits shows in the report."""
        self.signals.held += changes

    def close_window(self) -> None:
        """Close the current window, since it is full. For input operators."""
        self.signals.window_closed = True

    def create_file(self, folder: str, name: str) -> AttemptFile:
        """Open a file that appears as `folder/name`, whole, when the window is decided, and not before."""
        if self.services.files is None:
            raise RuntimeError("create_file() works only in handlers and end_window()")
        return self.services.files.create(self.name, folder, name)
