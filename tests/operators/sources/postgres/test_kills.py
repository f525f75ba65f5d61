"""Launches that die while they read a table to which rows are added: continued, they give each row once."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import attrs
import pytest

from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.testing import run_dag
from operators import PostgresRanges
from operators.sources.postgres.range_reading import RangeReading
from tests.chaos.dying import after, before, die_at, in_child
from tests.operators.databases import Database
from tests.operators.sources.postgres.tables import SALES, Reading, rows

pytestmark = [pytest.mark.full, pytest.mark.chaos]
pytest.importorskip("psycopg")

STEPS = {
    "before a window is cut": before("_plan", PostgresRanges),
    "after a window is cut": after("_plan", PostgresRanges),
    "before a range is read": before("_check_types", RangeReading),
    "after the decision": after("decide", WindowLog),
    "before the mark": before("done", WindowLog),
}
"""The steps at which a launch is killed."""


def launched(reading: Reading, point: tuple[str, int] | None = None) -> int:
    """Launch in a child, which is killed at a point. Return its exit status."""

    def work() -> None:
        if point is not None:
            die_at(STEPS[point[0]], point[1])
        settings = {"operator.sales.ranges.window_blocks": 2}
        run_dag(reading.populate(), settings, run_folder=str(reading.folder / "run"), windows_in_flight=2)

    return in_child(work)


def written(folder: Path) -> list[int]:
    """The keys in the output, as a reader of files sees them."""
    lines = [line for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]
    return sorted(json.loads(line)["id"] for line in lines)


@pytest.mark.parametrize("step", STEPS)
def test_killed_launches_that_are_continued_give_each_row_once(step: str, postgres: Database, tmp_path: Path) -> None:
    postgres.run(SALES)
    reading = attrs.evolve(Reading(postgres, tmp_path), properties={"key": "id", "block_rows": 3})
    postgres.run(rows(*range(20)))
    for call in (1, 0, 2):
        assert launched(reading, (step, call)) == -signal.SIGKILL
        postgres.run(rows(*range(17)))
    assert launched(reading) == 0
    assert written(tmp_path / "out") == list(range(1, 20 + 3 * 17 + 1))
    assert launched(reading) == 0
    assert written(tmp_path / "out") == list(range(1, 20 + 3 * 17 + 1))
