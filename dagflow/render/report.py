"""The report of a run, as the closing table and as JSON."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from dagflow.errors import DagflowError
from dagflow.errors.shown import visible, without_secrets
from dagflow.render.errors import each, error_block, error_json
from dagflow.render.style import LEAST, Style, cells, cut, cut_middle, table, wrap
from dagflow.render.words import byte_rate, count, counted, seconds, size
from dagflow.runtime.run_folder.reports import ExchangeFigures, OperatorFigures
from dagflow.runtime.run_report import ExpectationFigures, ReaderFigures, RunReport

VERSION = 1
MAX_RETRIES = 3
"""Retries that the closing table shows; the others are in the run's events."""
MAX_WARNINGS = 3
MAX_OPERATORS = 20
"""Operators in a table with times: the others took less."""
TIMED = 1.0
"""Seconds of operators, from which on their times are worth a column; and by which a task must exceed the others to be named."""
SKEWED = 1.5
"""Times the median that the slowest task must have taken to be named."""
_HEAD = ["operator", "records in", "records out", "dropped", "rejected", "bytes", "converted"]
_COPIED = ("output", "sink", "ledger", "run", "page", "Spark UI")  # rows that readers copy
_PLACE = re.compile(r", ([^,'\"()]+(?:, (?:at or after )?position [\d,]+)?)\)$")
"""The place at the end of a sample."""
_COLOURS = {"done": "green", "failed": "red", "interrupted": "yellow"}
_IN_COLUMNS = ("dropped", "bytes", "bytes_planned")  # counters that have a column


def report_text(report: RunReport, style: Style | None = None) -> str:
    """The closing table: a line an operator, then windows, files, bytes, time, output, and how it ended.

    Where operators took a second and more, the slowest comes first, with its share of their time.

    >>> from dagflow.runtime.run_folder.reports import OperatorFigures
    >>> from dagflow.runtime.run_report import RunReport
    >>> print(report_text(RunReport(application="demo", runner="local", status="done", windows=1, first_window=0, seconds=0.5,
    ...     operators={"keep": OperatorFigures(records_in=3, records_out=2)})))
    operator  records in  records out
    keep               3            2
    <BLANKLINE>
    demo: done
      windows  1 (number 0)
      time     500 ms
    """
    style = style or Style()
    report = visible(attrs.evolve(report, retries=_first_lines(report.retries), warnings=_first_lines(report.warnings)))
    blocks = []
    if any(figures != OperatorFigures() for figures in report.operators.values()):
        lines = _operators(report, style)
        blocks.append("\n".join([style.paint("bold", lines[0]), *lines[1:]]))
        notes = _notes(report, style)
        if notes:
            blocks.append("\n".join(notes))
    blocks.append("\n".join(_summary(report, style)))
    return "\n\n".join(blocks)


def failure_text(report: RunReport, style: Style | None = None) -> str:
    """Return the error that ended a run, as the launch has printed it, and how to read on; empty where none did.

    >>> from dagflow.runtime.run_report import RunReport
    >>> print(failure_text(RunReport(status="failed", error="no space is left", error_code="DF411")))
    error[DF411] no space is left
    <BLANKLINE>
    To read more about it: dagflow explain DF411
    """
    if report.status != "failed" or not report.error:
        return ""
    more = f"\n\nTo read more about it: dagflow explain {report.error_code}" if report.error_code else ""
    return f"{error_block(report.error_code, report.error, style or Style())}{more}"


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
    last: dict[str, Any] | None = None
    if isinstance(error, DagflowError):
        place = {"operator": None, "window": None, "path": None, "position": None, **each(error)[0].where_in_run}
        last = {**error_json(error)[0], **place}
    elif error is not None or report.error is not None:
        last = {
            "code": report.error_code,
            "class": type(error).__name__ if error is not None else None,
            "message": report.error or str(error),
        }
    fields = attrs.asdict(report, filter=lambda field, _: field.name != "error_code")
    return without_secrets({"v": VERSION, **fields, "error": last})


