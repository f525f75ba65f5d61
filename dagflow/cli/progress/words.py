"""The sentences that plain and live progress share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from dagflow.render.words import byte_rate, counted, seconds, size
from dagflow.runtime.events import (
    Event,
    LeaseAwaited,
    OperatorProgress,
    RunStarted,
    StepRetried,
    Warned,
    WindowDecided,
    WindowPlanned,
    WindowRetried,
    retry_text,
)
from dagflow.runtime.run_view import WindowView


def notice(event: Event) -> str | None:
    """Return the lines for an event that is told at once and stays to be read; None for other events."""
    if isinstance(event, RunStarted):
        return started(event)
    if isinstance(event, LeaseAwaited):
        return event.text()
    delay = event.delay if isinstance(event, WindowRetried | StepRetried) else 0.0
    return f"warning: {event.text}" if isinstance(event, Warned) else retry_text(event, f" in {seconds(delay)}" if delay else "")


def doing_of(event: WindowRetried | StepRetried) -> str:
    """Return what is retried, and why, in one line."""
    what = f"window {event.window}" if isinstance(event, WindowRetried) else f"window {event.window}: {event.doing}"
    return f"{what} is retried ({event.reason.partition(chr(10))[0][:60]})"


def reason_of(reason: str) -> str:
    """Return the reason why an operator waits, to stand behind *waits*.

    >>> reason_of("for the records of lines"), reason_of("1 of 4 tasks, for a free slot")
    ('for the records of lines', '(1 of 4 tasks, for a free slot)')
    """
    return reason if not reason or reason.startswith("for ") else f"({reason})"


def work_left(event: OperatorProgress) -> list[str]:
    """Return what is left to read, and the time that it may take.

    >>> work_left(OperatorProgress(operators={}, backlog=3, backlog_bytes=5 << 20, remaining=7.2))
    ['3 items, 5 MiB left', 'about 7 s to go']
    >>> work_left(OperatorProgress(operators={}))
    []
    """
    items = counted(event.backlog, "item") if event.backlog else ""
    left = ", ".join(part for part in (items, size(event.backlog_bytes) if event.backlog_bytes else "") if part)
    is_known = event.remaining is not None and event.remaining >= 1
    return [*([f"{left} left"] if left else []), *([f"about {seconds(round(event.remaining or 0))} to go"] if is_known else [])]


def started(event: RunStarted) -> str:
    """Return the line for the start of a run."""
    next_window = f"resumes with window {event.first_window}" if event.first_window else "starts with window 0"
    slots = counted(event.slots, "slot")
    first = f"running: {slots}, {next_window}" + (f", Spark UI {event.ui}" if event.ui else "")
    return "\n".join([first, *event.telemetry])


def decided(windows: list[tuple[WindowDecided, WindowView]], sinks: Collection[str] = ()) -> str:
    """Return the figures of windows, with the rate from their plan to their decision. `sinks`: those that do not write files."""
    views = [view for _, view in windows]
    first, last = views[0].window, views[-1].window
    name = f"window {first}" if first == last else f"windows {first} to {last}"
    read = sum(view.bytes for view in views)
    planned = [view.planned for view in views if view.planned is not None]
    took = windows[-1][0].at - min(planned, default=windows[-1][0].at)
    parts = [f"{size(read)} read" if read else "", f"in {seconds(took)}" if planned else "", ""]
    if read and (speed := byte_rate(read, took)):
        parts[2] = f"({speed})"
    done = " ".join(part for part in parts if part)
    files, records = sum(view.files for view in views), sum(view.records for view in views)
    wrote = f"{counted(records, 'record')} in {counted(files, 'file')} written, {size(sum(view.written for view in views))}"
    return f"{name} decided: {done}" + (f"; {wrote}" if files else "") + _rows([event for event, _ in windows], sinks)


def _rows(windows: list[WindowDecided], sinks: Collection[str]) -> str:
    """Return the rows that go to sinks without files."""
    rows = Counter[str]()
    for window in windows:
        for name in sinks:
            figures = window.operators.get(name, {})
            rows[name] += int(figures.get("records_in", 0) - figures.get("errors", 0))
    return "; " + ", ".join(f"{counted(n, 'row')} to {name}" for name, n in rows.items()) if rows else ""


def work_of(event: WindowPlanned) -> str:
    """Return the work of a window in words."""
    items = counted(event.items, "work item")
    return f"{items}, {size(event.bytes)}" if event.bytes else items


def how_far(event: OperatorProgress, before: OperatorProgress | None) -> str:
    """Return how far a run is in one line: bytes read, with the rate since `before`, what is left, the busiest operator.

    >>> lines = {"records_in": 4, "records_out": 70, "bytes": 9 << 20, "errors": 0, "seconds": 3.0, "partitions": 2}
    >>> how_far(OperatorProgress(operators={"lines": lines, "keep": {"seconds": 1.0}}, running=2), None)
    '2 tasks at work, 9 MiB read; lines takes 75 % of the time'
    """
    read = _bytes(event)
    parts = [f"{counted(event.running, 'task')} at work" if event.running else event.waiting.get("", "no task at work")]
    if read:
        speed = byte_rate(max(0, read - _bytes(before)), event.at - before.at) if before is not None else ""
        parts.append(f"{size(read)} read" + (f" ({speed})" if speed else ""))
    text = ", ".join([*parts, *work_left(event)])
    total = sum(figures["seconds"] for figures in event.operators.values())
    slowest = max(event.operators, key=lambda name: event.operators[name]["seconds"], default="")
    return f"{text}; {slowest} takes {share(event.operators[slowest]['seconds'] / total)} of the time" if total else text


def _bytes(event: OperatorProgress) -> float:
    return sum(figures.get("bytes", 0) for figures in event.operators.values())


def share(fraction: float) -> str:
    """A fraction in percent.

    >>> share(0.4267)
    '42 %'
    """
    return f"{int(fraction * 100)} %"
