"""The reference by values that were worked out by hand; DuckDB checks it in every random DAG."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tests.laws import reference
from tests.laws.cases import Case, Source, Target
from tests.laws.columns import NAN, Column, Rows
from tests.laws.nodes import Node
from tests.laws.oracle import compared
from tests.laws.trial import smaller


@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        ("count", [None, 1, 1], 2),
        ("sum", [0.1, 0.2, 0.3, 1e16, -1e16], 0.6),
        ("sum", [None, None], None),
        ("sum", [float("inf"), float("-inf")], NAN),
        ("sum", [1e308, 1e308], float("inf")),
        ("sum", [Decimal("0.10"), Decimal("0.20")], Decimal("0.30")),
        ("mean", [2**53, 2**53 + 1, 2**53 + 2], float(2**53 + 1)),
        ("min", [NAN, 2.0, None], 2.0),
        ("max", [NAN, 2.0, None], NAN),
    ],
)
def test_aggregates(function: str, values: list[Any], expected: Any) -> None:
    result = reference.aggregated(function, values)
    assert result == expected or result is expected


def test_nan_and_nulls_come_last_in_either_direction() -> None:
    rows = [(None,), (1.0,), (NAN,), (2.0,)]
    assert reference.in_order(rows, [(0, False)]) == [(1.0,), (2.0,), (NAN,), (None,)]
    assert reference.in_order(rows, [(0, True)]) == [(2.0,), (1.0,), (NAN,), (None,)]


LEFT, RIGHT = Rows([(1, "a"), (1, "a"), (None, "n")]), Rows([(1, "x"), (2, "y"), (None, "z")])


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("inner", [(1, "a", "x")] * 2),
        ("left", [(1, "a", "x"), (1, "a", "x"), (None, "n", None)]),
        ("right", [(1, "a", "x"), (1, "a", "x"), (2, None, "y"), (None, None, "z")]),
        ("full", [(1, "a", "x"), (1, "a", "x"), (None, "n", None), (2, None, "y"), (None, None, "z")]),
        ("semi", [(1, "a")] * 2),
        ("anti", [(None, "n")]),
    ],
)
def test_joins(how: str, expected: list[Any]) -> None:
    assert reference.joined(LEFT, RIGHT, [0], [0], how, (2, 2)) == Rows(expected)


def test_differences_are_counted() -> None:
    assert compared("out", Rows([(1,), (1,), (2,)]), Rows([(1,), (3,)])) == [
        "out: missing 1 times (1,)",
        "out: missing 1 times (2,)",
        "out: too many 1 times (3,)",
    ]


def test_a_case_that_is_wrong_gets_smaller() -> None:
    """Here the value 7 is what is wrong."""
    columns = (Column("k", "int"), Column("v", "int"))
    files = (((1, 2), (3, 7), (4, 4)), ((5, 5),))
    source = Source(columns, "parquet", files, launches=(1, 0), block_size=10)
    nodes = (Node("distinct", ("s0",), {"keys": (), "combiner": True}), Node("distinct", ("n0.output",), {"keys": ("v",)}))
    case = Case((source,), nodes, (Target("s0", "csv"), Target("n1.output", "collector")), deaths={0: 5})
    small = smaller(case, lambda each: any(7 in row for row in each.expected()[each.targets[0].stream]))
    assert (small.sources[0].files, small.sources[0].launches, small.deaths) == ((((3, 7),),), (0,), {})
    assert small.nodes == (Node("distinct", ("s0",), {"keys": ("v",)}),)
