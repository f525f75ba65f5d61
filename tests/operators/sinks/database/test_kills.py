"""Launches that die while they write to a database."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.operators.databases import Database
from tests.operators.sinks.database.kills import STEPS, wrong

OF_A_SERVER = ("after the decision", "before COMMIT", "after COMMIT", "before the mark")


@pytest.mark.full
@pytest.mark.chaos
@pytest.mark.parametrize("step", STEPS)
def test_a_killed_launch_loses_and_doubles_nothing(step: str, sqlite: Database, tmp_path: Path) -> None:
    assert list(wrong(tmp_path / "app", sqlite, (step, 0), (step, 1))) == []


@pytest.mark.full
@pytest.mark.chaos
@pytest.mark.parametrize("step", OF_A_SERVER)
def test_a_launch_that_a_server_loses(step: str, postgres: Database, tmp_path: Path) -> None:
    assert list(wrong(tmp_path / "app", postgres, (step, 0), (step, 1))) == []
