"""The report of a run, as the closing table and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from dagflow.errors import DagflowError
from dagflow.errors.shown import visible, without_secrets
from dagflow.render.errors import each, error_json
from dagflow.render.style import Style, table
from dagflow.render.words import byte_rate, count, counted, seconds, size
from dagflow.runtime.run_folder.reports import ExchangeFigures, OperatorFigures
from dagflow.runtime.run_report import ReaderFigures, RunReport

VERSION = 1
MAX_RETRIES = 3
"""Retries that the closing table shows; the others are in the run's events."""
_COLOURS = {"done": "green", "failed": "red", "interrupted": "yellow"}
_IN_COLUMNS = ("dropped", "bytes", "bytes_planned")  # counters that have a column


def report_text(report: RunReport, style: Style | None = None) -> str:
    """The closing table: a line an operator, then windows, files, bytes, time, output, and how it ended.

    >>> from dagflow.runtime.run_folder.reports import OperatorFigures
    >>> from dagflow.runtime.run_report import RunReport
    >>> print(report_text(RunReport(application="demo", runner="local", status="done", windows=1, first_window=0, seconds=0.5,
    ...     operators={"keep": OperatorFigures(records_in=3, records_out=2)})))
    operator  records in  records out  dropped  errors  bytes  converted
    keep               3            2        0       0      -          0
    <BLANKLINE>
    demo: done
      windows  1 (number 0)
      time     500 ms
    """
    style = style or Style()
    report = visible(attrs.evolve(report, retries=[text.partition("\n")[0] for text in report.retries]))
    blocks = []
    if report.operators:
        head = ["operator", "records in", "records out", "dropped", "errors", "bytes", "converted"]
        lines = table([head, *(_row(name, figures) for name, figures in report.operators.items())], "lrrrrrr", style)
        blocks.append("\n".join([style.paint("bold", lines[0]), *lines[1:]]))
        notes = _notes(report, style)
        if notes:
            blocks.append("\n".join(notes))
    blocks.append("\n".join(_summary(report, style)))
    return "\n\n".join(blocks)


_PHASES = {
    "application": "loading, checking and planning it",
    "session": "until the runner takes work",
    "first_task": "planning the first window; on Spark, loading classes and starting workers",
    "windows": "reading, processing, deciding",
    "roll_forward": "publishing files, writing the ledger",
    "end": "closing the session",
}


def timings_text(timings: Mapping[str, float]) -> str:
    """The time of a launch by phase.

    >>> print(timings_text({"session": 3.9, "windows": 0.5}))
    session  3.9 s   until the runner takes work
    windows  500 ms  reading, processing, deciding
    """
    rows = [[name.replace("_", " "), seconds(value), _PHASES.get(name, "")] for name, value in timings.items()]
    return "\n".join(line.rstrip() for line in table(rows, "lrl"))


def report_json(report: RunReport, error: BaseException | None = None) -> dict[str, Any]:
    """The report as plain data; `v` is the version of the form.

    `error` is what ended the run: code, class and message, and as far as they are known operator, window, path and position.
    """
    found: dict[str, Any] | None = None
    if isinstance(error, DagflowError):
        place = {"operator": None, "window": None, "path": None, "position": None, **each(error)[0].where_in_run}
        found = {**error_json(error)[0], **place}
    elif error is not None or report.error is not None:
        found = {
            "code": None,
            "class": type(error).__name__ if error is not None else None,
            "message": report.error or str(error),
        }
    return without_secrets({"v": VERSION, **attrs.asdict(report), "error": found})


def _row(name: str, figures: OperatorFigures) -> list[str]:
    size_of = figures.counters.get("bytes", figures.counters.get("bytes_planned"))
    numbers = (figures.records_in, figures.records_out, figures.counters.get("dropped", 0), figures.errors)
    return [name, *(count(n) for n in numbers), "-" if size_of is None else size(size_of), count(figures.converted)]


