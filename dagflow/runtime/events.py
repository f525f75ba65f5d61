"""The stream of run events: typed, versioned; progress, report and the events file are its readers."""

from __future__ import annotations

import functools
import json
import threading
import traceback
from collections.abc import Callable
from typing import Any, ClassVar, Literal

import attrs

from dagflow.bounded_json import parse
from dagflow.errors.shown import without_secrets
from dagflow.model.types.declared import fields_of, is_number

VERSION = 1


@attrs.frozen(kw_only=True)
class Event:
    """Something that happened in a run. `at`: seconds since the epoch."""

    kind: ClassVar[str] = "event"
    at: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Return the event as a JSON object; `v` is the version of the form."""
        return {"v": VERSION, "event": self.kind, **attrs.asdict(self)}


@attrs.frozen(kw_only=True)
class RunStarted(Event):
    """A launch began. `telemetry`: where metrics, traces and lineage go, a line each.

    `sinks`: the destinations of the sinks that do not write files (tables, databases), by operator.
    """

    kind: ClassVar[str] = "run_started"
    application: str
    runner: str
    run_folder: str
    launch: str
    slots: int
    first_window: int
    ui: str | None = None
    telemetry: list[str] = attrs.field(factory=list)
    sinks: dict[str, str] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class LeaseAwaited(Event):
    """A launch on another host holds the run folder. This one waits to see whether that launch renews its lease.

    `pid`, `host`, `who`: of the other launch; `since`: a time in UTC, as ISO 8601. `seconds`: of the lease. The file of events in
    the run folder does not have this event, since it begins when the folder is held.
    """

    kind: ClassVar[str] = "lease_awaited"
    run_folder: str
    pid: int
    host: str
    since: str
    who: str
    seconds: float

    def text(self) -> str:
        """Return the event in two sentences, without secrets.

        >>> LeaseAwaited(run_folder="out", pid=7, host="head", since="12:00", who="launch of a", seconds=60.0).text()
        'out is held by process 7 on head since 12:00 (launch of a). This launch takes over unless that one renews within 60 s'
        """
        who = f" ({self.who})" if self.who else ""
        held = f"{self.run_folder} is held by process {self.pid} on {self.host} since {self.since}{who}"
        return without_secrets(f"{held}. This launch takes over unless that one renews within {self.seconds:g} s")


@attrs.frozen(kw_only=True)
class WindowPlanned(Event):
    """A window's plan is durable. `replayed`: it was found, not made."""

    kind: ClassVar[str] = "window_planned"
    window: int
    items: int
    bytes: int
    tasks: int
    replayed: bool = False


@attrs.frozen(kw_only=True)
class ReadersChanged(Event):
    """From this window on, an operator that is partitioned has another number of readers.

    `backlog`, `backlog_bytes`: what was known and not committed when that was decided, this window included. `counters`: what all
    readers have counted until then, those that go included.
    """

    kind: ClassVar[str] = "readers_changed"
    window: int
    operator: str
    before: int
    readers: int
    backlog: int
    backlog_bytes: int
    counters: dict[str, int] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class WindowStarted(Event):
    """A window's tasks were handed to the runner."""

    kind: ClassVar[str] = "window_started"
    window: int
    round: str
    tasks: int


@attrs.frozen(kw_only=True)
class WindowProgress(Event):
    """The progress of a window: the fraction of its work that the readers have consumed.

    Sent at most once a second while it rises, and only where readers steal from each other. It restarts with the window.
    """

    kind: ClassVar[str] = "window_progress"
    window: int
    fraction_consumed: float


@attrs.frozen(kw_only=True)
class OperatorProgress(Event):
    """The figures of all operators so far, at most once a second while tasks run. The last one says it all.

    Attributes:
        operators: by name `records_in`, `records_out`, `errors` and `seconds`, and `bytes` where the operator counts them, of
            this launch, windows that are not decided included; and `partitions`, the tasks at work now.
        running, pending: how many tasks are at work, and how many have not begun.
        backlog, backlog_bytes: the work items that are known and that no task has begun, and their bytes, where these are known;
            in bytes, what is left of items that tasks are at counts too.
        waiting: by operator, the reason why it waits; under the empty name, the reason why all do.
        remaining: the estimated seconds until all input that is known has been read; None if nothing can be said, or if
            the run does not end with its input.
    """

    kind: ClassVar[str] = "operator_progress"
    operators: dict[str, dict[str, float]]
    running: int = 0
    pending: int = 0
    backlog: int = 0
    backlog_bytes: int = 0
    waiting: dict[str, str] = attrs.field(factory=dict)
    remaining: float | None = None


