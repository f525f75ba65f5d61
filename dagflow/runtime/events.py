"""The stream of run events: typed, versioned; progress, report and the events file are its readers."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable
from typing import Any, ClassVar

import attrs

from dagflow.errors.shown import without_secrets

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
    """A launch began."""

    kind: ClassVar[str] = "run_started"
    application: str
    runner: str
    run_folder: str
    launch: str
    slots: int
    first_window: int
    ui: str | None = None


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
class TaskEnded(Event):
    """A task has reported. `started` and `ended`: seconds since the epoch, by the clock of its machine.

    `records`: what its reader read and passed on (the operator at the head of its stage, to which the work items went), whatever
    became of them then; without what it dropped or refused.
    """

    kind: ClassVar[str] = "task_ended"
    window: int
    task: str
    attempt: str
    started: float
    ended: float
    records: int


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
class WindowDecided(Event):
    """A window's decision is durable: it is committed."""

    kind: ClassVar[str] = "window_decided"
    window: int
    files: int
    bytes: int
    records: int


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
    """A launch ended: `done`, `failed` or `interrupted`."""

    kind: ClassVar[str] = "run_ended"
    status: str
    windows: int
    seconds: float
    error: str | None = None


Subscriber = Callable[[Event], None]


class EventStream:
    """Hands every event to all subscribers, in order."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._subscribers: list[Subscriber] = []

    def subscribe(self, subscriber: Subscriber) -> None:
        """Call `subscriber` with every event from now on."""
        self._subscribers.append(subscriber)

    def send(self, event: Event) -> None:
        """Stamp an event with the time and hand it on."""
        stamped = attrs.evolve(event, at=round(self._now(), 6))
        for subscriber in self._subscribers:
            subscriber(stamped)

    def end(self, event: RunEnded) -> list[str]:
        """Send the last event. What a subscriber raises now must not hide how the run ended: it comes back as text."""
        stamped = attrs.evolve(event, at=round(self._now(), 6))
        heard, warnings = [], []
        for subscriber in self._subscribers:
            try:
                subscriber(stamped)
                heard.append(subscriber)
            except Exception as error:  # noqa: BLE001  # user code
                name = getattr(subscriber, "__qualname__", type(subscriber).__qualname__)
                what = "".join(traceback.format_exception_only(error)).strip()
                warnings.append(f"the subscriber {name} raised an exception at the end of the run: {what}")
        self._subscribers = heard
        return warnings


def line_of(event: Event) -> str:
    """Return an event as one line of JSON, without secrets."""
    return json.dumps(without_secrets(event.as_json()), ensure_ascii=False) + "\n"
