from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.scan import to_type, type_text, wider

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
    assert to_type(type_text(kind)).equals(kind)


@pytest.mark.parametrize(
    "text", ["", "strin", "list<", "list<int64>>", "struct<a>", "decimal128(10)", "int64 int64", "timestamp[x]"]
)
def test_what_names_no_type_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"names no type|unit"):
        to_type(text)


def test_a_zone_may_stand_alone() -> None:
    assert to_type("timestamp[us, UTC]") == to_type("timestamp[us, tz=UTC]") == pa.timestamp("us", "UTC")
    assert to_type("timestamp[ms, Europe/Stockholm]") == pa.timestamp("ms", "Europe/Stockholm")


@pytest.mark.parametrize(("name", "hint"), [("integer", "int64"), ("VARCHAR", "string"), ("boolean", "bool")])
def test_names_of_other_systems_get_a_hint(name: str, hint: str) -> None:
    with pytest.raises(ValueError, match=f"'{name}' is unknown; did you mean '{hint}'"):
        to_type(name)


def test_a_misspelt_type_gets_a_hint() -> None:
    with pytest.raises(ValueError, match="'strng' is unknown; did you mean 'string'"):
        to_type("list<strng>")


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
    assert type_text(wider(to_type(one), to_type(other))) == wide
