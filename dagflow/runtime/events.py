"""The stream of run events: typed, versioned; progress, report and the events file are its readers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, ClassVar

import attrs

VERSION = 1


@attrs.frozen(kw_only=True)
class Event:
    """Something that happened in a run. `at`: seconds since the epoch."""

    kind: ClassVar[str] = "event"
    at: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """The event as one JSON object; `v` is the version of the form."""
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
class WindowStarted(Event):
    """A window's tasks were handed to the runner."""

    kind: ClassVar[str] = "window_started"
    window: int
    round: str
    tasks: int


@attrs.frozen(kw_only=True)
class TaskEnded(Event):
    """A task has reported. `started` and `ended`: seconds since the epoch, by the clock of its machine."""

    kind: ClassVar[str] = "task_ended"
    window: int
    task: str
    attempt: str
    started: float
    ended: float
    records: int


@attrs.frozen(kw_only=True)
class WindowDecided(Event):
    """A window's decision is durable: it is committed."""

    kind: ClassVar[str] = "window_decided"
    window: int
    files: int
    bytes: int
    records: int


@attrs.frozen(kw_only=True)
class WindowDone(Event):
    """All that follows from a window's decision has been done."""

    kind: ClassVar[str] = "window_done"
    window: int


@attrs.frozen(kw_only=True)
class WindowRetried(Event):
    """A window failed for a passing reason and is run again from its plan."""

    kind: ClassVar[str] = "window_retried"
    window: int
    attempt: int
    reason: str


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
        """From now on, `subscriber` is called with every event."""
        self._subscribers.append(subscriber)

    def send(self, event: Event) -> None:
        """Stamps an event with the time and hands it on."""
        stamped = attrs.evolve(event, at=round(self._now(), 6))
        for subscriber in self._subscribers:
            subscriber(stamped)


def line_of(event: Event) -> str:
    """An event as one line of JSON."""
    return json.dumps(event.as_json(), ensure_ascii=False) + "\n"
