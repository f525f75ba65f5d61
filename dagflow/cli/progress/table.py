"""The lines of the live display: a table of operators that fits the terminal, whatever its size and the size of the DAG."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from rich.cells import cell_len, set_cell_size

from dagflow.cli.progress.words import reason_of, share
from dagflow.render.style import cut_middle, pad
from dagflow.render.words import counted, short, size
from dagflow.runtime.run_view import RunView

MIN_NAME, MAX_NAME = 12, 40  # cells
_HEADS = ("in", "out", "rate", "bytes", "rejected", "tasks", "time")
_DROPPED = ("bytes", "tasks", "out", "rejected", "time", "in")  # columns that go first where the terminal is narrow


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


def operator_lines(run: RunView) -> list[OperatorLine]:
    """Return the figures of all operators, in the order of the DAG as the run reports it."""
    if (last := run.progress) is None:
        return []
    before, is_working = run.recent[0], bool(run.open)
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
                rate=max(0.0, more / took) if took > 0 and is_working else 0.0,
                size=int(figures.get("bytes", 0)),
                errors=int(figures["errors"]),
                tasks=int(figures["partitions"]) if is_working else 0,
                share=figures["seconds"] / total if total else 0.0,
                waits=reason_of(last.waiting.get(name, "")) if is_working else "",
            )
        )
    return lines


def table_lines(operators: Sequence[OperatorLine], width: int, height: int) -> list[str]:
    """Return the table in at most so many cells and lines; empty where there is no room for it.

    Operators that do not fit are shown by module. What does not fit then is counted in the last line: first operators without
    tasks, then those that took the least time. The others stay in the order of the DAG.
    """
    rows = height - 1
    if rows < 1 or not operators:
        return []
    lines = by_module(operators, rows)
    left_out = 0
    if len(lines) > rows:
        rows = max(1, rows - 1)
        busiest = sorted(lines, key=lambda line: (line.tasks > 0, line.share, line.rate), reverse=True)[:rows]
        left_out = len(lines) - len(busiest)
        lines = [line for line in lines if line in busiest]
    heads = [head for head in _HEADS if head != "rejected" or any(line.errors for line in lines)]
    cells = [
        {
            "in": short(line.records_in),
            "out": short(line.records_out),
            "rate": f"{short(line.rate)}/s" if line.rate else "",
            "bytes": size(line.size) if line.size else "",
            "rejected": short(line.errors) if line.errors else "",
            "tasks": str(line.tasks) if line.tasks else "",
            "time": share(line.share),
        }
        for line in lines
    ]
    name = min(MAX_NAME, max(cell_len("operator"), *(cell_len(line.name) for line in lines)))
    widths = {head: max(len(head), *(len(row[head]) for row in cells)) for head in heads}
    for head in _DROPPED:
        if min(name, MIN_NAME) + sum(widths[each] + 2 for each in heads) > width and head in heads:
            heads.remove(head)
    name = max(1, min(name, width - sum(widths[head] + 2 for head in heads)))
    table = [set_cell_size("operator", name) + "".join(f"  {head:>{widths[head]}}" for head in heads)]
    table += [
        pad(cut_middle(line.name, name), name) + "".join(f"  {row[head]:>{widths[head]}}" for head in heads)
        for line, row in zip(lines, cells, strict=True)
    ]
    if left_out:
        table.append(_cut(f"and {counted(left_out, 'operator')} less busy", width).rstrip())
    return table[:height]


def wrapped(parts: Sequence[str], width: int, separator: str = " · ") -> list[str]:
    """Return parts in lines of so many cells.

    >>> wrapped(["window 0", "12 % read", "5 s"], 22)
    ['window 0 · 12 % read', '5 s']
    """
    lines: list[str] = []
    for part in parts:
        if lines and cell_len(longer := f"{lines[-1]}{separator}{part}") <= width:
            lines[-1] = longer
        else:
            lines.append(_cut(part, width).rstrip())
    return lines


def waiting_lines(operators: Sequence[OperatorLine], width: int, room: int) -> list[str]:
    """Return a line for each operator that waits, as many as there is room for."""
    return [_cut(f"{line.name} waits {line.waits}", width).rstrip() for line in operators if line.waits][: max(0, room)]


def by_module(operators: Sequence[OperatorLine], rows: int) -> list[OperatorLine]:
    """Return the operators, as many of them by module as it takes to fit into so many rows: the deepest modules first.

    A module shows the records that come into its first operator and go out of its last one; the rest is summed.
    """
    depth = max((line.name.count(".") for line in operators), default=0)
    lines = list(operators)
    while len(lines) > rows and depth > 0:
        groups: dict[str, list[OperatorLine]] = {}
        for line in operators:
            groups.setdefault(".".join(line.name.split(".")[:depth]), []).append(line)
        lines = [group[0] if len(group) == 1 else _joined(name, group) for name, group in groups.items()]
        depth -= 1
    return lines


def _joined(name: str, lines: Sequence[OperatorLine]) -> OperatorLine:
    return OperatorLine(
        name=f"{name} ({len(lines)})",
        records_in=lines[0].records_in,
        records_out=lines[-1].records_out,
        rate=max(line.rate for line in lines),
        size=max(line.size for line in lines),
        errors=sum(line.errors for line in lines),
        tasks=max(line.tasks for line in lines),
        share=sum(line.share for line in lines),
        waits=next((line.waits for line in lines if line.waits), ""),
    )


def _cut(text: str, width: int) -> str:
    """Return a text in exactly so many cells. Characters may take two."""
    return set_cell_size(text, width) if cell_len(text) <= width else f"{set_cell_size(text, max(0, width - 1))}…"
