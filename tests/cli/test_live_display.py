"""The live display as lines: what it shows of a run, on terminals of any size."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len

from dagflow.cli.progress import LiveProgress
from dagflow.cli.progress.table import OperatorLine, by_module, operator_lines, table_lines, waiting_lines
from dagflow.runtime.events import OperatorProgress, RunStarted, StepRetried, WindowPlanned, WindowRetried, WindowStarted
from dagflow.runtime.run_view import RunView
from tests.cli.test_progress import STARTED, decided, planned


def line(name: str, **figures: object) -> OperatorLine:
    defaults: dict[str, object] = {
        "records_in": 1000,
        "records_out": 2000,
        "rate": 50.0,
        "size": 0,
        "errors": 0,
        "tasks": 1,
        "share": 0.1,
    }
    return OperatorLine(name=name, **{**defaults, **figures})  # type: ignore[arg-type]


def progress(at: float, records: int, waiting: dict[str, str] | None = None, **more: object) -> OperatorProgress:
    figures = {
        "records_in": records,
        "records_out": records // 2,
        "bytes": records * 10,
        "errors": 3,
        "seconds": 1.5,
        "partitions": 2,
    }
    operators = {"reader": {**figures, "seconds": 0.5}, "keep": {**figures, "bytes": 0}}
    return OperatorProgress(at=at, operators=operators, waiting=waiting or {}, **more)  # type: ignore[arg-type]


def test_a_line_for_each_operator() -> None:
    run = RunView()
    run(planned(0, 1.0))
    run(progress(10.0, 1000))
    run(progress(12.0, 5000))
    assert table_lines(operator_lines(run), 80, 20) == [
        "operator   in    out   rate     bytes  rejected  tasks  time",
        "reader    5 k  2.5 k  2 k/s  48.8 KiB         3      2  25 %",
        "keep      5 k  2.5 k  2 k/s                   3      2  75 %",
    ]
    run(decided(0, 13.0))  # nothing is at work until the next window
    assert {(own.rate, own.tasks) for own in operator_lines(run)} == {(0.0, 0)}


@pytest.mark.parametrize("width", [30, 40, 60, 80, 120])
@pytest.mark.parametrize("height", [2, 3, 10, 24])
def test_it_fits_the_terminal(width: int, height: int) -> None:
    names = [*(f"area{n % 7}.part{n % 3}.operator{n}" for n in range(300)), "読み手の演算子の長い名前です", "x" * 100]
    lines = table_lines([line(name, errors=n, size=n << 20) for n, name in enumerate(names)], width, height)
    assert 0 < len(lines) <= height
    assert max(map(cell_len, lines)) <= width


def test_operators_that_do_not_fit_are_shown_by_module() -> None:
    operators = [line(f"{a}.{b}.{c}") for a in ("in", "out") for b in ("x", "y") for c in ("one", "two")]
    assert len(by_module(operators, 8)) == 8
    assert [each.name for each in by_module(operators, 7)] == ["in.x (2)", "in.y (2)", "out.x (2)", "out.y (2)"]
    assert [each.name for each in by_module(operators, 3)] == ["in (4)", "out (4)"]
    assert [each.name for each in by_module([line("a"), line("b"), line("c.d")], 1)] == ["a", "b", "c.d"]
    first, last = line("m.first", records_in=7, records_out=70), line("m.last", records_in=70, records_out=3, errors=2, share=0.5)
    (module,) = by_module([first, last], 1)
    assert (module.records_in, module.records_out, module.errors, module.share) == (7, 3, 2, 0.6)


def test_the_busiest_are_shown_and_the_others_are_counted() -> None:
    operators = [line(f"o{n}", rate=float(n), tasks=int(n % 2)) for n in range(10)]
    lines = table_lines(operators, 80, 5)
    assert [text.split()[0] for text in lines] == ["operator", "o5", "o7", "o9", "and"]
    assert lines[-1] == "and 7 operators less busy"


def test_the_busiest_of_a_chain_are_those_that_take_the_time() -> None:
    """In a chain, all operators have the same rate."""
    operators = [line(f"o{n}", rate=500.0 - n, share=0.24 if n in (7, 90, 200, 290) else 0.0001) for n in range(300)]
    lines = table_lines(operators, 80, 6)
    assert [text.split()[0] for text in lines] == ["operator", "o7", "o90", "o200", "o290", "and"]


def test_long_names_keep_their_ends() -> None:
    operators = [line(f"{'lines_' * 8}long.{name}") for name in ("splitter", "reader")]
    names = [text.split()[0] for text in table_lines(operators, 80, 6)[1:]]
    assert names == ["lines_lines_lines_li…lines_long.splitter", "lines_lines_lines_li…s_lines_long.reader"]


def test_why_operators_wait() -> None:
    waiting = {"keep": "for the records of reader", "reader": "1 of 2 tasks, for a free slot"}
    run = RunView()
    run(planned(0, 1.0))
    run(progress(10.0, 1000, waiting))
    expected = ["reader waits (1 of 2 tasks, for a free slot)", "keep waits for the records of reader"]
    assert waiting_lines(operator_lines(run), 80, 3) == expected
    assert waiting_lines(operator_lines(run), 80, 1) == expected[:1]


def test_why_all_waits() -> None:
    now = [100.0]
    state = LiveProgress(io.StringIO(), lambda: now[0])
    state(STARTED)
    assert state.why_all_wait() == ""
    state(planned(0, 1.0))
    state(progress(10.0, 1000, {"": "no task has begun"}))
    assert state.why_all_wait() == "no task has begun"
    state(WindowRetried(window=0, attempt=2, reason="a worker died\nhelp: …", delay=4.0))
    now[0] = 101.0
    assert state.why_all_wait() == "window 0 is retried (a worker died) in 3 s"
    state(WindowStarted(window=0, round="r", tasks=2))
    assert state.why_all_wait() == "no task has begun"
    state(StepRetried(window=0, doing="publishing its plan", attempt=2, reason="it is busy", delay=2.0))
    assert state.why_all_wait() == "window 0: publishing its plan is retried (it is busy) in 2 s"
    now[0] = 104.0
    state(decided(0, 12.0))
    assert state.why_all_wait() == ""


def test_the_display_on_a_terminal_of_80_cells() -> None:
    now = [0.0]
    live = LiveProgress(io.StringIO(), lambda: now[0])
    started: RunStarted = STARTED
    plan: WindowPlanned = planned(0, 1.0)
    for event in (started, plan, progress(2.0, 1000), progress(4.0, 5000, backlog=3, backlog_bytes=5 << 20, remaining=75.0)):
        live(event)
    now[0] = 12.0
    text = live.display(80, 24).plain.split("\n")
    assert text[:2] == ["window 0 (2 tasks) · 0 windows done · 3 items, 5 MiB left", "about 1 min 15 s to go · 12 s so far"]
    assert [each.split()[0] for each in text[2:]] == ["operator", "reader", "keep"]
    assert len(live.display(80, 5).plain.split("\n")) == 2  # no room for a table
