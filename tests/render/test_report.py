from __future__ import annotations

import json

from dagflow.render.report import report_json, report_text
from dagflow.render.style import Style, cells
from dagflow.runtime.run_folder.reports import OperatorFigures
from dagflow.runtime.run_report import ExpectationFigures, ReaderFigures, RunReport, Skew
from dagflow.runtime.stage.outcome import TimesByPurpose
from tests.golden.compare import Golden


def report(**changes: object) -> RunReport:
    figures = {
        "splitter": OperatorFigures(records_out=12, counters={"files": 3, "blocks_planned": 12, "bytes_planned": 50_000_000}),
        "reader": OperatorFigures(
            records_in=12,
            records_out=1_000_000,
            errors=2,
            counters={"bytes": 50_000_000, "records": 1_000_000, "blocks": 12, "dropped": 5, "streams_opened": 3, "time_ms": 812},
            samples=["ValueError: no number ('abc', logs/a.txt, position 7)"],
        ),
        "keep": OperatorFigures(records_in=1_000_000, records_out=900_000, converted=1_000_000),
        "writer": OperatorFigures(records_in=900_000),
    }
    given: dict[str, object] = {
        "application": "line_filter",
        "runner": "spark",
        "status": "done",
        "windows": 3,
        "first_window": 4,
        "operators": figures,
        "files": 6,
        "bytes_written": 45_000_000,
        "seconds": 2.5,
        "jobs": 3,
        "run_folder": "out/_dagflow",
        "outputs": ["out"],
        "ui": "http://127.0.0.1:4040",
    }
    return RunReport(**{**given, **changes})  # type: ignore[arg-type]


def test_what_a_run_did(golden: Golden) -> None:
    golden("report_done.txt", report_text(report()) + "\n")


def test_a_run_that_found_nothing_new(golden: Golden) -> None:
    nothing = report(windows=0, first_window=None, operators={}, files=0, bytes_written=0, seconds=0.03, ui=None)
    golden("report_nothing_new.txt", report_text(nothing) + "\n")


def test_a_run_without_output_says_nothing_of_files() -> None:
    text = report_text(report(outputs=[], run_folder="", ui=None))
    assert "written" not in text
    assert "output" not in text


def test_changes_wait_in_the_operator_or_before_the_sink() -> None:
    text = report_text(report(held={"totals": 3, "module.out.current": 1}))
    assert "totals: 3 changes for the next emission point" in text
    assert "module.out: 1 change for the next emission point" in text


def test_a_run_that_failed_before_its_first_decision_says_nothing_of_files_and_rebalancing() -> None:
    failed = report(status="failed", windows=0, first_window=None, files=0, bytes_written=0, rebalancing="there is one reader")
    text = report_text(failed)
    assert "written" not in text
    assert "rebalanced" not in text
    assert "not rebalanced: there is one reader" in report_text(report(rebalancing="there is one reader"))


def test_colours_tell_how_it_ended() -> None:
    assert "\x1b[32mdone\x1b[0m" in report_text(report(), Style(colour=True))
    assert "\x1b[31mfailed\x1b[0m" in report_text(report(status="failed"), Style(colour=True))
    assert "\x1b" not in report_text(report())


def test_the_table_fits_a_terminal() -> None:
    assert max(cells(line) for line in report_text(report(), Style(width=80)).split("\n")) <= 80


def test_a_sample_that_is_cut_keeps_the_place() -> None:
    place = "logs/2026/11/22/access.log:1234, position 99120"
    record = "203.0.113.7 - - [22/Nov/2026:19:14:45 +0000] GET /index.html, then more (and more), and so on"
    samples = [f"ValueError: no number ('{record}', {place})", f"ValueError: {'long ' * 40}(7)", "ValueError: short (7)"]
    figures = OperatorFigures(errors=3, samples=samples)
    lines = report_text(report(operators={"keep": figures}), Style(width=80)).splitlines()
    shown = [line for line in lines if line.startswith("  ValueError")]
    assert shown[0].endswith("GET /in…)")
    assert f"    {place}" in lines
    assert shown[2] == "  ValueError: short (7)"
    assert all(cells(line) <= 80 for line in lines)


def test_long_rows_continue_in_their_column() -> None:
    counters = {"tasks": 24, "blocks": 360, "records": 360_000}
    readers = {"lines.reader": ReaderFigures(1, 4, 16, 1, 4, changes=3, counters=counters)}
    run_folder = "/data/" + "long/" * 20
    lines = report_text(report(readers=readers, run_folder=run_folder), Style(width=80)).splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("  readers"))
    assert lines[at : at + 2] == [
        "  readers   lines.reader: 1/4/16 (min/now/max), 3 changes, from 1 to 4; together",
        "            24 tasks, 360 blocks, 360,000 records",
    ]
    assert f"  run       {run_folder}" in lines, "a path is not broken"


def test_verdicts_on_windows() -> None:
    expectations = {"keep: positive": ExpectationFigures(400, 5, {"failed": 1, "ok": 2})}
    text = report_text(report(expectations=expectations))
    assert "keep: positive: 5 of 400 records rejected; 1 window failed, 2 windows ok" in text


def test_retries_are_told_with_their_reason() -> None:
    retries = [f"window {n} is retried, attempt 2: a worker died\n  help: …" for n in range(5)]
    lines = [line.split(maxsplit=1) for line in report_text(report(retries=retries)).splitlines() if "attempt 2" in line]
    assert lines == [["retried", f"window {n} is retried, attempt 2: a worker died"] for n in range(3)]
    assert "and 2 more, in the events of the run folder" in report_text(report(retries=retries))


def timed(operators: int = 3) -> RunReport:
    figures = {
        f"o{n}": OperatorFigures(records_in=10 * n, records_out=n, errors=3 if n == 0 else 0, seconds=float(n))
        for n in range(operators)
    }
    return report(
        operators=figures,
        tasks=8,
        times=TimesByPurpose(read=3.0, compute=16.0, write=1.0, wait=0.01),
        skew=Skew(2, "s0-0003", 9.0, 2.5, 8),
        warnings=[f"warning {n}\nwith more" for n in range(5)],
    )


def test_the_slowest_operator_comes_first() -> None:
    lines = report_text(timed()).splitlines()
    assert lines[:4] == [
        "operator        time  records in  records out  rejected",
        "o2         2 s  67 %          20            2         0",
        "o1         1 s  33 %          10            1         0",
        "o0        0 ms   0 %           0            0         3",
    ]
    rows = [line.strip() for line in lines]
    assert "tasks     8 tasks, 20 s together: 15 % reading, 80 % computing, 5 % writing" in rows
    assert "slowest   task s0-0003 of window 2: 9 s; the median of its 8 tasks is 2.5 s" in rows
    assert [row for row in rows if row.startswith("warning")] == [f"warning   warning {n}" for n in range(3)]
    assert "and 2 more, in the events of the run folder" in rows


def test_of_many_operators_the_slowest_and_those_with_errors_are_shown() -> None:
    lines = report_text(timed(300)).splitlines()
    assert [line.split()[0] for line in lines[1:22]] == [*(f"o{n}" for n in range(299, 279, -1)), "o0"]
    assert lines[22] == "and 279 operators that took less time: --json has all"


def test_a_timed_table_fits_a_terminal() -> None:
    assert max(cells(line) for line in report_text(timed(300), Style(width=80)).split("\n")) <= 80


def test_as_json() -> None:
    found = json.loads(json.dumps(report_json(report())))
    assert found["v"] == 1
    assert found["status"] == "done"
    assert found["operators"]["reader"]["counters"]["dropped"] == 5
