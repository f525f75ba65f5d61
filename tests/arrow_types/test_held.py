"""The values that text and Python hold of Arrow's types: the table, against what Arrow and Python make of its edges."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest

from dagflow.arrow_types.held import not_held, why_not_held

DAY = 86_400
FIRST, LAST = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31


def of(integers: list[int | None], kind: pa.DataType) -> pa.Array:
    return pa.array(integers, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)


def mask(column: Any, form: Any) -> list[bool]:
    wrong = not_held(column, form)
    return [False] * len(column) if wrong is None else wrong.to_pylist()


UNITS = {"s": 1, "ms": 10**3, "us": 10**6}
EDGES: list[tuple[pa.DataType, int, int]] = [
    (pa.date32(), FIRST, LAST),
    (pa.date64(), FIRST * DAY * 1000, LAST * DAY * 1000),
    *(
        (pa.timestamp(unit, zone), FIRST * DAY * n, (LAST + 1) * DAY * n - 1)
        for unit, n in UNITS.items()
        for zone in (None, "UTC")
    ),
    *((pa.time32(unit), 0, DAY * UNITS[unit] - 1) for unit in ("s", "ms")),
    (pa.time64("us"), 0, DAY * 10**6 - 1),
]


@pytest.mark.parametrize(("kind", "least", "greatest"), EDGES, ids=lambda each: str(each))
def test_the_edges_of_times(kind: pa.DataType, least: int, greatest: int) -> None:
    step = DAY * 1000 if kind == pa.date64() else 1
    within, beyond = of([least, None, greatest], kind), [of([each], kind) for each in (least - step, greatest + step)]
    assert mask(within, "text") == mask(within, "Python") == [False] * 3
    assert pa.array(within.to_pylist(), kind).equals(within)
    assert all("out of range" not in text and text[0] != "-" for text in within.cast(pa.string()).drop_null().to_pylist())
    for form in ("text", "Python"):
        assert [mask(each, form) for each in beyond] == [[True], [True]]


def test_durations_have_a_text_and_no_object_where_python_has_none() -> None:
    days = datetime.timedelta.max.days
    column = of([days * DAY, (days + 1) * DAY, -(2**63), None], pa.duration("s"))
    assert mask(column, "text") == [False] * 4
    assert mask(column, "Python") == [False, True, True, False]


def test_what_python_would_change() -> None:
    assert mask(of([1000, 1001], pa.time64("ns")), "Python") == [False, True]
    assert mask(of([1000, 1001], pa.time64("ns")), "text") == [False, False]
    assert mask(of([-(2**63), 0], pa.timestamp("ns")), "Python") == [True, False]  # pandas' NaT
    assert mask(of([1], pa.date64()), "text") == [True]


def test_the_local_time_counts_in_python() -> None:
    last = of([(LAST + 1) * DAY - 1], pa.timestamp("s", "Asia/Tokyo"))
    assert mask(last, "text") == [False]  # text is in UTC
    assert mask(last, "Python") == [True]
    with pytest.raises(OverflowError):
        last.to_pylist()


FAR = of([0, 2**60, None], pa.timestamp("us"))
NESTED: dict[str, Any] = {
    "struct": pa.StructArray.from_arrays([FAR, pa.array([1, 2, 3])], ["at", "n"]),
    "list": pa.ListArray.from_arrays([0, 1, 2, 2], FAR),
    "map": pa.MapArray.from_arrays([0, 1, 2, 2], pa.array(["a", "b"]), FAR.slice(0, 2)),
    "key of a map": pa.MapArray.from_arrays([0, 1, 2, 2], FAR.slice(0, 2), pa.array(["a", "b"])),
    "dictionary": FAR.dictionary_encode(),
    "struct in a list": pa.ListArray.from_arrays([0, 1, 2, 2], pa.StructArray.from_arrays([FAR], ["at"])),
}


@pytest.mark.parametrize("kind", NESTED)
def test_values_within_others(kind: str) -> None:
    column = NESTED[kind]
    assert mask(column, "text") == mask(column, "Python") == [False, True, False]
    assert [mask(column.slice(at, 1), "text") for at in range(3)] == [[False], [True], [False]]
    assert str(2**60) in why_not_held(column, "text")


def test_a_null_struct_hides_what_lies_under_it() -> None:
    hidden = pa.StructArray.from_arrays([FAR], ["at"], mask=pa.array([False, True, False]))
    assert mask(hidden, "text") == [False] * 3
    assert mask(pa.chunked_array([FAR, FAR]), "Python") == [False, True, False] * 2