@attrs.frozen(kw_only=True)
class TaskEnded(Event):
    """A task has reported. `started` and `ended`: seconds since the epoch, by the clock of its machine.

    `records`: what its reader read and passed on (the operator at the head of its stage, to which the work items went), whatever
    became of them then; without what it dropped or refused.

    `read`, `compute`, `write`, `wait`: its seconds by purpose, which sum to about `ended - started`. `operators`: by name,
    `records_in`, `records_out`, `errors` and `seconds`.
    """

    kind: ClassVar[str] = "task_ended"
    window: int
    task: str
    attempt: str
    started: float
    ended: float
    records: int
    stage: str = ""
    partition: int = 0
    read: float = 0.0
    compute: float = 0.0
    write: float = 0.0
    wait: float = 0.0
    operators: dict[str, dict[str, float]] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class Claimed(Event):
    """A task whose work can be stolen has read so many parts of work items; sent when it has ended."""

    kind: ClassVar[str] = "claimed"
    window: int
    task: str
    attempt: str
    parts: int


@attrs.frozen(kw_only=True)
class Stolen(Event):
    """A task has stolen work from another one: so many parts of items. Sent when the window is decided.

    `bytes`: of blocks of files; 0 where items are weighed in another way.
    """

    kind: ClassVar[str] = "stolen"
    window: int
    source: str
    to: str
    bytes: int
    parts: int

    def as_json(self) -> dict[str, Any]:
        """Return the event as a JSON object; there, `source` is `from`."""
        return {("from" if name == "source" else name): value for name, value in super().as_json().items()}


@attrs.frozen(kw_only=True)
class ExpectationChecked(Event):
    """The records that an operator rejected in a window were compared with a limit.

    `name`: of the limit, `max_rejects` or that of an expectation. `status`: `ok`, `warned`, or `failed`: then the window is not
    committed. One of `max_share` and `max_count` is None. `samples`: the first rejected records, of a limit that failed: those of
    other windows are in the decision.
    """

    kind: ClassVar[str] = "expectation"
    window: int
    operator: str
    name: str
    records: int
    rejected: int
    max_share: float | None
    max_count: int | None
    status: str
    samples: list[str] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class WindowDecided(Event):
    """A window's decision is durable: it is committed.

    `operators`: by name `records_in`, `records_out`, `errors`, `seconds`, and `bytes` where the operator counts them.
    """

    kind: ClassVar[str] = "window_decided"
    window: int
    files: int
    bytes: int
    records: int
    operators: dict[str, dict[str, float]] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class EntryAppended(Event):
    """A decided window stands in the ledger of a dataset. `hash`: of the entry; `rows`: how many it adds."""

    kind: ClassVar[str] = "entry_appended"
    window: int
    dataset: str
    entry: int
    hash: str
    rows: int


@attrs.frozen(kw_only=True)
class WindowDone(Event):
    """All that follows from a window's decision has been done."""

    kind: ClassVar[str] = "window_done"
    window: int


@attrs.frozen(kw_only=True)
class TaskRetried(Event):
    """The runner ran a task again, since an earlier attempt of it did not report. Its window continues."""

    kind: ClassVar[str] = "task_retried"
    window: int
    task: str
    attempt: str


@attrs.frozen(kw_only=True)
class WindowRetried(Event):
    """A window failed for a transient reason and is run again from its plan, after `delay` seconds."""

    kind: ClassVar[str] = "window_retried"
    window: int
    attempt: int
    reason: str
    delay: float = 0.0


@attrs.frozen(kw_only=True)
class StepRetried(Event):
    """A step on the driver failed for a transient reason. The driver retries what it was `doing` after `delay` seconds."""

    kind: ClassVar[str] = "step_retried"
    window: int
    doing: str
    attempt: int
    reason: str
    delay: float


def retry_text(event: Event, pause: str = "") -> str | None:
    """Return the line that says what is retried, and why; None for events of other kinds. `pause`: the delay in words.

    >>> retry_text(WindowRetried(window=3, attempt=2, reason="a worker died", delay=1.0), " in 1 s")
    'window 3 is retried, attempt 2 in 1 s: a worker died'
    """
    if isinstance(event, WindowRetried):
        return f"window {event.window} is retried, attempt {event.attempt}{pause}: {event.reason}"
    if isinstance(event, StepRetried):
        return f"window {event.window}: {event.doing} is retried, attempt {event.attempt}{pause}: {event.reason}"
    if isinstance(event, TaskRetried):
        return f"window {event.window}: task {event.task} was retried, since an earlier attempt died before it reported"
    return None


@attrs.frozen(kw_only=True)
class Warned(Event):
    """Something that a user should know, and that does not end the run."""

    kind: ClassVar[str] = "warned"
    text: str


@attrs.frozen(kw_only=True)
class RunEnded(Event):
    """A launch ended: `done`, `failed` or `interrupted`.

    `error_code`, `error_operator`, `error_window`: of the error that ended it, as far as it has them. `rebalancing`: why no
    reader has ever stolen work; empty if one has.
    """

    kind: ClassVar[str] = "run_ended"
    status: str
    windows: int
    seconds: float
    error: str | None = None
    error_code: str | None = None
    error_operator: str | None = None
    error_window: int | None = None
    rebalancing: str = ""


