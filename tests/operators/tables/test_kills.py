"""Launches that die between any two steps of a window while a table grows and is compacted, and others that resume there."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from dagflow.errors import OperatorFailed
from dagflow.lineage.trace import ApplicationLocator, trace
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.storage.local.files import LocalFileSystem
from tests.chaos.dying import after, before, die_at
from tests.operators.tables.applications import copying, delta, iceberg, numbers, read_on
from tests.operators.tables.test_each_row_once import DeltaTable, IcebergTable
from tests.tiers import mostly_nightly

STEPS = {
    "before the plan": before("plan", WindowLog),
    "after the plan": after("plan", WindowLog),
    "before the decision": before("decide", WindowLog),
    "after the decision": after("decide", WindowLog),
    "after one name": after("rename", LocalFileSystem),
    "before the mark": before("done", WindowLog),
    "after the mark": after("done", WindowLog),
}
KINDS: dict[str, tuple[type[DeltaTable] | type[IcebergTable], Any]] = {
    "delta": (DeltaTable, delta),
    "iceberg": (IcebergTable, iceberg),
}
kinds = pytest.mark.parametrize("kind", ["delta", pytest.param("iceberg", marks=pytest.mark.full)])


class Died(BaseException):
    """Passes all handlers of errors, as a kill does."""


@kinds
@pytest.mark.parametrize("step", STEPS)
def test_every_step(step: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make, operator = KINDS[kind]
    table, deaths = make(tmp_path), 0

    def die() -> None:
        nonlocal deaths
        deaths += 1
        raise Died

    for number in range(3):
        table.append(2)
        table.append(1)
        with monkeypatch.context() as patch:
            die_at(STEPS[step], number, die, patch.setattr)
            with pytest.raises((Died, OperatorFailed)):
                read_on(operator(tmp_path, blocks_threshold=1), tmp_path)
        table.rearrange(number)
    assert deaths == 3
    read_on(operator(tmp_path), tmp_path)
    assert sorted(numbers(tmp_path)) == list(range(table.rows))


def main(folder: str, kind: str, step: str, number: str) -> None:
    """Launch in a process of its own, which is killed at a step."""
    die_at(STEPS[step], int(number))
    read_on(KINDS[kind][1](Path(folder), blocks_threshold=2), Path(folder))


@pytest.mark.full
@pytest.mark.parametrize("seed", mostly_nightly(range(4), 0, 1))
def test_processes_that_are_killed(seed: int, tmp_path: Path) -> None:
    rng, kind = random.Random(seed), list(KINDS)[seed % 2]
    make, operator = KINDS[kind]
    table = make(tmp_path)
    killed = 0
    for _ in range(5):
        for _ in range(rng.randrange(1, 5)):
            table.append(rng.randrange(1, 4))
        table.rearrange(rng.randrange(3))
        command = [sys.executable, "-m", __name__, str(tmp_path), kind, rng.choice(list(STEPS)), str(rng.randrange(2))]
        ended = subprocess.run(command, check=False, cwd=Path(__file__).parents[3])
        assert ended.returncode in (0, -signal.SIGKILL)
        killed += ended.returncode != 0
    assert killed
    read_on(operator(tmp_path), tmp_path)
    assert sorted(numbers(tmp_path)) == list(range(table.rows))


@kinds
def test_a_row_is_traced_to_its_file_and_its_place_there(kind: str, tmp_path: Path) -> None:
    make, operator = KINDS[kind]
    table = make(tmp_path)
    read_on(operator(tmp_path), tmp_path)
    table.append(3)
    read_on(operator(tmp_path), tmp_path)
    offset = numbers(tmp_path).index(2)
    locator = ApplicationLocator(application=copying(operator(tmp_path), tmp_path))
    origin = trace(str(tmp_path / "out"), offset, exact=True, locator=locator)
    assert origin.window == 1
    [item] = origin.items
    row = pq.read_table(item.path).column("n").to_pylist().index(2)
    place = f"those with this one begin at byte 4 of {item.path}, and it is row {row} of that file (from 0)"
    assert place in str(origin.problem)


if __name__ == "__main__":
    main(*sys.argv[1:])
