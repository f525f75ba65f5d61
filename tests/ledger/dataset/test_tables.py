"""Lines of JSON are read with the types that the ledger has."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from dagflow.ledger.dataset.tables import json_table

KINDS = pa.schema(
    {
        "time": pa.time64("us"),
        "of": pa.struct({"day": pa.date32(), "times": pa.list_(pa.time32("s"))}),
        "map": pa.map_(pa.string(), pa.list_(pa.timestamp("us", "UTC"))),
        "pair": pa.list_(pa.int64(), 2),
        "price": pa.decimal128(9, 2),
        "reals": pa.large_list(pa.float64()),
        "word": pa.dictionary(pa.int8(), pa.string()),
        "span": pa.duration("ms"),
        "large": pa.uint64(),
    }
)
LINES = (
    b'{"time":"11:00:00.5","of":{"day":"2026-01-01","times":["11:00:00",null]},"map":{"k":["2026-01-01T00:00:00Z"],"e":null},'
    b'"pair":[1,2],"price":3.10,"reals":[1,2.5],"word":"q","span":5,"large":18446744073709551615,"other":1}'
)
ROW = {
    "time": datetime.time(11, 0, 0, 500_000),
    "of": {"day": datetime.date(2026, 1, 1), "times": [datetime.time(11), None]},
    "map": {"k": [datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)], "e": None},
    "pair": [1, 2],
    "price": Decimal("3.10"),
    "reals": [1.0, 2.5],
    "word": "q",
    "span": datetime.timedelta(milliseconds=5),
    "large": 2**64 - 1,
}


@pytest.mark.parametrize("names", [KINDS.names, ["time", "price", "large"], ["of"], ["map", "pair"]])
def test_values_of_all_types(names: list[str]) -> None:
    table = json_table(LINES + b'\n{"of":null}\n{}\n', pa.schema([KINDS.field(name) for name in names]))
    table.validate(full=True)
    nothing = dict.fromkeys(names)
    assert table.to_pylist(maps_as_pydicts="strict") == [{name: ROW[name] for name in names}, nothing, nothing]


def test_a_value_of_another_type() -> None:
    with pytest.raises(pa.ArrowInvalid, match="noon is not a value of the type time32"):
        json_table(b'{"a": "noon"}\n', pa.schema({"a": pa.time32("s")}))
