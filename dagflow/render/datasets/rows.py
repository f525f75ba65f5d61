"""Rows of a dataset, as a table and as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from dagflow.errors.shown import visible
from dagflow.ledger.dataset.first_rows import FirstRows
from dagflow.render.style import LEAST, Style, cells, table
from dagflow.render.values import cell, plain
from dagflow.render.words import count, counted

VERSION = 1
_GAP = 2


def rows_text(rows: FirstRows, dataset: str, style: Style, window: int | None = None) -> str:
    """Return the number of rows, the schema, and the rows as a table with as many columns as fit."""
    schema, shown = rows.table.schema, rows.table.num_rows
    lines = [style.cut(f"{visible(dataset)}: {_number(rows, window)}")]
    columns = ", ".join(f"{cell(field.name)} {field.type}" for field in schema)
    lines += textwrap.wrap(f"schema: {columns}", style.width or 10**6, subsequent_indent="  ") if columns else []
    if shown and schema.names:
        lines += ["", *_table(rows, style)]
    if shown < rows.total:
        lines.append(style.paint("dim", f"… {counted(rows.total - shown, 'more row')} (-n 0 shows all)"))
    return "\n".join(lines)


def rows_json(rows: FirstRows, dataset: str, window: int | None = None) -> dict[str, Any]:
    """Return the same as plain data; `v` is the version of the form."""
    from dagflow.arrow_types import held

    return {
        "v": VERSION,
        "dataset": dataset,
        "window": window,
        "total": rows.total,
        "first": rows.first,
        "schema": [{"name": field.name, "type": str(field.type)} for field in rows.table.schema],
        "rows": [plain(row) for row in held.rows(rows.table)],
    }


def _number(rows: FirstRows, window: int | None) -> str:
    shown = rows.table.num_rows
    of = "" if window is None else f" of window {window}"
    if not rows.total:
        return f"no rows{of}"
    if shown < rows.total:
        return f"{count(shown)} of {counted(rows.total, 'row')}{of}"
    return f"{counted(shown, 'row')}{of}"


def _table(rows: FirstRows, style: Style) -> list[str]:
    import pyarrow.types as t

    from dagflow.arrow_types import held

    columns = [[cell(field.name), *map(cell, held.objects(rows.table.column(at)))] for at, field in enumerate(rows.table.schema)]
    align = "".join(
        "r" if t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind) else "L" for kind in rows.table.schema.types
    )
    fit = _fitting(columns, align, style.width)
    first, *rest = table([list(row) for row in zip(*columns[:fit], strict=True)], align[:fit], style)
    lines = [style.paint("bold", first), *rest]
    if fit < len(columns):
        names = ", ".join(column[0] for column in columns[fit:])
        hint = f"… {counted(len(columns) - fit, 'more column')} (--columns shows the ones that you name): {names}"
        lines += textwrap.wrap(hint, style.width or 10**6, subsequent_indent="  ")
    return lines


def _fitting(columns: Sequence[Sequence[str]], align: str, width: int | None) -> int:
    """Return how many columns fit a width, at least one. Numbers are never cut, other values to a few cells."""
    if width is None:
        return len(columns)
    used = -_GAP
    for number, (column, how) in enumerate(zip(columns, align, strict=True)):
        widest = max(map(cells, column))
        used += _GAP + (widest if how == "r" else min(widest, LEAST))
        if used > width:
            return max(1, number)
    return len(columns)
