from __future__ import annotations

from typing import Any

import pytest

from dagflow import ReaderRecord
from dagflow.testing import OperatorTask
from operators import Console


def lines(operator: Console[Any], records: list[Any], form: str = "stream") -> list[str]:
    with OperatorTask(operator) as task:
        task.give("input", records, form)
    return task.context.signals.notes


@pytest.mark.parametrize("form", ["record", "stream"])
def test_text_as_it_is_and_all_else_as_repr(form: str) -> None:
    records = ["a b", 7, None, ReaderRecord(1, 2, "line"), ReaderRecord(1, 2, b"raw")]
    assert lines(Console("> "), records, form) == ["> a b", "> 7", "> None", "> line", "> b'raw'"]


@pytest.mark.parametrize("form", ["record", "stream"])
def test_the_rest_is_counted_and_said(form: str) -> None:
    operator = Console[str](limit=2)
    with OperatorTask(operator) as task:
        task.give("input", ["a"], form)
        task.give("input", ["b", "c", "d"], form)
        task.give("input", ["e"], form)
    assert task.context.signals.notes == ["a", "b", "… 3 more records are not shown (limit = 2)"]
    assert task.counters == {"not_shown": 3}


def test_a_long_line_is_cut() -> None:
    assert lines(Console(), ["x" * 5000]) == ["x" * 1000 + "…"]


def test_the_driver_prints(capsys: pytest.CaptureFixture[str]) -> None:
    Console[str]().show(["a", "b"], window=3)
    assert capsys.readouterr().out == "a\nb\n"


def test_a_negative_limit() -> None:
    with pytest.raises(ValueError, match="'limit' must be >= 0: -1"):
        Console(limit=-1)


def test_what_is_taken_back_is_marked() -> None:
    with OperatorTask(Console[str]("> ")) as task:
        task.give("input", ["a"])
        task.give("input", ["a"], retracts=True)
        task.end_window()
    assert task.context.signals.notes == ["> a", "> - a"]
