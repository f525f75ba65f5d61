"""apps/orders on three workers whose Python has no library: all that its sinks need comes with the package."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from apps.orders import sample
from tests.chaos import oracle, tables
from tests.cluster.servers import registered, standalone, worker
from tests.cluster.test_package import PackagingPlace, bare, cache, place

__all__ = ["bare", "cache", "place"]  # fixtures

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.nightly, pytest.mark.timeout(900)]
ORDERS = Path(__file__).parents[2] / "apps" / "orders"


@pytest.fixture
def three_workers(tmp_path: Path, bare: Path) -> Iterator[str]:
    path = {"PATH": f"{bare}:{os.environ['PATH']}", "PYTHONPATH": ""}
    with contextlib.ExitStack() as stack:
        master = stack.enter_context(standalone(tmp_path / "cluster", workers=0))
        registered(*[stack.enter_context(worker(tmp_path / f"worker{number}", master, **path)) for number in range(3)])
        yield master


def test_all_sinks_get_the_orders(three_workers: str, place: PackagingPlace) -> None:
    place = attrs.evolve(place, application=ORDERS)
    source, output = place.folder / "sales", place.folder / "shop"
    given = {"input": "sales", "output": "shop", "run_folder": "shop/run", "block_size": "2000", "package": "true"}
    given |= {"spark.executor.memory": "512m", "spark.scheduler.minRegisteredResourcesRatio": "1.0"}
    sample.write(place.folder / "all", files=6, count=60)
    files = sorted((place.folder / "all").iterdir())
    source.mkdir()
    for some in (files[:4], files[4:]):
        for file in some:
            file.rename(source / file.name)
        ran = place.launch(master=three_workers, **given)
        assert (ran.returncode, "error[" in ran.stderr) == (0, False), ran.stderr
    expected = tables.expected(source.iterdir())
    assert list(tables.wrong(output, expected)) == []
    assert tables.failed(output / "failed") == expected.failed
    assert oracle.rejected(output / "rejects") == expected.rejected
