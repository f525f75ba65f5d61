"""Scans in a DAG: the same rows on both runners, however the files are cut and whoever reads which part."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from dagflow import DAG
from dagflow.testing import Collector, run_dag
from operators import FileSplitterInput, Filter, JsonLinesFormat, ScanReader


def rows_of(folder: Path, runner: str, **properties: Any) -> tuple[list[dict[str, Any]], Any]:
    seen = Collector[Any]()

    def populate(dag: DAG, conf: Any) -> None:
        splitter = dag.add_operator("splitter", FileSplitterInput([str(folder)], block_size=300))
        reader = dag.add_operator("reader", ScanReader(JsonLinesFormat(), **properties))
        some = dag.add_operator("some", Filter(pc.field("n") >= 10))
        keep = dag.add_operator("keep", seen)
        dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("batches", reader.batches, some.input)
        dag.add_stream("kept", some.output, keep.input)

    report = run_dag(populate, {}, runner=runner)
    return seen.records, report


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    source = tmp_path / "in"
    source.mkdir()
    for number in range(3):
        lines = [
            {"n": n, "name": f"row {n}", **({"late": n / 2} if number == 2 else {})} for n in range(number * 40, number * 40 + 40)
        ]
        (source / f"{number}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return source


@pytest.mark.parametrize("runner", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_all_files_have_the_schema_that_was_agreed_on(folder: Path, runner: str) -> None:
    rows, _ = rows_of(folder, runner)
    assert sorted(rows, key=lambda row: row["n"]) == [
        {"n": n, "name": f"row {n}", "late": n / 2 if n >= 80 else None} for n in range(10, 120)
    ]
