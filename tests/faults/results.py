"""Results that change with each file of the input: rows are corrected and taken back. Each is also a function of all files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import attrs
import pyarrow.compute as pc

from dagflow import DAG
from operators import Deduplicate, Filter, GroupBy, HashJoin, TopN, agg
from tests.faults.place import Files, Row

Added = tuple[Any, Any]
"""The input port of some operators, and the output port of the last one."""


@attrs.frozen
class Result:
    """A result: its columns with their types, those that identify a row, and the rows for the files of the input.

    Attributes:
        add: adds its operators to a DAG, under a name, and returns the port that takes the input, and the one of the results.
    """

    columns: dict[str, Callable[[Any], Any]]
    keys: tuple[str, ...]
    add: Callable[[DAG, str], Added]
    expected: Callable[[Files], Counter[Any]]


def _newest(dag: DAG, name: str) -> Added:
    newest = dag.add_operator(f"newest_{name}", Deduplicate[Any](by="id", keep="last", order_by="val"))
    return newest.input, newest.output


def _live(dag: DAG, name: str) -> Added:
    """Add what takes an id back whose newest value is among those that the second file brings for ids of the first one."""
    port, rows = _newest(dag, name)
    live = dag.add_operator(f"live_{name}", Filter[Any]((pc.field("val") < 100) | (pc.field("val") >= 106)))
    dag.add_stream(f"newest_rows_{name}", rows, live.input)
    return port, live.output


def _totals(dag: DAG, name: str) -> Added:
    totals = dag.add_operator(f"totals_{name}", GroupBy("key", n=agg.count(), most=agg.max("val")))
    return totals.input, totals.output


def _totals_of_live(dag: DAG, name: str) -> Added:
    (port, rows), (into, totals) = _live(dag, name), _totals(dag, name)
    dag.add_stream(f"live_rows_{name}", rows, into)
    return port, totals


def _joined(dag: DAG, name: str) -> Added:
    """Add a join of the rows that stand with the totals of their keys: both sides change in one window."""
    (port, rows), (into, totals) = _live(dag, name), _totals(dag, name)
    joined: Any = dag.add_operator(f"joined_{name}", HashJoin[Any, Any, Any]("key"))
    dag.add_stream(f"live_rows_{name}", rows, into, joined.left)
    dag.add_stream(f"totals_rows_{name}", totals, joined.right)
    return port, joined.output


def _left_joined(dag: DAG, name: str) -> Added:
    """Add a join whose right side comes with the third file: rows without a partner are taken back then."""
    (port, rows), (into, totals) = _live(dag, name), _totals(dag, name)
    late = dag.add_operator(f"late_{name}", Filter[Any](pc.field("val") >= 200))
    columns = "key: string, n: int64, most: int64"
    joined: Any = dag.add_operator(f"joined_{name}", HashJoin[Any, Any, Any]("key", how="left", right_columns=columns))
    dag.add_stream(f"live_rows_{name}", rows, late.input, joined.left)
    dag.add_stream(f"late_rows_{name}", late.output, into)
    dag.add_stream(f"totals_rows_{name}", totals, joined.right)
    return port, joined.output


def _top(dag: DAG, name: str) -> Added:
    top = dag.add_operator(f"top_{name}", TopN[Any](2, "val", by="key"))
    port, rows = _live(dag, name)
    dag.add_stream(f"live_rows_{name}", rows, top.input)
    return port, top.output


def newest(files: Files) -> list[Row]:
    """Return the row of each id with the largest value."""
    return list({row[0]: row for row in sorted((row for rows in files for row in rows), key=lambda row: row[2])}.values())


def live(files: Files) -> list[Row]:
    """Return the newest rows that are not taken back."""
    return [row for row in newest(files) if not 100 <= row[2] < 106]


def totals(rows: list[Row]) -> dict[str, tuple[int, int]]:
    """Return how many rows each key has, and the largest value."""
    return {key: (len(values := [row[2] for row in rows if row[1] == key]), max(values)) for key in {row[1] for row in rows}}


def _totals_of(rows: list[Row]) -> Counter[Any]:
    return Counter((key, *each) for key, each in totals(rows).items())


def _joined_of(rows: list[Row]) -> Counter[Any]:
    of = totals(rows)
    return Counter((*row, *of[row[1]]) for row in rows)


def _left_joined_of(rows: list[Row]) -> Counter[Any]:
    of = totals([row for row in rows if row[2] >= 200])
    return Counter((*row, *of.get(row[1], (None, None))) for row in rows)


def _top_of(rows: list[Row]) -> Counter[Any]:
    keys = {row[1] for row in rows}
    return Counter(row for key in keys for row in sorted((row for row in rows if row[1] == key), key=lambda row: -row[2])[:2])


def _integer_or_none(value: Any) -> int | None:
    return None if value is None else int(value)


_ROW: dict[str, Callable[[Any], Any]] = {"id": int, "key": str, "val": int}
_TOTAL: dict[str, Callable[[Any], Any]] = {"key": str, "n": int, "most": int}

RESULTS: dict[str, Result] = {
    "newest": Result(_ROW, ("id",), _newest, lambda files: Counter(newest(files))),
    "live": Result(_ROW, ("id",), _live, lambda files: Counter(live(files))),
    "totals": Result(_TOTAL, ("key",), _totals, lambda files: _totals_of([row for rows in files for row in rows])),
    "totals_of_live": Result(_TOTAL, ("key",), _totals_of_live, lambda files: _totals_of(live(files))),
    "joined": Result({**_ROW, "n": int, "most": int}, ("id",), _joined, lambda files: _joined_of(live(files))),
    "left_joined": Result(
        {**_ROW, "n": _integer_or_none, "most": _integer_or_none},
        ("id",),
        _left_joined,
        lambda files: _left_joined_of(live(files)),
    ),
    "top": Result(_ROW, ("id",), _top, lambda files: _top_of(live(files))),
}
"""The results by name."""
