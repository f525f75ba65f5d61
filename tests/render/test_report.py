from __future__ import annotations

import json

from dagflow.render.report import report_json, report_text
from dagflow.render.style import Style, cells
from dagflow.runtime.run_folder.reports import OperatorFigures
from dagflow.runtime.run_report import RunReport
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


def test_colours_tell_how_it_ended() -> None:
    assert "\x1b[32mdone\x1b[0m" in report_text(report(), Style(colour=True))
    assert "\x1b[31mfailed\x1b[0m" in report_text(report(status="failed"), Style(colour=True))
    assert "\x1b" not in report_text(report())


def test_the_table_fits_a_terminal() -> None:
    assert max(cells(line) for line in report_text(report(), Style(width=80)).split("\n")) <= 80


def test_retries_are_told_with_their_reason() -> None:
    retries = [f"window {n} is retried, attempt 2: a worker died\n  help: …" for n in range(5)]
    lines = [line.split(maxsplit=1) for line in report_text(report(retries=retries)).splitlines() if "attempt 2" in line]
    assert lines == [["retried", f"window {n} is retried, attempt 2: a worker died"] for n in range(3)]
    assert "and 2 more, in the events of the run folder" in report_text(report(retries=retries))


def test_as_json() -> None:
    found = json.loads(json.dumps(report_json(report())))
    assert found["v"] == 1
    assert found["status"] == "done"
    assert found["operators"]["reader"]["counters"]["dropped"] == 5
