"""docs/coming_from/apex.md: what it calls ours exists, and the names of others that people look for are there."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "coming_from" / "apex.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in PAGE.splitlines() if line.startswith("| ")]
OURS = sorted(set(re.findall(r"`((?:dagflow|operators)(?:\.\w+)+)", PAGE)))
SPELLED = "with these names in Python's spelling"


@pytest.mark.parametrize("name", OURS)
def test_what_is_ours_can_be_imported(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    assert hasattr(importlib.import_module(module), attribute)


def test_each_row_has_a_counterpart_or_a_reason() -> None:
    rows = [row for row in ROWS if not set(row[0]) <= {"-", " "} and row[1] != "here"]
    assert len(rows) > 80
    for row in rows:
        assert len(row) == 2, row
        assert "`" in row[1] or row[1].startswith(("none", "the driver", "half-open", "an example", "partial", "a function")), row


def test_names_in_our_spelling_are_those_of_the_class() -> None:
    for theirs, ours in (row for row in ROWS if SPELLED in row[-1]):
        cls = re.findall(r"`dagflow\.(\w+)`", ours)[0]
        fields = {field.name for field in getattr(importlib.import_module("dagflow"), cls).__attrs_attrs__}
        named = re.findall(r"`([a-z]\w+)`", theirs)
        assert {re.sub(r"([A-Z])", r"_\1", name).lower() for name in named} <= fields


NAMES = [
    "AbstractFileSplitter",
    "FileSplitterBase",
    "FileSplitterInput",
    "TimeBasedDirectoryScanner",
    "blocksThreshold",
    "idempotentStorageManager",
    "trigger",
    "AbstractBlockReader",
    "AbstractFSBlockReader",
    "AbstractFSLineReader",
    "AbstractFSReadAheadLineReader",
    "FSSliceReader",
    "Entity",
    "convertToRecord",
    "setupStream",
    "intervalMillis",
    "BatchedOperatorStats",
    "latencyMA",
    "PARTITION_PARALLEL",
    "StatelessPartitioner",
    "trySplitAtPosition",
    "getFractionConsumed",
    "setTableSchema",
    "isProjectionEmpty",
    "SetWatermark",
    "InputSlice",
]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_people_look_for_are_there(name: str) -> None:
    assert re.search(rf"\b{name}\b", PAGE)
