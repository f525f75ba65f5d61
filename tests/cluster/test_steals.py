"""Executors killed while readers take work from one another: at each step of a steal, after others have succeeded."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from tests.cluster.places import APPLICATION, Place
from tests.cluster.servers import standalone

pytestmark = [pytest.mark.cluster, pytest.mark.spark]
KILLS = [
    "before ask 1",
    "after ask 1",
    "asked 1",
    "narrowed 1",
    "after grant 0",
    "after grant 1",
    "stolen 0",
    "stolen 1",
    "before finish 0",
    "after finish 0",
    "before report 0",
    "after report 0",
]
"""Steps, and how often each comes before an executor is killed at it."""
LINES, BLOCKS = 480, 4


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone(tmp_path_factory.mktemp("cluster")) as address:
        yield address


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_an_executor_killed_at_any_step_of_a_steal_loses_nothing(master: str, place: Place, tmp_path: Path) -> None:
    """A window for each. Lines become slower to the end of a first block: who took them over is asked for a part in turn."""
    place = attrs.evolve(place, application=APPLICATION / "shared.py")
    for file in (place.folder / "in").iterdir():
        file.unlink()
    lines = [f"{5 + n // 4 if n < LINES // BLOCKS else 0:02d} line {n:04d}" for n in range(LINES)]
    text = "".join(f"{line}\n" for line in lines)
    for window in range(len(KILLS)):
        (place.folder / "in" / f"{window:02d}.txt").write_text(text)
        (tmp_path / "kills" / str(window)).mkdir(parents=True)
    sizes = {"block_size": str(len(text) // BLOCKS), "spark.executor.memory": "512m"}
    killing = {"folder": str(tmp_path / "kills"), "kills": json.dumps(KILLS), "windows_in_flight": "1"}
    ran = place.launch(master=master, told="told", **sizes, **killing)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert [kill for n, kill in enumerate(KILLS) if not (tmp_path / "kills" / str(n) / "killed").exists()] == []
    taken_over = {event["window"] for event in place.events("stolen")}
    assert [kill for n, kill in enumerate(KILLS) if n not in taken_over] == [], "nothing was taken over there"
    assert place.found() == Counter({line: len(KILLS) for line in lines})
    told = [file.read_text() for file in (place.folder / "told").glob("[!_.]*")]
    assert sorted(map(int, "".join(told).split())) == list(range(BLOCKS * len(KILLS))), "each block is told once"
    assert place.events("window_retried") == [], "Spark makes again what was lost"
    assert place.left_over() == []
