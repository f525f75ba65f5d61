from __future__ import annotations

import decimal
import uuid
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.scan import to_type, type_text
from dagflow.scan.schema.plain import plain, plain_type

LAYOUTS = [
    pa.dictionary(pa.int8(), pa.string()),
    pa.string_view(),
    pa.json_(),
    pa.struct([("x", pa.dictionary(pa.int8(), pa.string()))]),
    pa.list_(pa.string_view()),
    pa.large_list(pa.string_view()),
    pa.list_(pa.string(), 2),
    pa.list_view(pa.string()),
    pa.large_list_view(pa.string_view()),
    pa.list_view(pa.struct([("x", pa.list_(pa.dictionary(pa.int8(), pa.string()), 2))])),
    pa.map_(pa.string(), pa.string_view()),
]


def of_type(kind: Any, words: Any) -> Any:
    """Values of a type, made of words."""
    if isinstance(kind, pa.StructType):
        return st.none() | st.fixed_dictionaries({field.name: of_type(field.type, words) for field in kind})
    if pa.types.is_fixed_size_list(kind):
        return st.none() | st.lists(of_type(kind.value_type, words), min_size=kind.list_size, max_size=kind.list_size)
    if pa.types.is_map(kind):
        return st.none() | st.lists(st.tuples(st.just("k"), words), max_size=2)
    if pa.types.is_nested(kind):
        return st.none() | st.lists(of_type(kind.value_type, words), max_size=3)
    return words


@pytest.mark.parametrize("kind", LAYOUTS, ids=str)
@given(data=st.data())
def test_no_value_changes(kind: Any, data: Any) -> None:
    values = data.draw(st.lists(of_type(kind, st.none() | st.sampled_from(["", "a", "bc"])), max_size=6))
    begin = data.draw(st.integers(0, len(values)))
    made = plain(as_array(values, kind)[begin:])
    made.validate(full=True)
    assert made.to_pylist() == values[begin:]
    assert made.type.equals(plain_type(kind))


def as_array(values: list[Any], kind: Any) -> Any:
    """Values of a type: of Arrow 26, dictionaries within others are made by a cast only."""
    if pa.types.is_struct(kind):
        part = as_array([None if value is None else value["x"] for value in values], kind[0].type)
        return pa.StructArray.from_arrays(
            [part], fields=list(kind), mask=pa.array([value is None for value in values], pa.bool_())
        )
    return pa.array(values, kind)


def test_small_decimals_and_extensions() -> None:
    assert plain(pa.array([decimal.Decimal("1.5"), None], pa.decimal64(5, 2))).type == pa.decimal128(5, 2)
    assert plain(pa.array([uuid.UUID(int=1).bytes], pa.uuid())).to_pylist() == [uuid.UUID(int=1).bytes]


@pytest.mark.parametrize("kind", LAYOUTS, ids=str)
def test_plain_types_have_names(kind: pa.DataType) -> None:
    assert to_type(type_text(plain_type(kind))).equals(plain_type(kind))
    assert to_type(kind).equals(plain_type(kind))


def test_plain_columns_are_not_copied() -> None:
    values = pa.array([[1], None])
    assert plain(values) is values
