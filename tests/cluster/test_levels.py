"""Executors killed within a window of several levels, under operators whose output depends on the order of their input."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from tests.cluster.places import APPLICATION, Place
from tests.cluster.servers import standalone

pytestmark = [pytest.mark.cluster, pytest.mark.spark]
SMALL = {"spark.executor.memory": "512m"}


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone(tmp_path_factory.mktemp("cluster")) as address:
        yield address


@pytest.mark.nightly
def test_an_executor_killed_between_levels_changes_nothing(master: str, place: Place, tmp_path: Path) -> None:
    """In the last level: then what the levels before have sent from that executor is lost, and they are computed again."""
    place = attrs.evolve(place, application=APPLICATION / "levels.py")
    place.fill(*(f"word{n} again word{n % 7} x" for n in range(200)), "kill")
    ran = place.launch(master=master, **SMALL)
    assert (ran.returncode, ran.stderr) == (0, "")
    expected = place.found()
    assert sum(expected.values()) > 20
    for at in ("again", "dealt"):
        shutil.rmtree(place.output)
        (tmp_path / at).mkdir()
        ran = place.launch(master=master, kill=str(tmp_path / at), at=at, **SMALL)
        assert (ran.returncode, ran.stderr) == (0, "")
        assert (tmp_path / at / "killed").exists()
        assert place.found() == expected
        assert place.events("window_retried") == [], "Spark makes again what was lost, and it is the same"
        assert place.left_over() == []


@pytest.mark.nightly
def test_an_executor_killed_behind_a_body_of_dataframes_changes_nothing(master: str, place: Place, tmp_path: Path) -> None:
    """The rows of a body are sorted before they are sent on: so they are the same again, with all that depends on their order."""
    place = attrs.evolve(place, application=APPLICATION / "bodies.py")
    place.fill(*(f"word{n} again word{n % 7} x" for n in range(200)), "kill")
    ran = place.launch(master=master, **SMALL)
    assert (ran.returncode, ran.stderr) == (0, "")
    expected = place.found()
    assert sum(expected.values()) > 200
    shutil.rmtree(place.output)
    (tmp_path / "kill").mkdir()
    ran = place.launch(master=master, kill=str(tmp_path / "kill"), **SMALL)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert (tmp_path / "kill" / "killed").exists()
    assert place.found() == expected
    assert place.events("window_retried") == []
    assert place.left_over() == []


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_an_executor_killed_around_a_combiner_changes_nothing(master: str, place: Place, tmp_path: Path) -> None:
    """Before, in and behind the level that gets what was combined a hundred keys at a time."""
    place = attrs.evolve(place, application=APPLICATION / "combined.py")
    place.fill(*(f"word{n} again word{n % 7} x" for n in range(200)), "kill kill")
    settings = {"rebalance": "off", **SMALL}  # so that each launch deals the same to its tasks
    ran = place.launch(master=master, **settings)
    assert (ran.returncode, ran.stderr) == (0, "")
    expected = place.found()
    trails = {line.split(",")[1]: line.split(",")[2:] for line in expected}
    words = Counter(word for file in (place.folder / "in").iterdir() for word in file.read_text().split())
    assert {word: sum(len(piece.split("+")) for piece in pieces) for word, pieces in trails.items()} == words
    assert 2 < len(trails["again"]) < 200, "two tasks have combined it, and have given it away now and then"
    for at in ("combine", "process", "numbered"):
        shutil.rmtree(place.output)
        (tmp_path / at).mkdir()
        ran = place.launch(master=master, kill=str(tmp_path / at), at=at, **settings)
        assert (ran.returncode, ran.stderr) == (0, "")
        assert (tmp_path / at / "killed").exists()
        assert place.found() == expected
        assert place.events("window_retried") == [], "Spark makes again what was lost, and it is the same"
        assert place.left_over() == []