def _notes(report: RunReport, style: Style) -> list[str]:
    """Samples of errors, and counters without a column, by operator."""
    lines = []
    for name, figures in report.operators.items():
        counters = [(key, n) for key, n in figures.counters.items() if key not in _IN_COLUMNS and not _known(key, n, figures)]
        others = [f"{key.replace('_', ' ')} {count(n)}" for key, n in counters]
        if others:
            lines.append(style.cut(f"{name}: {', '.join(others)}"))
        if figures.errors:
            missing = figures.errors - len(figures.samples)
            shown = f"{name}: {counted(figures.errors, 'record')} skipped with errors" + (":" if figures.samples else "")
            lines.append(style.paint("yellow", shown))
            lines += [style.cut(f"  {sample}") for sample in figures.samples]
            lines += [f"  and {missing:,} more"] if figures.samples and missing > 0 else []
    return lines


def _known(key: str, n: int, figures: OperatorFigures) -> bool:
    """Return whether a counter repeats a column, or is zero."""
    same = {"records": figures.records_out, "blocks": figures.records_in, "blocks_planned": figures.records_out}
    return n == 0 or key.endswith("_ms") or same.get(key) == n


def _summary(report: RunReport, style: Style) -> list[str]:
    status = style.paint(_COLOURS.get(report.status, "bold"), report.status)
    rows = [["windows", _windows(report)]]
    read = sum(figures.counters.get("bytes", 0) for figures in report.operators.values())
    records = sum(figures.records_out for figures in report.operators.values() if "bytes" in figures.counters)
    if read:
        speed = byte_rate(read, report.seconds)
        rows.append(["read", f"{size(read)}, {counted(records, 'record')}" + (f" ({speed})" if speed else "")])
    rows += [["readers", f"{name}: {_readers(figures)}"] for name, figures in report.readers.items()]
    if report.rebalanced:
        times = "once" if report.rebalanced == 1 else f"{report.rebalanced:,} times"
        how_much = f" ({size(report.rebalanced_bytes)})" if report.rebalanced_bytes else ""
        rows.append(["work", f"rebalanced {times}{how_much}"])
    elif report.rebalancing:
        rows.append(["work", f"not rebalanced: {report.rebalancing}"])
    rows += [["exchange", f"{port}: {_exchange(figures)}"] for port, figures in report.exchanges.items()]
    rows += [["retried", text] for text in report.retries[:MAX_RETRIES]]
    if (more := len(report.retries) - MAX_RETRIES) > 0:
        rows.append(["", f"and {more:,} more, in the events of the run folder"])
    if report.outputs:
        rows.append(["written", f"{counted(report.files, 'file')}, {size(report.bytes_written)}"])
    rows.append(["time", seconds(report.seconds)])
    rows += [["output", folder] for folder in report.outputs]
    for folder, head in report.ledgers.items():
        rows.append(["ledger", f"entry {head}" + (f" of {folder}" if len(report.ledgers) > 1 else "")])
    if report.run_folder and report.outputs:
        rows.append(["run", report.run_folder])
    if report.ui:
        rows.append(["Spark UI", f"{report.ui} (while the run lasted)"])
    return [f"{style.paint('bold', report.application)}: {status}", *(f"  {line}" for line in table(rows, "ll"))]


def _readers(figures: ReaderFigures) -> str:
    """`1/4/16 (min/now/max)`, how the number has changed, and what all have done, those that are gone included."""
    text = f"{figures.min_readers}/{figures.now}/{figures.max_readers} (min/now/max)"
    if not figures.changes:
        return text
    done = [counted(figures.counters[each], each[:-1]) for each in ("tasks", "blocks", "records") if each in figures.counters]
    text = f"{text}, {counted(figures.changes, 'change')}, from {figures.lowest} to {figures.highest}"
    return f"{text}; together {', '.join(done)}" if done else text


def _exchange(figures: ExchangeFigures) -> str:
    """Return how many records crossed an exchange, and the keys with a large share of them."""
    combined = f" of {count(figures.before)}, combined" if figures.records != figures.before else ""
    text = f"{counted(figures.records, 'record')}{combined} ({size(figures.bytes)})"
    hot = [f"{key} {100 * n / figures.before:.0f} %" for key, n in figures.hot().items()]
    return f"{text}; hottest keys: {', '.join(hot)}" if hot else text


def _windows(report: RunReport) -> str:
    if not report.windows:
        return "0 (nothing new)" if report.status == "done" else "0"
    first = report.first_window or 0
    last = first + report.windows - 1
    return f"1 (number {first})" if report.windows == 1 else f"{report.windows:,} (numbers {first} to {last})"
