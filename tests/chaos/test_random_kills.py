"""`dagflow launch` of applications, killed at random moments and launched again until it gets through.

The short form has a fixed seed. The long form, which `make chaos` runs, draws one and prints it; CHAOS_SEED sets it for both.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.chaos import cases
from tests.chaos.cases import APPLICATIONS, Place
from tests.chaos.kills import SEED, kill_at_random
from tests.cluster.servers import standalone

pytestmark = [pytest.mark.chaos, pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")]
SPARK = [pytest.mark.spark]
CLUSTER = [pytest.mark.spark, pytest.mark.cluster]


FIXED_SEED = "97cb2753"


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> str:
    is_long = request.node.get_closest_marker("nightly") is not None
    return os.environ.get(SEED) or (os.urandom(4).hex() if is_long else FIXED_SEED)


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    if request.param == "cluster":
        with standalone(tmp_path_factory.mktemp("cluster")) as master:
            yield cases.cluster(master)
    else:
        yield {"local": cases.local, "processes": cases.processes, "spark": cases.spark}[request.param]()


SHORT = [
    pytest.param("local", "line_filter", ["driver", "pause", "driver", "driver"]),
    pytest.param("local", "block_copy", ["driver", "driver", "driver"]),
    pytest.param("local", "word_count", ["driver", "driver", "driver"]),
    pytest.param("local", "access_log", ["driver", "driver"]),
    pytest.param("local", "package_stats", ["driver", "driver"]),
    pytest.param("local", "tumbling", ["driver", "driver"]),
    pytest.param("processes", "line_filter", ["python", "driver", "server"]),
    pytest.param("processes", "word_count", ["python", "python", "driver"]),
    pytest.param("spark", "block_copy", ["python", "driver"], marks=SPARK),
    pytest.param("spark", "word_count", ["python", "driver"], marks=SPARK),
    pytest.param("cluster", "line_filter", ["executor"], marks=CLUSTER),
]
LONG = [
    *(pytest.param("local", name, 30) for name in APPLICATIONS),
    *(pytest.param("processes", name, 30) for name in APPLICATIONS),
    *(pytest.param("spark", name, 25, marks=SPARK) for name in APPLICATIONS),
    *(pytest.param("cluster", name, 15, marks=CLUSTER) for name in APPLICATIONS),
]


@pytest.fixture
def told(seed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., None]:
    """Kills, and tells the figures at once: a long run may be stopped before its end."""

    def kill(place: Place, name: str, kinds: list[str] | int, **more: int) -> None:
        figures = kill_at_random(APPLICATIONS[name](tmp_path, **more), place, seed, kinds)
        with capsys.disabled():
            print(f"\n{SEED}={seed}, {name} on {place.name}: {figures}")

    return kill


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("place", "name", "kinds"), SHORT, indirect=["place"])
def test_some_kills(place: Place, name: str, kinds: list[str], told: Callable[..., None]) -> None:
    told(place, name, kinds, files=4)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("place", "name", "kinds"), LONG, indirect=["place"])
def test_two_hundred_kills(place: Place, name: str, kinds: int, told: Callable[..., None]) -> None:
    told(place, name, kinds)
