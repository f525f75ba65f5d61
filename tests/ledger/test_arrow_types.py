from __future__ import annotations

import pyarrow as pa
import pytest

from dagflow.ledger import SchemaField
from dagflow.ledger.arrow_types import arrow_type_named, schema_of_fields

TYPES = [
    *[pa.int64(), pa.float16(), pa.float32(), pa.float64(), pa.string(), pa.large_string(), pa.string_view(), pa.binary(3)],
    *[pa.date32(), pa.date64(), pa.time32("s"), pa.time64("us"), pa.duration("us"), pa.null(), pa.bool_()],
    *[pa.timestamp("us"), pa.timestamp("ns", "Europe/Berlin"), pa.decimal128(9, 2), pa.decimal256(40, -2)],
    *[pa.list_(pa.int8()), pa.large_list(pa.string()), pa.list_(pa.int8(), 3), pa.map_(pa.string(), pa.list_(pa.int8()))],
    pa.struct([pa.field("a b", pa.decimal128(4, 1), nullable=False), ("c", pa.map_(pa.string(), pa.int8()))]),
    *[pa.struct([]), pa.dictionary(pa.int8(), pa.decimal128(3, 1), ordered=True)],
]


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_types_are_read_back_from_their_names(kind: pa.DataType) -> None:
    assert arrow_type_named(str(kind)) == kind


@pytest.mark.parametrize("name", ["", "text", "list<", "heap<item: int8>", "list<item: text>"])
def test_a_name_that_is_none(name: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        arrow_type_named(name)
    assert schema_of_fields([SchemaField(name="a", type=name)]) is None
