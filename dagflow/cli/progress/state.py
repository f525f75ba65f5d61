"""The state of a run, as far as its events show it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import attrs

from dagflow.cli.progress.words import doing_of, reason_of
from dagflow.errors.shown import visible
from dagflow.runtime.events import (
    Event,
    LeaseAwaited,
    OperatorProgress,
    RunStarted,
    StepRetried,
    WindowDecided,
    WindowPlanned,
    WindowProgress,
    WindowRetried,
    WindowStarted,
)

RECENT = 6  # events of progress, about one a second, that rates are taken from


@attrs.frozen(kw_only=True)
class OperatorLine:
    """The figures of an operator, or of the operators of a module.

    Attributes:
        name: of the operator, or of the module with the number of its operators.
        rate: records a second that come in or go out, whichever are more.
        share: of the time of all operators.
        tasks: at work on it now.
        waits: the reason why it waits, empty if it does not.
    """

    name: str
    records_in: int
    records_out: int
    rate: float
    size: int
    errors: int
    tasks: int
    share: float
    waits: str = ""


class RunState:
    """The state of a run. A subscriber.

    Attributes:
        open: the windows that are planned and not decided; `consumed`: the fraction of them that readers have consumed.
        windows, read, written: the windows that were decided, and their bytes and records.
        progress: the last figures of operators, None before the first ones.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.status = "starting"
        self.open: dict[int, WindowPlanned] = {}
        self.consumed: dict[int, float] = {}
        self.windows = self.read = self.written = 0
        self.progress: OperatorProgress | None = None
        self._recent = deque[OperatorProgress](maxlen=RECENT)
        self._pause: tuple[float, str] | None = None

    def __call__(self, event: Event) -> None:
        """Take an event."""
        if isinstance(event, RunStarted):
            self.status = "waiting for input"
        elif isinstance(event, LeaseAwaited):
            self.status = f"waiting for the lease of the launch on {visible(event.host)}"
        elif isinstance(event, WindowPlanned):
            self.open[event.window] = event
        elif isinstance(event, WindowStarted):
            self._pause = None
        elif isinstance(event, WindowProgress):
            self.consumed[event.window] = event.fraction_consumed
        elif isinstance(event, OperatorProgress):
            self.progress = event
            self._recent.append(event)
        elif isinstance(event, WindowRetried | StepRetried):
            self._pause = (self._clock() + event.delay, doing_of(event)) if event.delay else None
        elif isinstance(event, WindowDecided):
            self.consumed.pop(event.window, None)
            plan = self.open.pop(event.window, None)
            self.windows += 1
            self.read += plan.bytes if plan is not None else 0
            self.written += event.records

    def why_all_wait(self) -> str:
        """Return why the run waits; empty if it does not."""
        if self._pause is not None and (left := self._pause[0] - self._clock()) > 0:
            return f"{self._pause[1]} in {max(1, round(left))} s"
        return self.progress.waiting.get("", "") if self.progress is not None and self.open else ""

    def operators(self) -> list[OperatorLine]:
        """Return the figures of all operators, in the order of the DAG as the run reports it."""
        last = self.progress
        if last is None:
            return []
        before = self._recent[0]
        took = last.at - before.at
        total = sum(figures["seconds"] for figures in last.operators.values())
        lines = []
        for name, figures in last.operators.items():
            old = before.operators.get(name, {})
            more = max(figures[field] - old.get(field, 0) for field in ("records_in", "records_out"))
            lines.append(
                OperatorLine(
                    name=name,
                    records_in=int(figures["records_in"]),
                    records_out=int(figures["records_out"]),
                    rate=max(0.0, more / took) if took > 0 and self.open else 0.0,
                    size=int(figures.get("bytes", 0)),
                    errors=int(figures["errors"]),
                    tasks=int(figures["partitions"]) if self.open else 0,
                    share=figures["seconds"] / total if total else 0.0,
                    waits=reason_of(last.waiting.get(name, "")) if self.open else "",
                )
            )
        return lines
