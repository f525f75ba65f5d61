from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from dagflow.arrow_types import wider
from dagflow.ledger import SchemaField
from dagflow.ledger.columns import is_widened, schema_of_fields

VALUES = [
    *[pa.array([1, None], kind) for kind in (pa.int8(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32(), pa.uint64())],
    *[pa.array([1, None], kind) for kind in (pa.float32(), pa.float64(), pa.decimal128(10, 2), pa.decimal128(22, 4))],
    *[pa.array([0, None], kind) for kind in (pa.date32(), pa.timestamp("s"), pa.timestamp("us"), pa.timestamp("ms", "UTC"))],
    *[pa.array([True, None]), pa.array(["a", None]), pa.nulls(2), pa.array([0, None], pa.time64("us"))],
]
"""A value and none, of types that files have."""


@pytest.mark.parametrize("values", VALUES, ids=lambda v: str(v.type))
def test_the_ledger_takes_what_scans_widen_to_and_reads_old_files_by_it(values: pa.Array, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": values}), tmp_path / "old.parquet")
    for other in VALUES:
        wide = wider(values.type, other.type)
        assert is_widened(str(values.type), str(wide)) is not wide.equals(values.type)
        read = ds.dataset(tmp_path / "old.parquet", schema=pa.schema([("a", wide)])).to_table()["a"]
        assert read.type == wide
        assert read.null_count == values.null_count


@pytest.mark.parametrize(
    ("before", "after"),
    [
        *[
            ("int64", "int32"),
            ("string", "int64"),
            ("string", "binary"),
            ("binary", "string"),
            ("fixed_size_binary[3]", "string"),
        ],
        *[("list<item: int32>", "list<item: int64>"), ("list<item: int32>", "string"), ("struct<a: int8>", "struct<a: int16>")],
        *[("uint64", "int64"), ("int64", "int64"), ("what", "string"), ("int64", "what")],
    ],
)
def test_what_does_not_follow_a_type(before: str, after: str) -> None:
    assert not is_widened(before, after)


@pytest.mark.parametrize("name", ["", "text", "list<", "heap<item: int8>", "list<item: text>"])
def test_a_name_that_is_none(name: str) -> None:
    assert schema_of_fields([SchemaField(name="a", type=name)]) is None
