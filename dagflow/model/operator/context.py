"""The context that an operator gets in `setup`: its place in the run, and services of the framework."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import attrs


class Clock(Protocol):
    """A source of time; tests inject their own."""

    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds since some moment; never goes back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Waits."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds since some moment; never goes back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Waits."""
        time.sleep(seconds)


class AttemptFile(Protocol):
    """A file that a sink writes: it appears under its name when the window is decided."""

    def write(self, data: Any, /) -> int:
        """Appends bytes (anything with the buffer protocol); the number of bytes written."""
        ...

    def records(self, count: int) -> None:
        """Tells how many records have been written since the last call: for the report, and the ledger's rows.

        Who calls it for each record, while handling it, can have its rows traced to their sources one by one.
        """

    def close(self) -> None:
        """Lets go of the open file; a later write opens it again, and appends."""


class FileMaker(Protocol):
    """A maker of attempt files for a task."""

    def create(self, operator: str, folder: str, name: str) -> AttemptFile:
        """Opens an attempt file that becomes `folder/name`."""
        ...


class Notes(Protocol):
    """A log of the position of a task that is tried again."""

    def note(self, path: str | None, position: int | None) -> None:
        """Writes down which bytes come next."""

    def portions(self, path: str | None, records: Any) -> Iterator[Any]:
        """Records of a reader in the portions in which to hand them on."""
        ...

    def each(self, path: str | None, positions: Sequence[int], records: Iterable[Any]) -> Iterator[Any]:
        """Records one by one."""
        ...


@attrs.frozen
class ItemPart:
    """A part of a work item, where another task has the rest: the whole item, and its range; None: as far as the item goes.

    `completes`: when this is read again, all of the item is taken to have been read with it.
    """

    whole: Any
    start: int | None = None
    stop: int | None = None
    completes: bool = False


class StealableWork(Protocol):
    """The part of rebalancing that gives away work of a task."""

    def track(self, tracker: Any) -> None:
        """From now on, the item at hand is read through this tracker."""

    def check(self) -> None:
        """Raises when the task must stop."""

    def completes(self, operator: str) -> bool:
        """Return whether the whole item has been read, now that an operator has read the current part, which stays as it is."""
        ...


@attrs.frozen
class RecordOrigin:
    """The origin of records: a file and a position in it; or, over an exchange, the task that sent them."""

    path: str | None = None
    position: int | None = None
    sender: str | None = None


@attrs.frozen
class BlamedRecord:
    """Which record an exception is about, and where that has come from."""

    error: BaseException
    record: Any
    place: RecordOrigin


@attrs.define
class Cursor:
    """Which bytes a task is working on; shared by the operators of one task. `position` in bytes from the file's start.

    `crash_marker`: in tasks that are tried again, the file that tells where they are. `part`: of the work item at hand, where
    that is not all of it. `sender`: where records have come from over an exchange: `task s0-0001`. `blame`: which record it is
    that an operator has handled later than it came, and that failed then.
    """

    path: str | None = None
    position: int | None = None
    crash_marker: Notes | None = None
    part: ItemPart | None = None
    sender: str | None = None
    blame: BlamedRecord | None = None

    def move(self, path: str | None, position: int | None) -> None:
        """Goes on to other bytes."""
        self.path, self.position = path, position
        if self.crash_marker is not None:
            self.crash_marker.note(path, position)


@attrs.frozen(kw_only=True)
class EventTime:
    """The facts for operators that follow event time: microseconds since the epoch, None where nothing is known.

    It is the same for all tasks of a window, however often it runs, and does not depend on how many there are.

    Attributes:
        seen: the latest time of a record that came to the operator in the windows before.
        sources_before: the smallest of the watermarks of its sources (`InputOperator.watermark`) after the window before.
        sources: the same after this window.
        is_end: whether this is the window behind the last one of a bounded run, which has no records.
    """

    seen: int | None = None
    sources_before: int | None = None
    sources: int | None = None
    is_end: bool = False


