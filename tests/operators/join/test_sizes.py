"""Bytes of rows, beside what Arrow says of each row on its own."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.join.sizes import portions, row_bytes

TEXT = st.none() | st.text(max_size=9)
VALUES: dict[str, tuple[Any, Any]] = {
    "text": (pa.string(), TEXT),
    "large text": (pa.large_string(), TEXT),
    "bytes": (pa.binary(), st.none() | st.binary(max_size=9)),
    "views": (pa.string_view(), TEXT),
    "lists": (pa.list_(pa.string()), st.none() | st.lists(TEXT, max_size=3)),
    "large lists": (pa.large_list(pa.int64()), st.none() | st.lists(st.integers(0, 9), max_size=3)),
    "maps": (pa.map_(pa.string(), pa.string()), st.none() | st.dictionaries(st.text(max_size=3), TEXT, max_size=3).map(list)),
    "structs": (pa.struct({"a": pa.string(), "b": pa.int64()}), st.none() | st.fixed_dictionaries({"a": TEXT, "b": st.none()})),
    "numbers": (pa.int64(), st.none() | st.integers(0, 9)),
}


def characters(value: Any) -> int:
    """The number of bytes of text in a value."""
    if isinstance(value, str | bytes):
        return len(value.encode()) if isinstance(value, str) else len(value)
    if isinstance(value, dict):
        return sum(map(characters, value.values()))
    return sum(map(characters, value)) if isinstance(value, list | tuple) else 0


@pytest.mark.full
@pytest.mark.parametrize("name", VALUES)
def test_the_text_of_each_row_counts(name: str) -> None:
    kind, values = VALUES[name]

    @given(st.lists(values, min_size=1, max_size=6), st.integers(0, 5))
    def hold(rows: list[Any], start: int) -> None:
        if name == "maps":
            rows = [None if row is None else [(key, str(key)) for key in row] for row in rows]
        whole = pa.array(rows, kind)
        part = whole.slice(start)
        found = row_bytes([part], len(part)).tolist()
        assert [size >= characters(row) for size, row in zip(found, part.to_pylist(), strict=True)] == [True] * len(part)
        if name not in ("structs", "numbers"):
            assert found == row_bytes([whole], len(whole)).tolist()[start:]
            assert all(size <= characters(row) + 50 for size, row in zip(found, part.to_pylist(), strict=True))

    hold()


@given(st.lists(st.integers(0, 9), max_size=12), st.integers(1, 12))
def test_portions_are_as_large_as_they_may_be(sizes: list[int], most: int) -> None:
    runs = [sizes[each] for each in portions(np.array(sizes, np.int64), most)]
    assert list(itertools.chain(*runs)) == sizes
    assert all(sum(run) <= most or len(run) == 1 for run in runs)
    assert all(sum(run) + following[0] > most for run, following in itertools.pairwise(runs))