def _operators(report: RunReport, style: Style) -> list[str]:
    """The table of operators: in the order of the DAG, or timed, the slowest first. Columns without a value are left out."""
    total = sum(figures.seconds for figures in report.operators.values())
    is_timed = total >= TIMED
    slowest = report.slowest_first() if is_timed else list(report.operators.items())
    shown = [(name, figures) for n, (name, figures) in enumerate(slowest) if not is_timed or n < MAX_OPERATORS or figures.errors]
    rows = [_row(name, figures) for name, figures in shown]
    kept = [n for n in range(len(_HEAD)) if n < 3 or any(row[n] not in ("0", "-") for row in rows)]
    if not is_timed:
        return table([[row[n] for n in kept] for row in (_HEAD, *rows)], "l" + "r" * (len(kept) - 1), style)
    times = ["time", *(f"{seconds(each.seconds)} {100 * each.seconds / total:3.0f} %" for _, each in shown)]
    columns = [[row[0], time, *(row[n] for n in kept[1:])] for row, time in zip([_HEAD, *rows], times, strict=True)]
    lines = table(columns, "lr" + "r" * (len(kept) - 1), style)
    if len(shown) < len(slowest):
        lines.append(f"and {counted(len(slowest) - len(shown), 'operator')} that took less time: --json has all")
    return lines


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
            shown = f"{name}: {counted(figures.errors, 'record')} rejected" + (":" if figures.samples else "")
            lines.append(style.paint("yellow", shown))
            lines += [line for sample in figures.samples for line in _sample_lines(sample, style)]
            lines += [f"  and {missing:,} more"] if figures.samples and missing > 0 else []
    return lines


def _sample_lines(sample: str, style: Style) -> list[str]:
    """Return a sample that fits the terminal: if it is too long, the place of the record, at its end, has a line of its own."""
    match = _PLACE.search(sample)
    if style.width is None or cells(sample) + 2 <= style.width or match is None:
        return [style.cut(f"  {sample}")]
    what = cut(sample[: match.start()], style.width - 3)
    return [f"  {what})", f"    {cut_middle(match[1], style.width - 4)}"]


def _wrapped(rows: Sequence[list[str]], style: Style) -> list[list[str]]:
    """Return rows of which no sentence is wider than the terminal: it continues in its own column. What is copied stays whole."""
    if style.width is None:
        return list(rows)
    room = max(LEAST, style.width - 2 - max(len(label) for label, _ in rows) - 2)
    lines = []
    for label, text in rows:
        is_sentence = label not in _COPIED
        parts = wrap(text, room) if is_sentence else [text]
        lines += [[label if n == 0 else "", part] for n, part in enumerate(parts)]
    return lines


def _known(key: str, n: int, figures: OperatorFigures) -> bool:
    """Return whether a counter repeats a column, or is zero."""
    same = {"records": figures.records_out, "blocks": figures.records_in, "blocks_planned": figures.records_out}
    return n == 0 or key.endswith("_ms") or same.get(key) == n


