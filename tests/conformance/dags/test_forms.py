"""Neighbours that handle the same form convert nothing; the counters say so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from dagflow import Operator, ReaderRecord
from dagflow.testing import Collector, run_dag
from operators import Filter, FlatMap, Map, RecordWriter
from tests.conformance.apps import by_function, chain, lines_in, vectorised


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "lines.txt"
    path.write_text("a b\n.c\nd\n")
    return path


def converted(report: Any) -> dict[str, int]:
    return {name: figures.converted for name, figures in report.operators.items() if figures.converted}


def test_batches_all_the_way(runner: str, source: Path, tmp_path: Path) -> None:
    middle = [vectorised(), Map[ReaderRecord[str], str](pc.field("record")), Filter[str](pc.field("value") != "")]
    report = run_dag(chain(source, *middle, sink=RecordWriter(str(tmp_path / "out"))), runner=runner)
    assert converted(report) == {}
    assert sorted(lines_in(tmp_path / "out")) == [b"a b", b"d"]


def test_records_all_the_way(runner: str, source: Path, tmp_path: Path) -> None:
    middle = [by_function(), FlatMap(lambda line: line.record.split()), Filter(str.isalpha)]
    report = run_dag(chain(source, *middle, sink=RecordWriter(str(tmp_path / "out"))), runner=runner)
    assert converted(report) == {}
    assert sorted(lines_in(tmp_path / "out")) == [b"a", b"b", b"d"]


@pytest.mark.parametrize(
    ("middle", "where"),
    [
        ([vectorised(), by_function()], {"m1": 2}),
        ([by_function(), vectorised()], {"m1": 2}),
        ([vectorised(), by_function(), vectorised()], {"m1": 2, "m2": 2}),
    ],
)
def test_only_where_one_side_cannot(source: Path, middle: list[Operator], where: dict[str, int]) -> None:
    seen = Collector[ReaderRecord[str]]()
    report = run_dag(chain(source, *middle, sink=seen))
    assert [line.record for line in seen.records] == ["a b", "d"]
    assert {name: n for name, n in converted(report).items() if name != "sink"} == where
