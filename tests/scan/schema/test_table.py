from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from dagflow.scan import Column, Drift, TableSchema
from dagflow.scan.agreement import spread


@pytest.mark.parametrize(
    "given",
    [
        "a: int64, b: list<struct<x: string, y: decimal128(5, 2)>>",
        {"a": "int64", "b": pa.list_(pa.struct([("x", pa.string()), ("y", pa.decimal128(5, 2))]))},
        [("a", "int"), ("b", Column("list<struct<x: str, y: decimal(5, 2)>>"))],
        pa.schema([("a", pa.int64()), ("b", pa.list_(pa.struct([("x", pa.string()), ("y", pa.decimal128(5, 2))])))]),
        TableSchema.of("a: int64, b: list<struct<x: string, y: decimal128(5, 2)>>"),
    ],
)
def test_schemas_are_given_in_many_forms(given: Any) -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.list_(pa.struct([("x", pa.string()), ("y", pa.decimal128(5, 2))])))])
    assert TableSchema.of(given).arrow == schema


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("a int64", "'a int64' is not a column: write NAME: TYPE"),
        ("a: int64, a: string", "twice"),
        ("a: what", "names no type"),
        (5, "not a schema"),
    ],
)
def test_what_is_no_schema(given: Any, problem: str) -> None:
    with pytest.raises((ValueError, TypeError), match=problem):
        TableSchema.of(given)


@pytest.mark.parametrize(("kind", "value"), [("missing", "widen"), ("extra", "null"), ("changed", "ignore")])
def test_policies_are_checked(kind: str, value: str) -> None:
    with pytest.raises(ValueError, match=rf"^{kind} is '{value}', but must be '\w+'.* or '\w+'$"):
        Drift(**{kind: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("most", [1, 2, 3, 10, 99])
def test_files_that_are_looked_at_are_spread(most: int) -> None:
    paths = [str(n) for n in range(30)]
    found = spread(paths, most)
    assert len(found) == len(set(found)) == min(most, 30)
    assert found == sorted(found, key=int)
    assert most == 1 or (found[0], found[-1]) == ("0", "29")