def _summary(report: RunReport, style: Style) -> list[str]:
    status = style.paint(_COLOURS.get(report.status, "bold"), report.status)
    rows = [["windows", _windows(report)]]
    if report.later_launches:
        rows.append(["since", f"{counted(report.later_launches, 'launch')} found nothing new"])
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
    elif report.rebalancing and report.windows:
        rows.append(["work", f"not rebalanced: {report.rebalancing}"])
    rows += [["exchange", f"{port}: {_exchange(figures)}"] for port, figures in report.exchanges.items()]
    rows += [["expected", f"{name}: {_expectation(figures)}"] for name, figures in report.expectations.items()]
    names = {name: name.removesuffix(".current").removesuffix(".held") for name in report.held}
    waiting = [f"{names[name]}: {counted(held, 'change')}" for name, held in report.held.items()]
    rows += [["waiting", f"{text} for the next emission point"] for text in waiting]
    rows += [["retried", text] for text in report.retries[:MAX_RETRIES]]
    if (more := len(report.retries) - MAX_RETRIES) > 0:
        rows.append(["", f"and {more:,} more, in the events of the run folder"])
    rows += _warnings(report)
    if report.outputs and report.windows:
        rows.append(["written", f"{counted(report.files, 'file')}, {size(report.bytes_written)}"])
    if report.seconds:
        rows.append(["time", seconds(report.seconds)])
    rows += _times(report)
    rows += [["output", folder] for folder in report.outputs]
    rows += [["sink", f"{name}: {counted(own.rows, 'row')} to {own.destination}"] for name, own in report.sinks.items()]
    for folder, head in report.ledgers.items():
        rows.append(["ledger", f"entry {head}" + (f" of {folder}" if len(report.ledgers) > 1 else "")])
    if report.run_folder and report.outputs and report.runner:  # a launch that was refused before leaves nothing there
        rows.append(["run", report.run_folder])
        rows.append(["page", f"dagflow report {shlex.quote(report.outputs[0])} --html page.html"])
    if report.ui:
        rows.append(["Spark UI", f"{report.ui} (while the run lasted)"])
    return [f"{style.paint('bold', report.application)}: {status}", *(f"  {line}" for line in table(_wrapped(rows, style), "ll"))]


def _times(report: RunReport) -> list[list[str]]:
    """The rows about the time of tasks, where that is worth a line: its purposes, and the slowest task."""
    purposes = attrs.asdict(report.times)
    total = sum(purposes.values())
    if total < TIMED:
        return []
    words = {"read": "reading", "compute": "computing", "write": "writing", "wait": "waiting"}
    parts = [f"{100 * part / total:.0f} % {words[name]}" for name, part in purposes.items() if part >= total / 200]
    rows = [["tasks", f"{counted(report.tasks, 'task')}, {seconds(total)} together: {', '.join(parts)}"]]
    skew = report.skew
    if skew is not None and skew.excess >= TIMED and skew.seconds >= SKEWED * skew.median:
        median = f"the median of its {skew.tasks} tasks is {seconds(skew.median)}"
        rows.append(["slowest", f"task {skew.task} of window {skew.window}: {seconds(skew.seconds)}; {median}"])
    return rows


def _warnings(report: RunReport) -> list[list[str]]:
    lines = [text.partition("\n")[0] for text in report.warnings]
    rows = [["warning", text] for text in lines[:MAX_WARNINGS]]
    return (
        [*rows, ["", f"and {len(lines) - MAX_WARNINGS:,} more, in the events of the run folder"]]
        if lines[MAX_WARNINGS:]
        else rows
    )


def _first_lines(texts: Sequence[str]) -> list[str]:
    return [text.partition("\n")[0] for text in texts]


def _readers(figures: ReaderFigures) -> str:
    """`1/4/16 (min/now/max)`, how the number has changed, and what all have done, those that are gone included."""
    text = f"{figures.min_readers}/{figures.now}/{figures.max_readers} (min/now/max)"
    if not figures.changes:
        return text
    done = [counted(figures.counters[each], each[:-1]) for each in ("tasks", "blocks", "records") if each in figures.counters]
    text = f"{text}, {counted(figures.changes, 'change')}, from {figures.lowest} to {figures.highest}"
    return f"{text}; together {', '.join(done)}" if done else text


def _expectation(figures: ExpectationFigures) -> str:
    """Return how many records a limit has counted, and the verdicts on windows."""
    verdicts = ", ".join(f"{counted(n, 'window')} {status}" for status, n in figures.windows.items())
    return f"{count(figures.rejected)} of {counted(figures.records, 'record')} rejected; {verdicts}"


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
