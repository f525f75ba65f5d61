"""Pairs by Arrow's engine, beside what Python says of each pair of keys."""

from __future__ import annotations

import datetime
from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators.join import at_once
from operators.join.at_once import pairs_at_once, rows_at_once
from operators.join.change import KINDS, How
from tests.tiers import examples

DAY = datetime.date(2026, 1, 1)
VALUES: dict[str, tuple[Any, Any]] = {
    "int8": (pa.int8(), [1, 2, -3]),
    "int64": (pa.int64(), [1, 2, -3]),
    "text": (pa.string(), ["", "a", "aa"]),
    "bytes": (pa.binary(), [b"", b"a", b"aa"]),
    "days": (pa.date32(), [DAY, DAY + datetime.timedelta(1)]),
    "decimals": (pa.decimal128(9, 2), [Decimal("1.00"), Decimal("-0.50")]),
    "booleans": (pa.bool_(), [False, True]),
}


def pairs_of(how: How, left: list[Any], right: list[Any]) -> Counter[tuple[int | None, int | None]]:
    """Return the pairs of a join of keys, which match where none of their values is null."""
    matches = [(a, b) for a, one in enumerate(left) for b, other in enumerate(right) if one == other and None not in one]
    kind, with_left, with_right = KINDS[how], {a for a, _ in matches}, {b for _, b in matches}
    found: list[tuple[int | None, int | None]] = list(matches) if kind.pairs else []
    if kind.left is not None:
        found += [(a, None) for a in range(len(left)) if (a in with_left) == kind.left]
    if kind.right:
        found += [(None, b) for b in range(len(right)) if b not in with_right]
    return Counter(found)


@pytest.mark.parametrize("how", KINDS)
@given(st.data())
@settings(max_examples=examples(50))
def test_pairs_are_those_of_equal_keys(how: How, data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=2))
    key = st.tuples(*(st.none() | st.sampled_from(VALUES[name][1]) for name in names))
    left, right = (data.draw(st.lists(key, min_size=1, max_size=12)) for _ in range(2))
    sides = [
        pa.RecordBatch.from_arrays(
            [pa.array([row[place] for row in rows], VALUES[name][0]) for place, name in enumerate(names)],
            names=[f"{place}" for place in range(len(names))],
        )
        for rows in (left, right)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(at_once, "MAX_PAIRS", 3)
        pairs = pairs_at_once(how, *sides)
        assert pairs is not None
        found = [pair for rows, partners in pairs for pair in zip(rows.to_pylist(), partners.to_pylist(), strict=True)]
    assert Counter(found) == pairs_of(how, left, right)

    tables = [pa.Table.from_batches([side]).append_column("n", [pa.array(range(side.num_rows), pa.int64())]) for side in sides]
    rows = rows_at_once(how, *tables, sides[0].schema.names, sides[1].schema.names)
    assert (rows is None) == (how in ("right", "full"))
    joined = [row for columns in rows or () for row in zip(*(column.to_pylist() for column in columns), strict=True)]
    assert all(row[: len(names)] == left[row[len(names)]] for row in joined)
    if rows is not None:
        assert Counter((*row[len(names) :], None)[:2] for row in joined) == Counter(found)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (pa.array([1.0]), pa.array([1.0])),  # -0.0 equals 0.0, but not for the engine
        (pa.array([1]), pa.array([True])),
        (pa.array(["a"]), pa.array([b"a"])),
        (pa.array([Decimal("1.0")]), pa.array([Decimal("1.00")])),
        (pa.array([], pa.int64()), pa.array([1])),
        (pa.array([None]), pa.array([None])),
    ],
)
def test_other_keys_are_left_to_their_codes(left: pa.Array, right: pa.Array) -> None:
    sides = [pa.RecordBatch.from_arrays([column], names=["a"]) for column in (left, right)]
    assert pairs_at_once("inner", *sides) is None


def test_columns_that_the_engine_does_not_carry_are_left_to_the_numbers_of_rows() -> None:
    plain, nested = pa.table({"a": [1]}), pa.table({"a": [1], "b": [[2]]})
    assert rows_at_once("inner", plain, nested, ["a"], ["a"]) is None
    assert rows_at_once("inner", nested, plain, ["a"], ["a"]) is None


def test_so_are_rows_that_would_be_large_together() -> None:
    wide = pa.table({"a": [1, 2], "text": ["x" * 10_000, "y"]})
    assert rows_at_once("inner", wide, wide.rename_columns(["a", "other"]), ["a"], ["a"]) is None


def test_so_are_keys_with_many_rows_on_both_sides() -> None:
    many, few = (pa.record_batch({"a": pa.repeat(1, count)}) for count in (at_once.MAX_BYTES // (16 << 15) + 1, 2))
    assert pairs_at_once("inner", many, many) is None
    pairs = pairs_at_once("inner", many, few)
    assert pairs is not None
    assert sum(len(rows) for rows, _ in pairs) == 2 * many.num_rows
