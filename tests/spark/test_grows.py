"""Before each window the session is asked if Spark adds slots for tasks that wait, and then for their number."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import pytest

from dagflow.spark.runner import SparkRunner

ON = "spark.dynamicAllocation.enabled"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A runner that was opened when a session had so many slots, with what it knows of that session."""

    def opened(slots: list[int | None], **conf: str) -> tuple[SparkRunner, Any]:
        link: Any = SimpleNamespace(
            setting=conf.get,
            in_one_process=True,
            labelled=lambda group, name: contextlib.nullcontext(),
            slots=lambda: slots[0],
            slots_now=lambda: slots[-1],
        )
        monkeypatch.setattr("dagflow.spark.runner.connect", lambda application, **wanted: (link, False))
        runner = SparkRunner()
        runner.open("application", "run folder")
        return runner, link

    return opened


def test_slots_are_those_of_the_executors_that_are_there(opened: Any) -> None:
    slots: list[int | None] = [2]
    runner, link = opened(slots, **{ON: "true"})
    assert runner.slots == 2
    slots.append(7)
    assert runner.slots == 7
    slots.append(None)  # Spark Connect: only a job would tell
    assert runner.slots == 7
    link.slots_now = None  # no answer comes
    assert runner.slots == 7


def test_slots_that_stay_are_asked_for_once(opened: Any) -> None:
    assert opened([2, 7])[0].slots == 2


@pytest.mark.parametrize(
    ("conf", "grows"),
    [
        ({}, False),
        ({ON: "true"}, True),
        ({ON: "True "}, True),
        ({ON: "TRUE", "spark.master": "spark://boss:7077"}, True),
        ({ON: "true", "spark.master": "local-cluster[2,1,1024]"}, True),
        ({ON: "true", "spark.master": "local"}, False),
        ({ON: "true", "spark.master": "local[4]"}, False),
        ({ON: "false"}, False),
    ],
)
def test_dynamic_allocation(conf: dict[str, str], grows: bool) -> None:
    link: Any = SimpleNamespace(setting=conf.get)
    runner = SparkRunner()
    assert not runner.grows
    runner._link = link
    assert runner.grows is grows
