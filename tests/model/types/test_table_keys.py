"""Keys of tables by type: they are equal where Python's values are, and a key may have several rows."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow import KeyedTable, TableKeys
from dagflow.model.types import table_keys
from dagflow.model.types.keyed_rows import groups_of
from dagflow.model.types.keys import group_of

LARGE = [2.0**63, -(2.0**63), 2.0**64, math.nan, math.inf, 0.5, -0.0]
COLUMNS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int8(), st.integers(-2, 2)),
    (pa.int64(), st.integers(-2, 2) | st.sampled_from([-(1 << 63), (1 << 63) - 1])),
    (pa.uint64(), st.integers(0, 2) | st.sampled_from([1 << 63, (1 << 63) - 1])),
    (pa.bool_(), st.booleans()),
    (pa.float32(), st.sampled_from([*LARGE, 1.0, 2.0])),
    (pa.float64(), st.sampled_from([*LARGE, 1.0, 2.0])),
    (pa.decimal128(22, 1), st.sampled_from([Decimal(1), Decimal("0.5"), Decimal(1 << 63), Decimal(-(1 << 63))])),
    (pa.string(), st.sampled_from(["", "a", "1"])),
    (pa.large_string(), st.sampled_from(["", "a", "1"])),
    (pa.binary(), st.sampled_from([b"", b"a", b"1"])),
]


def arrays() -> st.SearchStrategy[pa.Array]:
    return st.sampled_from(COLUMNS).flatmap(
        lambda column: st.lists(column[1] | st.none(), max_size=6).map(lambda values: pa.array(values, column[0]))
    )


def same(one: Any, other: Any) -> bool:
    is_nan = [isinstance(each, float) and math.isnan(each) for each in (one, other)]
    return all(is_nan) or (one is not None and other is not None and one == other)


@given(arrays(), arrays())
def test_keys_are_equal_where_values_are_in_python(one: pa.Array, other: pa.Array) -> None:
    sides = [TableKeys.of_columns(pa.record_batch({"a": each})) for each in (one, other)]
    numbers, keys = TableKeys.distinct(sides)
    values = [*one.to_pylist(), *other.to_pylist()]
    flat = np.concatenate(numbers).tolist()
    assert [[a >= 0 and a == b for a in flat] for b in flat] == [[same(x, y) for x in values] for y in values]
    assert sorted({number for number in flat if number >= 0}) == list(range(len(keys)))
    groups = np.zeros(len(keys), np.int64)
    for part in keys.parts:
        assert (np.diff(part.codes.astype(object)) >= 0).all()
        groups[part.places] = groups_of(part.codes)
    assert [groups[number] for number in flat if number >= 0] == [group_of(value) for value in values if value is not None]


@pytest.mark.parametrize("bits", [48, 2])
@given(data=st.data())
def test_a_key_has_several_rows(bits: int, data: st.DataObject) -> None:
    """Also where many keys and numbers have one code."""
    names = data.draw(st.sampled_from([[0, 1, -7, 1 << 40], ["", "a", "b"], [0.5, 1.0, math.nan]]))
    row = st.tuples(st.sampled_from(names), st.integers(0, 3))
    changes = data.draw(st.lists(st.tuples(st.lists(row, max_size=6), st.booleans()), max_size=6))
    table, content = KeyedTable({"n": "int64"}), dict[Any, int]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_keys, "HASH", (1 << bits) - 1)

        def keys_of(rows: list[Any]) -> TableKeys:
            column = pa.array([name for name, _ in rows], pa.array(names).type)
            keys = TableKeys.of_columns(pa.record_batch({"a": column}))
            return keys.numbered(np.array([number for _, number in rows], np.int64))

        for at, (rows, is_put) in enumerate(changes):
            if is_put:
                table.put(keys_of(rows), {"n": pa.array([at] * len(rows), pa.int64())})
                content |= dict.fromkeys(rows, at)
            else:
                table.remove(keys_of(rows))
                content = {row: value for row, value in content.items() if row not in rows}
            asked = [(name, number) for name in names for number in range(4)]
            assert table.lookup(keys_of(asked)).column("n").to_pylist() == [content.get(row) for row in asked]


@given(st.lists(st.binary(max_size=2) | st.none(), max_size=8), st.booleans())
def test_different_keys_may_have_one_code(values: list[bytes | None], one_code: bool) -> None:
    groups = np.zeros(len(values), np.int64)
    with pytest.MonkeyPatch.context() as patch:
        if one_code:
            patch.setattr(table_keys, "codes_with_groups", lambda keys, _: np.zeros(len(keys), np.uint64))
        keys = TableKeys.of_bytes(pa.array(values, pa.binary()), groups)
    (numbers,), distinct = TableKeys.distinct([keys])
    assert len(distinct) == len({value for value in values if value is not None})
    assert [[a == b for a in numbers] for b in numbers] == [[x == y for x in values] for y in values]
    taken = keys.take(np.arange(len(values))[::-1])
    assert TableKeys.distinct([taken])[0][0].tolist() == TableKeys.distinct([keys])[0][0].tolist()[::-1] or one_code
