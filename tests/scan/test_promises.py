"""Promises of scans over any data: projection changes no value, agreement does not depend on who holds which rows."""

from __future__ import annotations

import json
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dagflow.scan.schema.projection import ColumnPath
from dagflow.testing import scan_table
from operators import JsonLinesFormat, ScanReader
from tests.tiers import examples

scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(max_size=3)
of_one_kind = st.one_of(
    st.integers(-9, 9),
    st.text(max_size=2),
    st.lists(st.integers(0, 3), max_size=2),
    st.fixed_dictionaries({"x": st.integers(0, 9)}),
)
PATHS = ["n", "m", "m.x", "m.l", "m.l[0]", "m.l[1]", "l", "l[0]", "l[2]", "s", "`a.b`", "filename"]
rows = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "n": st.none() | st.integers(-9, 9),
            "m": st.none() | st.fixed_dictionaries({"x": st.integers(0, 9), "l": st.lists(st.floats(0, 1), max_size=2)}),
            "l": st.none() | st.lists(st.none() | st.text(max_size=2), max_size=3),
            "s": st.text(max_size=3),
            "a.b": st.booleans(),
        },
    ),
    min_size=1,
    max_size=6,
)
FULL = {"n": 1, "m": {"x": 1, "l": [0.5]}, "l": ["x"], "s": "x", "a.b": True}


def written(folder: str, name: str, values: list[dict[str, Any]]) -> Path:
    path = Path(folder, name)
    path.write_text("".join(json.dumps(value) + "\n" for value in values))
    return path


def part(row: dict[str, Any], asked: ColumnPath) -> Any:
    value: Any = row.get(asked.root)
    for step in asked.steps:
        if value is None or (isinstance(step, int) and step >= len(value)):
            return None
        value = value[step]
    return value


@settings(deadline=None, max_examples=examples(40))
@given(rows, st.lists(st.sampled_from(PATHS), unique=True, max_size=5), st.none() | st.integers(1, 60))
def test_what_is_asked_for_is_what_the_rows_hold(values: list[Any], columns: list[str], block_size: int | None) -> None:
    values = [FULL, *values]
    with tempfile.TemporaryDirectory() as folder:
        path = written(folder, "f.jsonl", values)
        table = scan_table(ScanReader(JsonLinesFormat()), path, columns=columns, block_size=block_size)
    assert table.column_names == [name.strip("`") for name in columns]
    assert table.num_rows == len(values)
    for number, name in enumerate(columns):
        expected = ["f.jsonl"] * len(values) if name == "filename" else [part(row, ColumnPath.of(name)) for row in values]
        assert table.column(number).to_pylist() == expected


@settings(deadline=None, max_examples=examples(40))
@given(
    st.lists(st.dictionaries(st.sampled_from("abc"), scalars | of_one_kind, max_size=3), max_size=7),
    st.lists(st.integers(0, 7), max_size=3),
)
def test_agreement_does_not_depend_on_which_file_holds_which_rows(values: list[dict[str, Any]], cuts: list[int]) -> None:
    bounds = [0, *sorted(cuts), len(values)]
    with tempfile.TemporaryDirectory() as folder:
        whole = scan_table(ScanReader(JsonLinesFormat()), written(folder, "whole", values))
        parts = [written(folder, str(number), values[start:stop]) for number, (start, stop) in enumerate(pairwise(bounds))]
        split = scan_table(ScanReader(JsonLinesFormat()), parts)
    assert split.schema == whole.schema
    assert split.to_pylist() == whole.to_pylist()
