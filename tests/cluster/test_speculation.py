"""Copies of slow tasks: a standalone cluster of two hosts (Spark makes no copy on the host of the first)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cluster.places import Place
from tests.cluster.servers import standalone

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.nightly]
EAGER = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.3",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.executor.memory": "512m",
}


@pytest.mark.skipif(sys.platform != "linux", reason="needs a second loopback address")
def test_copies_change_nothing(place: Place, tmp_path: Path) -> None:
    place.fill(*("slow" if n == 7 else f"line {n}" for n in range(20)))
    with standalone(tmp_path / "cluster", hosts=("127.0.0.2", "127.0.0.3")) as master:
        ran = place.launch(master=master, slow=str(tmp_path / "slow"), **EAGER)
    assert ran.returncode == 0, ran.stderr
    assert len(list(tmp_path.glob("slow.*"))) == 2, "Spark has tried the slow task twice, at the same time"
    assert place.found() == place.expected()
    ran = place.launch(master="local[2]")
    assert ran.returncode == 0, ran.stderr
    assert place.left_over() == []
