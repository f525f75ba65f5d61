"""TPC-H by operators has the rows of DuckDB after each launch, while files come."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from benchmarks.tpch.__main__ import main
from benchmarks.tpch.peers import TABLES, Ours, comparable, duckdb_over, make_data
from benchmarks.tpch.queries import QUERIES


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data(tmp_path_factory.mktemp("tpch"), 0.01, parts=3)


@pytest.mark.full
@pytest.mark.parametrize("name", QUERIES)
def test_a_query_has_the_rows_of_duckdb_after_each_launch(data: Path, tmp_path: Path, name: str) -> None:
    ours, chance = Ours(tmp_path / "tables", tmp_path / "result", slots=1, final=False), random.Random(name)
    files = sorted(path for table in TABLES for path in (data / table).iterdir())
    coming = [next(path for path in files if path.parent.name == table) for table in TABLES]  # a table has a file from the start
    later = [path for path in files if path not in coming]
    chance.shuffle(later)
    for new in (coming, later[:3], later[3:]):
        for path in new:
            (ours.data / path.parent.name).mkdir(parents=True, exist_ok=True)
            shutil.copy(path, ours.data / path.parent.name)
        ours.run(name)
        expected = comparable(duckdb_over(ours.data).ask(QUERIES[name].sql))
        assert ours.rows() == expected
    assert expected, "a query without rows shows nothing"


@pytest.mark.full
def test_the_benchmark_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--quick", "--query", "q6", "--query", "q14"]) == 0
    assert "geometric mean" in capsys.readouterr().out
