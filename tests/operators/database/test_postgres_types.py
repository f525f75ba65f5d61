"""Types of columns, in both directions."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from operators.database.postgres_types import arrow_type, postgres_type

SAME = [
    pa.bool_(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.decimal128(20, 3),
    pa.string(),
    pa.binary(),
    pa.date32(),
    pa.time64("us"),
    pa.timestamp("us"),
    pa.timestamp("us", "UTC"),
    pa.list_(pa.float64()),
    pa.list_(pa.string()),
]


@pytest.mark.parametrize("kind", SAME, ids=str)
def test_types_that_come_back_as_they_were_written(kind: Any) -> None:
    written = postgres_type(kind)
    assert written is not None
    assert arrow_type(written) == kind


WIDER = {
    pa.int8(): pa.int16(),
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
    pa.null(): pa.string(),
    pa.large_string(): pa.string(),
    pa.timestamp("s", "Asia/Tokyo"): pa.timestamp("us", "UTC"),
    pa.dictionary(pa.int8(), pa.string()): pa.string(),
}


@pytest.mark.parametrize("kind", WIDER, ids=str)
def test_types_that_come_back_as_the_next_one(kind: Any) -> None:
    assert arrow_type(postgres_type(kind) or "") == WIDER[kind]


@pytest.mark.parametrize(
    "kind",
    ["numeric", "numeric(50,2)", "numeric(3,5)", "interval", "time with time zone", "money", "date[]", "bytea[]"],
)
def test_types_that_are_not_read(kind: str) -> None:
    assert arrow_type(kind, "U") is None


@pytest.mark.parametrize(("kind", "category"), [("character varying(20)", "S"), ("shop.mood", "E"), ("uuid", "U")])
def test_types_that_are_read_as_text(kind: str, category: str) -> None:
    assert arrow_type(kind, category) == pa.string()


def test_nested_values_have_no_type_of_their_own() -> None:
    assert postgres_type(pa.struct({"a": pa.int64()})) is None
    assert postgres_type(pa.list_(pa.list_(pa.int64()))) is None
