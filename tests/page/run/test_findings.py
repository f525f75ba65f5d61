from __future__ import annotations

from typing import Any

import pytest

from dagflow.page.run.findings import findings, slot_use
from tests.page import synthetic

IDLE = "/data/a.gz cannot be split; a reader was idle for 6.4 s"


def run(tasks: list[list[Any]], **more: Any) -> dict[str, Any]:
    """A run of one window of ten seconds."""
    data = synthetic.run(5, 1, 0)
    data["windows"] |= {"planned": [0], "decided": [10_000]}
    rows = [[0, name, start, end, 1, end - start, 0, 0, 0, read] for name, start, end, read in tasks]
    return {**data, "tasks": {"t0": 0, "rows": rows}, **more}


@pytest.mark.parametrize(
    ("tasks", "named"),
    [
        ([["s0-0000", 0, 9_500, None], ["s0-0001", 0, 2_000, None]], True),
        ([["s0-0000", 0, 9_500, None], ["s0-0001", 0, 9_000, None]], False),  # even
        ([["s0-0000", 0, 9_500, None]], False),  # the window has one task
        ([["s0-0000", 5_000, 9_500, None], ["s1-0000", 0, 5_000, None]], False),  # one after the other
    ],
)
def test_a_task_that_its_window_waited_for_is_named(tasks: list[list[Any]], named: bool) -> None:
    texts = [each["text"] for each in findings(run(tasks)) if "One task" in each["text"]]
    assert [text.partition(": ")[2] for text in texts] == (["s0-0000, 9.5 s of 10.0 s."] if named else [])


def test_the_file_of_that_task_is_named() -> None:
    read = [{"path": "/data/a.gz", "start": 0, "stop": 9}, 3]
    (finding,) = findings(run([["s0-0000", 0, 9_500, read], ["s0-0001", 0, 2_000, None]]))
    assert finding["text"].endswith("It read /data/a.gz and 3 more.")
    assert finding["window"] == 0


def test_rebalancing_that_was_not_needed_is_no_finding() -> None:
    data = run([])
    for reason, texts in (("the work was even", []), (IDLE, [f"Work was not rebalanced: {IDLE}."])):
        data["live"]["rebalancing"] = reason
        assert [each["text"] for each in findings(data)] == texts


def test_rejects_come_first() -> None:
    rejects = [{"operator": "a", "errors": 1, "samples": []}, {"operator": "b", "errors": 2_000, "samples": []}]
    data = run([], rejects=rejects)
    data["live"]["rebalancing"] = IDLE
    assert findings(data)[0]["text"] == "2,001 records were rejected: b 2,000, a 1."


def test_slots_are_used_while_a_window_is_at_work() -> None:
    windows = {"planned": [0, 5_000, 60_000], "decided": [10_000, 20_000, None]}
    windows |= {"read": [10.0, 2.0, 99.0], "compute": [6.0, 1.0, 0.0], "write": [0.0, 1.0, 0.0], "wait": [4.0, 0.0, 0.0]}
    assert slot_use(windows, 2) == 0.5
    assert slot_use(windows, None) is None
    data = run([])
    data["run"] |= {"slot_use": 0.31, "seconds": 60.0}
    assert next(each["text"] for each in findings(data)).startswith("Tasks used 31 % of the time of the 4 slots")
