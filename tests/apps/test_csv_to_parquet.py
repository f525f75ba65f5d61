"""apps/csv_to_parquet: files of drifting columns become Parquet, and what cannot be read stands beside it, on both runners."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from dagflow.ledger import read_dataset
from dagflow.testing import run_dag

APP = str(Path(__file__).parents[2] / "apps" / "csv_to_parquet")
FILES = {
    "2024.csv": 'id,country,note\n1,se,"two\nlines, ""quoted"""\n2,no,\n',
    "2025.csv": "country,id,amount\nse,3,1.5\nno,4,2\nse,many,3\n",
    "2026.csv": 'id,country,amount,note\n5,se,"2,5",x\n6,"no\n',
    "empty.csv": "",
    "header.csv": "id,country\n",
}


def rows_of(output: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = read_dataset(str(output)).to_table().to_pylist()
    return sorted(rows, key=lambda row: row["id"])


def launch(source: Path, tmp_path: Path, runner: str, **settings: Any) -> Any:
    return run_dag(
        APP,
        {
            "input": str(source),
            "output": str(tmp_path / "out"),
            "rejects": str(tmp_path / "rejects"),
            "schema": "id: int64, amount: double",
            "partition_by": "country",
            "block_size": 20,
            **settings,
        },
        runner=runner,
    )


def test_drifting_files_become_parquet_with_rejects_beside_it(runner: str, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    for name, text in FILES.items():
        (source / name).write_text(text)
    launch(source, tmp_path, runner)
    assert rows_of(tmp_path / "out") == [
        {"id": 1, "amount": None, "note": 'two\nlines, "quoted"', "country": "se"},
        {"id": 2, "amount": None, "note": None, "country": "no"},
        {"id": 3, "amount": 1.5, "note": None, "country": "se"},
        {"id": 4, "amount": 2.0, "note": None, "country": "no"},
    ]
    rejected = [json.loads(line) for path in (tmp_path / "rejects").glob("part-*") for line in path.read_text().splitlines()]
    found = sorted((Path(row["file_path"]).name, row["position"], row["line"], row["column"], row["raw"]) for row in rejected)
    assert found == [
        ("2025.csv", 34, 4, "id", "se,many,3"),
        ("2026.csv", 23, 2, "amount", '5,se,"2,5",x'),
        ("2026.csv", 36, 3, None, '6,"no'),
    ]
    assert all(row["reason"] for row in rejected)


def test_columns_that_come_later_begin_in_later_files(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    (source / "1.csv").write_text("id,country\n1,se\n")
    launch(source, tmp_path, "local")
    (source / "2.csv").write_text("id,country,colour\n2,se,red\n")
    report = launch(source, tmp_path, "local")
    assert report.windows == 1
    files = sorted((tmp_path / "out" / "country=se").glob("*.parquet"))
    assert [pq.read_schema(path).names for path in files] == [["id", "amount"], ["id", "amount", "colour"]]