@attrs.define(kw_only=True)
class OperatorContext:
    """The place of an operator in the run, and the services of the framework.

    Attributes:
        name: the operator's name in the DAG.
        partition, partitions: which of how many copies this is; 0 of 1 on the driver.
        window: the number of the window at hand.
        slots: how many tasks the run can work on at once.
        continuous: whether the run goes on when the input is exhausted.
        clock: where time comes from.
        agreed: in tasks, what `Operator.agree` has returned on the driver for this window.
        event_time: what operators that follow event time are told of it.
        latest: what `saw` has been told; the framework's.
        counters, notes, cursor, files, stealable: what `count`, `note`, `at`, `create_file`, `track` work on; the framework's.
    """

    name: str = "operator"
    partition: int = 0
    partitions: int = 1
    window: int = 0
    slots: int = 1
    continuous: bool = False
    clock: Clock = attrs.field(factory=SystemClock)
    counters: dict[str, int] = attrs.field(factory=dict)
    files: FileMaker | None = None
    cursor: Cursor = attrs.field(factory=Cursor)
    notes: list[str] = attrs.field(factory=list)
    window_closed: bool = False
    on_bad_record: Callable[[Exception, Any], None] | None = None
    on_flush: Callable[[], None] | None = None
    on_warn: Callable[[str], None] | None = None
    stealable: StealableWork | None = None
    agreed: Any = None
    event_time: EventTime = attrs.field(factory=EventTime)
    latest: int | None = None

    @property
    def part(self) -> ItemPart | None:
        """The part of a work item that is at hand, where other tasks have the rest; None: it is all of the item."""
        return self.cursor.part

    @property
    def is_rebalanced(self) -> bool:
        """True if parts of the work items may be given to other tasks while they are read."""
        return self.stealable is not None

    def track(self, tracker: Any) -> None:
        """For readers: from now on, the work item at hand is read through this tracker (`dagflow.ranges`).

        Its range is that of the item, `start` to `stop`. Whatever the reader does not claim may be split off at any time: another
        task then has an item with another `start`. Call it once for each item, before the first claim.
        """
        if self.stealable is not None:
            self.stealable.track(tracker)

    def completes_item(self) -> bool:
        """For readers, at the end of a work item, or of a part of one: whether all of the item has been read by now.

        Of the tasks that read parts of an item just one is told so.
        """
        if self.stealable is not None:
            return self.stealable.completes(self.name)
        return self.part is None or self.part.completes

    def flush(self) -> None:
        """Hands on what this operator has emitted so far; readers that track an item do so before they claim more of it."""
        if self.stealable is not None:
            self.stealable.check()
        if self.on_flush is not None:
            self.on_flush()

    def count(self, name: str, n: int = 1) -> None:
        """Adds `n` to a named counter of this operator; the report sums it over tasks and windows."""
        self.counters[name] = self.counters.get(name, 0) + n

    def at(self, path: str | None, position: int | None = None) -> None:
        """Tells which bytes are being worked on: error messages name them."""
        self.cursor.move(path, position)

    @property
    def place(self) -> RecordOrigin:
        """The origin of the current records. An operator that keeps records for later keeps it with them, for `blame`."""
        return RecordOrigin(self.cursor.path, self.cursor.position, self.cursor.sender)

    def blame(self, error: BaseException, record: Any, place: RecordOrigin) -> None:
        """For operators that handle records later than they came: which one an exception is about, that is raised next.

        Error messages name the record, and where it has come from (`place`, when it came). Handlers need not do so: the framework
        knows which record they were given.
        """
        self.cursor.blame = BlamedRecord(error, record, place)

    def noted(self, positions: Sequence[int], records: Iterable[Any]) -> Iterator[Any]:
        """For operators that make records one by one: iterates over what they make them of.

        Where a record is looked for that kills its process, each one's position is noted before.
        """
        crash_marker = self.cursor.crash_marker
        return iter(records) if crash_marker is None else crash_marker.each(self.cursor.path, positions, records)

    def note(self, text: str) -> None:
        """Keeps a line for the driver: `show(lines, window)` of the operator gets it once the window is decided."""
        self.notes.append(text)

    def warn(self, text: str) -> None:
        """For operators on the driver: a warning for the user, in the progress, the report and the events of the run."""
        if self.on_warn is not None:
            self.on_warn(text)

    def bad_record(self, error: Exception, record: Any, position: int | None = None) -> None:
        """For operators that make records themselves (readers): does with one that cannot be made what `on_error` says.

        Raises when that is `fail`. `record` is what it could not be made of, `position` where it starts in the file at hand.
        """
        if position is not None:
            self.cursor.position = position
        if self.on_bad_record is None:
            raise error
        self.on_bad_record(error, record)

    def saw(self, event_time: int) -> None:
        """For operators that follow event time: the latest time of some records; later windows have it as `event_time.seen`."""
        self.latest = event_time if self.latest is None else max(self.latest, event_time)

    def close_window(self) -> None:
        """An input operator's word that the window at hand is full."""
        self.window_closed = True

    def create_file(self, folder: str, name: str) -> AttemptFile:
        """Opens a file that appears as `folder/name`, whole, when the window is decided; until then it is not visible."""
        if self.files is None:
            raise RuntimeError("create_file() works only in handlers and end_window()")
        return self.files.create(self.name, folder, name)
