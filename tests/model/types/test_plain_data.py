from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow import FileBlockMetadata
from dagflow.errors import StateNotPlain
from dagflow.model.types.plain_data import decode, dumps, encode, loads

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["$bytes", "$$bytes", "$"]) | st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(PLAIN)
def test_plain_data_comes_back_as_it_was(value: Any) -> None:
    assert decode(loads(dumps(encode(value, "here")))) == value


@attrs.define
class Inner:
    numbers: list[int]
    data: bytes = b""


@attrs.define
class Outer:
    by_name: dict[str, Inner]
    maybe: Inner | None = None
    made: int = attrs.field(default=7, init=False)


@given(
    st.dictionaries(st.text(max_size=3), st.builds(Inner, st.lists(st.integers()), st.binary())),
    st.none() | st.builds(Inner, st.just([])),
)
def test_attrs_classes_come_back_by_their_types(by_name: dict[str, Inner], maybe: Inner | None) -> None:
    value = Outer(by_name, maybe)
    assert decode(loads(dumps(encode(value, "here"))), Outer) == value


def test_a_block_takes_one_line() -> None:
    block = FileBlockMetadata(1, "/ä\n", start=0, stop=5, file_length=9)
    data = dumps(encode(block, "block"))
    assert b"\n" not in data
    assert decode(loads(data), FileBlockMetadata) == block


@pytest.mark.parametrize(
    ("value", "got"),
    [
        ({1: 2}, "a dict with a key of type int"),
        ({"a": {"b": {3}}}, "a set"),
        ([object()], "a object"),
        (Inner([1, 2j]), "a complex"),  # type: ignore[list-item]
    ],
)
def test_what_is_not_plain_is_named_with_its_place(value: Any, got: str) -> None:
    with pytest.raises(StateNotPlain) as caught:
        encode(value, "State 'seen' of operator 'files'")
    assert str(caught.value) == (
        f"State 'seen' of operator 'files' holds {got}, which cannot be saved\n"
        "  help: keep None, bool, int, float, str, bytes, and lists, tuples, dicts with string keys, and attrs classes of these"
    )
