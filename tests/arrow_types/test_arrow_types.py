from __future__ import annotations

import re

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dagflow.arrow_types import is_wider, type_named, type_text, wider

TYPES = [
    *[pa.int64(), pa.float16(), pa.float32(), pa.float64(), pa.string(), pa.large_string(), pa.string_view(), pa.binary(3)],
    *[pa.date32(), pa.date64(), pa.time32("s"), pa.time64("us"), pa.duration("us"), pa.null(), pa.bool_()],
    *[pa.timestamp("us"), pa.timestamp("ns", "Europe/Berlin"), pa.decimal128(9, 2), pa.decimal256(40, -2)],
    *[pa.list_(pa.int8()), pa.large_list(pa.string()), pa.list_(pa.int8(), 3), pa.map_(pa.string(), pa.list_(pa.int8()))],
    pa.struct([pa.field("a b", pa.decimal128(4, 1), nullable=False), ("c", pa.map_(pa.string(), pa.int8()))]),
    *[pa.struct([("a:b", pa.int8())]), pa.list_(pa.field("e", pa.int8(), nullable=False)), pa.float32()],
    *[pa.struct([]), pa.dictionary(pa.int8(), pa.decimal128(3, 1), ordered=True)],
]


leaves = st.sampled_from(
    [
        *(pa.null(), pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32(), pa.uint64()),
        *(pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.date32(), pa.timestamp("us"), pa.timestamp("ms", "UTC")),
        *(pa.decimal128(10, 2), pa.decimal128(38, 10), pa.time64("us"), pa.duration("s")),
    ]
)
types = st.recursive(
    leaves,
    lambda inner: st.one_of(
        inner.map(pa.list_),
        st.dictionaries(st.text("abc d", min_size=1, max_size=3), inner, min_size=1, max_size=3).map(
            lambda fields: pa.struct(list(fields.items()))
        ),
        inner.map(lambda item: pa.map_(pa.string(), item)),
    ),
    max_leaves=5,
)


@given(types)
def test_the_text_of_a_type_names_it(kind: pa.DataType) -> None:
    assert type_named(type_text(kind)).equals(kind)


@given(types)
def test_arrows_own_spelling_names_a_type_too(kind: pa.DataType) -> None:
    """But for names with blanks around them, which need backquotes."""
    assume(not re.search(r"< |,  | :", str(kind)))
    assert type_named(str(kind)).equals(kind)


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_types_are_read_back_from_their_names(kind: pa.DataType) -> None:
    assert type_named(str(kind)) == kind


@given(types, types)
def test_wider_does_not_depend_on_the_order(one: pa.DataType, other: pa.DataType) -> None:
    def fields(kind: pa.DataType) -> object:
        """A type, the fields of structs in no order."""
        if pa.types.is_struct(kind):
            return frozenset((f.name, fields(f.type)) for f in kind)
        if pa.types.is_list(kind):
            return ("list", fields(kind.value_type))
        return kind

    assert fields(wider(one, other)) == fields(wider(other, one))


@given(types)
def test_wider_of_one_type_is_that_type(kind: pa.DataType) -> None:
    assert wider(kind, kind).equals(kind)
    assert wider(pa.null(), kind).equals(kind)


@given(types, types)
def test_wider_is_wide_enough_for_both(one: pa.DataType, other: pa.DataType) -> None:
    wide = wider(one, other)
    assert wider(wide, one).equals(wide)
    assert wider(wide, other).equals(wide)


@pytest.mark.parametrize(
    ("one", "other", "wide"),
    [
        ("int32", "int64", "int64"),
        ("uint32", "int8", "int64"),
        ("uint64", "int64", "string"),
        ("int64", "float64", "float64"),
        ("bool", "int64", "string"),
        ("date32", "timestamp[us]", "timestamp[us]"),
        ("timestamp[s]", "timestamp[ns]", "timestamp[ns]"),
        ("decimal128(10, 2)", "int64", "decimal128(22, 2)"),
        ("list<int64>", "list<null>", "list<int64>"),
        ("list<int64>", "int64", "string"),
        ("struct<a: int64>", "struct<a: float64, b: bool>", "struct<a: float64, b: bool>"),
    ],
)
def test_what_is_wide_enough(one: str, other: str, wide: str) -> None:
    assert type_text(wider(type_named(one), type_named(other))) == wide


@given(types, types)
def test_a_wider_type_is_never_the_narrower_one(one: pa.DataType, other: pa.DataType) -> None:
    assert not (is_wider(one, other) and is_wider(other, one))
    assert not is_wider(one, one)
