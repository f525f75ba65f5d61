"""A window that is decided, and that a sink refuses for ever: what it costs to leave it out, and leaving it out.

The sink then publishes the window without any rows, so that it knows its number, and the run resumes with the next one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dagflow.model.operator.base import Operator
from dagflow.model.operator.sink import Sink
from dagflow.runtime.run_folder.reports import OperatorFigures
from dagflow.runtime.run_folder.window_log import Decision, Rejection, WindowLog
from dagflow.runtime.windows.errors import WindowNotRejectable
from dagflow.runtime.windows.sinks import staged_for


def rejection_of(
    log: WindowLog,
    decision: Decision,
    operators: Mapping[str, Operator],
    application: str,
    launch: str = "",
    now: float = 0.0,
) -> Rejection:
    """Return what is lost if the sinks that have not published a window leave it out.

    A sink that cannot say whether it has the window counts as lacking it. Files of output folders are published always.
    """
    rows: dict[str, int] = {}
    published = sorted({file.operator for file in decision.files})
    for name, operator in operators.items():
        if not isinstance(operator, Sink) or not decision.staged.get(name):
            continue
        try:
            is_published = operator.is_published(staged_for(name, decision, application, log))
        except Exception:  # noqa: BLE001  # its store may be gone for ever
            is_published = False
        if is_published:
            published.append(name)
        else:
            figures = decision.operators.get(name, OperatorFigures())
            rows[name] = figures.records_in - figures.errors
    return Rejection(window=decision.window, rows=rows, published=published, launch=launch, rejected_at=now)


def remedy(rejection: Rejection) -> str:
    """Return the help for a launch that cannot publish a decided window."""
    lost = ", ".join(f"{rows:,} row{'s' * (rows != 1)} for {sink!r}" for sink, rows in rejection.rows.items())
    lines = [
        f"  help: window {rejection.window} is decided, and each launch tries to publish it. If nothing else helps, leave it",
        f"        out: launch with --reject-window {rejection.window}. That loses {lost}, and the report says so",
    ]
    if rejection.published:
        lines.append(f"        {', '.join(map(repr, rejection.published))} will have the window all the same")
    lines.append("        The states of operators keep what they have made of its rows")
    return "\n".join(lines)


def reject(log: WindowLog, window: int, undone: Sequence[Decision], rejection: Rejection | None) -> Rejection:
    """Record that the sinks that have not published a window leave it out. Raises WindowNotRejectable."""
    if (known := log.read_rejection(window)) is not None:
        return known
    if rejection is None or not rejection.rows:
        waiting = undone[0].window if undone else None
        raise WindowNotRejectable(window=window, waiting=waiting, run_folder=log.store.url, is_published=rejection is not None)
    return log.reject(rejection)