@attrs.frozen(kw_only=True)
class OutputLine(Event):
    """A line that an operator printed or logged to standard error; only with `--progress json`, not in the run folder."""

    kind: ClassVar[str] = "output"
    text: str


def read_event(line: bytes) -> Event | None:
    """Return the event in a line that a launch, or a stranger, has left; None for anything that this version does not write.

    >>> read_event(b'{"v": 1, "event": "warned", "at": 0.5, "text": "slow"}')
    Warned(at=0.5, text='slow')
    >>> read_event(b'{"v": 1, "event": "warned", "at": 1e308, "text": "slow"}'), read_event(b"[" * 10**6)
    (None, None)
    """
    try:
        data = parse(line)
    except ValueError:  # damaged, or the half line that a launch left when it was killed
        return None
    cls = _kinds().get(str(data.get("event"))) if isinstance(data, dict) and data.get("v") == VERSION and "at" in data else None
    if cls is None:
        return None
    checks = fields_of(cls)  # type: ignore[arg-type]  # mypy takes classes for unhashable here
    values = {("source" if name == "from" else name): value for name, value in data.items()}
    known = {name: value for name, value in values.items() if name in checks}
    for name, value in known.items():
        most = _BELOW.get(name)
        if not checks[name](value) or (most is not None and value is not None and not (is_number(value) and 0 <= value < most)):
            return None
    try:
        return cls(**known)
    except TypeError:  # a field is missing
        return None


@functools.cache
def _kinds() -> dict[str, type[Event]]:
    return {cls.kind: cls for cls in Event.__subclasses__()}


_YEAR_10000 = 253_402_300_800
_BELOW = {"at": _YEAR_10000, "started": _YEAR_10000, "ended": _YEAR_10000, "window": 10**10}

Subscriber = Callable[[Event], None]
FailureAction = Literal["raise", "warn"]


class EventStream:
    """Hands every event to all subscribers, in order."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._subscribers: list[tuple[Subscriber, FailureAction]] = []
        self._lock = threading.RLock()
        self._held_back: Event | None = None

    def subscribe(self, subscriber: Subscriber, on_error: FailureAction = "raise") -> None:
        """Call `subscriber` with every event from now on.

        `on_error`: an exception that it raises ends the run, or becomes a warning, and the subscriber gets no further events.
        """
        self._subscribers.append((subscriber, on_error))

    def send(self, event: Event) -> None:
        """Stamp an event with the time and hand it on. For the thread of the run."""
        with self._lock:
            held_back, self._held_back = self._held_back, None
            if held_back is not None:
                self._hand_on(held_back, "raise")
            self._hand_on(attrs.evolve(event, at=round(self._now(), 6)), "raise", "warn")

    def send_beside(self, event: Event) -> None:
        """Hand on an event from another thread, while the run's thread is busy.

        Subscribers whose failure ends the run get it with the next event from the run's thread; of several, the last one.
        """
        with self._lock:
            self._held_back = attrs.evolve(event, at=round(self._now(), 6))
            self._hand_on(self._held_back, "warn")

    def _hand_on(self, event: Event, *actions: FailureAction) -> None:
        warnings = []
        for entry in tuple(self._subscribers):
            subscriber, on_error = entry
            if on_error not in actions:
                continue
            try:
                subscriber(event)
            except Exception as error:
                if on_error == "raise":
                    raise
                self._subscribers.remove(entry)
                warnings.append(f"{_failure(subscriber, error)}; it gets no further events, and the run continues")
        for text in warnings:
            self._hand_on(Warned(text=text, at=event.at), *actions)

    def end(self, event: RunEnded) -> list[str]:
        """Send the last event. What a subscriber raises now must not hide how the run ended: it comes back as text."""
        stamped = attrs.evolve(event, at=round(self._now(), 6))
        heard, warnings = [], []
        for subscriber, on_error in self._subscribers:
            try:
                subscriber(stamped)
                heard.append((subscriber, on_error))
            except Exception as error:  # noqa: BLE001  # user code
                warnings.append(_failure(subscriber, error, " at the end of the run"))
        self._subscribers = heard
        return warnings


def _failure(subscriber: Subscriber, error: Exception, when: str = "") -> str:
    name = getattr(subscriber, "__qualname__", type(subscriber).__qualname__)
    return f"the subscriber {name} raised an exception{when}: {''.join(traceback.format_exception_only(error)).strip()}"


def line_of(event: Event) -> str:
    """Return an event as one line of JSON, without secrets."""
    return json.dumps(without_secrets(event.as_json()), ensure_ascii=False) + "\n"
