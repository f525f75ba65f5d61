from __future__ import annotations

import shutil
from pathlib import Path

import attrs
import pytest

from dagflow.errors import DagflowError, NoRun
from dagflow.page.run import place
from dagflow.page.run.report import run_report
from dagflow.render.report import report_text
from dagflow.storage.errors import NotReadable
from dagflow.testing import run_dag
from tests.page.run.test_data import chain


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a.txt").write_text("".join(f"line {n}\n" for n in range(100)))
    return folder


@pytest.fixture
def conf(logs: Path, tmp_path: Path) -> dict[str, str]:
    return {"input": str(logs), "output": str(tmp_path / "out")}


def lost(output: str, *kinds: str) -> str:
    for kind in kinds:
        shutil.rmtree(Path(output, "_dagflow", kind))
    return report_text(run_report(output))


def test_the_report_is_the_one_that_the_launch_printed(conf: dict[str, str]) -> None:
    report, again = run_dag(chain, conf), run_report(conf["output"])
    figures = [attrs.evolve(each, timings={}, jobs=0, seconds=0.0) for each in (report, again)]
    assert report_text(figures[1]) == report_text(figures[0])
    assert (again.tasks, again.skew, again.rebalancing) == (report.tasks, report.skew, report.rebalancing)
    assert again.ledgers == report.ledgers != {}
    assert [*again.readers] == [*report.readers]
    assert [*again.operators] == [*report.operators]


def test_where_nothing_was_new_it_is_the_launch_before(conf: dict[str, str]) -> None:
    first = run_dag(chain, conf)
    run_dag(chain, conf)
    again = run_report(conf["output"])
    assert (again.windows, again.files, again.later_launches) == (1, first.files, 1)
    assert "1 launch found nothing new" in report_text(again)


def test_a_run_that_failed_says_why(conf: dict[str, str], logs: Path) -> None:
    (logs / "b.txt").write_text("bad </script>\n")
    with pytest.raises(DagflowError):
        run_dag(chain, {**conf, "on_error": "fail"})
    report = run_report(conf["output"])
    assert (report.status, report.windows, report.error_code) == ("failed", 0, "DF301")
    assert "cannot take bad </script>" in str(report.error)
    assert "help: " in str(report.error)
    assert "nothing new" not in report_text(report)


def test_lost_events_are_named(conf: dict[str, str]) -> None:
    run_dag(chain, conf)
    text = lost(conf["output"], "events")
    assert "warning  events: there are none" in text
    assert "windows  1 (number 0)" in text
    assert "\n  time " not in text


def test_lost_decisions_are_named_and_events_have_figures(conf: dict[str, str]) -> None:
    first = run_dag(chain, conf)
    text = lost(conf["output"], "decision")
    assert "warning  decisions: there are none" in text
    report = run_report(conf["output"])
    assert (report.windows, report.files, report.bytes_written) == (1, first.files, first.bytes_written)
    assert report.operators["kept"].records_out == first.operators["kept"].records_out


def test_without_decisions_and_events_nothing_is_done(conf: dict[str, str]) -> None:
    run_dag(chain, conf)
    text = lost(conf["output"], "decision", "events")
    assert ": unknown\n  windows  0\n" in text
    assert "nothing new" not in text


def test_the_nearest_output_is_named(conf: dict[str, str], tmp_path: Path) -> None:
    run_dag(chain, conf)
    with pytest.raises(NoRun, match=r"did you mean .*/out\?"):
        run_report(str(tmp_path / "outt"))
    with pytest.raises(NoRun, match=r"neither a ledger nor a run folder\n  did you mean .*/out\?"):
        run_report(str(tmp_path))


def test_a_folder_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(folder: str) -> bool:
        raise PermissionError(13, "Permission denied", folder)

    monkeypatch.setattr(place, "_is_run_folder", refused)
    with pytest.raises(NotReadable, match="while looking for a run"):
        run_report(str(tmp_path))
