"""Outcomes of tasks below the last level, which lie in the run folder: nothing is unpickled that a task did not leave there."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from dagflow.errors import RecordDamaged, RecordMisplaced
from dagflow.runtime.stage.outcome import TaskOutcome
from dagflow.runtime.stage.program import ExchangeLayout, Job, TaskSpec
from dagflow.runtime.task.execute import outcome_bytes
from dagflow.spark.dataframes.levels import outcome_name, outcomes
from dagflow.storage import open_store, seal

TASK = TaskSpec(window=3, epoch="r", stage="s0", partition=0, partitions=2, layout=ExchangeLayout(next_tasks=1))
OTHER = attrs.evolve(TASK, partition=1, layout=ExchangeLayout())
OUTCOME = TaskOutcome(task=TASK.name, attempt="1", started=0.0, ended=1.0)


def found(folder: Path, stored: bytes) -> list[TaskOutcome]:
    open_store(str(folder), durable=False).create(outcome_name(TASK), stored)
    job = Job(window=3, epoch="r", name="job", tasks=(TASK, OTHER), programs={}, run_folder=str(folder), durable=False)
    return outcomes(job, [])


def test_it_comes_back(tmp_path: Path) -> None:
    assert found(tmp_path, seal(outcome_name(TASK), outcome_bytes(OUTCOME))) == [OUTCOME]


def test_what_has_no_seal_is_not_unpickled(tmp_path: Path) -> None:
    with pytest.raises(RecordDamaged):
        found(tmp_path, outcome_bytes(OUTCOME))


def test_that_of_another_task_is_out_of_place(tmp_path: Path) -> None:
    with pytest.raises(RecordMisplaced):
        found(tmp_path, seal(outcome_name(OTHER), outcome_bytes(OUTCOME)))
