"""Nexmark by operators has the rows of DuckDB after each launch, while files come."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.nexmark.__main__ import main
from benchmarks.nexmark.data import make_data
from benchmarks.nexmark.queries import NEXMARK
from tests.benchmarks.arriving import check_launches


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data(tmp_path_factory.mktemp("nexmark"), 6_000, rate=150, parts=4)


@pytest.mark.full
@pytest.mark.parametrize("name", NEXMARK.queries)
def test_a_query_has_the_rows_of_duckdb_after_each_launch(data: Path, tmp_path: Path, name: str) -> None:
    check_launches(NEXMARK, data, tmp_path, name)


@pytest.mark.full
def test_the_benchmark_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--quick", "--query", "q5", "--query", "q6"]) == 0
    assert "geometric mean" in capsys.readouterr().out
