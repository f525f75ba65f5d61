from __future__ import annotations

import pyarrow as pa
import pytest

from dagflow.scan import to_type


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


def test_a_float_is_that_of_python() -> None:
    """Arrow calls its float of 32 bits so, which is what ledgers mean."""
    assert to_type("list<float>") == pa.list_(pa.float64())
    assert to_type("list<float32>") == pa.list_(pa.float32())
